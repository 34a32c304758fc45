# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Study of temporal aggregation: does the step rule decide the finding?"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from perception.errors import InputError
from protocols.statistics import cases as case_tables
from protocols.statistics import plan, sampling
from protocols.statistics.cases import CaseTable
from protocols.statistics.config import Axis, Resampling, StudyConfig
from protocols.statistics.sampling import Runtime
from protocols.statistics.studies_resampled import Result
from protocols.statistics.table import StepTable


def temporal_study(
  steps: StepTable, study: StudyConfig, runtime: Runtime
) -> Result:
  """Swaps of the step rule, and the gap between the drops of two axes.

  The drop of an axis is its score in the first protocol minus that in the
  second, averaged over systems; the gap is the second axis' drop minus the
  first's. Options: `axes` ([first, second]; default: the first two),
  `protocols` (default ["atomic", "chain"]), `rules` (pairs of worst weights;
  default: mean and mean-plus-worst on each axis), `grid` (equal weights on
  both axes). Source: specs/egogeneval.md section 7.6.
  """
  if len(steps.step) == len(steps.cases):
    raise InputError(
      steps.source_name,
      "step",
      found="one step for every case",
      expected="a table of steps: the rule joins the steps of a case",
      hint="Give --evidence, or a --table with one row per step.",
    )
  names = study.options.get("axes", [axis.name for axis in study.axes[:2]])
  start, end = study.options.get("protocols", ("atomic", "chain"))
  rules = study.options.get(
    "rules", [[0.0, 0.5], [0.0, 0.0], [0.5, 0.5], [0.5, 0.0]]
  )
  pair = _axes_named(study, names, steps.source_name)
  rows = []
  for number, rule in enumerate(rules):
    sampled = sampling.sample(
      _with_rule(steps, study, pair, rule),
      study,
      runtime,
      label=f"temporal-{number}",
      keep_protocols=True,
    )
    where = [1 + sampled.protocols.index(name) for name in (start, end)]

    point = drops(sampled.point, where)
    found = sampled.estimate(functools.partial(_mean_gap, where=where))
    rows.append(
      {
        "worst_weights": list(rule),
        "first_drop": float(point[0].mean()),
        "second_drop": float(point[1].mean()),
        **{f"gap_{key}": value for key, value in found.items()},
        "second_larger": int(np.sum(point[1] > point[0])),
        "systems": len(sampled.systems),
      }
    )
  grid = study.options.get("grid") or [k / 20 for k in range(21)]
  return {
    "rows": rows,
    "axes": [axis.name for axis in pair],
    "sweep": _sweep(steps, study, pair, grid, (start, end)),
  }


def drops(scores: np.ndarray, where: Sequence[int]) -> np.ndarray:
  """[..., a, s] score at one place of the second last axis minus another."""
  return np.asarray(
    scores[..., where[0], :].astype(np.float64) - scores[..., where[1], :]
  )


def _mean_gap(scores: np.ndarray, *, where: Sequence[int]) -> np.ndarray:
  drop = drops(scores, where)
  return np.asarray(np.mean(drop[..., 1, :] - drop[..., 0, :], axis=-1))


def _sweep(
  steps: StepTable,
  study: StudyConfig,
  pair: Sequence[Axis],
  grid: Sequence[float],
  protocols: tuple[str, str],
) -> dict[str, Any]:
  """Gap over equal worst weights, and where it changes sign."""
  gaps = []
  for weight in grid:
    table = _with_rule(steps, study, pair, [weight, weight])
    planned = plan.build(table, Resampling(), keep_protocols=True)
    where = [1 + planned.protocols.index(name) for name in protocols]
    gaps.append(float(_mean_gap(plan.point(planned), where=where)))
  crossings = [
    a + (b - a) * x / (x - y)
    for a, b, x, y in zip(grid, grid[1:], gaps, gaps[1:], strict=False)
    if x != y and (x <= 0 < y or y <= 0 < x)
  ]
  return {"grid": list(grid), "gaps": gaps, "sign_changes": crossings}


def _with_rule(
  steps: StepTable,
  study: StudyConfig,
  pair: Sequence[Axis],
  weights: Sequence[float],
) -> CaseTable:
  axes = tuple(
    dataclasses.replace(axis, worst_weight=float(weight))
    for axis, weight in zip(pair, weights, strict=True)
  )
  return case_tables.from_steps(steps, dataclasses.replace(study, axes=axes))


def _axes_named(
  study: StudyConfig, names: Sequence[str], source: str
) -> list[Axis]:
  by_name = {axis.name: axis for axis in study.axes}
  if len(names) != 2 or not set(names) <= set(by_name):
    raise InputError(
      source,
      "options.axes",
      found=list(names),
      expected=f"two axes among {', '.join(by_name)}",
    )
  return [by_name[name] for name in names]
