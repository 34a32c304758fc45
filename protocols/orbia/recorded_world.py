# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""A recorded RGB-D sequence as a world to explore and to come back in.

The recording is walked out over every other row and back over the rows in
between, each row held for a few video frames. It ends at the input view, and
apart from that view no picture is shown twice: a place is seen again from
another pose, by another exposure, as a camera that really returns would.
Requested poses are the recorded ones, a staircase in time, and the recorded
frames are a perfect generator of them.
"""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
from numpy.typing import NDArray

from protocols.orbia import reference
from protocols.orbia.baselines import Shot, rotated_view
from protocols.orbia.constants import RELEASED
from protocols.orbia.dataset import ReferenceFrame
from protocols.orbia.fused_depth import PosedDepthSource

VIDEO_SIZE = (180, 320)
INPUT_SIZE = (RELEASED.image_height, RELEASED.image_width)


@dataclasses.dataclass(frozen=True, eq=False)
class RecordedWorld:
  """A walk over a recording; see `baselines.ShownWorld`.

  Attributes:
    source: the recording.
    start: row of the input view.
    heading: 1 to walk with time, -1 against it.
    steps: rows that are walked, out and back together; at least 8.
    hold: video frames for each row.
    size: (H, W) of the video.
  """

  source: PosedDepthSource
  start: int
  heading: int
  steps: int
  hold: int
  size: tuple[int, int] = VIDEO_SIZE

  def __post_init__(self) -> None:
    last = self.start + self.heading * (self.steps - 1)
    if self.heading not in (-1, 1) or self.steps < 8:
      raise ValueError(f"heading {self.heading}, {self.steps} steps")
    if not (0 <= self.start < len(self.source) > last >= 0):
      raise ValueError(
        f"rows {self.start} to {last} of a recording of {len(self.source)}"
      )

  @functools.cached_property
  def places(self) -> tuple[int, ...]:
    """How far from the input row each step is, in rows."""
    out = range(0, self.steps, 2)
    back = range(self.steps - 1 - self.steps % 2, 0, -2)
    return (*out, *back[:-1], 0)

  @property
  def frame_count(self) -> int:
    """Frames of the request."""
    return self.steps * self.hold

  @property
  def turning_step(self) -> int:
    """Last step on the way out."""
    return (self.steps - 1) // 2

  @property
  def turnaround(self) -> int:
    """Middle of the hold of the last step on the way out."""
    return self.frame_of(self.turning_step)

  @property
  def native_to_input(self) -> NDArray[np.float64]:
    """Native pixels to pixels of the 1280 x 720 input picture."""
    height, width = self.source.size
    return reference.canonical_transform(width, height, input_size=INPUT_SIZE)

  @property
  def native_to_video(self) -> NDArray[np.float64]:
    """Native pixels to video pixels."""
    return reference.input_to_video(
      self.native_to_input, input_size=INPUT_SIZE, video_size=self.size
    )

  @property
  def intrinsics(self) -> NDArray[np.float64]:
    """3x3 on the video's grid."""
    return self.native_to_video @ self.source.intrinsics[self.start]

  def row(self, place: int) -> int:
    """Row of the recording at a distance from the input row."""
    return self.start + self.heading * place

  def place(self, frame: int) -> int:
    """Distance from the input row of what a video frame shows, in rows."""
    return self.places[frame // self.hold]

  def frame_of(self, step: int) -> int:
    """Video frame in the middle of the hold of a step."""
    return step * self.hold + self.hold // 2

  def pose(self, place: int) -> NDArray[np.float64]:
    """Pose relative to the input row, rigid to rounding."""
    return _rigid(
      np.linalg.inv(self.source.c2w[self.start])
      @ self.source.c2w[self.row(place)]
    )

  def poses(self) -> NDArray[np.float64]:
    """Requested poses [N, 4, 4]."""
    every = [self.pose(place) for place in self.places]
    return np.repeat(np.stack(every), self.hold, axis=0)

  def native_view(self, place: int) -> ReferenceFrame:
    """A recorded row on its own grid."""
    row = self.row(place)
    depth = np.nan_to_num(self.source.depth(row), nan=0.0)
    k = np.asarray(self.source.intrinsics[row], np.float64)
    # The native camera in both roles; its principal point is the recording's
    # own, in the +0.5 convention of construction geometry within half a pixel.
    return ReferenceFrame(
      rgb=self.source.rgb(row),
      depth=depth.astype(np.float32),
      valid=depth > 0,
      pose=self.pose(place),
      k_rgb=k,
      k_depth=k,
    )

  def prepare(self, generator: object, frames: object) -> None:
    """Nothing to prepare: frames are read when asked for."""

  def shot(self, frame: int) -> Shot:
    """The recorded frame."""
    return self._shown(self.place(frame))

  def drifted(self, frame: int, *, share: float, turn_deg: float) -> Shot:
    """The recorded frame at a share of the way, turned to the right."""
    shot = self._shown(self._within(round(share * self.place(frame))))
    return rotated_view(shot, self.intrinsics, turn_deg)

  def elsewhere(self, frame: int) -> Shot:
    """A row half the walk away, under the pose of this frame."""
    place = self.place(frame)
    other = self._shown((place + self.steps // 2) % self.steps)
    return other._replace(pose=self.pose(place))

  def _within(self, place: int) -> int:
    """A place that the recording has: its ends stop a camera that goes on."""
    row = min(max(self.row(place), 0), len(self.source) - 1)
    return abs(row - self.start)

  @functools.lru_cache(maxsize=128)  # noqa: B019 - lives as long as the world
  def _shown(self, place: int) -> Shot:
    row, transform = self.row(place), self.native_to_video
    depth = np.nan_to_num(self.source.depth(row), nan=0.0)
    moved = reference.warp_nearest(depth, transform, size=self.size)
    image = reference.warp_image(
      self.source.rgb(row), transform, size=self.size
    )
    shown = np.where(moved > 0, moved, np.nan).astype(np.float32)
    return Shot(image, shown, self.pose(place))


def _rigid(pose: NDArray[np.float64]) -> NDArray[np.float64]:
  """Projects the rotation block to the nearest rotation."""
  left, _, right = np.linalg.svd(pose[:3, :3])
  out = np.eye(4)
  out[:3, :3] = left @ np.diag([1.0, 1.0, np.linalg.det(left @ right)]) @ right
  out[:3, 3] = pose[:3, 3]
  return out
