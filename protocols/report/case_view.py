# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""What the page of one case shows, for every protocol."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any

from protocols.common.records import Record
from protocols.report import charts, windows
from protocols.report.boards import Column
from protocols.report.charts import LineChart

_PDI_SERIES = {
  "scale": "Scale-depth residual",
  "traj": "3D motion residual",
  "rigid": "Rigidity residual",
}
_MARGIN = 8.0
_CANVAS = 360.0


@dataclasses.dataclass(frozen=True)
class Tile:
  """A value with its name; `text` says "none" where it is missing."""

  label: str
  text: str
  about: str


@dataclasses.dataclass(frozen=True)
class Box:
  """A box of an object: `match`, `missing`, `hallucination` or `target`."""

  kind: str
  x: float
  y: float
  width: float
  height: float
  text: str


@dataclasses.dataclass(frozen=True)
class BoxPlan:
  """Objects of one step: where they should be and where they were found."""

  title: str
  description: str
  width: float
  height: float
  boxes: tuple[Box, ...]
  links: tuple[tuple[float, float, float, float], ...]


@dataclasses.dataclass(frozen=True)
class Heat:
  """Window scores over time; rows of (name, values, window that falls most).

  A missing value is None.
  """

  title: str
  columns: tuple[str, ...]
  rows: tuple[tuple[str, tuple[float | None, ...], int | None], ...]


@dataclasses.dataclass(frozen=True)
class Facts:
  """A titled table of names and texts."""

  title: str
  rows: tuple[tuple[str, str], ...]


@dataclasses.dataclass(frozen=True)
class CaseView:
  """Content of a case page, beside its pictures.

  Attributes:
    tiles: the scores.
    charts: series over frames.
    boxes: objects by step.
    heats: tables over time windows.
    facts: tables of numbers and texts.
    events: (frame, caption) worth a picture.
  """

  tiles: tuple[Tile, ...]
  charts: tuple[LineChart, ...]
  boxes: tuple[BoxPlan, ...]
  heats: tuple[Heat, ...]
  facts: tuple[Facts, ...]
  events: tuple[tuple[int, str], ...]


def build(
  record: Record,
  columns: Sequence[Column],
  *,
  cmg: Sequence[Mapping[str, Any]] = (),
  ssp: Sequence[Mapping[str, Any]] = (),
) -> CaseView:
  """The view of one record.

  Args:
    record: the record.
    columns: scores of the case table.
    cmg, ssp: EgoGenEval's evidence rows of the case, in order of steps.

  Returns:
    The view.
  """
  details = record.details
  peaks = {
    str(peak["component"]): peak
    for peak in details.get("peaks") or []
    if peak.get("worst_frame") is not None
  }
  facts = [
    _numbers("Values", record.values),
    _numbers("Coverage", record.coverage),
    *_tier_facts(details.get("tiers") or {}),
    *_step_facts(cmg),
    Facts("Groups", tuple(sorted(record.groups.items()))),
    _flat("Audit", details.get("audit") or {}),
    # Images have pictures of their own, or stand in the whole record.
    _flat(
      "Provenance",
      {k: v for k, v in record.provenance.items() if k != "images"},
    ),
  ]
  return CaseView(
    tiles=tuple(_tile(record, column) for column in columns),
    charts=(*_pdi_charts(record, peaks), *windows.line_charts(record)),
    boxes=tuple(box for row in ssp if (box := _boxes(row))),
    heats=tuple(_heats(record)),
    facts=tuple(f for f in facts if f.rows),
    events=tuple(
      (int(peak["worst_frame"]), f"peak of the {_title(name)}")
      for name, peak in peaks.items()
    ),
  )


def raw_lines(line: bytes) -> str:
  """A record's line of JSON as one line for each field and each detail."""
  content = json.loads(line)
  details = content.pop("details")
  lines = [
    *(f"{json.dumps(k)}: {_compact(v)}" for k, v in content.items()),
    *(f'"details.{k}": {_compact(v)}' for k, v in details.items()),
  ]
  return "\n".join(lines)


def _compact(value: Any) -> str:
  return json.dumps(value, ensure_ascii=False)


def _title(component: str) -> str:
  title = _PDI_SERIES.get(component, component)
  return title[:1].lower() + title[1:] if not title[:1].isdigit() else title


def number(value: Any) -> str:
  """A number in six digits; `none` for a missing one."""
  if value is None:
    return "none"
  if isinstance(value, bool) or not isinstance(value, int | float):
    return str(value)
  return str(value) if isinstance(value, int) else f"{value:.6g}"


def _tile(record: Record, column: Column) -> Tile:
  value = record.values.get(column.key)
  text = "none" if value is None else f"{value:.{column.digits}f}"
  way = "Lower" if column.lower_is_better else "Higher"
  return Tile(column.label, text, f"{column.about} {way} is better.")


def _numbers(title: str, values: Mapping[str, Any]) -> Facts:
  return Facts(
    title, tuple((name, number(v)) for name, v in sorted(values.items()))
  )


