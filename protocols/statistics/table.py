# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""The plain long table that every study reads: one row per number.

Columns: `system`, `case`, `scene`, `source`, `subtype`, `protocol`, `step`,
`metric`, `value`. Only system, case, metric and value are required; the
others default to an empty text (step: 1), and the scene to the case, so that
a case is its own cluster. A `value` of null says that the step is not scored
on this metric (masked). A NaN or infinite value is refused: nobody can tell
whether it was meant as masked.

Files are JSON lines (`.jsonl`) or Parquet (`.parquet`, needs pyarrow).
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import pathlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from perception.errors import InputError
from protocols.common import manifest

TEXT_COLUMNS = ("system", "case", "scene", "source", "subtype", "protocol")
CASE_COLUMNS = ("scene", "source", "subtype", "protocol")
COLUMNS = (*TEXT_COLUMNS, "step", "metric", "value")
_REQUIRED = ("system", "case", "metric")


@dataclasses.dataclass(frozen=True)
class Row:
  """One number of the table.

  Attributes:
    system, case, metric: what was measured.
    value: the number; None where the step is masked.
    scene: cluster of cases within a source; empty means the case itself.
    source, subtype, protocol: groups of the case.
    step: number of the step within the case.
  """

  system: str
  case: str
  metric: str
  value: float | None
  scene: str = ""
  source: str = ""
  subtype: str = ""
  protocol: str = ""
  step: int = 1


@dataclasses.dataclass(frozen=True)
class StepTable:
  """The long table, pivoted: systems by steps for each metric.

  Attributes:
    source_name: where the numbers come from, for error texts.
    systems: [s] names.
    cases: [c] case ids, sorted.
    groups: by column of `CASE_COLUMNS`, [c] texts.
    case_of_step: [n] int32 case number of each step, non-decreasing.
    step: [n] step numbers.
    values: by metric, [s, n] float64; NaN where masked or absent.
    present: by metric, [s, n] bool; whether the table has a row.
  """

  source_name: str
  systems: tuple[str, ...]
  cases: tuple[str, ...]
  groups: Mapping[str, np.ndarray]
  case_of_step: np.ndarray
  step: np.ndarray
  values: Mapping[str, np.ndarray]
  present: Mapping[str, np.ndarray]


def read(paths: Sequence[pathlib.Path]) -> StepTable:
  """Reads a long table.

  Args:
    paths: `.jsonl` or `.parquet` files, taken together.

  Returns:
    The pivoted table.

  Raises:
    InputError: naming the row and column that is wrong.
  """
  rows = (row for path in paths for row in _rows(path))
  return pivot(rows, source_name=", ".join(map(str, paths)))


def _rows(path: pathlib.Path) -> Iterator[Row]:
  if path.suffix == ".parquet":
    rows = _parquet_rows(path)
  elif path.suffix == ".jsonl":
    rows = manifest.read_jsonl(path)
  else:
    raise InputError(
      path, "suffix", found=path.suffix, expected=".jsonl or .parquet"
    )
  for field, content in rows:
    yield _parse(content, path, field)


def _parquet_rows(
  path: pathlib.Path,
) -> Iterator[tuple[str, dict[str, Any]]]:
  try:
    from pyarrow import parquet
  except ImportError as error:
    raise InputError(
      path,
      "format",
      found="a Parquet file, but pyarrow is not installed",
      expected="pyarrow, or the same table as .jsonl",
      hint="Run: pip install 'worldgauge[parquet]'.",
    ) from error
  try:
    content = parquet.read_table(path)
  except (OSError, ValueError) as error:
    raise InputError(
      path, "file", found=error, expected="a readable Parquet file"
    ) from error
  columns = {name: content[name].to_pylist() for name in content.column_names}
  for number in range(content.num_rows):
    yield (
      f"row {number + 1}",
      {name: column[number] for name, column in columns.items()},
    )


