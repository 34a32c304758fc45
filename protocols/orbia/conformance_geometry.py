# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Golden vectors of the cross-view geometry: T5, half of T4, schedules."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from kernels import correspondence, depth_agreement, grid_cells, patches
from protocols.common.conformance import Check
from protocols.orbia import geometry, persistence, schedules
from protocols.orbia.conformance_case import Case
from protocols.orbia.constants import PAPER, RELEASED, Constants
from protocols.orbia.views import Views, scale_intrinsics

_OUTCOMES = ("ok", "IndexError")


def correspondences(case: Case) -> Iterator[Check]:
  """Items of `correspondences_*`: counts, errors, regional scale, groups."""
  views = _views(case)
  pairs = case.read("pairs")
  groups = np.array(case.text("pair_group"))
  video = (case.params["video_height"], case.params["video_width"])
  for suffix in _suffixes(case, "count"):
    stride = int(suffix[7:]) if suffix else RELEASED.pixel_stride
    found = geometry.measure_items(
      views, pairs, video_size=video, c=RELEASED, pixel_stride=stride
    )
    yield from case.check(f"attempted{suffix}", found.attempted)
    yield from case.check_counts(f"count{suffix}", found.num_found)
    coverage = found.num_found / np.maximum(found.attempted, 1)
    yield from case.check(f"coverage{suffix}", coverage, bound=0.02)
    yield from case.check(f"reason{suffix}", found.reason)
    yield from case.check(f"abs_rel{suffix}", found.abs_rel)
    yield from case.check(f"scale_E{suffix}", found.scale)
    yield from case.check(f"scale_cells{suffix}", found.num_cells)
    yield from case.check_counts(f"cell_support{suffix}", found.cell_support)
    yield from case.check(f"cell_median{suffix}", found.cell_ratio)
    for c, name in (
      (RELEASED, "group_abs_rel"),
      (PAPER, "group_abs_rel_paper"),
    ):
      values = [
        geometry.group_mean(found.abs_rel[groups == g], by_pair=c.depth_pairs)
        for g in ("short", "medium")
      ]
      yield from case.check(f"{name}{suffix}", _numbers(values))
    scale = geometry.group_mean(found.scale, by_pair=False)
    yield from case.check(f"case_scale{suffix}", scale)
    status = [_status(found.abs_rel), _status(found.scale)]
    yield from case.check(f"status{suffix}", status)
    yield from _lists(case, views, pairs, stride, suffix)


def limits(case: Case) -> Iterator[Check]:
  """Single directions at pixel stride 1: which target pixels are kept."""
  depth = case.read("depth")
  size = depth.shape[1:]
  count = len(depth)
  intrinsics = np.broadcast_to(case.read("K_video_pixels"), (count, 3, 3))
  frames = (0, 8)  # the names of the outputs: 0to8 and 8to0
  views = Views(
    np.array(frames),
    depth,
    np.tile(size, (count, 1)),
    intrinsics,
    case.read("poses_c2w"),
    np.ones(count, bool),
    np.ones(count, bool),
  )
  # The limits lie between neighbouring float64 numbers (index.json): this
  # case is checked in float64 in both runs.
  with jax.enable_x64(True):
    for source, target in ((0, 8), (8, 0)):
      name = f"{source}to{target}"
      found = _correspond(views, source, target, stride=1)
      kept = np.zeros(size, bool)
      kept[found["target_rows"], found["target_columns"]] = True
      yield from case.check(f"{name}_kept", kept, host=True)
      yield from case.check(f"{name}_attempted", found["attempted"], host=True)
      error = np.abs(found["z"] - found["o"]) / np.maximum(
        found["o"], RELEASED.z_floor
      )
      yield from case.check(f"{name}_abs_rel", error.mean(), host=True)


def clouds(case: Case) -> Iterator[Check]:
  """Surface F-score and reprojected depth of registered pairs."""
  views = _views(case)
  pairs = case.read("pairs")
  video = (case.params["video_height"], case.params["video_width"])
  found = geometry.measure_items(views, pairs, video_size=video, c=RELEASED)
  yield from case.check_counts("count", found.num_found)
  yield from case.check("depth_abs_rel", found.abs_rel)
  for suffix in _suffixes(case, "tau"):
    base = suffix.removesuffix("_paper")
    stride = int(base[7:]) if base else RELEASED.cloud_stride
    c = PAPER if suffix.endswith("_paper") else RELEASED
    scores = geometry.measure_clouds(views, pairs, c=c, cloud_stride=stride)
    yield from case.check(f"tau{suffix}", scores.tau)
    yield from case.check_counts(f"n_first{suffix}", scores.num_first)
    yield from case.check_counts(f"n_revisit{suffix}", scores.num_second)
    yield from case.check(f"precision{suffix}", scores.precision)
    yield from case.check(f"recall{suffix}", scores.recall)
    yield from case.check(f"fscore{suffix}", scores.fscore)


