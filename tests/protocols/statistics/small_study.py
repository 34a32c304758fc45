# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""A small synthetic study: rows of a long table, and brute-force oracles."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from protocols.statistics import cases, config, table
from protocols.statistics.cases import CaseTable
from protocols.statistics.config import Axis, StudyConfig
from protocols.statistics.table import Row, StepTable

PROTOCOLS = ("atomic", "chain", "cycle")
AXES = (
  Axis("cmg", ("cmg",)),
  Axis("ssp", ("f1", "spatial"), worst_weight=0.5),
)


def rows(
  systems: Sequence[str] = ("a", "b", "c"), *, seed: int = 0
) -> list[Row]:
  """Three systems, 24 cases of 1 to 3 steps, 10 scenes, two sources.

  Every fifth case is masked on SSP. A case's source follows its scene.
  """
  rng = np.random.default_rng(seed)
  found = []
  for c in range(24):
    scene = c % 10
    protocol = PROTOCOLS[c % 3]
    group = {
      "scene": f"scene{scene}",
      "source": f"source{scene % 2}",
      "subtype": f"{protocol[0]}{c % 2}",
      "protocol": protocol,
    }
    for step in range(1, 2 + c % 3):
      for s, system in enumerate(systems):
        for metric in ("cmg", "f1", "spatial"):
          value = float(np.clip(rng.normal(0.6 - 0.1 * s, 0.2), 0, 1))
          masked = metric != "cmg" and c % 5 == 0
          found.append(
            Row(
              system,
              f"case{c:02d}",
              metric,
              None if masked else value,
              step=step,
              **group,
            )
          )
  return found


def steps(**options: int) -> StepTable:
  """The pivoted rows."""
  return table.pivot(rows(**options), source_name="small")


def study(kind: str = "ranking", **fields: object) -> StudyConfig:
  """A study of both axes and their mean."""
  base = StudyConfig(
    study=kind,
    axes=AXES,
    overall={"cmg": 0.5, "ssp": 0.5},
    replicates=600,
    dtype="float64",
    resampling=config.Resampling("case", "subtype", "shared"),
  )
  return dataclasses.replace(base, **fields)


def case_table(**fields: object) -> CaseTable:
  """The case table of the small study."""
  return cases.from_steps(steps(), study(**fields))


def oracle(found: CaseTable, drawn: np.ndarray) -> np.ndarray:
  """[a, s] macro scores of cases repeated as drawn, by plain loops.

  Args:
    found: the table.
    drawn: rows of the table, with repetitions.

  Returns:
    Scores; NaN where a protocol has no case.
  """
  result = np.full((len(found.axes), len(found.systems)), np.nan)
  for a in range(len(found.axes)):
    for s in range(len(found.systems)):
      means = []
      for protocol in PROTOCOLS:
        inside = [
          found.values[a, s, c]
          for c in drawn
          if found.groups["protocol"][c] == protocol
          and np.isfinite(found.values[a, s, c])
        ]
        means.append(np.mean(inside) if inside else np.nan)
      result[a, s] = np.mean(means)
  return result
