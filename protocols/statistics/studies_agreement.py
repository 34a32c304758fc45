# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Studies of agreement: between evaluators, between axes, with people."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from kernels import ranks
from perception.errors import InputError
from protocols.statistics import human, human_panel, intervals, panels, sampling
from protocols.statistics.cases import CaseTable
from protocols.statistics.config import OVERALL, Axis, StudyConfig
from protocols.statistics.ratings import Ratings
from protocols.statistics.sampling import Runtime, Sampled
from protocols.statistics.studies_resampled import Result, need_two
from protocols.statistics.table import StepTable

_SPEARMAN_OF_EACH = jax.jit(jax.vmap(ranks.spearman))


def correlation_study(
  cases: CaseTable, study: StudyConfig, runtime: Runtime
) -> Result:
  """Rank correlation of two axes over systems, with its interval.

  This is the study of evaluator swaps (the same score by two evaluators, as
  two axes) and of cross-tier correlations. A pair of axes uses the cases that
  both score; a score made of axes keeps the cases of each. Every replicate
  has its own correlation.

  Options: `pairs` (list of [score, score]; default: all pairs of `targets`,
  or of the axes), `level`: `systems`, or `cases` for the correlation over the
  cases of one system, averaged over systems. Source: specs/egogeneval.md
  section 7.8,
  specs/orbia.md section 14.2.
  """
  axes = [axis.name for axis in cases.axes]
  names = sampling.targets(study) if "targets" in study.options else axes
  pairs = study.options.get("pairs") or [
    [a, b] for i, a in enumerate(names) for b in names[i + 1 :]
  ]
  level = study.options.get("level", "systems")
  if level not in ("systems", "cases"):
    raise InputError(
      cases.source_name,
      "options.level",
      found=level,
      expected="systems or cases",
    )
  composed: Sampled | None = None
  rows = []
  for number, pair in enumerate(pairs):
    if level == "systems" and _has_score(pair, study):
      need_two(cases)
      if composed is None:
        composed = sampling.sample(
          cases, study, runtime, label="correlation-scores"
        )
      table, sampled = cases, composed
    else:
      table = _common_cases(cases, pair)
      if level == "cases":
        row = {"first": pair[0], "second": pair[1], "cases": len(table.cases)}
        rows.append({**row, **_within_systems(table)})
        continue
      need_two(table)
      sampled = sampling.sample(
        table, study, runtime, label=f"correlation-{number}"
      )
    rows.append(
      {
        "first": pair[0],
        "second": pair[1],
        "cases": len(table.cases),
        **_across_systems(table, sampled, study, pair),
      }
    )
  return {"rows": rows, "level": level, "systems": list(cases.systems)}


def _has_score(pair: Sequence[str], study: StudyConfig) -> bool:
  """Whether one of the two is made of axes rather than an axis."""
  formed = {score.name for score in study.scores}
  formed |= {OVERALL} if study.overall else set()
  return not formed.isdisjoint(pair)


def _across_systems(
  table: CaseTable, sampled: Sampled, study: StudyConfig, pair: Sequence[str]
) -> dict[str, Any]:
  """Correlation of two scores over systems, and its interval."""
  signs = {a.name: -1.0 if a.lower_is_better else 1.0 for a in table.axes}
  point, drawn = [], []
  for name in pair:
    panel = sampling.panel(sampled.axes, name, study)
    sign = signs.get(name, 1.0)
    point.append(sign * panel(sampled.point))
    drawn.append(sign * sampled.values(panel))
  rho, tau = panels.correlations(drawn[0], drawn[1])
  found = human.rank_agreement(point[0], point[1])
  return {
    "spearman": found.spearman,
    "kendall_tau_b": found.kendall_tau_b,
    "exact_p_spearman": found.exact_p_spearman,
    **_range("spearman", rho, study.level),
    **_range("kendall_tau_b", tau, study.level),
  }


def _common_cases(cases: CaseTable, pair: Sequence[str]) -> CaseTable:
  names = [axis.name for axis in cases.axes]
  if len(pair) != 2 or not set(pair) <= set(names):
    raise InputError(
      cases.source_name,
      "options.pairs",
      found=list(pair),
      expected=f"two axes among {', '.join(names)}",
    )
  rows = [names.index(name) for name in pair]
  table = dataclasses.replace(
    cases,
    axes=tuple(cases.axes[a] for a in rows),
    values=cases.values[rows],
    weights=cases.weights[rows],
  )
  both = np.asarray(np.all(table.masks, axis=0))
  if not both.any():
    raise InputError(
      cases.source_name,
      "options.pairs",
      found=f"no case that both {pair[0]} and {pair[1]} score",
      expected="common cases",
    )
  return table.keep_cases(both)


def _range(name: str, values: np.ndarray, level: float) -> dict[str, float]:
  some = values[np.isfinite(values)]
  if not some.size:
    return {}
  low, high = intervals.interval(some, np.nan, method="percentile", level=level)
  return {f"{name}_low": float(low), f"{name}_high": float(high)}


def _within_systems(table: CaseTable) -> dict[str, Any]:
  """Spearman over the cases of each system, and the mean over systems."""
  signs = [-1.0 if a.lower_is_better else 1.0 for a in table.axes]
  with jax.enable_x64(True):
    both = np.isfinite(table.values).all(axis=0)
    first, second = (
      jnp.asarray(np.where(both, sign * values, 0.0))
      for sign, values in zip(signs, table.values, strict=True)
    )
    rho = _SPEARMAN_OF_EACH(first, second, jnp.asarray(both, first.dtype))
    each = np.where(rho.defined, rho.value, np.nan)
  return {
    "spearman": float(np.nanmean(each)) if np.any(rho.defined) else None,
    "systems_with_correlation": int(np.sum(rho.defined)),
    "by_system": dict(zip(table.systems, each.tolist(), strict=True)),
  }


