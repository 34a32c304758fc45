# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Pictures of an Orbia case: events, revisits, windows that fall, trajectories.

The video is the one that the record names; requested poses and events come
from its data set, recovered geometry lies beside the video.
"""

from __future__ import annotations

import dataclasses
import functools
import pathlib
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from perception import observation, video
from perception.errors import InputError
from protocols.common.records import Record
from protocols.orbia import constants, dataset, generated, schedules
from protocols.orbia.dataset import PublicCase
from protocols.report import charts, consistency, pictures, places, windows
from protocols.report.charts import Plan
from protocols.report.consistency import View
from protocols.report.pictures import Section, Shot
from protocols.report.sources import Run

_EVENT_LIMIT = 12
_REVISITS = 2
_FALLS = 2
_CANDIDATES = 8
# Frames between the two views of a pair (specification, section 7.1).
_OFFSET = constants.RELEASED.medium_offset


Frames = Mapping[int, np.ndarray]


@dataclasses.dataclass(frozen=True, eq=False)
class Material:
  """What can be reached of a video.

  Attributes:
    opened: the video, whose frames are decoded when they are asked for.
    case: its case of the data set, or None.
    requested: [N, 4, 4] requested poses relative to the first, or None.
    geometry: recovered geometry, or None.
    notes: what is absent and why.
  """

  opened: video.Video | None = None
  case: PublicCase | None = None
  requested: np.ndarray | None = None
  geometry: observation.Geometry | None = None
  notes: tuple[str, ...] = ()

  @property
  def count(self) -> int:
    """Frames of the video."""
    return 0 if self.opened is None else len(self.opened)

  @property
  def fps(self) -> float:
    """Rate of the video; a folder of pictures has the request's."""
    own = 0.0 if self.opened is None else float(self.opened.fps)
    return own or constants.RELEASED.fps

  def frames(self, numbers: Iterable[int]) -> dict[int, np.ndarray]:
    """Pictures of frames by number; those outside the video are left out."""
    if self.opened is None:
      return {}
    rows = np.unique([n for n in numbers if 0 <= n < self.count]).astype(int)
    part = self.opened.select(rows)
    return dict(zip(rows.tolist(), part, strict=True)) if rows.size else {}


def gather(
  run: Run, record: Record
) -> tuple[list[Section], list[Plan], list[str]]:
  """Sections of pictures, trajectories, and what is absent."""
  found = load(run, record)
  falls = _falls(found, record)
  revisits = _revisits(found)
  named = events(found)
  wanted = {frame for frame, _ in named}
  wanted |= {frame for pair in revisits.values() for frame in pair}
  for fall in falls:
    wanted |= {*fall.shown, *(f for pair in fall.pairs for f in pair)}
  notes = list(found.notes)
  try:
    frames = found.frames(wanted)
  except InputError as error:
    frames = {}
    notes.append(str(error))
  sections = [
    Section("Frames at the events", "", tuple(_event_shots(frames, named)))
  ]
  for fall in falls:
    sections += _fall_sections(found, frames, fall)
  for number, (name, pair) in enumerate(revisits.items()):
    sections += _pair_section(
      _views(found, frames, (pair[1], pair[0])),
      key=f"revisit{number}",
      why=f"The revisit {name} against its first visit.",
    )
  plans = charts.plans(
    trajectories(found, record),
    unit=found.case.pose_unit if found.case else "units",
  )
  return [s for s in sections if s.shots], plans, notes


def load(run: Run, record: Record) -> Material:
  """Opens the video of a record, its case and its geometry.

  Args:
    run: its run.
    record: a record whose provenance names the video as `source`.

  Returns:
    What could be read.
  """
  source = str(record.provenance.get("source") or "")
  path = places.locate(source, run)
  if path is None:
    stated = f"{source} is not here" if source else "the record names no video"
    return Material(notes=(f"no frames are shown: {stated}",))
  notes: list[str] = []
  case = _case(run, record, path, notes)
  found = Material(case=case)
  try:
    if case is not None:
      found = dataclasses.replace(found, requested=_from_first(case.poses()))
    opened = video.open_video(path)
    found = dataclasses.replace(found, opened=opened)
    geometry = _geometry(path, opened.size, notes)
    found = dataclasses.replace(found, geometry=geometry)
  except InputError as error:
    notes.append(str(error))
  return dataclasses.replace(found, notes=tuple(notes))


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
  at = _video_frames(found, [frame for frame, _ in named])
  return sorted(
    {(f, name) for f, (_, name) in zip(at, named, strict=True) if f >= 0}
  )


@dataclasses.dataclass(frozen=True)
class _Fall:
  """A window in which scores fall.

  Attributes:
    window: 0-based.
    drops: what falls, largest first.
    shown: frames of the window to show.
    pairs: candidates for the pair that agrees least.
  """

  window: int
  drops: tuple[windows.Drop, ...]
  shown: tuple[int, ...]
  pairs: tuple[tuple[int, int], ...]


