# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Tables over records: leaderboard, groups, correlations between tiers.

Only records with status `ok` enter. Rows of the leaderboard are sorted by
group, then Overall descending, then model (specification, 13.8). Grouped
tables apply the same tier trees to a part of the cases; T6 and Overall need
both horizons, so in a table of one horizon T6 is the mean of its videos and
Overall is missing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import stats

from perception.errors import InputError
from protocols.common import totals
from protocols.common.records import DEGENERATE, OK, Record
from protocols.orbia import tiers
from protocols.orbia.constants import TIERS, Constants
from protocols.orbia.score import case_scores

COLUMNS = (
  "model",
  "group",
  "cases",
  *TIERS,
  "Overall",
  *(f"{tier}_rank" for tier in TIERS),
  "Overall_rank",
)
GROUPINGS = ("template", "source", "horizon")
GROUP_COLUMNS = ("model", "group", "grouping", "name", "cases", *TIERS)
_PUBLIC_VIDEO = ("SpatialVID", "Sekai", "MiraData")


def leaderboard(
  expected: Mapping[str, Sequence[str]],
  records: Sequence[Record],
  *,
  allow_partial: bool,
  source: str,
  c: Constants,
) -> dict[str, Any]:
  """The table of models with ranks, coverage and components.

  Args:
    expected: case ids of the data set by model.
    records: all records.
    allow_partial: show totals over what is there.
    source: run folder, for texts.
    c: constants.

  Returns:
    `rows` (dictionaries by `COLUMNS`), `components`, `systems` (coverage and
    refusals).
  """
  by_model = {
    model: [r for r in records if r.system == model] for model in expected
  }
  found: dict[str, tiers.ModelScores] = {}
  systems: dict[str, Any] = {}
  groups: dict[str, str] = {}
  for model, rows in sorted(by_model.items()):
    coverage = totals.coverage(expected[model], rows)
    refused = totals.refuse_partial(
      model, coverage, allow_partial=allow_partial, source=source
    )
    scored = [r for r in rows if r.status == OK]
    without = _degenerate_tiers(scored)
    if without and not refused and not allow_partial:
      refused = str(
        InputError(
          source,
          f"totals of {model}",
          found=f"videos without a meaningful tier: {without}",
          expected="every tier of every video measured",
          hint="Pass --allow_partial for totals over what is there.",
        )
      )
    systems[model] = {
      "coverage": coverage.describe(),
      "degenerate_tiers": without,
      "partial": not coverage.complete or bool(without),
      "refused": refused,
      "comparable_to_published": bool(scored)
      and all(r.comparable_to_published for r in scored),
    }
    if not refused and scored:
      groups[model] = scored[0].groups["group"]
      found[model] = scores_of(scored, c=c)
  overall = {model: scores.overall for model, scores in found.items()}
  columns: dict[str, dict[str, float | None]] = {
    tier: {m: s.tiers[tier] for m, s in found.items()} for tier in TIERS
  }
  columns["Overall"] = overall
  ranks = {k: tiers.group_ranks(v, groups) for k, v in columns.items()}
  rows_out = [
    {
      "model": model,
      "group": groups[model],
      "cases": found[model].num_cases,
      **{name: column[model] for name, column in columns.items()},
      **{f"{name}_rank": rank[model] for name, rank in ranks.items()},
    }
    for model in tiers.row_order(overall, groups)
  ]
  components = [_components(model, found[model]) for model in sorted(found)]
  return {"rows": rows_out, "components": components, "systems": systems}


def _degenerate_tiers(records: Sequence[Record]) -> dict[str, int]:
  """Videos by tier whose measurement has no meaning; see `score`."""
  counts = {
    tier: sum(
      r.details.get("tiers", {}).get(tier, {}).get("status") == DEGENERATE
      for r in records
    )
    for tier in TIERS
  }
  return {tier: count for tier, count in counts.items() if count}


def scores_of(records: Sequence[Record], *, c: Constants) -> tiers.ModelScores:
  """Scores of one model from its `ok` records."""
  ordered = sorted(records, key=lambda record: record.key)
  return tiers.model_scores(
    [case_scores(record) for record in ordered],
    profile=ordered[0].groups["control_profile"],
    c=c,
  )


