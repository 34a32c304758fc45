# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Cross-view geometry of one video: T5 without reconstruction, half of T4.

Everything here comes from recovered depth and cameras. Frames, items and
depth grids are padded to a few fixed sizes (`BUCKETS`), so that all published
frame counts share one compilation; a padded slot has NaN depth and cannot
change an answer. Intrinsics stay in the protocol's convention: they scale
with the image without a half-pixel shift (specification, 2.3 and 2.7).
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from kernels import correspondence, patches, point_cloud, regional_scale
from protocols.common.totals import mean
from protocols.orbia import schedules
from protocols.orbia.constants import Constants

# Padded numbers of frames and of directional items: the first fits a whole
# case (96 + 32 items and up to 3 revisit pairs over at most 134 frames).
BUCKETS = (8, 32, 136, 272)
_TILE = 512  # points of a cloud compared at a time


@dataclasses.dataclass(frozen=True, eq=False)
class Views:
  """Recovered geometry of the frames of one video.

  Attributes:
    frames: [F] frame numbers, increasing.
    depth: [F, h, w] floating depth on a common canvas; NaN = invalid.
    sizes: [F, 2] (h, w) of each frame's own grid inside the canvas.
    intrinsics: [F, 3, 3] at the depth grid.
    poses_c2w: [F, 4, 4].
    has_depth, has_pose: [F] bool; other rows are NaN.
  """

  frames: NDArray[np.int64]
  depth: NDArray[np.floating[Any]]
  sizes: NDArray[np.int64]
  intrinsics: NDArray[np.floating[Any]]
  poses_c2w: NDArray[np.floating[Any]]
  has_depth: NDArray[np.bool_]
  has_pose: NDArray[np.bool_]

  def row(self, frame: int) -> int:
    """Row of a frame number, -1 if there is none."""
    place = int(np.searchsorted(self.frames, frame))
    found = place < len(self.frames) and self.frames[place] == frame
    return place if found else -1

  def depth_of(self, frame: int) -> NDArray[np.floating[Any]] | None:
    """Depth of a frame at its own size, or None."""
    row = self.row(frame)
    if row < 0 or not self.has_depth[row]:
      return None
    height, width = self.sizes[row]
    return self.depth[row, :height, :width]


class ItemMeasures(NamedTuple):
  """Measures of directional items, NaN = no value.

  Attributes:
    items: [I, 2] (source, target) frames.
    attempted, num_found: [I] source samples and correspondences.
    abs_rel: [I] reprojected depth error.
    scale: [I] regional scale dispersion.
    num_cells: [I]; cell_support, cell_ratio: [I, grid, grid].
    pair_code: [I, N] source patch * P + target patch, P * P = none.
    reason: why an item is empty; '' otherwise.
  """

  items: NDArray[np.int64]
  attempted: NDArray[np.int64]
  num_found: NDArray[np.int64]
  abs_rel: NDArray[np.float64]
  scale: NDArray[np.float64]
  num_cells: NDArray[np.int64]
  cell_support: NDArray[np.int64]
  cell_ratio: NDArray[np.float64]
  pair_code: NDArray[np.int32]
  reason: list[str]


class RevisitMeasures(NamedTuple):
  """Geometric comparison of registered pairs, NaN = no value ([P] each)."""

  feature: NDArray[np.float64]
  abs_rel: NDArray[np.float64]
  fscore: NDArray[np.float64]


class CloudMeasures(NamedTuple):
  """F-scores of frame pairs, NaN = an empty cloud ([P] each)."""

  tau: NDArray[np.float64]
  fscore: NDArray[np.float64]
  precision: NDArray[np.float64]
  recall: NDArray[np.float64]
  num_first: NDArray[np.int64]
  num_second: NDArray[np.int64]


def scale_intrinsics(
  intrinsics: NDArray[np.floating[Any]],
  *,
  from_size: Sequence[int],
  to_size: Sequence[int],
) -> NDArray[np.floating[Any]]:
  """Orbia's rescaling: rows times the size ratio, no half-pixel shift (2.7).

  Args:
    intrinsics: [..., 3, 3].
    from_size: (h, w) it belongs to.
    to_size: (h, w) wanted.

  Returns:
    [..., 3, 3].
  """
  ratio = np.array(
    [to_size[1] / from_size[1], to_size[0] / from_size[0], 1.0],
    np.asarray(intrinsics).dtype,
  )
  return np.asarray(intrinsics) * ratio[:, None]


