# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""One clip's arrays, their alignment in time and space, and mask statistics.

Conventions: arrays index [t, y, x]; tracks are (x, y) video pixels; the map is
the grid of the depth or of the point maps. NaN depth means "no measurement";
a point map's zero vector means the same in the published format.
"""

from __future__ import annotations

import dataclasses

import cv2
import numpy as np
from numpy.typing import ArrayLike

from perception.errors import InputError
from protocols.pdi.constants import PdiConstants


@dataclasses.dataclass(frozen=True)
class ClipArrays:
  """What one clip is scored from.

  Attributes:
    masks: [T, H, W] bool, the object at video resolution.
    tracks: [T, N, 2] video pixels, or None.
    visibility: [T, N] bool or confidence in [0, 1], or None.
    fps: frames per second; 0 or less means unknown.
    object_depth: [T] depth of the object, any unit, or None: the median of
      `depth` under the mask is taken (section 2.3).
    pointmaps: [T, h, w, 3] world points, or None.
    depth: [T, h, w] camera-axis depth, or None; used if `pointmaps` is None.
    intrinsics: [3, 3] or [T, 3, 3] at (h, w); needed with `depth`.
    c2w: [T, 4, 4] camera-to-world; needed with `depth`.
    resized_size: (w1, h1), the size that the video was resized to before the
      map was cropped at the bottom and right; None: not cropped.
    tracks_filtered: whether `tracks` went through the filter of section 2.6
      already.
    name: names the clip in errors.
  """

  masks: np.ndarray
  tracks: np.ndarray | None
  visibility: np.ndarray | None
  fps: float
  object_depth: np.ndarray | None = None
  pointmaps: np.ndarray | None = None
  depth: np.ndarray | None = None
  intrinsics: np.ndarray | None = None
  c2w: np.ndarray | None = None
  resized_size: tuple[int, int] | None = None
  tracks_filtered: bool = False
  name: str = "clip"

  def __post_init__(self) -> None:
    """Checks shapes; raises `InputError`."""
    _require(self, "masks", self.masks, 3)
    if self.masks.dtype != np.bool_:
      raise InputError(
        self.name, "masks", found=self.masks.dtype, expected="bool"
      )
    if (self.tracks is None) != (self.visibility is None):
      raise InputError(
        self.name,
        "visibility",
        found="only one of tracks and visibility",
        expected="both or none",
      )
    if self.tracks is not None and self.visibility is not None:
      _require(self, "tracks", self.tracks, 3, last=2)
      if self.visibility.shape != self.tracks.shape[:2]:
        raise InputError(
          self.name,
          "visibility",
          found=self.visibility.shape,
          expected=self.tracks.shape[:2],
        )
    if self.object_depth is not None:
      _require(self, "object_depth", self.object_depth, 1)
    if self.pointmaps is not None:
      _require(self, "pointmaps", self.pointmaps, 4, last=3)
    elif self.depth is not None:
      _require(self, "depth", self.depth, 3)
      if self.c2w is None or self.intrinsics is None:
        raise InputError(
          self.name,
          "c2w, intrinsics",
          found="depth without both",
          expected="camera-to-world poses and intrinsics with depth",
        )
      if self.c2w.shape != (self.depth.shape[0], 4, 4):
        raise InputError(
          self.name,
          "c2w",
          found=self.c2w.shape,
          expected=(self.depth.shape[0], 4, 4),
        )

  @property
  def num_frames(self) -> int:
    """T = min(T_masks, T_tracks, T_Z) (section 0)."""
    lengths = [self.masks.shape[0]]
    if self.tracks is not None:
      lengths.append(self.tracks.shape[0])
    if self.object_depth is not None:
      lengths.append(self.object_depth.shape[0])
    elif self.depth is not None:
      lengths.append(self.depth.shape[0])
    return min(lengths)

  @property
  def map_size(self) -> tuple[int, int] | None:
    """(h, w) of the reconstruction, None without one."""
    if self.pointmaps is not None:
      return self.pointmaps.shape[1], self.pointmaps.shape[2]
    if self.depth is not None:
      return self.depth.shape[1], self.depth.shape[2]
    return None

  @property
  def has_points(self) -> bool:
    """Whether a point map covers all frames in use (section 0)."""
    source = self.pointmaps if self.pointmaps is not None else self.depth
    return source is not None and source.shape[0] >= max(self.num_frames, 1)


@dataclasses.dataclass(frozen=True)
class MaskStatistics:
  """Per-frame figures of the masks at video resolution (section 2.2).

  Attributes:
    height: [T] float64 ymax - ymin; 0 for at most `min_mask_pixels` pixels.
    x_center: [T] float64 mean column; the previous one where lost.
    truncated: [T] bool, touches the upper or lower border, or lost.
    count: [T] int64 pixels.
  """

  height: np.ndarray
  x_center: np.ndarray
  truncated: np.ndarray
  count: np.ndarray


def mask_statistics(
  masks: np.ndarray, constants: PdiConstants
) -> MaskStatistics:
  """Heights, centres and truncation flags of [T, H, W] bool masks."""
  frames, rows, columns = masks.shape
  height = np.zeros(frames)
  x_center = np.zeros(frames)
  truncated = np.ones(frames, bool)
  count = np.zeros(frames, np.int64)
  x = np.arange(columns, dtype=np.float64)
  previous = 0.0
  for t in range(frames):
    image = np.ascontiguousarray(masks[t]).view(np.uint8)
    count[t] = cv2.countNonZero(image)
    if count[t] > constants.min_mask_pixels:
      _, top, _, extent = cv2.boundingRect(image)
      bottom = top + extent - 1
      height[t] = bottom - top
      per_column = cv2.reduce(image, 0, cv2.REDUCE_SUM, dtype=cv2.CV_32S)
      previous = float(per_column[0] @ x / count[t])
      margin = constants.truncation_margin
      truncated[t] = top < margin or bottom > rows - margin
    x_center[t] = previous
  return MaskStatistics(height, x_center, truncated, count)


def resize_nearest(image: np.ndarray, height: int, width: int) -> np.ndarray:
  """Nearest resize of [..., H, W]: source index floor(dst * src / dst_size)."""
  if image.shape[-2:] == (height, width):
    return image
  rows = np.arange(height) * image.shape[-2] // height
  columns = np.arange(width) * image.shape[-1] // width
  return image[..., rows, :][..., columns]


def masks_on_map(
  clip: ClipArrays, frames: slice | np.ndarray, constants: PdiConstants
) -> np.ndarray:
  """Masks of some frames on the grid of the map.

  Released: stretched to the map. Paper (section 2.7): resized to the size
  before the crop, then cropped like the map.
  """
  size = clip.map_size
  assert size is not None
  masks = clip.masks[frames]
  if not constants.rescale_tracks or clip.resized_size is None:
    return resize_nearest(masks, *size)
  width, height = clip.resized_size
  return resize_nearest(masks, height, width)[:, : size[0], : size[1]]


def filter_tracks(
  tracks: np.ndarray, visibility: np.ndarray, constants: PdiConstants
) -> np.ndarray:
  """Tracks seen often enough that never jump (section 2.6).

  Args:
    tracks: [T, N, 2] video pixels.
    visibility: [T, N].
    constants: thresholds.

  Returns:
    [N] bool; all True if fewer than `min_tracks` would remain.
  """
  frames, count = tracks.shape[:2]
  if frames == 0:
    return np.ones(count, bool)
  seen = visibility.astype(np.float64).mean(axis=0)
  keep = seen >= constants.min_track_visibility
  if frames > 1:
    step = np.linalg.norm(np.diff(tracks.astype(np.float64), axis=0), axis=-1)
    keep &= step.max(axis=0) < constants.max_track_jump
  if keep.sum() < constants.min_tracks:
    return np.ones(count, bool)
  return keep


def read_intrinsics(
  matrix: ArrayLike, constants: PdiConstants
) -> tuple[float, float, float, float]:
  """(fx, fy, cx, cy) of a 3x3 matrix or of four or more numbers (2.4)."""
  values = np.asarray(matrix, np.float64)
  if values.shape == (3, 3):
    return values[0, 0], values[1, 1], values[0, 2], values[1, 2]
  if values.ndim == 1 and values.size >= 4:
    return values[0], values[1], values[2], values[3]
  return constants.default_intrinsics


def normalise_depth(series: np.ndarray, constants: PdiConstants) -> np.ndarray:
  """Divides a [T] depth series by its first value, twice (section 2.3)."""
  if series.size == 0:
    return series
  scaled = series / (series[0] + series.dtype.type(constants.depth_normaliser))
  if abs(scaled[0]) < constants.depth_normaliser_floor:
    return scaled
  return scaled / scaled[0]


def frame_rate(fps: float, constants: PdiConstants) -> float:
  """Frames per second, 24 where unknown, at least 1 (sections 1.2, 4.3)."""
  rate = fps if fps > 0 else constants.default_fps
  return max(rate, constants.min_frame_rate)


def bucket(count: int, *, smallest: int) -> int:
  """Smallest of {4, 5, 6, 7} 2^k and `smallest` that holds `count`.

  Arrays are padded to such lengths, so that many clips share few compiled
  shapes and at most a quarter of the work is padding.
  """
  if count <= smallest:
    return smallest
  step = 1 << max((count - 1).bit_length() - 3, 0)
  return -(-count // step) * step


def _require(
  clip: ClipArrays,
  field: str,
  array: np.ndarray,
  rank: int,
  *,
  last: int | None = None,
) -> None:
  if array.ndim != rank or (last is not None and array.shape[-1] != last):
    shape = f"rank {rank}" + (f" ending in {last}" if last else "")
    raise InputError(clip.name, field, found=array.shape, expected=shape)
