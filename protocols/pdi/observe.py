# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""From a PDI case to arrays: frames, object masks, tracks, depth and poses.

Each role is filled by the case's own `.npz`, by its recorded sequence, or by
a backend that the user chose. What cannot be had is named with its reason and
stays absent; nothing is invented. Arrays are aligned by source frame index.
"""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from perception import (
  cached,
  geometry_pass,
  observation,
  recorded,
  resampling,
  roles,
  seeding,
  video,
)
from perception.errors import InputError
from protocols.pdi.cases import PdiCase
from protocols.pdi.constants import PdiConstants

AUTO = "auto"
NONE = "none"
OFFLINE_MASKS = "grabcut_flow"
OFFLINE_TRACKS = "lucas_kanade"
# Names that take the case's own arrays where it brings them.
_OWN = (AUTO, "recorded")
_OBJECT = 1

Frames = video.Clip | video.Video


@dataclasses.dataclass(frozen=True)
class PerceptionConfig:
  """Which backends fill the roles.

  Attributes:
    masks, tracks: backend name; `auto` takes the case's own arrays, or else
      the offline backend.
    geometry: backend name; `auto` takes the case's own arrays or sequence, or
      else nothing; `none` is never any.
    vision_language: backend name for the picture audits, or `none`.
    settings: by role, settings of its backend.
    geometry_pass: what a geometry backend sees of a raw video, one of
      `perception.geometry_pass.PASSES`.
    sampling: `variant` (frame rate and window of the variant, raw videos
      only) or `native`.
    fps: frame rate of recorded sequences that state none; 0 = unknown.
    window: (start, stop) rows to keep of each clip, before sampling; None:
      all.
    cache: folder of cached results, or None.
  """

  masks: str = AUTO
  tracks: str = AUTO
  geometry: str = AUTO
  vision_language: str = NONE
  settings: Mapping[str, Mapping[str, Any]] = dataclasses.field(
    default_factory=dict
  )
  geometry_pass: str = geometry_pass.OWN
  sampling: str = "variant"
  fps: float = 0.0
  window: tuple[int, int] | None = None
  cache: pathlib.Path | None = None


@dataclasses.dataclass(frozen=True, eq=False)
class Observed:
  """What perception found; every array has the same T rows.

  Attributes:
    frames: the clip, in memory or decoded anew on each pass; None when only
      arrays were given.
    fps: frame rate, 0 = unknown.
    source_sha256: digest of the input.
    masks, tracks, geometry: arrays, or None.
    absent: by role, why it is None.
    dropped_frames: source frames that not every array covers.
  """

  frames: Frames | None
  fps: float
  source_sha256: str
  masks: observation.Masks | None
  tracks: observation.Tracks | None
  geometry: observation.Geometry | None
  absent: Mapping[str, str]
  dropped_frames: int = 0


def observe(
  case: PdiCase, config: PerceptionConfig, constants: PdiConstants
) -> Observed:
  """Runs or loads every role for a case.

  Args:
    case: the clip.
    config: backends.
    constants: frame rate and window of the variant.

  Returns:
    Aligned arrays.

  Raises:
    InputError: for unreadable input, or arrays that do not fit each other.
  """
  frames = _frames(case, config, constants)
  absent: dict[str, str] = {}
  geometry = _geometry(case, config, frames, absent)
  masks = _masks(case, config, frames, absent)
  tracks = _tracks(case, config, frames, masks, absent)
  found = Observed(
    frames=frames,
    fps=float(frames.fps) if frames is not None else config.fps,
    source_sha256=_digest(frames, geometry, masks, tracks),
    masks=masks,
    tracks=tracks,
    geometry=geometry,
    absent=absent,
  )
  return _aligned(case, found)


def _frames(
  case: PdiCase, config: PerceptionConfig, constants: PdiConstants
) -> Frames | None:
  clip: Frames
  if case.rgbd is not None:
    clip = recorded.open_rgbd(case.rgbd, fps=config.fps).clip()
  elif case.video is not None:
    clip = _opened(case.video, config)
  else:
    return None
  if config.window is not None:
    clip = _window(clip, *config.window)
  # Recordings and ready arrays fix the frames; only raw clips follow the
  # variant's sampling (section 1.3; the released code has none, section 1.2).
  fixed = case.rgbd is not None or bool(case.observations)
  if fixed or config.sampling == "native" or not constants.resample_fps:
    return clip
  clip = clip.resample(constants.resample_fps)
  start, length = resampling.central_window(
    len(clip), limit=constants.max_frames
  )
  return clip.select(slice(start, start + length))


def _opened(path: pathlib.Path, config: PerceptionConfig) -> video.Video:
  return video.open_video(path, fps=config.fps if path.is_dir() else None)


def _window(clip: Frames, start: int, stop: int) -> Frames:
  if start >= len(clip):
    raise InputError(
      clip.name,
      "--frames",
      found=f"{start}:{stop}",
      expected=f"a start below the clip's {len(clip)} frames",
    )
  return clip.select(slice(start, stop))


def _geometry(
  case: PdiCase,
  config: PerceptionConfig,
  frames: Frames | None,
  absent: dict[str, str],
) -> observation.Geometry | None:
  name = config.geometry
  if name in _OWN and "geometry" in case.observations:
    return observation.Geometry.load(case.observations["geometry"])
  if name in _OWN and case.rgbd is not None:
    return recorded.open_rgbd(case.rgbd, fps=config.fps).geometry()
  if name in (AUTO, NONE):
    absent["geometry"] = "no recorded depth and poses, and no backend chosen"
    return None
  backend: roles.GeometryBackend = _backend("geometry", name, config)
  clip = _require_frames(case, frames, "geometry")
  whole = None
  if config.geometry_pass == geometry_pass.VIDEO and case.video is not None:
    whole = _opened(case.video, config)
  return geometry_pass.reconstruct(backend, clip, whole=whole)


def _masks(
  case: PdiCase,
  config: PerceptionConfig,
  frames: Frames | None,
  absent: dict[str, str],
) -> observation.Masks | None:
  name = config.masks
  if name in _OWN and "masks" in case.observations:
    return observation.Masks.load(case.observations["masks"])
  if frames is None:
    absent["masks"] = "no masks were given and there is no clip to find them in"
    return None
  if case.object_box is None:
    absent["masks"] = (
      "no masks were given and no object box to start from (--object_box, or"
      " object_box in the list)"
    )
    return None
  name = OFFLINE_MASKS if name == AUTO else name
  prompt = roles.ObjectPrompt(_OBJECT, box=case.object_box)
  prompt.validate(size=frames.size, frames=len(frames))
  backend: roles.MasksBackend = _backend("masks", name, config)
  return backend.segment(frames, [prompt])


def _tracks(
  case: PdiCase,
  config: PerceptionConfig,
  frames: Frames | None,
  masks: observation.Masks | None,
  absent: dict[str, str],
) -> observation.Tracks | None:
  name = config.tracks
  if name in _OWN and "tracks" in case.observations:
    return observation.Tracks.load(case.observations["tracks"])
  if frames is None or masks is None:
    absent["tracks"] = "no tracks were given and no mask to seed anchors in"
    return None
  name = OFFLINE_TRACKS if name == AUTO else name
  if not masks.masks[0, 0].any():
    absent["tracks"] = "the object's mask in frame 0 is empty"
    return None
  queries = seeding.seed_queries(
    next(iter(frames)), masks.masks[:1, 0], masks.object_ids[:1]
  )
  backend: roles.TracksBackend = _backend("tracks", name, config)
  return backend.track(frames, queries)


def _backend(role: str, name: str, config: PerceptionConfig) -> Any:
  settings = config.settings.get(name, {})
  return cached.get(role, name, folder=config.cache, **settings)


def _require_frames(case: PdiCase, frames: Frames | None, role: str) -> Frames:
  if frames is None:
    raise InputError(
      f"{case.system}/{case.case_id}",
      role,
      found="arrays without a clip",
      expected="a video or picture folder for the backend",
      hint=f"Name the clip, or give {role} as .npz.",
    )
  return frames


def _digest(frames: Frames | None, *records: Any) -> str:
  if frames is not None:
    return frames.sha256
  for record in records:
    if record is not None:
      return str(record.provenance.source_sha256)
  return ""


def _aligned(case: PdiCase, found: Observed) -> Observed:
  """Keeps the source frames that every array covers."""
  columns = {
    name: _indices(getattr(found, name))
    for name in ("frames", "masks", "tracks", "geometry")
    if getattr(found, name) is not None
  }
  if not columns:
    return found
  common = None
  for index in columns.values():
    common = index if common is None else np.intersect1d(common, index)
  assert common is not None
  if not common.size:
    raise InputError(
      f"{case.system}/{case.case_id}",
      "frame_indices",
      found="; ".join(f"{k} {v[0]}..{v[-1]}" for k, v in columns.items()),
      expected="at least one frame that all of them cover",
      hint="Check that the arrays belong to this clip.",
    )
  # What covers no more than the others stays: a selection copies gigabytes.
  changes: dict[str, Any] = {
    name: getattr(found, name).select(np.searchsorted(index, common))
    for name, index in columns.items()
    if len(index) > len(common)
  }
  longest = max(len(index) for index in columns.values())
  return dataclasses.replace(
    found, dropped_frames=longest - len(common), **changes
  )


def _indices(record: Any) -> np.ndarray:
  if record.frame_indices is None:
    return np.arange(record.xy.shape[0])
  return np.asarray(record.frame_indices)
