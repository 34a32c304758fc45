# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""From PDI records to a leaderboard (specification section 8).

Per system, over all clips and per category: mean, median and population
standard deviation of PDI, means and medians of its components, outlier rate,
MathPass, percentile bootstrap intervals of mean and median, and the
GT-anchored score. Lower PDI is better; a higher GT-anchored score is better.
Only `ok` records count, in the order of their case ids.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from protocols.common import totals
from protocols.common.records import OK, Record
from protocols.pdi.constants import PdiConstants
from protocols.pdi.index import combine
from protocols.pdi.normalise import COMPONENTS, Anchor, clip_score
from protocols.statistics.intervals import percentile_interval

ALL = "all"
INTERVAL_KEYS = ("mean", "median")

# Columns of `scores.csv`, in order.
COLUMNS = (
  "system",
  "category",
  "expected",
  "scored",
  "pdi_mean",
  "pdi_mean_low",
  "pdi_mean_high",
  "pdi_median",
  "pdi_median_low",
  "pdi_median_high",
  "pdi_std",
  "scale_mean",
  "traj_mean",
  "rigid_mean",
  "scale_median",
  "traj_median",
  "rigid_median",
  "outlier_rate",
  "math_pass_rate",
  "math_audited",
  "score_mean",
  "partial",
  "comparable_to_published",
  "refused",
)


def pdi_index(
  components: Mapping[str, float | None], constants: PdiConstants
) -> float | None:
  """Weighted sum of the three residuals (section 6); lower is better.

  Args:
    components: `scale`, `traj`, `rigid`.
    constants: supplies the weights.

  Returns:
    PDI, or None if a component is missing.
  """
  values = [components.get(name) for name in COMPONENTS]
  present = [value for value in values if value is not None]
  if len(present) < len(values):
    return None
  return combine(present, constants.weights)


def summarise(
  records: Sequence[Record],
  constants: PdiConstants,
  *,
  anchors: Mapping[str, Anchor] | None,
) -> dict[str, float | int | None]:
  """Statistics of one group of clips of one system (section 8.1).

  Args:
    records: records in any order; those that are not `ok` are left out.
    constants: outlier bound, resamples, seed, MathPass denominator.
    anchors: real-clip statistics for the GT-anchored score, or None.

  Returns:
    Statistics by column name; None where nothing supports a value.
  """
  rows = sorted((r for r in records if r.status == OK), key=lambda r: r.key)
  pdi = totals.sorted_values(rows, "pdi")
  result: dict[str, float | int | None] = {
    "scored": len(rows),
    "pdi_mean": totals.mean(pdi),
    "pdi_median": float(np.median(pdi)) if pdi.size else None,
    "pdi_std": totals.population_std(pdi),
    "outlier_rate": totals.mean(pdi > constants.outlier_pdi),
  }
  for statistic in INTERVAL_KEYS:
    low, high = percentile_interval(
      pdi,
      statistic=statistic,
      level=constants.interval_level,
      replicates=constants.bootstrap_replicates,
      seed=constants.bootstrap_seed,
    )
    result[f"pdi_{statistic}_low"] = low
    result[f"pdi_{statistic}_high"] = high
  for name in COMPONENTS:
    values = totals.sorted_values(rows, name)
    result[f"{name}_mean"] = totals.mean(values)
    result[f"{name}_median"] = float(np.median(values)) if values.size else None
  result |= _math_pass(rows, constants)
  result["score_mean"] = _mean_score(rows, constants, anchors)
  return result


def _math_pass(
  rows: Sequence[Record], constants: PdiConstants
) -> dict[str, float | int | None]:
  """Share of clips whose reconstruction passed (sections 7, 8.1)."""
  verdicts = [row.values.get("math_pass") for row in rows]
  audited = [value for value in verdicts if value is not None]
  # Section 8.1: the published rate divides by the audited clips; the
  # recommended one by all clips, with the unaudited counted beside it.
  base = len(rows) if constants.math_pass_over_all else len(audited)
  rate = sum(audited) / base if base else None
  return {"math_pass_rate": rate, "math_audited": len(audited)}


def _mean_score(
  rows: Sequence[Record],
  constants: PdiConstants,
  anchors: Mapping[str, Anchor] | None,
) -> float | None:
  if not anchors or not rows:
    return None
  scores = [clip_score(row.values, anchors, constants) for row in rows]
  present = [score for score in scores if score is not None]
  return totals.mean(present) if len(present) == len(scores) else None


def leaderboard(
  expected: Mapping[str, Mapping[str, str]],
  records: Iterable[Record],
  constants: PdiConstants,
  *,
  anchors: Mapping[str, Anchor] | None,
  allow_partial: bool,
  source: str,
) -> dict[str, Any]:
  """All totals of a run.

  Args:
    expected: per system, the category of each case id of the manifest.
    records: records in any order.
    constants: constants of the variant.
    anchors: real-clip statistics, or None.
    allow_partial: show totals although cases have no score.
    source: run folder, for texts.

  Returns:
    `systems`: by system, `coverage`, `refused` (reason or empty), `partial`,
    `comparable_to_published`, and `groups` by category with `all` first
    (empty when refused); `ranking`: systems by mean PDI; `table`: rows of
    `scores.csv`.
  """
  by_system: dict[str, list[Record]] = {name: [] for name in sorted(expected)}
  for record in records:
    if record.case_id in expected.get(record.system, {}):
      by_system[record.system].append(record)
  systems = {
    name: _system_totals(
      name, expected[name], rows, constants, anchors, allow_partial, source
    )
    for name, rows in by_system.items()
  }
  ranked = sorted(
    (entry["groups"][ALL]["pdi_mean"], name)
    for name, entry in systems.items()
    if entry["groups"]
  )
  return {
    "systems": systems,
    "ranking": [name for _, name in ranked],
    "table": [row for n, e in systems.items() for row in _table_rows(n, e)],
  }


def _system_totals(
  name: str,
  cases: Mapping[str, str],
  rows: Sequence[Record],
  constants: PdiConstants,
  anchors: Mapping[str, Anchor] | None,
  allow_partial: bool,
  source: str,
) -> dict[str, Any]:
  part = totals.coverage(cases, rows)
  refused = totals.refuse_partial(
    name, part, allow_partial=allow_partial, source=source
  )
  groups: dict[str, dict[str, Any]] = {}
  if not refused:
    categories = sorted({category for category in cases.values() if category})
    for group in (ALL, *categories):
      ids = {i for i, c in cases.items() if group in (ALL, c)}
      chosen = [row for row in rows if row.case_id in ids]
      groups[group] = {
        "expected": len(ids),
        **summarise(chosen, constants, anchors=anchors),
      }
  return {
    "coverage": {
      "expected": part.expected,
      "ok": part.ok,
      "degenerate": part.degenerate,
      "missing": part.missing,
      "failed": part.failed,
      "absent": part.absent,
      "text": part.describe(),
    },
    "refused": refused,
    "partial": not part.complete,
    "comparable_to_published": bool(rows)
    and all(row.comparable_to_published for row in rows),
    "groups": groups,
  }


def _table_rows(name: str, entry: Mapping[str, Any]) -> list[dict[str, Any]]:
  common = {
    "system": name,
    "partial": entry["partial"],
    "comparable_to_published": entry["comparable_to_published"],
    "refused": entry["refused"],
  }
  if not entry["groups"]:
    part = entry["coverage"]
    row = {"category": ALL, "expected": part["expected"], "scored": part["ok"]}
    return [{**common, **row}]
  return [
    {**common, "category": group, **values}
    for group, values in entry["groups"].items()
  ]
