# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Frames of a clip at its events, with what the perception stage saw.

The clip comes from the record's provenance or from the run's own folder;
masks, tracks and geometry from `.npz` files beside the clip. Whatever cannot
be reached is left out, and a note says so.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import pathlib
from collections.abc import Sequence
from typing import TypeVar

import cv2
import numpy as np

from perception import observation, recorded, resampling, video
from perception.errors import InputError
from protocols.common import overlays

_TRAIL = 12
_MAX_SIDE = 640
_JPEG_QUALITY = 85
# One clip is in memory at a time; of larger ones no frames are shown.
_MAX_BYTES = 1 << 30
RecordT = TypeVar("RecordT", bound=observation.Record)


@dataclasses.dataclass(frozen=True)
class Shot:
  """A picture of one event.

  Attributes:
    frame: row of the clip.
    caption: which event.
    description: text alternative.
    jpeg: encoded picture.
  """

  frame: int
  caption: str
  description: str
  jpeg: bytes


@dataclasses.dataclass(frozen=True)
class Seen:
  """What can be reached of a case; rows of all arrays belong together.

  Attributes:
    clip: frames, or None.
    masks, tracks, geometry: arrays, or None.
    note: what is absent and why; empty when all is there.
  """

  clip: video.Clip | None
  masks: observation.Masks | None
  tracks: observation.Tracks | None
  geometry: observation.Geometry | None
  note: str


def locate(source: str, run_folder: pathlib.Path) -> pathlib.Path | None:
  """The clip that a record names: as it stands, or moved with its run.

  A run folder that was moved or copied still holds its calibration clips: the
  longest tail of the path that exists below the folder is taken.
  """
  if not source:
    return None
  path = pathlib.Path(source)
  for start in range(1, len(path.parts)):
    moved = run_folder.joinpath(*path.parts[start:])
    if moved.exists():
      return moved
  return path if path.exists() else None


def load(path: pathlib.Path, *, rows: int | None, fps: float = 0.0) -> Seen:
  """Reads a clip and the observations beside it.

  Args:
    path: video file, folder of pictures, or recorded RGB-D folder.
    rows: frames that the record was measured on, or None if unknown. Arrays
      of another number are not shown, since frames would not correspond.
    fps: rate that the record was measured at, 0 = unknown; a clip without
      arrays beside it is resampled to it, as the protocol does.

  Returns:
    What could be read.
  """
  notes: list[str] = []
  clip: video.Clip | None = None
  try:
    clip = _read(path)
  except InputError as error:
    notes.append(f"the clip cannot be read: {error}")
  folder = path.parent if path.is_file() else path
  masks = _load(observation.Masks, folder / "masks.npz", notes)
  tracks = _load(observation.Tracks, folder / "tracks.npz", notes)
  geometry = _load(observation.Geometry, folder / "geometry.npz", notes)
  alone = masks is None and tracks is None and geometry is None
  if clip is not None and alone and fps and rows not in (None, len(clip)):
    clip = _resampled(clip, fps=fps, rows=rows or 0)
  sources = [s for s in (clip, masks, tracks, geometry) if s is not None]
  if not sources:
    return Seen(None, None, None, None, "; ".join(notes))
  common = functools.reduce(
    np.intersect1d, [source.frame_indices for source in sources]
  )
  if rows is not None and len(common) != rows:
    text = f"the record has {rows} frames, the files here {len(common)}"
    return Seen(None, None, None, None, f"no frames are shown: {text}")

  def rows_of(indices: np.ndarray) -> np.ndarray:
    return np.flatnonzero(np.isin(indices, common))

  return Seen(
    clip=clip and clip.select(rows_of(clip.frame_indices)),
    masks=masks and masks.select(rows_of(masks.frame_indices)),
    tracks=tracks and tracks.select(rows_of(tracks.frame_indices)),
    geometry=geometry and geometry.select(rows_of(geometry.frame_indices)),
    note="; ".join(notes),
  )


