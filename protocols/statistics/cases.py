# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""From steps to cases: the table that is resampled.

All systems must be scored on the same cases and steps, since every comparison
is paired. Where they are not, the study is refused, unless it asks for the
intersection (`notes` then says what was left out), or an axis says that every
system is averaged over its own cases.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from kernels import bootstrap_statistics
from perception.errors import InputError
from protocols.statistics import table as tables
from protocols.statistics.config import Axis, StudyConfig
from protocols.statistics.table import StepTable


@dataclasses.dataclass(frozen=True)
class CaseTable:
  """Case values of every system on every axis.

  Attributes:
    source_name: where the numbers come from, for error texts.
    axes: [a] the axes.
    systems: [s] names.
    cases: [c] case ids.
    groups: by column (`scene`, `source`, `subtype`, `protocol`), [c] texts.
    values: [a, s, c] float64; NaN where the axis masks the case.
    weights: [a, s, c] float64; what a case adds to the denominator: 1, or
      the case's denominator for a ratio; 0 where masked.
    notes: what was left out, in one line each.
  """

  source_name: str
  axes: tuple[Axis, ...]
  systems: tuple[str, ...]
  cases: tuple[str, ...]
  groups: Mapping[str, np.ndarray]
  values: np.ndarray
  weights: np.ndarray
  notes: tuple[str, ...] = ()

  @property
  def masks(self) -> np.ndarray:
    """[a, c] bool: cases that an axis scores.

    The same for all systems, or the union where each has its own cases.
    """
    own = np.array([axis.missing == "own_cases" for axis in self.axes])
    scored = np.isfinite(self.values)
    return np.where(own[:, None], scored.any(axis=1), scored.all(axis=1))

  def axis_number(self, name: str) -> int:
    """Index of an axis by name."""
    return [axis.name for axis in self.axes].index(name)

  def keep_cases(self, keep: np.ndarray) -> CaseTable:
    """The table with some of its cases. keep: [c] bool."""
    return dataclasses.replace(
      self,
      cases=tuple(np.array(self.cases, object)[keep]),
      groups={name: column[keep] for name, column in self.groups.items()},
      values=self.values[:, :, keep],
      weights=self.weights[:, :, keep],
    )

  def keep_systems(self, names: Sequence[str]) -> CaseTable:
    """The table with some of its systems, in the order given."""
    number = {name: i for i, name in enumerate(self.systems)}
    unknown = [name for name in names if name not in number]
    if unknown:
      raise InputError(
        self.source_name,
        "systems",
        found=f"no system {unknown[0]!r}",
        expected=f"systems among {tables.describe(self.systems, limit=20)}",
      )
    rows = [number[name] for name in names]
    return dataclasses.replace(
      self,
      systems=tuple(names),
      values=self.values[:, rows],
      weights=self.weights[:, rows],
    )


def from_steps(steps: StepTable, study: StudyConfig) -> CaseTable:
  """Applies systems, protocols, masks and step rules of a study.

  Args:
    steps: the pivoted table.
    study: supplies axes, systems, protocols and `intersect`.

  Returns:
    The case table.

  Raises:
    InputError: for unknown names, or systems with different cases or steps.
  """
  steps, notes = _common_steps(_select(steps, study), study)
  values, weights = [], []
  for axis in study.axes:
    number, weight = _axis_values(steps, axis)
    values.append(number)
    weights.append(weight)
  result = CaseTable(
    source_name=steps.source_name,
    axes=study.axes,
    systems=steps.systems,
    cases=steps.cases,
    groups=steps.groups,
    values=np.stack(values),
    weights=np.stack(weights),
    notes=tuple(notes),
  )
  for axis, mask, scored in zip(
    study.axes, result.masks, np.isfinite(result.values), strict=True
  ):
    without = [
      name
      for name, some in zip(
        steps.systems, (scored & mask).any(axis=1), strict=True
      )
      if not some
    ]
    if without:
      raise InputError(
        steps.source_name,
        f"axis {axis.name}",
        found=f"no scored case of {tables.describe(without)}",
        expected="at least one case of every system",
        hint='Set "leave_out_unscored": true to leave such axes out.',
      )
  return result


