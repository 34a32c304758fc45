# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""What a study makes of its table before cases are formed.

Systems may be taken as one, and a study may leave out what some system has no
case for: then it says so, and never puts another score in the place of one
that was left out.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from perception.errors import InputError
from protocols.statistics.config import OVERALL, Axis, StudyConfig
from protocols.statistics.table import StepTable


def pooled(steps: StepTable) -> StepTable:
  """All systems as one, whose cases hold the steps of all.

  Args:
    steps: the pivoted table.

  Returns:
    A table of the single system `all systems`.
  """
  number = len(steps.systems)
  order = np.argsort(np.tile(steps.case_of_step, number), kind="stable")

  def joined(values: np.ndarray) -> np.ndarray:
    return np.asarray(values.reshape(1, -1)[:, order])

  return dataclasses.replace(
    steps,
    systems=("all systems",),
    case_of_step=np.tile(steps.case_of_step, number)[order],
    step=np.tile(steps.step, number)[order],
    values={k: joined(v) for k, v in steps.values.items()},
    present={k: joined(v) for k, v in steps.present.items()},
  )


def scored_part(
  steps: StepTable, study: StudyConfig
) -> tuple[StudyConfig, list[str]]:
  """The study without what some system has no case for.

  Args:
    steps: the pivoted table.
    study: the study, with `leave_out_unscored`.

  Returns:
    The study without axes of which a system has no value, without scores that
    need them, and a note that names both.

  Raises:
    InputError: if nothing is left.
  """
  number = {name: i for i, name in enumerate(steps.systems)}
  rows = [number[name] for name in study.systems or steps.systems]
  inside = np.ones(steps.case_of_step.shape, bool)
  if study.protocols:
    used = np.isin(steps.groups["protocol"], study.protocols)
    inside = used[steps.case_of_step]

  def scored(axis: Axis) -> bool:
    for metric in (
      *axis.metrics,
      *((axis.denominator,) * bool(axis.denominator)),
    ):
      if metric not in steps.values:
        return False
      values = steps.values[metric][rows][:, inside]
      some = np.isfinite(values)
      if metric == axis.denominator:
        some &= values > 0
      if not some.any(axis=1).all():
        return False
    return True

  axes = tuple(axis for axis in study.axes if scored(axis))
  kept = {axis.name for axis in axes}
  scores = []
  for score in study.scores:
    parts = tuple(part for part in score.of if part in kept)
    if parts and (score.needs == "any" or parts == score.of):
      scores.append(dataclasses.replace(score, of=parts))
      kept.add(score.name)
  lost = [name for name in study.names if name not in kept]
  if not axes:
    raise InputError(
      steps.source_name,
      "axes",
      found="none that every system has a case for",
      expected="at least one",
    )
  whole = set(study.overall) <= kept
  options = dict(study.options)
  if not whole:
    # Never another score in the place of the one that was meant.
    options.setdefault("target", OVERALL)
  if "targets" in options:
    options["targets"] = [
      name
      for name in options["targets"]
      if name in kept or (name == OVERALL and whole)
    ]
  notes = []
  if lost:
    lost += [OVERALL] * (bool(study.overall) and not whole)
    notes.append(
      "left out, because some system has no case for them: " + ", ".join(lost)
    )
  return dataclasses.replace(
    study,
    axes=axes,
    scores=tuple(scores),
    overall=study.overall if whole else {},
    options=options,
  ), notes
