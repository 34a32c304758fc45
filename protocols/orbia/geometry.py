# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Cross-view geometry of one video: T5 without reconstruction, half of T4.

Everything here comes from recovered depth and cameras. Frames and items are
padded to a few fixed numbers (`geometry_programs.BUCKETS`); a padded slot is
cut off again and cannot change an answer. Sections are those of the project's
Orbia specification.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from protocols.common.totals import mean
from protocols.orbia import geometry_programs as programs
from protocols.orbia import schedules
from protocols.orbia.constants import Constants
from protocols.orbia.views import Views, canvas


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
  shape = np.shape(descriptors[frames[0]])
  dtype = np.asarray(descriptors[frames[0]]).dtype
  table = np.empty((programs.bucket(len(frames)), *shape), dtype)
  for frame, row in rows.items():
    table[row] = descriptors[frame]
  size = programs.bucket(len(chosen))
  code = np.full((size, found.pair_code.shape[1]), c.patch_grid**4, np.int32)
  code[: len(chosen)] = found.pair_code[chosen]
  index = np.zeros((size, 2), np.int32)
  index[: len(chosen)] = [
    [rows[int(f)] for f in found.items[k]] for k in chosen
  ]
  similarity = programs.features(
    jnp.asarray(code),
    jnp.asarray(index),
    jnp.asarray(table),
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
    programs.clouds(
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
  # One transfer: reading number after number costs as much as the kernel.
  results = jax.device_get(results)
  tau = np.array([t for t, _ in results], np.float64)
  scores = [score for _, score in results]
  valid = np.array([s.valid for s in scores], bool)

  def column(name: str) -> NDArray[np.float64]:
    values = np.array([getattr(s, name) for s in scores], np.float64)
    return np.where(valid, values, np.nan)

  return CloudMeasures(
    tau=tau,
    fscore=column("value"),
    precision=column("precision"),
    recall=column("recall"),
    num_first=np.array([s.num_first for s in scores], np.int64),
    num_second=np.array([s.num_second for s in scores], np.int64),
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
  count, frame_count = len(items), len(views.frames)
  index = np.zeros((programs.bucket(count), 2), np.int32)
  index[:count] = np.searchsorted(views.frames, items)
  size = programs.bucket(len(views.depth))
  depth = views.depth
  if len(depth) < size:
    # Rows beyond the frames are never indexed: filling them would cost more
    # than the measurement of a short case.
    depth = canvas((size, *depth.shape[1:]), depth.dtype)
    depth[: len(views.depth)] = views.depth

  def pad(array: NDArray[Any], fill: NDArray[Any]) -> NDArray[Any]:
    out = np.empty((size, *array.shape[1:]), array.dtype)
    out[:] = fill
    out[:frame_count] = array
    return out

  lookup = views.sizes
  if not c.patch_on_depth_grid:
    lookup = np.broadcast_to(np.asarray(video_size), views.sizes.shape)
  result = programs.items(
    jnp.asarray(index),
    # Read in place where it can be: a copy takes longer than the measurement.
    jax.device_put(depth, may_alias=True),
    jnp.asarray(pad(views.intrinsics, np.eye(3))),
    jnp.asarray(pad(views.poses_c2w, np.eye(4))),
    jnp.asarray(pad(views.sizes, np.ones(2)).astype(np.int32)),
    jnp.asarray(pad(lookup, np.ones(2)).astype(np.int32)),
    c=c,
    stride=stride,
  )
  return _Raw(*(np.asarray(array)[:count] for array in result))


def _missing(views: Views, source: int, target: int) -> str:
  """Names the absent inputs of an item, poses first; '' if complete."""
  rows = {"source": views.row(int(source)), "target": views.row(int(target))}
  absent = []
  for kind, flags in (("pose", views.has_pose), ("depth", views.has_depth)):
    for side, row in rows.items():
      if row < 0 or not flags[row]:
        absent.append(f"missing_{side}_{kind}")
  return ";".join(absent)
