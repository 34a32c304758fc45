# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Checks of the unit vectors that are arrays: maps, masks, seeds."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping
from typing import Any

import jax
import numpy as np

from perception import seeding
from protocols.common.conformance import Check
from protocols.pdi import anchors, guard, index, lifting, measure, rigidity
from protocols.pdi import clip as clips
from protocols.pdi.clip import ClipArrays
from protocols.pdi.constants import RELEASED
from protocols.pdi.golden import Comparer, Entries
from protocols.pdi.golden_stage import PAPER_ALL_ANCHORS, pair_checks
from protocols.pdi.lifting import PointSource


def checks(
  vector: Entries, arrays: Entries, *, precision: str
) -> Iterator[Check] | None:
  """Checks of an array vector, chosen by its arrays; None: unknown form."""
  names = arrays.unread()
  if "in_gray" in arrays:
    return _seeds(vector, arrays, precision)
  if "in_pointmaps" in arrays and "in_h" in arrays:
    return _rigidity(vector, arrays, precision)
  if "in_resize_source" in arrays:
    return _masks(vector, arrays, precision)
  if "in_K" in arrays and "in_tracks" in arrays:
    return _lift(vector, arrays, precision)
  if any(name.endswith("_P") for name in names):
    return _ground(vector, arrays, precision)
  if any(re.fullmatch(r"in_.+_visibility", name) for name in names):
    return _filter(vector, arrays, precision)
  return None


def _rigidity(
  vector: Entries, arrays: Entries, precision: str
) -> Iterator[Check]:
  """Every branch of the dispatcher (sections 5.1 to 5.4)."""
  tolerance = vector.take("tolerance")["official"]
  clip = ClipArrays(
    masks=arrays.take("in_masks"),
    tracks=arrays.take("in_tracks"),
    visibility=arrays.take("in_visibility"),
    fps=0.0,
    pointmaps=arrays.take("in_pointmaps"),
    tracks_filtered=True,
  )
  height = arrays.take("in_h")
  tolerances = {"rigid": tolerance, "rigid_series": tolerance}
  for branch, fields in vector.take("official").items():
    expected = Entries(fields, f"{vector.name}/{branch}")
    spread = expected.take("tie_spread", 0.0)
    own = {kind: value + spread for kind, value in tolerances.items()}
    comparer = Comparer("released", precision, own)
    found = _branch(clip, height, branch, comparer, paper=False)
    yield comparer.number(
      f"{expected.name}/E", found.value, expected.take("E"), "rigid"
    )
    yield comparer.same(
      f"{expected.name}/strategy", found.strategy, expected.take("strategy")
    )
    if "paper" in expected:
      other = dataclasses.replace(comparer, variant="paper")
      paper = _branch(clip, height, branch, other, paper=True)
      yield other.number(
        f"{expected.name}/paper",
        paper.rigid_2d,
        expected.take("paper"),
        "rigid",
      )
    yield from _branch_arrays(arrays, branch, found, comparer)
    yield from expected.leftovers(precision=precision)


def _branch(
  clip: ClipArrays,
  height: np.ndarray,
  branch: str,
  comparer: Comparer,
  *,
  paper: bool,
) -> rigidity.Rigidity:
  """Runs the dispatcher without what the name of the branch takes away."""
  constants = PAPER_ALL_ANCHORS if paper else RELEASED
  absent = branch.removesuffix("_absent").split("_and_")
  edge_mask = None
  if branch == "no_masks_for_distance":
    assert clip.pointmaps is not None
    edge_mask = np.any(clip.pointmaps[0] != 0, axis=-1)
  elif branch == "mask0_empty":
    masks = clip.masks.copy()
    masks[0] = False
    clip = dataclasses.replace(clip, masks=masks)
  elif branch != "all" and not branch.endswith("_absent"):
    return rigidity.Rigidity(-1, None, np.zeros(0))  # unknown: fails below
  if {"tracks", "visibility"} & set(absent):
    clip = dataclasses.replace(clip, tracks=None, visibility=None)
  heights = None if "h" in absent else height
  # Heights matter only without point maps, so that branch has none either.
  use_maps = not {"pointmaps", "h"} & set(absent)
  with comparer.x64():
    source = PointSource(clip, constants, comparer.dtype)
    usable = use_maps and measure.examine(source, constants).supports_pairs
    return rigidity.measure_rigidity(
      clip,
      source=source if usable else None,
      heights=heights,
      constants=constants,
      dtype=comparer.dtype,
      edge_mask=edge_mask,
    )


