# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Brings references to the grid of the generated video: warps, depth, regions.

Images are uint8 RGB, masks bool, depth float with 0 = nothing. Two pixel
conventions live side by side (specification, 2.3): warps to the video use
array indices as coordinates, without a half-pixel shift; the mapping from the
depth camera to the RGB camera has pixel centres at +0.5. Never mix them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]
Mask = NDArray[np.bool_]


class SensorPoints(NamedTuple):
  """Sensor depth against the generated depth at the nearest video pixel.

  Attributes:
    reference: [N] sensor depth of the points inside the video.
    generated: [N] generated depth there.
    native_xy: [N, 2] location in the native RGB image (index convention).
    num_valid: valid sensor pixels, inside the video or not.
  """

  reference: NDArray[np.float64]
  generated: NDArray[np.float64]
  native_xy: NDArray[np.float64]
  num_valid: int


def input_to_video(
  native_to_input: Matrix,
  *,
  input_size: Sequence[int],
  video_size: Sequence[int],
) -> Matrix:
  """Transform of native RGB pixels to video pixels (2.6); sizes are (h, w)."""
  scale = np.diag(
    [video_size[1] / input_size[1], video_size[0] / input_size[0], 1.0]
  )
  return scale @ np.asarray(native_to_input, np.float64)


def warp_image(
  image: NDArray[np.uint8], transform: Matrix, *, size: Sequence[int]
) -> NDArray[np.uint8]:
  """Lanczos-4 warp of an image; outside becomes 0.

  Args:
    image: [h, w, 3] uint8.
    transform: 3x3 forward transform, source to output pixels.
    size: (H, W) of the output.

  Returns:
    [H, W, 3] uint8.
  """
  warped = cv2.warpPerspective(
    image,
    np.asarray(transform, np.float64),
    (int(size[1]), int(size[0])),
    flags=cv2.INTER_LANCZOS4,
    borderMode=cv2.BORDER_CONSTANT,
    borderValue=0,
  )
  return np.asarray(warped, np.uint8)


def nearest_index(source: int, output: int) -> NDArray[np.int64]:
  """Source index round(x source / output) of each output place, -1 outside.

  Halves go to the even neighbour. OpenCV versions disagree at exact halves,
  where their coordinates carry rounding noise.
  """
  # Whole numbers: x * source / output in floating point could miss a half.
  twice = 2 * np.arange(output) * source
  low, rest = np.divmod(twice, 2 * output)
  index = low + ((rest > output) | ((rest == output) & (low % 2 == 1)))
  return np.where(index < source, index, -1)


def warp_nearest(
  values: NDArray[Any], transform: Matrix, *, size: Sequence[int]
) -> NDArray[Any]:
  """Nearest-neighbour warp of a mask or a depth map; outside becomes 0.

  Args:
    values: [h, w] array.
    transform: 3x3 forward transform, source to output pixels.
    size: (H, W) of the output.

  Returns:
    [H, W] array of the same dtype.
  """
  height, width = (int(n) for n in size)
  x, y = np.meshgrid(np.arange(width), np.arange(height))
  inverse = np.linalg.inv(np.asarray(transform, np.float64))
  place = inverse @ np.stack([x, y, np.ones_like(x)]).reshape(3, -1)
  column = np.rint(place[0] / place[2]).astype(np.int64)
  row = np.rint(place[1] / place[2]).astype(np.int64)
  inside = (row >= 0) & (row < values.shape[0])
  inside &= (column >= 0) & (column < values.shape[1])
  out = np.zeros(height * width, values.dtype)
  out[inside] = values[row[inside], column[inside]]
  return out.reshape(height, width)


def resize_nearest(
  values: NDArray[Any], *, size: Sequence[int]
) -> NDArray[Any]:
  """Estimated depth to the video grid: x' = x W / w, nearest (2.6).

  Args:
    values: [h, w].
    size: (H, W).

  Returns:
    [H, W]; places whose nearest source lies outside are 0.
  """
  rows = nearest_index(values.shape[0], int(size[0]))
  columns = nearest_index(values.shape[1], int(size[1]))
  out = values[np.maximum(rows, 0)][:, np.maximum(columns, 0)].copy()
  out[rows < 0] = 0
  out[:, columns < 0] = 0
  return out


