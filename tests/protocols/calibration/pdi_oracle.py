# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Scale, trajectory and rigidity of PDI in plain NumPy float64.

Written from the specification (sections 3, 4 and 5.2, `paper` variant) apart
from the kernels, to tell what the calibration defects do.
"""

from __future__ import annotations

import cv2
import numpy as np

from protocols.calibration.clips import Recording


def components(recording: Recording) -> dict[str, float]:
  """`scale`, `traj`, `rigid` and `lost`, the share of lost masks."""
  masks = recording.masks.masks[0]
  depth = recording.geometry.depth.astype(np.float64)
  seen = masks.sum((1, 2)) > 10
  points = _points(recording, depth)
  return {
    "scale": _scale(masks, depth, seen),
    "traj": _traj(points, masks, seen, recording.fps),
    "rigid": _rigid(recording, points, masks[0]),
    "lost": float(1.0 - seen.mean()),
  }


def _points(recording: Recording, depth: np.ndarray) -> np.ndarray:
  k = recording.geometry.intrinsics[0].astype(np.float64)
  v, u = np.mgrid[: depth.shape[1], : depth.shape[2]]
  ray = np.stack(
    [(u - k[0, 2]) / k[0, 0], (v - k[1, 2]) / k[1, 1], np.ones_like(u)], -1
  )
  camera = depth[..., None] * ray
  c2w = recording.geometry.c2w
  turned = np.einsum("tij,thwj->thwi", c2w[:, :3, :3], camera)
  return turned + c2w[:, None, None, :3, 3]


def _scale(masks: np.ndarray, depth: np.ndarray, seen: np.ndarray) -> float:
  s = np.full(len(masks), np.nan)
  for t in np.flatnonzero(seen):
    height = np.ptp(np.flatnonzero(masks[t].any(1)))
    s[t] = np.log(height) + np.log(np.median(depth[t][masks[t]]))
  reference = np.nanmedian(s[:5])
  return float(np.sqrt(np.nanmean((s[1:] - reference) ** 2)))


def _traj(
  points: np.ndarray, masks: np.ndarray, seen: np.ndarray, fps: float
) -> float:
  path = []
  for t in range(len(masks)):
    path.append(np.median(points[t][masks[t]], 0) if seen[t] else path[-1])
  padded = np.stack([path[0], *path, path[-1]])
  path = np.median(np.stack([padded[:-2], padded[1:-1], padded[2:]]), 0)
  velocity = np.diff(path, axis=0) * fps
  acceleration = np.linalg.norm(np.diff(velocity, axis=0) * fps, axis=1)
  speed = np.linalg.norm(velocity, axis=1)
  reference = max(np.median(speed), 2 * np.median(acceleration), 1e-6)
  size = 2 * np.tanh(acceleration / reference / 5)
  unit = velocity / (speed[:, None] + 1e-9)
  cosine = np.clip((unit[:-1] * unit[1:]).sum(1), -1, 1)
  fast = speed > 0.1 * reference
  turn = np.where(fast[:-1] & fast[1:], 1 - cosine, 0.0)
  return float(np.sqrt(np.mean((0.5 * size + 0.5 * turn) ** 2)))


def _rigid(recording: Recording, points: np.ndarray, mask: np.ndarray) -> float:
  tracks = recording.tracks
  limit = np.array(mask.shape)[::-1] - 1
  column, row = np.clip(np.rint(tracks.xy), 0, limit).astype(int).T
  column, row = column.T, row.T
  lifted = points[np.arange(len(points))[:, None], row, column]
  world_z = points[0, ..., 2].astype(np.float32)
  gradient = np.hypot(
    cv2.Sobel(world_z, cv2.CV_64F, 1, 0), cv2.Sobel(world_z, cv2.CV_64F, 0, 1)
  )[row[0], column[0]]
  inner = cv2.distanceTransform(mask.astype(np.uint8), cv2.DIST_L2, 5)
  inner = inner[row[0], column[0]]
  chosen = np.flatnonzero(gradient < np.percentile(gradient, 75))
  i, j = (chosen[k] for k in np.triu_indices(len(chosen), 1))
  base = np.linalg.norm(lifted[0, i] - lifted[0, j], axis=1)
  top = np.argsort(-base * np.minimum(inner[i], inner[j]))[:30]
  i, j, base = i[top], j[top], base[top]
  scores = [0.0]
  for t in range(1, len(points)):
    both = tracks.visible[t, i] & tracks.visible[t, j]
    if both.sum() < 3:
      scores.append(scores[-1])
      continue
    gap = lifted[t, i[both]] - lifted[t, j[both]]
    ratio = np.linalg.norm(gap, axis=1) / base[both]
    middle = np.median(ratio)
    scores.append(np.median(abs(ratio - middle)) / (middle + 1e-6))
  return float(np.mean(scores[1:]))