def bucket(count: int) -> int:
  """Padded size for `count` frames or items."""
  for size in BUCKETS:
    if count <= size:
      return size
  return math.ceil(count / BUCKETS[-1]) * BUCKETS[-1]


def measure_items(
  views: Views,
  items: NDArray[np.int64],
  *,
  video_size: Sequence[int],
  c: Constants,
  pixel_stride: int | None = None,
) -> ItemMeasures:
  """Correspondences, depth error and regional scale of directional items.

  Args:
    views: recovered geometry.
    items: [I, 2] (source, target) frame numbers.
    video_size: (H, W), the divisor of the released patch lookup (15.4).
    c: constants.
    pixel_stride: other sampling than the protocol's, for tests.

  Returns:
    `ItemMeasures`, one row for each item, in order.

  Source: specification, sections 7.2 to 7.5.
  """
  stride = pixel_stride or c.pixel_stride
  reasons = [_missing(views, s, t) for s, t in items]
  todo = np.array([k for k, r in enumerate(reasons) if not r], np.int64)
  raw = _run_items(views, items[todo], video_size, c, stride)
  total = len(items)
  cells = (c.scale_grid, c.scale_grid)
  out = ItemMeasures(
    items=items,
    attempted=np.zeros(total, np.int64),
    num_found=np.zeros(total, np.int64),
    abs_rel=np.full(total, np.nan),
    scale=np.full(total, np.nan),
    num_cells=np.zeros(total, np.int64),
    cell_support=np.zeros((total, *cells), np.int64),
    cell_ratio=np.full((total, *cells), np.nan),
    pair_code=np.full(
      (total, raw.pair_code.shape[1]), c.patch_grid**4, np.int32
    ),
    reason=reasons,
  )
  for name in (
    "attempted",
    "num_found",
    "num_cells",
    "cell_support",
    "pair_code",
  ):
    getattr(out, name)[todo] = getattr(raw, name)
  out.abs_rel[todo] = np.where(raw.num_found > 0, raw.abs_rel, np.nan)
  out.scale[todo] = np.where(raw.scale_valid, raw.scale, np.nan)
  used = raw.cell_support >= c.scale_support
  out.cell_ratio[todo] = np.where(used, raw.cell_ratio, np.nan)
  for place in todo:
    if out.attempted[place] == 0:
      reasons[place] = "no_valid_source_depth"
    elif out.num_found[place] == 0:
      reasons[place] = "zero_visibility"
  return out


def measure_features(
  found: ItemMeasures,
  positions: NDArray[np.int64],
  descriptors: Mapping[int, NDArray[np.floating[Any]]],
  *,
  c: Constants,
) -> NDArray[np.float64]:
  """Mean cosine over distinct patch pairs of selected items (7.5).

  Args:
    found: measures of the items.
    positions: items to compare.
    descriptors: [P, C] by frame number.
    c: constants.

  Returns:
    [I] float64, NaN where not selected, empty or without descriptors.
  """
  values = np.full(len(found.items), np.nan)
  chosen = [
    int(k)
    for k in positions
    if found.num_found[k] > 0
    and all(int(f) in descriptors for f in found.items[k])
  ]
  if not chosen:
    return values
  frames = sorted({int(f) for k in chosen for f in found.items[k]})
  rows = {frame: row for row, frame in enumerate(frames)}
  table = np.stack([np.asarray(descriptors[f]) for f in frames])
  size = bucket(len(chosen))
  code = np.full((size, found.pair_code.shape[1]), c.patch_grid**4, np.int32)
  code[: len(chosen)] = found.pair_code[chosen]
  index = np.zeros((size, 2), np.int32)
  index[: len(chosen)] = [
    [rows[int(f)] for f in found.items[k]] for k in chosen
  ]
  padding = ((0, bucket(len(frames)) - len(frames)), (0, 0), (0, 0))
  similarity = _feature_kernel(
    jnp.asarray(code),
    jnp.asarray(index),
    jnp.asarray(np.pad(table, padding)),
    norm_floor=c.cosine_floor,
  )
  values[chosen] = np.asarray(similarity, np.float64)[: len(chosen)]
  return values