def _branch_arrays(
  arrays: Entries,
  branch: str,
  found: rigidity.Rigidity,
  comparer: Comparer,
) -> Iterator[Check]:
  prefix = f"out_{branch}_"
  detail: dict[str, tuple[Any, str]] = {
    "series": (found.series, "rigid_series"),
    "candidates": (found.detail.get("candidates"), "exact"),
    "grad_at_anchor": (found.detail.get("grad_at_anchor"), "position"),
    "edge_dist_at_anchor": (
      found.detail.get("edge_dist_at_anchor"),
      "position",
    ),
    "grad_threshold": (found.gradient_threshold, "position"),
  }
  for key, (value, kind) in detail.items():
    if prefix + key in arrays:
      yield comparer.number(
        f"{arrays.name}/{prefix}{key}",
        value,
        arrays.take(prefix + key),
        kind,
        relative=kind != "exact",
      )
  yield from pair_checks(
    arrays, found.detail, comparer, prefix=prefix, compare_values=True
  )
  if found.strategy == 3 and "out_pairs_2d" in arrays:
    yield comparer.same(
      f"{arrays.name}/out_pairs_2d ({branch})",
      found.detail["pairs_2d"],
      arrays.take("out_pairs_2d"),
    )


def _ground(
  vector: Entries, arrays: Entries, precision: str
) -> Iterator[Check]:
  tolerance = vector.take("tolerance")["official"]
  comparer = Comparer("released", precision, {"ground": tolerance})
  for fields in vector.take("official"):
    name = fields["name"]
    case = Entries(fields, f"{vector.name}/{name}")
    case.take("name")
    clip = ClipArrays(
      masks=arrays.take(f"{name}_mask"),
      tracks=None,
      visibility=None,
      fps=0.0,
      pointmaps=arrays.take(f"{name}_P"),
    )
    with comparer.x64():
      source = PointSource(clip, RELEASED, comparer.dtype)
      found = guard.check_ground(source, RELEASED)
    yield comparer.number(
      f"{case.name}/ground_rmse", found.rmse, case.take("ground_rmse"), "ground"
    )
    for key, value in (
      ("ground_pass", found.passed),
      ("n_points", found.num_points),
    ):
      yield comparer.same(f"{case.name}/{key}", value, case.take(key))
    if f"{name}_subset" in arrays:
      subset = guard.ground_subset(found.num_points, RELEASED)
      yield comparer.same(
        f"{case.name}/subset", subset, arrays.take(f"{name}_subset")
      )
    yield from case.leftovers(precision=precision)


def _masks(vector: Entries, arrays: Entries, precision: str) -> Iterator[Check]:
  """Heights, nearest resize, depth series in three storage types."""
  tolerances = dict(vector.take("tolerance"))
  official = Entries(vector.take("official"), vector.name)
  comparer = Comparer("released", precision, tolerances)
  masks = arrays.take("in_masks")
  sets = {"": masks, "first_empty_": arrays.take("in_masks_first_empty")}
  for prefix, stack in sets.items():
    found = clips.mask_statistics(stack, RELEASED)
    for key, value, kind in (
      ("h", found.height, "h"),
      ("x_center", found.x_center, "position"),
      ("truncated", found.truncated, "exact"),
    ):
      name = f"out_{prefix}{key}"
      yield comparer.number(
        f"{arrays.name}/{name}", value, arrays.take(name), kind
      )
  picture = arrays.take("in_resize_source")
  for name in [n for n in arrays.unread() if n.startswith("out_resize_")]:
    rows, columns = (int(n) for n in name.split("_")[-1].split("x"))
    resized = clips.resize_nearest(picture, rows, columns)
    yield comparer.same(f"{arrays.name}/{name}", resized, arrays.take(name))
  height = clips.mask_statistics(masks, RELEASED).height
  for name in [n for n in arrays.unread() if n.startswith("in_depth_")]:
    kind = name.removeprefix("in_depth_")
    depth = arrays.take(name)
    yield from _depth_series(
      arrays, official, masks, height, depth, kind, comparer
    )
  yield from official.leftovers(precision=precision)


