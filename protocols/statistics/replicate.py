# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""What is computed from the counts of replicates.

Everything a case contributes to a linear statistic is summed per unit once,
in float64, before any replicate is drawn; a replicate is then one product of
counts and sums. Medians and quantiles read the counts themselves.

Counts are unit-major, `[n, b]` for b replicates, and so is all that follows:
replicates stay on the last axis, along which the machine's vectors run.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from kernels import bootstrap, bootstrap_statistics
from protocols.statistics.cases import CaseTable
from protocols.statistics.config import Resampling
from protocols.statistics.streams import Stream

POOLED = ("mean", "ratio")
LINEAR = ("macro", *POOLED)


@dataclasses.dataclass(frozen=True)
class Group:
  """Sums that read the same units: those of one protocol, or all.

  Attributes:
    protocol: number of the protocol; None for all cases together.
    axes: numbers of the axes.
    runs: (first, end) of the contiguous runs of units that contribute.
  """

  protocol: int | None
  axes: tuple[int, ...]
  runs: tuple[tuple[int, int], ...]

  def rows(self, table: np.ndarray) -> np.ndarray:
    """The rows of a table that the runs name."""
    return np.concatenate([table[a:b] for a, b in self.runs])

  def counts(self, counts: Array) -> Array:
    """The same rows of [n, b] counts."""
    return jnp.concatenate([counts[a:b] for a, b in self.runs])


def groups_of(
  cases: CaseTable, stream: Stream, protocols: Sequence[str]
) -> list[Group]:
  """Groups of the linear axes of a stream.

  Most scenes hold cases of one protocol only. Summing each protocol over its
  own units takes less than half of the work of one product over all.
  """
  code = _protocol_codes(cases, stream, protocols)
  kinds = {a: cases.axes[a].statistic for a in stream.axes}
  macro = tuple(a for a, kind in kinds.items() if kind == "macro")
  pooled = tuple(a for a, kind in kinds.items() if kind in POOLED)
  found = []
  if pooled:
    found.append(Group(None, pooled, ((0, stream.num_units),)))
  for p in range(len(protocols)) if macro else ():
    used = np.zeros(stream.num_units, bool)
    used[stream.unit_of_case[code == p]] = True
    edges = np.flatnonzero(np.diff(used, prepend=False, append=False))
    runs = tuple((int(a), int(b)) for a, b in edges.reshape(-1, 2))
    # A protocol without a case in this stream still needs its columns.
    found.append(Group(p, macro, runs or ((0, 1),)))
  return found


def tables(
  cases: CaseTable, stream: Stream, protocols: Sequence[str]
) -> dict[str, np.ndarray]:
  """What `finish` reads: unit sums of linear axes, values of the others.

  Args:
    cases: table of distinct systems.
    stream: the draws.
    protocols: [p] names, sorted.

  Returns:
    float64 arrays by name.
  """
  code = _protocol_codes(cases, stream, protocols)
  found: dict[str, np.ndarray] = {}
  for a in stream.axes:
    if cases.axes[a].statistic not in LINEAR:
      values = cases.values[a][:, stream.cases]
      found[f"values_{a}"] = values
      found[f"scored_{a}"] = np.isfinite(values).astype(np.float64)
  for g, group in enumerate(groups_of(cases, stream, protocols)):
    inside = np.ones(len(code), bool)
    if group.protocol is not None:
      inside = code == group.protocol
    columns = []
    for a in group.axes:
      values = cases.values[a][:, stream.cases]
      weights = _shared_weights(cases, a)[:, stream.cases]
      for part in (np.where(np.isfinite(values), values, 0.0), weights):
        sums = np.zeros((stream.num_units, len(part)))
        np.add.at(sums, stream.unit_of_case, np.where(inside, part, 0.0).T)
        columns.append(sums)
    found[f"sums_{g}"] = group.rows(np.concatenate(columns, axis=1))
  return found


def _protocol_codes(
  cases: CaseTable, stream: Stream, protocols: Sequence[str]
) -> np.ndarray:
  return np.searchsorted(protocols, cases.groups["protocol"][stream.cases])


def _shared_weights(cases: CaseTable, axis: int) -> np.ndarray:
  """[u or 1, c] denominators; one row where all systems have the same."""
  weights = cases.weights[axis]
  return weights[:1] if np.all(weights == weights[:1]) else weights