def measure_clouds(
  views: Views,
  pairs: NDArray[np.int64],
  *,
  c: Constants,
  cloud_stride: int | None = None,
) -> CloudMeasures:
  """Surface F-score of frame pairs (6.4).

  Args:
    views: recovered geometry.
    pairs: [P, 2] (first visit, revisit); both need a depth map and a pose.
    c: constants.
    cloud_stride: other sampling than the protocol's, for tests.

  Returns:
    `CloudMeasures`.
  """
  rows = np.array([[views.row(int(f)) for f in pair] for pair in pairs])
  results = [
    _cloud_kernel(
      views.depth[list(pair)],
      views.intrinsics[list(pair)],
      views.poses_c2w[list(pair)],
      stride=cloud_stride or c.cloud_stride,
      min_depth=c.min_depth,
      max_depth=c.max_depth,
      relative=c.cloud_relative,
      minimum=c.cloud_minimum,
      pooled=c.pooled_cloud_median,
    )
    for pair in rows.reshape(-1, 2)
  ]
  tau = np.array([float(t) for t, _ in results])
  scores = [score for _, score in results]
  valid = np.array([bool(s.valid) for s in scores], bool)

  def column(name: str) -> NDArray[np.float64]:
    values = np.array([float(getattr(s, name)) for s in scores], np.float64)
    return np.where(valid, values, np.nan)

  return CloudMeasures(
    tau=tau,
    fscore=column("value"),
    precision=column("precision"),
    recall=column("recall"),
    num_first=np.array([int(s.num_first) for s in scores], np.int64),
    num_second=np.array([int(s.num_second) for s in scores], np.int64),
  )


def group_mean(values: NDArray[np.float64], *, by_pair: bool) -> float | None:
  """Value of a group of directional items.

  Args:
    values: [2 * pairs], NaN = no value; consecutive two are one pair.
    by_pair: mean of both directions first (15.5), then over pairs.

  Returns:
    Mean over what has a value; None if nothing has.
  """
  if not by_pair:
    return mean(values[np.isfinite(values)])
  # An odd number happens in hand-made inputs only: the last stands alone.
  padded = np.append(values, [np.nan] * (len(values) % 2)).reshape(-1, 2)
  of_pairs = [mean(pair[np.isfinite(pair)]) for pair in padded]
  return mean([value for value in of_pairs if value is not None])


def measure_revisits(
  views: Views,
  pairs: NDArray[np.int64],
  descriptors: Mapping[int, NDArray[np.floating[Any]]],
  *,
  video_size: Sequence[int],
  c: Constants,
  pixel_stride: int | None = None,
  cloud_stride: int | None = None,
) -> RevisitMeasures:
  """Geometric comparison of registered pairs, first visit to revisit (6.3).

  A pair without correspondences has no value at all, not even an F-score.
  """
  found = measure_items(
    views, pairs, video_size=video_size, c=c, pixel_stride=pixel_stride
  )
  seen = found.num_found > 0
  fscore = np.full(len(pairs), np.nan)
  fscore[seen] = measure_clouds(
    views, pairs[seen], c=c, cloud_stride=cloud_stride
  ).fscore
  every = np.arange(len(pairs))
  feature = measure_features(found, every, descriptors, c=c)
  return RevisitMeasures(feature, found.abs_rel, fscore)


def case_value(values: NDArray[np.float64], *, c: Constants) -> float | None:
  """Mean over registered pairs; missing unless all succeed (6.3, 15.11)."""
  finite = values[np.isfinite(values)]
  if c.mean_of_measured_pairs or len(finite) == len(values):
    return mean(finite)
  return None


def small_for_lookup(views: Views, *, video_size: Sequence[int]) -> bool:
  """Whether the released patch lookup fails: video below the depth grid."""
  return bool(np.any(views.sizes > np.asarray(video_size)))


