# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Times the geometry set of one short case against NumPy and SciPy.

The set is what T4 and T5 need of one 357-frame video without reconstruction:
48 short and 16 medium pairs in both directions on a 504 x 280 grid at stride 4
(correspondences, depth error, regional scale), features of 32 items, the
surface F-score of one pair, and control. The baseline
(`benchmark_baseline`) is straightforward vectorised float64 code on the same
arrays in the same process. One row shows the whole set, others its parts.

What bounds it on a CPU: 136 padded items of 8,820 samples each, and for every
sample two z-buffer updates, four look-ups, and nine counting updates of the
medians. XLA's CPU backend runs scatters on one core, update after update, and
clears two frame-sized buffers for each item. NumPy's sorts and look-ups have
the same bound, so a baseline without Python loops over pixels is beaten by a
single-digit factor only. (`--workers` scores a case on each core.)
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from protocols.common import timing
from protocols.orbia import benchmark_baseline as plain
from protocols.orbia import control, geometry, schedules
from protocols.orbia import geometry_programs as programs
from protocols.orbia.constants import RELEASED, Constants
from protocols.orbia.raycast_paths import path_of
from protocols.orbia.views import Views, canvas

_GRID, _QUICK_GRID = (280, 504), (70, 126)
_VIDEO = (720, 1280)
_CHANNELS = 384
_PAIR = ((131, 225),)
_BASELINE = "NumPy/SciPy float64, one process"
# Published frame counts: (cases, registered pairs of each case).
PUBLISHED = {357: (480, 1), 961: (240, 3)}


class Scene(NamedTuple):
  """Inputs of one case."""

  views: Views
  groups: dict[str, NDArray[np.int64]]
  pairs: NDArray[np.int64]
  descriptors: dict[int, NDArray[np.float32]]
  requested: NDArray[np.float64]
  plan: NDArray[np.int64]
  recovered: NDArray[np.float64]


def run(*, quick: bool) -> list[timing.Row]:
  """Measures the suite.

  Args:
    quick: a small grid and few repeats, to see that it runs.

  Returns:
    Rows; the first is the whole set.
  """
  c = RELEASED
  grid = _QUICK_GRID if quick else _GRID
  repeats = 1 if quick else 5
  scene = make_scene(357, grid=grid, seed=1, c=c)
  parts: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "correspondences, depth error, regional scale of 129 items": (
      lambda: _items(scene, c),
      lambda: plain.items(scene.views, _all_items(scene), c),
    ),
    "features of 33 items": (
      _feature_work(scene, c),
      lambda: plain.features(
        scene.views, _chosen(scene, c), scene.descriptors, _VIDEO, c
      ),
    ),
    "surface F-score of one pair": (
      lambda: geometry.measure_clouds(scene.views, scene.pairs, c=c),
      lambda: plain.fscore(scene.views, scene.pairs[0], c),
    ),
    "control": (
      lambda: _control(scene, c),
      lambda: plain.control(scene.requested, scene.plan, scene.recovered, c),
    ),
  }
  rows = []
  cold = warm = slow = 0.0
  for name, (ours, theirs) in parts.items():
    first, best = timing.measure(ours, repeats=repeats)
    base = _best(theirs, repeats=1 if quick else 3)
    rows.append(timing.Row(name, first, best, base, _BASELINE))
    cold, warm, slow = cold + first, warm + best, slow + base
  whole = timing.Row(
    f"geometry set of one short case, {grid[1]} x {grid[0]}",
    cold,
    warm,
    slow,
    _BASELINE,
    "128 items and 1 pair; see the note of the module for what bounds it",
  )
  return [whole, *rows, _long_row(grid, c), _trace_row(grid, c)]


def make_scene(
  frame_count: int, *, grid: tuple[int, int], seed: int, c: Constants
) -> Scene:
  """A room of smooth random relief along a lateral path.

  Args:
    frame_count: 357 or 961.
    grid: (h, w) of the depth.
    seed: draws the relief and the descriptors.
    c: constants.
  """
  rng = np.random.default_rng(seed)
  turnaround = frame_count // 2
  path = path_of(
    "lateral_out_and_back", frame_count=frame_count, turnaround=turnaround
  )
  first, last = _PAIR[0][0], frame_count - 1 - _PAIR[0][0]
  plan = schedules.sampling_plan(
    frame_count, [0, 83, turnaround], [first, last], c=c
  )
  groups = schedules.item_groups(plan, c=c)
  pairs = np.array([[first, last]])
  frames = geometry.plan_frames(groups, pairs)
  focal = 0.8 * grid[1]
  k = np.array(
    [[focal, 0, grid[1] / 2], [0, focal, grid[0] / 2], [0, 0, 1]], np.float32
  )
  waves = rng.uniform(0.5, 2.0, (4, 3))
  count = len(frames)
  depth = canvas((programs.bucket(count), *grid), np.float32)
  for place, frame in enumerate(frames):
    depth[place] = _relief(path[frame], k, grid, waves)
  views = Views(
    frames,
    depth,
    np.tile(grid, (count, 1)),
    np.tile(k, (count, 1, 1)),
    path[frames].astype(np.float32),
    np.ones(count, bool),
    np.ones(count, bool),
  )
  wanted = geometry.feature_frames(groups, pairs, c=c)
  descriptors = {
    int(f): rng.normal(size=(c.patch_grid**2, _CHANNELS)).astype(np.float32)
    for f in wanted
  }
  return Scene(views, groups, pairs, descriptors, path, plan, path[plan])


