# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Stratified resampling as counts times values.

Conventions: the resampled units (cases, or clusters of cases) are numbered
with every stratum contiguous. Position `i` of a replicate draws uniformly
from the units `[start_i, start_i + size_i)` of its stratum, with replacement.
`counts` says how often each unit was drawn; every linear statistic of the
replicate is `counts @ sums`, where `sums` holds what each unit contributes.
Systems that share `counts` are paired.

Replicate `r` uses the key `fold_in(key, r)` and nothing else, so its draws do
not depend on batch size, device count or the point at which a study resumed.
That holds for the threefry generator; JAX's `rbg` and `unsafe_rbg` give other
numbers under `vmap` than in a loop, so keys of those kinds are refused. (On
CPUs they are slower as well.)
"""

from __future__ import annotations

import chex
import jax.numpy as jnp
from jax import Array, lax

from kernels import bootstrap_bits


def draw_units(key: Array, start: Array, size: Array) -> Array:
  """Draws one replicate: which unit each position takes.

  A 32-bit word times `size`, upper half; the probability of a unit is off by
  at most `size / 2**32` of itself.

  Args:
    key: typed threefry key of the replicate.
    start: [d] int32, first unit of the position's stratum.
    size: [d] int32, number of units in the position's stratum, at least 1.

  Returns:
    [d] int32 unit numbers.

  Raises:
    ValueError: the key is of another kind than threefry.
  """
  chex.assert_rank([start, size], 1)
  chex.assert_equal_shape([start, size])
  chex.assert_type([start, size], jnp.int32)
  bits = bootstrap_bits.random_bits(key, number=start.shape[0])
  return start + _multiply_high(bits, size.astype(jnp.uint32)).astype(jnp.int32)


def draw_counts(
  key: Array, start: Array, size: Array, *, num_units: int, dtype: jnp.dtype
) -> Array:
  """Draws one replicate and counts its units.

  Args:
    key: typed threefry key of the replicate.
    start: [d] int32, as for `draw_units`.
    size: [d] int32, as for `draw_units`.
    num_units: n, number of units; start + size may not exceed it.
    dtype: floating dtype of the counts.

  Returns:
    [n] counts that sum to d.
  """
  units = draw_units(key, start, size)
  # The units are in range by construction, so the scatter need not check.
  return (
    jnp.zeros(num_units, dtype)
    .at[units]
    .add(jnp.ones((), dtype), mode="promise_in_bounds")
  )


def counts_of_draws(units: Array, *, num_units: int, dtype: jnp.dtype) -> Array:
  """Counts given draws; draws outside [0, num_units) are ignored.

  Args:
    units: [d] integer unit numbers.
    num_units: n.
    dtype: floating dtype of the counts.

  Returns:
    [n] counts.
  """
  chex.assert_rank(units, 1)
  chex.assert_type(units, int)
  inside = (units >= 0) & (units < num_units)
  return (
    jnp.zeros(num_units, dtype)
    .at[jnp.where(inside, units, 0)]
    .add(inside.astype(dtype))
  )


def resample_sums(counts: Array, sums: Array) -> Array:
  """Totals of one replicate: `counts @ sums`.

  Reduce to one row per unit first: with clusters, `sums` holds the sum over
  the cases of each cluster, so that unequal cluster sizes need no care here.

  Args:
    counts: [n] floating.
    sums: [n, k] floating, dtype of `counts`.

  Returns:
    [k] totals.
  """
  chex.assert_rank([counts, sums], [1, 2])
  chex.assert_equal_shape_prefix([counts, sums], 1)
  chex.assert_type([counts, sums], counts.dtype)
  # In this order a batch along the last axis of the counts needs no copy.
  return jnp.matmul(sums.T, counts, precision=lax.Precision.HIGHEST)


def subsample(
  key: Array, stratum: Array, quota: Array, *, dtype: jnp.dtype
) -> Array:
  """Draws units without replacement, a fixed number from each stratum.

  Args:
    key: typed threefry key of the replicate.
    stratum: [n] int32, stratum number of each unit, non-decreasing.
    quota: [n] int32, how many units the stratum of each unit gives.

  Returns:
    [n] counts in {0, 1} of the requested dtype.

  Source: specs/egogeneval.md section 6.4 (subsampling).
  """
  chex.assert_rank([stratum, quota], 1)
  chex.assert_equal_shape([stratum, quota])
  chex.assert_type([stratum, quota], jnp.int32)
  n = stratum.shape[0]
  bits = bootstrap_bits.random_bits(key, number=n)
  order = jnp.lexsort((bits, stratum))
  first = jnp.searchsorted(stratum, stratum, side="left").astype(jnp.int32)
  # Strata are contiguous, so sorting permutes within each of them only.
  chosen = jnp.arange(n, dtype=jnp.int32) - first < quota
  return jnp.zeros(n, dtype).at[order].set(chosen.astype(dtype))


def _multiply_high(a: Array, b: Array) -> Array:
  """Upper 32 bits of a 32 x 32 bit product, without 64-bit integers."""
  low = jnp.uint32(0xFFFF)
  a_high, a_low = a >> 16, a & low
  b_high, b_low = b >> 16, b & low
  first = a_high * b_low + ((a_low * b_low) >> 16)
  second = (first & low) + a_low * b_high
  return a_high * b_high + (first >> 16) + (second >> 16)
