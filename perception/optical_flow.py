# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Dense optical flow between neighbouring frames and where to believe it.

Flow is float32 [h, w, 2] (dx, dy) pixels: the content at x in the first
picture is at x + flow[x] in the second.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import cv2
import numpy as np

# A round trip may miss by this many pixels plus this share of its length.
_ROUND_TRIP_PIXELS = 1.0
_ROUND_TRIP_SHARE = 0.05


class BackwardFlow(NamedTuple):
  """Where each pixel of the current picture was in the previous one.

  Attributes:
    source: float32 [h, w, 2], (x, y) in the previous picture.
    consistent: bool [h, w], the way there and back ends where it began.
    inside: bool [h, w], the source lies in the previous picture.
  """

  source: np.ndarray
  consistent: np.ndarray
  inside: np.ndarray


class DenseFlow:
  """DIS flow with its buffers, for one sequence of equally sized pictures."""

  def __init__(self) -> None:
    """Makes the estimator (preset `medium`)."""
    self._estimator: Any = cv2.DISOpticalFlow.create(
      cv2.DISOPTICAL_FLOW_PRESET_MEDIUM
    )

  def backward(self, previous: np.ndarray, current: np.ndarray) -> BackwardFlow:
    """Flow from `current` back to `previous`, checked by the way forth.

    Args:
      previous: uint8 [h, w] grey.
      current: uint8 [h, w] grey.
    """
    back = self._estimator.calc(current, previous, None)
    forth = self._estimator.calc(previous, current, None)
    height, width = current.shape
    x, y = np.meshgrid(
      np.arange(width, dtype=np.float32), np.arange(height, dtype=np.float32)
    )
    source = back + np.stack([x, y], axis=2)
    returned = warp(forth, source)
    miss = np.linalg.norm(back + returned, axis=2)
    length = np.linalg.norm(back, axis=2)
    inside = (
      (source[..., 0] >= -0.5)
      & (source[..., 0] <= width - 0.5)
      & (source[..., 1] >= -0.5)
      & (source[..., 1] <= height - 0.5)
    )
    allowed = _ROUND_TRIP_PIXELS + _ROUND_TRIP_SHARE * length
    return BackwardFlow(source, (miss <= allowed) & inside, inside)


def warp(image: np.ndarray, source: np.ndarray) -> np.ndarray:
  """Samples `image` linearly at `source` [h, w, 2]; 0 outside."""
  x, y = (np.ascontiguousarray(source[..., axis]) for axis in range(2))
  return cv2.remap(
    image, x, y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_CONSTANT
  )