def _falls(found: Material, record: Record) -> list[_Fall]:
  by_window: dict[int, list[windows.Drop]] = {}
  for drop in windows.drops(record):
    by_window.setdefault(drop.window, []).append(drop)
  falls = []
  for number, drops in list(by_window.items())[:_FALLS]:
    start, end = (round(second * found.fps) for second in drops[0].bounds)
    end = min(end, found.count)
    pairs: list[tuple[int, int]] = []
    if found.geometry is not None and any(d.geometric for d in drops):
      known = set(found.geometry.frame_indices.tolist())
      pairs = [
        (frame, frame + _OFFSET)
        for frame in sorted(known)
        if start <= frame and frame + _OFFSET < end and frame + _OFFSET in known
      ]
    falls.append(
      _Fall(
        number,
        tuple(drops),
        (start, (start + end) // 2, end - 1),
        tuple(pairs[:: max(1, len(pairs) // _CANDIDATES)]),
      )
    )
  return falls


def _fall_sections(
  found: Material, frames: Frames, fall: _Fall
) -> list[Section]:
  """Frames of a window, and its pair of views that agrees least."""
  stated = ", ".join(
    f"{drop.name} from {drop.before:.0f} to {drop.value:.0f}"
    for drop in fall.drops[:3]
  )
  where = windows.span(fall.drops[0].bounds)
  sections = [
    Section(
      title=f"Where scores fall: {where}",
      about=f"Against the best window before: {stated}.",
      shots=tuple(
        _shot(frames, frame, f"of {where}", key=f"w{fall.window}")
        for frame in fall.shown
        if frame in frames
      ),
    )
  ]
  both = [_views(found, frames, pair) for pair in fall.pairs]
  usable = [pair for pair in both if pair is not None]
  if usable:
    sections += _pair_section(
      max(usable, key=lambda pair: _disagreement(*pair)),
      key=f"w{fall.window}-pair",
      why=f"Of {len(usable)} pairs {_OFFSET} frames apart in {where}, the one"
      " that agrees least.",
    )
  return sections


def _disagreement(source: View, target: View) -> float:
  """For the choice of a picture only: contradictions and mean error."""
  kind, error = consistency.compare(source, target)
  compared = np.isfinite(error)
  wrong = float(np.mean(kind == consistency.CONTRADICTS))
  return wrong + (float(np.mean(error[compared])) if compared.any() else 0.0)


def _revisits(found: Material) -> dict[str, tuple[int, int]]:
  """Video frames (first visit, revisit) of pairs, those in the video."""
  if found.case is None:
    return {}
  made = {}
  for name, pair in list(found.case.pairs.items())[:_REVISITS]:
    first, again = _video_frames(found, pair)
    if min(first, again) >= 0:
      made[name] = (first, again)
  return made


def _event_shots(
  frames: Frames, named: Sequence[tuple[int, str]]
) -> list[Shot]:
  merged: dict[int, list[str]] = {}
  for frame, name in named:
    merged.setdefault(frame, []).append(name)
  return [
    _shot(frames, frame, ", ".join(names), key="event")
    for frame, names in list(merged.items())[:_EVENT_LIMIT]
    if frame in frames
  ]


def _shot(frames: Frames, frame: int, caption: str, *, key: str) -> Shot:
  return pictures.shot(
    f"{key}-{frame}",
    pictures.shrunk(frames[frame]),
    caption=f"Frame {frame}: {caption}",
    description=f"Frame {frame} of the video: {caption}",
  )


def _pair_section(
  both: tuple[View, View] | None, *, key: str, why: str
) -> list[Section]:
  return [consistency.section(*both, key=key, why=why)] if both else []


def _views(
  found: Material, frames: Frames, pair: tuple[int, int]
) -> tuple[View, View] | None:
  """The two views of a pair; None unless both have picture and geometry."""
  if found.geometry is None:
    return None
  made = []
  for frame in pair:
    rows = np.flatnonzero(found.geometry.frame_indices == frame)
    if not rows.size or frame not in frames:
      return None
    made.append(
      consistency.view_of(
        f"frame {frame}", found.geometry, int(rows[0]), frames[frame]
      )
    )
  return made[0], made[1]


def _video_frames(found: Material, requested: Iterable[int]) -> list[int]:
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
  path: pathlib.Path, size: tuple[int, int], notes: list[str]
) -> observation.Geometry | None:
  """Geometry beside a video, in one of the two recorded forms."""
  own = path.with_suffix(".geometry.npz")
  folder = path.with_suffix(".geometry")
  if own.exists():
    return observation.Geometry.load(own)
  if folder.is_dir():
    return generated.read_geometry_folder(folder, video_size=size)
  notes.append(f"no {own.name} beside the video: no depth, no recovered path")
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
