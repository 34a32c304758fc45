# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Path of an object's centroid, its kinematics and the inertia residual.

Conventions: positions in world units, time in seconds. Series have a padded
length T and a traced number of frames; entries behind it are ignored and come
back as 0. Lower residuals are smoother; uniform motion along a line gives 0.
"""

from __future__ import annotations

from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
from jax import Array

from kernels import numerics


class Kinematics(NamedTuple):
  """Inertia residual of a path.

  Attributes:
    error: [T] half of the two penalties' sum at velocity pair (v_t, v_(t+1)).
    magnitude: [T] acceleration penalty in [0, 2).
    direction: [T] turning penalty in [0, 2].
    reference_speed: scalar v_ref, world units per second.
    rms: root mean square of `error` over the velocity pairs.
    num_pairs: int32, number of velocity pairs, max(0, num_frames - 2); the
      first that many entries of the series are meaningful.
  """

  error: Array
  magnitude: Array
  direction: Array
  reference_speed: Array
  rms: Array
  num_pairs: Array


def coordinate_median(points: Array, valid: Array) -> tuple[Array, Array]:
  """Median of each coordinate over the valid points.

  Args:
    points: [N, D].
    valid: [N] bool.

  Returns:
    ([D] medians, int32 count). Not invariant under rotations.
  """
  chex.assert_rank([points, valid], [2, 1])
  medians = [
    numerics.masked_median(points[:, axis], valid).value
    for axis in range(points.shape[1])
  ]
  return jnp.stack(medians), jnp.sum(valid, dtype=jnp.int32)


def carry_forward(values: Array, observed: Array) -> Array:
  """Replaces unobserved frames by the last observed one, at first by zero.

  Args:
    values: [T, D].
    observed: [T] bool.

  Returns:
    [T, D].
  """
  chex.assert_rank([values, observed], [2, 1])
  frame = jnp.arange(values.shape[0], dtype=jnp.int32)
  last = jax.lax.cummax(jnp.where(observed, frame, -1))
  return jnp.where((last >= 0)[:, None], values[jnp.maximum(last, 0)], 0)


def median_filter3(path: Array, num_frames: Array) -> Array:
  """Median of three over time, per coordinate, with replicated ends.

  Args:
    path: [T, D].
    num_frames: int32 scalar; entries behind it are padding.

  Returns:
    [T, D]; padding is undefined. A NaN spreads to its neighbours.
  """
  chex.assert_rank(path, 2)
  frame = jnp.arange(path.shape[0], dtype=jnp.int32)
  end = jnp.maximum(num_frames - 1, 0)
  before = path[jnp.maximum(frame - 1, 0)]
  after = path[jnp.minimum(frame + 1, end)]
  low = jnp.minimum(before, path)
  high = jnp.maximum(before, path)
  return jnp.maximum(low, jnp.minimum(high, after))


def kinematic_residual(
  path: Array,
  num_frames: Array,
  frame_rate: Array,
  *,
  speed_floor: float,
  acceleration_weight: float,
  tanh_scale: float,
  motion_threshold: float,
  norm_epsilon: float,
) -> Kinematics:
  """Acceleration and turning penalties of a path.

  v_t = (C_(t+1) - C_t) rate, a_t = (v_(t+1) - v_t) rate,
  v_ref = max(median |v|, acceleration_weight median |a|, speed_floor),
  A_t = 2 tanh(|a_t| / v_ref / tanh_scale),
  F_t = 1 - cos(v_t, v_(t+1)) where both speeds exceed motion_threshold v_ref,
  e_t = (A_t + F_t) / 2.

  Args:
    path: [T, 3] positions.
    num_frames: int32 scalar, frames in use.
    frame_rate: scalar, frames per second.
    speed_floor: smallest v_ref.
    acceleration_weight: weight of the median acceleration in v_ref; the
      comparison of m/s^2 with m/s is the published formula.
    tanh_scale: ratio at which the penalty saturates.
    motion_threshold: fraction of v_ref that counts as moving.
    norm_epsilon: added to speeds in the cosine.

  Returns:
    `Kinematics`; `num_pairs` 0 (fewer than three frames) makes it void.
    NaN positions propagate into everything.

  Source: PDI-Bench, trajectory residual (specification section 4).
  """
  chex.assert_rank(path, 2)
  chex.assert_type(path, float)
  frames = path.shape[0]
  index = jnp.arange(frames)
  velocity = _forward_difference(path) * frame_rate
  acceleration = _forward_difference(velocity) * frame_rate
  in_pair = index < num_frames - 2
  in_step = index < num_frames - 1
  speed = numerics.safe_norm(velocity, axis=-1)
  change = numerics.safe_norm(acceleration, axis=-1)
  reference = jnp.maximum(
    jnp.maximum(
      numerics.masked_median(speed, in_step).value,
      acceleration_weight * numerics.masked_median(change, in_pair).value,
    ),
    speed_floor,
  )
  magnitude = 2 * jnp.tanh(change / reference / tanh_scale)
  next_velocity = jnp.roll(velocity, -1, axis=0)
  next_speed = jnp.roll(speed, -1)
  moving = (speed > motion_threshold * reference) & (
    next_speed > motion_threshold * reference
  )
  unit = velocity / (speed + norm_epsilon)[:, None]
  next_unit = next_velocity / (next_speed + norm_epsilon)[:, None]
  cosine = jnp.clip(jnp.sum(unit * next_unit, axis=-1), -1, 1)
  direction = jnp.where(moving, 1 - cosine, 0)
  magnitude = jnp.where(in_pair, magnitude, 0)
  direction = jnp.where(in_pair, direction, 0)
  error = 0.5 * magnitude + 0.5 * direction
  rms = numerics.masked_rms(error, in_pair)
  return Kinematics(
    error, magnitude, direction, reference, rms.value, rms.count
  )


def _forward_difference(series: Array) -> Array:
  """x_(t+1) - x_t; the last entry is 0."""
  return jnp.diff(series, axis=0, append=series[-1:])
