# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Raw detector output to integer boxes with normalised labels.

Boxes are [x1, y1, x2, y2] in the pixels of the target size (h, w).
Source: EgoGenEval specification 4.4.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from protocols.egogeneval import boxes as box_math
from protocols.egogeneval import constants, vocabulary


@dataclasses.dataclass(frozen=True)
class BoxList:
  """Boxes of one image in detector order.

  Attributes:
    boxes: integer boxes.
    labels: one normalised label per box; may be empty texts.
    sources: index of each box in the raw detector output.
  """

  boxes: tuple[tuple[int, int, int, int], ...]
  labels: tuple[str, ...]
  sources: tuple[int, ...]

  def __len__(self) -> int:
    return len(self.boxes)

  def take(self, indices: Sequence[int]) -> BoxList:
    """The boxes of some indices, in the order given."""
    return BoxList(
      tuple(self.boxes[i] for i in indices),
      tuple(self.labels[i] for i in indices),
      tuple(self.sources[i] for i in indices),
    )


def postprocess(
  boxes: ArrayLike,
  scores: ArrayLike,
  phrases: Sequence[str],
  size: tuple[int, int],
  limits: constants.Constants,
) -> BoxList:
  """Thresholds, rounds, clamps, sorts and suppresses raw detections.

  Args:
    boxes: [n, 4] float32 boxes in pixels of `size`.
    scores: [n] float32 scores.
    phrases: n texts of the detector.
    size: (h, w) of the image.
    limits: constants of the variant.

  Returns:
    At most `limits.max_detections` boxes, by score and area descending.
  """
  height, width = size
  raw = np.rint(np.asarray(boxes, np.float32).reshape(-1, 4))
  values = np.asarray(scores, np.float32).reshape(-1)
  smallest = max(36, math.floor(0.0003 * height * width))
  largest = max(smallest + 1, math.floor(0.65 * height * width))
  kept = []
  for index, (row, score) in enumerate(zip(raw, values, strict=True)):
    if not score >= limits.detector_threshold or not np.all(np.isfinite(row)):
      continue
    x1, x2 = (int(min(max(v, 0), width - 1)) for v in row[0::2])
    y1, y2 = (int(min(max(v, 0), height - 1)) for v in row[1::2])
    box = (x1, y1, x2, y2)
    if x2 <= x1 or y2 <= y1 or not smallest <= box_math.area(box) <= largest:
      continue
    kept.append((box, float(score), index))
  kept.sort(key=lambda item: (-item[1], -box_math.area(item[0])))
  survivors: list[tuple[tuple[int, int, int, int], float, int]] = []
  for item in kept:
    if all(
      box_math.iou(item[0], other[0]) < limits.suppress_iou
      for other in survivors
    ):
      survivors.append(item)
  survivors = survivors[: limits.max_detections]
  return BoxList(
    tuple(box for box, _, _ in survivors),
    tuple(_label(phrases[index]) for _, _, index in survivors),
    tuple(index for _, _, index in survivors),
  )


def _label(phrase: str) -> str:
  return vocabulary.normalise(phrase.strip().rstrip(".").lower())
