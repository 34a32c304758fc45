# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""The video behind an Orbia record, its case, and its recovered geometry.

The video is the one that the record names. Requested poses and events come
from its data set; geometry lies beside the video, or in the run's cache.
"""

from __future__ import annotations

import dataclasses
import functools
import pathlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from perception import cache, decoding, observation, video
from perception.errors import InputError
from protocols.common.records import Record
from protocols.orbia import constants, dataset, generated, schedules
from protocols.orbia.dataset import PublicCase
from protocols.report import cached, places
from protocols.report.sources import Run

Frames = Mapping[int, np.ndarray]


@dataclasses.dataclass(frozen=True, eq=False)
class Material:
  """What can be reached of a video.

  Attributes:
    path: the video file or folder of pictures; None without one.
    count: its frames.
    fps: its rate; a folder of pictures has the request's.
    size: (H, W) of its frames.
    case: its case of the data set, or None.
    requested: [N, 4, 4] requested poses relative to the first, or None.
    geometry: recovered geometry, or None.
    notes: what is absent and why.
  """

  path: pathlib.Path | None = None
  count: int = 0
  fps: float = constants.RELEASED.fps
  size: tuple[int, int] = (0, 0)
  case: PublicCase | None = None
  requested: np.ndarray | None = None
  geometry: observation.Geometry | None = None
  notes: tuple[str, ...] = ()

  def stream(self, numbers: Iterable[int]) -> Iterator[tuple[int, np.ndarray]]:
    """Frames by number in one pass; those outside the video are left out.

    The pass ends with the last frame asked for.

    Raises:
      InputError: if the video cannot be decoded so far.
    """
    wanted = sorted({int(n) for n in numbers if 0 <= n < self.count})
    if self.path is None or not wanted:
      return
    if self.path.is_dir():
      yield from zip(
        wanted, video.open_video(self.path).select(wanted), strict=True
      )
      return
    left = set(wanted)
    pixels = decoding.decode(self.path, decoding.Timeline(), pixels=True)
    for number, image in enumerate(pixels):
      if number in left and image is not None:
        yield number, image
      if number == wanted[-1]:
        return


def load(run: Run, record: Record) -> Material:
  """Opens the video of a record, its case and its geometry.

  Args:
    run: its run.
    record: a record whose provenance names the video as `source`.

  Returns:
    What could be read.
  """
  path, why = places.source(run, record)
  if path is None:
    return Material(notes=(f"no frames are shown: {why}",))
  notes: list[str] = []
  case = _case(run, record, path, notes)
  found = Material(case=case)
  try:
    if case is not None:
      found = dataclasses.replace(found, requested=_from_first(case.poses()))
    found = dataclasses.replace(found, path=path, **_header(path, case))
    geometry = _geometry(run, record, found, path, notes)
    found = dataclasses.replace(found, geometry=geometry)
  except InputError as error:
    notes.append(str(error))
  return dataclasses.replace(found, notes=tuple(notes))


def _header(path: pathlib.Path, case: PublicCase | None) -> dict[str, Any]:
  """Count, rate and size of a video.

  A video that was scored has the frames of its case, so that its first frame
  is enough; otherwise all are counted.
  """
  if case is None or path.is_dir():
    opened = video.open_video(path)
    count, fps, size = len(opened), opened.fps, opened.size
  else:
    timeline = decoding.Timeline()
    next(decoding.decode(path, timeline, pixels=False))
    count, fps, size = case.frame_count, timeline.fps, timeline.size
  rate = float(fps) or constants.RELEASED.fps
  return {"count": count, "fps": rate, "size": size}


def trajectories(found: Material, record: Record) -> dict[str, np.ndarray]:
  """Requested and recovered poses, both from the first, in one unit.

  Recovered lengths are brought to the unit of the request by the scale that
  the record holds.
  """
  poses = {}
  if found.requested is not None:
    poses["requested"] = found.requested
  if found.geometry is not None:
    recovered = _from_first(found.geometry.c2w)
    recovered[:, :3, 3] *= unit_scale(record)
    poses["recovered"] = recovered
  return poses


def unit_scale(record: Record) -> float:
  """Length of a recovered unit in the request's; 1 where none is on record."""
  scale = record.values.get("pose_scale")
  return float(scale) if scale is not None and np.isfinite(scale) else 1.0


def events(found: Material) -> list[tuple[int, str]]:
  """(video frame, name) of events and visits, in order of time."""
  case = found.case
  if case is None:
    last = found.count - 1
    return [(0, "first frame"), (last, "last frame")] if last >= 0 else []
  named = [
    *((frame, name) for name, frame in case.events.items()),
    *(
      (frame, f"{name}, {visit}")
      for name, pair in case.pairs.items()
      for frame, visit in zip(pair, ("first visit", "revisit"), strict=True)
    ),
  ]
  at = video_frames(found, [frame for frame, _ in named])
  return sorted(
    {(f, name) for f, (_, name) in zip(at, named, strict=True) if f >= 0}
  )


def video_frames(found: Material, requested: Iterable[int]) -> list[int]:
  """Video frame of requested frames, -1 where the video has none."""
  c = constants.RELEASED
  at: list[int] = schedules.video_frames(
    np.array(list(requested)) / c.fps,
    fps=found.fps,
    frame_count=found.count,
    c=c,
  ).tolist()
  return at


def _geometry(
  run: Run,
  record: Record,
  found: Material,
  path: pathlib.Path,
  notes: list[str],
) -> observation.Geometry | None:
  """Geometry beside a video in one of the two recorded forms, or cached."""
  own = path.with_suffix(".geometry.npz")
  folder = path.with_suffix(".geometry")
  if own.exists():
    return observation.Geometry.load(own)
  if folder.is_dir():
    return generated.read_geometry_folder(folder, video_size=found.size)
  kept = _kept(run, record, found)
  if kept is not None:
    return observation.Geometry.load(kept)
  notes.append(f"no {own.name} beside the video: no depth, no recovered path")
  return None


def _kept(run: Run, record: Record, found: Material) -> pathlib.Path | None:
  """What a backend recovered, from a pass over the plan or over all frames."""
  folder = places.cache(run)
  backend = record.provenance.get("geometry_backend")
  if folder is None or not backend or found.path is None:
    return None
  opened = video.open_video(found.path)
  passes = [opened]
  if found.case is not None:
    c = constants.constants(record.variant)
    plan = generated.case_plan(found.case, c=c)
    passes.insert(0, opened.select(plan[plan < found.count]))
  for frames in passes:
    wanted = {"backend": backend, "source_sha256": cache.source_digest(frames)}
    file, _ = cached.find(folder, "geometry", wanted)
    if file is not None:
      return file
  return None


def _case(
  run: Run, record: Record, path: pathlib.Path, notes: list[str]
) -> PublicCase | None:
  root = places.dataset(run, path)
  case = None
  if root is not None:
    try:
      case = _cases(root).get(record.case_id)
    except InputError as error:
      notes.append(str(error))
  if case is None:
    notes.append(
      "the data set of this case was not found, so neither events nor requested"
      " poses are shown: name it with --data"
    )
  return case


@functools.lru_cache(maxsize=4)
def _cases(root: pathlib.Path) -> Mapping[str, PublicCase]:
  """Cases of a data set by id."""
  return {case.case_id: case for case in dataset.read_dataset(root)}


def _from_first(poses: np.ndarray) -> np.ndarray:
  """Poses in the frame of the first one."""
  result: np.ndarray = np.linalg.inv(poses[0]) @ poses
  return result
