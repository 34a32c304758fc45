# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""One linked page for each case, written one record at a time."""

from __future__ import annotations

import base64
import dataclasses
import pathlib
from typing import Any

from protocols.common.progress import Progress
from protocols.common.records import OK
from protocols.report import case_view as views
from protocols.report import entries, media, render
from protocols.report.boards import Board
from protocols.report.cases import CaseTable
from protocols.report.media import Media
from protocols.report.pictures import Shot
from protocols.report.sources import Run
from protocols.report.steps import Steps

FOLDER = "cases"
RECORDINGS = "rerun"
STYLE = "report.css"
# Cases that a comparison lists on either side; see DRIVERS in report.js.
DRIVERS = 8
_COMPARED = 6


@dataclasses.dataclass(frozen=True)
class PageOptions:
  """How case pages are made.

  Attributes:
    pictures: worst cases of the run that get frames, beside those that drive
      the comparison of its two best systems; -1 for all.
    embed: put pictures into the pages instead of files beside them.
  """

  pictures: int = 60
  embed: bool = False


def write(
  run: Run,
  run_id: str,
  board: Board,
  table: CaseTable,
  steps: Steps,
  output: pathlib.Path,
  options: PageOptions,
  *,
  recorded: frozenset[int] = frozenset(),
) -> dict[int, list[tuple[str, str]]]:
  """Writes `cases/<run_id>/<row>.html` for every case.

  Args:
    run: the run.
    run_id: its name in the report.
    board: its leaderboard, for the title.
    table: its cases in the order of the pages.
    steps: EgoGenEval's evidence; empty for others.
    output: folder of the report.
    options: how many pictures, and where.
    recorded: rows with a recording for the rerun viewer.

  Returns:
    (file in the folder, caption) of the first pictures of each row that has
    some, for comparisons; empty where pictures are embedded.

  Raises:
    InputError: if a record or the disk fails.
  """
  folder = output / FOLDER / run_id
  total = len(table.entries)
  chosen = pictured(board, table, options.pictures)
  shown: dict[int, list[tuple[str, str]]] = {}
  render.write(output / FOLDER / STYLE, str(render.css()))
  with Progress(total, label=f"case pages of {run.folder.name}") as bar:
    for number, entry in enumerate(table.entries):
      record = entries.read_record(entry)
      cmg, ssp = steps.cmg.get(entry.key, ()), steps.ssp.get(entry.key, ())
      view = views.build(record, table.columns, cmg=cmg, ssp=ssp)
      if number in chosen:
        found = media.gather(run, record, view.events, cmg=cmg, ssp=ssp)
      else:
        found = Media(
          note=f"Frames are drawn for the {options.pictures} worst cases and"
          " those that drive the comparison of the two best systems;"
          " --pictures=-1 draws all."
        )
      sections = [
        {
          **vars(section),
          "shots": [
            _placed(shot, number, folder, options.embed)
            for shot in section.shots
          ],
        }
        for section in found.sections
      ]
      if sections and not options.embed:
        shown[number] = [
          (shot["source"], shot["caption"])
          for shot in sections[0]["shots"][:_COMPARED]
        ]
      html = render.page(
        "case.html",
        case=record,
        title=board.title,
        view=view,
        raw=views.raw_lines(entries.read_line(entry)),
        plans=found.plans,
        sections=sections,
        # With pictures, objects are drawn there.
        boxes=() if sections else view.boxes,
        note=found.note,
        recording=f"../../{RECORDINGS}/{run_id}/{number}.rrd"
        if number in recorded
        else "",
        run_id=run_id,
        number=number,
        total=total,
      )
      render.write(folder / f"{number}.html", html)
      bar.advance()
  return shown


def pictured(board: Board, table: CaseTable, count: int) -> set[int]:
  """Rows that get pictures: the worst, and those that drive a comparison.

  Args:
    board: the leaderboard; its two best systems are compared at first.
    table: cases, worst first.
    count: how many of the worst; -1 for all.

  Returns:
    Row numbers. Of the comparison, both rows of the cases with the largest
    differences on either side, as many as the page lists.
  """
  rows = set(range(len(table.entries) if count < 0 else count))
  rows &= set(range(len(table.entries)))
  names = [row.system for row in board.rows if not row.reference][:2]
  if len(names) < 2 or count == 0:
    return rows
  scored: dict[str, dict[str, tuple[float, int]]] = {n: {} for n in names}
  for number, entry in enumerate(table.entries):
    value = entry.values.get(table.main)
    if entry.system in scored and entry.status == OK and value is not None:
      scored[entry.system][entry.case_id] = (value, number)
  first, second = (scored[name] for name in names)
  shared = sorted(
    first.keys() & second.keys(), key=lambda c: first[c][0] - second[c][0]
  )
  for case in [*shared[:DRIVERS], *shared[-DRIVERS:]]:
    rows |= {first[case][1], second[case][1]}
  return rows


def _placed(
  shot: Shot, number: int, folder: pathlib.Path, embed: bool
) -> dict[str, Any]:
  """The picture with its address: a file beside the page, or its bytes."""
  if embed:
    source = "data:image/jpeg;base64," + base64.b64encode(shot.jpeg).decode()
  else:
    source = f"{number}-{shot.name}.jpg"
    render.put(folder / source, shot.jpeg)
  return {
    "source": source,
    "caption": shot.caption,
    "description": shot.description,
  }
