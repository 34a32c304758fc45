# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Figures of statistical studies: rank intervals, paired differences."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from protocols.report import drawing
from protocols.report.drawing import Picture
from protocols.report.sources import Study

_LIMIT = 40


def draw(study: Study, number: int, folder: pathlib.Path) -> list[Picture]:
  """The figure of a ranking or paired study; nothing for other kinds.

  Args:
    study: a study.
    number: its number in the report, for file names.
    folder: where the files go.

  Returns:
    No or one figure.
  """
  rows = [row for row in study.rows if _is_number(row.get("point"))][:_LIMIT]
  if not rows:
    return []
  if study.kind == "ranking":
    target = study.result.get("target", "score")
    return [
      _intervals(
        rows,
        [drawing.label(row["system"]) for row in rows],
        [int(row["tie_group"]) for row in rows],
        folder,
        name=f"study_{number}_ranking",
        title=f"Ranking by {target} with intervals",
        axis=str(target),
        note=" Colours change from one local-tie group to the next.",
      )
    ]
  if study.kind == "paired":
    return [
      _intervals(
        rows,
        [
          drawing.label(f"{r['contrast']}: {r['score']}", limit=48)
          for r in rows
        ],
        [0 if _spans_zero(r) else 1 for r in rows],
        folder,
        name=f"study_{number}_paired",
        title="Paired differences",
        axis="difference",
        note=" Intervals that exclude zero have the second colour.",
      )
    ]
  return []


def _intervals(
  rows: Sequence[Mapping[str, Any]],
  names: Sequence[str],
  colours: Sequence[int],
  folder: pathlib.Path,
  *,
  name: str,
  title: str,
  axis: str,
  note: str,
) -> Picture:
  made, cell = drawing.figure(height=1.1 + 0.3 * len(rows))
  cell.grid(visible=False, axis="y")
  for y, (row, group) in enumerate(zip(rows, colours, strict=True)):
    cell.plot(
      [row["low"], row["high"]],
      [y, y],
      color=drawing.colour(group),
      linewidth=2.2,
      solid_capstyle="round",
    )
    cell.plot([row["point"]], [y], "o", color=drawing.colour(group), ms=5)
  if min(r["low"] for r in rows) < 0 < max(r["high"] for r in rows):
    cell.axvline(0.0, color=drawing.MUTED, linewidth=0.8)
  cell.set_yticks(range(len(rows)), names, parse_math=False)
  cell.invert_yaxis()
  cell.set_xlabel(axis, color=drawing.INK)
  return drawing.finish(
    made,
    folder,
    name=name,
    title=title,
    description=f"Points with bootstrap intervals, {len(rows)} rows.{note}",
  )


def _spans_zero(row: Mapping[str, Any]) -> bool:
  return bool(row["low"] <= 0.0 <= row["high"])


def _is_number(value: Any) -> bool:
  return isinstance(value, int | float)