def features(case: Case) -> Iterator[Check]:
  """Distinct patch pairs and their mean cosine, both lookups (15.4)."""
  pixels = {
    name: jnp.asarray(case.read(name), jnp.int32)
    for name in (
      "source_rows",
      "source_columns",
      "target_rows",
      "target_columns",
    )
  }
  source = case.real("source_patches")
  target = case.real("target_patches")
  grids = [case.params["source_grid"], case.params["target_grid"]]
  video = [case.params["video_height"], case.params["video_width"]]
  grid = RELEASED.patch_grid
  fails = any(g > v for size in grids for g, v in zip(size, video, strict=True))
  yield from case.check("outcome", _OUTCOMES[int(fails)])
  for c, suffix in ((RELEASED, ""), (PAPER, "_paper")):
    if not case.has(f"similarity{suffix}"):
      continue
    sizes = grids if c.patch_on_depth_grid else [video, video]
    first = grid_cells.cell_index(
      pixels["source_rows"],
      pixels["source_columns"],
      jnp.asarray(sizes[0], jnp.int32),
      grid=grid,
    )
    second = grid_cells.cell_index(
      pixels["target_rows"],
      pixels["target_columns"],
      jnp.asarray(sizes[1], jnp.int32),
      grid=grid,
    )
    found = patches.unique_pair_similarity(
      first,
      second,
      jnp.ones(first.shape, bool),
      jnp.asarray(source),
      jnp.asarray(target),
      norm_floor=c.cosine_floor,
    )
    yield from case.check(
      f"patch_pairs{suffix}", np.argwhere(np.asarray(found.present))
    )
    yield from case.check(f"similarity{suffix}", found.value)


def whole(case: Case) -> Iterator[Check]:
  """One video: schedules, items, features, groups, registered pairs."""
  plan = case.read("plan")
  params = case.params
  video = (params["video_height"], params["video_width"])
  registered = case.read("revisit_pairs")
  built = schedules.sampling_plan(
    params["frame_count"],
    case.read("event_frames"),
    registered.reshape(-1),
    c=RELEASED,
  )
  views = _views(case, frames=plan)
  descriptors = dict(
    zip(case.read("patch_frames").tolist(), case.real("patches"), strict=True)
  )
  scales = []
  for name, items in schedules.item_groups(built, c=RELEASED).items():
    yield from case.check(f"{name}_items", items)
    found, grid_found = (
      geometry.measure_items(
        views,
        items,
        video_size=video,
        c=c,
        pixel_stride=params["pixel_stride"],
      )
      for c in (RELEASED, PAPER)
    )
    yield from case.check_counts(f"{name}_count", found.num_found)
    yield from case.check(f"{name}_abs_rel", found.abs_rel)
    yield from case.check(f"{name}_scale_E", found.scale)
    for c, suffix in ((RELEASED, ""), (PAPER, "_paper")):
      value = geometry.group_mean(found.abs_rel, by_pair=c.depth_pairs)
      yield from case.check(f"{name}_abs_rel_mean{suffix}", value)
    items_16 = schedules.feature_positions(len(items), c=RELEASED)
    pairs_16 = schedules.feature_positions(len(items), c=PAPER)
    feature = geometry.measure_features(
      found, items_16, descriptors, c=RELEASED
    )
    fixed = geometry.measure_features(
      grid_found, items_16, descriptors, c=RELEASED
    )
    paper = geometry.measure_features(
      grid_found, pairs_16, descriptors, c=PAPER
    )
    yield from case.check(f"{name}_feature", feature)
    for suffix, values, c in (
      ("", feature, RELEASED),
      ("_gridfix", fixed, RELEASED),
      ("_paper", paper, PAPER),
    ):
      yield from case.check(
        f"{name}_feature_mean{suffix}", geometry.feature_group(values, c=c)
      )
    scales.append(found.scale)
  pooled = geometry.group_mean(np.concatenate(scales), by_pair=False)
  yield from case.check("scale_mean", pooled)
  yield from _registered(case, views, registered, descriptors, video)


def direct_depth(case: Case) -> Iterator[Check]:
  """Co-located depth of a same-pose pair (6.2)."""
  found = depth_agreement.colocated_error(
    jnp.asarray(case.real("first")), jnp.asarray(case.real("revisit"))
  )
  pixels = int(found.count)
  yield from case.check("abs_rel", found.value if pixels else None)
  yield from case.check("valid_pixels", pixels)
  yield from case.check("status", "ok" if pixels else "not_covered")


