# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Which detected boxes are large, whole and distinct enough to be matched.

Source: EgoGenEval specification 4.5. Every removed box keeps the names of the
rules that removed it, so that a score can be explained.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

from protocols.egogeneval import boxes as box_math
from protocols.egogeneval import vocabulary

_IGNORED = frozenset(
  {
    "book", "clothes", "pillow", "blanket", "cup", "bottle", "bag",
    "backpack", "trash", "trash can", "box",
  }
)  # fmt: skip
_PREFERRED = frozenset(
  {
    "table", "desk", "counter", "table counter", "bed", "sofa", "couch",
    "cabinet", "bookshelf",
  }
)  # fmt: skip
_DEFERRED = frozenset({"shelf", "chair", "stool", "curtain", "window", "door"})
_STRUCTURAL = frozenset(
  {"window", "door", "curtain", "shelf", "bookshelf", "cabinet"}
)
_FREQUENT = frozenset(
  {"chair", "stool", "shelf", "bookshelf", "window", "door", "curtain"}
)
_PER_LABEL = 4
_PER_FREQUENT_LABEL = 3
_TOTAL = 12


@dataclasses.dataclass(frozen=True)
class Removal:
  """Why a box was removed.

  Attributes:
    index: index of the box in the input.
    reasons: names of all rules that hit it.
    duplicate_of: index of the kept box that it repeats, if that is why.
  """

  index: int
  reasons: tuple[str, ...]
  duplicate_of: int | None = None


@dataclasses.dataclass(frozen=True)
class Filtered:
  """Result of the filter.

  Attributes:
    keep: indices of the kept boxes, in input order.
    labels: their normalised labels.
    removed: the others, by index.
  """

  keep: tuple[int, ...]
  labels: tuple[str, ...]
  removed: tuple[Removal, ...]


def matchable(
  boxes: Sequence[box_math.Box],
  labels: Sequence[str],
  size: tuple[int, int],
) -> Filtered:
  """Removes fragments, ignored classes, duplicates and boxes over budget.

  Args:
    boxes: boxes in detector order, pixels of `size`.
    labels: their labels.
    size: (h, w) of the image.

  Returns:
    At most 12 boxes, in detector order.
  """
  names = [vocabulary.normalise(label) for label in labels]
  whole = [tuple(float(round(v)) for v in box) for box in boxes]
  whole = [_clamped(box, size) for box in whole]
  removed: dict[int, Removal] = {}
  for index, (box, name) in enumerate(zip(whole, names, strict=True)):
    reasons = _fragment_reasons(box, name, size)
    if reasons:
      removed[index] = Removal(index, reasons)
  ranked = {
    index: _rank_score(whole[index], names[index], size)
    for index in range(len(whole))
    if index not in removed
  }
  distinct: list[int] = []
  for index in sorted(
    ranked, key=lambda i: (-ranked[i], -box_math.area(whole[i]))
  ):
    for other in distinct:
      reason = _duplicate_reason(
        whole[index], whole[other], names[index], names[other], size
      )
      if reason:
        removed[index] = Removal(index, (reason,), other)
        break
    else:
      distinct.append(index)
  kept: list[int] = []
  counts: dict[str, int] = {}
  # The budgets see detector order first and then sort by rank score alone.
  for index in sorted(sorted(distinct), key=lambda i: -ranked[i]):
    name = names[index]
    limit = _PER_FREQUENT_LABEL if name in _FREQUENT else _PER_LABEL
    if counts.get(name, 0) >= limit:
      removed[index] = Removal(index, ("per_label_budget",))
      continue
    counts[name] = counts.get(name, 0) + 1
    if len(kept) >= _TOTAL:
      removed[index] = Removal(index, ("global_budget",))
    else:
      kept.append(index)
  kept.sort()
  return Filtered(
    tuple(kept),
    tuple(names[index] for index in kept),
    tuple(removed[index] for index in sorted(removed)),
  )


def _clamped(
  box: tuple[float, ...], size: tuple[int, int]
) -> tuple[float, ...]:
  height, width = size
  limits = (width - 1, height - 1, width - 1, height - 1)
  return tuple(
    min(max(v, 0.0), float(m)) for v, m in zip(box, limits, strict=True)
  )


def _fragment_reasons(
  box: tuple[float, ...], name: str, size: tuple[int, int]
) -> tuple[str, ...]:
  height, width = size
  x1, y1, x2, y2 = box
  box_width, box_height = x2 - x1, y2 - y1
  if box_width <= 0 or box_height <= 0:
    return ("invalid_box",)
  share = box_width * box_height / (height * width)
  thin = min(box_width, box_height) / min(height, width)
  aspect = max(box_width, box_height) / min(box_width, box_height)
  touch = (x1 <= 1) + (y1 <= 1) + (x2 >= width - 2) + (y2 >= height - 2)
  margin_x, margin_y = max(2.0, 0.04 * width), max(2.0, 0.04 * height)
  near = (
    x1 <= margin_x
    or y1 <= margin_y
    or x2 >= width - margin_x
    or y2 >= height - margin_y
  )
  rules = {
    "ignored_label": name in _IGNORED,
    "small_box_area": share < 0.006,
    "small_box_side": thin < 0.035,
    "partial_edge_small": touch > 0 and share < 0.03,
    "partial_corner": touch >= 2 and share < 0.06,
    "near_border_thin_fragment": near
    and share < 0.05
    and (thin < 0.09 or aspect >= 3.5),
  }
  return tuple(reason for reason, hit in rules.items() if hit)


def _rank_score(
  box: tuple[float, ...], name: str, size: tuple[int, int]
) -> float:
  share = box_math.area(box) / (size[0] * size[1])
  if name in _PREFERRED:
    return share + 0.08
  return share - 0.02 if name in _DEFERRED else share


def _duplicate_reason(
  box: tuple[float, ...],
  kept: tuple[float, ...],
  name: str,
  kept_name: str,
  size: tuple[int, int],
) -> str:
  if not vocabulary.compatible(name, kept_name):
    return ""
  if name in _STRUCTURAL or kept_name in _STRUCTURAL:
    max_iou, max_cover, max_contained, max_distance = 0.45, 0.62, 0.78, 0.16
  else:
    max_iou, max_cover, max_contained, max_distance = 0.55, 0.72, 0.85, 0.12
  common = box_math.intersection(box, kept)
  smaller = max(min(box_math.area(box), box_math.area(kept)), 1e-12)
  near = box_math.center_distance(box, kept) <= max_distance * math.hypot(*size)
  if box_math.iou(box, kept) >= max_iou:
    return "duplicate_same_object_iou"
  if common / max(box_math.area(box), 1e-12) >= max_cover:
    return "duplicate_candidate_covered"
  if common / smaller >= max_contained and near:
    return "duplicate_contained_same_object"
  return ""
