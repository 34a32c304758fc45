# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Pictures of an Orbia case: events, revisits, windows that fall, paths."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from perception.errors import InputError
from protocols.common.records import Record
from protocols.orbia import constants
from protocols.report import (
  charts,
  consistency,
  orbia_video,
  pictures,
  windows,
)
from protocols.report.charts import Plan
from protocols.report.consistency import View
from protocols.report.orbia_video import Frames, Material
from protocols.report.pictures import Section, Shot
from protocols.report.sources import Run

_EVENT_LIMIT = 12
_REVISITS = 2
_FALLS = 2
_CANDIDATES = 8
# Frames between the two views of a pair (specification, section 7.1).
_OFFSET = constants.RELEASED.medium_offset


def gather(
  run: Run, record: Record
) -> tuple[list[Section], list[Plan], list[str]]:
  """Sections of pictures, trajectories, and what is absent."""
  found = orbia_video.load(run, record)
  falls = _falls(found, record)
  revisits = _revisits(found)
  named = orbia_video.events(found)
  wanted = {frame for frame, _ in named}
  wanted |= {frame for pair in revisits.values() for frame in pair}
  for fall in falls:
    wanted |= {*fall.shown, *(f for pair in fall.pairs for f in pair)}
  notes = list(found.notes)
  try:
    frames = dict(found.stream(wanted))
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
    orbia_video.trajectories(found, record),
    unit=found.case.pose_unit if found.case else "units",
  )
  return [s for s in sections if s.shots], plans, notes


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
    first, again = orbia_video.video_frames(found, pair)
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