def branches(case: Case) -> Iterator[Check]:
  """Same-pose or different-pose by the requested poses (6.1), in float64."""
  rows = [
    persistence.pose_difference(first, revisit)
    for first, revisit in zip(
      case.read("first_pose"), case.read("revisit_pose"), strict=True
    )
  ]
  yield from case.check("translation", [t for t, _ in rows], host=True)
  yield from case.check("rotation_deg", [r for _, r in rows], host=True)
  same = [persistence.is_same_pose(t, r, c=RELEASED) for t, r in rows]
  yield from case.check("same_pose", same, host=True)


def direct(case: Case) -> Iterator[Check]:
  """Case values of the direct comparison with several pairs (6.2, 6.5)."""
  frames, usable = case.read("frames"), case.read("frame_available")
  depth = case.real("depth")
  patch, pooled = case.real("patches"), case.real("global_descriptor")
  poses = case.read("requested_poses")
  results = []
  for first, revisit in case.params["pairs"].values():
    available = bool(usable[first] and usable[revisit])
    results.append(
      persistence.compare_direct(
        persistence.Visit(
          frames[first], depth[first], patch[first], pooled[first]
        ),
        persistence.Visit(
          frames[revisit], depth[revisit], patch[revisit], pooled[revisit]
        ),
        same_pose=persistence.is_same_pose(
          *persistence.pose_difference(poses[first], poses[revisit]),
          c=RELEASED,
        ),
        lpips=case.params["lpips_per_pair"],
        c=RELEASED,
      )
      if available
      else persistence.unavailable(
        persistence.is_same_pose(
          *persistence.pose_difference(poses[first], poses[revisit]),
          c=RELEASED,
        )
      )
    )
  for branch, same in (("same_pose", True), ("different_pose", False)):
    mine = [r for r in results if r.same_pose == same]
    yield from case.check(f"{branch}_pairs", len(mine))
    prefix = f"{branch}_"
    for name in case.outputs():
      if not name.startswith(prefix) or name.endswith("_pairs"):
        continue
      metric = name.removeprefix(prefix)
      values = np.array([r.value(metric) for r in mine], np.float64)
      yield from case.check(name, geometry.case_value(values, c=RELEASED))


def _registered(
  case: Case,
  views: Views,
  pairs: NDArray[np.int64],
  descriptors: dict[int, NDArray[Any]],
  video: tuple[int, int],
) -> Iterator[Check]:
  def measure(c: Constants) -> geometry.RevisitMeasures:
    return geometry.measure_revisits(
      views,
      pairs,
      descriptors,
      video_size=video,
      c=c,
      pixel_stride=case.params["pixel_stride"],
      cloud_stride=case.params["cloud_stride"],
    )

  found = measure(RELEASED)
  for field, name in (
    ("feature", "revisit_feature"),
    ("abs_rel", "revisit_depth"),
    ("fscore", "revisit_fscore"),
  ):
    values = getattr(found, field)
    yield from case.check(f"{name}_per_pair", values)
    # The golden `_paper` values differ in 15.11 alone.
    for c, suffix in ((RELEASED, ""), (PAPER, "_paper")):
      yield from case.check(f"{name}{suffix}", geometry.case_value(values, c=c))
  complete = np.all(np.isfinite(found.abs_rel))
  yield from case.check("revisit_status", "ok" if complete else "not_covered")


def _lists(
  case: Case,
  views: Views,
  pairs: NDArray[np.int64],
  stride: int,
  suffix: str,
) -> Iterator[Check]:
  """Full lists of the first item and checksums of all items."""
  sums = []
  for number, (source, target) in enumerate(pairs):
    found = _correspond(views, int(source), int(target), stride=stride)
    if number == 0:
      for name in (
        "source_rows",
        "source_columns",
        "target_rows",
        "target_columns",
        "z",
        "o",
      ):
        yield from case.check(f"item0_{name}{suffix}", found[name])
    sums.append([found[name].sum() for name in list(found)[:6]])
  # One flipped pixel moves one coordinate by one, and may add or drop a point.
  bound = 2.0 * max(views.depth.shape[1:])
  yield from case.check(f"sums{suffix}", sums, bound=bound)


