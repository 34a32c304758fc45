# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Recovered geometry of the frames of one video, as arrays on one canvas.

Array indices are coordinates (specification, 2.3). The released code takes the
estimator's intrinsics for that although their pixel centres lie at +0.5, and
scales them without a half-pixel shift (2.7). Depth is camera-axis Z, NaN =
invalid; poses are camera-to-world with OpenCV axes.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

CENTRE = 0.5  # of a pixel, in the estimator's coordinates
_ALIGNMENT = 64  # bytes, from which XLA reads an array in place


@dataclasses.dataclass(frozen=True, eq=False)
class Views:
  """Recovered geometry of the frames of one video.

  Attributes:
    frames: [F] frame numbers, increasing.
    depth: [C, h, w] floating depth on a common canvas, C >= F; NaN = invalid.
      Rows from F on are room that saves a copy before padded programs; they
      may hold anything.
    sizes: [F, 2] (h, w) of each frame's own grid inside the canvas.
    intrinsics: [F, 3, 3] at the depth grid.
    poses_c2w: [F, 4, 4].
    has_depth, has_pose: [F] bool; other rows are NaN.
  """

  frames: NDArray[np.int64]
  depth: NDArray[np.floating[Any]]
  sizes: NDArray[np.int64]
  intrinsics: NDArray[np.floating[Any]]
  poses_c2w: NDArray[np.floating[Any]]
  has_depth: NDArray[np.bool_]
  has_pose: NDArray[np.bool_]

  def row(self, frame: int) -> int:
    """Row of a frame number, -1 if there is none."""
    place = int(np.searchsorted(self.frames, frame))
    found = place < len(self.frames) and self.frames[place] == frame
    return place if found else -1

  def depth_of(self, frame: int) -> NDArray[np.floating[Any]] | None:
    """Depth of a frame at its own size, or None."""
    row = self.row(frame)
    if row < 0 or not self.has_depth[row]:
      return None
    height, width = self.sizes[row]
    return self.depth[row, :height, :width]


def canvas(shape: Sequence[int], dtype: DTypeLike) -> NDArray[Any]:
  """An empty array that a CPU device can read in place.

  Args:
    shape: of the array.
    dtype: of the array.

  Returns:
    An uninitialised array whose memory is aligned to 64 bytes.
  """
  kind = np.dtype(dtype)
  room = math.prod(shape) * kind.itemsize
  memory = np.empty(room + _ALIGNMENT, np.uint8)
  start = -memory.ctypes.data % _ALIGNMENT
  return memory[start : start + room].view(kind).reshape(tuple(shape))


def scale_intrinsics(
  intrinsics: NDArray[np.floating[Any]],
  *,
  from_size: Sequence[int],
  to_size: Sequence[int],
) -> NDArray[np.floating[Any]]:
  """Orbia's rescaling: rows times the size ratio, no half-pixel shift (2.7).

  Args:
    intrinsics: [..., 3, 3].
    from_size: (h, w) it belongs to.
    to_size: (h, w) wanted.

  Returns:
    [..., 3, 3].
  """
  ratio = np.array(
    [to_size[1] / from_size[1], to_size[0] / from_size[0], 1.0],
    np.asarray(intrinsics).dtype,
  )
  return np.asarray(intrinsics) * ratio[:, None]
