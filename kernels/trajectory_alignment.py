# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Errors of a recovered camera path after one nonnegative scale.

Conventions: camera-to-world poses with OpenCV axes; row 0 of both sequences is
the input view, to which both are made relative. No rotation or translation is
fitted. Translation errors are fractions of a given path length, rotation
errors are degrees; lower is better. Rows where `valid` is False may hold
anything finite.
"""

from __future__ import annotations

from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
from jax import Array

from kernels import camera, numerics


class PathErrors(NamedTuple):
  """Errors of one path.

  Attributes:
    scale: s* >= 0 that multiplies recovered positions.
    positions: [N, 3] aligned recovered positions relative to row 0.
    translation: [N] |s* q - p| / L.
    rotation_deg: [N] angle of R_q^T R_p.
    mean_translation: `Stat` over valid rows.
    mean_rotation_deg: `Stat` over valid rows.
  """

  scale: Array
  positions: Array
  translation: Array
  rotation_deg: Array
  mean_translation: numerics.Stat
  mean_rotation_deg: numerics.Stat


def path_length(positions: Array, valid: Array) -> Array:
  """Sum of the steps between consecutive valid positions.

  Args:
    positions: [N, 3].
    valid: [N] bool; a step counts where both of its ends are valid.

  Returns:
    Scalar, in the unit of the positions.
  """
  chex.assert_shape(positions, (valid.shape[0], 3))
  steps = numerics.safe_norm(positions[1:] - positions[:-1], axis=-1)
  return jnp.sum(jnp.where(valid[1:] & valid[:-1], steps, 0))


def nonnegative_scale(
  recovered: Array,
  requested: Array,
  valid: Array,
  *,
  denominator_floor: float,
) -> Array:
  """max(0, sum <q, p> / sum <q, q>); 1 where sum <q, q> is at the floor.

  Args:
    recovered: [N, 3] positions q.
    requested: [N, 3] positions p.
    valid: [N] bool.
    denominator_floor: for example 1e-12.

  Returns:
    Scalar.

  Source: Orbia specification, section 3.1.
  """
  chex.assert_equal_shape([recovered, requested])
  chex.assert_shape(recovered, (valid.shape[0], 3))
  q = jnp.where(valid[:, None], recovered, 0)
  power = jnp.sum(q * q)
  static = power <= denominator_floor
  ratio = jnp.sum(q * requested) / jnp.where(static, 1, power)
  return jnp.where(static, 1, jnp.maximum(ratio, 0))


def path_errors(
  recovered_c2w: Array,
  requested_c2w: Array,
  valid: Array,
  length: Array,
  *,
  length_floor: float,
  denominator_floor: float,
) -> PathErrors:
  """Pose errors of a recovered path against the requested one.

  Args:
    recovered_c2w: [N, 4, 4] in any frame and scale; row 0 is the input view.
    requested_c2w: [N, 4, 4] at the same times.
    valid: [N] bool rows that enter scale and means.
    length: scalar, length of the whole requested path.
    length_floor: floor of `length`, for example 1e-6.
    denominator_floor: see `nonnegative_scale`.

  Returns:
    `PathErrors`. A static recovered path has scale 1.

  Source: Orbia specification, sections 3.1 and 3.2.
  """
  chex.assert_equal_shape([recovered_c2w, requested_c2w])
  chex.assert_shape(recovered_c2w, (valid.shape[0], 4, 4))
  relative = jax.vmap(camera.relative_pose, in_axes=(None, 0))
  recovered = relative(recovered_c2w[0], recovered_c2w)
  requested = relative(requested_c2w[0], requested_c2w)
  q, p = recovered[:, :3, 3], requested[:, :3, 3]
  scale = nonnegative_scale(q, p, valid, denominator_floor=denominator_floor)
  aligned = scale * q
  translation = numerics.safe_norm(aligned - p, axis=-1)
  translation = translation / jnp.maximum(length, length_floor)
  between = jax.vmap(camera.relative_pose)(recovered, requested)
  angle = jax.vmap(camera.rotation_angle)(between[:, :3, :3])
  rotation_deg = jnp.rad2deg(angle)
  return PathErrors(
    scale=scale,
    positions=aligned,
    translation=translation,
    rotation_deg=rotation_deg,
    mean_translation=numerics.masked_mean(translation, valid),
    mean_rotation_deg=numerics.masked_mean(rotation_deg, valid),
  )
