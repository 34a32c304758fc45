# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Vanishing points as robust intersections of image lines.

Conventions: a line is homogeneous, l = p x q for two points, with
(l_x, l_y) of unit length, so that l . (x, y, 1) is a distance in pixels.
"""

from __future__ import annotations

from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
from jax import Array

from kernels import numerics


class VanishingPoint(NamedTuple):
  """An intersection of lines.

  Attributes:
    xy: [2] pixels; undefined if `num_inliers` is below 2.
    inlier: [L] bool.
    num_inliers: int32.
  """

  xy: Array
  inlier: Array
  num_inliers: Array


def lines_through(start: Array, end: Array, *, epsilon: float) -> Array:
  """Homogeneous lines through pairs of points.

  Args:
    start: [L, 2] pixels.
    end: [L, 2] pixels.
    epsilon: added to the length that normalises a line.

  Returns:
    [L, 3]; two equal points give a zero line.
  """
  chex.assert_rank([start, end], 2)
  chex.assert_equal_shape([start, end])
  normal_x = start[:, 1] - end[:, 1]
  normal_y = end[:, 0] - start[:, 0]
  offset = start[:, 0] * end[:, 1] - start[:, 1] * end[:, 0]
  line = jnp.stack([normal_x, normal_y, offset], axis=-1)
  length = numerics.safe_norm(line[:, :2], axis=-1) + epsilon
  return line / length[:, None]


def intersect_lines(
  lines: Array,
  valid: Array,
  first: Array,
  second: Array,
  *,
  tolerance: float,
  divide_by_norm: bool,
  min_w: float,
  epsilon: float,
) -> VanishingPoint:
  """Consensus over given line pairs, then least squares over the inliers.

  Each pair's intersection collects the lines within `tolerance`; the first
  pair with the most inliers wins; the result minimises the sum of squared
  distances to its inliers.

  Args:
    lines: [L, 3] normalised lines.
    valid: [L] bool.
    first: [M] int32, line of each hypothesis.
    second: [M] int32, its other line.
    tolerance: pixels, exclusive.
    divide_by_norm: whether the distance is divided by |vp_xy| (the release
      does, which makes nearly every line an inlier).
    min_w: intersections with a smaller homogeneous coordinate are parallel.
    epsilon: added to |vp_xy|.

  Returns:
    `VanishingPoint`; no inliers if no pair intersects.

  Source: PDI-Bench release (specification section 9.2).
  """
  chex.assert_rank([lines, valid, first, second], [2, 1, 1, 1])
  chex.assert_type([lines, valid], [float, bool])
  chex.assert_shape(lines, (valid.shape[0], 3))
  crossing = jnp.cross(lines[first], lines[second])
  usable = valid[first] & valid[second] & (first != second)
  usable &= jnp.abs(crossing[:, 2]) >= min_w
  point = crossing / jnp.where(usable, crossing[:, 2], 1)[:, None]
  distance = jnp.abs(
    jnp.matmul(point, lines.T, precision=jax.lax.Precision.HIGHEST)
  )
  if divide_by_norm:
    norm = numerics.safe_norm(point[:, :2], axis=-1) + epsilon
    distance = distance / norm[:, None]
  near = (distance < tolerance) & valid & usable[:, None]
  votes = jnp.sum(near, axis=1)
  inlier = near[jnp.argmax(votes)]
  count = jnp.sum(inlier, dtype=jnp.int32)
  weight = inlier.astype(lines.dtype)
  normal = lines[:, :2]
  gram = jnp.einsum(
    "l,li,lj->ij", weight, normal, normal, precision=jax.lax.Precision.HIGHEST
  )
  right = -jnp.einsum(
    "l,li->i", weight * lines[:, 2], normal, precision=jax.lax.Precision.HIGHEST
  )
  determinant = gram[0, 0] * gram[1, 1] - gram[0, 1] * gram[1, 0]
  x = gram[1, 1] * right[0] - gram[0, 1] * right[1]
  y = gram[0, 0] * right[1] - gram[1, 0] * right[0]
  xy = jnp.stack([x, y]) / jnp.where(determinant == 0, 1, determinant)
  count = jnp.where(determinant == 0, 0, count)
  return VanishingPoint(xy, inlier, count)
