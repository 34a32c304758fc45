# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Plain NumPy and SciPy versions of the geometry set, in float64.

Written as one would write them for clarity: arrays of all samples, no loop
over pixels, `np.unique`, `np.median` and a KD-tree where they fit. They are
the yardstick of `protocols.orbia.benchmark` and an independent oracle in
tests; the conventions are those of the kernels. Sections refer to the
project's Orbia specification.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from scipy.spatial.transform import Rotation

from protocols.orbia.constants import Constants
from protocols.orbia.views import Views

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Matches(NamedTuple):
  """Correspondences of one item, in target-pixel order."""

  source_row: Ints
  source_column: Ints
  target_row: Ints
  target_column: Ints
  z: Floats
  o: Floats


def correspondences(
  views: Views, source: int, target: int, c: Constants
) -> Matches:
  """Section 7.2."""
  depth: Floats
  other: Floats
  s, t = views.row(source), views.row(target)
  depth = views.depth[s].astype(np.float64)
  other = views.depth[t].astype(np.float64)
  k_s = views.intrinsics[s].astype(np.float64)
  k_t = views.intrinsics[t].astype(np.float64)
  row, column = np.meshgrid(
    np.arange(0, depth.shape[0], c.pixel_stride),
    np.arange(0, depth.shape[1], c.pixel_stride),
    indexing="ij",
  )
  d = depth[row, column]
  ok = np.isfinite(d) & (d >= c.min_depth) & (d <= c.max_depth)
  row, column, d = row[ok], column[ok], d[ok]
  pixels = np.stack([column, row, np.ones_like(row)]).astype(np.float64)
  points = np.linalg.inv(k_s) @ pixels * d
  move = np.linalg.inv(views.poses_c2w[t].astype(np.float64))
  move = move @ views.poses_c2w[s].astype(np.float64)
  points = move[:3, :3] @ points + move[:3, 3:]
  front = points[2] > c.z_floor
  row, column, points = row[front], column[front], points[:, front]
  projected = k_t @ points
  x = np.rint(projected[0] / projected[2]).astype(np.int64)
  y = np.rint(projected[1] / projected[2]).astype(np.int64)
  inside = (x >= 0) & (x < other.shape[1]) & (y >= 0) & (y < other.shape[0])
  row, column, x, y = row[inside], column[inside], x[inside], y[inside]
  z = points[2, inside]
  flat = y * other.shape[1] + x
  order = np.lexsort((np.arange(len(z)), z, flat))
  _, first = np.unique(flat[order], return_index=True)
  keep = order[first]
  row, column, x, y, z = row[keep], column[keep], x[keep], y[keep], z[keep]
  o = other[y, x]
  seen = np.isfinite(o) & (o >= c.min_depth) & (o <= c.max_depth)
  seen &= z <= o * (1.0 + c.occlusion_tolerance)
  return Matches(row[seen], column[seen], y[seen], x[seen], z[seen], o[seen])


def depth_error(found: Matches, c: Constants) -> float:
  """Section 7.3; NaN without correspondences."""
  if not len(found.z):
    return float("nan")
  below = np.maximum(found.o, c.z_floor)
  return float(np.mean(np.abs(found.z - found.o) / below))


def scale_dispersion(
  found: Matches, size: Sequence[int], c: Constants
) -> float:
  """Section 7.4; NaN with fewer than two cells."""
  ratio = found.o / np.maximum(found.z, c.z_floor)
  logs = []
  for i in range(c.scale_grid):
    rows = found.target_row >= i * size[0] / c.scale_grid
    rows &= found.target_row < (i + 1) * size[0] / c.scale_grid
    for j in range(c.scale_grid):
      cell = rows & (found.target_column >= j * size[1] / c.scale_grid)
      cell &= found.target_column < (j + 1) * size[1] / c.scale_grid
      if np.count_nonzero(cell) >= c.scale_support:
        logs.append(np.log(max(np.median(ratio[cell]), c.z_floor)))
  if len(logs) < c.scale_cells:
    return float("nan")
  values = np.array(logs)
  return float(np.median(np.abs(values - np.median(values))))


def items(
  views: Views, pairs: Ints, c: Constants
) -> tuple[list[float], list[float], list[int]]:
  """Depth error, scale dispersion and count of directional items."""
  errors, scales, counts = [], [], []
  for source, target in pairs:
    found = correspondences(views, int(source), int(target), c)
    errors.append(depth_error(found, c))
    size = views.sizes[views.row(int(target))]
    scales.append(scale_dispersion(found, size, c))
    counts.append(len(found.z))
  return errors, scales, counts


