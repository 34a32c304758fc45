# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Figures of EgoGenEval: camera against scene, magnitudes, subtypes."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from protocols.report import drawing
from protocols.report.boards import Board, Row
from protocols.report.drawing import Picture
from protocols.report.sources import Run

_MARKS = "os^Dvp"
_BINS = ("small", "medium", "large")
_POINTS_LIMIT = 4000
_VECTOR_LIMIT = 500
_UNITS = {"m": "translation, m", "deg": "rotation, degrees"}

Steps = Mapping[tuple[str, str], Sequence[Mapping[str, Any]]]


def draw(
  run: Run, board: Board, folder: pathlib.Path, steps: Steps
) -> list[Picture]:
  """All figures that the run has data for.

  Args:
    run: an EgoGenEval run.
    board: its leaderboard.
    folder: where the files go.
    steps: evidence rows of the camera by (system, case); may be empty.

  Returns:
    The figures.
  """
  found = [
    _scatter(board, folder),
    _protocols(board, folder),
    _response(board, steps, folder),
    _bins(run, folder),
  ]
  return [picture for picture in found if picture is not None]


def _scatter(board: Board, folder: pathlib.Path) -> Picture | None:
  """CMG against SSP, with ellipses spanning both intervals."""
  from matplotlib.patches import Ellipse

  rows = [
    row
    for row in board.rows
    if row.values.get("cmg") is not None and row.values.get("ssp") is not None
  ]
  if all(row.reference for row in rows):
    return None
  made, axes = drawing.figure(height=4.4)
  for i, row in enumerate(rows):
    x, y = row.values["cmg"], row.values["ssp"]
    assert x is not None
    assert y is not None
    tone = drawing.MUTED if row.reference else drawing.colour(i)
    span_x, span_y = row.intervals.get("cmg"), row.intervals.get("ssp")
    if span_x and span_y:
      axes.add_patch(
        Ellipse(
          ((span_x[0] + span_x[1]) / 2, (span_y[0] + span_y[1]) / 2),
          span_x[1] - span_x[0],
          span_y[1] - span_y[0],
          facecolor=tone,
          edgecolor=tone,
          alpha=0.25,
        )
      )
    size = 4 if row.reference else 7
    axes.plot([x], [y], _MARKS[i % 6], color=tone, markersize=size)
    if not row.reference:
      axes.annotate(
        drawing.label(row.system),
        (x, y),
        xytext=(7, 5),
        textcoords="offset points",
        fontsize=8,
        color=drawing.INK,
        parse_math=False,
      )
  axes.set_xlabel("CMG: camera motion executed", color=drawing.INK)
  axes.set_ylabel("SSP: scene kept", color=drawing.INK)
  axes.margins(0.15)
  drawn = any("cmg" in r.intervals and "ssp" in r.intervals for r in rows)
  note = (
    " Ellipses span the intervals of both scores."
    if drawn
    else " Give an intervals study for ellipses."
  )
  return drawing.finish(
    made,
    folder,
    name="egogeneval_scatter",
    title="Camera against scene",
    description=(
      f"Scatter of {len(rows)} systems, CMG on x, SSP on y.{note} Grey marks"
      " are published systems."
      if any(row.reference for row in rows)
      else f"Scatter of {len(rows)} systems, CMG on x, SSP on y.{note}"
    ),
  )


def _protocols(board: Board, folder: pathlib.Path) -> Picture | None:
  """Scores by system and protocol."""
  keys = [
    f"{axis}_{protocol}"
    for axis in ("cmg", "ssp")
    for protocol in ("atomic", "chain", "cycle")
  ]
  rows = [r for r in board.rows if not r.reference and _any(r, keys)]
  keys = [k for k in keys if any(r.values.get(k) is not None for r in rows)]
  if not rows:
    return None
  made, axes = drawing.figure(height=1.5 + 0.34 * len(rows))
  drawing.heat_map(
    axes,
    [[row.values.get(k) for k in keys] for row in rows],
    rows=[row.system for row in rows],
    columns=[k.replace("cmg", "CMG").replace("ssp", "SSP") for k in keys],
    low=0.0,
    high=1.0,
    digits=2,
  )
  return drawing.finish(
    made,
    folder,
    name="egogeneval_protocols",
    title="Scores by protocol",
    description=(
      f"Heat map of {len(rows)} systems by axis and protocol, 0 to 1; brighter"
      " is better. Hatched cells were not measured."
    ),
  )


