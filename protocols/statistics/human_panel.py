# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Human and automatic scores of one panel, side by side in one step table.

A human score is a further metric of the table, named `human:<axis>`. It
follows the path of its axis from step to case to protocol to macro mean, with
the same step rule, and is masked where the automatic score is masked.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from protocols.statistics import cases, engine, human, plan
from protocols.statistics.cases import CaseTable
from protocols.statistics.config import Axis, Resampling, StudyConfig
from protocols.statistics.human import ItemAgreement
from protocols.statistics.table import StepTable

PREFIX = "human:"
_RHO, _ONE = "item_spearman", "items"


def step_scores(steps: StepTable, axis: Axis) -> np.ndarray:
  """[s, n] automatic step scores of an axis: mean of its metrics."""
  return np.mean([steps.values[name] for name in axis.metrics], axis=0)


def add_human(steps: StepTable, axis: Axis, scores: np.ndarray) -> StepTable:
  """Adds human scores as a metric.

  Args:
    steps: table with the automatic scores.
    axis: the axis that they judge.
    scores: [s, n] human scores, higher is better; NaN where none.

  Returns:
    The table with the metric `human:<axis>`, masked as the axis is.
  """
  masked = np.isnan(step_scores(steps, axis))
  values = np.where(masked, np.nan, scores)
  name = PREFIX + axis.name
  return dataclasses.replace(
    steps,
    values={**steps.values, name: values},
    present={**steps.present, name: np.isfinite(values)},
  )


def human_axis(axis: Axis) -> Axis:
  """The axis of the human scores: same rules, other metric."""
  name = PREFIX + axis.name
  return dataclasses.replace(
    axis, name=name, metrics=(name,), lower_is_better=False
  )


def system_level(
  steps: StepTable, axis: Axis, study: StudyConfig
) -> tuple[np.ndarray, np.ndarray]:
  """Automatic and human scores of every system.

  Args:
    steps: table with `add_human` applied.
    axis: the axis.
    study: supplies systems, protocols and `intersect`.

  Returns:
    [s] automatic and [s] human scores. Source: specs/egogeneval.md
    section 6.6.
  """
  pair = (axis, human_axis(axis))
  table = cases.from_steps(steps, dataclasses.replace(study, axes=pair))
  found = plan.point(plan.build(table, Resampling(), keep_protocols=False))
  return found[0, 0], found[1, 0]


def item_level(steps: StepTable, axis: Axis) -> ItemAgreement:
  """Agreement within every step that both sides score.

  Args:
    steps: table with `add_human` applied.
    axis: the axis.

  Returns:
    The agreement per step; steps without a human score have no pairs and an
    undefined correlation.
  """
  sign = -1.0 if axis.lower_is_better else 1.0
  return human.item_agreement(
    sign * step_scores(steps, axis).T, steps.values[PREFIX + axis.name].T
  )


def bootstrap_items(
  steps: StepTable,
  found: ItemAgreement,
  *,
  seed: int,
  replicates: int,
  dtype: str,
) -> np.ndarray:
  """Replicates of the mean item correlation, parent cases as clusters.

  Args:
    steps: the table.
    found: item agreement of its steps.
    seed: seed of the draws.
    replicates: r.
    dtype: precision of the replicates.

  Returns:
    [r] ratio of summed correlations to their number. Source:
    specs/egogeneval.md section 6.4.
  """
  defined = np.isfinite(found.spearman)
  count = len(steps.cases)
  number = np.bincount(steps.case_of_step, defined, minlength=count)
  total = np.bincount(
    steps.case_of_step, np.where(defined, found.spearman, 0), minlength=count
  )
  some = number > 0
  table = CaseTable(
    source_name=steps.source_name,
    axes=(Axis(_RHO, (_RHO,), statistic="ratio", denominator=_ONE),),
    systems=("panel",),
    cases=steps.cases,
    groups=steps.groups,
    values=np.where(some, total, np.nan)[None, None],
    weights=number[None, None],
  )
  planned = plan.build(table, Resampling(), keep_protocols=False)
  drawn = engine.run(
    planned,
    seed=seed,
    replicates=replicates,
    dtype=dtype,
    batch=engine.DEFAULT_BATCH,
    store=None,
    advance=None,
  )
  return np.asarray(drawn[:, 0, 0, 0], np.float64)


def keep_rated(steps: StepTable, axis: Axis) -> StepTable:
  """Drops steps that people did not rate, and cases that lose all of them.

  Args:
    steps: table with `add_human` applied.
    axis: the axis.

  Returns:
    The table of the human panel.
  """
  rated = np.isfinite(steps.values[PREFIX + axis.name]).any(axis=0)
  return cases.keep_steps(steps, rated)
