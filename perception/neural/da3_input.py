# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Frames as Depth Anything 3 takes them: size rule, resizing, normalisation.

The long (`upper_bound_resize`) or short (`lower_bound_resize`) side becomes
the processing resolution, up (cubic) or down (area); a second resize rounds
both sides to the nearest multiple of 14, ties up. Equal to the package's own
input processor bit by bit, without its thread pool. Source:
specs/perception.md section 5.
"""

from __future__ import annotations

import cv2
import numpy as np

from perception import errors

PATCH = 14
METHODS = ("upper_bound_resize", "lower_bound_resize")
_MEAN = np.array([0.485, 0.456, 0.406], np.float32)
_STD = np.array([0.229, 0.224, 0.225], np.float32)


def _bounded_size(
  size: tuple[int, int], process_res: int, method: str
) -> tuple[int, int]:
  """(h, w) after the first resize."""
  if method not in METHODS:
    raise errors.InputError(
      "settings", "process_res_method", found=method, expected=METHODS
    )
  side = max(size) if method == "upper_bound_resize" else min(size)
  if side == process_res:
    return size
  scale = process_res / float(side)
  return max(1, round(size[0] * scale)), max(1, round(size[1] * scale))


def processed_size(
  size: tuple[int, int], *, process_res: int, method: str
) -> tuple[int, int]:
  """(h, w) at which a frame of `size` (H, W) is processed.

  Raises:
    InputError: unknown method.
  """
  height, width = _bounded_size(size, process_res, method)
  return _multiple(height), _multiple(width)


def _multiple(side: int) -> int:
  down = side // PATCH * PATCH
  up = down + PATCH
  return max(1, up if up - side <= side - down else down)


def resize(frame: np.ndarray, *, process_res: int, method: str) -> np.ndarray:
  """uint8 [H, W, 3] -> uint8 [h, w, 3] at `processed_size`.

  Raises:
    InputError: not an RGB uint8 picture, or unknown method.
  """
  if frame.dtype != np.uint8 or frame.ndim != 3 or frame.shape[2] != 3:
    raise errors.InputError(
      "frame",
      "pixels",
      found=f"{frame.dtype} {frame.shape}",
      expected="uint8 [H, W, 3]",
    )
  size = (frame.shape[0], frame.shape[1])
  bounded = _bounded_size(size, process_res, method)
  if bounded != size:
    # The size test, not the scale, would differ only for one-pixel sides.
    side = max(size) if method == "upper_bound_resize" else min(size)
    grow = process_res > side
    how = cv2.INTER_CUBIC if grow else cv2.INTER_AREA
    frame = cv2.resize(frame, bounded[::-1], interpolation=how)
  final = _multiple(bounded[0]), _multiple(bounded[1])
  if final != bounded:
    grow = final[0] > bounded[0] or final[1] > bounded[1]
    how = cv2.INTER_CUBIC if grow else cv2.INTER_AREA
    frame = cv2.resize(frame, final[::-1], interpolation=how)
  return frame


def centre_crop(frame: np.ndarray, size: tuple[int, int]) -> np.ndarray:
  """The middle (h, w) of a picture, as the package cuts mixed sizes."""
  top = round((frame.shape[0] - size[0]) / 2.0)
  left = round((frame.shape[1] - size[1]) / 2.0)
  return frame[top : top + size[0], left : left + size[1]]


def normalise(frames: np.ndarray) -> np.ndarray:
  """uint8 [N, h, w, 3] -> float32 [N, 3, h, w], ImageNet statistics."""
  scaled = frames.astype(np.float32) / np.float32(255.0)
  scaled = (scaled - _MEAN) / _STD
  return np.ascontiguousarray(np.moveaxis(scaled, 3, 1))
