# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Leaderboards of all protocols in one form.

Numbers are copied from `scores.json` and from studies; none is computed here.
A missing number is None and is shown as a dash with its reason, never as 0.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from protocols.common.records import OK, STATUSES
from protocols.report.sources import Run, Study

Interval = tuple[float, float]


@dataclasses.dataclass(frozen=True)
class Column:
  """A score.

  Attributes:
    key: name in the row.
    label: heading.
    about: what it is, in one sentence.
    lower_is_better: direction.
    digits: decimals shown.
  """

  key: str
  label: str
  about: str
  lower_is_better: bool = False
  digits: int = 3


@dataclasses.dataclass(frozen=True)
class Row:
  """One system of a leaderboard.

  Attributes:
    system: its name.
    values: score by column key.
    intervals: (low, high) by column key.
    rank: 1-based place; None without totals.
    coverage: how much the scores rest on, in words.
    scored, expected: cases (or steps) behind `coverage`; None if unknown.
    statuses: number of records by status.
    group: class of systems that are ranked together; may be empty.
    partial: whether cases without a score are left out.
    refused: why there are no totals; empty otherwise.
    comparable: whether it can be compared with published tables.
    tie_group: number of the local-tie group; None without a ranking study.
    p_flip: how often resampling swaps it with the next system.
    reference: a published row, not of this run.
  """

  system: str
  values: Mapping[str, float | None]
  intervals: Mapping[str, Interval]
  rank: int | None
  coverage: str
  scored: int | None = None
  expected: int | None = None
  statuses: Mapping[str, int] = dataclasses.field(default_factory=dict)
  group: str = ""
  partial: bool = False
  refused: str = ""
  comparable: bool = False
  tie_group: int | None = None
  p_flip: float | None = None
  reference: bool = False


@dataclasses.dataclass(frozen=True)
class Board:
  """A leaderboard.

  Attributes:
    title: name of the benchmark.
    question: what it asks.
    columns: scores, the main one first.
    rows: systems in order of rank, those without totals last.
    interval_note: what the intervals are; empty without any.
    tie_note: what the tie groups are; empty without a ranking study.
    reference_note: where published rows come from; empty without any.
  """

  title: str
  question: str
  columns: tuple[Column, ...]
  rows: tuple[Row, ...]
  interval_note: str = ""
  tie_note: str = ""
  reference_note: str = ""

  @property
  def main(self) -> Column:
    """The score that ranks."""
    return self.columns[0]


_LOWER = True
PDI_COLUMNS = (
  Column("pdi_mean", "PDI", "Mean perspective distortion index.", _LOWER),
  Column("pdi_median", "Median", "Median of PDI over clips.", _LOWER),
  Column("scale_mean", "Scale-depth", "Mean 1/Z scale residual.", _LOWER),
  Column("traj_mean", "3D motion", "Mean trajectory residual.", _LOWER),
  Column("rigid_mean", "Rigidity", "Mean rigidity residual.", _LOWER),
  Column("outlier_rate", "Outliers", "Share of clips with PDI > 1.", _LOWER),
  Column("math_pass_rate", "MathPass", "Share with a sound reconstruction."),
  Column("score_mean", "Score", "Score of 100 for the real clips.", digits=1),
)
EGO_COLUMNS = (
  Column("overall", "Overall", "Mean of CMG and SSP."),
  Column("cmg", "CMG", "Camera Motion Grounding."),
  *(
    Column(f"cmg_{p}", f"CMG {p}", f"Camera Motion Grounding, {p} cases.")
    for p in ("atomic", "chain", "cycle")
  ),
  Column("dir", "Direction", "Share of steps in the right direction."),
  Column("gated", "Gated", "Magnitude accuracy given the direction."),
  Column("ssp", "SSP", "Scene State Preservation."),
  *(
    Column(f"ssp_{p}", f"SSP {p}", f"Scene State Preservation, {p} cases.")
    for p in ("atomic", "chain", "cycle")
  ),
)
_TIERS = {
  "T1": "Control alignment",
  "T2": "Visual quality",
  "T3": "Input preservation",
  "T4": "Persistence of generated content",
  "T5": "3D self-consistency",
  "T6": "Temporal stability",
}
ORBIA_COLUMNS = (
  Column("Overall", "Overall", "Weighted mean of the six tiers.", digits=2),
  *(
    Column(key, f"{key} {name}", f"Tier {key[1]}: {name.lower()}.", digits=2)
    for key, name in _TIERS.items()
  ),
)
_BOARDS: Mapping[str, tuple[str, str, tuple[Column, ...]]] = {
  "pdi": (
    "PDI-Bench",
    "Does one moving object in a clip obey perspective, inertia and rigidity?",
    PDI_COLUMNS,
  ),
  "egogeneval": (
    "EgoGenEval",
    "Does a generator execute a worded camera motion and keep the scene?",
    EGO_COLUMNS,
  ),
  "orbia": (
    "Orbia",
    "Does a minute of generated exploration form one persistent 3D world?",
    ORBIA_COLUMNS,
  ),
}