def _load(
  kind: type[RecordT], file: pathlib.Path, notes: list[str]
) -> RecordT | None:
  """A record that lies beside the clip; why not goes into `notes`."""
  if not file.exists():
    notes.append(f"no {file.stem} beside the clip")
    return None
  try:
    return kind.load(file)
  except InputError as error:
    notes.append(f"{file.stem}: {error}")
    return None


def shots(seen: Seen, events: Sequence[tuple[int, str]]) -> list[Shot]:
  """Pictures of events: the frame with overlays, and its depth.

  Args:
    seen: what can be reached.
    events: (row, caption), in the order shown.

  Returns:
    One picture for each event inside the clip; none without a clip.
  """
  if seen.clip is None:
    return []
  merged: dict[int, list[str]] = {}
  for frame, caption in events:
    if 0 <= frame < len(seen.clip):
      merged.setdefault(frame, []).append(caption)
  return [
    _shot(seen, frame, ", ".join(captions))
    for frame, captions in merged.items()
  ]


def _shot(seen: Seen, frame: int, caption: str) -> Shot:
  assert seen.clip is not None
  picture = seen.clip.frames[frame]
  parts = []
  size = picture.shape[:2]
  if seen.masks is not None and seen.masks.masks.shape[2:] == size:
    picture = overlays.with_mask(
      picture, np.any(seen.masks.masks[:, frame], axis=0), opacity=0.35
    )
    parts.append("mask")
  if seen.tracks is not None:
    picture = overlays.with_trails(
      picture, seen.tracks.xy, seen.tracks.visible, row=frame, length=_TRAIL
    )
    parts.append("tracks")
  whole = [_shrunk(picture)]
  if seen.geometry is not None:
    whole.append(_depth_picture(seen.geometry.depth[frame], whole[0].shape))
    parts.append("depth (bright is near, black unknown)")
  joined = overlays.side_by_side(whole)
  shown = f" with {', '.join(parts)}" if parts else ""
  return Shot(
    frame=frame,
    caption=f"Frame {frame}: {caption}",
    description=f"Frame {frame} of the clip{shown}: {caption}",
    jpeg=_jpeg(joined),
  )


def _read(path: pathlib.Path) -> video.Clip:
  if path.is_dir():
    # What is no recording is an ordinary folder of pictures.
    with contextlib.suppress(InputError):
      return recorded.open_rgbd(path).clip()
  return video.read_clip(path, max_bytes=_MAX_BYTES)


def _resampled(clip: video.Clip, *, fps: float, rows: int) -> video.Clip:
  """The clip at the protocol's rate, cut to its central window."""
  if not clip.fps:
    return clip
  clip = clip.resample(fps)
  start, length = resampling.central_window(len(clip), limit=rows)
  return clip.select(slice(start, start + length))


def _depth_picture(depth: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
  """Inverse depth in colour between its 2nd and 98th percentile."""
  known = np.isfinite(depth) & (depth > 0)
  level = np.zeros(depth.shape, np.float32)
  if known.any():
    near = 1.0 / depth[known]
    low, high = np.percentile(near, [2, 98])
    level[known] = np.clip((near - low) / max(high - low, 1e-9), 0.0, 1.0)
  colour = cv2.applyColorMap(
    np.round(255 * level).astype(np.uint8), cv2.COLORMAP_INFERNO
  )
  colour[~known] = 0
  picture = cv2.cvtColor(colour, cv2.COLOR_BGR2RGB)
  return cv2.resize(
    picture, (shape[1], shape[0]), interpolation=cv2.INTER_NEAREST
  )


def _shrunk(picture: np.ndarray) -> np.ndarray:
  factor = _MAX_SIDE / max(picture.shape[:2])
  if factor >= 1.0:
    return picture
  height, width = (max(1, round(s * factor)) for s in picture.shape[:2])
  return cv2.resize(picture, (width, height), interpolation=cv2.INTER_AREA)


def _jpeg(picture: np.ndarray) -> bytes:
  _, data = cv2.imencode(
    ".jpg",
    cv2.cvtColor(picture, cv2.COLOR_RGB2BGR),
    [cv2.IMWRITE_JPEG_QUALITY, _JPEG_QUALITY],
  )
  return bytes(data)