def finisher(
  cases: CaseTable,
  streams: Sequence[Stream],
  protocols: Sequence[str],
  resampling: Resampling,
  keep_protocols: bool,
) -> Callable[[tuple[Array, ...], Any], Array]:
  """Makes the function from counts and tables to scores.

  Args:
    cases: table of distinct systems.
    streams: all streams.
    protocols: [p] names, sorted.
    resampling: supplies the rule for missing protocols.
    keep_protocols: also return protocol means.

  Returns:
    The function, from [n, b] counts of each stream and the tables to
    [a, 1 + p, u, b]; it closes over static facts only, every number comes in
    through `tables`.
  """
  u = len(cases.systems)
  p = len(protocols)
  renormalise = resampling.missing_protocol == "renormalise"
  widths = [len(_shared_weights(cases, a)) for a in range(len(cases.axes))]
  code = np.searchsorted(protocols, cases.groups["protocol"])
  required = [np.bincount(code[mask], minlength=p) > 0 for mask in cases.masks]
  unit_of_case = [stream.unit_of_case for stream in streams]

  def quantile(axis: int, stream: int, counts: Array, table: Any) -> Array:
    values, scored = table[f"values_{axis}"], table[f"scored_{axis}"]
    of_case = counts[jnp.asarray(unit_of_case[stream])]
    spec = cases.axes[axis]
    q = 0.5 if spec.statistic == "median" else spec.quantile
    one = functools.partial(bootstrap_statistics.weighted_quantile, q=q)
    # Replicates inside, so that each system's values are sorted once.
    found = jax.vmap(
      lambda v, ok: jax.vmap(one, (None, 1))(v, of_case * ok[:, None])
    )(values, scored)
    score = jnp.where(found.weight > 0, found.value, jnp.nan)
    return _with_protocols(score, None, p, keep_protocols)

  def linear(axis: int, block: Array) -> Array:
    above = block[:, :u]
    below = jnp.broadcast_to(block[:, u:], above.shape)
    macro = _macro_means(above, below)
    present = macro.present
    if cases.axes[axis].statistic == "macro" and not renormalise:
      needed = jnp.asarray(required[axis])[:, None, None]
      good = jnp.all(present | ~needed, axis=0)
    else:
      good = jnp.any(present, axis=0)
    score = jnp.where(good, macro.value, jnp.nan)
    if cases.axes[axis].statistic != "macro":
      return _with_protocols(score, None, p, keep_protocols)
    means = jnp.where(present, macro.protocols, jnp.nan)
    return _with_protocols(score, means, p, keep_protocols)

  groups = [groups_of(cases, stream, protocols) for stream in streams]

  def finish(counts: tuple[Array, ...], tables: Any) -> Array:
    scores: dict[int, Array] = {}
    for s, stream in enumerate(streams):
      blocks: dict[int, list[Array]] = {axis: [] for axis in stream.axes}
      for g, group in enumerate(groups[s]):
        totals = _totals(group.counts(counts[s]), tables[s][f"sums_{g}"])
        offset = 0
        for axis in group.axes:
          width = u + widths[axis]
          blocks[axis].append(totals[offset : offset + width])
          offset += width
      for axis, rows in blocks.items():
        if rows:
          scores[axis] = linear(axis, jnp.stack(rows))
        else:
          scores[axis] = quantile(axis, s, counts[s], tables[s])
    return jnp.stack([scores[axis] for axis in sorted(scores)])

  return finish


# [n, b] counts, [n, k] sums -> [k, b] totals.
_totals = jax.vmap(bootstrap.resample_sums, in_axes=(1, None), out_axes=1)


def _macro_means(total: Array, weight: Array) -> bootstrap_statistics.Macro:
  """[p, u, b] totals and weights: the macro mean of each system, replicate."""
  systems = jax.vmap(
    lambda t, w: tuple(bootstrap_statistics.macro_mean(t, w)),
    in_axes=1,
    out_axes=(0, 1, 1),
  )
  replicates = jax.vmap(systems, in_axes=-1, out_axes=-1)
  return bootstrap_statistics.Macro(*replicates(total, weight))


def _with_protocols(
  score: Array, means: Array | None, p: int, keep: bool
) -> Array:
  """[1 + p, u, b] score and protocol means; NaN where there are none."""
  if not keep:
    return score[None]
  if means is None:
    means = jnp.full((p, *score.shape), jnp.nan, score.dtype)
  return jnp.concatenate([score[None], means])
