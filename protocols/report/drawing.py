# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""How every figure of a report looks, and how it is stored.

A figure is drawn once and leaves as SVG and PNG for papers and as inline SVG
for the page, where its colours become CSS variables so that it follows the
light or dark theme. Names from outside are drawn as plain text.
"""

from __future__ import annotations

import dataclasses
import io
import pathlib
import re
import warnings
from collections.abc import Sequence
from typing import Any

from perception import storage

INK = "#1b2430"
MUTED = "#5b6675"
LINE = "#d5dbe3"
# Okabe-Ito, without yellow: told apart by people with any colour vision.
SERIES = (
  "#0072b2",
  "#d55e00",
  "#009e73",
  "#9a5b8a",
  "#b07d00",
  "#3f8fbf",
)
SEQUENTIAL = "cividis"
_VARIABLES = {
  INK: "var(--ink)",
  MUTED: "var(--muted)",
  LINE: "var(--line)",
  **{colour: f"var(--s{i})" for i, colour in enumerate(SERIES)},
}
_NAME_LIMIT = 26
_DPI = 160


@dataclasses.dataclass(frozen=True)
class Picture:
  """A finished figure.

  Attributes:
    name: stem of its files.
    title: what it shows, in a few words.
    description: text alternative, one or two sentences.
    svg: inline SVG for the page.
    wide: whether it deserves the full width of the page.
  """

  name: str
  title: str
  description: str
  svg: str
  wide: bool = False


def figure(
  *, width: float = 6.4, height: float = 3.6, rows: int = 1, columns: int = 1
) -> tuple[Any, Any]:
  """A figure that needs no display, with plain axes.

  Args:
    width, height: inches.
    rows, columns: cells of the grid of axes.

  Returns:
    (figure, axes or array of axes).
  """
  from matplotlib.backends.backend_agg import FigureCanvasAgg
  from matplotlib.figure import Figure

  made = Figure(figsize=(width, height), dpi=_DPI, layout="constrained")
  FigureCanvasAgg(made)
  axes = made.subplots(rows, columns, squeeze=True)
  for cell in axes.flat if hasattr(axes, "flat") else [axes]:
    style(cell)
  return made, axes


def style(cell: Any, *, grid: str = "both") -> None:
  """Light spines and grid in the colours of the theme."""
  cell.spines[["top", "right"]].set_visible(False)
  cell.spines[["left", "bottom"]].set_color(LINE)
  cell.grid(axis=grid, color=LINE, linewidth=0.6)
  cell.set_axisbelow(True)
  cell.tick_params(labelsize=8, colors=MUTED, labelcolor=INK, length=0)
  for label in (cell.xaxis.label, cell.yaxis.label, cell.title):
    label.set_color(INK)
    label.set_fontsize(9)


def label(name: str, *, limit: int = _NAME_LIMIT) -> str:
  """A name from outside, short, without markup or control characters."""
  text = "".join(c if c.isprintable() and c != "$" else "?" for c in name)
  return text if len(text) <= limit else text[: limit - 1] + "…"


def legend(cell: Any, **options: Any) -> None:
  """A legend without a frame."""
  cell.legend(frameon=False, fontsize=8, labelcolor=INK, **options)


def colour(index: int) -> str:
  """Colour of a series; repeats after six."""
  return SERIES[index % len(SERIES)]


def heat_map(
  cell: Any,
  values: Sequence[Sequence[float | None]],
  *,
  rows: Sequence[str],
  columns: Sequence[str],
  low: float,
  high: float,
  digits: int,
  cmap: str = SEQUENTIAL,
) -> Any:
  """Cells with their numbers; a missing value is hatched and says so.

  Args:
    cell: axes.
    values: rows of numbers, None = missing.
    rows, columns: names.
    low, high: ends of the colour scale.
    digits: decimals shown.
    cmap: colour map.

  Returns:
    The mesh, for a colour bar.
  """
  import numpy as np
  from matplotlib.patches import Rectangle

  table = np.array(
    [[np.nan if v is None else v for v in row] for row in values], np.float64
  )
  mesh = cell.pcolormesh(
    np.ma.masked_invalid(table),
    cmap=cmap,
    vmin=low,
    vmax=high if high > low else low + 1.0,
    edgecolors="none",
  )
  for (r, c), value in np.ndenumerate(table):
    if np.isnan(value):
      patch = Rectangle(
        (c, r), 1, 1, fill=False, hatch="////", edgecolor=LINE, linewidth=0
      )
      cell.add_patch(patch)
      text, ink = "none", MUTED
    else:
      red, green, blue, _ = mesh.cmap(mesh.norm(value))
      light = 0.299 * red + 0.587 * green + 0.114 * blue > 0.5
      text, ink = f"{value:.{digits}f}", "#101418" if light else "#ffffff"
    cell.text(
      c + 0.5, r + 0.5, text, ha="center", va="center", fontsize=7.5, color=ink
    )
  cell.grid(visible=False)
  cell.spines[:].set_visible(False)
  cell.set_yticks(
    np.arange(len(rows)) + 0.5, [label(n) for n in rows], parse_math=False
  )
  cell.set_xticks(
    np.arange(len(columns)) + 0.5,
    [label(n) for n in columns],
    parse_math=False,
    rotation=30 if max(map(len, columns)) > 8 else 0,
    ha="right" if max(map(len, columns)) > 8 else "center",
  )
  cell.invert_yaxis()
  return mesh


def finish(
  made: Any,
  folder: pathlib.Path,
  *,
  name: str,
  title: str,
  description: str,
  wide: bool = False,
) -> Picture:
  """Writes `name.svg` and `name.png` and returns the figure for the page.

  Args:
    made: matplotlib figure.
    folder: where the files go.
    name: stem of the files, plain letters.
    title: what it shows.
    description: text alternative.
    wide: give it the full width of the page.

  Raises:
    InputError: if the disk refuses.
  """
  import matplotlib as mpl

  settings: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": name,
    "font.family": "sans-serif",
    "axes.unicode_minus": False,
  }
  vector, raster = io.StringIO(), io.BytesIO()
  with mpl.rc_context(settings), warnings.catch_warnings():
    # Scripts that the font lacks are boxes in the PNG and right in the SVG.
    warnings.filterwarnings("ignore", message=".*[Gg]lyph")
    made.savefig(
      vector,
      format="svg",
      transparent=True,
      metadata={"Date": None, "Creator": None},
    )
    made.savefig(raster, format="png", metadata={"Software": None})
  text = vector.getvalue()
  storage.write_atomic(
    folder / f"{name}.svg", lambda out: out.write(text.encode())
  )
  storage.write_atomic(
    folder / f"{name}.png", lambda out: out.write(raster.getvalue())
  )
  return Picture(name, title, description, _inline(text, name), wide)


def _inline(text: str, name: str) -> str:
  """The SVG element alone, themed, with ids of its own."""
  body = text[text.index("<svg") :]
  body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.S)
  for fixed, variable in _VARIABLES.items():
    body = body.replace(fixed, variable)
  # Text that no artist coloured is black.
  body = body.replace("<svg ", '<svg aria-hidden="true" focusable="false" ', 1)
  body = re.sub(r'\bid="', f'id="{name}-', body)
  body = re.sub(r'(xlink:href|href)="#', rf'\1="#{name}-', body)
  body = body.replace("url(#", f"url(#{name}-")
  return re.sub(r' (width|height)="[\d.]+pt"', "", body, count=2)
