# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Axis-aligned boxes [x1, y1, x2, y2] in pixels, with continuous areas.

Source: EgoGenEval specification 4.4 ("IoU everywhere uses continuous areas").
"""

from __future__ import annotations

import math
from collections.abc import Sequence

Box = Sequence[float]


def area(box: Box) -> float:
  """Area; 0 for an inverted box."""
  return max(0.0, box[2] - box[0]) * max(0.0, box[3] - box[1])


def intersection(a: Box, b: Box) -> float:
  """Area of the common part."""
  width = min(a[2], b[2]) - max(a[0], b[0])
  height = min(a[3], b[3]) - max(a[1], b[1])
  return max(0.0, width) * max(0.0, height)


def iou(a: Box, b: Box) -> float:
  """Intersection over union; 0 where the union is empty."""
  common = intersection(a, b)
  union = area(a) + area(b) - common
  return common / union if union > 0 else 0.0


def center(box: Box) -> tuple[float, float]:
  """Centre as (x, y)."""
  return ((box[0] + box[2]) / 2.0, (box[1] + box[3]) / 2.0)


def center_distance(a: Box, b: Box) -> float:
  """Distance between the centres, pixels."""
  (ax, ay), (bx, by) = center(a), center(b)
  return math.hypot(ax - bx, ay - by)


def normalised_distance(a: Box, b: Box, size: tuple[int, int]) -> float:
  """Distance between the centres over the diagonal of an (h, w) image."""
  return center_distance(a, b) / max(math.hypot(*size), 1.0)


def centers_contained(a: Box, b: Box) -> bool:
  """Whether either centre lies inside the other box, borders included."""
  return _contains(a, center(b)) or _contains(b, center(a))


def _contains(box: Box, point: tuple[float, float]) -> bool:
  x, y = point
  return box[0] <= x <= box[2] and box[1] <= y <= box[3]