def build(
  run: Run, references: Sequence[Row] = (), *, reference_note: str = ""
) -> Board:
  """The leaderboard of a run.

  Args:
    run: an evaluation run.
    references: published rows to show below.
    reference_note: where they come from.

  Returns:
    The board; systems that have records but no totals are in it.
  """
  title, question, columns = _BOARDS[run.protocol]
  readers = {"pdi": _pdi_row, "egogeneval": _ego_row, "orbia": _orbia_row}
  statuses = _statuses(run)
  interval_note = ""
  rows = []
  for system in run.systems:
    entry = run.scores.get("systems", {}).get(system)
    if entry is None:
      row = _without_totals(system, statuses.get(system, {}))
    else:
      row = readers[run.protocol](system, entry, run)
    row = dataclasses.replace(row, statuses=statuses.get(system, {}))
    found = _study_intervals(run.study("intervals"), system, columns)
    if found:
      row = dataclasses.replace(row, intervals={**row.intervals, **found})
    rows.append(row)
  if any(row.intervals for row in rows):
    interval_note = _interval_note(run)
  ranked, tie_note = _with_ties(rows, run.study("ranking"))
  return Board(
    title=title,
    question=question,
    columns=_used(columns, [*ranked, *references]),
    rows=(*_ranked(ranked, columns[0]), *references),
    interval_note=interval_note,
    tie_note=tie_note,
    reference_note=reference_note,
  )


def _used(columns: Sequence[Column], rows: Sequence[Row]) -> tuple[Column, ...]:
  """The main column and those in which any row has a value."""
  main, *rest = columns
  return (
    main,
    *(
      c for c in rest if any(row.values.get(c.key) is not None for row in rows)
    ),
  )


def _ranked(rows: Sequence[Row], main: Column) -> list[Row]:
  """Best first within each group of systems; those without a score last."""
  sign = 1.0 if main.lower_is_better else -1.0

  def order(row: Row) -> tuple[str, bool, float, str]:
    value = row.values.get(main.key)
    score = 0.0 if value is None else sign * value
    return (row.group, value is None, score, row.system)

  places: dict[str, int] = {}
  result = []
  for row in sorted(rows, key=order):
    rank = None
    if row.values.get(main.key) is not None:
      rank = places[row.group] = places.get(row.group, 0) + 1
    result.append(dataclasses.replace(row, rank=rank))
  return result


def _statuses(run: Run) -> dict[str, dict[str, int]]:
  found: dict[str, dict[str, int]] = {}
  for entry in run.entries:
    counts = found.setdefault(entry.system, dict.fromkeys(STATUSES, 0))
    counts[entry.status] += 1
  return found


def _without_totals(system: str, statuses: Mapping[str, int]) -> Row:
  total = sum(statuses.values())
  scored = statuses.get(OK, 0)
  return Row(
    system=system,
    values={},
    intervals={},
    rank=None,
    coverage=f"{scored} of {total} records scored; the run is not finished",
    scored=scored,
    expected=None,
    partial=True,
    refused="no totals were written for this system",
  )


