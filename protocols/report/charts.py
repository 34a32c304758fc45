# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Small charts of case pages as coordinates for an SVG template.

A run has thousands of case pages: their charts are plain paths, made in
microseconds, that follow the theme of the page. Coordinates are in units of
the chart's own view box, rounded to a tenth.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

WIDTH, HEIGHT = 720.0, 150.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 46.0, 12.0, 12.0, 22.0
_PLAN = 300.0
_PLAN_MARGIN = 26.0
_VIEW_COUNT = 14


@dataclasses.dataclass(frozen=True)
class Mark:
  """A marked point with its text."""

  x: float
  y: float
  text: str


@dataclasses.dataclass(frozen=True)
class LineChart:
  """A series over frames.

  Attributes:
    title: what is shown.
    description: text alternative.
    path: SVG path; gaps where values are missing.
    marks: peaks.
    x_ticks, y_ticks: positions with their texts.
    tone: number of the series colour.
  """

  title: str
  description: str
  path: str
  marks: tuple[Mark, ...]
  x_ticks: tuple[Mark, ...]
  y_ticks: tuple[Mark, ...]
  tone: int


@dataclasses.dataclass(frozen=True)
class Track:
  """One trajectory in a plan: its path, start, and viewing directions."""

  name: str
  path: str
  start: Mark
  end: Mark
  views: tuple[tuple[float, float, float, float], ...]
  tone: int


@dataclasses.dataclass(frozen=True)
class Plan:
  """Trajectories seen along one axis; both axes have the same scale."""

  title: str
  description: str
  tracks: tuple[Track, ...]
  scale_text: str
  scale_width: float


def line_chart(
  values: Sequence[float | str | None],
  *,
  title: str,
  first_frame: int,
  peak: int | None,
  tone: int,
  labels: Sequence[str] = (),
  top: float | None = None,
) -> LineChart | None:
  """A series over frames (or windows) with its peak marked.

  Args:
    values: one number for each frame; None or text where there is none.
    title: what is shown.
    first_frame: frame of the first value.
    peak: frame to mark, or None.
    tone: number of the series colour.
    labels: name of each value where they are no frames; empty for frames.
    top: upper end of the scale; the largest value without it.

  Returns:
    The chart; None when no value is finite.
  """
  numbers = [
    float(v) if isinstance(v, int | float) else math.nan for v in values
  ]
  finite = [v for v in numbers if math.isfinite(v)]
  if not finite:
    return None
  low, high = min(0.0, *finite), max(top or 0.0, *finite)
  high = high if high > low else low + 1.0
  span = max(len(numbers) - 1, 1)

  def x_of(row: float) -> float:
    return round(_LEFT + (WIDTH - _LEFT - _RIGHT) * row / span, 1)

  def y_of(value: float) -> float:
    share = (value - low) / (high - low)
    return round(HEIGHT - _BOTTOM - (HEIGHT - _TOP - _BOTTOM) * share, 1)

  marks = []
  if peak is not None and 0 <= peak - first_frame < len(numbers):
    value = numbers[peak - first_frame]
    if math.isfinite(value):
      name = labels[peak - first_frame] if labels else f"frame {peak}"
      text = f"{name}: {value:.3g}"
      marks.append(Mark(x_of(peak - first_frame), y_of(value), text))
  ticks = sorted({round(span * k / 4) for k in range(5)})
  kind = "windows" if labels else "frames"
  said = "Falls most" if labels else "Largest"
  where = f" {said} at {marks[0].text}." if marks else ""
  missing = len(numbers) - len(finite)
  gaps = f" {missing} {kind} have no value." if missing else ""
  return LineChart(
    title=title,
    description=(
      f"{title} over {len(numbers)} {kind}, from {min(finite):.3g} to"
      f" {max(finite):.3g}.{where}{gaps}"
    ),
    path=_path([(x_of(i), y_of(v)) for i, v in enumerate(numbers)]),
    marks=tuple(marks),
    x_ticks=tuple(
      Mark(x_of(t), HEIGHT - 6.0, labels[t] if labels else str(t + first_frame))
      for t in ticks
      if t < len(numbers)
    ),
    y_ticks=tuple(
      Mark(_LEFT - 6.0, y_of(v), f"{v:.3g}")
      for v in (low, (low + high) / 2.0, high)
    ),
    tone=tone,
  )


def plans(poses: dict[str, np.ndarray], *, unit: str) -> list[Plan]:
  """Trajectories from above (x to the right, z up) and from the side.

  Args:
    poses: [T, 4, 4] camera-to-world by name, in one frame of reference.
    unit: unit of length, for the scale bar.

  Returns:
    Two plans; none when no pose is finite.
  """
  usable = {
    name: p[np.isfinite(p).all(axis=(1, 2))] for name, p in poses.items()
  }
  usable = {name: p for name, p in usable.items() if len(p)}
  if not usable:
    return []
  made = []
  for title, across, up, sign in (
    ("From above", 0, 2, 1.0),
    ("From the side", 2, 1, -1.0),
  ):
    made.append(_plan(title, usable, across, up, sign, unit))
  return made


def _plan(
  title: str,
  poses: dict[str, np.ndarray],
  across: int,
  up: int,
  sign: float,
  unit: str,
) -> Plan:
  flat = {
    n: np.stack([p[:, across, 3], sign * p[:, up, 3]], 1)
    for n, p in poses.items()
  }
  points = np.concatenate(list(flat.values()))
  low, high = points.min(axis=0), points.max(axis=0)
  size = float(max((high - low).max(), 1e-9))
  factor = (_PLAN - 2 * _PLAN_MARGIN) / size
  middle = (low + high) / 2.0

  def place(point: np.ndarray) -> tuple[float, float]:
    x, y = (point - middle) * factor
    return round(_PLAN / 2 + x, 1), round(_PLAN / 2 - y, 1)

  tracks = []
  for tone, (name, path) in enumerate(flat.items()):
    spots = [place(point) for point in path]
    rows = np.unique(np.linspace(0, len(path) - 1, _VIEW_COUNT).round())
    views = []
    for row in rows.astype(int):
      forward = poses[name][row, :3, 2]
      x, y = spots[row]
      dx, dy = 18.0 * forward[across], -18.0 * sign * forward[up]
      views.append((x, y, round(x + dx, 1), round(y + dy, 1)))
    tracks.append(
      Track(
        name=name,
        path=_path(spots),
        start=Mark(*spots[0], "start"),
        end=Mark(*spots[-1], "end"),
        views=tuple(views),
        tone=tone,
      )
    )
  step = 10.0 ** math.floor(math.log10(size))
  return Plan(
    title=title,
    description=(
      f"{title}: path of the camera ({', '.join(flat)}) with viewing"
      f" directions, {size:.3g} {unit} across."
    ),
    tracks=tuple(tracks),
    scale_text=f"{step:g} {unit}",
    scale_width=round(step * factor, 1),
  )


def _path(points: Sequence[tuple[float, float]]) -> str:
  """Straight lines between neighbours that are both there."""
  parts, pen_down = [], False
  for x, y in points:
    if not (math.isfinite(x) and math.isfinite(y)):
      pen_down = False
      continue
    parts.append(f"{'L' if pen_down else 'M'}{x:g} {y:g}")
    pen_down = True
  return "".join(parts)
