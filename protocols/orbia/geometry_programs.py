# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Compiled programs of the cross-view geometry, over padded batches.

Callers pad frames and items to `BUCKETS`, so all published frame counts share
one compilation for each depth grid; `TRACES` counts compilations. The sections
are those of the project's Orbia specification.
"""

from __future__ import annotations

import collections
import functools
import math

import jax
import jax.numpy as jnp

from kernels import (
  correspondence,
  grid_cells,
  patches,
  point_cloud,
  regional_scale,
)
from protocols.orbia.constants import Constants

# Padded numbers of frames and of directional items: the fourth fits a whole
# case (96 + 32 items and up to 3 revisit pairs over at most 134 frames).
BUCKETS = (8, 40, 64, 136, 272)
TRACES: collections.Counter[str] = collections.Counter()
_TILE = 128  # points of a cloud compared at a time


def bucket(count: int) -> int:
  """Padded size for `count` frames or items."""
  for size in BUCKETS:
    if count <= size:
      return size
  return math.ceil(count / BUCKETS[-1]) * BUCKETS[-1]


def items(
  index: jax.Array,
  depth: jax.Array,
  intrinsics: jax.Array,
  poses_c2w: jax.Array,
  sizes: jax.Array,
  lookup: jax.Array,
  *,
  c: Constants,
  stride: int,
) -> tuple[jax.Array, ...]:
  """Measures of [I] directional items; see `geometry.ItemMeasures`.

  Two programs: in one, the compiler would repeat the reprojection inside each
  of the counting passes of the medians.

  Args:
    index: [I, 2] int32 rows of source and target.
    depth: [F, h, w]; sizes: [F, 2] each frame's own (h, w).
    intrinsics: [F, 3, 3]; poses_c2w: [F, 4, 4].
    lookup: [F, 2] (h, w) that patch rows and columns are divided by.
    c: constants.
    stride: pixel stride.
  """
  found = _match(index, depth, intrinsics, poses_c2w, c=c, stride=stride)
  return _measure(index, found, sizes, lookup, c=c)


@functools.partial(jax.jit, static_argnames=("c", "stride"))
def _match(
  index: jax.Array,
  depth: jax.Array,
  intrinsics: jax.Array,
  poses_c2w: jax.Array,
  *,
  c: Constants,
  stride: int,
) -> correspondence.Correspondences:
  TRACES["items"] += 1

  def one(pair: jax.Array) -> correspondence.Correspondences:
    source, target = pair[0], pair[1]
    return correspondence.correspond(
      depth[source],
      depth[target],
      poses_c2w[source],
      poses_c2w[target],
      intrinsics[source],
      intrinsics[target],
      pixel_stride=stride,
      min_depth=c.min_depth,
      max_depth=c.max_depth,
      z_floor=c.z_floor,
      occlusion_tolerance=c.occlusion_tolerance,
    )

  return jax.lax.map(one, index)


@functools.partial(jax.jit, static_argnames=("c",))
def _measure(
  index: jax.Array,
  matches: correspondence.Correspondences,
  sizes: jax.Array,
  lookup: jax.Array,
  *,
  c: Constants,
) -> tuple[jax.Array, ...]:
  def one(
    item: tuple[jax.Array, correspondence.Correspondences],
  ) -> tuple[jax.Array, ...]:
    (source, target), found = item
    error = correspondence.reprojection_error(found, depth_floor=c.z_floor)
    scale = regional_scale.regional_scale(
      found,
      sizes[target],
      grid=c.scale_grid,
      min_support=c.scale_support,
      min_cells=c.scale_cells,
      depth_floor=c.z_floor,
    )
    grid = c.patch_grid
    first = grid_cells.cell_index(
      found.source_row, found.source_column, lookup[source], grid=grid
    )
    second = grid_cells.cell_index(
      found.target_row, found.target_column, lookup[target], grid=grid
    )
    code = jnp.where(found.valid, first * grid**2 + second, grid**4)
    return (
      found.attempted,
      found.num_valid,
      error.value,
      scale.value,
      scale.valid,
      scale.num_cells,
      scale.support,
      scale.ratio,
      code,
    )

  return jax.lax.map(one, (index, matches))


@functools.partial(jax.jit, static_argnames=("norm_floor",))
def features(
  code: jax.Array,
  index: jax.Array,
  descriptors: jax.Array,
  *,
  norm_floor: float,
) -> jax.Array:
  """Mean cosine over distinct patch pairs of [I] items.

  Args:
    code: [I, N] source patch * P + target patch; P * P = none.
    index: [I, 2] rows of `descriptors`.
    descriptors: [F, P, C].
    norm_floor: see `kernels.patches`.
  """
  TRACES["features"] += 1
  count = descriptors.shape[1]

  def one(item: tuple[jax.Array, jax.Array]) -> jax.Array:
    pairs, frames = item
    return patches.unique_pair_similarity(
      pairs // count,
      pairs % count,
      pairs < count * count,
      descriptors[frames[0]],
      descriptors[frames[1]],
      norm_floor=norm_floor,
    ).value

  return jax.lax.map(one, (code, index))


@functools.partial(
  jax.jit,
  static_argnames=(
    "stride",
    "min_depth",
    "max_depth",
    "relative",
    "minimum",
    "pooled",
  ),
)
def clouds(
  depth: jax.Array,
  intrinsics: jax.Array,
  poses_c2w: jax.Array,
  *,
  stride: int,
  min_depth: float,
  max_depth: float,
  relative: float,
  minimum: float,
  pooled: bool,
) -> tuple[jax.Array, point_cloud.FScore]:
  """Threshold and F-score of two views ([2, ...] arrays); section 6.4."""
  TRACES["clouds"] += 1
  first, second = (
    point_cloud.surface_points(
      depth[k],
      intrinsics[k],
      poses_c2w[k],
      pixel_stride=stride,
      min_depth=min_depth,
      max_depth=max_depth,
    )
    for k in range(2)
  )
  tau = point_cloud.distance_threshold(
    first, second, relative=relative, minimum=minimum, pooled=pooled
  )
  return tau, point_cloud.surface_fscore(first, second, tau, tile=_TILE)
