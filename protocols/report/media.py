# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Pictures and trajectories of a case, from whatever is reachable on disk."""

from __future__ import annotations

import dataclasses
import functools
import pathlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from perception import observation
from perception.errors import InputError
from protocols.common.records import Record
from protocols.report import charts, pictures
from protocols.report.charts import Plan
from protocols.report.pictures import Seen, Shot
from protocols.report.sources import Run

if TYPE_CHECKING:
  from protocols.orbia.dataset import PublicCase

BUILT = "built"  # where a run with a built-in source keeps its data set
_EVENT_LIMIT = 6


@dataclasses.dataclass(frozen=True)
class Media:
  """What is shown beside the numbers of a case.

  Attributes:
    shots: pictures of events.
    plans: trajectories from above and from the side.
    note: what is absent and why; empty when all is there.
  """

  shots: tuple[Shot, ...] = ()
  plans: tuple[Plan, ...] = ()
  note: str = ""


def gather(
  run: Run,
  record: Record,
  events: Sequence[tuple[int, str]],
  *,
  rows: int | None,
) -> Media:
  """Pictures and trajectories of one case.

  Args:
    run: its run.
    record: its record.
    events: (row, caption) worth a picture.
    rows: frames that the record was measured on, or None if unknown.

  Returns:
    What could be made.
  """
  if run.protocol == "orbia":
    return _orbia(run, record)
  source = str(record.provenance.get("source") or "")
  path = pictures.locate(source, run.folder)
  if path is None:
    stated = f"{source} is not here" if source else "the record names no clip"
    return Media(note=f"no frames are shown: {stated}")
  fps = record.provenance.get("fps")
  seen = pictures.load(path, rows=rows, fps=float(fps or 0.0))
  shown = list(events) or _ends(seen)
  return Media(
    shots=tuple(pictures.shots(seen, shown[:_EVENT_LIMIT])),
    plans=tuple(_pdi_plans(seen)),
    note=seen.note,
  )


def _ends(seen: Seen) -> list[tuple[int, str]]:
  """First and last frame, for a case without a score."""
  if seen.clip is None:
    return []
  return [(0, "first frame"), (len(seen.clip) - 1, "last frame")]


def _pdi_plans(seen: Seen) -> list[Plan]:
  if seen.geometry is None:
    return []
  poses = {"recovered": _from_first(seen.geometry.c2w)}
  return charts.plans(poses, unit=_unit(seen.geometry))


def _orbia(run: Run, record: Record) -> Media:
  """Requested and recovered trajectories, and frames at the events."""
  from protocols.orbia import builtin, generated

  root = run.folder / BUILT
  case = _orbia_cases(root).get(record.case_id)
  path = root / builtin.VIDEOS / record.system / f"{record.case_id}.mp4"
  if case is None or not path.exists():
    return Media(note="no frames are shown: records of Orbia name no video")
  poses = {"requested": _from_first(case.poses())}
  own = generated.OrbiaCase(record.system, case, path, "", "")
  try:
    if own.geometry_file.exists():
      found = observation.Geometry.load(own.geometry_file)
      poses["recovered"] = _scaled(
        _from_first(found.c2w), record.values.get("pose_scale")
      )
    seen = pictures.load(path, rows=None)
  except InputError as error:
    return Media(note=f"no frames are shown: {error}")
  events = [
    *((frame, name) for name, frame in case.events.items()),
    *(
      (frame, f"{name}, {visit}")
      for name, pair in case.pairs.items()
      for frame, visit in zip(pair, ("first visit", "revisit"), strict=True)
    ),
  ]
  return Media(
    shots=tuple(pictures.shots(seen, sorted(set(events))[: 2 * _EVENT_LIMIT])),
    plans=tuple(charts.plans(poses, unit=case.pose_unit)),
  )


@functools.lru_cache(maxsize=4)
def _orbia_cases(root: pathlib.Path) -> Mapping[str, PublicCase]:
  """Cases of a built-in data set by id; empty without one."""
  from protocols.orbia import dataset

  if not (root / "manifest.json").exists():
    return {}
  return {case.case_id: case for case in dataset.read_dataset(root)}


def _from_first(poses: np.ndarray) -> np.ndarray:
  """Poses in the frame of the first one."""
  result: np.ndarray = np.linalg.inv(poses[0]) @ poses
  return result


def _scaled(poses: np.ndarray, scale: float | None) -> np.ndarray:
  """Recovered poses in the unit of the request, by the recorded scale."""
  if scale is None or not np.isfinite(scale):
    return poses
  result = poses.copy()
  result[:, :3, 3] *= scale
  return result


def _unit(geometry: observation.Geometry) -> str:
  return "m" if geometry.unit == "metre" else "units"
