# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Ranks and rank correlations of weighted samples.

Conventions: items lie along the only axis. A weight says how often an item
occurs in the sample: 1 for a plain sample, a resampling count in a bootstrap
replicate, 0 for an item that is absent (its value is then ignored, NaN
included). Equal values share the average of their ranks; the smallest value
has rank 1. A correlation lies in [-1, 1]; it is undefined for a constant
vector, which `defined` reports and for which `value` is 0.

To resample one data set many times, `vmap` over the weights only: the sort of
the values is then done once, not once per replicate.
"""

from __future__ import annotations

from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
from jax import Array


class Correlation(NamedTuple):
  """A correlation and whether it exists.

  Attributes:
    value: scalar in [-1, 1]; 0 where undefined.
    defined: scalar bool; false for a constant vector or an empty sample.
  """

  value: Array
  defined: Array


def average_ranks(x: Array, weights: Array) -> Array:
  """Ranks, ties averaged: `W(x < x_i) + (W(x == x_i) + 1) / 2`.

  `W` sums the weights of the items that satisfy the condition, so integer
  weights give the ranks within the sample that repeats each item.

  Args:
    x: [n] floating values.
    weights: [n] non-negative, dtype of `x`.

  Returns:
    [n] ranks in the dtype of `x`; meaningless where the weight is 0.

  Source: specs/egogeneval.md section 6.5; `scipy.stats.rankdata` for unit
  weights.
  """
  _check_sample(x, weights)
  n = x.shape[0]
  if n == 0:
    return x
  order = jnp.argsort(x)
  x_sorted, w_sorted = x[order], weights[order]
  is_new = jnp.concatenate(
    [jnp.zeros((1,), bool), x_sorted[1:] != x_sorted[:-1]]
  )
  group = jnp.cumsum(is_new.astype(jnp.int32))
  group_weight = jax.ops.segment_sum(
    w_sorted, group, num_segments=n, indices_are_sorted=True
  )
  below = jnp.cumsum(group_weight) - group_weight
  group_rank = below + (group_weight + 1) / 2
  return jnp.zeros_like(x).at[order].set(group_rank[group])


def pearson(x: Array, y: Array, weights: Array) -> Correlation:
  """Weighted product-moment correlation, in two passes.

  Args:
    x: [n] floating values.
    y: [n] floating values, dtype of `x`.
    weights: [n] non-negative, dtype of `x`.

  Returns:
    The correlation; undefined where a vector is constant over the items of
    positive weight.
  """
  _check_sample(x, y, weights)
  used = weights > 0
  total = jnp.sum(weights)
  safe_total = jnp.where(total > 0, total, 1)

  def centred(v: Array) -> Array:
    v = jnp.where(used, v, 0)
    v = jnp.where(used, v - jnp.sum(weights * v) / safe_total, 0)
    # Scaled, so that the product of the variances cannot overflow.
    largest = jax.lax.stop_gradient(jnp.max(jnp.abs(v), initial=0))
    return v / jnp.where(largest > 0, largest, 1)

  dx, dy = centred(x), centred(y)
  var_x, var_y = jnp.sum(weights * dx * dx), jnp.sum(weights * dy * dy)
  # A constant vector leaves rounding residue in `dx`: ask the values.
  defined = _varies(x, used) & _varies(y, used) & (var_x > 0) & (var_y > 0)
  # One root of the product: exactly 1 for a vector with itself.
  scale = jnp.where(defined, jnp.sqrt(jnp.where(defined, var_x * var_y, 1)), 1)
  value = jnp.clip(jnp.sum(weights * dx * dy) / scale, -1, 1)
  return Correlation(jnp.where(defined, value, 0), defined)


def spearman(x: Array, y: Array, weights: Array) -> Correlation:
  """Spearman's rho: Pearson correlation of average ranks.

  Args:
    x: [n] floating values.
    y: [n] floating values, dtype of `x`.
    weights: [n] non-negative, dtype of `x`.

  Returns:
    The correlation. Source: specs/egogeneval.md section 6.5;
    `scipy.stats.spearmanr` for unit weights.
  """
  _check_sample(x, y, weights)
  return pearson(average_ranks(x, weights), average_ranks(y, weights), weights)


def kendall_tau_b(x: Array, y: Array, weights: Array) -> Correlation:
  """Kendall's tau-b, corrected for ties, over all weighted pairs.

  `(concordant - discordant) / sqrt(pairs untied in x * pairs untied in y)`.
  Memory grows with n squared.

  Args:
    x: [n] floating values.
    y: [n] floating values, dtype of `x`.
    weights: [n] non-negative, dtype of `x`.

  Returns:
    The correlation. Source: specs/egogeneval.md section 6.5;
    `scipy.stats.kendalltau` for unit weights.
  """
  _check_sample(x, y, weights)
  used = weights > 0
  sign_x, sign_y = pair_signs(x, used), pair_signs(y, used)
  pair_weight = weights[:, None] * weights[None, :]
  untied_x = jnp.sum(pair_weight * jnp.abs(sign_x))
  untied_y = jnp.sum(pair_weight * jnp.abs(sign_y))
  defined = (untied_x > 0) & (untied_y > 0)
  scale = jnp.where(defined, jnp.sqrt(untied_x * untied_y), 1)
  value = jnp.clip(jnp.sum(pair_weight * sign_x * sign_y) / scale, -1, 1)
  return Correlation(jnp.where(defined, value, 0), defined)


def pair_signs(x: Array, used: Array) -> Array:
  """[n, n] signs of `x_i - x_j`; 0 where either item is unused.

  Args:
    x: [n] floating values.
    used: [n] bool.

  Returns:
    [n, n] values in {-1, 0, 1}, dtype of `x`.
  """
  chex.assert_rank([x, used], 1)
  both = used[:, None] & used[None, :]
  greater = (x[:, None] > x[None, :]).astype(x.dtype)
  return jnp.where(both, greater - greater.T, 0)


def _varies(x: Array, used: Array) -> Array:
  low = jnp.min(jnp.where(used, x, jnp.inf), initial=jnp.inf)
  high = jnp.max(jnp.where(used, x, -jnp.inf), initial=-jnp.inf)
  return high > low


def _check_sample(*arrays: Array) -> None:
  chex.assert_rank(arrays, 1)
  chex.assert_equal_shape(arrays)
  chex.assert_type(arrays, arrays[0].dtype)
  chex.assert_type(arrays[0], float)
