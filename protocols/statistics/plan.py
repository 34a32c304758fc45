# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""From a case table to what the engine resamples.

With shared draws all axes read one stream; with independent draws each axis
has its own, over the cases that it scores.

Systems whose numbers are identical share their columns, so their replicates
are equal to the last bit and their differences exactly 0.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from protocols.statistics import replicate
from protocols.statistics.cases import CaseTable
from protocols.statistics.config import Resampling
from protocols.statistics.replicate import Group
from protocols.statistics.streams import Stream, draw_stream


@dataclasses.dataclass(frozen=True)
class Plan:
  """What to draw and what to compute from it.

  Attributes:
    systems: [s] all systems.
    distinct: [s] column of each system among the [u] distinct ones.
    protocols: [p] protocol names.
    streams: sets of draws.
    groups: of each stream, the groups of its linear axes.
    tables: one pytree of float64 arrays per stream, passed to `finish`.
    finish: ([n, b] counts of each stream, tables) -> [a, 1 + p, u, b]: axis
      score and protocol means of b replicates, NaN where one holds nothing.
    num_axes: a.
  """

  systems: tuple[str, ...]
  distinct: np.ndarray
  protocols: tuple[str, ...]
  streams: tuple[Stream, ...]
  groups: tuple[tuple[Group, ...], ...]
  tables: tuple[Any, ...]
  finish: Callable[[tuple[Array, ...], Any], Array]
  num_axes: int

  @property
  def num_distinct(self) -> int:
    """Number of distinct systems."""
    return int(self.distinct.max()) + 1


def build(
  cases: CaseTable,
  resampling: Resampling,
  *,
  keep_protocols: bool,
  fraction: float = 1.0,
) -> Plan:
  """Plans the resampling of a case table.

  Args:
    cases: the table.
    resampling: unit, strata and draws.
    keep_protocols: also return protocol means; otherwise p is 0 in the
      result of `finish`.
    fraction: share of each stratum's units that a replicate draws (rounded,
      at least one); 1 for a bootstrap, others for power studies.

  Returns:
    The plan.

  Raises:
    InputError: if a scene lies in two strata.
  """
  systems = cases.systems
  distinct, first = _distinct_systems(cases)
  cases = cases.keep_systems([cases.systems[i] for i in first])
  names = [axis.statistic for axis in cases.axes]
  protocols = tuple(sorted(set(cases.groups["protocol"])))
  masks = cases.masks
  if resampling.draws == "shared":
    streams = [
      draw_stream(
        cases, resampling, range(len(names)), np.any(masks, axis=0), 0, fraction
      )
    ]
  else:
    streams = [
      draw_stream(cases, resampling, [a], masks[a], a, fraction)
      for a in range(len(names))
    ]
  tables = tuple(
    replicate.tables(cases, stream, protocols) for stream in streams
  )
  finish = replicate.finisher(
    cases, streams, protocols, resampling, keep_protocols
  )
  return Plan(
    systems=systems,
    distinct=distinct,
    protocols=protocols if keep_protocols else (),
    streams=tuple(streams),
    groups=tuple(
      tuple(replicate.groups_of(cases, s, protocols)) for s in streams
    ),
    tables=tables,
    finish=finish,
    num_axes=len(names),
  )


def _distinct_systems(cases: CaseTable) -> tuple[np.ndarray, list[int]]:
  """Number of each system among the distinct ones, and where they stand."""
  number: dict[bytes, int] = {}
  first, column = [], []
  for s in range(len(cases.systems)):
    content = cases.values[:, s].tobytes() + cases.weights[:, s].tobytes()
    if content not in number:
      number[content] = len(number)
      first.append(s)
    column.append(number[content])
  return np.array(column, np.int32), first


def point(plan: Plan) -> np.ndarray:
  """[a, 1 + p, s] scores of the full sample, in float64."""
  with jax.enable_x64(True):
    counts = tuple(jnp.ones((s.num_units, 1)) for s in plan.streams)
    tables = jax.tree.map(jnp.asarray, plan.tables)
    found = np.asarray(plan.finish(counts, tables))[..., 0]
  return found[:, :, plan.distinct]


def jackknife(plan: Plan) -> list[np.ndarray]:
  """The statistic without each unit: per stream and stratum, [n, a, 1+p, s].

  With independent streams the other streams stay whole, as for any statistic
  of several independent samples.
  """
  parts = []
  with jax.enable_x64(True):
    tables = jax.tree.map(jnp.asarray, plan.tables)
    whole = [jnp.ones((s.num_units, 1)) for s in plan.streams]
    for number, stream in enumerate(plan.streams):

      def without(unit: Array, number: int = number) -> Array:
        counts = list(whole)
        counts[number] = counts[number].at[unit].set(0.0)
        return plan.finish(tuple(counts), tables)[..., 0]

      found = np.asarray(
        jax.lax.map(without, jnp.arange(stream.num_units), batch_size=256)
      )[..., plan.distinct]
      for stratum in range(int(stream.stratum.max()) + 1):
        parts.append(found[stream.stratum == stratum])
  return parts


def unit_counts(stream: Stream, of_cases: np.ndarray) -> np.ndarray:
  """Unit counts of given draws of cases, for streams whose units are cases.

  Args:
    stream: the stream.
    of_cases: [r, c] how often each case of the table occurs.

  Returns:
    [r, n] counts.
  """
  counts = np.zeros((len(of_cases), stream.num_units))
  counts[:, stream.unit_of_case] = of_cases[:, stream.cases]
  return counts
