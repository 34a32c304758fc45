# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Figures of Orbia: tier profile, groups, windows over time, correlations."""

from __future__ import annotations

import collections
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from protocols.report import drawing, entries
from protocols.report.boards import Board
from protocols.report.drawing import Picture
from protocols.report.sources import Run

TIERS = ("T1", "T2", "T3", "T4", "T5", "T6")


def draw(run: Run, board: Board, folder: pathlib.Path) -> list[Picture]:
  """All figures that the run has data for.

  Args:
    run: an Orbia run.
    board: its leaderboard.
    folder: where the files go.

  Returns:
    The figures.
  """
  found: list[Picture | None] = [_profile(board, folder)]
  for grouping in ("template", "source"):
    found.append(_groups(run, grouping, folder))
  for number, panel in enumerate(_correlation_panels(run)):
    found.append(_correlations(panel, number, folder))
  found.append(_windows(run, board, folder))
  return [picture for picture in found if picture is not None]


def _profile(board: Board, folder: pathlib.Path) -> Picture | None:
  """The tiers of each system as connected points."""
  rows = [r for r in board.rows if not r.reference]
  rows = [r for r in rows if any(r.values.get(t) is not None for t in TIERS)]
  if not rows:
    return None
  made, axes = drawing.figure(height=3.6)
  for i, row in enumerate(rows[:12]):
    values = [row.values.get(tier) for tier in TIERS]
    axes.plot(
      range(len(TIERS)),
      [float("nan") if v is None else v for v in values],
      marker="os^Dvp"[i % 6],
      markersize=5,
      linewidth=1.5,
      linestyle="-" if i < 6 else "--",
      color=drawing.colour(i),
      label=drawing.label(row.system),
    )
  axes.set_xticks(range(len(TIERS)), TIERS)
  axes.set_ylim(0, 102)
  axes.set_ylabel("score, 0 to 100 (higher is better)", color=drawing.INK)
  drawing.legend(axes, loc="center left", bbox_to_anchor=(1.0, 0.5))
  return drawing.finish(
    made,
    folder,
    name="orbia_profile",
    title="Profile over the six tiers",
    description=(
      f"Lines of {min(len(rows), 12)} systems over tiers T1 to T6. A gap means"
      " that the tier was not measured."
    ),
  )