def _response(
  board: Board, steps: Steps, folder: pathlib.Path
) -> Picture | None:
  """Requested against executed magnitude of every step."""
  systems = [r.system for r in board.rows if not r.reference][:8]
  points: dict[tuple[str, str], list[tuple[float, float]]] = {
    (system, unit): [] for system in systems for unit in _UNITS
  }
  for (system, _), rows in steps.items():
    for row in rows:
      unit = "m" if str(row.get("action_unit", "")).startswith("m") else "deg"
      expected, found = row.get("action_expected"), row.get("action_pred")
      if (system, unit) not in points or expected is None or found is None:
        continue
      sign = 1.0 if expected >= 0 else -1.0
      points[system, unit].append((sign * expected, sign * found))
  units = [
    unit for unit in _UNITS if any(points[system, unit] for system in systems)
  ]
  if not units:
    return None
  made, grid = drawing.figure(
    width=5.0 * len(units), height=3.8, columns=len(units)
  )
  cells = list(grid.flat) if hasattr(grid, "flat") else [grid]
  for cell, unit in zip(cells, units, strict=True):
    _response_cell(cell, {s: points[s, unit] for s in systems})
    cell.set_xlabel(f"requested {_UNITS[unit]}", color=drawing.INK)
    cell.set_ylabel("executed", color=drawing.INK)
  drawing.legend(cells[-1], loc="upper left")
  return drawing.finish(
    made,
    folder,
    name="egogeneval_response",
    title="Magnitude response",
    description=(
      "Executed against requested size of every step, translations and"
      " rotations. The line is exact execution; below zero is the wrong"
      " direction. Points beyond twice the largest request are cut off."
    ),
    wide=len(units) > 1,
  )


def _response_cell(
  cell: Any, points: Mapping[str, Sequence[tuple[float, float]]]
) -> None:
  """(requested, executed) of each system, and the line of exact execution."""
  top, lowest, highest = 0.0, 0.0, 0.0
  for i, (system, found) in enumerate(points.items()):
    pairs = found[:_POINTS_LIMIT]
    x, y = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    top = max([top, *x])
    lowest, highest = min([lowest, *y]), max([highest, *y])
    cell.plot(
      x,
      y,
      _MARKS[i % 6],
      color=drawing.colour(i),
      markersize=3,
      alpha=0.55,
      linestyle="none",
      label=drawing.label(system),
      rasterized=len(pairs) > _VECTOR_LIMIT,
    )
  cell.plot([0, top], [0, top], color=drawing.INK, linewidth=1)
  cell.axhline(0.0, color=drawing.MUTED, linewidth=0.8)
  margin = 0.05 * (top or 1.0)
  cell.set_ylim(
    max(lowest, -top) - margin, min(max(highest, top), 2.0 * top) + margin
  )


def _bins(run: Run, folder: pathlib.Path) -> Picture | None:
  """Under, near and over execution by size of the instruction."""
  table = run.diagnostics.get("magnitude_bins") or {}
  families = [name for name in ("translation", "rotation") if name in table]
  if not families:
    return None
  made, grid = drawing.figure(width=7.2, height=2.8, columns=len(families))
  cells = list(grid.flat) if hasattr(grid, "flat") else [grid]
  for cell, family in zip(cells, families, strict=True):
    bins = table[family]["bins"]
    left = [0.0] * len(_BINS)
    for i, part in enumerate(("under", "near", "over")):
      values = [bins[name][part] or 0.0 for name in _BINS]
      cell.barh(
        range(len(_BINS)),
        values,
        left=left,
        height=0.6,
        color=drawing.colour((1, 2, 0)[i]),
        label=part,
      )
      left = [a + b for a, b in zip(left, values, strict=True)]
    cell.set_yticks(range(len(_BINS)), _BINS)
    cell.invert_yaxis()
    cell.set_xlim(0, 1)
    cell.set_title(family, fontsize=9, color=drawing.INK)
    cell.set_xlabel("share of steps", color=drawing.INK)
    cell.grid(visible=False, axis="y")
  drawing.legend(cells[-1], loc="center left", bbox_to_anchor=(1.0, 0.5))
  return drawing.finish(
    made,
    folder,
    name="egogeneval_bins",
    title="Under, near and over execution",
    description=(
      "Stacked shares of steps in the right direction that moved too little"
      " (below 0.8 of the request), about right, or too far (above 1.2), by"
      " tertile of the requested size."
    ),
  )


def _any(row: Row, keys: Sequence[str]) -> bool:
  return any(row.values.get(key) is not None for key in keys)
