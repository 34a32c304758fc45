# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Dense depth of a view from others with known cameras: plane sweep.

Fronto-parallel planes at even steps of inverse depth; the other pictures are
warped onto each by its homography and compared by zero-mean normalised
correlation over 7x7 pixels; the better half of the views counts. Semi-global
aggregation along rows and columns, a parabola between planes. Works for any
motion that gives parallax, forward motion included, where rectification does
not. Depth is camera-axis Z in the cameras' unit, NaN where nothing matches.
Pixel centres at integers, world-to-camera [3, 4].
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import cv2
import numpy as np

AGREE = 0.05
PLANES = 64
_WINDOW = 7
_VARIANCE_FLOOR = 4.0
_WORST_COST = 0.5
_STEP_PENALTY = 0.08
_JUMP_PENALTY = 0.5
_RATIO = 0.1
_RATIO_RANGE = (0.01, 0.5)


class View(NamedTuple):
  """A grey picture [h, w] uint8 with its camera."""

  gray: np.ndarray
  w2c: np.ndarray


def sweep(
  reference: View,
  others: Sequence[View],
  intrinsics: np.ndarray,
  depth_range: tuple[float, float],
) -> np.ndarray:
  """[h, w] float32 depth of the reference view.

  Args:
    reference: the view whose depth is wanted.
    others: one or more views of the same size.
    intrinsics: [3, 3] of all.
    depth_range: nearest and farthest plane.
  """
  inverse = np.linspace(1.0 / depth_range[1], 1.0 / depth_range[0], PLANES)
  cost = _cost_volume(reference, others, intrinsics, inverse)
  total = _aggregate(cost)
  best = np.argmin(total, axis=0)
  raw = np.take_along_axis(cost, best[None], axis=0)[0]
  # A minimum on the border of the range is not a minimum.
  good = (raw < _WORST_COST) & (best > 0) & (best < PLANES - 1)
  inner = np.clip(best, 1, PLANES - 2)
  left, middle, right = (
    np.take_along_axis(total, (inner + step)[None], axis=0)[0]
    for step in (-1, 0, 1)
  )
  bend = np.maximum(left - 2.0 * middle + right, 1e-6)
  position = inner + np.clip(0.5 * (left - right) / bend, -0.5, 0.5)
  found = inverse[0] + position * (inverse[1] - inverse[0])
  return np.where(good, 1.0 / found, np.nan).astype(np.float32)


