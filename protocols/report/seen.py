# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""A clip with what the perception stage saw in it, from files on disk.

The clip comes from the record's provenance or from the run's own folder.
Masks, tracks and geometry come from the run's own `.npz` files or those beside
the clip, from a recorded sequence, or from the run's cache. Whatever cannot be
reached is left out, and a note says so.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from perception import observation, recorded, resampling, video
from perception.errors import InputError
from protocols.common import overlays
from protocols.common.records import Record
from protocols.report import cached, pictures, places
from protocols.report.pictures import Shot
from protocols.report.sources import Run

_TRAIL = 12
# One clip is in memory at a time; of larger ones no frames are shown.
_MAX_BYTES = 1 << 30
RecordT = TypeVar("RecordT", bound=observation.Record)


@dataclasses.dataclass(frozen=True)
class Seen:
  """What can be reached of a case; rows of all arrays belong together.

  Attributes:
    clip: frames, or None.
    masks, tracks, geometry: arrays, or None.
    note: what is absent and why; empty when all is there.
  """

  clip: video.Clip | None = None
  masks: observation.Masks | None = None
  tracks: observation.Tracks | None = None
  geometry: observation.Geometry | None = None
  note: str = ""


def load(run: Run, record: Record) -> Seen:
  """Reads the clip of a record and the observations that belong to it.

  Args:
    run: its run.
    record: a record whose provenance names the clip as `source`, its rate as
      `fps`, and whose coverage counts `frames`. Arrays of another number of
      frames are not shown, since frames would not correspond.

  Returns:
    What could be read.
  """
  path, why = places.source(run, record)
  if path is None:
    return Seen(note=f"no frames are shown: {why}")
  counted = record.coverage.get("frames")
  rows = None if counted is None else int(counted)
  notes: list[str] = []
  clip: video.Clip | None = None
  try:
    clip = _windowed(read(path), run)
  except InputError as error:
    notes.append(f"the clip cannot be read: {error}")
  files = _files(path, run, record)
  found: dict[str, Any] = {
    role: _array(role, files, path, run, record, notes) for role in _KINDS
  }
  fps = float(record.provenance.get("fps") or 0.0)
  # Recordings and ready arrays fix the frames; only raw clips are resampled.
  fixed = bool(files) or (path.is_dir() and found["geometry"] is not None)
  if clip is not None and not fixed and fps and rows not in (None, len(clip)):
    clip = _resampled(clip, fps=fps, rows=rows or 0)
  return _aligned(clip, found, rows, notes)


def _aligned(
  clip: video.Clip | None,
  found: dict[str, Any],
  rows: int | None,
  notes: Sequence[str],
) -> Seen:
  """Keeps the source frames that clip and arrays all have."""
  present = {"clip": clip, **found}
  present = {name: part for name, part in present.items() if part is not None}
  if not present:
    return Seen(note="; ".join(notes))
  common = functools.reduce(
    np.intersect1d, [part.frame_indices for part in present.values()]
  )
  if rows is not None and len(common) != rows:
    text = f"the record has {rows} frames, the files here {len(common)}"
    return Seen(note=f"no frames are shown: {text}")
  kept = {
    name: part.select(np.flatnonzero(np.isin(part.frame_indices, common)))
    for name, part in present.items()
  }
  return Seen(**kept, note="; ".join(notes))


_KINDS: dict[str, type[observation.Record]] = {
  "masks": observation.Masks,
  "tracks": observation.Tracks,
  "geometry": observation.Geometry,
}


def _files(
  path: pathlib.Path, run: Run, record: Record
) -> dict[str, pathlib.Path]:
  """Ready arrays of a case: named by the run's input, or beside the clip."""
  folder = path.parent if path.is_file() else path
  beside = {role: folder / f"{role}.npz" for role in _KINDS}
  named = places.observations(run, record)
  return {
    role: file for role, file in {**beside, **named}.items() if file.exists()
  }


def _array(
  role: str,
  files: Mapping[str, pathlib.Path],
  path: pathlib.Path,
  run: Run,
  record: Record,
  notes: list[str],
) -> observation.Record | None:
  """Ready, recorded or cached arrays; why there are none goes into `notes`."""
  used = (record.provenance.get("backends") or {}).get(role) or {}
  try:
    if role in files:
      return _KINDS[role].load(files[role])
    if role == "geometry" and used.get("backend") == "recorded":
      return recorded.open_rgbd(path).geometry()
    missing = f"no {role} beside the clip"
    folder = places.cache(run)
    if folder is not None and used:
      file, missing = cached.find(folder, role, used)
      if file is not None:
        return _KINDS[role].load(file)
    notes.append(missing)
  except InputError as error:
    notes.append(f"{role}: {error}")
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
  whole = [pictures.shrunk(picture)]
  if seen.geometry is not None:
    (depth,) = pictures.depth_pictures([seen.geometry.depth[frame]])
    whole.append(pictures.resized(depth, whole[0].shape))
    parts.append("depth (bright is near, black unknown)")
  shown = f" with {', '.join(parts)}" if parts else ""
  return pictures.shot(
    str(frame),
    overlays.side_by_side(whole),
    caption=f"Frame {frame}: {caption}",
    description=f"Frame {frame} of the clip{shown}: {caption}",
  )


def read(path: pathlib.Path) -> video.Clip:
  """A video, a recording or a folder of pictures, whole.

  Raises:
    InputError: if it cannot be read or takes more than a gigabyte.
  """
  if path.is_dir():
    # What is no recording is an ordinary folder of pictures.
    with contextlib.suppress(InputError):
      return recorded.open_rgbd(path).clip()
  return video.read_clip(path, max_bytes=_MAX_BYTES)


def _windowed(clip: video.Clip, run: Run) -> video.Clip:
  """The rows that the run was told to use."""
  settings = run.settings.get("settings") or {}
  window = (settings.get("perception") or {}).get("window")
  return clip.select(slice(*window)) if window else clip


def _resampled(clip: video.Clip, *, fps: float, rows: int) -> video.Clip:
  """The clip at the protocol's rate, cut to its central window."""
  if not clip.fps:
    return clip
  clip = clip.resample(fps)
  start, length = resampling.central_window(len(clip), limit=rows)
  return clip.select(slice(start, start + length))