def _depth_series(
  arrays: Entries,
  official: Entries,
  masks: np.ndarray,
  height: np.ndarray,
  depth: np.ndarray,
  kind: str,
  comparer: Comparer,
) -> Iterator[Check]:
  frames = len(masks)
  clip = ClipArrays(
    masks=masks,
    tracks=None,
    visibility=None,
    fps=0.0,
    depth=depth,
    intrinsics=np.eye(3),
    c2w=np.tile(np.eye(4), (frames, 1, 1)),
  )
  with comparer.x64():
    source = PointSource(clip, RELEASED, comparer.dtype)
    points = measure.examine(source, RELEASED).points
    assert points is not None
    raw = measure.depth_under_mask(clip, points)
    series = clips.normalise_depth(raw, RELEASED)
    scale = measure.measure_scale(
      height, series, np.zeros(frames, int), RELEASED, dtype=comparer.dtype
    )
  bound = float(comparer.tolerances[f"Z_{kind}"])
  if comparer.precision == "float32":
    bound = max(bound, 1e-6)
  loose = max(comparer.tolerance(f"scale_{kind}"), comparer.tolerance("scale"))
  # The released series keep the storage type; these tolerances cover it.
  own = Comparer(
    comparer.variant,
    comparer.precision,
    {"Z": bound, "E": max(loose, 1e-6, 2 * bound)},
  )
  for name, value in (
    (f"out_Z_raw_{kind}", raw),
    (f"out_Z_{kind}", series),
    (f"out_scale_series_{kind}", scale.series),
  ):
    sort = "E" if "series" in name else "Z"
    yield own.number(
      f"{arrays.name}/{name}", value, arrays.take(name), sort, relative=True
    )
  key = f"E_scale_{kind}"
  yield own.number(
    f"{official.name}/{key}",
    index.reduce_series(scale.series),
    official.take(key),
    "E",
    relative=comparer.precision == "float32",
  )


def _lift(vector: Entries, arrays: Entries, precision: str) -> Iterator[Check]:
  """Depth to world points and anchor indexing (sections 2.4, 2.7)."""
  tolerance = vector.take("tolerance")["official"]
  comparer = Comparer("released", precision, {"lift": tolerance})
  for number, entry in enumerate(vector.take("intrinsics")):
    fields = Entries(entry, f"{vector.name}/intrinsics/{number}")
    found = list(clips.read_intrinsics(fields.take("K"), RELEASED))
    yield comparer.same(fields.name, found, fields.take("result"))
    yield from fields.leftovers(precision=precision)
  poses, matrix = arrays.take("in_c2w"), arrays.take("in_K")
  tracks = arrays.take("in_tracks")
  for name in [n for n in arrays.unread() if n.startswith("in_depth_")]:
    kind = name.removeprefix("in_depth_")
    clip = ClipArrays(
      masks=np.ones((len(poses), 1, 1), bool),
      tracks=tracks,
      visibility=np.ones(tracks.shape[:2], bool),
      fps=0.0,
      depth=arrays.take(name),
      intrinsics=matrix,
      c2w=poses,
      tracks_filtered=True,
    )
    source = PointSource(clip, RELEASED, comparer.dtype)
    assert clip.depth is not None
    rows, columns = (slice(0, size) for size in clip.depth.shape[1:])
    lifted = [source.window(t, rows, columns) for t in range(len(poses))]
    yield comparer.number(
      f"{arrays.name}/out_pointmaps_{kind}",
      np.stack(lifted),
      arrays.take(f"out_pointmaps_{kind}"),
      "lift",
    )
  # `out_lifted` uses the last map in the file, the float16 one.
  yield from _anchor_points(arrays, source, comparer)


