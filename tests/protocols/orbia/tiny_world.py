# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""A textured wall seen by a camera that steps aside and back: 41 frames."""

import dataclasses
import functools

import cv2
import numpy as np

from protocols.orbia import baselines
from protocols.orbia.dataset import ReferenceFrame
from protocols.orbia.dataset_writer import CaseContent
from protocols.orbia.shared_surface import reference_of

SIZE = (48, 64)
FRAMES = 41
_DISTANCE = 4.0
_STEP = 0.05  # metres for each frame on the way out
_K = np.array([[60.0, 0, 31.5], [0, 60.0, 23.5], [0, 0, 1]])


@dataclasses.dataclass(frozen=True, eq=False)
class Wall:
  """A `baselines.ShownWorld` without a renderer."""

  frame_count: int = FRAMES
  turnaround: int = FRAMES // 2
  seed: int = 0

  @property
  def intrinsics(self):
    return _K

  @functools.cached_property
  def _texture(self):
    rng = np.random.default_rng(self.seed)
    noise = rng.integers(0, 256, (40, 90, 3)).astype(np.uint8)
    return cv2.resize(noise, (720, 320), interpolation=cv2.INTER_CUBIC)

  def poses(self):
    frames = np.arange(self.frame_count)
    out = np.minimum(frames, self.frame_count - 1 - frames)
    poses = np.tile(np.eye(4), (self.frame_count, 1, 1))
    poses[:, 0, 3] = _STEP * out
    return poses

  def prepare(self, generator, frames):
    del generator, frames

  def shot(self, frame):
    return self._at(self.poses()[frame])

  def drifted(self, frame, *, share, turn_deg):
    pose = self.poses()[frame]
    pose[:3, 3] *= share
    return baselines.rotated_view(self._at(pose), _K, turn_deg)

  def elsewhere(self, frame):
    pose = self.poses()[frame]
    away = pose.copy()
    away[1, 3] += 3.0
    return self._at(away)._replace(pose=pose)

  def _at(self, pose):
    height, width = SIZE
    column, row = np.meshgrid(np.arange(width), np.arange(height))
    x = (column - _K[0, 2]) * _DISTANCE / _K[0, 0] + pose[0, 3]
    y = (row - _K[1, 2]) * _DISTANCE / _K[1, 1] + pose[1, 3]
    image = cv2.remap(
      self._texture,
      (60.0 * (x + 4.0)).astype(np.float32),
      (60.0 * (y + 2.0)).astype(np.float32),
      interpolation=cv2.INTER_LINEAR,
      borderMode=cv2.BORDER_REFLECT,
    )
    depth = np.full(SIZE, _DISTANCE, np.float32)
    return baselines.Shot(image, depth, pose)


def case_content(world, *, case_id="tiny", anchors=True):
  """A case over the wall, with two anchors, one of them out of the query."""
  views = []
  for frame in (0, 6):
    shot = world.shot(frame)
    views.append(
      ReferenceFrame(
        rgb=shot.image,
        depth=shot.depth,
        valid=np.ones(SIZE, bool),
        pose=shot.pose,
        k_rgb=_K,
        k_depth=_K,
      )
    )
  inner, left = np.zeros(SIZE, bool), np.zeros(SIZE, bool)
  inner[10:30, 20:40] = True
  left[:, :2] = True
  masks = {"A1": (inner, inner)}
  if anchors:
    masks["A2"] = (left, np.zeros(SIZE, bool))
  last = world.frame_count - 1
  return CaseContent(
    case_id=case_id,
    parent_case_id=None,
    source="self-recorded",
    template="lateral_out_and_back",
    pose_unit="metre",
    image=views[0].rgb,
    prompt="A wall.",
    intrinsics=_K,
    poses=world.poses(),
    events={
      "q0": 0,
      "qe1": 6,
      "qc_first": 13,
      "w2": world.turnaround,
      "qc_revisit": last - 13,
      "q0_return": last,
    },
    pairs={"C": ("qc_first", "qc_revisit")},
    reference=reference_of(
      views[0],
      views[1],
      masks,
      source="self-recorded",
      native_to_input=np.eye(3),
      depth_unit="metre",
    ),
  )
