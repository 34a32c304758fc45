# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Relative camera motion and its viewing-direction yaw and pitch.

Conventions: poses are 4x4 camera-to-world, rigid, OpenCV axes (x right, y
down, z forward). Motion is source to target, expressed in the source axes:
translation in the unit of the poses, +x right, +y down, +z forward; yaw in
degrees, positive to the right; pitch in degrees, positive DOWN. Yaw and pitch
are read from the target's viewing direction alone, so roll never enters.
"""

from __future__ import annotations

from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp

from kernels import camera, numerics

_HIGHEST = jax.lax.Precision.HIGHEST


class RelativeMotion(NamedTuple):
  """Motion from a source to a target camera, in source axes.

  Attributes:
    translation: [3] target camera centre.
    rotation: [3, 3] target axes as columns.
    yaw_deg: scalar, viewing direction, positive to the right.
    pitch_deg: scalar, viewing direction, positive down.
    angle_deg: scalar in [0, 180], geodesic angle of the rotation.
    distance: scalar, norm of the translation.
  """

  translation: jax.Array
  rotation: jax.Array
  yaw_deg: jax.Array
  pitch_deg: jax.Array
  angle_deg: jax.Array
  distance: jax.Array


def view_angles(direction: jax.Array) -> tuple[jax.Array, jax.Array]:
  """Yaw and pitch in degrees of a viewing direction.

  `yaw = atan2(x, z)`, `pitch = atan2(y, sqrt(x^2 + z^2))`.

  Args:
    direction: [3] direction in source axes, any positive length.

  Returns:
    (yaw_deg, pitch_deg), scalars. A direction along +-y has yaw 0.

  Source: EgoGenEval specification 2.2.
  """
  chex.assert_shape(direction, (3,))
  chex.assert_type(direction, float)
  x, y, z = direction
  # Straight up or down both arguments of the yaw vanish: its gradient is
  # replaced by that of a fixed direction (double where).
  vertical = (x == 0) & (z == 0)
  yaw = jnp.arctan2(jnp.where(vertical, 0.0, x), jnp.where(vertical, 1.0, z))
  horizontal = numerics.safe_norm(jnp.stack([x, z]), axis=0)
  null = vertical & (y == 0)
  pitch = jnp.arctan2(jnp.where(null, 0.0, y), jnp.where(null, 1.0, horizontal))
  return jnp.degrees(yaw), jnp.degrees(pitch)


def trace_angle_deg(rotation: jax.Array) -> jax.Array:
  """`acos(clip((trace - 1) / 2, -1, 1))` in degrees, in its atan2 form.

  For a rotation this is the geodesic angle. It differs from
  `camera.rotation_angle` for matrices that are not quite orthonormal: recorded
  poses with an error of 1e-4 give up to 1.3 degrees between equal poses.

  Args:
    rotation: [3, 3].

  Returns:
    Scalar in [0, 180], gradient 0 at 0 and 180.

  Source: EgoGenEval specification 2.2 (released code).
  """
  chex.assert_shape(rotation, (3, 3))
  chex.assert_type(rotation, float)
  cosine = jnp.clip((jnp.trace(rotation) - 1.0) / 2.0, -1.0, 1.0)
  sine = numerics.safe_sqrt((1.0 - cosine) * (1.0 + cosine))
  return jnp.degrees(jnp.arctan2(sine, cosine))


def rotation_angle_deg(rotation: jax.Array, *, from_trace: bool) -> jax.Array:
  """Angle of a rotation in degrees, from its trace alone or accurately."""
  if from_trace:
    return trace_angle_deg(rotation)
  return jnp.degrees(camera.rotation_angle(rotation))


def relative_motion(
  source_c2w: jax.Array, target_c2w: jax.Array, *, angle_from_trace: bool
) -> RelativeMotion:
  """Relative motion of one pair of cameras.

  `t = R0^T (C1 - C0)`, `R = R0^T R1`, yaw and pitch of `R e_z`.

  Args:
    source_c2w: [4, 4] camera-to-world pose of the source.
    target_c2w: [4, 4] camera-to-world pose of the target.
    angle_from_trace: take `angle_deg` from the trace alone (released code).

  Returns:
    The motion. A common rigid transform of both poses changes nothing.

  Source: EgoGenEval specification 2.2.
  """
  chex.assert_shape([source_c2w, target_c2w], (4, 4))
  chex.assert_type([source_c2w, target_c2w], float)
  inverse = source_c2w[:3, :3].T
  # Centres are subtracted first: far from the origin the product of the two
  # poses would lose the digits that the motion consists of.
  offset = target_c2w[:3, 3] - source_c2w[:3, 3]
  translation = jnp.matmul(inverse, offset, precision=_HIGHEST)
  rotation = jnp.matmul(inverse, target_c2w[:3, :3], precision=_HIGHEST)
  yaw_deg, pitch_deg = view_angles(rotation[:, 2])
  return RelativeMotion(
    translation,
    rotation,
    yaw_deg,
    pitch_deg,
    rotation_angle_deg(rotation, from_trace=angle_from_trace),
    numerics.safe_norm(translation, axis=0),
  )