def group_table(
  records: Sequence[Record], *, c: Constants
) -> list[dict[str, Any]]:
  """Tier scores by template, source, source group and horizon.

  Args:
    records: records of any models; only `ok` ones count.
    c: constants.

  Returns:
    Rows by `GROUP_COLUMNS`.
  """
  rows = []
  scored = [record for record in records if record.status == OK]
  for model in sorted({record.system for record in scored}):
    mine = [record for record in scored if record.system == model]
    for grouping in (*GROUPINGS, "source_group"):
      names = sorted({_group_name(record, grouping) for record in mine})
      for name in names:
        part = [r for r in mine if _group_name(r, grouping) == name]
        scores = scores_of(part, c=c)
        values = dict(scores.tiers)
        if grouping == "horizon":
          values["T6"] = scores.temporal[name]
        rows.append(
          {
            "model": model,
            "group": part[0].groups["group"],
            "grouping": grouping,
            "name": name,
            "cases": len(part),
            **values,
          }
        )
  return rows


def tier_correlations(
  records: Sequence[Record], *, c: Constants
) -> list[dict[str, Any]]:
  """Spearman correlations between tiers (14.2).

  Args:
    records: records of any models; only `ok` ones count.
    c: constants.

  Returns:
    One row for each group, horizon and pair of tiers: `model_level` across
    models, `within_model` averaged over models, and the numbers behind them.
    A correlation needs three values and is None otherwise.
  """
  scored = [record for record in records if record.status == OK]
  rows = []
  for group in sorted({record.groups["group"] for record in scored}):
    for horizon in ("short", "long"):
      part = [
        r
        for r in scored
        if r.groups["group"] == group and r.groups["horizon"] == horizon
      ]
      models = sorted({record.system for record in part})
      if not models:
        continue
      tables = {m: [r for r in part if r.system == m] for m in models}
      means = {m: _horizon_tiers(tables[m], horizon, c) for m in models}
      for k, first in enumerate(TIERS):
        for second in TIERS[k + 1 :]:
          level = _spearman(
            [(means[m][first], means[m][second]) for m in models]
          )
          within = [
            rho
            for m in models
            if (
              rho := _spearman(
                [(r.values.get(first), r.values.get(second)) for r in tables[m]]
              )
            )
            is not None
          ]
          rows.append(
            {
              "group": group,
              "horizon": horizon,
              "first": first,
              "second": second,
              "model_level": level,
              "models": len(models),
              "within_model": totals.mean(within),
              "models_within": len(within),
            }
          )
  return rows


def human_preference(
  rankings: Sequence[Mapping[str, float]],
) -> dict[str, float]:
  """Preference of each model from rankings with ties (14.1).

  Args:
    rankings: rank by model, 1 = best, equal ranks = tie; one mapping for each
      rater and case.

  Returns:
    Mean over a model's comparisons of 1 (better), 0.5 (tie), 0 (worse).
  """
  outcomes: dict[str, list[float]] = {}
  for ranking in rankings:
    for model, rank in ranking.items():
      for rival, other in ranking.items():
        if rival != model:
          outcome = 0.5 if rank == other else float(rank < other)
          outcomes.setdefault(model, []).append(outcome)
  return {
    model: float(np.mean(values)) for model, values in sorted(outcomes.items())
  }


def human_alignment(
  preference: Mapping[str, float], automatic: Mapping[str, float | None]
) -> float | None:
  """Spearman correlation over models of preference and automatic score."""
  return _spearman([(preference[m], automatic.get(m)) for m in preference])


def _components(model: str, scores: tiers.ModelScores) -> dict[str, Any]:
  return {
    "model": model,
    "control": scores.control,
    "quality": scores.quality,
    "input_preservation": scores.preservation,
    "generated_persistence": scores.persistence,
    "temporal": scores.temporal,
    "normalized_leaves": scores.leaf_means,
    "valid_leaf_counts": scores.leaf_counts,
  }


def _horizon_tiers(
  records: Sequence[Record], horizon: str, c: Constants
) -> dict[str, float | None]:
  scores = scores_of(records, c=c)
  return {**scores.tiers, "T6": scores.temporal[horizon]}


def _group_name(record: Record, grouping: str) -> str:
  if grouping != "source_group":
    return record.groups[grouping]
  name = record.groups["source"]
  return "public video" if name in _PUBLIC_VIDEO else name


def _spearman(
  pairs: Sequence[tuple[float | None, float | None]],
) -> float | None:
  """Rank correlation of complete pairs; None where it has no meaning."""
  complete = np.array(
    [(a, b) for a, b in pairs if a is not None and b is not None], np.float64
  )
  if len(complete) < 3 or np.any(np.ptp(complete, axis=0) == 0):
    return None
  return float(stats.spearmanr(complete[:, 0], complete[:, 1]).statistic)
