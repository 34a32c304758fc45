# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Frames of a clip at its events, with what the perception stage saw.

The clip comes from the record's provenance or from the run's own folder;
masks, tracks and geometry from `.npz` files beside the clip. Whatever cannot
be reached is left out, and a note says so.
"""

from __future__ import annotations

import dataclasses
import functools
import pathlib
from collections.abc import Sequence

import cv2
import numpy as np

from perception import observation, recorded, video
from perception.errors import InputError
from protocols.common import overlays

_TRAIL = 12
_MAX_SIDE = 640
_JPEG_QUALITY = 85
_KINDS: dict[str, type[observation.Record]] = {
  "masks": observation.Masks,
  "tracks": observation.Tracks,
  "geometry": observation.Geometry,
}


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


def load(path: pathlib.Path, *, rows: int | None) -> Seen:
  """Reads a clip and the observations beside it.

  Args:
    path: video file, folder of pictures, or recorded RGB-D folder.
    rows: frames that the record was measured on, or None if unknown. Arrays
      of another number are not shown, since frames would not correspond.

  Returns:
    What could be read.
  """
  notes: list[str] = []
  clip: video.Clip | None = None
  found: dict[str, observation.Record] = {}
  try:
    clip = _read(path)
  except InputError as error:
    notes.append(f"the clip cannot be read: {error}")
  folder = path.parent if path.is_file() else path
  for name, kind in _KINDS.items():
    file = folder / f"{name}.npz"
    if file.exists():
      try:
        found[name] = kind.load(file)
      except InputError as error:
        notes.append(f"{name}: {error}")
  indices = [set(r.frame_indices.tolist()) for r in found.values()]  # type: ignore[attr-defined]
  if clip is not None:
    indices.append(set(clip.frame_indices.tolist()))
  common = sorted(set.intersection(*indices)) if indices else []
  if rows is not None and len(common) != rows:
    text = f"the record has {rows} frames, the files here {len(common)}"
    return Seen(None, None, None, None, f"no frames are shown: {text}")
  absent = [name for name in _KINDS if name not in found]
  if absent:
    notes.append(f"no {', '.join(absent)} beside the clip")
  take = functools.partial(_select, common=common)
  return Seen(
    clip=take(clip),
    masks=take(found.get("masks")),
    tracks=take(found.get("tracks")),
    geometry=take(found.get("geometry")),
    note="; ".join(notes),
  )


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
    try:
      return recorded.open_rgbd(path).clip()
    except InputError:
      return video.read_clip(path)
  return video.read_clip(path)


def _select(record, *, common):  # type: ignore[no-untyped-def]
  """The rows of a record (or clip) whose frames are in `common`."""
  if record is None:
    return None
  return record.select(np.flatnonzero(np.isin(record.frame_indices, common)))


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
