# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Streams of draws: which units there are and how each position draws.

A stream is one set of draws. Its units are cases, or scenes with all their
cases; they are sorted by stratum, held protocols and name, so that every
stratum is contiguous and the numbering does not depend on the order of the
input.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Sequence

import numpy as np

from perception.errors import InputError
from protocols.statistics import table as tables
from protocols.statistics.cases import CaseTable
from protocols.statistics.config import Resampling


@dataclasses.dataclass(frozen=True)
class Stream:
  """One set of draws.

  Attributes:
    number: distinguishes the random numbers of the streams of a plan.
    axes: [a] numbers of the axes that read it.
    cases: [k] rows of the case table that take part.
    unit_of_case: [k] int32.
    units: [n] name of each unit, (stratum, ...).
    stratum: [n] int32 stratum of each unit, non-decreasing.
    start, size: [d] int32, the stratum of each drawn position.
  """

  number: int
  axes: tuple[int, ...]
  cases: np.ndarray
  unit_of_case: np.ndarray
  units: tuple[tuple[str, ...], ...]
  stratum: np.ndarray
  start: np.ndarray
  size: np.ndarray

  @property
  def num_units(self) -> int:
    """Number of units."""
    return len(self.units)


def draw_stream(
  cases: CaseTable,
  resampling: Resampling,
  axes: Sequence[int],
  mask: np.ndarray,
  number: int,
  fraction: float,
) -> Stream:
  """Lays out the units of one stream.

  Args:
    cases: the case table.
    resampling: unit and strata.
    axes: numbers of the axes that read the stream.
    mask: [c] bool, cases that take part.
    number: number of the stream.
    fraction: share of each stratum's units that a replicate draws.

  Returns:
    The stream.

  Raises:
    InputError: if a scene lies in two strata.
  """
  rows = np.flatnonzero(mask)
  groups = {name: column[rows] for name, column in cases.groups.items()}
  strata = (
    np.full(len(rows), "")
    if resampling.strata == "none"
    else groups[resampling.strata]
  )
  names: list[tuple[str, ...]]
  if resampling.unit == "scene":
    names = list(zip(strata, groups["source"], groups["scene"], strict=True))
    _check_clusters(names, cases.source_name)
  else:
    ids = [cases.cases[row] for row in rows]
    names = list(zip(strata, ids, strict=True))
  units = _in_order(names, groups["protocol"])
  place = {name: i for i, name in enumerate(units)}
  _, stratum, sizes = np.unique(
    [unit[0] for unit in units], return_inverse=True, return_counts=True
  )
  starts = np.cumsum(sizes) - sizes
  drawn = np.maximum(1, np.rint(fraction * sizes)).astype(int)
  return Stream(
    number=number,
    axes=tuple(axes),
    cases=rows,
    unit_of_case=np.array([place[name] for name in names], np.int32),
    units=tuple(units),
    stratum=stratum.astype(np.int32),
    start=np.repeat(starts, drawn).astype(np.int32),
    size=np.repeat(sizes, drawn).astype(np.int32),
  )


def lonely_strata(cases: CaseTable, resampling: Resampling) -> list[str]:
  """A note on strata of one unit, which no replicate can vary.

  Args:
    cases: the case table.
    resampling: unit and strata.

  Returns:
    The note, or nothing where every stratum holds several units.

  Raises:
    InputError: if every stratum holds one unit: all replicates would be the
      sample, and an interval of no width would look like certainty.
  """
  stratum = cases.groups.get(resampling.strata)
  strata = [""] * len(cases.cases) if stratum is None else stratum.tolist()
  units: Sequence[object] = cases.cases
  if resampling.unit == "scene":
    columns = cases.groups["source"].tolist(), cases.groups["scene"].tolist()
    units = list(zip(*columns, strict=True))
  held = collections.Counter(
    name for name, _ in set(zip(strata, units, strict=True))
  )
  lonely = sorted(name for name, number in held.items() if number == 1)
  if len(lonely) == len(held):
    raise InputError(
      cases.source_name,
      f"strata ({resampling.strata})",
      found=f"one {resampling.unit} in each",
      expected=f"a stratum of several {resampling.unit}s to draw from",
      hint='Set "strata" to "none", or give more cases.',
    )
  if not lonely:
    return []
  return [
    f"{len(lonely)} of {len(held)} strata hold one {resampling.unit} and never"
    f" vary: {tables.describe(lonely)}"
  ]


def _in_order(
  names: Sequence[tuple[str, ...]], protocols: np.ndarray
) -> list[tuple[str, ...]]:
  """Units by stratum, then by the protocols that they hold, then by name.

  The sets of protocols stand in Gray-code order, so that the units of each
  protocol form few contiguous runs within a stratum.
  """
  bit = {name: 1 << i for i, name in enumerate(sorted(set(protocols)))}
  held: dict[tuple[str, ...], int] = {}
  for name, protocol in zip(names, protocols, strict=True):
    held[name] = held.get(name, 0) | bit[protocol]

  def rank(gray: int) -> int:
    place = 0
    while gray:
      place ^= gray
      gray >>= 1
    return place

  return sorted(held, key=lambda unit: (unit[0], rank(held[unit]), unit))


def _check_clusters(names: Sequence[tuple[str, ...]], source_name: str) -> None:
  strata: dict[tuple[str, str], str] = {}
  for stratum, source, scene in names:
    if strata.setdefault((source, scene), stratum) != stratum:
      raise InputError(
        source_name,
        f"scene {scene} of source {source!r}",
        found=f"in strata {strata[source, scene]!r} and {stratum!r}",
        expected="every scene within one stratum",
        hint='Use "strata": "source" or "none" with "unit": "scene".',
      )
