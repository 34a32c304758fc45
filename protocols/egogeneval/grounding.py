# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Camera Motion Grounding of a step from poses: expected, physical, evaluated.

Poses are 4x4. `expected` comes from the stored camera-to-world poses of the
two physical frames; `physical` and `evaluated` are estimated target poses in
the frame of the source camera (unit of the estimator), for the physical pair
and for the pair that the generator made. Source: EgoGenEval specification 3.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from kernels import camera_grounding, relative_motion
from perception.errors import InputError
from protocols.egogeneval import actions, constants


@dataclasses.dataclass(frozen=True)
class PosePair:
  """Poses of one step.

  Attributes:
    source_c2w: stored pose of the physical source frame.
    target_c2w: stored pose of the physical target frame.
    physical: estimated relative pose of the physical pair.
    evaluated: estimated relative pose of the evaluated pair.
    component: the instructed component.
  """

  source_c2w: NDArray[np.float64]
  target_c2w: NDArray[np.float64]
  physical: NDArray[np.float64]
  evaluated: NDArray[np.float64]
  component: actions.Component


@dataclasses.dataclass(frozen=True)
class GroundedStep:
  """Score and diagnostics of one step.

  Attributes:
    score: g; None where the step is undefined.
    reason: why it is undefined; empty otherwise.
    scale: alpha; None where undefined.
    fields: diagnostics by their published names; None where undefined.
  """

  score: float | None
  reason: str
  scale: float | None
  fields: dict[str, Any]


class _Step(NamedTuple):
  expected: relative_motion.RelativeMotion
  estimate: relative_motion.RelativeMotion
  calibration: camera_grounding.Calibration
  errors: camera_grounding.PoseErrors
  expected_value: jax.Array
  estimate_value: jax.Array
  score: camera_grounding.StepScore


def relative_from_extrinsics(
  world_to_camera: NDArray[np.floating],
) -> NDArray[np.float64]:
  """Relative pose of a pair from two world-to-camera matrices.

  Args:
    world_to_camera: [2, 3, 4] or [2, 4, 4], source first, as a pose backend
      returns them.

  Returns:
    [4, 4] target camera in the source camera's frame, float64.

  Source: EgoGenEval specification 2.1.
  """
  given = np.asarray(world_to_camera, np.float64)
  padded = np.tile(np.eye(4), (2, 1, 1))
  padded[:, : given.shape[1]] = given
  source, target = np.linalg.inv(padded)
  relative = np.eye(4)
  # The transpose, not the inverse, as in 2.2: backends return rotations that
  # are orthonormal to about 1e-4, where the two differ.
  relative[:3, :3] = source[:3, :3].T @ target[:3, :3]
  relative[:3, 3] = source[:3, :3].T @ (target[:3, 3] - source[:3, 3])
  return relative


def ground_steps(
  pairs: Sequence[PosePair],
  limits: constants.Constants,
  *,
  dtype: type[np.floating] = np.float64,
) -> list[GroundedStep]:
  """Scores steps from their poses.

  Args:
    pairs: poses of the steps.
    limits: constants of the variant.
    dtype: precision of the arithmetic.

  Returns:
    One result per pair. A step is undefined where the expected component is
    in the dead zone and, in the paper variant, where a translation has no
    metric scale.
  """
  if not pairs:
    return []
  columns: list[Any] = [
    np.stack([np.asarray(getattr(pair, name), dtype) for pair in pairs])
    for name in ("source_c2w", "target_c2w", "physical", "evaluated")
  ]
  for pair, *matrices in zip(pairs, *columns, strict=True):
    if not all(np.all(np.isfinite(matrix)) for matrix in matrices):
      raise InputError(
        "pose pair",
        pair.component.name,
        found="a NaN or infinite pose",
        expected="finite 4x4 poses",
        hint="A pair that cannot be localised is a status, not a pose.",
      )
  columns += [
    np.array([pair.component.index for pair in pairs], np.int32),
    np.array([limits.dead_zone(pair.component.unit) for pair in pairs], dtype),
    np.array([limits.floor(pair.component.unit) for pair in pairs], dtype),
  ]
  with jax.enable_x64(dtype is np.float64):
    steps = jax.tree.map(
      np.asarray,
      _batch(
        *columns,
        min_norm=limits.min_norm,
        direction_min_norm=limits.direction_min_norm,
        angle_from_trace=limits.angle_from_trace,
      ),
    )
  return [
    _grounded(jax.tree.map(lambda v, i=i: v[i], steps), pair.component, limits)
    for i, pair in enumerate(pairs)
  ]


