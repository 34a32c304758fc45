# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""One study from its input to its files: what `bin.bootstrap` calls."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import jax
from absl import logging

from perception.errors import InputError
from protocols.statistics import adapters, config, studies, table
from protocols.statistics.config import StudyConfig
from protocols.statistics.sampling import Runtime
from protocols.statistics.table import StepTable

_SHOWN_ROWS = 60


@dataclasses.dataclass(frozen=True)
class RunConfig:
  """Everything that `bin.bootstrap` is told.

  Attributes:
    study: path of a study, or the name of one of ours.
    tables, records, evidence: input files or folders; exactly one kind.
    variant: variant of the evidence's scores.
    ratings: human ratings, or None.
    output: folder for the results.
    overrides: fields of the study to replace (`replicates`, `seed`, ...).
    runtime: batch, checkpoints, progress.
  """

  study: str
  output: pathlib.Path
  tables: tuple[pathlib.Path, ...] = ()
  records: tuple[pathlib.Path, ...] = ()
  evidence: tuple[pathlib.Path, ...] = ()
  variant: str = "paper"
  ratings: pathlib.Path | None = None
  overrides: Mapping[str, Any] = dataclasses.field(default_factory=dict)
  runtime: Runtime = dataclasses.field(default_factory=Runtime)


def run(run_config: RunConfig) -> str:
  """Runs a study and writes its files.

  With several processes, every one computes, and the first writes.

  Args:
    run_config: the whole configuration.

  Returns:
    A readable summary.

  Raises:
    InputError: for input that the study cannot use.
  """
  study = config.load(run_config.study)
  if run_config.overrides:
    study = dataclasses.replace(study, **run_config.overrides)
    config.check(study, source="flags")
  steps = read_input(run_config, study)
  logging.info(
    "%s: %d systems, %d cases, %d steps",
    study.study,
    len(steps.systems),
    len(steps.cases),
    len(steps.step),
  )
  result = studies.run(
    study, steps, run_config.runtime, ratings_path=run_config.ratings
  )
  if jax.process_index() == 0:
    studies.write(run_config.output, result)
  return text(study, result)


def read_input(run_config: RunConfig, study: StudyConfig) -> StepTable:
  """Reads the input of a run: what the study needs of it.

  Raises:
    InputError: unless exactly one kind of input is given.
  """
  kinds = {
    "--table": run_config.tables,
    "--records": run_config.records,
    "--evidence": run_config.evidence,
  }
  given = [name for name, paths in kinds.items() if paths]
  if len(given) != 1:
    raise InputError(
      "input",
      ", ".join(kinds),
      found=" and ".join(given) or "none of them",
      expected="exactly one kind of input",
    )
  if run_config.tables:
    return table.read(run_config.tables)
  if run_config.records:
    return adapters.from_records(run_config.records)
  return adapters.from_evidence(
    run_config.evidence, variant=run_config.variant, wanted=study.metrics
  )


def text(study: StudyConfig, result: Mapping[str, Any]) -> str:
  """The rows as aligned columns, with the notes."""
  rows: Sequence[Mapping[str, Any]] = result["rows"]
  columns = [
    name
    for name in dict.fromkeys(name for row in rows for name in row)
    if not any(isinstance(row.get(name), list | dict) for row in rows)
  ]
  cells = [columns] + [
    [_cell(row.get(name)) for name in columns] for row in rows[:_SHOWN_ROWS]
  ]
  widths = [max(len(line[i]) for line in cells) for i in range(len(columns))]
  lines = [f"study {study.study}, seed {study.seed}"]
  lines += [f"note: {note}" for note in result.get("notes", [])]
  left_out = result.get("replicates_without_a_protocol")
  if left_out:
    lines.append(
      f"note: {left_out} replicates left out: they lacked a protocol"
    )
  lines += [
    "  ".join(
      cell.ljust(width) for cell, width in zip(line, widths, strict=True)
    ).rstrip()
    for line in cells
  ]
  if len(rows) > _SHOWN_ROWS:
    lines.append(f"... and {len(rows) - _SHOWN_ROWS} more rows in study.csv")
  return "\n".join(lines)


def _cell(value: Any) -> str:
  if value is None:
    return "-"
  return f"{value:.4f}" if isinstance(value, float) else str(value)