def _correspond(
  views: Views, source: int, target: int, *, stride: int
) -> dict[str, Any]:
  """Correspondences of one item, ordered by target pixel."""
  s, t = views.row(source), views.row(target)
  c = RELEASED
  found = _correspond_kernel(
    jnp.asarray(views.depth[s]),
    jnp.asarray(views.depth[t]),
    jnp.asarray(views.poses_c2w[s]),
    jnp.asarray(views.poses_c2w[t]),
    jnp.asarray(views.intrinsics[s]),
    jnp.asarray(views.intrinsics[t]),
    pixel_stride=stride,
    min_depth=c.min_depth,
    max_depth=c.max_depth,
    z_floor=c.z_floor,
    occlusion_tolerance=c.occlusion_tolerance,
  )
  keep = np.asarray(found.valid)
  order = np.lexsort(
    (np.asarray(found.target_column)[keep], np.asarray(found.target_row)[keep])
  )
  columns = {
    "source_rows": found.source_row,
    "source_columns": found.source_column,
    "target_rows": found.target_row,
    "target_columns": found.target_column,
    "z": found.projected,
    "o": found.observed,
  }
  arrays = {k: np.asarray(v)[keep][order] for k, v in columns.items()}
  return {**arrays, "attempted": int(found.attempted)}


def _views(case: Case, *, frames: NDArray[np.int64] | None = None) -> Views:
  """Recovered geometry of a case, from any of the stored layouts."""
  ids = case.read("frame_ids") if frames is None else frames
  depth = _depth_by_frame(case, ids)
  pose_ids = case.read("pose_frame_ids") if case.has("pose_frame_ids") else ids
  canvas = np.max([d.shape for d in depth.values()], axis=0)
  count = len(ids)
  views = Views(
    np.asarray(ids, np.int64),
    np.full((count, *canvas), np.nan, case.dtype),
    np.tile(canvas, (count, 1)),
    np.tile(np.eye(3, dtype=case.dtype), (count, 1, 1)),
    np.full((count, 4, 4), np.nan, case.dtype),
    np.isin(ids, list(depth)),
    np.isin(ids, pose_ids),
  )
  poses = dict(zip(pose_ids.tolist(), case.real("poses_c2w"), strict=True))
  intrinsics = _intrinsics_by_frame(case, pose_ids)
  for row, frame in enumerate(np.asarray(ids).tolist()):
    if frame in depth:
      height, width = depth[frame].shape
      views.depth[row, :height, :width] = depth[frame]
      views.sizes[row] = height, width
    if frame in poses:
      views.poses_c2w[row] = poses[frame]
      intrinsic, size = intrinsics[frame]
      views.intrinsics[row] = scale_intrinsics(
        intrinsic, from_size=size, to_size=views.sizes[row]
      )
  return views


def _depth_by_frame(
  case: Case, ids: NDArray[np.int64]
) -> dict[int, NDArray[Any]]:
  if case.has("depth_mm"):
    maps = case.read("depth_mm") / 1000.0
  elif case.has("depth"):
    maps = case.read("depth")
  else:
    maps = None
  stored = case.read("depth_frame_ids") if case.has("depth_frame_ids") else ids
  if maps is not None:
    maps = maps.astype(case.dtype)
    return dict(zip(np.asarray(stored).tolist(), maps, strict=True))
  return {int(f): case.real(f"depth_{int(f)}") for f in stored}


def _intrinsics_by_frame(
  case: Case, ids: NDArray[np.int64]
) -> dict[int, tuple[NDArray[Any], tuple[int, int]]]:
  """(K, size it belongs to) of every frame with a pose."""
  if case.has("case_K"):
    size = (case.params["case_height"], case.params["case_width"])
    matrices = np.broadcast_to(case.read("case_K"), (len(ids), 3, 3))
  else:
    size = (case.params["video_height"], case.params["video_width"])
    stored = case.read("K_video_pixels")
    matrices = np.broadcast_to(stored, (len(ids), 3, 3))
  return {
    int(f): (k, size) for f, k in zip(ids.tolist(), matrices, strict=True)
  }


def _suffixes(case: Case, name: str) -> list[str]:
  """Endings of an output that exists for several strides or variants."""
  return sorted(
    n.removeprefix(name)
    for n in case.arrays
    if n == name or n.startswith((f"{name}_stride", f"{name}_paper"))
  )


def _status(values: NDArray[np.float64]) -> str:
  return "ok" if np.any(np.isfinite(values)) else "not_covered"


def _numbers(values: list[float | None]) -> list[float]:
  return [np.nan if value is None else value for value in values]


_correspond_kernel = jax.jit(
  correspondence.correspond,
  static_argnames=(
    "pixel_stride",
    "min_depth",
    "max_depth",
    "z_floor",
    "occlusion_tolerance",
  ),
)