def human_study(
  steps: StepTable, study: StudyConfig, ratings: Ratings
) -> Result:
  """Agreement of every axis with people.

  Options: `form`: `utilities` (EgoGenEval: ranks per step), `preference`
  (Orbia: pairwise credit within rankings) or `expert_means` (PDI-Bench: mean
  rating per system; `rating_lower_is_better`, default true). The first group
  of raters is compared with the scores; a second group gives the ICC and the
  correlation across groups.
  """
  form = study.options.get("form", "utilities")
  readers = {
    "utilities": _utility_rows,
    "preference": _preference_rows,
    "expert_means": _expert_rows,
  }
  if form not in readers:
    raise InputError(
      ratings.source_name,
      "options.form",
      found=form,
      expected=f"one of {', '.join(readers)}",
    )
  steps = _systems_of(steps, study, ratings)
  rows = []
  for axis in study.axes:
    if axis.name in ratings.axes:
      rows.append(
        {"score": axis.name, **readers[form](steps, axis, study, ratings)}
      )
  if not rows:
    raise InputError(
      ratings.source_name,
      "axis",
      found=f"ratings of {', '.join(ratings.axes)}",
      expected=f"ratings of {', '.join(a.name for a in study.axes)}",
    )
  return {"rows": rows, "form": form, "systems": list(steps.systems)}


def _systems_of(
  steps: StepTable, study: StudyConfig, ratings: Ratings
) -> StepTable:
  """The table with the rated systems only."""
  chosen = study.systems or ratings.systems
  missing = [name for name in chosen if name not in steps.systems]
  if missing:
    raise InputError(
      ratings.source_name,
      "system",
      found=missing[0],
      expected=f"systems of {steps.source_name}",
    )
  rows = [steps.systems.index(name) for name in chosen]
  return dataclasses.replace(
    steps,
    systems=tuple(chosen),
    values={name: v[rows] for name, v in steps.values.items()},
    present={name: v[rows] for name, v in steps.present.items()},
  )


def _agreement(
  axis: Axis, automatic: np.ndarray, people: np.ndarray
) -> dict[str, Any]:
  sign = -1.0 if axis.lower_is_better else 1.0
  found = human.rank_agreement(sign * automatic, people)
  return {
    "automatic": automatic.tolist(),
    "human": people.tolist(),
    **dataclasses.asdict(found),
  }


def _utility_rows(
  steps: StepTable, axis: Axis, study: StudyConfig, ratings: Ratings
) -> dict[str, Any]:
  rank = ratings.ranks(axis.name, steps, group=ratings.groups[0])
  mean = np.nanmean(human.utilities(rank), axis=0)
  rated = human_panel.add_human(steps, axis, mean.T)
  rated = human_panel.keep_rated(rated, axis)
  pair = human_panel.system_level(rated, axis, study)
  items = human_panel.item_level(rated, axis)
  drawn = human_panel.bootstrap_items(
    rated,
    items,
    seed=study.seed,
    replicates=study.replicates,
    dtype=study.dtype,
  )
  low, high = intervals.interval(
    drawn[np.isfinite(drawn)], np.nan, method="percentile", level=study.level
  )
  result = {
    **_agreement(axis, *pair),
    "item_spearman": items.mean_spearman,
    "item_spearman_low": float(low),
    "item_spearman_high": float(high),
    "items": int(np.isfinite(items.spearman).sum()),
    "items_undefined": items.undefined,
    "pairwise_agreement": items.pooled_agreement,
    "pairs": float(items.pairs.sum()),
  }
  if len(ratings.groups) > 1:
    result["reannotation"] = _second_group(steps, axis, ratings)
  return result


def _second_group(
  steps: StepTable, axis: Axis, ratings: Ratings
) -> dict[str, Any]:
  first, second = (
    human.utilities(ratings.ranks(axis.name, steps, group=group))
    for group in ratings.groups[:2]
  )
  shared = np.isfinite(first).all(axis=(0, 2)) & np.isfinite(second).all(
    axis=(0, 2)
  )
  found = human.icc(second[:, shared])
  means = [group[:, shared].mean(axis=(0, 1)) for group in (first, second)]
  return {
    "steps": int(shared.sum()),
    "icc_a1": float(found.a1) if found.defined else None,
    "icc_ak": float(found.ak) if found.defined else None,
    "raters": len(second),
    "cross_group_spearman": human.rank_agreement(*means).spearman,
  }


def _preference_rows(
  steps: StepTable, axis: Axis, study: StudyConfig, ratings: Ratings
) -> dict[str, Any]:
  rank = ratings.ranks(axis.name, steps, group=ratings.groups[0])
  rated = np.isfinite(rank).any(axis=0)
  scores = human_panel.step_scores(steps, axis).T
  # Automatic scores are averaged over the videos that people saw.
  seen = np.where(rated & np.isfinite(scores), scores, np.nan)
  return {
    **_agreement(axis, np.nanmean(seen, axis=0), human.preference(rank)),
    "items": int(rated.any(axis=1).sum()),
  }


def _expert_rows(
  steps: StepTable, axis: Axis, study: StudyConfig, ratings: Ratings
) -> dict[str, Any]:
  scores = ratings.scores(axis.name, steps, group=ratings.groups[0])
  mean = np.nanmean(scores, axis=(0, 1))
  spread = np.nanstd(scores, axis=(0, 1))
  lower = study.options.get("rating_lower_is_better", True)
  automatic = np.nanmean(human_panel.step_scores(steps, axis), axis=1)
  found = _agreement(axis, automatic, -mean if lower else mean)
  return {**found, "human": mean.tolist(), "human_sd": spread.tolist()}