def depth_pixels_in_rgb(
  k_depth: Matrix,
  k_rgb: Matrix,
  *,
  depth_size: Sequence[int],
  distortion: Sequence[float] = (),
) -> NDArray[np.float64]:
  """Location of every depth pixel in the RGB image, pixel centres +0.5.

  Args:
    k_depth: 3x3 of the depth camera.
    k_rgb: 3x3 of the RGB camera.
    depth_size: (h, w).
    distortion: (k1, k2, p1, p2) of the RGB camera, or empty.

  Returns:
    [h, w, 2] (x, y).
  """
  height, width = depth_size
  x, y = np.meshgrid(np.arange(width) + 0.5, np.arange(height) + 0.5)
  rays = np.stack([x, y, np.ones_like(x)]).reshape(3, -1)
  rays = np.linalg.inv(np.asarray(k_depth, np.float64)) @ rays
  rays = rays / rays[2]
  if len(distortion):
    rays[:2] = _distort(rays[0], rays[1], distortion)
  place = np.asarray(k_rgb, np.float64) @ rays
  return np.moveaxis(place[:2].reshape(2, height, width), 0, -1)


def depth_on_rgb_grid(
  depth: NDArray[np.floating[Any]],
  valid: Mask,
  rgb_xy: NDArray[np.float64],
  *,
  rgb_size: Sequence[int],
) -> tuple[NDArray[np.floating[Any]], Mask]:
  """Smallest depth per nearest RGB pixel (2.6).

  Args:
    depth: [h, w].
    valid: [h, w] bool.
    rgb_xy: [h, w, 2] from `depth_pixels_in_rgb`.
    rgb_size: (H, W).

  Returns:
    (depth [H, W] with 0 where nothing arrives, valid [H, W]).
  """
  row, column, inside = _nearest_rgb(rgb_xy, rgb_size)
  use = valid & inside
  out = np.full(tuple(rgb_size), np.inf, depth.dtype)
  np.minimum.at(out, (row[use], column[use]), depth[use])
  filled = np.isfinite(out)
  return np.where(filled, out, 0).astype(depth.dtype), filled


def mask_on_rgb_grid(
  mask: Mask, rgb_xy: NDArray[np.float64], *, rgb_size: Sequence[int]
) -> Mask:
  """A depth-grid mask forward-mapped to RGB and dilated 3x3 (5.2)."""
  row, column, inside = _nearest_rgb(rgb_xy, rgb_size)
  use = mask & inside
  out = np.zeros(tuple(rgb_size), np.uint8)
  out[row[use], column[use]] = 1
  return np.asarray(cv2.dilate(out, np.ones((3, 3), np.uint8))) > 0


def depth_looked_up_on_rgb(
  depth: NDArray[np.floating[Any]],
  valid: Mask,
  k_depth: Matrix,
  k_rgb: Matrix,
  *,
  rgb_size: Sequence[int],
) -> tuple[NDArray[np.floating[Any]], Mask]:
  """Depth of each RGB pixel by looking it up, pinhole cameras (15.14, paper).

  Forward mapping leaves holes where the depth grid is coarser than the RGB
  grid; the paper's region of valid pixels has none.
  """
  height, width = rgb_size
  x, y = np.meshgrid(np.arange(width) + 0.5, np.arange(height) + 0.5)
  place = np.stack([x, y, np.ones_like(x)]).reshape(3, -1)
  place = np.asarray(k_depth) @ np.linalg.inv(np.asarray(k_rgb)) @ place
  column = np.floor(place[0] / place[2]).astype(np.int64)
  row = np.floor(place[1] / place[2]).astype(np.int64)
  inside = (row >= 0) & (row < depth.shape[0])
  inside &= (column >= 0) & (column < depth.shape[1])
  out = np.zeros(height * width, depth.dtype)
  found = np.zeros(height * width, bool)
  found[inside] = valid[row[inside], column[inside]]
  out[found] = depth[row[found], column[found]]
  return out.reshape(height, width), found.reshape(height, width)


