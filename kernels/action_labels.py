# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Movement and look labels of a camera path, step by step.

Conventions: camera-to-world poses with OpenCV axes, so forward is +z, right is
+x and looking up is a positive rotation about x. Step k goes from row k to row
k + 1 and counts where both rows are valid; whether the two rows are the wanted
time apart is the caller's knowledge. Move labels are W A S D (forward, left,
backward, right), look labels I J K L (up, left, down, right). Several may be
set at once; vertical motion and roll have none.
"""

from __future__ import annotations

from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
from jax import Array

from kernels import camera, numerics


class LabelAgreement(NamedTuple):
  """Agreement of two label sequences.

  Attributes:
    scores: [M] 100 where the two label sets are equal, else 0.
    active: [M] bool, accepted steps with a requested label.
    mean: `Stat` of the scores over the active steps.
  """

  scores: Array
  active: Array
  mean: numerics.Stat


def move_labels(
  poses_c2w: Array,
  valid: Array,
  *,
  active_fraction: float,
  threshold: float,
  direction_floor: float,
) -> Array:
  """W A S D of every step.

  Args:
    poses_c2w: [N, 4, 4].
    valid: [N] bool.
    active_fraction: a step needs a speed strictly above this share of the
      mean speed of all valid steps of this path.
    threshold: a component of the unit direction, in the axes of the step's
      first camera, sets its label strictly above it.
    direction_floor: floor of the speed in the division.

  Returns:
    [N-1, 4] bool.

  Source: Orbia specification, section 3.3.
  """
  _check(poses_c2w, valid)
  delta = poses_c2w[1:, :3, 3] - poses_c2w[:-1, :3, 3]
  speed = numerics.safe_norm(delta, axis=-1)
  stepping = valid[1:] & valid[:-1]
  mean_speed = numerics.masked_mean(speed, stepping).value
  active = stepping & (speed > active_fraction * mean_speed)
  local = jnp.einsum(
    "nji,nj->ni",
    poses_c2w[:-1, :3, :3],
    delta,
    precision=jax.lax.Precision.HIGHEST,
  )
  direction = local / jnp.maximum(speed, direction_floor)[:, None]
  right, forward = direction[:, 0], direction[:, 2]
  labels = jnp.stack(
    [
      forward > threshold,
      right < -threshold,
      forward < -threshold,
      right > threshold,
    ],
    axis=-1,
  )
  return labels & active[:, None]


def look_labels(
  poses_c2w: Array, valid: Array, *, threshold_deg: float
) -> Array:
  """I J K L of every step.

  Args:
    poses_c2w: [N, 4, 4].
    valid: [N] bool.
    threshold_deg: a component of the rotation vector of R_k^T R_(k+1) sets its
      label strictly above it.

  Returns:
    [N-1, 4] bool.

  Source: Orbia specification, section 3.3.
  """
  _check(poses_c2w, valid)
  turn = jax.vmap(camera.relative_pose)(poses_c2w[:-1], poses_c2w[1:])
  vector = jnp.rad2deg(jax.vmap(rotation_vector)(turn[:, :3, :3]))
  up, right = vector[:, 0], vector[:, 1]
  labels = jnp.stack(
    [
      up > threshold_deg,
      right < -threshold_deg,
      up < -threshold_deg,
      right > threshold_deg,
    ],
    axis=-1,
  )
  return labels & (valid[1:] & valid[:-1])[:, None]


def label_agreement(
  requested: Array, recovered: Array, accepted: Array, *, dtype: jnp.dtype
) -> LabelAgreement:
  """100 where the recovered label set equals the requested one.

  Args:
    requested: [M, 4] bool.
    recovered: [M, 4] bool.
    accepted: [M] bool steps to judge.
    dtype: floating dtype of the scores.

  Returns:
    `LabelAgreement`; steps without a requested label are not judged.
  """
  chex.assert_type([requested, recovered, accepted], bool)
  chex.assert_equal_shape([requested, recovered])
  active = accepted & jnp.any(requested, axis=-1)
  equal = jnp.all(requested == recovered, axis=-1)
  scores = jnp.where(equal, 100, 0).astype(dtype)
  return LabelAgreement(scores, active, numerics.masked_mean(scores, active))


def rotation_vector(rotation: Array) -> Array:
  """Axis times angle (radians, in [0, pi]) of a rotation matrix.

  By the quaternion whose largest component is computed first, so half turns
  are as accurate as small turns.

  Args:
    rotation: [3, 3].

  Returns:
    [3]; the zero vector, with finite gradient, at the identity.
  """
  chex.assert_shape(rotation, (3, 3))
  r = rotation
  trace = r[0, 0] + r[1, 1] + r[2, 2]
  x, y, z = r[2, 1] - r[1, 2], r[0, 2] - r[2, 0], r[1, 0] - r[0, 1]
  xy, xz, yz = r[0, 1] + r[1, 0], r[0, 2] + r[2, 0], r[1, 2] + r[2, 1]
  candidates = jnp.stack(
    [
      jnp.stack([1 + trace, x, y, z]),
      jnp.stack([x, 1 + 2 * r[0, 0] - trace, xy, xz]),
      jnp.stack([y, xy, 1 + 2 * r[1, 1] - trace, yz]),
      jnp.stack([z, xz, yz, 1 + 2 * r[2, 2] - trace]),
    ]
  )
  quaternion = candidates[jnp.argmax(jnp.diagonal(candidates))]
  quaternion = quaternion / numerics.safe_norm(quaternion, axis=0)
  quaternion = jnp.where(quaternion[0] < 0, -quaternion, quaternion)
  sine = numerics.safe_norm(quaternion[1:], axis=0)
  angle = 2 * jnp.arctan2(sine, quaternion[0])
  # angle / sin(angle/2) tends to 2 at the identity.
  factor = jnp.where(sine > 0, angle / jnp.where(sine > 0, sine, 1), 2)
  return factor * quaternion[1:]


def _check(poses_c2w: Array, valid: Array) -> None:
  chex.assert_shape(poses_c2w, (valid.shape[0], 4, 4))
  chex.assert_type([poses_c2w, valid], [float, bool])
