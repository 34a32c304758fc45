# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Human ratings: JSON lines with one rating each.

Fields: `rater`, `system`, `case`, `axis` (the score that was judged), and one
of `rank` (1 = best, ties averaged) or `score`; optionally `step` (1) and
`group` (a second group of raters is a reannotation).
"""

from __future__ import annotations

import dataclasses
import math
import pathlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from perception.errors import InputError
from protocols.common import manifest
from protocols.statistics.table import StepTable

_TEXTS = ("rater", "system", "case", "axis", "group")
_FIELDS = (*_TEXTS, "step", "rank", "score")


@dataclasses.dataclass(frozen=True)
class Rating:
  """One rating.

  Attributes:
    rater, system, case, axis, group, step: what was rated by whom.
    value: the rank or the score.
    is_rank: which of the two.
  """

  rater: str
  system: str
  case: str
  axis: str
  group: str
  step: int
  value: float
  is_rank: bool


@dataclasses.dataclass(frozen=True)
class Ratings:
  """All ratings of a file."""

  source_name: str
  rows: tuple[Rating, ...]

  @property
  def axes(self) -> list[str]:
    """Rated axes, sorted."""
    return sorted({row.axis for row in self.rows})

  @property
  def systems(self) -> tuple[str, ...]:
    """Rated systems, sorted."""
    return tuple(sorted({row.system for row in self.rows}))

  @property
  def groups(self) -> list[str]:
    """Groups of raters, the largest number of ratings first."""
    names = sorted({row.group for row in self.rows})
    return sorted(names, key=lambda n: -sum(r.group == n for r in self.rows))

  def ranks(self, axis: str, steps: StepTable, *, group: str) -> np.ndarray:
    """[raters, steps, systems] ranks; NaN where a rater did not rank."""
    return self._array(axis, steps, group, is_rank=True)

  def scores(self, axis: str, steps: StepTable, *, group: str) -> np.ndarray:
    """[raters, steps, systems] scores; NaN where a rater did not rate."""
    return self._array(axis, steps, group, is_rank=False)

  def _array(
    self, axis: str, steps: StepTable, group: str, *, is_rank: bool
  ) -> np.ndarray:
    rows = [
      r
      for r in self.rows
      if r.axis == axis
      and r.group == group
      and r.is_rank == is_rank
      and r.system in steps.systems
    ]
    if not rows:
      raise InputError(
        self.source_name,
        f"axis {axis}, group {group!r}",
        found="no rating",
        expected="ranks" if is_rank else "scores",
      )
    raters = sorted({row.rater for row in rows})
    place = {
      (steps.cases[c], int(n)): i
      for i, (c, n) in enumerate(
        zip(steps.case_of_step, steps.step, strict=True)
      )
    }
    found = np.full((len(raters), len(place), len(steps.systems)), np.nan)
    for row in rows:
      if (row.case, row.step) not in place:
        raise InputError(
          self.source_name,
          f"case {row.case}",
          found=f"a rating of step {row.step}",
          expected=f"cases and steps of {steps.source_name}",
        )
      where = (
        raters.index(row.rater),
        place[row.case, row.step],
        steps.systems.index(row.system),
      )
      if not math.isnan(found[where]):
        raise InputError(
          self.source_name,
          f"case {row.case}, step {row.step}",
          found=f"two ratings of {row.system} by {row.rater}",
          expected="one",
        )
      found[where] = row.value
    return found


def read(path: pathlib.Path) -> Ratings:
  """Reads a ratings file.

  Raises:
    InputError: naming the line and field that is wrong.
  """
  rows = [_parse(path, field, row) for field, row in manifest.read_jsonl(path)]
  if not rows:
    raise InputError(path, "rows", found="none", expected="at least one")
  return Ratings(str(path), tuple(rows))


def _parse(path: pathlib.Path, field: str, row: Mapping[str, Any]) -> Rating:
  unknown = sorted(set(row) - set(_FIELDS))
  if unknown:
    raise InputError(
      path,
      f"{field}: {unknown[0]}",
      found="a field that no version knows",
      expected=f"fields among {', '.join(_FIELDS)}",
    )
  for name in _TEXTS:
    value = row.get(name, "")
    if not isinstance(value, str) or not (value or name == "group"):
      raise InputError(
        path, f"{field}: {name}", found=repr(value), expected="a text"
      )
  kinds = [name for name in ("rank", "score") if name in row]
  value = row[kinds[0]] if len(kinds) == 1 else None
  if (
    not isinstance(value, int | float)
    or isinstance(value, bool)
    or not math.isfinite(value)
  ):
    raise InputError(
      path,
      f"{field}: rank or score",
      found=repr(value),
      expected="exactly one of them, a finite number",
    )
  step = row.get("step", 1)
  if not isinstance(step, int) or isinstance(step, bool):
    raise InputError(
      path, f"{field}: step", found=repr(step), expected="a whole number"
    )
  texts = {name: row.get(name, "") for name in _TEXTS}
  return Rating(
    **texts, step=step, value=float(value), is_rank=kinds == ["rank"]
  )
