# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Conformance with the golden statistics.

Given draws must give the given replicates (1e-12 in float64, 1e-6 in
float32); Monte-Carlo results must agree within four standard errors; rank
statistics must equal the recorded ones. Human alignment is computed in
float64 in any precision, so it is checked in the float64 pass only.
"""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from kernels import bootstrap_statistics, ranks, ranks_agreement
from protocols.common import conformance
from protocols.common.conformance import Check
from protocols.statistics import (
  conformance_human,
  conformance_study,
  golden,
  human,
)
from protocols.statistics.golden import Golden

_STUDY = ("study.npz", "reference.json", "deterministic.npz")
_HUMAN = ("human.npz", "human.json")
_RANKS = ("rank_statistics.json",)


def recognises(index: Mapping[str, Any]) -> bool:
  """Whether an `index.json` describes golden statistics."""
  files = _files(index)
  return bool(files & {*_STUDY, *_RANKS}) and all(
    name.endswith((".npz", ".json")) for name in files
  )


def checks(
  folder: pathlib.Path, index: Mapping[str, Any], *, precision: str
) -> Iterator[Check]:
  """Compares our statistics with every golden value.

  Args:
    folder: golden folder.
    index: content of its `index.json`.
    precision: `float64` or `float32`.

  Yields:
    One check per value or array; failing ones for what we do not read.
  """
  files = _files(index)
  on_disk = {path.name for path in folder.iterdir()} - {"index.json"}
  for name in sorted((files | on_disk) - {*_STUDY, *_HUMAN, *_RANKS}):
    yield conformance.unknown(name, precision=precision)
  if set(_STUDY) <= files:
    yield from conformance_study.checks(folder, precision=precision)
  if set(_RANKS) <= files:
    yield from _rank_checks(
      golden.read_json(folder / _RANKS[0], precision=precision)
    )
  if set(_HUMAN) <= files and precision == "float64":
    yield from conformance_human.checks(folder, precision=precision)


def _files(index: Mapping[str, Any]) -> set[str]:
  vectors = index.get("vectors", [])
  if not isinstance(vectors, list):
    return set()
  return {
    name.strip()
    for entry in vectors
    if isinstance(entry, Mapping)
    for name in str(entry.get("file", "")).split("+")
  }


def _rank_checks(g: Golden) -> Iterator[Check]:
  """Rank correlations, ICC, utilities, pairs, quantiles, case rules."""
  readers: dict[str, Callable[[Golden, str], Iterator[Check]]] = {
    "spearman_kendall": _correlation,
    "icc": _icc,
    "utility": _utility,
    "pairwise": _pairwise,
    "temporal": _temporal,
  }
  for section, reader in readers.items():
    for number in g.below(section):
      yield from reader(g, f"{section}/{number}")
  yield from _percentile(g)
  yield from g.rest()


def _vector(g: Golden, path: str) -> Array:
  return jnp.asarray(g.array(path), g.precision)


def _nan_unless(value: Array, defined: Array) -> float:
  return float(value) if defined else float("nan")


def _correlation(g: Golden, path: str) -> Iterator[Check]:
  a, b = _vector(g, f"{path}/a"), _vector(g, f"{path}/b")
  ones = jnp.ones_like(a)
  rho = jax.jit(ranks.spearman)(a, b, ones)
  tau = jax.jit(ranks.kendall_tau_b)(a, b, ones)
  yield g.check(f"{path}/spearman", _nan_unless(*rho))
  yield g.check(f"{path}/kendall_tau_b", _nan_unless(*tau))
  if "exact_p_spearman" in g.below(path):
    exact = jax.jit(ranks_agreement.exact_permutation_p)(a, b)
    yield g.check(f"{path}/exact_p_spearman", float(exact.spearman))
    yield g.check(f"{path}/exact_p_kendall", float(exact.kendall))


def _icc(g: Golden, path: str) -> Iterator[Check]:
  matrix = _vector(g, f"{path}/matrix")
  found = ranks_agreement.icc_agreement(matrix, jnp.ones(matrix.shape[0], bool))
  yield g.check(f"{path}/icc_a1", float(found.a1))
  yield g.check(f"{path}/icc_ak", float(found.ak))
  squares = {
    "msr": found.ms_rows,
    "msc": found.ms_raters,
    "mse": found.ms_residual,
  }
  for name, value in squares.items():
    expected = abs(float(g.array(f"{path}/mean_squares/{name}")))
    yield g.check(
      f"{path}/mean_squares/{name}",
      float(value),
      tolerance=g.tolerance * max(1.0, expected),
    )


def _utility(g: Golden, path: str) -> Iterator[Check]:
  # The panel of the paper has six systems.
  rank = np.full(6, float(g.array(f"{path}/rank")))
  yield g.check(f"{path}/utility", float(human.utilities(rank)[0]))


def _pairwise(g: Golden, path: str) -> Iterator[Check]:
  automatic, people = _vector(g, f"{path}/auto"), _vector(g, f"{path}/human")
  found = jax.jit(ranks_agreement.pairwise_agreement)(
    automatic, people, jnp.ones(automatic.shape, bool)
  )
  yield g.check(f"{path}/agree", float(found.agree), tolerance=0.0)
  yield g.check(f"{path}/pairs", float(found.pairs), tolerance=0.0)


def _temporal(g: Golden, path: str) -> Iterator[Check]:
  values = _vector(g, f"{path}/values")
  found = bootstrap_statistics.case_scores(
    values,
    jnp.ones(values.shape, bool),
    jnp.zeros(values.shape, jnp.int32),
    num_cases=1,
    worst_weight=0.5,
  )
  yield g.check(f"{path}/mpw", float(found.value[0]))


def _percentile(g: Golden) -> Iterator[Check]:
  """Our quantile is the linear one; the others show the spread only."""
  if not g.below("percentile"):
    return
  values = _vector(g, "percentile/values")
  percent = g.array("percentile/percent")
  counts = jnp.ones_like(values)
  found = [
    jax.jit(bootstrap_statistics.weighted_quantile, static_argnames="q")(
      values, counts, q=float(p) / 100.0
    ).value
    for p in percent
  ]
  yield g.check("percentile/results/linear", np.array(found))
  for name in g.below("percentile/results"):
    if name != "linear":
      method: Any = name
      other = np.quantile(
        g.array("percentile/values"), percent / 100.0, method=method
      )
      yield g.check(f"percentile/results/{name}", other, tolerance=1e-12)
