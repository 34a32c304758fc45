# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Which target pixels the surfaces of a context view project onto.

Conventions: integer coordinate = pixel centre, x right, y down; OpenCV
cameras; depth is camera-axis Z. A projected point lands on the pixel
`(floor(u), floor(v))`, as the released evaluator has it. Maps are [h, w] bool.
There is no occlusion test: a map says reached, not seen.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp

_MIN_FORWARD = 1e-4  # Points closer to the target camera's plane are dropped.
_PROJECTION_EPSILON = 1e-6  # Added to the denominator of the projection.


class Selection(NamedTuple):
  """Indices of selected entries.

  Attributes:
    indices: [m] i32; 0 where not valid.
    valid: [m] bool.
    total: scalar i32, number of valid entries before the selection.
  """

  indices: jax.Array
  valid: jax.Array
  total: jax.Array


class Reached(NamedTuple):
  """Target pixels reached from one context view.

  Attributes:
    mask: [h, w] bool, one pixel per point, not dilated.
    points: scalar i32, number of points projected.
    in_bounds: [v] i32, points inside the target image for each variant.
    chosen: scalar i32, the first variant with the most points inside.
  """

  mask: jax.Array
  points: jax.Array
  in_bounds: jax.Array
  chosen: jax.Array


def select_evenly(keep: jax.Array, *, limit: int) -> Selection:
  """Takes at most `limit` of the marked entries, evenly spaced in order.

  With n marked entries and n > limit, those of rank
  `floor(i (n - 1) / (limit - 1))`, 0 <= i < limit; else all of them.

  Args:
    keep: [n] bool.
    limit: largest number of entries to take, at least 2.

  Returns:
    The selection, m = min(n, limit).

  Source: EgoGenEval specification 4.6 item 1.
  """
  chex.assert_rank(keep, 1)
  if limit < 2:
    raise ValueError(f"limit must be at least 2, got {limit}")
  size = keep.shape[0]
  taken = min(size, limit)
  (order,) = jnp.nonzero(keep, size=size, fill_value=0)
  count = jnp.sum(keep).astype(jnp.int32)
  ramp = jnp.arange(taken, dtype=jnp.int32)
  # i (n-1) / (limit-1) in integers; the product itself would overflow 32
  # bits, so quotient and remainder of (n-1) are multiplied apart.
  span = limit - 1
  whole, rest = jnp.divmod(jnp.maximum(count - 1, 0), span)
  spaced = ramp * whole + (ramp * rest) // span
  rank = jnp.where(count > limit, spaced, ramp)
  valid = ramp < count
  index = order[jnp.clip(rank, 0, max(size - 1, 0))] if size else order
  return Selection(jnp.where(valid, index, 0), valid, count)