def feature_group(values: NDArray[np.float64], *, c: Constants) -> float | None:
  """Feature value of a group (7.5, 15.3)."""
  return group_mean(values, by_pair=c.feature_pairs)


def plan_frames(
  groups: Mapping[str, NDArray[np.int64]], pairs: NDArray[np.int64]
) -> NDArray[np.int64]:
  """Frames whose depth the items and registered pairs need, increasing."""
  parts = [items.reshape(-1) for items in groups.values()]
  return np.unique(np.concatenate([*parts, pairs.reshape(-1)]))


def feature_frames(
  groups: Mapping[str, NDArray[np.int64]],
  pairs: NDArray[np.int64],
  *,
  c: Constants,
) -> NDArray[np.int64]:
  """Frames whose descriptors the items and registered pairs need."""
  parts = [
    items[schedules.feature_positions(len(items), c=c)].reshape(-1)
    for items in groups.values()
  ]
  return np.unique(np.concatenate([*parts, pairs.reshape(-1)]))


class _Raw(NamedTuple):
  """Arrays of the kernel, padded items cut off."""

  attempted: NDArray[np.int64]
  num_found: NDArray[np.int64]
  abs_rel: NDArray[np.float64]
  scale: NDArray[np.float64]
  scale_valid: NDArray[np.bool_]
  num_cells: NDArray[np.int64]
  cell_support: NDArray[np.int64]
  cell_ratio: NDArray[np.float64]
  pair_code: NDArray[np.int32]


def _run_items(
  views: Views,
  items: NDArray[np.int64],
  video_size: Sequence[int],
  c: Constants,
  stride: int,
) -> _Raw:
  frames = np.unique(items)
  rows = np.array([views.row(int(f)) for f in frames], np.int64)
  count, frame_count = len(items), len(frames)
  index = np.zeros((bucket(count), 2), np.int32)
  index[:count] = np.searchsorted(frames, items)
  size = bucket(frame_count)
  depth = np.full((size, *views.depth.shape[1:]), np.nan, views.depth.dtype)
  depth[:frame_count] = views.depth[rows]

  def pad(array: NDArray[Any], fill: NDArray[Any]) -> NDArray[Any]:
    out = np.empty((size, *array.shape[1:]), array.dtype)
    out[:] = fill
    out[:frame_count] = array[rows]
    return out

  lookup = views.sizes
  if not c.patch_on_depth_grid:
    lookup = np.broadcast_to(np.asarray(video_size), views.sizes.shape)
  result = _item_kernel(
    jnp.asarray(index),
    jnp.asarray(depth),
    jnp.asarray(pad(views.intrinsics, np.eye(3))),
    jnp.asarray(pad(views.poses_c2w, np.eye(4))),
    jnp.asarray(pad(views.sizes, np.ones(2)).astype(np.int32)),
    jnp.asarray(pad(lookup, np.ones(2)).astype(np.int32)),
    c=c,
    stride=stride,
  )
  return _Raw(*(np.asarray(array)[:count] for array in result))


@functools.partial(jax.jit, static_argnames=("c", "stride"))
def _item_kernel(
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
  def one(pair: jax.Array) -> tuple[jax.Array, ...]:
    source, target = pair[0], pair[1]
    found = correspondence.correspond(
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
    first = patches.patch_index(
      found.source_row, found.source_column, lookup[source], grid=grid
    )
    second = patches.patch_index(
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

  return jax.lax.map(one, index)


@functools.partial(jax.jit, static_argnames=("norm_floor",))
def _feature_kernel(
  code: jax.Array,
  index: jax.Array,
  descriptors: jax.Array,
  *,
  norm_floor: float,
) -> jax.Array:
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
def _cloud_kernel(
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


def _missing(views: Views, source: int, target: int) -> str:
  """Names the absent inputs of an item, poses first; '' if complete."""
  rows = {"source": views.row(int(source)), "target": views.row(int(target))}
  absent = []
  for kind, flags in (("pose", views.has_pose), ("depth", views.has_depth)):
    for side, row in rows.items():
      if row < 0 or not flags[row]:
        absent.append(f"missing_{side}_{kind}")
  return ";".join(absent)
