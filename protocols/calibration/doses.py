# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Dose-response: what a score says while a defect grows.

The caller supplies the score; this module renders each scene at each strength
(without colour, which no PDI component reads) and averages over scenes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from protocols.calibration import clips
from protocols.calibration.defects import DEFECTS, inject
from protocols.calibration.scenes import Scene

Score = Callable[[clips.Recording], Mapping[str, float | None]]


@dataclasses.dataclass(frozen=True)
class Dose:
  """One row of the table.

  Attributes:
    defect: key of `DEFECTS`.
    strength: dose.
    expected: component that should rise.
    values: mean over scenes of what the score returned, by name; None where
      no scene had a value.
    counts: number of scenes with a value, by name.
  """

  defect: str
  strength: float
  expected: str
  values: Mapping[str, float | None]
  counts: Mapping[str, int]


def run(
  score: Score,
  scenes: Sequence[Scene],
  *,
  doses: Mapping[str, Sequence[float]] | None = None,
  progress: Callable[[str], None] | None = None,
) -> list[Dose]:
  """Scores every defect at every strength.

  Args:
    score: recording without colour -> named numbers; None for no value.
    scenes: pristine scenes, at least one.
    doses: strengths by defect; None takes every defect's own.
    progress: told a line before each dose.

  Returns:
    Rows, defect by defect in order of strength. Strength 0 is scored once,
    since it is the same recording for all.

  Raises:
    ValueError: no scene, or an unknown defect.
  """
  if not scenes:
    raise ValueError("scenes: found none, expected at least one")
  if doses is None:
    doses = {name: defect.doses for name, defect in DEFECTS.items()}
  pristine: list[Mapping[str, float | None]] | None = None
  rows = []
  for name, strengths in doses.items():
    for strength in sorted(strengths):
      if progress is not None:
        progress(f"{name} {strength:g}")
      if strength == 0.0 and pristine is not None:
        found = pristine
      else:
        found = list(_scores(score, scenes, name, strength))
      if strength == 0.0:
        pristine = found
      rows.append(_row(name, strength, found))
  return rows


def _scores(
  score: Score, scenes: Sequence[Scene], name: str, strength: float
) -> Iterator[Mapping[str, float | None]]:
  for scene in scenes:
    yield score(
      clips.record(inject(scene, name, strength=strength), color=False)
    )


def _row(
  name: str, strength: float, found: Sequence[Mapping[str, float | None]]
) -> Dose:
  names = list(dict.fromkeys(key for entry in found for key in entry))
  values: dict[str, float | None] = {}
  counts: dict[str, int] = {}
  for key in names:
    numbers = [entry[key] for entry in found if entry.get(key) is not None]
    counts[key] = len(numbers)
    values[key] = (
      float(np.mean(np.asarray(numbers, np.float64))) if numbers else None
    )
  return Dose(name, strength, DEFECTS[name].component, values, counts)