def _flat(title: str, content: Mapping[str, Any]) -> Facts:
  """Nested content as dotted names; empty values are left out."""
  rows: list[tuple[str, str]] = []

  def add(prefix: str, value: Any) -> None:
    if isinstance(value, Mapping):
      for key, entry in sorted(value.items()):
        add(f"{prefix}.{key}" if prefix else str(key), entry)
    elif value not in ("", None, [], {}):
      rows.append((prefix, number(value)))

  add("", content)
  return Facts(title, tuple(rows))


def _pdi_charts(
  record: Record, peaks: Mapping[str, Mapping[str, Any]]
) -> list[LineChart]:
  series = record.details.get("series") or {}
  frames = int(record.coverage.get("frames") or 0)
  made = []
  for tone, (name, title) in enumerate(_PDI_SERIES.items()):
    values = series.get(name) or []
    # Series end at the last frame that the residual looks at.
    end = (frames or len(values)) - (1 if name == "traj" else 0)
    peak = peaks.get(name, {}).get("worst_frame")
    chart = charts.line_chart(
      values,
      title=title,
      first_frame=max(0, end - len(values)),
      peak=peak,
      tone=tone,
    )
    if chart is not None:
      made.append(chart)
  height = record.details.get("height") or []
  chart = charts.line_chart(
    height, title="Height of the object, px", first_frame=0, peak=None, tone=5
  )
  return [*made, chart] if chart is not None else made


def _tier_facts(tiers: Mapping[str, Any]) -> list[Facts]:
  """Each tier's status, reason and raw values."""
  return [
    Facts(
      f"Tier {name[1:]}",
      (
        ("status", str(part["status"])),
        *((("reason", str(part["reason"])),) if part["reason"] else ()),
        *((key, number(v)) for key, v in sorted(part["values"].items())),
      ),
    )
    for name, part in sorted(tiers.items())
  ]


def _heats(record: Record) -> list[Heat]:
  details = windows.details(record)
  if not details:
    return []
  worst = {drop.name: drop.window for drop in windows.drops(record)}
  rows = []
  for key, curve in sorted(details["curves"].items()):
    name = key.replace("_", " ")
    cells = tuple(v if isinstance(v, int | float) else None for v in curve)
    rows.append((name, cells, worst.get(name)))
  return [
    Heat(
      "Window by window",
      tuple(windows.span(bounds) for bounds in details["bounds"]),
      tuple(rows),
    )
  ]


def _step_facts(cmg: Sequence[Mapping[str, Any]]) -> list[Facts]:
  """Requested and executed motion of each step."""
  made = []
  for row in cmg:
    step = str(row.get("id", "")).rpartition("__step")[2]
    shown = (
      ("component", row.get("action_component")),
      ("requested", row.get("action_expected")),
      ("executed", row.get("action_pred")),
      ("error", row.get("action_abs_err")),
      ("unit", row.get("action_unit")),
      ("direction", row.get("action_sign_correct")),
      *sorted((row.get("diagnostics") or {}).items()),
    )
    made.append(
      Facts(f"Camera, step {step}", tuple((k, number(v)) for k, v in shown))
    )
  return made


def _boxes(row: Mapping[str, Any]) -> BoxPlan | None:
  """Target boxes and found boxes of one step, matches joined by lines."""
  objects = row.get("objects") or []
  corners = [
    box for o in objects for box in (o.get("gt_box"), o.get("pred_box")) if box
  ]
  if not corners:
    return None
  width = max(max(box[2] for box in corners), 1.0)
  height = max(max(box[3] for box in corners), 1.0)
  factor = _CANVAS / width
  boxes, links = [], []
  counts = {"match": 0, "missing": 0, "hallucination": 0}
  for o in objects:
    kind = str(o.get("status"))
    counts[kind] = counts.get(kind, 0) + 1
    name = str(o.get("label") or o.get("gt_idx"))
    target, found = o.get("gt_box"), o.get("pred_box")
    if target:
      boxes.append(
        _box("missing" if kind == "missing" else "target", target, factor, name)
      )
    if found:
      boxes.append(_box(kind, found, factor, "" if target else "extra"))
    if target and found:
      links.append((*_center(target, factor), *_center(found, factor)))
  step = str(row.get("id", "")).rpartition("__step")[2]
  return BoxPlan(
    title=f"Objects, step {step}",
    description=(
      f"{counts['match']} matched, {counts['missing']} missing,"
      f" {counts['hallucination']} extra objects, as boxes in the image."
    ),
    width=_CANVAS + 2 * _MARGIN,
    height=round(height * factor, 1) + 2 * _MARGIN,
    boxes=tuple(boxes),
    links=tuple(links),
  )


def _box(kind: str, box: Sequence[float], factor: float, text: str) -> Box:
  x, y, right, bottom = (factor * float(v) + _MARGIN for v in box)
  return Box(
    kind,
    round(x, 1),
    round(y, 1),
    round(right - x, 1),
    round(bottom - y, 1),
    text,
  )


def _center(box: Sequence[float], factor: float) -> tuple[float, float]:
  return (
    round(factor * (box[0] + box[2]) / 2 + _MARGIN, 1),
    round(factor * (box[1] + box[3]) / 2 + _MARGIN, 1),
  )
