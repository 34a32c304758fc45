# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""The report from folders to files: what `bin.report` calls."""

from __future__ import annotations

import collections
import dataclasses
import importlib.metadata
import json
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from perception.errors import InputError
from protocols.common import outputs
from protocols.common.records import STATUSES
from protocols.report import (
  boards,
  case_pages,
  cases,
  entries,
  figures_egogeneval,
  figures_orbia,
  figures_pdi,
  figures_studies,
  published,
  render,
  sources,
  steps,
  tables,
)
from protocols.report.boards import Board
from protocols.report.case_pages import PageOptions
from protocols.report.drawing import Picture
from protocols.report.sources import Run, Study

PAGE = "index.html"
_STUDY_ROWS = 400
_STUDY_COLUMNS = (
  *("rank", "system", "contrast", "score", "protocol"),
  *("point", "low", "high", "mean", "sd"),
)


@dataclasses.dataclass(frozen=True)
class ReportConfig:
  """Everything that decides a report.

  Attributes:
    inputs: output folders of `bin.evaluate` and `bin.bootstrap`.
    output: folder to write.
    pages: how case pages are made.
    published: show published systems as reference rows.
    recordings: also write rerun recordings of the cases that show frames.
    data: what runs were made from (data sets, caches, evaluation frames), for
      pictures where a run does not say it itself.
  """

  inputs: tuple[pathlib.Path, ...]
  output: pathlib.Path
  pages: PageOptions = dataclasses.field(default_factory=PageOptions)
  published: bool = False
  recordings: bool = False
  data: tuple[pathlib.Path, ...] = ()


def write(config: ReportConfig) -> str:
  """Reads every input and writes the whole report.

  Args:
    config: what to show and how.

  Returns:
    Text for the terminal.

  Raises:
    InputError: for unusable input, an absent extra, or a disk that refuses.
  """
  for folder in config.inputs:
    if config.output.resolve() == folder.resolve():
      raise InputError(
        config.output,
        "--output",
        found="the folder of an input",
        expected="a folder of its own",
      )
  if config.recordings:
    from protocols.report import recording

    recording.require()
  runs, studies = sources.load(config.inputs, config.data)
  shown = [
    _write_run(run, f"r{number}", studies, config)
    for number, run in enumerate(runs)
  ]
  listed = [
    _study(study, number, config.output / "figures")
    for number, study in enumerate(studies)
  ]
  count = sum(len(run.entries) for run in runs)
  html = render.page(
    "index.html",
    css=render.css(),
    script=render.script(),
    script_hash=render.script_hash(),
    runs=shown,
    studies=listed,
    totals=_totals(len(runs), count, len(studies)),
    version=importlib.metadata.version("worldgauge"),
  )
  path = config.output / PAGE
  render.write(path, html)
  return f"{_totals(len(runs), count, len(studies))} in {path}"


def _totals(runs: int, cases_: int, studies: int) -> str:
  """How much the report shows, in words."""
  parts = (
    (runs, "run", "runs"),
    (cases_, "case", "cases"),
    (studies, "study", "studies"),
  )
  return ", ".join(
    f"{count:,} {one if count == 1 else many}"
    for count, one, many in parts
    if count
  )


def _write_run(
  run: Run, run_id: str, studies: Sequence[Study], config: ReportConfig
) -> dict[str, Any]:
  """Writes all files of a run and returns its part of the page."""
  references = (
    published.rows(run.protocol, run.variant) if config.published else ()
  )
  board = boards.build(
    run,
    references,
    reference_note=published.source(run.protocol) if references else "",
  )
  table = cases.build(run)
  found = steps.read(run)
  pictures = _figures(run, board, found, config.output / "figures" / run_id)
  recorded: list[pathlib.Path] = []
  if config.recordings:
    from protocols.report import recording

    chosen = case_pages.pictured(board, table, config.pages.pictures)
    folder = config.output / case_pages.RECORDINGS / run_id
    recorded = recording.write(run, table, sorted(chosen), found, folder)
  shots = case_pages.write(
    run,
    run_id,
    board,
    table,
    found,
    config.output,
    config.pages,
    recorded=frozenset(int(file.stem) for file in recorded),
  )
  payload = cases.payload(
    table,
    pages=f"{case_pages.FOLDER}/{run_id}",
    studies=studies,
    ranking=[row.system for row in board.rows if not row.reference],
    shots=shots,
  )
  own = [row for row in board.rows if not row.reference]
  return {
    "id": run_id,
    "name": run.folder.resolve().name,
    "board": board,
    "variant": run.variant,
    "backends": _backends(run),
    "statuses": _statuses(run),
    "commit": run.settings.get("environment", {}).get("git_commit"),
    "refused": [row for row in own if row.refused],
    "partial": [row for row in own if row.partial and not row.refused],
    "not_comparable": _not_comparable(run, board),
    "has_ties": any(row.tie_group for row in board.rows),
    "has_groups": any(row.group for row in board.rows),
    "bars": _bars(board),
    "tables": _write_tables(board, run, run_id, config.output),
    "pictures": [_shown(picture, run_id) for picture in pictures],
    "payload": render.json_data(payload),
    "settings": json.dumps(run.settings, indent=1, ensure_ascii=False),
  }


