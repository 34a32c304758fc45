# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Masks, tracks and boxes drawn over frames, for audits and reports.

Frames are RGB uint8 [H, W, 3]; integer coordinates are pixel centres.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import cv2
import numpy as np

CYAN = (0, 255, 255)
GREEN = (0, 200, 80)
OPACITY = 0.6
_DASH, _GAP = 6, 9


def with_mask(
  frame: np.ndarray,
  mask: np.ndarray,
  *,
  colour: tuple[int, int, int] = GREEN,
  opacity: float = OPACITY,
  outline: bool = True,
) -> np.ndarray:
  """A frame with a mask tinted and outlined.

  Args:
    frame: uint8 [H, W, 3].
    mask: bool [H, W].
    colour: RGB of the tint.
    opacity: share of the tint, 0 to 1.
    outline: draw the mask's border.

  Returns:
    uint8 [H, W, 3], a copy.
  """
  tinted = frame.astype(np.float32)
  tinted[mask] += opacity * (np.asarray(colour, np.float32) - tinted[mask])
  picture = np.round(tinted).astype(np.uint8)
  if not outline:
    return picture
  outlines, _ = cv2.findContours(
    mask.astype(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE
  )
  cv2.drawContours(picture, outlines, -1, colour, 1, cv2.LINE_AA)
  return picture


def with_trails(
  frame: np.ndarray,
  xy: np.ndarray,
  visible: np.ndarray,
  *,
  row: int,
  length: int,
  colour: tuple[int, int, int] = CYAN,
) -> np.ndarray:
  """A frame with the past path of each point that is visible in it.

  Args:
    frame: uint8 [H, W, 3], frame `row` of the clip.
    xy: float [T, N, 2] pixels.
    visible: bool [T, N].
    row: frame that is drawn on.
    length: past frames to draw, at least 0.
    colour: RGB of lines and points.

  Returns:
    uint8 [H, W, 3], a copy. Parts of a path where the point was not visible
    are left out.
  """
  picture = frame.copy()
  first = max(0, row - length)
  for point in np.flatnonzero(visible[row]):
    path = np.round(xy[first : row + 1, point] * 8).astype(np.int32)
    seen = visible[first : row + 1, point]
    for step in range(len(path) - 1):
      if seen[step] and seen[step + 1]:
        start, end = path[step], path[step + 1]
        cv2.line(
          picture,
          (int(start[0]), int(start[1])),
          (int(end[0]), int(end[1])),
          colour,
          1,
          cv2.LINE_AA,
          3,
        )
    tip = (int(path[-1, 0]), int(path[-1, 1]))
    cv2.circle(picture, tip, 2 * 8, colour, -1, cv2.LINE_AA, 3)
  return picture


def with_box(
  frame: np.ndarray,
  box: Sequence[float],
  *,
  colour: tuple[int, int, int],
  dashed: bool,
  text: str = "",
) -> np.ndarray:
  """A frame with a box and its text.

  Args:
    frame: uint8 [H, W, 3].
    box: (x0, y0, x1, y1) in pixels.
    colour: RGB.
    dashed: broken lines, so that kinds differ without colour too.
    text: ASCII, drawn inside the box on its colour; may be empty.

  Returns:
    uint8 [H, W, 3], a copy.
  """
  picture = frame.copy()
  x0, y0, x1, y1 = (round(float(v)) for v in box)
  corners = [(x0, y0), (x1, y0), (x1, y1), (x0, y1), (x0, y0)]
  for start, end in itertools.pairwise(corners):
    length = max(int(np.hypot(end[0] - start[0], end[1] - start[1])), 1)
    dash, period = (_DASH, _DASH + _GAP) if dashed else (length, length)
    for at in range(0, length, period):
      a, b = (
        tuple(
          round(s + (e - s) * min(p, length) / length)
          for s, e in zip(start, end, strict=True)
        )
        for p in (at, at + dash)
      )
      cv2.line(picture, a, b, colour, 2, cv2.LINE_AA)
  if text:
    size, _ = cv2.getTextSize(text, cv2.FONT_HERSHEY_SIMPLEX, 0.4, 1)
    cv2.rectangle(
      picture, (x0, y0), (x0 + size[0] + 4, y0 + size[1] + 5), colour, -1
    )
    cv2.putText(
      picture,
      text,
      (x0 + 2, y0 + size[1] + 2),
      cv2.FONT_HERSHEY_SIMPLEX,
      0.4,
      (255, 255, 255),
      1,
      cv2.LINE_AA,
    )
  return picture


def side_by_side(pictures: Sequence[np.ndarray]) -> np.ndarray:
  """Pictures of one height joined from left to right, 4 white pixels apart."""
  height = pictures[0].shape[0]
  gap = np.full((height, 4, 3), 255, np.uint8)
  parts = [part for picture in pictures for part in (picture, gap)]
  return np.concatenate(parts[:-1], axis=1)
