# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Pictures and texts that the vision-language model is asked about.

Drawing and wording are fixed, so that a recorded transcript, which is found
by the digest of the request, can be replayed. The wording is ours: the
benchmark's own is not published. Source: EgoGenEval specification 4.8.
"""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np
from numpy.typing import NDArray

from protocols.egogeneval import boxes as box_math
from protocols.egogeneval import detections, matching, signals

Image = NDArray[np.uint8]
_PADDING_GREY = 245
_RED, _BLUE = (220, 30, 30), (30, 60, 220)
_TILE, _CELL, _CROPS_PER_SIDE, _CELLS_PER_ROW = 720, 112, 24, 6
_MAX_BOXES_WITH_CROPS = 32
_CROP_PADDING = 0.28
_AUDIT_TILE, _PAIRS_PER_ROW = 150, 4
_JUDGE_TILE = 360


def proposal_board(
  target: Image,
  generated: Image,
  targets: detections.BoxList,
  candidates: detections.BoxList,
) -> Image:
  """Both images with tagged boxes; crops below where there is room."""
  left = _tagged(target, targets, "G", _RED)
  right = _tagged(generated, candidates, "P", _BLUE)
  board = np.concatenate([_fit(left, _TILE), _fit(right, _TILE)], axis=1)
  if len(targets) + len(candidates) > _MAX_BOXES_WITH_CROPS:
    return board
  grids = [
    _crop_grid(target, targets, "G"),
    _crop_grid(generated, candidates, "P"),
  ]
  height = max(grid.shape[0] for grid in grids)
  padded = [_pad_to(grid, height, _TILE) for grid in grids]
  return np.concatenate([board, np.concatenate(padded, axis=1)], axis=0)


def proposal_text(
  targets: detections.BoxList, candidates: detections.BoxList
) -> str:
  """Catalogue of the boxes and the question."""
  lines = ["Target objects (left image, red):"]
  lines += _catalogue(targets, "G")
  lines.append("Candidate objects (right image, blue):")
  lines += _catalogue(candidates, "P")
  lines.append(
    "The right image should show the scene of the left image. Match each"
    " target with the candidate that is the same physical object. Use"
    " position, surroundings, appearance, and the order of repeated objects."
    " Orientation is only recorded. Never match walls, floors, ceilings or"
    " clearly different types; names may differ only for the same kind of"
    " thing. One candidate per target; leave uncertain objects unmatched."
    ' Answer with JSON only: {"matches": [{"gt_id": "G0", "pred_id": "P0",'
    ' "same_object_confidence": 0.0, "orientation_consistent": true,'
    ' "orientation_observable": true, "orientation_confidence": 0.0,'
    ' "reason": ""}], "unmatched_gt": [], "unmatched_pred": []}'
  )
  return "\n".join(lines)


def audit_board(
  target: Image, generated: Image, records: Sequence[matching.ObjectRecord]
) -> Image:
  """Reference and generated crop of each record, four pairs per row."""
  pairs = []
  for record in records:
    tiles = [
      _audit_tile(target, record.gt_box),
      _audit_tile(generated, record.pred_box),
    ]
    pairs.append(np.concatenate(tiles, axis=1))
  while len(pairs) % _PAIRS_PER_ROW:
    pairs.append(np.full_like(pairs[0], _PADDING_GREY))
  rows = [
    np.concatenate(pairs[i : i + _PAIRS_PER_ROW], axis=1)
    for i in range(0, len(pairs), _PAIRS_PER_ROW)
  ]
  return np.concatenate(rows, axis=0)


def audit_text(records: Sequence[matching.ObjectRecord], first: int) -> str:
  """The question of the audit; ids count on from `first`."""
  lines = ["Pairs in reading order, reference left and generated right:"]
  for offset, record in enumerate(records):
    kind = "pair" if record.status == matching.MATCH else "generated only"
    lines.append(f"id {first + offset}: {kind}")
  lines.append(
    "Check each generated object. Defects: deformed, part_count_wrong,"
    " missing_part, texture_corrupted, blurry, wrong_identity (a pair that"
    " shows two different objects). Answer with JSON only:"
    ' {"objects": [{"id": 0, "well_formed": true, "defects": [],'
    ' "severity": "none", "note": ""}]}'
  )
  return "\n".join(lines)


def judge_board(
  target: Image,
  generated: Image,
  target_box: box_math.Box,
  generated_box: box_math.Box,
) -> Image:
  """Both images with one box each, and both padded crops."""
  tiles = [
    _fit(_boxed(target, target_box, "A", _RED), _JUDGE_TILE),
    _fit(_boxed(generated, generated_box, "B", _BLUE), _JUDGE_TILE),
    _fit(_crop(target, target_box), _JUDGE_TILE),
    _fit(_crop(generated, generated_box), _JUDGE_TILE),
  ]
  return np.concatenate(
    [np.concatenate(tiles[:2], axis=1), np.concatenate(tiles[2:], axis=1)],
    axis=0,
  )


JUDGE_TEXT = (
  "Box A (red) in the first image and box B (blue) in the second, with both"
  " crops below. Do they show the same physical object of one scene? Answer"
  ' with JSON only: {"same_object": false, "orientation_consistent": true,'
  ' "orientation_observable": true, "same_object_confidence": 0.0,'
  ' "orientation_confidence": 0.0, "object_category_gt": "",'
  ' "object_category_pred": "", "reason": ""}'
)


def _catalogue(objects: detections.BoxList, prefix: str) -> list[str]:
  return [
    f"{prefix}{i}: {label or 'unnamed'} {list(box)}"
    for i, (box, label) in enumerate(
      zip(objects.boxes, objects.labels, strict=True)
    )
  ]


def _tagged(
  image: Image,
  objects: detections.BoxList,
  prefix: str,
  colour: tuple[int, int, int],
) -> Image:
  drawn = image.copy()
  for i, (box, label) in enumerate(
    zip(objects.boxes, objects.labels, strict=True)
  ):
    _draw(drawn, box, f"{prefix}{i} {label}".strip(), colour)
  return drawn


def _boxed(
  image: Image, box: box_math.Box, tag: str, colour: tuple[int, int, int]
) -> Image:
  drawn = image.copy()
  _draw(drawn, box, tag, colour)
  return drawn


def _draw(
  image: Image, box: box_math.Box, tag: str, colour: tuple[int, int, int]
) -> None:
  x1, y1, x2, y2 = (round(v) for v in box)
  cv2.rectangle(image, (x1, y1), (x2, y2), colour, 2)
  origin = (x1 + 2, max(10, y1 - 3))
  cv2.putText(image, tag, origin, cv2.FONT_HERSHEY_SIMPLEX, 0.4, colour, 1)


def _fit(image: Image, side: int) -> Image:
  """Fits an image into a square, aspect kept, grey around it."""
  height, width = image.shape[:2]
  scale = side / max(height, width, 1)
  size = (max(1, round(width * scale)), max(1, round(height * scale)))
  canvas = np.full((side, side, 3), _PADDING_GREY, np.uint8)
  resized = cv2.resize(image, size, interpolation=cv2.INTER_AREA)
  top, left = (side - size[1]) // 2, (side - size[0]) // 2
  canvas[top : top + size[1], left : left + size[0]] = resized
  return canvas


def _crop(image: Image, box: box_math.Box) -> Image:
  side = max(box[2] - box[0], box[3] - box[1])
  pad = _CROP_PADDING * side
  x1, y1 = max(0, round(box[0] - pad)), max(0, round(box[1] - pad))
  x2, y2 = round(box[2] + pad) + 1, round(box[3] + pad) + 1
  return image[y1:y2, x1:x2]


def _crop_grid(image: Image, objects: detections.BoxList, prefix: str) -> Image:
  cells = []
  for i, box in enumerate(objects.boxes[:_CROPS_PER_SIDE]):
    cell = _fit(_crop(image, box), _CELL)
    cv2.putText(
      cell,
      f"{prefix}{i}",
      (3, 12),
      cv2.FONT_HERSHEY_SIMPLEX,
      0.4,
      _RED if prefix == "G" else _BLUE,
      1,
    )
    cells.append(cell)
  rows = []
  for start in range(0, len(cells), _CELLS_PER_ROW):
    row = cells[start : start + _CELLS_PER_ROW]
    rows.append(_pad_to(np.concatenate(row, axis=1), _CELL, _TILE))
  if not rows:
    return np.full((_CELL, _TILE, 3), _PADDING_GREY, np.uint8)
  return np.concatenate(rows, axis=0)


def _pad_to(image: Image, height: int, width: int) -> Image:
  canvas = np.full((height, width, 3), _PADDING_GREY, np.uint8)
  canvas[: image.shape[0], : image.shape[1]] = image
  return canvas


def _audit_tile(image: Image, box: tuple[float, ...] | None) -> Image:
  size = (_AUDIT_TILE, _AUDIT_TILE)
  if box is None:
    return np.full((*size, 3), _PADDING_GREY, np.uint8)
  part = signals.crop(image, box)
  if part.size == 0:
    return np.full((*size, 3), _PADDING_GREY, np.uint8)
  return np.asarray(cv2.resize(part, size), np.uint8)