def _anchor_points(
  arrays: Entries, source: PointSource, comparer: Comparer
) -> Iterator[Check]:
  clip = source.clip
  kept = anchors.select_anchors(clip, RELEASED)
  assert kept is not None
  assert clip.depth is not None
  edge = np.ones(clip.depth.shape[1:], bool)
  found = anchors.locate(clip, kept, source, edge, RELEASED)
  width = clip.depth.shape[2]
  for key, value in (("u", found.index % width), ("v", found.index // width)):
    name = f"out_index_{key}"
    yield comparer.same(f"{arrays.name}/{name}", value, arrays.take(name))
  frames = list(range(len(found.index)))
  with comparer.x64():
    samples = source.samples(frames, list(found.index), found.index.shape[1])
    views = source.views(frames)
    points = jax.vmap(lifting.lift, in_axes=(0, 0, 0, None))(
      jax.tree.map(jax.numpy.asarray, samples),
      *(jax.numpy.asarray(part) for part in views),
    )
  yield comparer.number(
    f"{arrays.name}/out_lifted", points, arrays.take("out_lifted"), "lift"
  )


def _filter(
  vector: Entries, arrays: Entries, precision: str
) -> Iterator[Check]:
  vector.take("tolerance")
  comparer = Comparer("-", precision, {})
  official = Entries(vector.take("official"), vector.name)
  for name, kept in official.take("kept").items():
    found = clips.filter_tracks(
      arrays.take(f"in_{name}_tracks"),
      arrays.take(f"in_{name}_visibility"),
      RELEASED,
    )
    expected = arrays.take(f"out_{name}_keep")
    yield comparer.same(f"{vector.name}/{name}", found, expected)
    yield comparer.same(f"{vector.name}/{name} kept", int(found.sum()), kept)
  yield from official.leftovers(precision=precision)


def _seeds(vector: Entries, arrays: Entries, precision: str) -> Iterator[Check]:
  """Anchor seeding on real frames (section 2.5)."""
  # The recorded points are exact with OpenCV 4.11 and 5.0; another version is
  # compared as point sets within the wider of the two tolerances.
  tolerance = max(vector.take("tolerance").values())
  comparer = Comparer("-", precision, {"seed": tolerance})
  gray = arrays.take("in_gray")
  for name, fields in vector.take("official").items():
    expected = Entries(fields, f"{vector.name}/{name}")
    left, top, right, bottom = expected.take("box_xyxy_half_open")
    mask = np.zeros(gray.shape, bool)
    mask[top:bottom, left:right] = True
    limit = seeding.FOREGROUND_COUNT
    sift = seeding.sift_points(gray, mask, count=limit)
    # Step 2 runs below half of the target alone; step 3 below two points.
    missing = limit - len(sift) if len(sift) < limit // 2 else 0
    corners = seeding.shi_tomasi_points(gray, mask, count=missing)
    ours = {
      "fg": seeding.seed_anchors(gray, mask),
      "bg": seeding.seed_background(gray, mask),
      "sift": sift,
      "grid": seeding.grid_points(mask),
    }
    outside = seeding.shi_tomasi_points(
      gray, ~mask, count=seeding.BACKGROUND_COUNT
    )
    counts: Mapping[str, Any] = {
      "n_fg": len(ours["fg"]),
      "n_fg_distinct": len(np.unique(ours["fg"], axis=0)),
      "n_sift": len(sift),
      "n_shi_tomasi": len(corners),
      "used_grid": len(sift) + len(corners) < 2,
      "n_bg": len(ours["bg"]),
      "bg_used_grid": len(outside) < 2,
    }
    for key, value in counts.items():
      yield comparer.same(f"{expected.name}/{key}", value, expected.take(key))
    for key, points in ours.items():
      stored = f"out_{name}_{key}"
      yield comparer.number(
        f"{arrays.name}/{stored}",
        _sorted_rows(points),
        _sorted_rows(arrays.take(stored)),
        "seed",
      )
    yield from expected.leftovers(precision=precision)


def _sorted_rows(points: np.ndarray) -> np.ndarray:
  """[N, 2] points in an order that does not depend on the detector's."""
  return points[np.lexsort(points.T)]
