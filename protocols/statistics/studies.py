# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""All kinds of studies by name, and the one call that runs any of them."""

from __future__ import annotations

import dataclasses
import pathlib
from typing import Any

from perception.errors import InputError
from protocols.common import outputs
from protocols.statistics import (
  cases,
  ratings,
  scope,
  streams,
  studies_agreement,
  studies_panels,
  studies_resampled,
  studies_temporal,
)
from protocols.statistics.config import StudyConfig
from protocols.statistics.sampling import Runtime
from protocols.statistics.table import StepTable

KINDS = (
  "intervals",
  "paired",
  "ranking",
  "power",
  "sources",
  "weights",
  "subsampling",
  "temporal",
  "correlation",
  "human",
)
# Those that read replicates of cases or scenes.
RESAMPLED = ("intervals", "paired", "ranking", "power", "correlation")


def run(
  study: StudyConfig,
  steps: StepTable,
  runtime: Runtime,
  *,
  ratings_path: pathlib.Path | None,
) -> dict[str, Any]:
  """Runs a study.

  Args:
    study: what to measure.
    steps: the long table.
    runtime: how to run; changes no number.
    ratings_path: human ratings, for `human` studies.

  Returns:
    `rows` (one object per line of the result table) and whatever else the
    kind of study reports; `notes` says what was left out.

  Raises:
    InputError: for an unknown kind, or input that the study cannot use.
  """
  if study.study not in KINDS:
    raise InputError(
      "study", "study", found=study.study, expected=f"one of {KINDS}"
    )
  if not study.axes:
    raise InputError(
      "study", "axes", found="none", expected="at least one score to form"
    )
  notes: list[str] = []
  if study.pool_systems:
    steps = scope.pooled(steps)
  if study.leave_out_unscored:
    study, notes = scope.scored_part(steps, study)
  if study.study == "temporal":
    result = studies_temporal.temporal_study(steps, study, runtime)
  elif study.study == "human":
    if ratings_path is None:
      raise InputError(
        "--ratings", "value", found="nothing", expected="a file of ratings"
      )
    result = studies_agreement.human_study(
      steps, study, ratings.read(ratings_path)
    )
  else:
    table = cases.from_steps(steps, study)
    notes += table.notes
    if study.study in RESAMPLED and study.options.get("level") != "cases":
      notes += streams.lonely_strata(table, study.resampling)
    result = _on_cases(study, steps, table, runtime)
  return {
    "study": dataclasses.asdict(study),
    "notes": notes,
    **result,
  }


def _on_cases(
  study: StudyConfig,
  steps: StepTable,
  table: cases.CaseTable,
  runtime: Runtime,
) -> dict[str, Any]:
  if study.study == "weights":
    return studies_panels.weights_study(steps, table, study)
  if study.study == "sources":
    return studies_panels.sources_study(table, study)
  if study.study == "subsampling":
    return studies_panels.subsampling_study(table, study)
  resampled = {
    "intervals": studies_resampled.intervals_study,
    "paired": studies_resampled.paired_study,
    "ranking": studies_resampled.ranking_study,
    "power": studies_resampled.power_study,
    "correlation": studies_agreement.correlation_study,
  }
  return resampled[study.study](table, study, runtime)


def write(folder: pathlib.Path, result: dict[str, Any]) -> None:
  """Writes `study.json`, `study.csv` (the rows) and `run.json`."""
  outputs.write_json(folder / "study.json", result)
  rows = result["rows"]
  columns = list(dict.fromkeys(name for row in rows for name in row))
  outputs.write_csv(folder / "study.csv", columns, rows)
  outputs.write_json(
    folder / "run.json",
    {"study": result["study"], "environment": outputs.environment()},
  )
