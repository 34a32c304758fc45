# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Where the inputs of a run lie: arrays, data set, cache, evaluation frames.

In order: what the command line of the report names (`--data`), what the run
itself was given (its resolved flags in `run.json`), and the usual places in
and around the files that its records name. Nothing is searched beyond these.
"""

from __future__ import annotations

import contextlib
import functools
import pathlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from perception.errors import InputError
from protocols.common.records import Record
from protocols.report.sources import Run

if TYPE_CHECKING:
  from protocols.pdi.cases import PdiCase

Key = tuple[str, str]
BUILT = "built"  # where a run with a built-in source keeps its data set
_MANIFEST = "manifest.json"
_FRAMES = "eval_frames.jsonl"
_LEVELS = 4


def locate(source: str, run: Run) -> pathlib.Path | None:
  """The file that a record names: as it stands, or moved with its run.

  A run folder that was moved or copied still holds its calibration clips: the
  longest tail of the path that exists below the folder is taken.
  """
  if not source:
    return None
  path = pathlib.Path(source)
  for start in range(1, len(path.parts)):
    tail = path.parts[start:]
    moved = run.folder.joinpath(*tail)
    if ".." not in tail and moved.exists():
      return moved
  return path if path.exists() else None


def cache(run: Run) -> pathlib.Path | None:
  """The folder with results of perception; None if none is known."""
  named = _flag(run, "cache")
  places = [*run.data, *([named] if named else [])]
  return next((p for p in places if any(p.glob("??/*.npz"))), None)


def source(run: Run, record: Record) -> tuple[pathlib.Path | None, str]:
  """The clip, video or recording of a record.

  A record of a case that failed names none; its place then follows from what
  the run was given.

  Returns:
    (path, empty), or (None, why not).
  """
  stated = str(record.provenance.get("source") or "")
  path = locate(stated, run)
  if path is None and not stated:
    path = next((p for p in _expected(run, record) if p.exists()), None)
  if path is not None:
    return path, ""
  return None, (
    f"{stated} is not here" if stated else "the record names no clip"
  )


def observations(run: Run, record: Record) -> Mapping[str, pathlib.Path]:
  """A PDI case's own arrays by role, as the run's input names them."""
  case = _pdi_cases(run).get(record.key)
  return {} if case is None else case.observations


def _expected(run: Run, record: Record) -> list[pathlib.Path]:
  if run.protocol == "orbia":
    named = _flag(run, "orbia_videos")
    roots = [*([named] if named else []), run.folder / BUILT / "videos"]
    name = f"{record.case_id}.mp4"
    return [
      path
      for root in roots
      for path in (root / record.system / name, root / name)
    ]
  case = _pdi_cases(run).get(record.key)
  paths = [] if case is None else [case.video, case.rgbd]
  return [path for path in paths if path is not None]


def _pdi_cases(run: Run) -> Mapping[Key, PdiCase]:
  """Cases of a PDI run by (system, case); empty where they cannot be read."""
  if run.protocol != "pdi":
    return {}
  names = ("list", "clips", "observations")
  return _read_cases(*(_flag(run, name) for name in names))


@functools.lru_cache(maxsize=4)
def _read_cases(
  listed: pathlib.Path | None,
  clips: pathlib.Path | None,
  folder: pathlib.Path | None,
) -> Mapping[Key, PdiCase]:
  from protocols.pdi import cases

  found: list[PdiCase] = []
  with contextlib.suppress(InputError):
    if listed is not None:
      found = cases.from_list(listed)
    elif clips is not None:
      found = cases.from_clips(clips, object_box=None)
    elif folder is not None:
      found = cases.from_observations(folder)
  return {(case.system, case.case_id): case for case in found}


def dataset(run: Run, video: pathlib.Path) -> pathlib.Path | None:
  """The Orbia data set that a video belongs to; None if none is found."""
  named = _flag(run, "orbia_dataset")
  places = [
    *run.data,
    *([named] if named else []),
    run.folder / BUILT,
    *_above(video),
  ]
  return next((p for p in places if (p / _MANIFEST).is_file()), None)


def evaluation_frames(run: Run, image: pathlib.Path) -> pathlib.Path | None:
  """EgoGenEval's file of evaluation frames; None if none is found.

  Args:
    run: the run.
    image: a physical view of it.
  """
  named = _flag(run, "eval_frames")
  places = [*run.data, *([named] if named else []), *_above(image)]
  files = [p / _FRAMES if p.is_dir() else p for p in places]
  return next((f for f in files if f.suffix == ".jsonl" and f.is_file()), None)


def _flag(run: Run, name: str) -> pathlib.Path | None:
  """A path that the run was given."""
  value = run.settings.get("flags", {}).get(name)
  return pathlib.Path(value) if isinstance(value, str) and value else None


def _above(file: pathlib.Path) -> Iterator[pathlib.Path]:
  """The folders around a file, nearest first."""
  yield from list(file.absolute().parents)[:_LEVELS]
