# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Depth of one camera brought into another camera's image, with occlusion.

Depth is camera-axis Z in metres, NaN = unknown. Pixel centres are integers.
Transforms are 4x4 and map points of the depth camera to the colour camera.
"""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

_SMOOTH = 0.03
_UNDISTORT_STEPS = 8


def unproject(
  depth: NDArray[np.float32], intrinsics: NDArray[np.float64]
) -> NDArray[np.float64]:
  """[h, w, 3] camera points of a depth map, NaN where depth is unknown."""
  row, column = np.indices(depth.shape)
  z = np.where(depth > 0, depth, np.nan).astype(np.float64)
  return np.stack(
    [
      (column - intrinsics[0, 2]) / intrinsics[0, 0] * z,
      (row - intrinsics[1, 2]) / intrinsics[1, 1] * z,
      z,
    ],
    axis=-1,
  )


def project(
  points: NDArray[np.float64], intrinsics: NDArray[np.float64]
) -> NDArray[np.float64]:
  """[n, 2] pixels of [n, 3] camera points in front of the camera."""
  xy: NDArray[np.float64] = points[:, :2] / points[:, 2:]
  return xy * np.diag(intrinsics)[:2] + intrinsics[:2, 2]


def distort(
  xy: NDArray[np.float64],
  intrinsics: NDArray[np.float64],
  lens: NDArray[np.float64],
) -> NDArray[np.float64]:
  """[n, 2] pixels of a real lens for pixels of a pinhole camera.

  Args:
    xy: pinhole pixels.
    intrinsics: [3, 3].
    lens: [2] radial coefficients: a ray (x, y) at radius r goes to
      (x, y)(1 + k1 r^2 + k2 r^4).
  """
  focal, center = np.diag(intrinsics)[:2], intrinsics[:2, 2]
  ray = (xy - center) / focal
  square = np.sum(ray * ray, axis=1, keepdims=True)
  scale = 1.0 + lens[0] * square + lens[1] * square**2
  return np.asarray(ray * scale * focal + center, np.float64)


def undistort(
  xy: NDArray[np.float64],
  intrinsics: NDArray[np.float64],
  lens: NDArray[np.float64],
) -> NDArray[np.float64]:
  """The inverse of `distort`, by fixed-point steps."""
  found = xy
  for _ in range(_UNDISTORT_STEPS):
    found = found + xy - distort(found, intrinsics, lens)
  return found


def undistort_image(
  image: NDArray[np.uint8],
  intrinsics: NDArray[np.float64],
  lens: NDArray[np.float64],
) -> NDArray[np.uint8]:
  """The picture that a pinhole camera would have taken, RGB uint8."""
  row, column = np.indices(image.shape[:2])
  xy = np.stack([column, row], axis=-1).reshape(-1, 2).astype(np.float64)
  source = distort(xy, intrinsics, lens).astype(np.float32)
  grid = source.reshape(*image.shape[:2], 2)
  found = cv2.remap(
    image, grid[..., 0], grid[..., 1], cv2.INTER_CUBIC,
    borderMode=cv2.BORDER_REPLICATE,
  )  # fmt: skip
  return np.asarray(found, np.uint8)


def register_depth(
  depth: NDArray[np.float32],
  depth_intrinsics: NDArray[np.float64],
  colour_intrinsics: NDArray[np.float64],
  depth_to_colour: NDArray[np.float64],
  size: tuple[int, int],
) -> NDArray[np.float32]:
  """A depth map as the colour camera would see it.

  Every depth pixel becomes a square of the size of its cell in the colour
  image; of several surfaces the nearest is kept.

  Args:
    depth: [h', w'] metres, 0 or NaN = unknown.
    depth_intrinsics: [3, 3] at (h', w').
    colour_intrinsics: [3, 3] at `size`.
    depth_to_colour: [4, 4] rigid.
    size: (h, w) of the colour image.

  Returns:
    float32 [h, w], NaN where no depth pixel lands.
  """
  height, width = size
  points = unproject(depth, depth_intrinsics).reshape(-1, 3)
  points = points[np.isfinite(points[:, 2])]
  points = points @ depth_to_colour[:3, :3].T + depth_to_colour[:3, 3]
  points = points[points[:, 2] > 0]
  # Far to near: of equal cells the last one written stays.
  points = points[np.argsort(-points[:, 2], kind="stable")]
  if not len(points):
    return np.full(size, np.nan, np.float32)
  xy = project(points, colour_intrinsics)
  z = points[:, 2].astype(np.float32)
  scale = colour_intrinsics[0, 0] / depth_intrinsics[0, 0]
  cells = max(1, int(np.ceil(scale - 1e-6)))
  corner = np.rint(xy - (cells - 1) / 2.0).astype(np.int64)
  found = np.full(size, np.inf, np.float32)
  for offset in np.ndindex(cells, cells):
    column, row = (corner + offset).T
    inside = (column >= 0) & (column < width) & (row >= 0) & (row < height)
    layer = np.full(size, np.inf, np.float32)
    layer[row[inside], column[inside]] = z[inside]
    found = np.minimum(found, layer)
  # Cells that rounding left open take the nearest surface beside them.
  closed = cv2.erode(
    found,
    np.ones((3, 3), np.uint8),
    borderType=cv2.BORDER_CONSTANT,
    borderValue=np.inf,
  )
  found = np.where(np.isinf(found), closed, found)
  return np.where(np.isinf(found), np.float32(np.nan), found)


def is_smooth(depth: NDArray[np.float32], *, window: int) -> NDArray[np.bool_]:
  """Pixels away from depth discontinuities and from unknown depth.

  A feature near an outline may belong to either surface, and recorded depth
  is worst there.

  Args:
    depth: float32 [h, w], 0 or NaN = unknown.
    window: odd number of pixels.

  Returns:
    bool [h, w]: depth is known and varies by at most 3 % within the window.
  """
  known = np.isfinite(depth) & (depth > 0)
  kernel = np.ones((window, window), np.uint8)
  largest = cv2.dilate(np.where(known, depth, np.float32(np.inf)), kernel)
  smallest = cv2.erode(np.where(known, depth, np.float32(0)), kernel)
  with np.errstate(invalid="ignore"):
    spread = np.asarray(largest - smallest)
    smooth = spread <= _SMOOTH * np.where(known, depth, np.float32(0))
  return np.asarray(known & smooth, bool)