def _parse(content: Mapping[str, Any], path: pathlib.Path, field: str) -> Row:
  unknown = sorted(set(content) - set(COLUMNS))
  if unknown:
    raise InputError(
      path,
      f"{field}: {unknown[0]}",
      found="a column that no version knows",
      expected=f"columns among {', '.join(COLUMNS)}",
    )
  for name in (*TEXT_COLUMNS, "metric"):
    value = content.get(name, "")
    if not isinstance(value, str) or (name in _REQUIRED and not value):
      raise InputError(
        path, f"{field}: {name}", found=repr(value), expected="a text"
      )
  step = content.get("step", 1)
  if not isinstance(step, int) or isinstance(step, bool):
    raise InputError(
      path, f"{field}: step", found=repr(step), expected="a whole number"
    )
  if "value" not in content:
    raise InputError(
      path, f"{field}: value", found="nothing", expected="a number or null"
    )
  value = content["value"]
  is_number = isinstance(value, int | float) and not isinstance(value, bool)
  if value is not None and not (is_number and math.isfinite(value)):
    raise InputError(
      path,
      f"{field}: value",
      found=repr(value),
      expected="a finite number, or null for a masked step",
      hint="Failed cases are left out or null, never NaN.",
    )
  return Row(**{**content, "value": None if value is None else float(value)})


def pivot(rows: Iterable[Row], *, source_name: str) -> StepTable:
  """Sorts rows into arrays.

  Args:
    rows: rows in any order.
    source_name: where they come from, for error texts.

  Returns:
    The table; its content does not depend on the order of the rows.

  Raises:
    InputError: for no rows, a number given twice, or a case whose group
      columns differ between rows.
  """
  found: dict[tuple[str, str, int, str], float | None] = {}
  groups: dict[str, tuple[str, ...]] = {}
  for row in rows:
    key = (row.system, row.case, row.step, row.metric)
    if key in found:
      raise InputError(
        source_name,
        f"system {row.system}, case {row.case}",
        found=f"metric {row.metric} of step {row.step} twice",
        expected="each number once",
        hint="Remove the duplicate.",
      )
    found[key] = row.value
    own = (row.scene or row.case, row.source, row.subtype, row.protocol)
    if groups.setdefault(row.case, own) != own:
      raise InputError(
        source_name,
        f"case {row.case}",
        found=f"{own} and {groups[row.case]}",
        expected=f"one set of {', '.join(CASE_COLUMNS)} for each case",
      )
  if not found:
    raise InputError(source_name, "rows", found="none", expected="at least one")
  return _arrays(found, groups, source_name)


def _arrays(
  found: Mapping[tuple[str, str, int, str], float | None],
  groups: Mapping[str, tuple[str, ...]],
  source_name: str,
) -> StepTable:
  systems = sorted({key[0] for key in found})
  steps = sorted({(key[1], key[2]) for key in found})
  metrics = sorted({key[3] for key in found})
  cases = sorted(groups)
  system_number = {name: i for i, name in enumerate(systems)}
  step_number = {name: i for i, name in enumerate(steps)}
  case_number = {name: i for i, name in enumerate(cases)}
  shape = (len(systems), len(steps))
  values = {name: np.full(shape, np.nan) for name in metrics}
  present = {name: np.zeros(shape, bool) for name in metrics}
  for (system, case, step, metric), value in found.items():
    place = system_number[system], step_number[case, step]
    present[metric][place] = True
    if value is not None:
      values[metric][place] = value
  return StepTable(
    source_name=source_name,
    systems=tuple(systems),
    cases=tuple(cases),
    groups={
      column: np.array([groups[case][i] for case in cases])
      for i, column in enumerate(CASE_COLUMNS)
    },
    case_of_step=np.array([case_number[case] for case, _ in steps], np.int32),
    step=np.array([step for _, step in steps], np.int32),
    values=values,
    present=present,
  )


def describe(names: Iterable[str], *, limit: int = 3) -> str:
  """The first few names, for error texts."""
  first = list(itertools.islice(names, limit + 1))
  return ", ".join(first[:limit]) + (", ..." if len(first) > limit else "")
