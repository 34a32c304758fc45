# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Real cases from a recorded RGB-D sequence with poses.

The recording is played forwards and back, every frame held for a few video
frames, so that it fills the 357 poses of a short case: it starts and ends at
the input view and passes every place twice. The requested path is the
recorded one, a staircase in time, and the recorded frames are a perfect
generator of it. Anchors are boxes on the input picture; what of them the
query shows follows from depth (`protocols.orbia.shared_surface`).
"""

from __future__ import annotations

import dataclasses
import functools
import itertools

import numpy as np
from numpy.typing import NDArray

from perception.recorded import PosedRgbdSource
from protocols.orbia import reference
from protocols.orbia.baselines import Shot, rotated_view
from protocols.orbia.constants import RELEASED
from protocols.orbia.dataset import ReferenceFrame
from protocols.orbia.dataset_writer import CaseContent
from protocols.orbia.shared_surface import reference_of, shared_surface

VIDEO_SIZE = (180, 320)
_INPUT_SIZE = (RELEASED.image_height, RELEASED.image_width)
_QUERY_SHARE, _FIRST_SHARE = 0.4, 0.75  # of the way out
_MIN_SUPPORT = 0.2
_GRID = (3, 4)  # candidate boxes down and across
_ANCHORS = 2


@dataclasses.dataclass(frozen=True, eq=False)
class RecordedWorld:
  """A recording on the grid of a video; see `baselines.ShownWorld`.

  Attributes:
    source: the recording.
    rows: its rows that are used, in order.
    hold: video frames for each row.
    size: (H, W) of the video.
  """

  source: PosedRgbdSource
  rows: tuple[int, ...]
  hold: int
  size: tuple[int, int] = VIDEO_SIZE

  @property
  def frame_count(self) -> int:
    """Frames of the request."""
    return (2 * len(self.rows) - 1) * self.hold

  @property
  def turnaround(self) -> int:
    """Middle of the hold of the farthest row."""
    return self.frame_count // 2

  @property
  def native_to_input(self) -> NDArray[np.float64]:
    """Native pixels to pixels of the 1280 x 720 input picture."""
    height, width = self.source.size
    return reference.canonical_transform(width, height, input_size=_INPUT_SIZE)

  @property
  def native_to_video(self) -> NDArray[np.float64]:
    """Native pixels to video pixels."""
    return reference.input_to_video(
      self.native_to_input, input_size=_INPUT_SIZE, video_size=self.size
    )

  @property
  def intrinsics(self) -> NDArray[np.float64]:
    """3x3 on the video's grid."""
    return self.native_to_video @ self.source.intrinsics[self.rows[0]]

  def place(self, frame: int) -> int:
    """Number of the recorded row (0 = input) that a video frame shows."""
    step = frame // self.hold
    return min(step, 2 * (len(self.rows) - 1) - step)

  def frame_of(self, place: int) -> int:
    """Video frame in the middle of the outbound hold of a row."""
    return place * self.hold + self.hold // 2

  def pose(self, place: int) -> NDArray[np.float64]:
    """Pose of a row relative to the input row, rigid to rounding."""
    return _rigid(
      np.linalg.inv(self.source.c2w[self.rows[0]])
      @ self.source.c2w[self.rows[place]]
    )

  def poses(self) -> NDArray[np.float64]:
    """Requested poses [N, 4, 4]."""
    every = [self.pose(place) for place in range(len(self.rows))]
    return np.stack([every[self.place(f)] for f in range(self.frame_count)])

  @functools.lru_cache(maxsize=128)  # noqa: B019 - lives as long as the world
  def _shown(self, place: int) -> Shot:
    row, transform = self.rows[place], self.native_to_video
    depth = np.nan_to_num(self.source.depth(row), nan=0.0)
    moved = reference.warp_nearest(depth, transform, size=self.size)
    image = reference.warp_image(
      self.source.rgb(row), transform, size=self.size
    )
    shown = np.where(moved > 0, moved, np.nan).astype(np.float32)
    return Shot(image, shown, self.pose(place))

  def prepare(self, generator: object, frames: object) -> None:
    """Nothing to prepare: frames are read when asked for."""

  def shot(self, frame: int) -> Shot:
    """The recorded frame."""
    return self._shown(self.place(frame))

  def drifted(self, frame: int, *, share: float, turn_deg: float) -> Shot:
    """The recorded frame at a share of the way, turned to the right."""
    shot = self._shown(round(share * self.place(frame)))
    return rotated_view(shot, self.intrinsics, turn_deg)

  def elsewhere(self, frame: int) -> Shot:
    """A row half the recording away, under the pose of this frame."""
    place = self.place(frame)
    other = self._shown((place + len(self.rows) // 2) % len(self.rows))
    return other._replace(pose=self.pose(place))


def build_case(
  world: RecordedWorld, *, case_id: str, source: str = "self-recorded"
) -> CaseContent:
  """A case of the published layout over a recording.

  Args:
    world: the recording, at least 8 rows.
    case_id: its id.
    source: source name.

  Returns:
    `CaseContent`, ready to be written.

  Raises:
    ValueError: too few rows, or the rows share no surface with the first.
  """
  count = len(world.rows)
  if count < 8:
    raise ValueError(f"{count} recorded frames; at least 8 are needed")
  first = _native_view(world, 0)
  query_place, query = _query_view(world, first)
  visit = min(
    max(round(_FIRST_SHARE * (count - 1)), query_place + 2), count - 2
  )
  last = world.frame_count - 1
  visit_frame = world.frame_of(visit)
  events = {
    "q0": 0,
    "w1": world.frame_of(max(query_place // 2, 1)),
    "qe1": world.frame_of(query_place),
    "qc_first": visit_frame,
    "w2": world.turnaround,
    "qc_revisit": last - visit_frame,
    "q0_return": last,
  }
  poses = world.poses()
  return CaseContent(
    case_id=case_id,
    parent_case_id=None,
    source=source,
    template=_template(poses),
    pose_unit="metre",
    image=reference.warp_image(
      first.rgb, world.native_to_input, size=_INPUT_SIZE
    ),
    prompt="A recorded place, seen by a hand-held camera.",
    intrinsics=world.native_to_input @ first.k_rgb,
    poses=poses,
    events=events,
    pairs={"C": ("qc_first", "qc_revisit")},
    reference=reference_of(
      first,
      query,
      _box_anchors(first, query),
      source=source,
      native_to_input=world.native_to_input,
      depth_unit="metre",
    ),
  )


def short_worlds(source: PosedRgbdSource) -> list[RecordedWorld]:
  """Worlds of 357 frames: the whole recording, or parts of it.

  357 = 3 x (2 x 60 - 1) = 7 x (2 x 26 - 1): 60 rows are held for three frames,
  26 rows for seven.
  """
  count = len(source)
  worlds = []
  if count >= 60:
    worlds.append(RecordedWorld(source, tuple(range(60)), 3))
  for start in range(0, count - 25, 17):
    worlds.append(RecordedWorld(source, tuple(range(start, start + 26)), 7))
  return worlds


def _native_view(world: RecordedWorld, place: int) -> ReferenceFrame:
  row = world.rows[place]
  depth = np.nan_to_num(world.source.depth(row), nan=0.0)
  k = np.asarray(world.source.intrinsics[row], np.float64)
  # The native camera in both roles; its principal point is the recording's
  # own, in the +0.5 convention of construction geometry within half a pixel.
  return ReferenceFrame(
    rgb=world.source.rgb(row),
    depth=depth.astype(np.float32),
    valid=depth > 0,
    pose=world.pose(place),
    k_rgb=k,
    k_depth=k,
  )


def _query_view(
  world: RecordedWorld, first: ReferenceFrame
) -> tuple[int, ReferenceFrame]:
  """The farthest row up to the wanted share that still shows enough."""
  for place in range(round(_QUERY_SHARE * (len(world.rows) - 1)), 1, -1):
    view = _native_view(world, place)
    if shared_surface(view, first).supported.mean() >= _MIN_SUPPORT:
      return place, view
  raise ValueError("no recorded frame shares enough surface with the first")


def _box_anchors(
  first: ReferenceFrame, query: ReferenceFrame
) -> dict[str, tuple[NDArray[np.bool_], NDArray[np.bool_]]]:
  """Boxes on the input picture with the largest region in the query."""
  support = shared_surface(query, first)
  height, width = first.depth.shape
  rows = np.linspace(0, height, _GRID[0] + 1).astype(int)
  columns = np.linspace(0, width, _GRID[1] + 1).astype(int)
  found = []
  for top, bottom in itertools.pairwise(rows):
    for left, right in itertools.pairwise(columns):
      mask = np.zeros((height, width), bool)
      mask[top:bottom, left:right] = True
      region = support.supported & mask[support.input_row, support.input_column]
      found.append((int(region.sum()), mask & first.valid, region))
  found.sort(key=lambda entry: -entry[0])
  return {
    f"A{number}": (mask, region)
    for number, (_, mask, region) in enumerate(found[:_ANCHORS], start=1)
  }


def _template(poses: NDArray[np.float64]) -> str:
  """The template that a hand-held path resembles most."""
  reach = np.max(np.abs(poses[:, :3, 3]), axis=0)
  if reach.max() < 0.15:
    return "yaw_return"
  return "forward_backward" if reach[2] > reach[0] else "lateral_out_and_back"


def _rigid(pose: NDArray[np.float64]) -> NDArray[np.float64]:
  """Projects the rotation block to the nearest rotation."""
  left, _, right = np.linalg.svd(pose[:3, :3])
  out = np.eye(4)
  out[:3, :3] = left @ np.diag([1.0, 1.0, np.linalg.det(left @ right)]) @ right
  out[:3, 3] = pose[:3, 3]
  return out
