# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Nearest-surface z-buffer of projected points, with square splats.

Conventions: integer coordinates are pixel centres, x right, y down; a point
belongs to the pixel floor(x + 0.5), floor(y + 0.5). Smaller z is nearer. Equal
z: the point with the lower index wins, so the result does not depend on the
order in which a device runs its updates.
"""

from __future__ import annotations

from typing import NamedTuple

import chex
import jax.numpy as jnp
from jax import Array


class ZBuffer(NamedTuple):
  """The nearest point of every pixel.

  Attributes:
    depth: [h, w] z of that point; 0 where nothing was splatted.
    source: [h, w] int32 index of that point; -1 where nothing was splatted.
    filled: [h, w] bool.
    num_filled: int32 number of filled pixels.
  """

  depth: Array
  source: Array
  filled: Array
  num_filled: Array


def splat_points(
  xy: Array, z: Array, valid: Array, *, height: int, width: int, radius: int
) -> ZBuffer:
  """Splats points as squares of (2 radius + 1)^2 pixels; the nearest z wins.

  A z-buffer of single pixels on a frame widened by `radius`, followed by a
  minimum over each pixel's neighbourhood: the same as splatting every point,
  with one scatter instead of (2 radius + 1)^2.

  Args:
    xy: [N, 2] pixel coordinates; points outside the frame are ignored, except
      for the part of their splat that reaches into it.
    z: [N] depth; not checked to be positive (mask with `valid`).
    valid: [N] bool; other points, and non-finite ones, are ignored.
    height: rows of the buffer, static.
    width: columns of the buffer, static.
    radius: 0 for 1x1, 1 for 3x3 splats, static.

  Returns:
    `ZBuffer`. The gradient of `depth` flows to `z` of the winners; `xy` gets
    none, since the choice of a pixel is not differentiable.

  Raises:
    ValueError: an empty frame or a negative radius.
  """
  chex.assert_rank([xy, z, valid], [2, 1, 1])
  chex.assert_type([xy, z, valid], [float, float, bool])
  chex.assert_shape(xy, (z.shape[0], 2))
  chex.assert_equal_shape([z, valid])
  if height < 1 or width < 1 or radius < 0:
    raise ValueError(f"bad size {height} x {width} or radius {radius}")
  wide_h, wide_w = height + 2 * radius, width + 2 * radius
  count = z.shape[0]

  column = jnp.floor(xy[:, 0] + 0.5) + radius
  row = jnp.floor(xy[:, 1] + 0.5) + radius
  inside = (column >= 0) & (column < wide_w) & (row >= 0) & (row < wide_h)
  usable = valid & inside & jnp.isfinite(z)  # NaN coordinates fail `inside`
  # Out-of-range points go to one extra cell, which is cut off again.
  dump = wide_h * wide_w
  flat = jnp.where(usable, row, 0).astype(jnp.int32) * wide_w
  flat += jnp.where(usable, column, 0).astype(jnp.int32)
  cell = jnp.where(usable, flat, dump)

  nearest = jnp.full((dump + 1,), jnp.inf, z.dtype).at[cell].min(z)
  wins = usable & (z == nearest[cell])
  order = jnp.arange(count, dtype=jnp.int32)
  owner = jnp.full((dump + 1,), count, jnp.int32)
  owner = owner.at[jnp.where(wins, cell, dump)].min(order)
  shape = (wide_h, wide_w)
  index = _nearest_in_window(
    nearest[:dump].reshape(shape), owner[:dump].reshape(shape), radius
  )
  filled = index < count
  if count == 0:
    depth = jnp.zeros((height, width), z.dtype)
  else:
    depth = jnp.where(filled, z[jnp.where(filled, index, 0)], 0)
  return ZBuffer(
    depth,
    jnp.where(filled, index, -1),
    filled,
    jnp.sum(filled, dtype=jnp.int32),
  )


def gather_values(buffer: ZBuffer, values: Array) -> Array:
  """Values of the nearest points, per pixel.

  Args:
    buffer: result of `splat_points` for N points.
    values: [N, C] value per point (a colour, a coordinate).

  Returns:
    [h, w, C]; 0 where nothing was splatted (see `buffer.filled`).
  """
  chex.assert_rank(values, 2)
  if values.shape[0] == 0:
    return jnp.zeros((*buffer.source.shape, values.shape[1]), values.dtype)
  picked = values[jnp.where(buffer.filled, buffer.source, 0)]
  return jnp.where(buffer.filled[..., None], picked, 0)


def cells_in_front(
  xy: Array, z: Array, valid: Array, buffer: ZBuffer, *, tolerance: float
) -> Array:
  """Pixel of every point that is not hidden behind the nearest surface.

  Args:
    xy: [N, 2] pixel coordinates.
    z: [N] depth.
    valid: [N] bool; other points are hidden.
    buffer: the nearest surface, for example of the same points.
    tolerance: how far behind it a point may lie, as a share of its depth.

  Returns:
    [N] int32 row * w + column; h * w for points that are hidden, outside or
    where the buffer is empty.
  """
  chex.assert_rank([xy, z, valid], [2, 1, 1])
  chex.assert_type([xy, z, valid], [float, float, bool])
  height, width = buffer.depth.shape
  column = jnp.floor(xy[:, 0] + 0.5)
  row = jnp.floor(xy[:, 1] + 0.5)
  inside = (column >= 0) & (column < width) & (row >= 0) & (row < height)
  flat = jnp.where(inside, row, 0).astype(jnp.int32) * width
  flat += jnp.where(inside, column, 0).astype(jnp.int32)
  surface = buffer.depth.reshape(-1)[flat]
  front = inside & valid & buffer.filled.reshape(-1)[flat]
  front &= z <= surface * (1 + tolerance)
  return jnp.where(front, flat, height * width)


def mean_of_cells(
  cells: Array, values: Array, *, num_cells: int
) -> tuple[Array, Array]:
  """Mean of the values that share a cell.

  Args:
    cells: [N] int32; others than [0, num_cells) are ignored.
    values: [C, N] floating, one row for each channel.
    num_cells: static.

  Returns:
    ([num_cells, C] means, 0 in empty cells; [num_cells] int32 counts).
  """
  chex.assert_rank([cells, values], [1, 2])
  chex.assert_type([cells, values], [int, float])
  chex.assert_shape(values, (None, cells.shape[0]))
  inside = (cells >= 0) & (cells < num_cells)
  place = jnp.where(inside, cells, num_cells)
  count = jnp.zeros(num_cells + 1, jnp.int32).at[place].add(1)[:-1]
  zero = jnp.zeros(num_cells + 1, values.dtype)
  totals = [zero.at[place].add(channel)[:-1] for channel in values]
  divisor = jnp.maximum(count, 1).astype(values.dtype)
  return jnp.stack(totals, axis=-1) / divisor[:, None], count


def _nearest_in_window(depth: Array, owner: Array, radius: int) -> Array:
  """Owner of the smallest (depth, owner) within `radius` of each pixel."""
  height = depth.shape[0] - 2 * radius
  width = depth.shape[1] - 2 * radius
  best_depth = jnp.full((height, width), jnp.inf, depth.dtype)
  best_owner = jnp.full((height, width), jnp.iinfo(jnp.int32).max, jnp.int32)
  for dy in range(2 * radius + 1):
    for dx in range(2 * radius + 1):
      d = depth[dy : dy + height, dx : dx + width]
      o = owner[dy : dy + height, dx : dx + width]
      closer = (d < best_depth) | ((d == best_depth) & (o < best_owner))
      best_depth = jnp.where(closer, d, best_depth)
      best_owner = jnp.where(closer, o, best_owner)
  return best_owner