def _groups(run: Run, grouping: str, folder: pathlib.Path) -> Picture | None:
  """Tiers by system and template or source."""
  rows = [
    row for row in run.scores.get("groups", []) if row["grouping"] == grouping
  ]
  tiers = [t for t in TIERS if any(row.get(t) is not None for row in rows)]
  if not tiers or len({row["name"] for row in rows}) < 2:
    return None
  models = list(dict.fromkeys(row["model"] for row in rows))
  names = sorted({row["name"] for row in rows})
  found = {(row["model"], row["name"]): row for row in rows}
  made, grid = drawing.figure(
    width=10.0,
    height=1.5 + 0.3 * len(models) * -(-len(tiers) // 2),
    rows=-(-len(tiers) // 2),
    columns=min(2, len(tiers)),
  )
  cells = list(grid.flat) if hasattr(grid, "flat") else [grid]
  for cell in cells[len(tiers) :]:
    cell.set_visible(False)
  for cell, tier in zip(cells, tiers, strict=False):
    drawing.heat_map(
      cell,
      [[found.get((m, n), {}).get(tier) for n in names] for m in models],
      rows=models,
      columns=[name.replace("_", " ") for name in names],
      low=0.0,
      high=100.0,
      digits=0,
    )
    cell.set_title(tier, fontsize=9, color=drawing.INK)
  return drawing.finish(
    made,
    folder,
    name=f"orbia_{grouping}",
    title=f"Tiers by {grouping}",
    description=(
      f"Heat maps of {', '.join(tiers)}: {len(models)} systems by"
      f" {len(names)} {grouping}s, 0 to 100. Hatched cells have no value."
    ),
    wide=True,
  )


def _correlation_panels(run: Run) -> list[list[Mapping[str, Any]]]:
  """Rows of each (group, horizon) that have any correlation."""
  panels: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
  for row in run.scores.get("correlations", []):
    panels.setdefault((row["group"], row["horizon"]), []).append(row)
  return [
    rows
    for rows in panels.values()
    if any(r["model_level"] is not None for r in rows)
    or any(r["within_model"] is not None for r in rows)
  ]


def _correlations(
  rows: Sequence[Mapping[str, Any]], number: int, folder: pathlib.Path
) -> Picture:
  """Spearman correlations between tiers, across and within models."""
  made, cells = drawing.figure(width=7.2, height=3.4, columns=2)
  for cell, (key, name) in zip(
    cells,
    (("model_level", "across models"), ("within_model", "within models")),
    strict=True,
  ):
    table: list[list[float | None]] = [
      [1.0 if i == j else None for j in range(6)] for i in range(6)
    ]
    for row in rows:
      i, j = TIERS.index(row["first"]), TIERS.index(row["second"])
      table[i][j] = table[j][i] = row[key]
    drawing.heat_map(
      cell,
      table,
      rows=TIERS,
      columns=TIERS,
      low=-1.0,
      high=1.0,
      digits=2,
      cmap="RdBu",
    )
    cell.set_title(name, fontsize=9, color=drawing.INK)
  group, horizon = rows[0]["group"], rows[0]["horizon"]
  return drawing.finish(
    made,
    folder,
    name=f"orbia_correlations_{number}",
    title=f"Correlation between tiers ({group}, {horizon} horizon)",
    description=(
      "Two matrices of Spearman correlations between the tiers, across and"
      " within models. Hatched pairs have fewer than three values."
    ),
  )


def _windows(run: Run, board: Board, folder: pathlib.Path) -> Picture | None:
  """Scores of each indicator by window, averaged over a system's videos."""
  sums, labels = _window_table(run)
  order = [row.system for row in board.rows if (row.system in sums)]
  if not order:
    return None
  width = max(len(labels), 1)
  columns = min(2, len(order))
  rows = -(-len(order) // columns)
  tallest = max(len(names) for names in sums.values())
  made, grid = drawing.figure(
    width=5.4 * columns if columns > 1 else 8.0,
    height=min(0.6 + rows * (0.75 + 0.26 * tallest), 40.0),
    rows=rows,
    columns=columns,
  )
  cells = list(grid.flat) if hasattr(grid, "flat") else [grid]
  for cell in cells[len(order) :]:
    cell.set_visible(False)
  for cell, system in zip(cells, order, strict=False):
    names = sorted(sums[system])
    drawing.heat_map(
      cell,
      [
        [_cell(sums[system][name].get(k)) for k in range(width)]
        for name in names
      ],
      rows=[name.replace("_", " ") for name in names],
      columns=labels,
      low=0.0,
      high=100.0,
      digits=0,
    )
    cell.set_title(
      f"{drawing.label(system)}, by seconds",
      fontsize=9,
      color=drawing.INK,
      parse_math=False,
    )
  return drawing.finish(
    made,
    folder,
    name="orbia_windows",
    title="Window by window",
    description=(
      "Heat maps over time: mean window score of every indicator of temporal"
      " stability, one map per system, 0 to 100."
    ),
    wide=True,
  )


_Sums = dict[str, dict[str, dict[int, list[float]]]]


def _window_table(run: Run) -> tuple[_Sums, list[str]]:
  """Window scores by system, indicator and window; labels of windows."""
  sums: _Sums = {}
  labels: list[str] = []
  for entry in run.entries:
    tier = entries.read_record(entry).details.get("tiers", {}).get("T6", {})
    details = tier.get("details") or {}
    bounds = details.get("bounds") or []
    if len(bounds) > len(labels):
      labels = [f"{start:g}-{end:g}" for start, end in bounds]
    for name, curve in (details.get("curves") or {}).items():
      for window, value in enumerate(curve):
        if isinstance(value, int | float):
          by_name = sums.setdefault(entry.system, {})
          cells = by_name.setdefault(name, collections.defaultdict(list))
          cells[window].append(float(value))
  return sums, labels


def _cell(values: list[float] | None) -> float | None:
  return sum(values) / len(values) if values else None
