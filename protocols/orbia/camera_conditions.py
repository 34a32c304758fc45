# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Requested cameras in the forms that camera-conditioned models take.

Poses are camera-to-world with OpenCV axes. Pixel centres are at (c + 0.5,
r + 0.5) here, as such models have them. Source: the project's Orbia
specification, sections 12.1 (windows) and 12.2.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_AXES = np.diag([1.0, -1.0, -1.0, 1.0])


class Window(NamedTuple):
  """Frames that a model generates in one go.

  Attributes:
    start: first frame of the request.
    frames: [W] frames of the request; beyond its end the last one repeats.
    keep: how many of the generated frames are new; the first ones of a later
      window repeat the end of the one before.
    skip: how many generated frames are such repeats.
  """

  start: int
  frames: NDArray[np.int64]
  keep: int
  skip: int


class Crop(NamedTuple):
  """How a picture is resized to cover a size and cut to it.

  Attributes:
    resized: (h, w) after resizing.
    top, left: pixels cut off then.
    intrinsics: 3x3 of the cut picture.
  """

  resized: tuple[int, int]
  top: int
  left: int
  intrinsics: Floats


def windows(frame_count: int, *, size: int, overlap: int = 1) -> list[Window]:
  """Windows that cover a request.

  Args:
    frame_count: N, frames of the request.
    size: frames that the model generates in one go.
    overlap: frames that a window shares with the one before.

  Returns:
    Windows whose kept frames are 0 .. N-1, each once.

  Raises:
    ValueError: `overlap` does not leave a new frame.
  """
  if not 0 <= overlap < size or frame_count < 1:
    raise ValueError(f"{frame_count} frames, size {size}, overlap {overlap}")
  out: list[Window] = []
  start = 0
  while True:
    skip = overlap if out else 0
    frames = np.minimum(np.arange(start, start + size), frame_count - 1)
    new = min(start + size, frame_count) - (start + skip)
    out.append(Window(start, frames, new, skip))
    if start + size >= frame_count:
      return out
    start += size - overlap


def relative_to_first(poses_c2w: Floats) -> Floats:
  """Poses in the axes of the first of them."""
  return np.asarray(np.linalg.inv(poses_c2w[0]) @ poses_c2w)


def to_opengl(poses_c2w: Floats) -> Floats:
  """OpenCV to OpenGL cameras: y up, z backwards."""
  return poses_c2w @ _AXES


def increments(poses_c2w: Floats) -> Floats:
  """[N-1, 4, 4] motion of every step in the axes of its first camera."""
  return np.asarray(np.linalg.inv(poses_c2w[:-1]) @ poses_c2w[1:])


def rotation_6d(poses_c2w: Floats) -> Floats:
  """[N, 6] the first two columns of every rotation, one after the other."""
  columns = np.swapaxes(poses_c2w[:, :3, :2], 1, 2)
  return columns.reshape(len(poses_c2w), 6)


def with_radius(poses_c2w: Floats, radius: float) -> Floats:
  """Poses whose largest distance from the first is `radius`.

  A path that does not move is returned unchanged.
  """
  offset = poses_c2w[:, :3, 3] - poses_c2w[0, :3, 3]
  largest = float(np.linalg.norm(offset, axis=1).max())
  out = poses_c2w.copy()
  if largest > 0:
    out[:, :3, 3] = poses_c2w[0, :3, 3] + offset * (radius / largest)
  return out


def cover_crop(
  intrinsics: Floats, *, size: tuple[int, int], target: tuple[int, int]
) -> Crop:
  """Resizes to cover a size, then cuts the middle, with matching intrinsics.

  Args:
    intrinsics: 3x3 at `size`, corner origin (centres at +0.5).
    size: (h, w) of the picture.
    target: (h, w) wanted.

  Returns:
    `Crop`.
  """
  scale = max(target[0] / size[0], target[1] / size[1])
  height = max(target[0], round(size[0] * scale))
  width = max(target[1], round(size[1] * scale))
  top, left = (height - target[0]) // 2, (width - target[1]) // 2
  k = np.asarray(intrinsics, np.float64).copy()
  k[0] *= width / size[1]
  k[1] *= height / size[0]
  k[:2, 2] -= left, top
  return Crop((height, width), top, left, k)


def pluecker_rays(
  poses_c2w: Floats, intrinsics: Floats, *, size: tuple[int, int]
) -> NDArray[np.float32]:
  """Pluecker coordinates of every pixel's ray.

  Args:
    poses_c2w: [N, 4, 4].
    intrinsics: 3x3 at `size`, corner origin.
    size: (h, w).

  Returns:
    float32 [N, h, w, 6]: unit direction, then origin x direction.
  """
  height, width = size
  column, row = np.meshgrid(np.arange(width) + 0.5, np.arange(height) + 0.5)
  rays = np.stack(
    [
      (column - intrinsics[0, 2]) / intrinsics[0, 0],
      (row - intrinsics[1, 2]) / intrinsics[1, 1],
      np.ones_like(row),
    ],
    axis=-1,
  )
  rays /= np.linalg.norm(rays, axis=-1, keepdims=True)
  direction = np.einsum("nij,hwj->nhwi", poses_c2w[:, :3, :3], rays)
  origin = poses_c2w[:, None, None, :3, 3]
  moment = np.cross(np.broadcast_to(origin, direction.shape), direction)
  return np.concatenate([direction, moment], axis=-1).astype(np.float32)
