# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Figures of PDI-Bench: components, categories, dose-response."""

from __future__ import annotations

import pathlib

from protocols.report import drawing
from protocols.report.boards import Board
from protocols.report.drawing import Picture
from protocols.report.sources import Run

_COMPONENTS = {
  "scale": "scale-depth",
  "traj": "3D motion",
  "rigid": "rigidity",
}


def draw(run: Run, board: Board, folder: pathlib.Path) -> list[Picture]:
  """All figures that the run has data for.

  Args:
    run: a PDI run.
    board: its leaderboard.
    folder: where the files go.

  Returns:
    The figures.
  """
  found = [_components(run, board, folder), _categories(run, board, folder)]
  found.append(_doses(run, folder))
  return [picture for picture in found if picture is not None]


def _components(run: Run, board: Board, folder: pathlib.Path) -> Picture | None:
  """Mean PDI, stacked by weighted component, with intervals."""
  rows = [r for r in board.rows if r.rank is not None and not r.reference]
  constants = run.settings.get("settings", {}).get("constants", {})
  weights = constants.get("weights")
  if not rows or not weights:
    return None
  shown = rows[::-1]
  made, axes = drawing.figure(height=1.3 + 0.38 * len(shown))
  drawing.style(axes, grid="x")
  axes.grid(visible=False, axis="y")
  left = [0.0] * len(shown)
  for i, (key, name) in enumerate(_COMPONENTS.items()):
    values = [row.values.get(f"{key}_mean") or 0.0 for row in shown]
    widths = [weights[i] * value for value in values]
    axes.barh(
      range(len(shown)),
      widths,
      left=left,
      height=0.62,
      color=drawing.colour(i),
      label=f"{weights[i]:g} x {name}",
    )
    left = [a + b for a, b in zip(left, widths, strict=True)]
  for y, row in enumerate(shown):
    interval, mean = row.intervals.get("pdi_mean"), row.values["pdi_mean"]
    if interval and mean is not None:
      axes.errorbar(
        [mean],
        [y],
        xerr=[[mean - interval[0]], [interval[1] - mean]],
        ecolor=drawing.INK,
        fmt="none",
        capsize=3,
        linewidth=1.2,
      )
  axes.set_yticks(
    range(len(shown)),
    [drawing.label(row.system) for row in shown],
    parse_math=False,
  )
  axes.set_xlabel("mean PDI (lower is better)", color=drawing.INK)
  drawing.legend(
    axes,
    loc="lower left",
    bbox_to_anchor=(0.0, 1.0),
    ncols=3,
    borderaxespad=0.2,
  )
  best = rows[0]
  return drawing.finish(
    made,
    folder,
    name="pdi_components",
    title="What each PDI is made of",
    description=(
      f"Stacked bars of the weighted components for {len(rows)} systems, with"
      f" intervals of the mean. Lowest is {best.system} at"
      f" {best.values['pdi_mean']:.3f}."
    ),
  )


def _categories(run: Run, board: Board, folder: pathlib.Path) -> Picture | None:
  """Mean PDI by system and category."""
  systems = run.scores.get("systems", {})
  ranked = [r for r in board.rows if r.rank is not None and not r.reference]
  rows = [r.system for r in ranked]
  names = sorted({g for s in rows for g in systems[s]["groups"] if g != "all"})
  if len(names) < 2:
    return None
  values = [
    [systems[s]["groups"].get(g, {}).get("pdi_mean") for g in names]
    for s in rows
  ]
  known = [v for row in values for v in row if v is not None]
  if not known:
    return None
  made, axes = drawing.figure(height=1.6 + 0.34 * len(rows))
  mesh = drawing.heat_map(
    axes,
    values,
    rows=rows,
    columns=[name.replace("_", " ") for name in names],
    low=0.0,
    high=max(known),
    digits=3,
    cmap="cividis_r",
  )
  bar = made.colorbar(mesh, ax=axes, pad=0.02)
  bar.outline.set_visible(False)
  bar.ax.tick_params(labelsize=7, labelcolor=drawing.INK, length=0)
  return drawing.finish(
    made,
    folder,
    name="pdi_categories",
    title="Mean PDI by category",
    description=(
      f"Heat map of {len(rows)} systems by {len(names)} categories; darker is"
      " worse. Hatched cells have no scored clip."
    ),
  )


def _doses(run: Run, folder: pathlib.Path) -> Picture | None:
  """Each defect's components against its strength."""
  defects = list(dict.fromkeys(row["defect"] for row in run.doses))
  if not defects:
    return None
  columns = min(4, len(defects))
  lines = -(-len(defects) // columns)
  made, grid = drawing.figure(
    width=10.0, height=2.0 * lines + 0.3, rows=lines, columns=columns
  )
  cells = list(grid.flat) if hasattr(grid, "flat") else [grid]
  for cell in cells[len(defects) :]:
    cell.set_visible(False)
  for cell, defect in zip(cells, defects, strict=False):
    chosen = [row for row in run.doses if row["defect"] == defect]
    for i, (key, name) in enumerate(_COMPONENTS.items()):
      cell.plot(
        [row["strength"] for row in chosen],
        [float("nan") if row[key] is None else row[key] for row in chosen],
        marker="o",
        markersize=3,
        linewidth=1.4,
        color=drawing.colour(i),
        label=name,
      )
    cell.set_title(
      drawing.label(defect.replace("_", " ")), fontsize=9, parse_math=False
    )
    cell.title.set_color(drawing.INK)
    cell.set_ylim(bottom=0.0)
    cell.set_xlabel("strength", fontsize=8, color=drawing.MUTED)
  drawing.legend(cells[0])
  return drawing.finish(
    made,
    folder,
    name="pdi_doses",
    title="Dose-response of the calibration",
    description=(
      f"One panel for each of {len(defects)} defects: the three components"
      " against the strength of the defect, on ray-cast clips."
    ),
    wide=True,
  )
