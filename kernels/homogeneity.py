# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Homogeneity diagnostics of a moving object's image, none of them scored.

For a rigid object on a straight line Z_t / Z_0 = h_0 / h_t =
dist(p_0, VP) / dist(p_t, VP): its height, its depth and its distance to the
vanishing point of its path change together. Series have a padded length T and
a traced number of frames; frame 0 and padding are 0. Lower is better.
"""

from __future__ import annotations

import chex
import jax.numpy as jnp
from jax import Array

from kernels import numerics


def vanishing_log_residual(
  height: Array,
  xy: Array,
  vanishing_xy: Array,
  num_frames: Array,
  *,
  num_reference: int,
  floor: float,
  transverse_threshold: float,
) -> Array:
  """Log form: |(ln h_t - med ln h) - (ln d_t - med ln d)|.

  d_t is the distance to the vanishing point, med the median over the first
  `num_reference` frames. Where d changes by less than
  `transverse_threshold` of its mean (motion across the view) the vanishing
  point says nothing, and the residual is |h_t - h_0| / h_0.

  Args:
    height: [T] pixel heights.
    xy: [T, 2] image position of the object.
    vanishing_xy: [2] pixels.
    num_frames: int32 scalar.
    num_reference: frames of the reference window.
    floor: lower bound of heights and distances, pixels.
    transverse_threshold: see above.

  Returns:
    [T] residuals.

  Source: PDI-Bench, H-VP homogeneity (specification section 9.1).
  """
  frame, used = _frames(height, xy, num_frames)
  distance = jnp.maximum(numerics.safe_norm(xy - vanishing_xy, axis=-1), floor)
  spread = jnp.max(jnp.where(used, distance, distance[0])) - jnp.min(
    jnp.where(used, distance, distance[0])
  )
  mean = numerics.masked_mean(distance, used).value
  transverse = spread / (mean + floor) < transverse_threshold
  start = jnp.maximum(height[0], floor)
  sideways = jnp.abs(height - start) / start
  reference = used & (frame < num_reference)
  log_h = jnp.log(jnp.maximum(height, floor))
  log_d = jnp.log(distance)
  median_h = numerics.masked_median(log_h, reference).value
  median_d = numerics.masked_median(log_d, reference).value
  along = jnp.abs((log_h - median_h) - (log_d - median_d))
  residual = jnp.where(transverse, sideways, along)
  return jnp.where(used & (frame >= 1), residual, 0)


def vanishing_ratio_residual(
  height: Array,
  xy: Array,
  vanishing_xy: Array,
  num_frames: Array,
  *,
  num_reference: int,
  floor: float,
) -> Array:
  """Ratio form: |h_ref / max(h_t, floor) - d_ref / d_t|; 0 where d_t < floor.

  The references are means over the first `num_reference` frames, at least
  `floor` pixels. Arguments, shapes and source as for the log form.
  """
  frame, used = _frames(height, xy, num_frames)
  distance = numerics.safe_norm(xy - vanishing_xy, axis=-1)
  reference = used & (frame < num_reference)
  height_0 = jnp.maximum(numerics.masked_mean(height, reference).value, floor)
  far_0 = jnp.maximum(numerics.masked_mean(distance, reference).value, floor)
  near = distance < floor
  ratio = far_0 / jnp.where(near, 1, distance)
  residual = jnp.abs(height_0 / jnp.maximum(height, floor) - ratio)
  return jnp.where(used & (frame >= 1) & ~near, residual, 0)


def offset_ratio_residual(
  height: Array, offset_x: Array, num_frames: Array, *, floor: float
) -> Array:
  """h / x invariant: |h_0 / h_t - x_0 / x_t|, motion along the optical axis.

  Args:
    height: [T] pixel heights, floored at `floor`.
    offset_x: [T] column minus principal point, pixels.
    num_frames: int32 scalar.
    floor: pixels; frames with |x_0| or |x_t| not above it give 0.

  Returns:
    [T] residuals.

  Source: PDI-Bench release (specification section 9.4).
  """
  chex.assert_equal_shape([height, offset_x])
  frame = jnp.arange(height.shape[0])
  size = jnp.maximum(height, floor)
  defined = (jnp.abs(offset_x[0]) > floor) & (jnp.abs(offset_x) > floor)
  ratio = offset_x[0] / jnp.where(defined, offset_x, 1)
  residual = jnp.abs(size[0] / size - ratio)
  counted = (frame >= 1) & (frame < num_frames)
  return jnp.where(counted & defined, residual, 0)


def inverse_depth_residual(
  height: Array, depth: Array, num_frames: Array
) -> Array:
  """|h_t Z_t / (h_0 Z_0) - 1| for every frame; 0 where h_0 Z_0 is 0.

  Args:
    height: [T] pixel heights.
    depth: [T] depths, any unit.
    num_frames: int32 scalar.

  Returns:
    [T] residuals.

  Source: PDI-Bench release (specification section 9.5).
  """
  chex.assert_rank([height, depth], 1)
  chex.assert_equal_shape([height, depth])
  size = height * depth
  start = jnp.broadcast_to(size[0], size.shape)
  residual = jnp.abs(numerics.safe_divide(size, start, fill=1.0) - 1)
  return jnp.where(jnp.arange(size.shape[0]) < num_frames, residual, 0)


def height_step(height: Array, depth: Array, depth_step: Array) -> Array:
  """Exact change of a pixel height for a depth step: -h dZ / (Z + dZ).

  The square-inverse law -f H dZ / (Z_1 Z_2) with f H = h Z_1; for small steps
  dh/dZ = -f H / Z^2.

  Args:
    height: pixel height at `depth`.
    depth: depth before the step.
    depth_step: signed step; depth + depth_step must not be 0.

  Returns:
    Change of the height, pixels.

  Source: PDI-Bench (specification section 9.5).
  """
  chex.assert_type([height, depth, depth_step], float)
  return -height * depth_step / (depth + depth_step)


def direction_coupling(
  foreground_xy: Array,
  background_xy: Array,
  centre_xy: Array,
  *,
  min_offset: float,
) -> Array:
  """(1 - cos) / 2 of two vanishing points' directions from the image centre.

  Args:
    foreground_xy: [2] vanishing point of the object's tracks, pixels.
    background_xy: [2] vanishing point of the scene, pixels.
    centre_xy: [2] image centre (W/2, H/2); the image is [0, W] x [0, H].
    min_offset: points nearer to the centre than this have no direction.

  Returns:
    Scalar in [0, 1]; 0 where a direction is undefined or the foreground point
    lies outside the image.

  Source: PDI-Bench, angular coupling (specification section 9.3).
  """
  chex.assert_shape([foreground_xy, background_xy, centre_xy], (2,))
  chex.assert_type([foreground_xy, background_xy, centre_xy], float)
  offsets = jnp.stack([foreground_xy, background_xy]) - centre_xy
  norms = numerics.safe_norm(offsets, axis=-1)
  inside = jnp.all((foreground_xy >= 0) & (foreground_xy <= 2 * centre_xy))
  defined = inside & jnp.all(norms >= min_offset) & jnp.all(norms > 0)
  unit = offsets / jnp.where(defined, norms, 1)[:, None]
  # |u - v|^2 / 4 equals (1 - cos) / 2 without its cancellation.
  coupling = jnp.sum(jnp.square(unit[0] - unit[1])) / 4
  return jnp.where(defined, coupling, 0)


def _frames(height: Array, xy: Array, num_frames: Array) -> tuple[Array, Array]:
  chex.assert_rank([height, xy], [1, 2])
  chex.assert_type([height, xy], float)
  chex.assert_shape(xy, (height.shape[0], 2))
  frame = jnp.arange(height.shape[0])
  return frame, frame < num_frames