def patch_similarity(
  found: Matches,
  source: NDArray[Any],
  target: NDArray[Any],
  sizes: Sequence[Sequence[int]],
  c: Constants,
) -> float:
  """Section 7.5; NaN without correspondences."""
  if not len(found.z):
    return float("nan")
  grid = c.patch_grid
  places = []
  for row, column, size in (
    (found.source_row, found.source_column, sizes[0]),
    (found.target_row, found.target_column, sizes[1]),
  ):
    down = np.minimum(row * grid // size[0], grid - 1)
    across = np.minimum(column * grid // size[1], grid - 1)
    places.append(down * grid + across)
  pairs = np.unique(np.stack(places, axis=1), axis=0)
  a, b = source[pairs[:, 0]], target[pairs[:, 1]]
  norms = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
  product = np.sum(a * b, axis=1)
  cosine = np.where(norms > c.cosine_floor, product / norms, 0.0)
  return float(np.mean(cosine))


def features(
  views: Views,
  pairs: Ints,
  descriptors: Mapping[int, NDArray[Any]],
  video_size: Sequence[int],
  c: Constants,
) -> list[float]:
  """Features of directional items, correspondences included."""
  values = []
  for source, target in pairs:
    found = correspondences(views, int(source), int(target), c)
    values.append(
      patch_similarity(
        found,
        descriptors[int(source)].astype(np.float64),
        descriptors[int(target)].astype(np.float64),
        (video_size, video_size),
        c,
      )
    )
  return values


def fscore(views: Views, pair: Ints, c: Constants) -> float:
  """Section 6.4 with a KD-tree; NaN if a cloud is empty."""
  clouds, medians = [], []
  for frame in pair:
    row = views.row(int(frame))
    depth = views.depth[row].astype(np.float64)
    step = c.cloud_stride
    y, x = np.meshgrid(
      np.arange(0, depth.shape[0], step),
      np.arange(0, depth.shape[1], step),
      indexing="ij",
    )
    d = depth[y, x]
    ok = np.isfinite(d) & (d >= c.min_depth) & (d <= c.max_depth)
    pixels = np.stack([x[ok], y[ok], np.ones(ok.sum())])
    k = views.intrinsics[row].astype(np.float64)
    pose = views.poses_c2w[row].astype(np.float64)
    points = np.linalg.inv(k) @ pixels * d[ok]
    clouds.append((pose[:3, :3] @ points + pose[:3, 3:]).T)
    if ok.any():
      medians.append(float(np.median(d[ok])))
  if min(len(cloud) for cloud in clouds) == 0:
    return float("nan")
  tau = max(c.cloud_minimum, c.cloud_relative * float(np.mean(medians)))
  kept = []
  for cloud in clouds:
    key = np.floor(cloud / (tau / 2)).astype(np.int64)
    _, first = np.unique(key, axis=0, return_index=True)
    kept.append(cloud[np.sort(first)])
  precision = float(np.mean(cKDTree(kept[1]).query(kept[0])[0] <= tau))
  recall = float(np.mean(cKDTree(kept[0]).query(kept[1])[0] <= tau))
  return float(2 * precision * recall / max(precision + recall, 1e-12))


def control(
  requested: Floats, frames: Ints, recovered: Floats, c: Constants
) -> tuple[float, float, float, float]:
  """Section 3 at 16 frames per second: E_trans, E_rot, Move, Look."""
  asked = np.linalg.inv(requested[0]) @ requested[frames]
  found = np.linalg.inv(recovered[0]) @ recovered
  primary = frames % c.frame_stride == 0
  q, p = found[primary, :3, 3], asked[primary, :3, 3]
  power = float(np.sum(q * q))
  scale = 1.0
  if power > c.scale_denominator:
    scale = max(0.0, float(np.sum(q * p)) / power)
  steps = np.diff(requested[:, :3, 3], axis=0)
  length = max(c.path_floor, float(np.linalg.norm(steps, axis=1).sum()))
  translation = np.linalg.norm(scale * q - p, axis=1) / length
  between = np.swapaxes(found[primary, :3, :3], 1, 2) @ asked[primary, :3, :3]
  rotation = np.degrees(Rotation.from_matrix(between).magnitude())
  move = _accuracy(frames, asked, found, c.move_step_16fps, _moves, c)
  look = _accuracy(frames, asked, found, c.look_step_16fps, _looks, c)
  return float(translation.mean()), float(rotation.mean()), move, look


def _accuracy(
  frames: Ints,
  asked: Floats,
  found: Floats,
  step: int,
  labels: Any,
  c: Constants,
) -> float:
  kept = frames % step == 0
  wanted, given = labels(asked[kept], c), labels(found[kept], c)
  active = (np.diff(frames[kept]) == step) & wanted.any(axis=1)
  equal = (wanted == given).all(axis=1)
  return float(100.0 * equal[active].mean()) if active.any() else float("nan")


def _moves(poses: Floats, c: Constants) -> NDArray[np.bool_]:
  delta = np.diff(poses[:, :3, 3], axis=0)
  speed = np.linalg.norm(delta, axis=1)
  local = np.einsum("nji,nj->ni", poses[:-1, :3, :3], delta)
  unit = local / np.maximum(speed, c.direction_floor)[:, None]
  flags = np.stack(
    [
      unit[:, 2] > c.move_threshold,
      unit[:, 0] < -c.move_threshold,
      unit[:, 2] < -c.move_threshold,
      unit[:, 0] > c.move_threshold,
    ],
    axis=1,
  )
  return flags & (speed > c.move_active * speed.mean())[:, None]


def _looks(poses: Floats, c: Constants) -> NDArray[np.bool_]:
  turn = np.swapaxes(poses[:-1, :3, :3], 1, 2) @ poses[1:, :3, :3]
  vector = np.degrees(Rotation.from_matrix(turn).as_rotvec())
  limit = c.look_threshold_deg
  return np.stack(
    [
      vector[:, 0] > limit,
      vector[:, 1] < -limit,
      vector[:, 0] < -limit,
      vector[:, 1] > limit,
    ],
    axis=1,
  )
