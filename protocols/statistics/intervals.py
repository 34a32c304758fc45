# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Intervals and flip probabilities from replicates, in float64 NumPy.

Conventions: replicates lie along the first axis, [r] or [r, ...]; quantiles
are NumPy's default (linear). A replicate that holds nothing to measure is
NaN and must have been dropped before (`finite_replicates`).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from scipy import special

from kernels import bootstrap, bootstrap_statistics

Floats = np.ndarray[Any, np.dtype[np.floating[Any]]]

METHODS = ("percentile", "basic", "bca")
TIE_LEVEL = 0.05
_SMALLEST_BUCKET = 32


def interval(
  replicates: Floats,
  point: Floats | float,
  *,
  method: str,
  level: float,
  jackknife: Sequence[Floats] = (),
) -> Floats:
  """Confidence interval of each statistic.

  Args:
    replicates: [r, ...] finite values.
    point: [...] value of the full sample.
    method: `percentile`, `basic` (reflected about the point) or `bca`
      (bias-corrected and accelerated).
    level: for example 0.95.
    jackknife: for `bca`, one [n_h, ...] array per stratum: the statistic
      without each of its units.

  Returns:
    [2, ...] lower and upper end; NaN where `bca` is undefined because all
    replicates are alike or all lie on one side of the point.
  """
  values = np.asarray(replicates, np.float64)
  centre = np.asarray(point, np.float64)
  tail = (1.0 - level) / 2.0
  if method == "percentile":
    return np.quantile(values, [tail, 1.0 - tail], axis=0)
  if method == "basic":
    low, high = np.quantile(values, [tail, 1.0 - tail], axis=0)
    return np.stack([2.0 * centre - high, 2.0 * centre - low])
  if method == "bca":
    return _bca(values, centre, tail, jackknife)
  raise ValueError(f"unknown interval method {method!r}; one of {METHODS}")


def _bca(
  values: Floats, point: Floats, tail: float, jackknife: Sequence[Floats]
) -> Floats:
  """BCa after Efron; several strata as in `scipy.stats.bootstrap`."""
  # Replicates that equal the point count half, as in scipy.
  below = np.mean(values < point, axis=0)
  at_most = np.mean(values <= point, axis=0)
  bias = special.ndtri((below + at_most) / 2.0)
  cubes = np.zeros(point.shape)
  squares = np.zeros(point.shape)
  for part in jackknife:
    n = len(part)
    influence = (n - 1) * (np.mean(part, axis=0) - part)
    cubes += np.sum(influence**3, axis=0) / n**3
    squares += np.sum(influence**2, axis=0) / n**2
  with np.errstate(divide="ignore", invalid="ignore"):
    acceleration = cubes / (6.0 * squares**1.5)
    ends = []
    for z in (special.ndtri(tail), special.ndtri(1.0 - tail)):
      shifted = bias + z
      ends.append(special.ndtr(bias + shifted / (1.0 - acceleration * shifted)))
  flat = values.reshape(len(values), -1)
  result = np.full((2, flat.shape[1]), np.nan)
  for end, shares in enumerate(ends):
    for column, share in enumerate(np.ravel(shares)):
      if np.isfinite(share):
        result[end, column] = np.quantile(flat[:, column], share)
  return result.reshape(2, *point.shape)


def p_flip(upper: Floats, lower: Floats) -> float:
  """Share of replicates in which the upper system is not above the lower.

  Equality counts, so a system compared with itself gives 1. Source:
  specs/egogeneval.md section 6.2.

  Args:
    upper: [r] replicates of the system that ranks higher.
    lower: [r] replicates of the next one, same draws.

  Returns:
    Share in [0, 1].
  """
  return float(np.mean(upper <= lower))


def tie_groups(flips: Sequence[float], *, threshold: float) -> list[list[int]]:
  """Runs of adjacent rows that no pair separates.

  Args:
    flips: p_flip of each row with the next, from the top.
    threshold: pairs with p_flip at or above it are local ties.

  Returns:
    Row numbers by group, from the top; each row stands in one group.
  """
  groups = [[0]]
  for row, flip in enumerate(flips, start=1):
    if flip >= threshold:
      groups[-1].append(row)
    else:
      groups.append([row])
  return groups


def finite_replicates(*arrays: Floats) -> Floats:
  """[r] bool: replicates that are finite in every array."""
  keep = np.ones(len(arrays[0]), bool)
  for array in arrays:
    keep &= np.all(np.isfinite(array), axis=tuple(range(1, np.ndim(array))))
  return keep


def percentile_interval(
  values: Sequence[float] | Floats,
  *,
  statistic: str,
  level: float,
  replicates: int,
  seed: int,
) -> tuple[float | None, float | None]:
  """Percentile bootstrap interval of one sample.

  Args:
    values: finite values in a fixed order; the draws depend on it.
    statistic: `mean` or `median` (NumPy median).
    level: for example 0.95.
    replicates: number of resamples.
    seed: seed of the draws.

  Returns:
    (lower, upper), or (None, None) for no values. Source:
    specs/pdi_bench.md section 8.2.
  """
  if statistic not in ("mean", "median"):
    raise ValueError(f"unknown statistic {statistic!r}")
  sample = np.asarray(values, np.float64)
  n = len(sample)
  if n == 0:
    return None, None
  # A few padded sizes instead of one compilation per sample size. The padded
  # positions all draw the unit `bucket`, which is no item of the sample.
  bucket = _SMALLEST_BUCKET
  while bucket < n:
    bucket *= 2
  start = np.zeros(bucket, np.int32)
  size = np.full(bucket, n, np.int32)
  start[n:], size[n:] = bucket, 1
  padded = np.zeros(bucket)
  padded[:n] = sample
  with jax.enable_x64(True):
    found = _sample_replicates(
      jax.random.key(seed, impl="threefry2x32"),
      jnp.arange(replicates, dtype=jnp.uint32),
      jnp.asarray(start),
      jnp.asarray(size),
      jnp.asarray(padded),
      statistic,
    )
    low, high = interval(
      np.asarray(found), np.nan, method="percentile", level=level
    )
  return float(low), float(high)


@functools.partial(jax.jit, static_argnums=5)
def _sample_replicates(
  key: Array,
  numbers: Array,
  start: Array,
  size: Array,
  values: Array,
  statistic: str,
) -> Array:
  bucket = values.shape[0]

  def replicate(number: Array) -> Array:
    counts = bootstrap.draw_counts(
      jax.random.fold_in(key, number),
      start,
      size,
      num_units=bucket + 1,
      dtype=values.dtype,
    )[:bucket]
    if statistic == "median":
      estimate = bootstrap_statistics.weighted_quantile(values, counts, q=0.5)
    else:
      estimate = bootstrap_statistics.ratio(
        jnp.sum(counts * values), jnp.sum(counts)
      )
    return estimate.value

  return jax.lax.map(replicate, numbers, batch_size=512)