def _pdi_row(system: str, entry: Mapping[str, Any], run: Run) -> Row:
  del run
  group = entry["groups"].get("all", {})
  part = entry["coverage"]
  intervals = {}
  for key in ("pdi_mean", "pdi_median"):
    low, high = group.get(f"{key}_low"), group.get(f"{key}_high")
    if low is not None and high is not None:
      intervals[key] = (low, high)
  return Row(
    system=system,
    values={c.key: group.get(c.key) for c in PDI_COLUMNS},
    intervals=intervals,
    rank=None,
    coverage=part["text"],
    scored=part["ok"],
    expected=part["expected"],
    **_state(entry),
  )


def _ego_row(system: str, entry: Mapping[str, Any], run: Run) -> Row:
  del run
  part = entry["coverage"]
  values = {"overall": entry["overall"]}
  for axis in ("cmg", "ssp"):
    found = entry[axis] or {}
    values |= {c.key: found[c.key] for c in EGO_COLUMNS if c.key in found}
  lost = [
    f"{part[name]} {name}"
    for name in ("degenerate", "missing", "failed")
    if part[name]
  ]
  tail = f" ({', '.join(lost)})" if lost else ""
  return Row(
    system=system,
    values=values,
    intervals={},
    rank=None,
    coverage=f"{part['scored']} of {part['expected']} steps scored{tail}",
    scored=part["scored"],
    expected=part["expected"],
    **_state(entry),
  )


def _orbia_row(system: str, entry: Mapping[str, Any], run: Run) -> Row:
  row = next((r for r in run.scores["rows"] if r["model"] == system), None)
  numbers = [int(word) for word in entry["coverage"].split() if word.isdigit()]
  known = len(numbers) >= 2
  return Row(
    system=system,
    values={c.key: (row or {}).get(c.key) for c in ORBIA_COLUMNS},
    intervals={},
    rank=None,
    coverage=entry["coverage"],
    scored=numbers[0] if known else None,
    expected=numbers[1] if known else None,
    group=(row or {}).get("group", ""),
    **_state(entry),
  )


def _state(entry: Mapping[str, Any]) -> dict[str, Any]:
  return {
    "partial": bool(entry["partial"]),
    "refused": entry["refused"],
    "comparable": bool(entry["comparable_to_published"]),
  }


def _study_intervals(
  study: Study | None, system: str, columns: Sequence[Column]
) -> dict[str, Interval]:
  """Intervals of an intervals study that match a column."""
  if study is None:
    return {}
  keys = {c.key for c in columns}
  found = {}
  for row in study.rows:
    if row.get("system") != system:
      continue
    protocol = row.get("protocol")
    name = f"{row['score']}_{protocol}" if protocol else row["score"]
    # The PDI studies call the mean over clips by the value's own name.
    key = name if name in keys else f"{name}_mean"
    if key in keys:
      found[key] = (row["low"], row["high"])
  return found


def _interval_note(run: Run) -> str:
  study = run.study("intervals")
  if study is None:
    level = run.settings.get("settings", {}).get("constants", {})
    share = level.get("interval_level", 0.95)
    return f"{share:.0%} percentile bootstrap intervals over clips"
  content = study.result
  unit = content["study"].get("resampling", {}).get("unit", "case")
  count = content.get("replicates") or content["study"].get("replicates")
  return f"bootstrap intervals: {count:,} replicates over {unit}s"


def _with_ties(
  rows: Sequence[Row], study: Study | None
) -> tuple[list[Row], str]:
  if study is None:
    return list(rows), ""
  by_system = {row["system"]: row for row in study.rows}
  level = study.result["study"].get("options", {}).get("tie_level", 0.05)
  result = []
  for row in rows:
    found = by_system.get(row.system)
    if found is not None:
      row = dataclasses.replace(
        row, tie_group=found["tie_group"], p_flip=found["p_flip"]
      )
    result.append(row)
  return result, (
    f"Local ties: neighbours that resampling swaps more often than {level:g}"
    f" share a letter (study of {study.result.get('target')})."
  )
