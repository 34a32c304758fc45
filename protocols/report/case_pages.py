# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""One linked page for each case, written one record at a time."""

from __future__ import annotations

import base64
import dataclasses
import pathlib
from typing import Any

from protocols.common.progress import Progress
from protocols.report import case_view as views
from protocols.report import entries, media, render
from protocols.report.boards import Board
from protocols.report.cases import CaseTable
from protocols.report.media import Media
from protocols.report.pictures import Shot
from protocols.report.sources import Run
from protocols.report.steps import Steps

FOLDER = "cases"
STYLE = "report.css"


@dataclasses.dataclass(frozen=True)
class PageOptions:
  """How case pages are made.

  Attributes:
    pictures: worst cases of the run that get frames; -1 for all.
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
) -> None:
  """Writes `cases/<run_id>/<row>.html` for every case.

  Args:
    run: the run.
    run_id: its name in the report.
    board: its leaderboard, for the title.
    table: its cases in the order of the pages.
    steps: EgoGenEval's evidence; empty for others.
    output: folder of the report.
    options: how many pictures, and where.

  Raises:
    InputError: if a record or the disk fails.
  """
  folder = output / FOLDER / run_id
  total = len(table.entries)
  render.write(output / FOLDER / STYLE, str(render.css()))
  with Progress(total, label=f"case pages of {run.folder.name}") as bar:
    for number, entry in enumerate(table.entries):
      record = entries.read_record(entry)
      view = views.build(
        record,
        table.columns,
        cmg=steps.cmg.get(entry.key, ()),
        ssp=steps.ssp.get(entry.key, ()),
      )
      found = Media(note="")
      if options.pictures < 0 or number < options.pictures:
        found = media.gather(run, record, view.events, rows=view.rows)
      elif run.protocol != "egogeneval":
        found = Media(
          note=f"Frames are drawn for the {options.pictures} worst cases;"
          " --pictures=-1 draws all."
        )
      html = render.page(
        "case.html",
        case=record,
        title=board.title,
        view=view,
        raw=views.raw_lines(entries.read_line(entry)),
        plans=found.plans,
        shots=[
          _placed(shot, number, folder, options.embed) for shot in found.shots
        ],
        note=found.note,
        run_id=run_id,
        number=number,
        total=total,
      )
      render.write(folder / f"{number}.html", html)
      bar.advance()


def _placed(
  shot: Shot, number: int, folder: pathlib.Path, embed: bool
) -> dict[str, Any]:
  """The picture with its address: a file beside the page, or its bytes."""
  if embed:
    source = "data:image/jpeg;base64," + base64.b64encode(shot.jpeg).decode()
  else:
    source = f"{number}-{shot.frame}.jpg"
    render.put(folder / source, shot.jpeg)
  return {
    "source": source,
    "caption": shot.caption,
    "description": shot.description,
  }
