# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""The 70-point ranking of candidate cases: orders a review queue, no gate.

Every curve is piecewise linear through (value, points) knots and constant
outside; a component is rounded to three decimals before totals are summed. An
exact zero of a median residual, a box aspect or a solidity reads as missing,
as in the released code. Source: the project's Orbia specification, 11.9.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Knots = Sequence[tuple[float, float]]

_EDGE: Knots = ((0, 0), (300, 1), (450, 2), (650, 3.25), (900, 4.25), (1400, 5))
_AREA: Knots = ((0, 0), (0.3, 2), (1, 5), (2, 8), (5, 10))
_AREA_LARGE: Knots = ((50, 1), (70, 0.5), (100, 0))
_BALANCE: Knots = ((0, 0.35), (0.25, 0.65), (0.5, 1))
_COMPONENT: Knots = ((0, 0), (0.5, 1), (0.75, 4), (0.85, 7), (0.95, 10))
_GAP: Knots = ((0.02, 0), (0.05, 1), (0.10, 3), (0.20, 6))
_BORDER: Knots = ((0.03, 0), (0.10, 0.5), (0.25, 1))
_ASPECT: Knots = ((3, 0), (5, 1), (8, 3), (12, 5))
_SOLIDITY: Knots = (
  (0.60, 7),
  (0.80, 5),
  (0.90, 3.333),
  (0.95, 1.667),
  (0.99, 0),
)
_INLIERS: Knots = ((0, 0), (0.5, 1), (0.75, 3), (0.9, 4))
_RESIDUAL: Knots = ((0, 3), (0.10, 2.5), (0.25, 1), (0.50, 0))
_PROJECTED: Knots = ((0, 0), (0.5, 1), (0.8, 2.5), (0.95, 3))
_TILT: Knots = ((3, 2), (8, 1.5), (15, 0.5), (30, 0))
_EXCURSION: Knots = ((0.03, 2), (0.08, 1.5), (0.15, 0.75), (0.35, 0))
_SLOPE: Knots = ((0.05, 1), (0.12, 0.5), (0.30, 0))
_GRADES: dict[str, Knots] = {
  "strong": ((0.40, 8), (0.70, 10)),
  "moderate": ((0.10, 4), (0.40, 6)),
  "weak": ((0, 0.5), (0.10, 2)),
}
_POSE_TRANSLATION: Knots = ((0.05, 0), (0.20, 1))
_POSE_ROTATION: Knots = ((2, 0), (10, 1))


class PathShape(NamedTuple):
  """Measures of a trajectory relative to its first pose (11.9)."""

  maximum_horizontal_excursion: float
  maximum_rotation_deg: float
  vertical_ratio: float
  slope_p95: float
  maximum_tilt_deg: float


def curve(value: float, knots: Knots) -> float:
  """Piecewise linear through the knots, constant outside."""
  xs, ys = zip(*knots, strict=True)
  return float(np.interp(value, xs, ys))


def total_points(components: Sequence[float]) -> float:
  """Sum of the components, each rounded to three decimals first."""
  return math.fsum(round(value, 3) for value in components)


def edge_energy(image: NDArray[np.uint8]) -> float:
  """var(dx) + var(dy) of the grey image at every fourth pixel.

  Args:
    image: [h, w, 3] uint8.
  """
  weights = np.array([0.299, 0.587, 0.114], np.float32)
  grey = (image.astype(np.float32) @ weights)[::4, ::4]
  return float(np.var(np.diff(grey, axis=1)) + np.var(np.diff(grey, axis=0)))


def visual_points(energy: float) -> float:
  """Sharpness of the worse endpoint, 0-5."""
  return curve(energy, _EDGE)


def area_points(
  area_percent: Sequence[float], position_factor: Sequence[float]
) -> float:
  """Area and placement of an anchor, 0-13.

  Args:
    area_percent: of the input and the query mask.
    position_factor: of both endpoints.
  """
  small, large = min(area_percent), max(area_percent)
  points = curve(small, _AREA)
  if large > 50:
    points *= curve(large, _AREA_LARGE)
  balance = small / large if large > 0 else 0.0
  if balance < 0.5:
    points *= curve(balance, _BALANCE)
  return 1.3 * points * min(position_factor)