def _select(steps: StepTable, study: StudyConfig) -> StepTable:
  """Keeps the systems and protocols that the study names."""
  systems = study.systems or steps.systems
  number = {name: i for i, name in enumerate(steps.systems)}
  for name in systems:
    if name not in number:
      raise InputError(
        steps.source_name,
        "systems",
        found=f"no system {name!r}",
        expected=f"systems among {tables.describe(steps.systems, limit=20)}",
      )
  for axis in study.axes:
    wanted = (*axis.metrics, *((axis.denominator,) * bool(axis.denominator)))
    for metric in wanted:
      if metric not in steps.values:
        raise InputError(
          steps.source_name,
          f"axis {axis.name}",
          found=f"no metric {metric!r}",
          expected=f"metrics among {tables.describe(steps.values, limit=20)}",
        )
  rows = [number[name] for name in systems]
  used = {
    metric
    for axis in study.axes
    for metric in (*axis.metrics, axis.denominator)
  }
  steps = dataclasses.replace(
    steps,
    systems=tuple(systems),
    values={k: v[rows] for k, v in steps.values.items() if k in used},
    present={k: v[rows] for k, v in steps.present.items() if k in used},
  )
  if study.protocols:
    keep = np.isin(steps.groups["protocol"], study.protocols)
    missing = set(study.protocols) - set(steps.groups["protocol"])
    if missing:
      raise InputError(
        steps.source_name,
        "protocols",
        found=f"no case of {tables.describe(sorted(missing))}",
        expected="cases of every protocol that the study names",
      )
    steps = keep_steps(steps, keep[steps.case_of_step])
  return steps


def _common_steps(
  steps: StepTable, study: StudyConfig
) -> tuple[StepTable, list[str]]:
  """Refuses or intersects systems that were scored on different steps."""
  common = np.ones(steps.case_of_step.shape, bool)
  paired = {
    metric
    for axis in study.axes
    if axis.missing == "refuse"
    for metric in (*axis.metrics, axis.denominator)
  }
  for metric, values in steps.values.items():
    if metric not in paired:
      continue
    present = steps.present[metric]
    # A row that is absent for all systems belongs to another metric's steps.
    absent = ~present.all(axis=0) & present.any(axis=0)
    scored = np.isfinite(values)
    partly = scored.any(axis=0) & ~scored.all(axis=0)
    differs = absent | partly
    if differs.any() and not study.intersect:
      raise _difference(steps, metric, differs)
    common &= ~differs
  notes = []
  if not common.all():
    # A case leaves as a whole: a case of two steps out of three is another
    # case, and would not be comparable with the rest of its protocol.
    lost = np.unique(steps.case_of_step[~common])
    notes.append(
      f"{len(lost)} of {len(steps.cases)} cases left out, because not every"
      " system was scored on all of their steps"
    )
    steps = keep_steps(steps, ~np.isin(steps.case_of_step, lost))
  return steps, notes


def _difference(
  steps: StepTable, metric: str, differs: np.ndarray
) -> InputError:
  n = int(np.argmax(differs))
  scored = np.isfinite(steps.values[metric][:, n])
  has = steps.systems[int(np.argmax(scored))]
  lacks = steps.systems[int(np.argmin(scored))]
  return InputError(
    steps.source_name,
    f"metric {metric}",
    found=(
      f"{int(differs.sum())} steps that only some systems have, for example"
      f" case {steps.cases[steps.case_of_step[n]]} step {steps.step[n]}:"
      f" {has} has it, {lacks} does not"
    ),
    expected="the same cases and steps for every system",
    hint='Set "intersect": true to use the common cases.',
  )


def keep_steps(steps: StepTable, keep: np.ndarray) -> StepTable:
  """Drops steps, and the cases that lose all of theirs."""
  if not keep.any():
    raise InputError(
      steps.source_name,
      "cases",
      found="none that all systems share",
      expected="at least one",
    )
  kept, case_of_step = np.unique(steps.case_of_step[keep], return_inverse=True)
  return dataclasses.replace(
    steps,
    cases=tuple(steps.cases[i] for i in kept),
    groups={name: column[kept] for name, column in steps.groups.items()},
    case_of_step=case_of_step.astype(np.int32),
    step=steps.step[keep],
    values={k: v[:, keep] for k, v in steps.values.items()},
    present={k: v[:, keep] for k, v in steps.present.items()},
  )


def _axis_values(steps: StepTable, axis: Axis) -> tuple[np.ndarray, np.ndarray]:
  """[s, c] case values (NaN where masked) and denominators of one axis."""
  parts = [_case_values(steps, m, axis.worst_weight) for m in axis.metrics]
  values = np.mean([value for value, _ in parts], axis=0)
  scored = np.all([count > 0 for _, count in parts], axis=0)
  if axis.statistic != "ratio":
    return np.where(scored, values, np.nan), scored.astype(np.float64)
  # A ratio divides sums over steps, not means of means.
  below, count = _case_values(steps, axis.denominator, 0.0)
  above = np.mean([value * number for value, number in parts], axis=0)
  scored &= count > 0
  return np.where(scored, above, np.nan), np.where(scored, below * count, 0.0)


def _case_values(
  steps: StepTable, metric: str, worst_weight: float
) -> tuple[np.ndarray, np.ndarray]:
  values = steps.values[metric]
  with jax.enable_x64(True):
    rule = jax.vmap(
      lambda v, ok: bootstrap_statistics.case_scores(
        v,
        ok,
        jnp.asarray(steps.case_of_step),
        num_cases=len(steps.cases),
        worst_weight=worst_weight,
      )
    )
    found = rule(jnp.asarray(values), jnp.asarray(np.isfinite(values)))
    return np.asarray(found.value), np.asarray(found.weight)
