# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Times the scene-cluster bootstrap against NumPy and SciPy, in one run.

The statistic is the same everywhere: CMG, SSP and Overall of 18 systems over
1,400 cases (three protocols, SSP masked on 44 cases), clusters of cases drawn
within four strata. Data is made here with the composition of
specs/egogeneval.md sections 1.2 and 1.3; only shapes matter for time.

Baselines: (1) drawing as many random numbers and nothing else, with
`jax.random.bits`, with NumPy's default generator, and with our own words;
(2) a loop over replicates in NumPy, all systems at once; (3) the best NumPy
formulation known to us: draws to counts with one `bincount` per stratum and
batch, then one matrix product, float32 like ours; (4) `scipy.stats.bootstrap`
on one system's plain case mean, the largest part that it can express.
"""

from __future__ import annotations

import functools
import itertools
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.stats

from kernels import bootstrap_bits
from protocols.common import timing
from protocols.common.timing import Row
from protocols.statistics import engine, plan
from protocols.statistics.cases import CaseTable
from protocols.statistics.config import Axis, Resampling
from protocols.statistics.plan import Plan

SCENES = {"scannetpp": 480, "scannet": 150, "hypersim": 122, "matterport": 19}
CASES = {
  "scannetpp": (532, 330, 141),
  "scannet": (130, 30, 50),
  "hypersim": (122, 0, 43),
  "matterport": (16, 0, 6),
}
PROTOCOLS = ("atomic", "chain", "cycle")
SYSTEMS = 18
MASKED = 44
_LOOP_REPLICATES = 500
# Replicates that a baseline takes at a time: the fastest of those tried.
_BASELINE_BLOCK = 512
_SEED = 20260810


def run(*, quick: bool) -> list[Row]:
  """Runs the suite.

  Args:
    quick: 1,024 replicates instead of 20,000 and no million.

  Returns:
    One row per comparison.
  """
  replicates = 1024 if quick else 20_000
  table = case_table()
  planned = plan.build(
    table, Resampling(unit="scene", strata="source"), keep_protocols=False
  )
  compiling = time.perf_counter()
  sampler = engine.Sampler(planned, dtype="float32", batch=engine.DEFAULT_BATCH)
  ours = functools.partial(_drain, sampler, replicates)
  ours()
  cold = time.perf_counter() - compiling
  draws = _draws(planned, replicates, standard=True)
  own_draws = _draws(planned, replicates, standard=False)
  best = functools.partial(numpy_matmul, planned, replicates)
  loop = functools.partial(numpy_loop, table, min(replicates, _LOOP_REPLICATES))
  numpy_draws = functools.partial(_numpy_draws, planned, replicates)
  jax.block_until_ready((draws(), own_draws()))
  # Interleaved, so that a busy machine slows all of them alike.
  times = _interleaved(
    {
      "ours": ours,
      "draws": draws,
      "own draws": own_draws,
      "numpy draws": numpy_draws,
      "best": best,
    },
    repeats=3 if quick else 7,
  )
  loop_s = _seconds(loop) * replicates / min(replicates, _LOOP_REPLICATES)
  size = (
    f"{replicates} replicates x {SYSTEMS} systems x {len(table.cases)} cases"
  )
  units = planned.streams[0].num_units
  ours_t, draws_t = times["ours"], times["draws"]
  own_t, numpy_t = times["own draws"], times["numpy draws"]
  best_t = times["best"]
  rows = [
    Row(
      f"scene bootstrap, {size}: against the draws alone",
      cold,
      ours_t.wall,
      draws_t.wall,
      "jax.random.bits, as many words and nothing else",
      f"{ours_t.wall / draws_t.wall:.2f} times these draws; in CPU time"
      f" {ours_t.cpu * 1e3:.0f} ms: {ours_t.cpu / draws_t.cpu:.2f} times"
      f" jax.random.bits, {ours_t.cpu / numpy_t.cpu:.2f} times NumPy's draws,"
      f" {ours_t.cpu / own_t.cpu:.2f} times our own words; {units} clusters",
    ),
    Row(
      "scene bootstrap: against a loop over replicates",
      None,
      ours_t.wall,
      loop_s,
      f"NumPy, systems vectorised, scaled from {_LOOP_REPLICATES} replicates",
    ),
    Row(
      "scene bootstrap: against the best NumPy",
      None,
      ours_t.wall,
      best_t.wall,
      "bincount per stratum, then one float32 matrix product",
      f"CPU time {ours_t.cpu * 1e3:.0f} and {best_t.cpu * 1e3:.0f} ms",
    ),
    _against_scipy(table, replicates),
  ]
  if not quick:
    rows.append(_million(planned))
  return rows


def case_table() -> CaseTable:
  """A synthetic study of the published composition."""
  rng = np.random.default_rng(0)
  source, scene, protocol = [], [], []
  for name, counts in CASES.items():
    scenes = rng.permutation(np.resize(np.arange(SCENES[name]), sum(counts)))
    source += [name] * sum(counts)
    scene += [f"{number:04d}" for number in scenes]
    protocol += list(
      itertools.chain.from_iterable(
        [p] * n for p, n in zip(PROTOCOLS, counts, strict=True)
      )
    )
  total = len(source)
  values = rng.random((2, SYSTEMS, total))
  values[1, :, rng.permutation(total)[:MASKED]] = np.nan
  return CaseTable(
    source_name="benchmark",
    axes=(Axis("cmg", ("cmg",)), Axis("ssp", ("ssp",))),
    systems=tuple(f"system{s:02d}" for s in range(SYSTEMS)),
    cases=tuple(f"{c:05d}" for c in range(total)),
    groups={
      "scene": np.array(scene),
      "source": np.array(source),
      "subtype": np.array(protocol),
      "protocol": np.array(protocol),
    },
    values=values,
    weights=np.isfinite(values).astype(np.float64),
  )


def _seconds(function: Callable[[], object]) -> float:
  start = time.perf_counter()
  jax.block_until_ready(function())
  return time.perf_counter() - start


class _Time(NamedTuple):
  """Best of several calls: wall seconds, and CPU seconds of all threads."""

  wall: float
  cpu: float


def _interleaved(
  functions: Mapping[str, Callable[[], object]], *, repeats: int
) -> dict[str, _Time]:
  """Best times of each function; every round runs all of them."""
  best = dict.fromkeys(functions, _Time(np.inf, np.inf))
  for _ in range(repeats):
    for name, function in functions.items():
      start = time.process_time()
      wall = _seconds(function)
      cpu = time.process_time() - start
      before = best[name]
      best[name] = _Time(min(before.wall, wall), min(before.cpu, cpu))
  return best


def _drain(sampler: engine.Sampler, replicates: int) -> np.ndarray:
  """[r, 18] Overall of every replicate, as our studies form it."""
  parts = [
    (values[:, 0, 0] + values[:, 1, 0]) / 2
    for _, values in sampler.batches(seed=_SEED, done=0, replicates=replicates)
  ]
  return np.concatenate(parts)[:replicates]


def _draws(
  planned: Plan, replicates: int, *, standard: bool
) -> Callable[[], object]:
  """The words of all replicates, in blocks like ours; sums are kept.

  Args:
    planned: the plan.
    replicates: number of replicates.
    standard: use `jax.random.bits` instead of our own words.
  """
  number = len(planned.streams[0].start)
  key = jax.random.fold_in(jax.random.key(_SEED, impl="threefry2x32"), 0)
  blocks = -(-replicates // _BASELINE_BLOCK)

  def words(row: jax.Array) -> jax.Array:
    own = jax.random.fold_in(key, row)
    if standard:
      return jax.random.bits(own, (number,), jnp.uint32)
    first, second = bootstrap_bits.random_pairs(own, number=number)
    return first ^ second

  def block(start: jax.Array) -> jax.Array:
    rows = start * np.uint32(_BASELINE_BLOCK) + jnp.arange(
      _BASELINE_BLOCK, dtype=jnp.uint32
    )
    return jnp.sum(jax.vmap(words)(rows), axis=1)

  numbers = jnp.arange(blocks, dtype=jnp.uint32)
  compiled = jax.jit(lambda n: jax.lax.map(block, n))
  return lambda: compiled(numbers)


def _numpy_draws(planned: Plan, replicates: int) -> int:
  rng = np.random.default_rng(_SEED)
  total = 0
  for number in np.bincount(planned.streams[0].stratum):
    drawn = rng.integers(0, number, size=(replicates, number), dtype=np.uint32)
    total += int(drawn[-1, -1])
  return total


def numpy_matmul(planned: Plan, replicates: int) -> np.ndarray:
  """Best NumPy: per batch, counts by one bincount per stratum, one product."""
  rng = np.random.default_rng(_SEED)
  stream = planned.streams[0]
  sums = _full_sums(planned).astype(np.float32)
  sizes = np.bincount(stream.stratum)
  found = []
  for first in range(0, replicates, _BASELINE_BLOCK):
    batch = min(_BASELINE_BLOCK, replicates - first)
    counts = np.empty((batch, stream.num_units), np.float32)
    offset = 0
    for number in sizes:
      drawn = rng.integers(0, number, size=(batch, number), dtype=np.uint32)
      places = drawn + (np.arange(batch) * number)[:, None]
      counts[:, offset : offset + number] = np.bincount(
        places.ravel(), minlength=batch * number
      ).reshape(batch, number)
      offset += number
    totals = (counts @ sums).reshape(batch, len(PROTOCOLS), 2, SYSTEMS + 1)
    means = totals[..., :-1] / totals[..., -1:]
    found.append(means.mean(axis=(1, 2)))
  return np.concatenate(found)


def _full_sums(planned: Plan) -> np.ndarray:
  """[units, protocols * (18 + 1) * 2] sums of every cluster, dense."""
  stream = planned.streams[0]
  columns = []
  for g, group in enumerate(planned.groups[0]):
    part = planned.tables[0][f"sums_{g}"]
    full = np.zeros((stream.num_units, part.shape[1]))
    full[group.rows(np.arange(stream.num_units))] = part
    columns.append(full)
  return np.concatenate(columns, axis=1)


def numpy_loop(table: CaseTable, replicates: int) -> np.ndarray:
  """A replicate at a time, all systems at once: draw scenes, take means."""
  rng = np.random.default_rng(_SEED)
  source, scene = table.groups["source"], table.groups["scene"]
  strata = []
  for name in SCENES:
    inside = np.flatnonzero(source == name)
    _, of_case = np.unique(scene[inside], return_inverse=True)
    strata.append((inside, of_case, int(of_case.max()) + 1))
  protocol = table.groups["protocol"]
  groups = [
    (axis, np.flatnonzero((protocol == p) & mask))
    for axis, mask in enumerate(table.masks)
    for p in PROTOCOLS
  ]
  values = [table.values[axis][:, rows] for axis, rows in groups]
  found = np.empty((replicates, SYSTEMS))
  for r in range(replicates):
    weight = np.empty(len(source))
    for inside, of_case, number in strata:
      drawn = rng.integers(0, number, size=number)
      weight[inside] = np.bincount(drawn, minlength=number)[of_case]
    means = [
      value @ weight[rows] / weight[rows].sum()
      for value, (_, rows) in zip(values, groups, strict=True)
    ]
    found[r] = np.mean(means, axis=0)
  return found


def _against_scipy(table: CaseTable, replicates: int) -> Row:
  """Case bootstrap of one system's mean, which SciPy can express."""
  one = CaseTable(
    source_name="benchmark",
    axes=(Axis("cmg", ("cmg",), statistic="mean"),),
    systems=table.systems[:1],
    cases=table.cases,
    groups=table.groups,
    values=table.values[:1, :1],
    weights=table.weights[:1, :1],
  )
  planned = plan.build(one, Resampling(), keep_protocols=False)
  compiling = time.perf_counter()
  sampler = engine.Sampler(planned, dtype="float32", batch=engine.DEFAULT_BATCH)

  def ours() -> object:
    return [
      values
      for _, values in sampler.batches(
        seed=_SEED, done=0, replicates=replicates
      )
    ]

  sample = (table.values[0, 0],)

  def theirs() -> object:
    return scipy.stats.bootstrap(
      sample,
      np.mean,
      n_resamples=replicates,
      batch=_BASELINE_BLOCK,
      method="percentile",
      rng=np.random.default_rng(_SEED),
    )

  ours()
  cold = time.perf_counter() - compiling
  times = _interleaved({"ours": ours, "scipy": theirs}, repeats=5)
  return Row(
    f"case bootstrap of one mean, {len(table.cases)} cases",
    cold,
    times["ours"].wall,
    times["scipy"].wall,
    "scipy.stats.bootstrap, vectorised, batches of 512, percentile",
    f"CPU time {times['ours'].cpu * 1e3:.0f} and"
    f" {times['scipy'].cpu * 1e3:.0f} ms",
  )


def _million(planned: Plan) -> Row:
  """A million replicates of the whole panel, and the memory they take."""
  start = time.perf_counter()
  found = engine.run(
    planned,
    seed=_SEED,
    replicates=1_000_000,
    dtype="float32",
    batch=engine.DEFAULT_BATCH,
    store=None,
    advance=None,
  )
  seconds = time.perf_counter() - start
  return Row(
    "scene bootstrap, 1,000,000 replicates",
    None,
    seconds,
    note=f"result {found.nbytes / 2**20:.0f} MiB; peak memory of the process"
    f" {timing.peak_memory_bytes() / 2**20:.0f} MiB",
  )
