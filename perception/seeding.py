# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Where to put the points that are followed: on an object and around it.

Positions are float32 [N, 2] (x, y) pixels of the grey picture given, which
should already have the tracker's size (`tracker_size`). Several SIFT keypoints
may share one position; they are kept, as the published procedure does.

Source: specs/pdi_bench.md 2.5 and 1.4. Results equal the recorded vectors with
OpenCV 4.11 to 5.0; other versions move points by up to 0.01 px.
"""

from __future__ import annotations

import cv2
import numpy as np

from perception import errors, roles

FOREGROUND_COUNT = 100
BACKGROUND_COUNT = 225
BACKGROUND_ID = -1
_SIFT_FACTOR = 4
_CORNER_QUALITY = 0.01
_CORNER_DISTANCE = 5
_GRID_SEED = 42
_MAX_TRACKER_SIDE = 880


def seed_anchors(gray: np.ndarray, mask: np.ndarray) -> np.ndarray:
  """Points on an object: SIFT, topped up with corners, else a grid.

  SIFT keypoints inside the mask; if fewer than half of the wanted 100, corners
  fill up to 100; if fewer than 2 in all, the grid replaces them.

  Args:
    gray: uint8 [H, W].
    mask: bool [H, W].

  Returns:
    float32 [N, 2], N <= 100; N = 0 for an empty mask.

  Raises:
    InputError: wrong shape or dtype.
  """
  _check(gray, mask)
  points = sift_points(gray, mask, count=FOREGROUND_COUNT)
  if len(points) < FOREGROUND_COUNT // 2:
    missing = FOREGROUND_COUNT - len(points)
    corners = shi_tomasi_points(gray, mask, count=missing)
    points = np.concatenate([points, corners])
  return points if len(points) >= 2 else grid_points(mask)


def seed_background(gray: np.ndarray, mask: np.ndarray) -> np.ndarray:
  """Corners outside an object; a grid when there are fewer than 2.

  Args:
    gray: uint8 [H, W].
    mask: bool [H, W] of the object.

  Returns:
    float32 [N, 2], N <= 225; N = 0 when the mask covers the picture.

  Raises:
    InputError: wrong shape or dtype.
  """
  _check(gray, mask)
  points = shi_tomasi_points(gray, ~mask, count=BACKGROUND_COUNT)
  if len(points) < 2:
    return grid_points(~mask, count=BACKGROUND_COUNT)
  return points


def sift_points(
  gray: np.ndarray, mask: np.ndarray, *, count: int
) -> np.ndarray:
  """The strongest SIFT keypoints whose rounded position lies in the mask.

  Keypoints are detected over the whole picture (the 4 * count strongest), so a
  strongly textured background can leave few for the object.
  """
  detector = cv2.SIFT.create(nfeatures=_SIFT_FACTOR * count)
  keypoints = sorted(detector.detect(gray, None), key=lambda k: -k.response)
  xy = np.array([k.pt for k in keypoints], np.float32).reshape(-1, 2)
  column, row = np.rint(xy).astype(np.int64).T
  height, width = gray.shape
  inside = (column >= 0) & (column < width) & (row >= 0) & (row < height)
  inside[inside] = mask[row[inside], column[inside]]
  return xy[inside][:count]


def shi_tomasi_points(
  gray: np.ndarray, mask: np.ndarray, *, count: int
) -> np.ndarray:
  """Up to `count` corners of the minimum-eigenvalue kind in the mask."""
  if count < 1 or not mask.any():
    return np.zeros((0, 2), np.float32)
  corners = cv2.goodFeaturesToTrack(
    gray,
    maxCorners=count,
    qualityLevel=_CORNER_QUALITY,
    minDistance=_CORNER_DISTANCE,
    mask=mask.astype(np.uint8) * 255,
  )
  if corners is None:
    return np.zeros((0, 2), np.float32)
  return np.asarray(corners, np.float32).reshape(-1, 2)


def grid_points(
  mask: np.ndarray, *, count: int = FOREGROUND_COUNT
) -> np.ndarray:
  """One random mask pixel in each cell of a grid over the whole picture.

  The picture, not the object, is cut into side x side cells with
  side = ceil(sqrt(min(count, mask pixels))); a small object therefore gets one
  point per touched cell. If no cell has a mask pixel, `count` (or all) mask
  pixels are drawn at random. The generator is seeded with 42.
  """
  height, width = mask.shape
  rows, columns = np.nonzero(mask)
  if not rows.size:
    return np.zeros((0, 2), np.float32)
  generator = np.random.default_rng(_GRID_SEED)
  side = int(np.ceil(np.sqrt(min(count, rows.size))))
  cell_height, cell_width = height // side, width // side
  points = []
  for cell_row in range(side):
    for cell_column in range(side):
      top, left = cell_row * cell_height, cell_column * cell_width
      cell = mask[top : top + cell_height, left : left + cell_width]
      in_row, in_column = np.nonzero(cell)
      if in_row.size:
        pick = int(generator.integers(in_row.size))
        points.append((left + in_column[pick], top + in_row[pick]))
  if not points:
    picks = generator.choice(
      rows.size, size=min(count, rows.size), replace=False
    )
    points = list(zip(columns[picks], rows[picks], strict=True))
  return np.array(points, np.float32).reshape(-1, 2)


def tracker_size(size: tuple[int, int]) -> tuple[int, int]:
  """(H, W) of the picture that points are seeded on.

  Sides are multiplied by 880 / max(H, W), and cut to whole pixels, when the
  longer one exceeds 880.
  """
  height, width = size
  longest = max(height, width)
  if longest <= _MAX_TRACKER_SIDE:
    return height, width
  scale = _MAX_TRACKER_SIDE / longest
  return max(1, int(height * scale)), max(1, int(width * scale))


def seed_queries(
  image: np.ndarray, masks: np.ndarray, object_ids: np.ndarray
) -> roles.Queries:
  """Queries on frame 0 for each object and, once, for the background.

  Args:
    image: RGB uint8 [H, W, 3], frame 0 of the clip.
    masks: bool [O, H, W], the objects in it.
    object_ids: [O].

  Returns:
    Queries in pixels of `image`: objects in order, then the background (-1).

  Raises:
    InputError: wrong shapes, or an object without a mask pixel on frame 0.
  """
  height, width = image.shape[:2]
  size = tracker_size((height, width))
  gray = cv2.cvtColor(
    cv2.resize(image, size[::-1], interpolation=cv2.INTER_LINEAR),
    cv2.COLOR_RGB2GRAY,
  )
  scale = np.array([width / size[1], height / size[0]], np.float32)
  points, ids = [], []
  covered = np.zeros(size, bool)
  for object_id, mask in zip(object_ids, masks, strict=True):
    if mask.shape != (height, width) or not mask.any():
      raise errors.InputError(
        f"object {object_id}",
        "mask of frame 0",
        found=f"shape {mask.shape}, {np.count_nonzero(mask)} pixels",
        expected=f"shape {(height, width)} and at least one pixel",
        hint="Give a mask or box that covers the object on the first frame.",
      )
    small = _resize_mask(mask, size)
    covered |= small
    points.append(seed_anchors(gray, small))
    ids.append(np.full(len(points[-1]), object_id, np.int32))
  points.append(seed_background(gray, covered))
  ids.append(np.full(len(points[-1]), BACKGROUND_ID, np.int32))
  xy = np.concatenate(points) * scale
  return roles.Queries(
    xy=xy.astype(np.float32),
    frame_row=np.zeros(len(xy), np.int32),
    object_ids=np.concatenate(ids),
  )


def _resize_mask(mask: np.ndarray, size: tuple[int, int]) -> np.ndarray:
  if mask.shape == size:
    return mask
  resized = cv2.resize(
    mask.astype(np.uint8), size[::-1], interpolation=cv2.INTER_NEAREST
  )
  return resized.astype(bool)


def _check(gray: np.ndarray, mask: np.ndarray) -> None:
  good = gray.ndim == 2 and gray.dtype == np.uint8 and gray.size
  if not good or mask.shape != gray.shape or mask.dtype != np.bool_:
    raise errors.InputError(
      "seeding",
      "arguments",
      found=f"{gray.dtype} {gray.shape}, {mask.dtype} {mask.shape}",
      expected="uint8 [H, W] grey and bool [H, W] mask",
    )