def _relief(
  pose: NDArray[np.float64],
  k: NDArray[np.float32],
  grid: tuple[int, int],
  waves: NDArray[np.float64],
) -> NDArray[np.float64]:
  """Depth of the wall z = 6 + relief(x, y), by fixed-point iteration."""
  y, x = np.indices(grid)
  rays = np.stack([(x - k[0, 2]) / k[0, 0], (y - k[1, 2]) / k[1, 1]], -1)
  rays = np.concatenate([rays, np.ones((*grid, 1))], -1) @ pose[:3, :3].T
  depth = np.full(grid, 6.0)
  for _ in range(6):
    points = pose[:3, 3] + depth[..., None] * rays
    wall = 6.0 + sum(
      0.15 * np.sin(a * points[..., 0] + b * points[..., 1] + s)
      for a, b, s in waves
    )
    depth = (wall - pose[2, 3]) / rays[..., 2]
  return depth


def _all_items(scene: Scene) -> NDArray[np.int64]:
  return np.concatenate([*scene.groups.values(), scene.pairs])


def _chosen(scene: Scene, c: Constants) -> NDArray[np.int64]:
  parts = [
    items[schedules.feature_positions(len(items), c=c)]
    for items in scene.groups.values()
  ]
  return np.concatenate([*parts, scene.pairs])


def _items(scene: Scene, c: Constants) -> geometry.ItemMeasures:
  return geometry.measure_items(
    scene.views, _all_items(scene), video_size=_VIDEO, c=c
  )


def _feature_work(scene: Scene, c: Constants) -> Callable[[], Any]:
  """Features of ready correspondences; the baseline's are ready as well."""
  items = _chosen(scene, c)
  found = geometry.measure_items(scene.views, items, video_size=_VIDEO, c=c)
  every = np.arange(len(items))
  return lambda: geometry.measure_features(found, every, scene.descriptors, c=c)


def _control(scene: Scene, c: Constants) -> control.Control:
  return control.measure_control(
    scene.requested,
    scene.plan,
    scene.recovered,
    template="lateral_out_and_back",
    group="world",
    frame_count=len(scene.requested),
    fps=c.fps,
    c=c,
  )


def _best(work: Callable[[], Any], *, repeats: int) -> float:
  times = []
  for _ in range(repeats):
    start = time.perf_counter()
    work()
    times.append(time.perf_counter() - start)
  return min(times)


def _long_row(grid: tuple[int, int], c: Constants) -> timing.Row:
  """Memory of a 961-frame case: all its sampled depth maps are held."""
  scene = make_scene(961, grid=grid, seed=2, c=c)
  # A real run holds the whole sampling plan, not only the frames of items.
  held = np.zeros((len(scene.plan), *grid), np.float32)
  held[:] = 1.0
  cold, warm = timing.measure(lambda: _items(scene, c), repeats=1)
  peak = timing.peak_memory_bytes() / 2**30
  return timing.Row(
    "items of one 961-frame case",
    cold,
    warm,
    note=f"{len(held)} depth maps held; peak of the process {peak:.2f} GiB",
  )


def _trace_row(grid: tuple[int, int], c: Constants) -> timing.Row:
  """Compilations over the 720 published cases, with drawn event frames.

  The shapes of all 720 are counted; one case of every shape is run.
  """
  start = time.perf_counter()
  shapes = published_shapes(seed=0, c=c)
  before = programs.TRACES["items"]
  for frame_count in PUBLISHED:
    _items(make_scene(frame_count, grid=grid, seed=frame_count, c=c), c)
  traces = programs.TRACES["items"] - before
  if len(shapes) > 2 or traces > 2:
    raise AssertionError(f"{len(shapes)} shapes, {traces} compilations")
  return timing.Row(
    "new compilations of the item kernel over the 720 published cases",
    None,
    time.perf_counter() - start,
    note=f"{traces} new, {len(shapes)} padded shape(s) in all; frames and"
    f" items are padded to {programs.BUCKETS}",
  )


def published_shapes(*, seed: int, c: Constants) -> set[tuple[int, int]]:
  """Padded (frames, items) of 720 cases with the published frame counts.

  Args:
    seed: draws the event frames of each case.
    c: constants.
  """
  rng = np.random.default_rng(seed)
  shapes = set()
  for frame_count, (cases, pair_count) in PUBLISHED.items():
    for _ in range(cases):
      inner = rng.choice(
        np.arange(1, frame_count - 1), 2 * pair_count + 3, replace=False
      )
      inner.sort()
      half = inner[: 2 * pair_count]
      pairs = np.stack([half[:pair_count], half[pair_count:]], axis=1)
      plan = schedules.sampling_plan(
        frame_count, inner.tolist(), half.tolist(), c=c
      )
      groups = schedules.item_groups(plan, c=c)
      frames = geometry.plan_frames(groups, pairs)
      items = sum(len(part) for part in groups.values()) + len(pairs)
      shapes.add((programs.bucket(len(frames)), programs.bucket(items)))
  return shapes
