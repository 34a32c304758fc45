# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Anchors of one clip on the map: indices, depth gradient, edge distance.

The pictures' gradient and distance come from OpenCV, whose fixed-point 5x5
chamfer distance and Sobel rounding the published selection rests on.
"""

from __future__ import annotations

import dataclasses
import functools

import cv2
import numpy as np

from protocols.pdi.clip import ClipArrays, filter_tracks
from protocols.pdi.constants import PdiConstants
from protocols.pdi.lifting import PointSource


@dataclasses.dataclass(frozen=True)
class Anchors:
  """Filtered tracks of a clip.

  Attributes:
    tracks: [T, N, 2] video pixels, the tracks that were kept.
    visible: [T, N] bool, visibility above the threshold.
    num_tracks: tracks before the filter.
  """

  tracks: np.ndarray
  visible: np.ndarray
  num_tracks: int


@dataclasses.dataclass(frozen=True)
class MapAnchors:
  """Anchors on the grid of the map.

  Attributes:
    index: [T, N] int32 flat pixel index, clipped into the map.
    visible: [T, N] bool; paper: False where outside the map.
    gradient: [N] float32 gradient of world Z at frame 0.
    edge_distance: [N] float32 pixels to the object's boundary at frame 0.
    outside_fraction: share of (t, n) whose rounded position is outside.
  """

  index: np.ndarray
  visible: np.ndarray
  gradient: np.ndarray
  edge_distance: np.ndarray
  outside_fraction: float


def select_anchors(clip: ClipArrays, constants: PdiConstants) -> Anchors | None:
  """The filtered tracks of the frames in use; None without tracks."""
  if clip.tracks is None or clip.visibility is None:
    return None
  frames = clip.num_frames
  tracks, visibility = clip.tracks[:frames], clip.visibility[:frames]
  keep = np.ones(tracks.shape[1], bool)
  if not clip.tracks_filtered:
    keep = filter_tracks(tracks, visibility, constants)
  visible = visibility[:, keep] > constants.visibility_threshold
  return Anchors(tracks[:, keep], visible, tracks.shape[1])


def locate(
  clip: ClipArrays,
  anchors: Anchors,
  source: PointSource,
  edge_mask: np.ndarray,
  constants: PdiConstants,
) -> MapAnchors:
  """Puts anchors on the map (section 2.7) and measures the map around them.

  Args:
    clip: sizes.
    anchors: filtered tracks.
    source: the reconstruction.
    edge_mask: [h, w] bool of frame 0, whose boundary counts.
    constants: variant.

  Returns:
    `MapAnchors`.
  """
  size = clip.map_size
  assert size is not None
  height, width = size
  position = anchors.tracks
  if constants.rescale_tracks:
    # Paper, section 2.7 [R]: from video to map pixels, at pixel centres.
    rows, columns = clip.masks.shape[1:]
    to_width, to_height = clip.resized_size or (width, height)
    scale = np.array([to_width / columns, to_height / rows])
    position = (position.astype(np.float64) + 0.5) * scale - 0.5
  # Released, section 2.7 [C]: video pixels index the map as they are.
  rounded = np.rint(position)
  limit = np.array([width - 1, height - 1])
  inside = np.all((rounded >= 0) & (rounded <= limit), axis=-1)
  pixel = np.clip(np.nan_to_num(rounded), 0, limit).astype(np.int32)
  index = pixel[..., 1] * np.int32(width) + pixel[..., 0]
  visible = anchors.visible
  if constants.rescale_tracks:
    visible = visible & inside
  if pixel.shape[0] == 0 or pixel.shape[1] == 0:
    empty = np.zeros(pixel.shape[1], np.float32)
    return MapAnchors(index, visible, empty, empty, 0.0)
  column, row = pixel[0, :, 0], pixel[0, :, 1]
  gradient = _gradient_at(source, row, column)
  if constants.drop_nonfinite:  # section 2.8 [R]
    gradient = np.where(np.isfinite(gradient), gradient, np.float32(np.inf))
  return MapAnchors(
    index,
    visible,
    gradient,
    edge_distances(edge_mask)[row, column],
    float(1 - inside.mean()),
  )


def edge_distances(mask: np.ndarray) -> np.ndarray:
  """[h, w] float32 distance to the nearest background pixel (5.2 step 2).

  Without background: the largest float32 everywhere.
  """
  if mask.all():
    return np.full(mask.shape, np.finfo(np.float32).max, np.float32)
  image = np.ascontiguousarray(mask).view(np.uint8)
  return cv2.distanceTransform(image, cv2.DIST_L2, cv2.DIST_MASK_5)


@functools.lru_cache(maxsize=256)
def random_pairs(count: int, *, limit: int, seed: int) -> np.ndarray:
  """Distinct pairs of the 2D fallback, in the order drawn (section 5.4).

  Args:
    count: number of anchors.
    limit: pairs at most.
    seed: of NumPy's default generator.

  Returns:
    [K, 2] int64, K = min(limit, count (count - 1) / 2).
  """
  generator = np.random.default_rng(seed)
  wanted = min(limit, count * (count - 1) // 2)
  pairs: list[tuple[int, int]] = []
  seen: set[frozenset[int]] = set()
  while len(pairs) < wanted:
    first, second = generator.choice(count, 2, replace=False)
    key = frozenset((int(first), int(second)))
    if key not in seen:
      seen.add(key)
      pairs.append((int(first), int(second)))
  return np.array(pairs, np.int64).reshape(-1, 2)


def random_subsets(count: int, constants: PdiConstants) -> np.ndarray:
  """[S, N] bool: the share of the anchors that each seed keeps (8.5 [R])."""
  size = round(constants.anchor_fraction * count)
  subsets = np.zeros((len(constants.anchor_seeds), count), bool)
  for row, seed in enumerate(constants.anchor_seeds):
    chosen = np.random.default_rng(seed).choice(count, size, replace=False)
    subsets[row, chosen] = True
  return subsets


def _gradient_at(
  source: PointSource, row: np.ndarray, column: np.ndarray
) -> np.ndarray:
  """Sobel magnitude of world Z of frame 0 at pixels (section 5.2 step 3).

  Only the part of the map that holds the anchors is lifted. It keeps a margin
  of one pixel, so that a border of the part is a border of the map or unused.
  """
  size = source.clip.map_size
  assert size is not None
  top, left = max(row.min() - 1, 0), max(column.min() - 1, 0)
  bottom = min(row.max() + 2, size[0])
  right = min(column.max() + 2, size[1])
  points = source.window(0, slice(top, bottom), slice(left, right))
  world_z = np.ascontiguousarray(points[..., 2], dtype=np.float32)
  border = cv2.BORDER_REFLECT_101
  along_x = cv2.Sobel(world_z, cv2.CV_32F, 1, 0, ksize=3, borderType=border)
  along_y = cv2.Sobel(world_z, cv2.CV_32F, 0, 1, ksize=3, borderType=border)
  gradient = np.sqrt(along_x * along_x + along_y * along_y)
  return gradient[row - top, column - left]
