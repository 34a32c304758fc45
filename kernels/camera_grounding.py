# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Does an estimated camera motion execute the instructed one?

Conventions: motions are those of `kernels.relative_motion`; components are
signed numbers in metres or degrees; scores lie in [0, 1], higher is better.
`valid` false means that the quantity has no meaning for this step; the value
beside it is then 0 and must not enter a mean.
"""

from __future__ import annotations

from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp

from kernels import numerics, relative_motion

_HIGHEST = jax.lax.Precision.HIGHEST


class Calibration(NamedTuple):
  """Metric scale of a transition.

  Attributes:
    scale: factor from estimated to metric translation; 1 where not valid.
    valid: whether both norms exceed the limit and the ratio is finite.
  """

  scale: jax.Array
  valid: jax.Array


class StepScore(NamedTuple):
  """Score of one instructed component.

  Attributes:
    direction: 1 if the estimate has the expected sign, else 0.
    magnitude: agreement of the magnitude, in (0, 1].
    score: `direction * (1 + magnitude) / 2`.
    valid: false where the expected component is itself in the dead zone.
  """

  direction: jax.Array
  magnitude: jax.Array
  score: jax.Array
  valid: jax.Array


class PoseErrors(NamedTuple):
  """Full-pose and off-axis errors of one step.

  Attributes:
    translation_error: `|| t_hat - t* ||`.
    off_axis_error: [3], the same without component k, for each k.
    direction_deg: angle between the translations.
    direction_cosine: its cosine.
    direction_valid: both translations long enough for a direction.
    rotation_deg: geodesic angle between the rotations.
    yaw_error_deg: `|yaw_hat - yaw*|`, without wrap-around.
    pitch_error_deg: `|pitch_hat - pitch*|`.
  """

  translation_error: jax.Array
  off_axis_error: jax.Array
  direction_deg: jax.Array
  direction_cosine: jax.Array
  direction_valid: jax.Array
  rotation_deg: jax.Array
  yaw_error_deg: jax.Array
  pitch_error_deg: jax.Array


def scale_calibration(
  distance_expected: jax.Array, distance_physical: jax.Array, *, min_norm: float
) -> Calibration:
  """Scale that makes the estimate of the physical pair metric.

  `alpha = ||t*|| / ||t_hat of the physical pair||` when both exceed `min_norm`.

  Args:
    distance_expected: scalar, metric norm of the true translation.
    distance_physical: scalar, norm estimated on the physical pair.
    min_norm: both norms must exceed it.

  Returns:
    The calibration.

  Source: EgoGenEval specification 3.3.
  """
  chex.assert_rank([distance_expected, distance_physical], 0)
  chex.assert_type([distance_expected, distance_physical], float)
  long_enough = (distance_expected > min_norm) & (distance_physical > min_norm)
  ratio = numerics.safe_divide(
    distance_expected, jnp.where(long_enough, distance_physical, 1.0), fill=1.0
  )
  valid = long_enough & jnp.isfinite(ratio)
  return Calibration(jnp.where(valid, ratio, 1.0), valid)


def step_score(
  expected: jax.Array,
  estimate: jax.Array,
  *,
  dead_zone: float | jax.Array,
  floor: float | jax.Array,
) -> StepScore:
  """Direction-gated magnitude score of one component.

  `q = 1 / (1 + |a - a*| / max(|a*|, floor))`, `g = d (1 + q) / 2`, with `d` the
  equality of signs; a value within the dead zone has sign 0. An estimate of
  sign 0 is wrong, an expected value of sign 0 leaves the step undefined.

  Args:
    expected: scalar, true component, metres or degrees.
    estimate: scalar, estimated component, same unit.
    dead_zone: values with |v| <= dead_zone count as zero.
    floor: smallest denominator of the relative error.

  Returns:
    The score. A non-finite input gives `valid` false.

  Source: EgoGenEval specification 3.4.
  """
  chex.assert_rank([expected, estimate], 0)
  chex.assert_type([expected, estimate], float)
  finite = jnp.isfinite(expected) & jnp.isfinite(estimate)
  expected = jnp.where(finite, expected, 0.0)
  estimate = jnp.where(finite, estimate, 0.0)
  direction = _sign(expected, dead_zone) == _sign(estimate, dead_zone)
  valid = finite & (jnp.abs(expected) > dead_zone)
  sign, magnitude, score = recorded_step_score(
    expected,
    jnp.abs(estimate - expected),
    direction.astype(expected.dtype),
    floor=floor,
  )
  zero = jnp.zeros_like(expected)
  return StepScore(
    jnp.where(valid, sign, zero),
    jnp.where(valid, magnitude, zero),
    jnp.where(valid, score, zero),
    valid,
  )


def recorded_step_score(
  expected: jax.Array,
  absolute_error: jax.Array,
  direction: jax.Array,
  *,
  floor: float | jax.Array,
) -> tuple[jax.Array, jax.Array, jax.Array]:
  """The score from a stored direction flag and absolute error.

  Args:
    expected: scalar, true component.
    absolute_error: scalar, |estimate - expected|.
    direction: scalar in [0, 1].
    floor: smallest denominator of the relative error.

  Returns:
    (direction, magnitude, score), scalars.

  Source: EgoGenEval specification 3.4, 3.5.
  """
  chex.assert_rank([expected, absolute_error, direction], 0)
  chex.assert_type([expected, absolute_error, direction], float)
  relative = absolute_error / jnp.maximum(jnp.abs(expected), floor)
  magnitude = 1.0 / (1.0 + relative)
  return direction, magnitude, direction * (1.0 + magnitude) / 2.0


def pose_errors(
  expected: relative_motion.RelativeMotion,
  estimate: relative_motion.RelativeMotion,
  *,
  scale: jax.Array,
  min_norm: float,
  angle_from_trace: bool,
) -> PoseErrors:
  """Errors of the whole motion, on and off the instructed axis.

  Args:
    expected: true motion, metres.
    estimate: estimated motion before calibration.
    scale: scalar that makes the estimated translation metric.
    min_norm: below it a translation has no direction.
    angle_from_trace: take `rotation_deg` from the trace alone (released code).

  Returns:
    The errors. With `direction_valid` false the direction fields are 0.

  Source: EgoGenEval specification 3.7, 3.8.
  """
  chex.assert_equal_shape([expected.rotation, estimate.rotation])
  error = scale * estimate.translation - expected.translation
  kept = ~jnp.eye(3, dtype=bool)
  off_axis = numerics.safe_norm(
    jnp.where(kept, error[None, :], jnp.zeros_like(error)), axis=1
  )
  directed = (expected.distance >= min_norm) & (estimate.distance >= min_norm)
  forward = jnp.zeros_like(error).at[2].set(1.0)
  a = jnp.where(directed, expected.translation, forward)
  b = jnp.where(directed, estimate.translation, forward)
  dot = jnp.vdot(a, b, precision=_HIGHEST)
  cosine = numerics.safe_divide(
    dot,
    numerics.safe_norm(a, axis=0) * numerics.safe_norm(b, axis=0),
    fill=0.0,
  )
  difference = jnp.matmul(
    expected.rotation.T, estimate.rotation, precision=_HIGHEST
  )
  angle_deg = jnp.degrees(numerics.angle_between(a, b))
  return PoseErrors(
    translation_error=numerics.safe_norm(error, axis=0),
    off_axis_error=off_axis,
    direction_deg=jnp.where(directed, angle_deg, 0.0),
    direction_cosine=jnp.where(directed, jnp.clip(cosine, -1.0, 1.0), 0.0),
    direction_valid=directed,
    rotation_deg=relative_motion.rotation_angle_deg(
      difference, from_trace=angle_from_trace
    ),
    yaw_error_deg=jnp.abs(estimate.yaw_deg - expected.yaw_deg),
    pitch_error_deg=jnp.abs(estimate.pitch_deg - expected.pitch_deg),
  )


def _sign(value: jax.Array, dead_zone: float | jax.Array) -> jax.Array:
  return jnp.where(jnp.abs(value) <= dead_zone, 0.0, jnp.sign(value))