def position_factor(margin_x: float, margin_y: float) -> float:
  """Factor from the centroid's margins to the nearest borders (fractions)."""
  if margin_x < 0.20 and margin_y < 0.20:
    return 0.65
  if margin_x < 0.30 and margin_y < 0.30:
    return 0.80
  return 0.82 if min(margin_x, margin_y) < 0.15 else 1.0


def endpoint_integrity(
  largest_component: float,
  internal_gap: float,
  components: float,
  border_contact: float,
  box_aspect: float,
  solidity: float,
) -> float:
  """Integrity of a mask at one endpoint, 0-10 before the factor 1.2."""
  points = curve(largest_component, _COMPONENT)
  points -= curve(internal_gap, _GAP)
  points -= min(4.0, 1.5 * max(components - 1, 0))
  points -= curve(border_contact, _BORDER)
  points -= curve(box_aspect or 1.0, _ASPECT)
  points -= curve(solidity or 1.0, _SOLIDITY)
  if internal_gap > 0.20:
    points = min(points, 2.0)
  return min(max(points, 0.0), 10.0)


def depth_points(
  inlier_fraction: float, median_residual: float, inside_fraction: float
) -> float:
  """Depth agreement of one direction, 0-10."""
  points = curve(inlier_fraction, _INLIERS)
  points += curve(median_residual or 1.0, _RESIDUAL)
  return points + curve(inside_fraction, _PROJECTED)


def path_shape(poses_c2w: Floats) -> PathShape:
  """Excursions, rotation and tilt of a trajectory (11.9).

  Args:
    poses_c2w: [N, 4, 4] relative to the input view.
  """
  position = poses_c2w[:, :3, 3] - poses_c2w[0, :3, 3]
  horizontal = np.hypot(position[:, 0], position[:, 2])
  largest = float(horizontal.max())
  turn = poses_c2w[0, :3, :3].T @ poses_c2w[:, :3, :3]
  down = turn[:, :, 1]
  tilt = np.degrees(np.arctan2(np.hypot(down[:, 0], down[:, 2]), down[:, 1]))
  steps = np.diff(position, axis=0)
  flat = np.hypot(steps[:, 0], steps[:, 2])
  moving = flat > max(float(np.percentile(flat, 25)), 1e-7)
  slope = 0.0
  if np.any(moving):
    slope = float(np.percentile(np.abs(steps[moving, 1]) / flat[moving], 95))
  return PathShape(
    maximum_horizontal_excursion=largest,
    maximum_rotation_deg=max(_angle_deg(r) for r in turn),
    vertical_ratio=float(np.abs(position[:, 1]).max()) / max(largest, 1e-12),
    slope_p95=slope,
    maximum_tilt_deg=float(tilt.max()),
  )


def upright_points(shape: PathShape) -> float:
  """How level a trajectory stays, 0-5."""
  points = curve(shape.maximum_tilt_deg, _TILT)
  points += curve(shape.vertical_ratio, _EXCURSION)
  return points + curve(shape.slope_p95, _SLOPE)


def motion_points(value: float, quantiles: Sequence[float]) -> float:
  """Size of the motion within its template, 0-15.

  Args:
    value: largest rotation for yaw, largest horizontal excursion otherwise.
    quantiles: q10, q50, q90 over the candidate pool.
  """
  q10, q50, q90 = (float(q) for q in quantiles)
  if q90 == q10:
    return 10.0
  return curve(value, ((0, 0), (q10, 6), (q50, 10), (q90, 15)))


def revisit_points(
  grade: str,
  fractions: Sequence[float],
  translation: float,
  rotation_deg: float,
  *,
  passed: bool,
) -> float:
  """Evidence of a revisit, 0-10; 0 if the pose limits failed."""
  if not passed or grade not in _GRADES:
    return 0.0
  points = curve(min(fractions), _GRADES[grade])
  points -= curve(translation, _POSE_TRANSLATION)
  points -= curve(rotation_deg, _POSE_ROTATION)
  return round(min(max(points, 0.0), 10.0), 3)


def _angle_deg(rotation: NDArray[np.floating[Any]]) -> float:
  skew = rotation - rotation.T
  sine = math.hypot(skew[2, 1], skew[0, 2], skew[1, 0])
  return math.degrees(math.atan2(sine, float(np.trace(rotation)) - 1.0))
