# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Scenes as ordinary clips with ready observations.

A recording is what a generator and a perfect perception stage would leave: an
H.264 clip, and depth, poses, masks and tracks as `perception.observation`
records. On disk it is `<folder>/clip.mp4` beside `geometry.npz`, `masks.npz`
and `tracks.npz`, the layout that `bin.evaluate --observations` reads.
"""

from __future__ import annotations

import dataclasses
import hashlib
import pathlib

import numpy as np

from perception import observation, video
from protocols.calibration import render, tracks
from protocols.calibration.scenes import Scene

BACKEND = "ray_cast"
BACKEND_VERSION = "1"
SUBJECT_ID = 1
_RECORDS = ("geometry", "masks", "tracks")
LAST_FILE = f"{_RECORDS[-1]}.npz"
ANCHORS = 100


@dataclasses.dataclass(frozen=True, eq=False)
class Recording:
  """One rendered scene.

  Attributes:
    scene: what was rendered.
    rgb: uint8 [T, H, W, 3], or None where colour was not asked for.
    geometry: depth and poses as recorded, unit metre.
    masks: the subject, object id 1.
    tracks: material points of the subject, seeded in frame 0.
  """

  scene: Scene
  rgb: np.ndarray | None
  geometry: observation.Geometry
  masks: observation.Masks
  tracks: observation.Tracks

  @property
  def fps(self) -> float:
    """Frames per second."""
    return self.scene.fps


def record(
  scene: Scene,
  *,
  color: bool,
  anchors: int = ANCHORS,
  seed: int = 0,
  depth_shrink: int = 1,
) -> Recording:
  """Renders a scene and observes it.

  Args:
    scene: what to render.
    color: False leaves the pictures out, which is several times faster.
    anchors: largest number of tracks.
    seed: draws their places inside the subject's mask in frame 0.
    depth_shrink: the depth maps have 1 / depth_shrink of the video's rows and
      columns, as those of most reconstructions; they are ray-cast at that
      size, not resized. It must divide both sides.

  Returns:
    The recording; its provenance digest is that of the arrays.

  Raises:
    ValueError: the subject cannot be seen in frame 0, or a size that does not
      divide.
  """
  frames = render.render_sequence(
    scene.world,
    scene.c2w,
    scene.intrinsics,
    scene.size,
    motion=scene.motion,
    color=color,
  )
  masks = frames.mask(scene.world, scene.subject)
  if not masks[0].any():
    raise ValueError(f"{scene.category}: the subject is not in frame 0")
  gain = scene.depth_gain.astype(np.float32)
  depth = _depth(scene, frames.depth, depth_shrink) * gain[:, None, None]
  source = _provenance(_digest(depth, frames.rgb))
  return Recording(
    scene=scene,
    rgb=frames.rgb,
    geometry=_geometry(scene, depth, source),
    masks=observation.Masks(
      masks=masks[None],
      object_ids=np.array([SUBJECT_ID], np.int32),
      frame_indices=np.arange(scene.frames, dtype=np.int32),
      provenance=source,
    ),
    tracks=_tracks(scene, frames.part, source, anchors=anchors, seed=seed),
  )


def write(folder: pathlib.Path, recording: Recording) -> None:
  """Writes the clip and its observations into a folder of its own.

  The records then carry the digest of the written clip. `LAST_FILE` is
  written last: where it exists, the folder is complete.

  Args:
    folder: made if absent.
    recording: with colour.

  Raises:
    ValueError: the recording has no pictures.
    InputError: the disk refuses.
  """
  if recording.rgb is None:
    raise ValueError("a recording without colour has no clip to write")
  path = folder / "clip.mp4"
  video.write_video(path, recording.rgb, recording.fps)
  source = _provenance(hashlib.sha256(path.read_bytes()).hexdigest())
  for name in _RECORDS:
    record_ = dataclasses.replace(getattr(recording, name), provenance=source)
    record_.save(folder / f"{name}.npz")


def _depth(scene: Scene, full: np.ndarray, shrink: int) -> np.ndarray:
  """Exact depth at 1 / shrink of the video's size."""
  if shrink == 1:
    return full
  height, width = scene.size
  if height % shrink or width % shrink:
    raise ValueError(f"depth_shrink {shrink} does not divide {scene.size}")
  size = (height // shrink, width // shrink)
  small = render.render_sequence(
    scene.world,
    scene.c2w,
    observation.rescale_intrinsics(
      scene.intrinsics, from_size=scene.size, to_size=size
    ),
    size,
    motion=scene.motion,
    color=False,
  )
  return small.depth


def _geometry(
  scene: Scene, depth: np.ndarray, source: observation.Provenance
) -> observation.Geometry:
  k = observation.rescale_intrinsics(
    scene.intrinsics, from_size=scene.size, to_size=depth.shape[1:]
  ).astype(np.float32)
  return observation.Geometry(
    depth=depth,
    intrinsics=np.tile(k, (scene.frames, 1, 1)),
    c2w=scene.recorded_c2w,
    frame_indices=np.arange(scene.frames, dtype=np.int32),
    video_size=scene.size,
    unit="metre",
    provenance=source,
  )


def _tracks(
  scene: Scene,
  part: np.ndarray,
  source: observation.Provenance,
  *,
  anchors: int,
  seed: int,
) -> observation.Tracks:
  """Tracks of the subject's points seen in frame 0.

  A point counts as visible when nothing hides it and the centre of its pixel
  shows its part as well: at an outline the pixel may belong to something
  else, and a tracker would have lost the point.
  """
  own = np.flatnonzero(scene.world.part_body == scene.subject)
  mask = np.isin(part[0], own)
  xy = tracks.sample_pixels(mask, count=anchors, seed=seed)
  points = tracks.points_at_pixels(
    scene.world, scene.motion, scene.c2w, scene.intrinsics, xy, frame=0
  )
  column, row = np.rint(xy).astype(int).T
  keep = points.part == part[0, row, column]
  points = tracks.SurfacePoints(points.part[keep], points.local[keep])
  exact = tracks.project_points(
    scene.world,
    scene.motion,
    scene.c2w,
    scene.intrinsics,
    scene.size,
    points,
  )
  limit = np.array(scene.size)[::-1] - 1
  column, row = np.moveaxis(
    np.clip(np.rint(exact.xy), 0, limit).astype(int), -1, 0
  )
  shown = part[np.arange(scene.frames)[:, None], row, column]
  visible = exact.visible & (shown == points.part)
  count = len(points.part)
  return observation.Tracks(
    xy=exact.xy.astype(np.float32),
    visible=visible,
    confidence=visible.astype(np.float32),
    query_frame=np.zeros(count, np.int32),
    provenance=source,
    frame_indices=np.arange(scene.frames, dtype=np.int32),
    object_ids=np.full(count, SUBJECT_ID, np.int32),
    video_size=scene.size,
  )


def _provenance(digest: str) -> observation.Provenance:
  return observation.Provenance(digest, BACKEND, BACKEND_VERSION)


def _digest(depth: np.ndarray, rgb: np.ndarray | None) -> str:
  digest = hashlib.sha256(np.ascontiguousarray(depth).data)
  if rgb is not None:
    digest.update(np.ascontiguousarray(rgb).data)
  return digest.hexdigest()