def _figures(
  run: Run, board: Board, found: steps.Steps, folder: pathlib.Path
) -> list[Picture]:
  if run.protocol == "pdi":
    return figures_pdi.draw(run, board, folder)
  if run.protocol == "orbia":
    return figures_orbia.draw(run, board, folder)
  return figures_egogeneval.draw(run, board, folder, found.cmg)


def _shown(picture: Picture, folder: str) -> dict[str, Any]:
  """A figure with the address of its files."""
  prefix = f"{folder}/" if folder else ""
  return {
    "name": picture.name,
    "title": picture.title,
    "description": picture.description,
    # Two runs of one protocol have figures of the same names.
    "svg": picture.svg.replace(f"{picture.name}-", f"{folder}{picture.name}-"),
    "wide": picture.wide,
    "file": f"{prefix}{picture.name}",
  }


def _statuses(run: Run) -> list[tuple[str, int]]:
  counts = collections.Counter(entry.status for entry in run.entries)
  return [(status, counts[status]) for status in STATUSES]


def _backends(run: Run) -> list[tuple[str, str]]:
  """Roles and backends: of the first scored record, else of the settings."""
  for entry in run.entries:
    found = entries.read_record(entry).provenance.get("backends")
    if found:
      return [
        (role, _backend_name(value))
        for role, value in sorted(found.items())
        if _backend_name(value)
      ]
  chosen = run.settings.get("settings", {}).get("perception") or {}
  return [
    (role, str(name))
    for role, name in sorted(chosen.items())
    if isinstance(name, str) and name not in ("none", "auto", "variant")
  ]


def _backend_name(value: Any) -> str:
  if isinstance(value, Mapping):
    return str(value.get("backend") or "")
  return str(value)


def _not_comparable(run: Run, board: Board) -> str:
  """Why scores cannot be compared with published ones; empty if they can."""
  own = [row for row in board.rows if not row.reference]
  if own and all(row.comparable for row in own):
    return ""
  if run.variant != "released":
    return (
      "The variant is paper: it follows the paper's text with known defects"
      " removed; only the variant released can match published tables."
    )
  return "The backends are not those of the published results."


def _bars(board: Board) -> list[dict[str, Any] | None]:
  """Positions in percent of the main score and its interval, per row."""
  key, digits = board.main.key, board.main.digits
  spans = []
  for row in board.rows:
    value = row.values.get(key)
    interval = row.intervals.get(key)
    spans.append(
      None if value is None else (value, *(interval or (value, value)))
    )
  known = [number for span in spans if span for number in span]
  if not known:
    return [None] * len(spans)
  low, high = min(known), max(known)
  size = (high - low) or 1.0

  def place(number: float) -> float:
    return round(2.0 + 96.0 * (number - low) / size, 2)

  bars: list[dict[str, Any] | None] = []
  for span, row in zip(spans, board.rows, strict=True):
    if span is None:
      bars.append(None)
      continue
    value, start, end = span
    has = key in row.intervals
    bars.append(
      {
        "point": place(value),
        "low": place(start) if has else None,
        "width": max(0.5, place(end) - place(start)),
        "text": f"{start:.{digits}f} to {end:.{digits}f}" if has else "none",
      }
    )
  return bars


def _write_tables(
  board: Board, run: Run, run_id: str, output: pathlib.Path
) -> list[str]:
  """Writes the leaderboard for papers; returns addresses for the page."""
  stem = f"tables/{run_id}_{run.protocol}"
  texts = {
    f"{stem}.tex": tables.latex(board, variant=run.variant),
    f"{stem}.md": tables.markdown(board, variant=run.variant),
  }
  for name, text in texts.items():
    outputs.write_atomic(output / name, text)
  return list(texts)


def _place(column: str) -> int:
  """Columns of studies: what a row is about first, then point and interval."""
  if column in _STUDY_COLUMNS:
    return _STUDY_COLUMNS.index(column)
  return len(_STUDY_COLUMNS)


def _study(study: Study, number: int, folder: pathlib.Path) -> dict[str, Any]:
  """A study's part of the page."""
  rows = study.rows
  names = {name for row in rows for name in row}
  columns = [
    name
    for name in sorted(names, key=lambda n: (_place(n), n))
    if not any(isinstance(row.get(name), list | dict) for row in rows)
  ]
  pictures = figures_studies.draw(study, number, folder)
  notes = [str(note) for note in study.result.get("notes", [])]
  if len(rows) > _STUDY_ROWS:
    notes.append(f"The first {_STUDY_ROWS} rows; all stand in study.csv.")
  return {
    "title": f"{study.kind}: {study.folder.resolve().name}",
    "pictures": [_shown(picture, "") for picture in pictures],
    "columns": columns,
    "texts": [
      c for c in columns if any(isinstance(row.get(c), str) for row in rows)
    ],
    "total": len(rows),
    "rows": [[row.get(c) for c in columns] for row in rows[:_STUDY_ROWS]],
    "notes": notes,
  }