@functools.partial(
  jax.jit,
  static_argnames=("min_norm", "direction_min_norm", "angle_from_trace"),
)
def _batch(
  *columns: jax.Array,
  min_norm: float,
  direction_min_norm: float,
  angle_from_trace: bool,
) -> _Step:
  motion = functools.partial(
    relative_motion.relative_motion, angle_from_trace=angle_from_trace
  )

  def one(
    source: jax.Array,
    target: jax.Array,
    physical: jax.Array,
    evaluated: jax.Array,
    index: jax.Array,
    dead_zone: jax.Array,
    floor: jax.Array,
  ) -> _Step:
    origin = jnp.eye(4, dtype=source.dtype)
    expected = motion(source, target)
    estimate = motion(origin, evaluated)
    calibration = camera_grounding.scale_calibration(
      expected.distance, motion(origin, physical).distance, min_norm=min_norm
    )
    errors = camera_grounding.pose_errors(
      expected,
      estimate,
      scale=calibration.scale,
      min_norm=direction_min_norm,
      angle_from_trace=angle_from_trace,
    )
    expected_value = _components(expected, jnp.ones_like(floor))[index]
    estimate_value = _components(estimate, calibration.scale)[index]
    score = camera_grounding.step_score(
      expected_value, estimate_value, dead_zone=dead_zone, floor=floor
    )
    return _Step(
      expected,
      estimate,
      calibration,
      errors,
      expected_value,
      estimate_value,
      score,
    )

  return jax.vmap(one)(*columns)


def _components(
  motion: relative_motion.RelativeMotion, scale: jax.Array
) -> jax.Array:
  angles = jnp.stack([motion.yaw_deg, motion.pitch_deg])
  return jnp.concatenate([motion.translation * scale, angles])


def _grounded(
  step: _Step, component: actions.Component, limits: constants.Constants
) -> GroundedStep:
  scaled = bool(step.calibration.valid)
  scale = float(step.calibration.scale) if scaled else None
  directed = bool(step.errors.direction_valid)
  expected, estimate = float(step.expected_value), float(step.estimate_value)
  zone = limits.dead_zone(component.unit)
  reason = ""
  if not step.score.valid:
    reason = f"expected {component.name} {expected:g} has no sign"
  elif (
    component.is_translation
    and not scaled
    and not limits.uncalibrated_without_scale
  ):
    # Spec 13 item 5: the released code scores the raw component instead.
    reason = "no metric scale: a translation norm is zero"

  def metric(value: Any) -> float | None:
    return None if scale is None else scale * float(value)

  def if_directed(value: Any) -> float | None:
    return float(value) if directed else None

  fields: dict[str, Any] = {
    "Pose_RotErrDeg": float(step.errors.rotation_deg),
    "Pose_TransDirErrDeg": if_directed(step.errors.direction_deg),
    "Pose_TransDirCos": if_directed(step.errors.direction_cosine),
    "Pose_TransDirCorrect": if_directed(step.errors.direction_cosine > 0),
    "Pose_TransNormPredRaw": float(step.estimate.distance),
    "Pose_TransNormPredMetric": metric(step.estimate.distance),
    "Pose_TransNormExpected": float(step.expected.distance),
    "Pose_TransNormErrM": None
    if scale is None
    else abs(
      scale * float(step.estimate.distance) - float(step.expected.distance)
    ),
  }
  for axis, name in enumerate(("Tx", "Ty", "Tz")):
    fields[f"Pose_{name}PredMetric"] = metric(step.estimate.translation[axis])
    fields[f"Pose_{name}Expected"] = float(step.expected.translation[axis])
  fields |= {
    "Pose_YawPredDeg": float(step.estimate.yaw_deg),
    "Pose_PitchPredDeg": float(step.estimate.pitch_deg),
    "Pose_YawExpectedDeg": float(step.expected.yaw_deg),
    "Pose_PitchExpectedDeg": float(step.expected.pitch_deg),
    "Pose_ActionComponent": component.name,
    "Pose_ActionPred": estimate,
    "Pose_ActionExpected": expected,
    "Pose_ActionSignedErr": estimate - expected,
    "Pose_ActionAbsErr": abs(estimate - expected),
    "Pose_ActionSignCorrect": float(step.score.direction)
    if step.score.valid
    else None,
    "Pose_ActionPredDirection": _direction(estimate, zone),
    "Pose_ActionExpectedDirection": _direction(expected, zone),
    "Pose_ActionUnit": component.unit,
  }
  score = None if reason else float(step.score.score)
  return GroundedStep(score, reason, scale, fields)


def _direction(value: float, dead_zone: float) -> str:
  if abs(value) <= dead_zone:
    return "zero"
  return "positive" if value > 0 else "negative"
