# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Orbia's scores window by window: where they fall, as they stand on record."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from protocols.common.records import Record
from protocols.report import charts
from protocols.report.charts import LineChart

# Falls below one point of 100 are not worth a picture.
_SMALLEST = 1.0
_CHARTS = 4
_GEOMETRIC = ("depth", "reproj", "scale")


@dataclasses.dataclass(frozen=True)
class Drop:
  """The largest fall of an indicator from an earlier window.

  Attributes:
    name: the indicator, in words.
    window: 0-based window that it falls to.
    bounds: (start, end) of that window, seconds.
    before: best score of the windows before it.
    value: its score, 0 to 100.
    geometric: whether depth or reprojection is judged.
  """

  name: str
  window: int
  bounds: tuple[float, float]
  before: float
  value: float
  geometric: bool


def details(record: Record) -> Mapping[str, Any]:
  """`curves` and `bounds` of a record; empty without any."""
  tier = record.details.get("tiers", {}).get("T6") or {}
  found: Mapping[str, Any] = tier.get("details") or {}
  return found if found.get("curves") else {}


def drops(record: Record) -> list[Drop]:
  """Falls of at least one point, largest first, one for each indicator."""
  found = details(record)
  made = []
  for name, curve in sorted((found.get("curves") or {}).items()):
    drop = _largest(name, curve, found["bounds"])
    if drop is not None:
      made.append(drop)
  return sorted(made, key=lambda d: d.value - d.before)


def line_charts(record: Record) -> list[LineChart]:
  """Curves of the indicators that fall most, the window marked."""
  found = details(record)
  made = []
  for tone, drop in enumerate(drops(record)[:_CHARTS]):
    curve = found["curves"][drop.name.replace(" ", "_")]
    chart = charts.line_chart(
      curve,
      title=f"{drop.name[:1].upper()}{drop.name[1:]} by start of the window",
      first_frame=0,
      peak=drop.window,
      tone=tone,
      labels=[f"{start:g} s" for start, _ in found["bounds"]],
      top=100.0,
    )
    if chart is not None:
      made.append(chart)
  return made


def span(bounds: Sequence[float]) -> str:
  """Bounds of a window in words."""
  return f"{bounds[0]:g}-{bounds[1]:g} s"


def _largest(
  name: str, curve: Sequence[Any], bounds: Sequence[Sequence[float]]
) -> Drop | None:
  best: float | None = None
  worst: tuple[float, int, float, float] | None = None
  for window, value in enumerate(curve):
    if not isinstance(value, int | float):
      continue
    if best is not None and best - value >= _SMALLEST:
      fall = (value - best, window, best, float(value))
      worst = fall if worst is None else min(worst, fall)
    best = float(value) if best is None else max(best, float(value))
  if worst is None:
    return None
  _, window, before, value = worst
  start, end = bounds[window]
  return Drop(
    name.replace("_", " "),
    window,
    (float(start), float(end)),
    before,
    value,
    name.startswith(_GEOMETRIC),
  )
