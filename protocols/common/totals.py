# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Totals that do not lie: coverage first, then float64 sums in sorted order.

Only records with status `ok` enter a total, and a total over less than the
whole manifest is refused unless partial totals were asked for. The order of
arrival, the number of workers and the resume point cannot change a digit:
values are taken in the order of their case ids and summed exactly.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Iterable, Sequence

import numpy as np

from perception.errors import InputError
from protocols.common.records import (
  DEGENERATE,
  FAILED,
  MISSING,
  OK,
  Record,
)


@dataclasses.dataclass(frozen=True)
class Coverage:
  """How much of a manifest a total rests on.

  Attributes:
    expected: cases in the manifest.
    ok: cases that were scored.
    degenerate, missing, failed: cases with that status.
    absent: cases without a record.
  """

  expected: int
  ok: int
  degenerate: int
  missing: int
  failed: int
  absent: int

  @property
  def complete(self) -> bool:
    """Whether every case of the manifest was scored."""
    return self.ok == self.expected

  @property
  def fraction(self) -> float | None:
    """Scored share of the manifest; None for an empty manifest."""
    return self.ok / self.expected if self.expected else None

  def describe(self) -> str:
    """For example `26 of 28 scored (1 degenerate, 1 missing)`."""
    parts = [
      f"{count} {name}"
      for name, count in (
        ("degenerate", self.degenerate),
        ("missing", self.missing),
        ("failed", self.failed),
        ("not run", self.absent),
      )
      if count
    ]
    tail = f" ({', '.join(parts)})" if parts else ""
    return f"{self.ok} of {self.expected} scored{tail}"


def coverage(
  expected_ids: Collection[str], records: Iterable[Record]
) -> Coverage:
  """Counts the statuses of one system's records.

  Args:
    expected_ids: case ids of the manifest.
    records: records of that system; others than expected are ignored.

  Returns:
    The coverage.
  """
  status = {r.case_id: r.status for r in records if r.case_id in expected_ids}
  found = list(status.values())
  return Coverage(
    expected=len(expected_ids),
    ok=found.count(OK),
    degenerate=found.count(DEGENERATE),
    missing=found.count(MISSING),
    failed=found.count(FAILED),
    absent=len(expected_ids) - len(status),
  )


def refuse_partial(
  system: str, part: Coverage, *, allow_partial: bool, source: str
) -> str:
  """Decides whether totals of a system may be shown.

  Args:
    system: system name.
    part: its coverage.
    allow_partial: whether the user asked for partial totals.
    source: run folder, for the text.

  Returns:
    An empty text if totals may be shown, otherwise the reason.
  """
  if part.complete or (allow_partial and part.ok):
    return ""
  hint = (
    "Pass --allow_partial for totals over what is there."
    if part.ok
    else "See the reasons in the records."
  )
  return str(
    InputError(
      source,
      f"totals of {system}",
      found=part.describe(),
      expected="every case of the manifest scored",
      hint=hint,
    )
  )


def sorted_values(records: Iterable[Record], name: str) -> np.ndarray:
  """A value of all `ok` records in the order of (system, case id).

  Args:
    records: records in any order.
    name: key of `Record.values`.

  Returns:
    float64 [N]. Records whose value is None are left out.
  """
  rows = sorted((r for r in records if r.status == OK), key=lambda r: r.key)
  found = [r.values.get(name) for r in rows]
  return np.array([v for v in found if v is not None], np.float64)


def mean(values: Sequence[float] | np.ndarray) -> float | None:
  """Exactly rounded mean in float64; None for no values."""
  if len(values) == 0:
    return None
  return math.fsum(values) / len(values)


def population_std(values: Sequence[float] | np.ndarray) -> float | None:
  """Standard deviation with divisor N; None for no values."""
  center = mean(values)
  if center is None:
    return None
  squares = [(value - center) ** 2 for value in values]
  return math.sqrt(math.fsum(squares) / len(squares))