def sensor_points(
  depth: NDArray[np.floating[Any]],
  valid: Mask,
  rgb_xy: NDArray[np.float64],
  native_to_video: Matrix,
  generated: NDArray[np.floating[Any]],
) -> SensorPoints:
  """Native depth pixels against the generated depth (5.6).

  Args:
    depth: [h, w] sensor depth.
    valid: [h, w] bool.
    rgb_xy: [h, w, 2] from `depth_pixels_in_rgb`.
    native_to_video: 3x3 from `input_to_video`.
    generated: [H, W] depth on the video grid.

  Returns:
    The points that fall inside the video.
  """
  native = rgb_xy[valid] - 0.5  # to the index convention
  place = np.concatenate([native, np.ones((len(native), 1))], axis=1)
  place = place @ np.asarray(native_to_video, np.float64).T
  nearest = np.floor(place[:, :2] / place[:, 2:] + 0.5).astype(np.int64)
  height, width = generated.shape
  inside = (nearest[:, 0] >= 0) & (nearest[:, 0] < width)
  inside &= (nearest[:, 1] >= 0) & (nearest[:, 1] < height)
  column, row = nearest[inside].T
  return SensorPoints(
    reference=depth[valid][inside].astype(np.float64),
    generated=generated[row, column].astype(np.float64),
    native_xy=native[inside],
    num_valid=int(valid.sum()),
  )


def valid_within(
  valid: Mask, rgb_xy: NDArray[np.float64], region: Mask
) -> Mask:
  """Valid depth pixels whose location in the native RGB lies in a region."""
  out = valid.copy()
  out[valid] = mask_at_points(region, rgb_xy[valid] - 0.5)
  return out


def mask_at_points(mask: Mask, native_xy: NDArray[np.float64]) -> Mask:
  """Membership of points in a native mask, nearest pixel; outside is False."""
  nearest = np.floor(native_xy + 0.5).astype(np.int64)
  column, row = nearest[:, 0], nearest[:, 1]
  inside = (row >= 0) & (row < mask.shape[0])
  inside &= (column >= 0) & (column < mask.shape[1])
  found = np.zeros(len(nearest), bool)
  found[inside] = mask[row[inside], column[inside]]
  return found


def canonical_crop(width: int, height: int) -> tuple[int, int, int, int]:
  """Centred 16:9 crop (left, top, right, bottom) of an image (2.1)."""
  if width * 9 > height * 16:
    crop_w, crop_h = round(height * 16 / 9), height
  else:
    crop_w, crop_h = width, round(width * 9 / 16)
  left, top = (width - crop_w) // 2, (height - crop_h) // 2
  return left, top, left + crop_w, top + crop_h


def canonical_transform(
  width: int, height: int, *, input_size: Sequence[int]
) -> Matrix:
  """Native RGB pixels to pixels of the input image (2.1).

  Args:
    width: native width.
    height: native height.
    input_size: (h, w) of the input image, 720 x 1280.

  Returns:
    3x3, for calibrations and for `native_to_input`.
  """
  left, top, right, bottom = canonical_crop(width, height)
  sx = input_size[1] / (right - left)
  sy = input_size[0] / (bottom - top)
  return np.array([[sx, 0, -sx * left], [0, sy, -sy * top], [0, 0, 1.0]])


def _nearest_rgb(
  rgb_xy: NDArray[np.float64], rgb_size: Sequence[int]
) -> tuple[NDArray[np.int64], NDArray[np.int64], Mask]:
  column = np.rint(rgb_xy[..., 0] - 0.5).astype(np.int64)
  row = np.rint(rgb_xy[..., 1] - 0.5).astype(np.int64)
  inside = (row >= 0) & (row < rgb_size[0])
  inside &= (column >= 0) & (column < rgb_size[1])
  return row, column, inside


def _distort(
  x: NDArray[np.float64], y: NDArray[np.float64], distortion: Sequence[float]
) -> NDArray[np.float64]:
  """OpenCV's radial and tangential distortion of normalised coordinates."""
  k1, k2, p1, p2 = distortion
  r2 = x * x + y * y
  radial = 1 + k1 * r2 + k2 * r2 * r2
  return np.stack(
    [
      x * radial + 2 * p1 * x * y + p2 * (r2 + 2 * x * x),
      y * radial + p1 * (r2 + 2 * y * y) + 2 * p2 * x * y,
    ]
  )
