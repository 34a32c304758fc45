# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Least-squares plane of a point set. Conventions: world units."""

from __future__ import annotations

from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
from jax import Array

from kernels import numerics


class Plane(NamedTuple):
  """A fitted plane.

  Attributes:
    normal: [3] unit normal, sign undefined.
    centroid: [3] a point of the plane.
    rms: root mean square distance of the points from the plane.
    num_points: int32; fewer than 3 points have no plane, `rms` is then 0.
  """

  normal: Array
  centroid: Array
  rms: Array
  num_points: Array


def fit_plane(points: Array, valid: Array) -> Plane:
  """Total least squares: the plane through the mean of the valid points.

  Args:
    points: [N, 3].
    valid: [N] bool.

  Returns:
    `Plane`.
  """
  chex.assert_rank([points, valid], [2, 1])
  mean = jax.vmap(numerics.masked_mean, in_axes=(1, None))(points, valid)
  return plane_through(mean.value, points, valid)


def plane_through(centroid: Array, points: Array, valid: Array) -> Plane:
  """Plane through a given point whose normal is the direction of least scatter.

  The smallest eigenvector of the 3x3 scatter matrix equals the last right
  singular vector of the centred points. The error is taken from the distances,
  not from the eigenvalue, whose square root loses half of the digits.

  Args:
    centroid: [3].
    points: [N, 3].
    valid: [N] bool.

  Returns:
    `Plane`. The normal is held fixed in the gradient of `rms`: it minimises
    `rms`, so its own variation does not contribute to first order.

  Source: PDI-Bench release, ground check (specification section 7.4).
  """
  chex.assert_rank([centroid, points, valid], [1, 2, 1])
  chex.assert_type([centroid, points, valid], [float, float, bool])
  chex.assert_axis_dimension(points, 1, 3)
  chex.assert_shape(centroid, (3,))
  centred = jnp.where(valid[:, None], points - centroid, 0)
  held = jax.lax.stop_gradient(centred)
  scatter = jnp.einsum(
    "ni,nj->ij", held, held, precision=jax.lax.Precision.HIGHEST
  )
  # A scale of one keeps the eigenvectors of tiny and huge scenes alike.
  size = jnp.max(jnp.abs(scatter))
  _, vectors = jnp.linalg.eigh(scatter / jnp.where(size > 0, size, 1))
  normal = vectors[:, 0]
  distance = jnp.matmul(centred, normal, precision=jax.lax.Precision.HIGHEST)
  rms = numerics.masked_rms(distance, valid)
  value = jnp.where(rms.count >= 3, rms.value, 0)
  return Plane(normal, centroid, value, rms.count)