def _cost_volume(
  reference: View,
  others: Sequence[View],
  intrinsics: np.ndarray,
  inverse: np.ndarray,
) -> np.ndarray:
  """[PLANES, h, w] float32, 1 - correlation; 1 where no view reaches."""
  height, width = reference.gray.shape
  mine = _moments(reference.gray.astype(np.float32))
  to_ray = np.linalg.inv(intrinsics)
  volume = np.empty((len(inverse), height, width), np.float32)
  sources = [view.gray.astype(np.float32) for view in others]
  full = np.ones_like(mine[0])
  for row, inverse_depth in enumerate(inverse):
    scores = []
    for view, gray in zip(others, sources, strict=True):
      turn = view.w2c[:, :3] @ reference.w2c[:, :3].T
      shift = view.w2c[:, 3] - turn @ reference.w2c[:, 3]
      turn = turn.copy()
      turn[:, 2] += shift * inverse_depth
      warp = intrinsics @ turn @ to_ray
      flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
      moved = cv2.warpPerspective(gray, warp, (width, height), flags=flags)
      flags = cv2.INTER_NEAREST | cv2.WARP_INVERSE_MAP
      inside = cv2.warpPerspective(full, warp, (width, height), flags=flags)
      scores.append(np.where(inside > 0, _correlate(mine, moved), 0.0))
    ranked = np.sort(np.stack(scores), axis=0)[::-1]
    used = max(1, (len(scores) + 1) // 2)
    volume[row] = 1.0 - ranked[:used].mean(axis=0)
  return volume


def _box(image: np.ndarray) -> np.ndarray:
  return cv2.blur(image, (_WINDOW, _WINDOW))


def _moments(
  image: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
  mean = _box(image)
  return image, mean, _box(image * image) - mean * mean


def _correlate(
  mine: tuple[np.ndarray, np.ndarray, np.ndarray], moved: np.ndarray
) -> np.ndarray:
  """Zero-mean normalised correlation; 0 where a window is flat."""
  image, mean, variance = mine
  _, other_mean, other_variance = _moments(moved)
  covariance = _box(image * moved) - mean * other_mean
  flat = (variance < _VARIANCE_FLOOR) | (other_variance < _VARIANCE_FLOOR)
  scale = np.sqrt(np.where(flat, 1.0, variance * other_variance))
  return np.where(flat, 0.0, np.clip(covariance / scale, -1.0, 1.0))


def _aggregate(cost: np.ndarray) -> np.ndarray:
  """Sum of the semi-global path costs along both axes, both ways."""
  total = np.zeros_like(cost)
  for axis in (1, 2):
    lines = np.moveaxis(cost, axis, 0)
    sums = np.moveaxis(total, axis, 0)
    for order in (1, -1):
      _path(lines[::order], sums[::order])
  return total


def _path(lines: np.ndarray, sums: np.ndarray) -> None:
  """Adds the path costs of one direction; lines and sums are [L, D, M]."""
  last = np.array(lines[0])
  sums[0] += last
  for row in range(1, len(lines)):
    low = last.min(axis=0)
    best = np.minimum(last, low + _JUMP_PENALTY)
    best[1:] = np.minimum(best[1:], last[:-1] + _STEP_PENALTY)
    best[:-1] = np.minimum(best[:-1], last[1:] + _STEP_PENALTY)
    last = lines[row] + best - low
    sums[row] += last


def choose_partners(
  reference: int,
  candidates: Sequence[int],
  w2c: np.ndarray,
  depth: float,
  *,
  most: int,
) -> list[int]:
  """Views whose distance is nearest to a tenth of the depth.

  Args:
    reference: row in `w2c`.
    candidates: rows to choose from.
    w2c: [T, 3, 4].
    depth: typical depth of the reference view.
    most: how many to return; views at 1 to 50 % only.
  """
  ranked = []
  rotation, shift = w2c[reference, :, :3], w2c[reference, :, 3]
  for row in candidates:
    relative = rotation @ w2c[row, :, :3].T
    baseline = shift - relative @ w2c[row, :, 3]
    ratio = float(np.linalg.norm(baseline)) / depth
    if row != reference and _RATIO_RANGE[0] <= ratio <= _RATIO_RANGE[1]:
      ranked.append((abs(np.log(ratio / _RATIO)), row))
  return [row for _, row in sorted(ranked)[:most]]


def agreement(
  depth: np.ndarray,
  w2c: np.ndarray,
  intrinsics: np.ndarray,
  others: Sequence[tuple[np.ndarray, np.ndarray]],
) -> tuple[np.ndarray, np.ndarray]:
  """How many other views' depth maps confirm each pixel.

  Args:
    depth: [h, w] of one view.
    w2c: [3, 4] of that view.
    intrinsics: [3, 3] of all.
    others: (depth [h, w], w2c [3, 4]) of other views.

  Returns:
    [h, w] int confirmations (within 5 %) and [h, w] int views that had a depth
    to compare with.
  """
  height, width = depth.shape
  v, u = np.mgrid[:height, :width].astype(np.float64)
  rays = np.stack([u, v, np.ones_like(u)], axis=-1)
  camera = rays @ np.linalg.inv(intrinsics).T * depth[..., None]
  world = (camera - w2c[:, 3]) @ w2c[:, :3]
  agree = np.zeros(depth.shape, int)
  compared = np.zeros(depth.shape, int)
  for other_depth, other_w2c in others:
    moved = world @ other_w2c[:, :3].T + other_w2c[:, 3]
    z = moved[..., 2]
    with np.errstate(divide="ignore", invalid="ignore"):
      spot = (moved / z[..., None]) @ intrinsics.T
    spot = np.where(np.isfinite(spot), spot, -9.0).astype(np.float32)
    found = cv2.remap(
      other_depth,
      spot[..., 0],
      spot[..., 1],
      cv2.INTER_NEAREST,
      borderValue=float("nan"),
    )
    usable = np.isfinite(found) & (z > 0)
    compared += usable
    with np.errstate(invalid="ignore"):
      agree += usable & (np.abs(found - z) <= AGREE * z)
  return agree, compared
