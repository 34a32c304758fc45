# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""The metric stage in plain NumPy float64, as one would write it first.

Baseline of the benchmark and oracle of the tests: the released formulas in the
order of the specification, whole point maps, loops over frames, no shared
code with `measure`. The plane fit uses the thin singular value decomposition;
the released code computes the full left factor, which alone takes longer than
everything else here.
"""

from __future__ import annotations

import cv2
import numpy as np

from protocols.pdi.clip import ClipArrays


def reference_scores(clip: ClipArrays) -> dict[str, float]:
  """Residuals and guard figures of a clip whose map has the video's size.

  Args:
    clip: masks, tracks, visibility, and point maps or depth with cameras.

  Returns:
    `scale`, `traj`, `rigid`, `ground_rmse`, `scale_jump`.
  """
  assert clip.tracks is not None
  assert clip.visibility is not None
  points = clip.pointmaps if clip.pointmaps is not None else point_maps(clip)
  height, depth = _heights(clip.masks), clip.object_depth
  if depth is None:
    depth = _object_depth(clip)
  kept = _filtered(clip.tracks, clip.visibility)
  return {
    "scale": _scale(height, depth),
    "traj": _trajectory(points, clip.masks, clip.fps),
    "rigid": _rigidity(
      points, clip.masks[0], clip.tracks[:, kept], clip.visibility[:, kept]
    ),
    "ground_rmse": _ground(points, clip.masks),
    "scale_jump": _scale_jump(points, clip.masks),
  }


def point_maps(clip: ClipArrays) -> np.ndarray:
  """[T, h, w, 3] float32 world points of every pixel (section 2.4)."""
  assert clip.depth is not None
  assert clip.c2w is not None
  assert clip.intrinsics is not None
  frames, rows, columns = clip.depth.shape
  matrix = np.asarray(clip.intrinsics, np.float64)
  u, v = np.meshgrid(np.arange(columns), np.arange(rows))
  points = np.empty((frames, rows, columns, 3), np.float32)
  for t in range(frames):
    z = clip.depth[t].astype(np.float64)
    x = (u - matrix[0, 2]) * z / matrix[0, 0]
    y = (v - matrix[1, 2]) * z / matrix[1, 1]
    local = np.stack([x, y, z], axis=-1)
    points[t] = local @ clip.c2w[t, :3, :3].T + clip.c2w[t, :3, 3]
  return points


def _heights(masks: np.ndarray) -> np.ndarray:
  height = np.zeros(len(masks))
  for t, mask in enumerate(masks):
    rows, _ = np.nonzero(mask)
    if len(rows) > 10:
      height[t] = rows.max() - rows.min()
  return height


def _object_depth(clip: ClipArrays) -> np.ndarray:
  assert clip.depth is not None
  series = np.array(
    [
      np.median(depth[mask] if mask.any() else depth)
      for depth, mask in zip(clip.depth, clip.masks, strict=True)
    ],
    np.float64,
  )
  series = series / (series[0] + 1e-8)
  return series / series[0]


def _scale(height: np.ndarray, depth: np.ndarray) -> float:
  size = np.log(np.maximum(height, 1e-6)) + np.log(np.maximum(depth, 1e-6))
  error = np.abs(size - np.median(size[:5]))[1:]
  return float(np.sqrt(np.mean(error**2)))


def _trajectory(points: np.ndarray, masks: np.ndarray, fps: float) -> float:
  centroids = []
  last = np.zeros(3)
  for frame, mask in zip(points, masks, strict=True):
    inside = frame[mask].astype(np.float64)
    if len(inside) > 10:
      last = np.median(inside, axis=0)
    centroids.append(last)
  path = np.array(centroids)
  padded = np.concatenate([path[:1], path, path[-1:]])
  path = np.median(np.stack([padded[:-2], padded[1:-1], padded[2:]]), axis=0)
  velocity = np.diff(path, axis=0) * fps
  acceleration = np.diff(velocity, axis=0) * fps
  speed = np.linalg.norm(velocity, axis=1)
  change = np.linalg.norm(acceleration, axis=1)
  reference = max(np.median(speed), 2 * np.median(change), 1e-6)
  magnitude = 2 * np.tanh(change / reference / 5)
  unit = velocity / (speed + 1e-9)[:, None]
  cosine = np.clip(np.sum(unit[:-1] * unit[1:], axis=1), -1, 1)
  moving = (speed[:-1] > 0.1 * reference) & (speed[1:] > 0.1 * reference)
  error = 0.5 * magnitude + 0.5 * np.where(moving, 1 - cosine, 0)
  series = np.concatenate([error[:1], error])
  return float(np.sqrt(np.mean(series**2)))


def _filtered(tracks: np.ndarray, visibility: np.ndarray) -> np.ndarray:
  steps = np.linalg.norm(np.diff(tracks, axis=0), axis=-1).max(axis=0)
  kept = (visibility.mean(axis=0) >= 0.3) & (steps < 120)
  return kept if kept.sum() >= 2 else np.ones_like(kept)


def _rigidity(
  points: np.ndarray,
  mask: np.ndarray,
  tracks: np.ndarray,
  visibility: np.ndarray,
) -> float:
  frames, rows, columns = points.shape[:3]
  u = np.clip(np.rint(tracks[..., 0]).astype(int), 0, columns - 1)
  v = np.clip(np.rint(tracks[..., 1]).astype(int), 0, rows - 1)
  lifted = np.stack([points[t, v[t], u[t]] for t in range(frames)])
  lifted = lifted.astype(np.float64)
  world_z = np.ascontiguousarray(points[0, ..., 2], np.float32)
  gradient = np.hypot(
    cv2.Sobel(world_z, cv2.CV_32F, 1, 0, ksize=3),
    cv2.Sobel(world_z, cv2.CV_32F, 0, 1, ksize=3),
  )[v[0], u[0]]
  edge = cv2.distanceTransform(mask.astype(np.uint8), cv2.DIST_L2, 5)
  visible = np.flatnonzero(visibility[0] > 0.5)
  threshold = np.inf
  if len(visible) > 4:
    threshold = float(np.percentile(gradient[visible], 75))
  candidates = visible[gradient[visible] < threshold]
  if len(candidates) < 5:
    candidates = visible
  if len(candidates) < 5:
    return 1.0
  first, second = np.triu_indices(len(candidates), 1)
  i, j = candidates[first], candidates[second]
  length = np.linalg.norm(lifted[0, i] - lifted[0, j], axis=1)
  score = length * np.minimum(edge[v[0], u[0]][i], edge[v[0], u[0]][j])
  best = np.argsort(score, kind="stable")[::-1][:30]
  best = best[length[best] > 1e-3]
  if len(best) < 3:
    return 1.0
  i, j, length = i[best], j[best], length[best]
  scores = [0.0]
  for t in range(1, frames):
    seen = (visibility[t, i] > 0.5) & (visibility[t, j] > 0.5)
    if seen.sum() < 3:
      scores.append(scores[-1])
      continue
    now = np.linalg.norm(lifted[t, i] - lifted[t, j], axis=1)
    ratio = (now / length)[seen]
    spread = np.median(np.abs(ratio - np.median(ratio)))
    scores.append(spread / (np.median(ratio) + 1e-6))
  return float(np.mean(scores[1:]))


def _ground(points: np.ndarray, masks: np.ndarray) -> float:
  frames, rows = points.shape[:2]
  first = int(rows * 0.7)
  parts = []
  for t in (0, frames // 2, frames - 1):
    region, free = points[t, first:], ~masks[t, first:]
    inside = region[free & np.any(region != 0, axis=-1)]
    if len(inside) > 50:
      parts.append(inside)
  if not parts:
    return 0.0
  chosen = np.concatenate(parts)
  if len(chosen) > 5000:
    generator = np.random.default_rng(42)
    chosen = chosen[generator.choice(len(chosen), 5000, replace=False)]
  centred = chosen.astype(np.float64) - chosen.astype(np.float64).mean(axis=0)
  normal = np.linalg.svd(centred, full_matrices=False)[2][-1]
  return float(np.sqrt(np.mean((centred @ normal) ** 2)))


def _scale_jump(points: np.ndarray, masks: np.ndarray) -> float:
  median = np.array(
    [
      np.median(frame[..., 2][mask]) if mask.any() else 0.0
      for frame, mask in zip(points, masks, strict=True)
    ],
    np.float64,
  )
  scaled = (median - median.min()) / (np.ptp(median) + 1e-6)
  return float(np.max(np.abs(np.diff(scaled, 2)), initial=0.0))
