# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Pictures and trajectories of a case, from whatever is reachable on disk."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from perception import observation
from protocols.common.records import Record
from protocols.report import charts, consistency, seen
from protocols.report.charts import Plan
from protocols.report.pictures import Section
from protocols.report.seen import Seen
from protocols.report.sources import Run

_EVENT_LIMIT = 6
_PAIR_LIMIT = 2
# Frames between the two views of a pair; a third of a second at 24 fps.
_OFFSET = 8


@dataclasses.dataclass(frozen=True)
class Media:
  """What is shown beside the numbers of a case.

  Attributes:
    sections: pictures, in groups.
    plans: trajectories from above and from the side.
    note: what is absent and why; empty when all is there.
  """

  sections: tuple[Section, ...] = ()
  plans: tuple[Plan, ...] = ()
  note: str = ""


def gather(
  run: Run,
  record: Record,
  events: Sequence[tuple[int, str]],
  *,
  cmg: Sequence[Mapping[str, Any]] = (),
  ssp: Sequence[Mapping[str, Any]] = (),
) -> Media:
  """Pictures and trajectories of one case.

  Args:
    run: its run.
    record: its record.
    events: (row, caption) worth a picture.
    cmg, ssp: EgoGenEval's evidence rows of the case, in order of steps.

  Returns:
    What could be made.
  """
  if run.protocol == "orbia":
    from protocols.report import media_orbia

    sections, plans, notes = media_orbia.gather(run, record)
    return Media(tuple(sections), tuple(plans), "; ".join(notes))
  if run.protocol == "egogeneval":
    from protocols.report import media_egogeneval

    sections, notes = media_egogeneval.gather(run, record, cmg, ssp)
    return Media(tuple(sections), (), "; ".join(notes))
  return _pdi(run, record, events)


def _pdi(run: Run, record: Record, events: Sequence[tuple[int, str]]) -> Media:
  """Frames at the peaks, and each peak seen from shortly before."""
  found = seen.load(run, record)
  shown = list(events) or _ends(found)
  sections = [
    Section(
      "Frames at the events",
      "",
      tuple(seen.shots(found, shown[:_EVENT_LIMIT])),
    ),
    *_pairs(found, shown),
  ]
  plans: list[Plan] = []
  if found.geometry is not None:
    poses = {"recovered": _from_first(found.geometry.c2w)}
    plans = charts.plans(poses, unit=_unit(found.geometry))
  return Media(tuple(s for s in sections if s.shots), tuple(plans), found.note)


def _pairs(found: Seen, events: Sequence[tuple[int, str]]) -> list[Section]:
  """The frames of the largest peaks, each against one shortly before it.

  A frame without a frame that far before it is shown against a later one.
  """
  clip, geometry = found.clip, found.geometry
  if clip is None or geometry is None or len(clip) < 2:
    return []
  offset = min(_OFFSET, len(clip) - 1)
  made: dict[int, Section] = {}
  for frame, caption in events:
    target = max(frame, offset)
    near = any(abs(target - other) < offset for other in made)
    if near or not 0 <= frame < len(clip) or len(made) == _PAIR_LIMIT:
      continue
    before, after = (
      consistency.view_of(
        f"frame {row}",
        geometry,
        row,
        clip.frames[row],
        None
        if found.masks is None
        else np.any(found.masks.masks[:, row], axis=0),
      )
      for row in (target - offset, target)
    )
    made[target] = consistency.section(
      before,
      after,
      key=f"pair{len(made)}",
      why=f"{caption[:1].upper()}{caption[1:]}; the frames are {offset} apart.",
    )
  return list(made.values())


def _ends(found: Seen) -> list[tuple[int, str]]:
  """First and last frame, for a case without a score."""
  if found.clip is None:
    return []
  return [(0, "first frame"), (len(found.clip) - 1, "last frame")]


def _from_first(poses: np.ndarray) -> np.ndarray:
  """Poses in the frame of the first one."""
  result: np.ndarray = np.linalg.inv(poses[0]) @ poses
  return result


def _unit(geometry: observation.Geometry) -> str:
  return "m" if geometry.unit == "metre" else "units"
