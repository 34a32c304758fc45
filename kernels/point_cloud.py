# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Surface F-score of two views: do they show the same points in space?

Conventions: points in world coordinates of the recovered cameras; poses are
camera-to-world with OpenCV axes; depth is camera-axis Z and NaN where invalid.
Precision, recall and F lie in [0, 1], higher is better. Distances come from
coordinate differences, in tiles, so that no N x M table is ever stored.
"""

from __future__ import annotations

from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
from jax import Array

from kernels import camera, numerics


class PointCloud(NamedTuple):
  """Points of one view.

  Attributes:
    points_world: [N, 3] in row-major scan order; 0 where not valid.
    depth: [N] camera-axis depth; 1 where not valid.
    valid: [N] bool.
  """

  points_world: Array
  depth: Array
  valid: Array


class FScore(NamedTuple):
  """Agreement of two clouds.

  Attributes:
    value: 2 p r / max(p + r, 1e-12); 0 where not `valid`.
    precision: share of the first cloud near the second.
    recall: share of the second cloud near the first.
    num_first: int32 points of the first cloud.
    num_second: int32 points of the second cloud.
    valid: bool, both clouds have points.
  """

  value: Array
  precision: Array
  recall: Array
  num_first: Array
  num_second: Array
  valid: Array


def surface_points(
  depth: Array,
  intrinsics: Array,
  pose_c2w: Array,
  *,
  pixel_stride: int,
  min_depth: float,
  max_depth: float,
) -> PointCloud:
  """World points of every `pixel_stride`-th row and column.

  Args:
    depth: [h, w] depth.
    intrinsics: [3, 3] at the size of `depth`.
    pose_c2w: [4, 4].
    pixel_stride: static.
    min_depth: smallest usable depth, inclusive.
    max_depth: largest usable depth, inclusive.

  Returns:
    `PointCloud` of ceil(h/stride) ceil(w/stride) slots.

  Source: Orbia specification, section 6.4.
  """
  chex.assert_rank(depth, 2)
  chex.assert_type(depth, float)
  sampled = depth[::pixel_stride, ::pixel_stride]
  row, column = jnp.meshgrid(
    jnp.arange(sampled.shape[0], dtype=depth.dtype),
    jnp.arange(sampled.shape[1], dtype=depth.dtype),
    indexing="ij",
  )
  xy = jnp.stack([column, row], axis=-1).reshape(-1, 2) * pixel_stride
  z = sampled.reshape(-1)
  valid = jnp.isfinite(z) & (z >= min_depth) & (z <= max_depth)
  z = jnp.where(valid, z, 1)
  points = camera.unproject_pixels(xy, z, intrinsics)
  points = camera.transform_points(pose_c2w, points)
  valid &= jnp.all(jnp.isfinite(points), axis=-1)
  return PointCloud(jnp.where(valid[:, None], points, 0), z, valid)


def distance_threshold(
  first: PointCloud,
  second: PointCloud,
  *,
  relative: float,
  minimum: float,
  pooled: bool,
) -> Array:
  """tau = max(minimum, relative d), d the median depth of both views.

  Args:
    first: cloud before any downsampling.
    second: cloud before any downsampling.
    relative: for example 0.05.
    minimum: floor of tau, in the clouds' unit.
    pooled: one median over both clouds; else the mean of the two medians,
      of which an empty view's is left out.

  Returns:
    Scalar; `minimum` when neither view has a point.

  Source: Orbia specification, sections 6.4 and 15.7.
  """
  if pooled:
    depth = jnp.concatenate([first.depth, second.depth])
    valid = jnp.concatenate([first.valid, second.valid])
    median = numerics.masked_median(depth, valid).value
  else:
    a = numerics.masked_median(first.depth, first.valid)
    b = numerics.masked_median(second.depth, second.valid)
    views = (a.count > 0).astype(a.value.dtype) + (b.count > 0)
    median = (a.value + b.value) / jnp.maximum(views, 1)
  return jnp.maximum(relative * median, jnp.asarray(minimum, median.dtype))


def first_per_voxel(points: Array, valid: Array, voxel_size: Array) -> Array:
  """Which points are the first of their voxel floor(point / voxel_size).

  Args:
    points: [N, 3], finite.
    valid: [N] bool.
    voxel_size: positive scalar.

  Returns:
    [N] bool; of each occupied voxel the point with the lowest index.
  """
  chex.assert_shape(points, (valid.shape[0], 3))
  count = valid.shape[0]
  if count == 0:
    return valid
  key = jnp.floor(jax.lax.stop_gradient(points) / voxel_size)
  key = jnp.where(valid[:, None], key, jnp.inf)  # invalid points sort last
  order = jnp.arange(count, dtype=jnp.int32)
  x, y, z, index = jax.lax.sort(
    (key[:, 0], key[:, 1], key[:, 2], order), num_keys=3, is_stable=True
  )
  changes = (x[1:] != x[:-1]) | (y[1:] != y[:-1]) | (z[1:] != z[:-1])
  begins = jnp.concatenate([jnp.ones((1,), bool), changes])
  return jnp.zeros((count,), bool).at[index].set(begins) & valid


def radius_fscore(
  first: Array,
  first_valid: Array,
  second: Array,
  second_valid: Array,
  radius: Array,
  *,
  tile: int,
) -> FScore:
  """F-score of two point sets under a radius test.

  Args:
    first: [N, 3].
    first_valid: [N] bool.
    second: [M, 3].
    second_valid: [M] bool.
    radius: scalar; a distance equal to it counts as near.
    tile: points of `first` compared at a time, static; bounds memory only.

  Returns:
    `FScore`. Two non-empty sets without a match give 0 and are valid.

  Source: Orbia specification, section 6.4.
  """
  chex.assert_shape(first, (first_valid.shape[0], 3))
  chex.assert_shape(second, (second_valid.shape[0], 3))
  padding = -first.shape[0] % tile
  tiles = jnp.pad(first, ((0, padding), (0, 0))).reshape(-1, tile, 3)
  tiles_valid = jnp.pad(first_valid, (0, padding)).reshape(-1, tile)
  limit = radius * radius

  def compare(
    near_second: Array, part: tuple[Array, Array]
  ) -> tuple[Array, Array]:
    points, valid = part
    squared = jnp.zeros((tile, second.shape[0]), first.dtype)
    for axis in range(3):
      off = points[:, None, axis] - second[None, :, axis]
      squared += off * off
    near = (squared <= limit) & valid[:, None] & second_valid[None, :]
    return near_second | jnp.any(near, axis=0), jnp.any(near, axis=1)

  near_second, near_first = jax.lax.scan(
    compare, jnp.zeros_like(second_valid), (tiles, tiles_valid)
  )
  num_first = jnp.sum(first_valid, dtype=jnp.int32)
  num_second = jnp.sum(second_valid, dtype=jnp.int32)

  def share(hits: Array, total: Array) -> Array:
    return jnp.sum(hits).astype(first.dtype) / jnp.maximum(total, 1)

  precision = share(near_first, num_first)
  recall = share(near_second, num_second)
  total = jnp.maximum(precision + recall, 1e-12)
  valid = (num_first > 0) & (num_second > 0)
  value = jnp.where(valid, 2 * precision * recall / total, 0)
  return FScore(value, precision, recall, num_first, num_second, valid)


def surface_fscore(
  first: PointCloud, second: PointCloud, tau: Array, *, tile: int
) -> FScore:
  """F-score of two views after voxel downsampling at tau / 2.

  Args:
    first: first visit.
    second: revisit.
    tau: scalar from `distance_threshold`.
    tile: see `radius_fscore`.

  Returns:
    `FScore`, its counts after downsampling.

  Source: Orbia specification, section 6.4.
  """
  kept = [
    first_per_voxel(cloud.points_world, cloud.valid, tau / 2)
    for cloud in (first, second)
  ]
  return radius_fscore(
    first.points_world, kept[0], second.points_world, kept[1], tau, tile=tile
  )