def reached_pixels(
  depth: jax.Array,
  intrinsics_source: jax.Array,
  intrinsics_target: jax.Array,
  source_to_world: jax.Array,
  world_to_target: jax.Array,
  focal_scales: jax.Array,
  *,
  height: int,
  width: int,
  limit: int,
  min_depth: float,
  max_depth: float,
  limits_inclusive: bool,
  min_points: int,
) -> Reached:
  """Projects a context view's surface into the target image.

  Each variant has its own transform and its own factor on both intrinsics; the
  one that maps most points into the image is painted. A caller who wants the
  physical projection passes one variant with factor 1.

  Args:
    depth: [hs, ws] depth of the context view, metres; non-finite = unknown.
    intrinsics_source: [3, 3] at the size of `depth`.
    intrinsics_target: [3, 3] at (height, width).
    source_to_world: [v, 4, 4] context camera to world, per variant.
    world_to_target: [v, 4, 4] world to target camera, per variant.
    focal_scales: [v] factor on fx, fy, cx, cy of both cameras, per variant.
    height: rows of the target image.
    width: columns of the target image.
    limit: at most this many points, evenly spaced in row-major order.
    min_depth: lower limit of usable depth.
    max_depth: upper limit of usable depth.
    limits_inclusive: whether the limits themselves are usable.
    min_points: fewer usable or projected points give an empty map.

  Returns:
    The reached pixels.

  Source: EgoGenEval specification 4.6 items 1 and 2, 16.2.
  """
  chex.assert_rank([depth, focal_scales], [2, 1])
  count = focal_scales.shape[0]
  chex.assert_shape([source_to_world, world_to_target], (count, 4, 4))
  chex.assert_shape([intrinsics_source, intrinsics_target], (3, 3))
  chex.assert_type([depth, intrinsics_source, source_to_world], float)
  if limits_inclusive:
    usable = (depth >= min_depth) & (depth <= max_depth)
  else:
    usable = (depth > min_depth) & (depth < max_depth)
  usable &= jnp.isfinite(depth)
  selection = select_evenly(usable.ravel(), limit=limit)
  row, column = jnp.divmod(selection.indices, depth.shape[1])
  pixels = jnp.stack([column, row, jnp.ones_like(row)], -1).astype(depth.dtype)
  z = jnp.where(selection.valid, depth.ravel()[selection.indices], 1.0)

  # The released order of operations is kept on purpose (inverse intrinsics,
  # to the world, to the target camera, intrinsics, then the division): where
  # points fall on pixel borders, rounding decides whether they are inside.
  def project(
    to_world: jax.Array, to_target: jax.Array, scale: jax.Array
  ) -> tuple[jax.Array, jax.Array]:
    factor = jnp.stack([scale, scale, jnp.ones_like(scale)])[:, None]
    rays = _transformed(_inverse(intrinsics_source * factor), pixels)
    points = _moved(to_world, rays * z[:, None])
    points = _moved(to_target, points)
    forward = points[:, 2] > _MIN_FORWARD
    image = _transformed(intrinsics_target * factor, points)
    divisor = jnp.where(forward, points[:, 2], 1.0) + _PROJECTION_EPSILON
    u, v = image[:, 0] / divisor, image[:, 1] / divisor
    inside = (u >= 0) & (u < width) & (v >= 0) & (v < height)
    inside &= selection.valid & forward
    cells = jnp.floor(jnp.where(inside, v, 0.0)).astype(jnp.int32) * width
    cells += jnp.floor(jnp.where(inside, u, 0.0)).astype(jnp.int32)
    # Points outside get an index past the end, which the scatter drops.
    return jnp.where(inside, cells, height * width), inside

  flat, inside = jax.vmap(project)(
    source_to_world, world_to_target, focal_scales
  )
  in_bounds = jnp.sum(inside, axis=1).astype(jnp.int32)
  chosen = jnp.argmax(in_bounds).astype(jnp.int32)
  enough = (selection.total >= min_points) & (in_bounds[chosen] >= min_points)
  painted = (
    jnp.zeros(height * width, bool).at[flat[chosen]].set(True, mode="drop")
  )
  mask = painted.reshape(height, width) & enough
  points = jnp.minimum(selection.total, limit)
  return Reached(mask, points, in_bounds, chosen)


def dilate(mask: jax.Array, *, size: int) -> jax.Array:
  """Dilates with a `size` x `size` square, `size` odd.

  Args:
    mask: [h, w] bool.
    size: side of the square.

  Returns:
    [h, w] bool. Pixels outside the image count as false.
  """
  return _window(mask, size, jnp.bool_(False), jax.lax.bitwise_or)


def close_gaps(mask: jax.Array, *, size: int) -> jax.Array:
  """Morphological closing with a `size` x `size` square, `size` odd.

  Args:
    mask: [h, w] bool.
    size: side of the square.

  Returns:
    [h, w] bool. Pixels outside the image never erode it.
  """
  dilated = dilate(mask, size=size)
  return _window(dilated, size, jnp.bool_(True), jax.lax.bitwise_and)


def _inverse(intrinsics: jax.Array) -> jax.Array:
  """Inverse of upper triangular intrinsics."""
  fx, skew, cx = intrinsics[0]
  fy, cy = intrinsics[1, 1], intrinsics[1, 2]
  zero, one = jnp.zeros_like(fx), jnp.ones_like(fx)
  top = [one / fx, -skew / (fx * fy), (skew / fy * cy - cx) / fx]
  return jnp.stack(
    [
      jnp.stack(top),
      jnp.stack([zero, one / fy, -cy / fy]),
      jnp.stack([zero, zero, one]),
    ]
  )


def _transformed(matrix: jax.Array, points: jax.Array) -> jax.Array:
  # Written out, last-to-first, so that the compiled multiply-adds round in the
  # order of a BLAS product: then the released maps are reproduced bit by bit.
  x, y, z = points[:, 0], points[:, 1], points[:, 2]
  rows = [(y * row[1] + x * row[0]) + z * row[2] for row in matrix]
  return jnp.stack(rows, axis=-1)


def _moved(pose: jax.Array, points: jax.Array) -> jax.Array:
  return _transformed(pose[:3, :3], points) + pose[:3, 3]


def _window(
  mask: jax.Array,
  size: int,
  initial: jax.Array,
  combine: Callable[[jax.Array, jax.Array], jax.Array],
) -> jax.Array:
  chex.assert_rank(mask, 2)
  if size < 1 or size % 2 == 0:
    raise ValueError(f"size must be odd and positive, got {size}")
  return jax.lax.reduce_window(
    mask, initial, combine, (size, size), (1, 1), "SAME"
  )
