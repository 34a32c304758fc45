# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Scale-depth residual: apparent size times depth stays constant.

An object of fixed size H seen by a camera of focal length f has the pixel
height h = f H / Z, so ln h + ln Z is constant over a clip. A zoom reads as
distortion, since f does not enter. Lower is better; 0 is perfect.
"""

from __future__ import annotations

from typing import NamedTuple

import chex
import jax.numpy as jnp
from jax import Array

from kernels import numerics


class ScaleDepth(NamedTuple):
  """Scale-depth residual of a clip.

  Attributes:
    error: [T] |s_t - s_ref|; 0 for frames that do not count.
    reference: scalar s_ref.
    rms: root mean square of `error` over the counted frames.
    num_frames: int32, frames that count (frame 0 never does).
    num_reference: int32, frames behind `reference`; 0 makes `rms` void.
  """

  error: Array
  reference: Array
  rms: Array
  num_frames: Array
  num_reference: Array


def scale_depth_residual(
  height: Array,
  depth: Array,
  valid: Array,
  *,
  num_reference: int,
  floor: float,
) -> ScaleDepth:
  """|s_t - s_ref| with s_t = ln max(h_t, floor) + ln max(Z_t, floor).

  s_ref is the median of s over the valid ones among the first
  `num_reference` frames. Frame 0 defines the reference but is not scored.

  Args:
    height: [T] object heights, pixels.
    depth: [T] object depths, any unit.
    valid: [T] bool; frames that may define the reference and be scored.
    num_reference: length of the reference window, frames.
    floor: lower bound of height and depth before the logarithm.

  Returns:
    `ScaleDepth`. A NaN height or depth of a valid frame propagates.

  Source: PDI-Bench, scale residual (specification section 3).
  """
  chex.assert_rank([height, depth, valid], 1)
  chex.assert_type([height, depth, valid], [float, float, bool])
  chex.assert_equal_shape([height, depth, valid])
  frame = jnp.arange(height.shape[0])
  size = jnp.log(jnp.maximum(height, floor)) + jnp.log(
    jnp.maximum(depth, floor)
  )
  reference = numerics.masked_median(size, valid & (frame < num_reference))
  scored = valid & (frame >= 1)
  error = jnp.where(scored, jnp.abs(size - reference.value), 0)
  rms = numerics.masked_rms(error, scored)
  return ScaleDepth(
    error, reference.value, rms.value, rms.count, reference.count
  )


def scale_jump(median_z: Array, num_frames: Array, *, epsilon: float) -> Array:
  """Largest second difference of a depth series scaled to [0, 1].

  n = (m - min m) / (max m - min m + epsilon);
  J = max_t |n_(t+1) - 2 n_t + n_(t-1)|.

  Args:
    median_z: [T] depth of the object per frame.
    num_frames: int32 scalar; only the first `num_frames` entries count.
    epsilon: added to the range.

  Returns:
    Scalar J in [0, 2]; 0 for fewer than three frames; NaN propagates.

  Source: PDI-Bench release, scale-jump check (specification section 7.5).
  """
  chex.assert_rank(median_z, 1)
  chex.assert_type(median_z, float)
  if median_z.shape[0] < 3:
    return jnp.zeros((), median_z.dtype)
  used = jnp.arange(median_z.shape[0]) < num_frames
  # Padding repeats the first frame, so that it changes neither bound.
  series = jnp.where(used, median_z, median_z[0])
  low, high = jnp.min(series), jnp.max(series)
  scaled = (series - low) / (high - low + epsilon)
  bend = jnp.abs(scaled[2:] - 2 * scaled[1:-1] + scaled[:-2])
  return jnp.max(jnp.where(used[2:], bend, 0))
