# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Pictures of a PDI run: the leaderboard and the dose-response curves."""

from __future__ import annotations

import io
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from perception import storage
from protocols.pdi.aggregate import ALL
from protocols.pdi.constants import PdiConstants
from protocols.pdi.normalise import COMPONENTS

# Okabe-Ito: told apart by people with any colour vision.
COLOURS = {"scale": "#0072B2", "traj": "#E69F00", "rigid": "#009E73"}
LABELS = {
  "scale": "scale-depth",
  "traj": "3D motion",
  "rigid": "rigidity",
}


def leaderboard(
  path: pathlib.Path, totals: Mapping[str, Any], constants: PdiConstants
) -> bool:
  """Draws mean PDI per system, stacked by weighted component, with intervals.

  Args:
    path: PNG to write.
    totals: result of `aggregate.leaderboard`.
    constants: supplies the weights and the interval level.

  Returns:
    False, and no file, when no system has totals.

  Raises:
    InputError: if the disk refuses.
  """
  names = totals["ranking"][::-1]
  if not names:
    return False
  figure, axes = _figure(height=1.4 + 0.42 * len(names))
  left = [0.0] * len(names)
  groups = [totals["systems"][name]["groups"][ALL] for name in names]
  for component, weight in zip(COMPONENTS, constants.weights, strict=True):
    widths = [weight * group[f"{component}_mean"] for group in groups]
    axes.barh(
      range(len(names)),
      widths,
      left=left,
      color=COLOURS[component],
      label=f"{weight:g} x {LABELS[component]}",
      height=0.62,
    )
    left = [a + b for a, b in zip(left, widths, strict=True)]
  means = [group["pdi_mean"] for group in groups]
  low = [m - g["pdi_mean_low"] for m, g in zip(means, groups, strict=True)]
  high = [g["pdi_mean_high"] - m for m, g in zip(means, groups, strict=True)]
  axes.errorbar(
    means,
    range(len(names)),
    xerr=[low, high],
    fmt="none",
    ecolor="#222222",
    capsize=3,
    linewidth=1.2,
    label=f"{constants.interval_level:.0%} interval of the mean",
  )
  axes.set_yticks(range(len(names)), [_short(name) for name in names])
  axes.set_xlabel("PDI, mean over clips (lower is better)")
  axes.legend(frameon=False, fontsize=8)
  if any(totals["systems"][name]["partial"] for name in names):
    axes.set_title("PARTIAL: not every clip was scored", color="#B00020")
  _save(figure, path)
  return True


def dose_response(
  path: pathlib.Path, rows: Sequence[Mapping[str, Any]]
) -> None:
  """Draws each defect's components against its strength.

  Args:
    path: PNG to write.
    rows: `defect`, `strength`, and the components, from the calibration.

  Raises:
    InputError: if the disk refuses.
  """
  defects = list(dict.fromkeys(row["defect"] for row in rows))
  columns = min(4, len(defects))
  lines = -(-len(defects) // columns)
  figure, grid = _figure(
    height=2.1 * lines + 0.4, rows=lines, columns=columns, sharey=True
  )
  cells = list(grid.flat) if hasattr(grid, "flat") else [grid]
  for cell in cells[len(defects) :]:
    cell.set_visible(False)
  for cell, defect in zip(cells, defects, strict=False):
    chosen = [row for row in rows if row["defect"] == defect]
    strengths = [row["strength"] for row in chosen]
    for component in COMPONENTS:
      values = [row[component] for row in chosen]
      shown = [float("nan") if value is None else value for value in values]
      cell.plot(
        strengths,
        shown,
        marker="o",
        markersize=3,
        color=COLOURS[component],
        label=LABELS[component],
      )
    cell.set_title(defect.replace("_", " "), fontsize=9)
    cell.set_xlabel("strength", fontsize=8)
    cell.tick_params(labelsize=7)
  cells[0].legend(frameon=False, fontsize=7)
  _save(figure, path)


def _figure(
  *, height: float, rows: int = 1, columns: int = 1, sharey: bool = False
) -> tuple[Any, Any]:
  """A figure that needs no display."""
  from matplotlib.backends.backend_agg import FigureCanvasAgg
  from matplotlib.figure import Figure

  figure = Figure(figsize=(8.0, height), dpi=150, layout="constrained")
  FigureCanvasAgg(figure)
  axes = figure.subplots(rows, columns, sharey=sharey, squeeze=True)
  for cell in axes.flat if hasattr(axes, "flat") else [axes]:
    cell.spines[["top", "right"]].set_visible(False)
    cell.grid(axis="x", color="#DDDDDD", linewidth=0.6)
    cell.set_axisbelow(True)
  return figure, axes


def _save(figure: Any, path: pathlib.Path) -> None:
  buffer = io.BytesIO()
  figure.savefig(buffer, format="png", metadata={"Software": None})
  storage.write_atomic(path, lambda stream: stream.write(buffer.getvalue()))


def _short(name: str) -> str:
  text = "".join(c if c.isprintable() and c != "$" else "?" for c in name)
  return text if len(text) <= 28 else text[:27] + "…"
