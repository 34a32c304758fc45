# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""The table of cases: columns, worst-first order, compact content.

The page gets the table as one JSON value with names stored once; it draws
only the rows in view, so that thousands of cases load at once. Values are
rounded to six significant digits there; the case pages have them in full.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

from protocols.common.records import FAILED, MISSING, OK, STATUSES
from protocols.report.boards import Column
from protocols.report.entries import Entry
from protocols.report.sources import Run, Study

_LOWER = True
COLUMNS: Mapping[str, tuple[Column, ...]] = {
  "pdi": (
    Column("pdi", "PDI", "Perspective distortion index.", _LOWER),
    Column("scale", "Scale-depth", "1/Z scale residual.", _LOWER),
    Column("traj", "3D motion", "Trajectory residual.", _LOWER),
    Column("rigid", "Rigidity", "Rigidity residual.", _LOWER),
    Column("rigid_2d", "2D rigidity", "Not part of PDI.", _LOWER),
    Column("math_pass", "MathPass", "1: sound reconstruction.", digits=0),
  ),
  "egogeneval": (
    Column("cmg", "CMG", "Camera Motion Grounding."),
    Column("dir", "Direction", "Share of steps in the right direction."),
    Column("gated", "Gated", "Magnitude accuracy given the direction."),
    Column("ssp", "SSP", "Scene State Preservation."),
    Column("f1", "Presence", "F1 of objects found again."),
    Column("spatial", "Spatial", "Position and depth order of objects."),
    Column("integrity", "Integrity", "Quality of matched objects."),
  ),
  "orbia": tuple(
    Column(f"T{i}", f"T{i}", f"Tier {i}.", digits=1) for i in range(1, 7)
  ),
}
# The tier that speaks of one 3D world leads, where it was measured.
_MAIN_ORDER: Mapping[str, tuple[str, ...]] = {
  "pdi": ("pdi", "rigid_2d"),
  "egogeneval": ("cmg", "ssp"),
  "orbia": ("T5", "T4", "T1", "T3", "T6", "T2"),
}
_HIDDEN_GROUPS = frozenset({"scene", "group", "control_profile"})
_STATUS_ORDER = {FAILED: 0, MISSING: 1, "degenerate": 2, OK: 3}


@dataclasses.dataclass(frozen=True)
class CaseTable:
  """The cases of a run, worst first.

  Attributes:
    columns: scores that any case has.
    main: key of the score that orders them.
    entries: cases without a score first, then by the main score.
    groups: names of the groupings to filter by.
  """

  columns: tuple[Column, ...]
  main: str
  entries: tuple[Entry, ...]
  groups: tuple[str, ...]


def build(run: Run) -> CaseTable:
  """Orders the cases of a run, worst first.

  Args:
    run: an evaluation run.

  Returns:
    The table; cases without a value in the main score follow the failures.
  """
  every = COLUMNS[run.protocol]
  columns = tuple(
    c for c in every if any(_finite(e.values.get(c.key)) for e in run.entries)
  )
  known = {c.key for c in columns}
  main = next(
    (key for key in _MAIN_ORDER[run.protocol] if key in known), every[0].key
  )
  column = next(c for c in every if c.key == main)
  sign = -1.0 if column.lower_is_better else 1.0

  def order(entry: Entry) -> tuple[int, bool, float, tuple[str, str]]:
    value = entry.values.get(main)
    score = sign * value if value is not None and _finite(value) else 0.0
    place = _STATUS_ORDER[entry.status]
    return (place, _finite(value), score, entry.key)

  names: dict[str, set[str]] = {}
  for entry in run.entries:
    for name, value in entry.groups.items():
      names.setdefault(name, set()).add(value)
  return CaseTable(
    columns=columns or (column,),
    main=main,
    entries=tuple(sorted(run.entries, key=order)),
    groups=tuple(
      name
      for name, found in sorted(names.items())
      if len(found) > 1 and name not in _HIDDEN_GROUPS
    ),
  )


def payload(
  table: CaseTable,
  *,
  pages: str,
  studies: Sequence[Study],
  ranking: Sequence[str],
  shots: Mapping[int, Sequence[tuple[str, str]]],
) -> dict[str, Any]:
  """What the page's script needs, as JSON values.

  Args:
    table: the cases.
    pages: folder of the case pages, relative to the page; the page of row i
      is `<pages>/<i>.html`.
    studies: all studies; paired ones give their intervals to comparisons.
    ranking: systems, best first.
    shots: (file, caption) of pictures by row.

  Returns:
    `systems`, `order` (their numbers, best first), `statuses`, `reasons`,
    `groups`, `columns`, `main`, `rows` of
    [system, case, status, reason or -1, [groups], [values]], `paired`,
    `shots`.
  """
  systems = sorted({entry.system for entry in table.entries})
  number = {name: i for i, name in enumerate(systems)}
  status = {name: i for i, name in enumerate(STATUSES)}
  reasons: dict[str, int] = {}
  groups: list[dict[str, int]] = [{} for _ in table.groups]
  rows = []
  for entry in table.entries:
    reason = -1
    if entry.reason:
      reason = reasons.setdefault(entry.reason, len(reasons))
    rows.append(
      [
        number[entry.system],
        entry.case_id,
        status[entry.status],
        reason,
        [
          names.setdefault(entry.groups.get(name, ""), len(names))
          for name, names in zip(table.groups, groups, strict=True)
        ],
        [_short(entry.values.get(c.key)) for c in table.columns],
      ]
    )
  return {
    "pages": pages,
    "systems": systems,
    "order": [number[name] for name in ranking if name in number],
    "statuses": list(STATUSES),
    "reasons": list(reasons),
    "groups": [
      {"name": name, "values": list(names)}
      for name, names in zip(table.groups, groups, strict=True)
    ],
    "columns": [dataclasses.asdict(c) for c in table.columns],
    "main": [c.key for c in table.columns].index(table.main)
    if table.main in [c.key for c in table.columns]
    else 0,
    "rows": rows,
    "paired": _paired(studies),
    "shots": {str(row): list(found) for row, found in shots.items()},
  }


def _paired(studies: Sequence[Study]) -> dict[str, list[dict[str, Any]]]:
  """Rows of paired studies by the name of their contrast."""
  found: dict[str, list[dict[str, Any]]] = {}
  for study in studies:
    if study.kind != "paired":
      continue
    for row in study.rows:
      kept = {k: row.get(k) for k in ("score", "point", "low", "high")}
      found.setdefault(str(row["contrast"]), []).append(kept)
  return found


def _finite(value: float | None) -> bool:
  return value is not None and math.isfinite(value)


def _short(value: float | None) -> float | None:
  if value is None or not math.isfinite(value):
    return None
  return float(f"{value:.6g}")
