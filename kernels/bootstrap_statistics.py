# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Statistics of one bootstrap replicate.

Conventions: a replicate is a vector of counts (how often each item occurs).
Linear statistics work on totals, which `bootstrap.resample_sums` makes;
quantiles work on the counts themselves. Results carry the count behind them:
0 means that the replicate holds nothing to measure, and the value is then 0.

Replicates differ in their counts only: `vmap` over the counts and leave the
values unbatched, so that the sort inside a quantile is done once.
"""

from __future__ import annotations

from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
from jax import Array


class Estimate(NamedTuple):
  """A value and the count or weight behind it.

  Attributes:
    value: the statistic; 0 where the weight is 0.
    weight: what the statistic was taken over.
  """

  value: Array
  weight: Array


class Macro(NamedTuple):
  """Mean over protocols of protocol means.

  Attributes:
    value: scalar, mean over the protocols that are present; 0 without any.
    protocols: [p] protocol means; 0 where absent.
    present: [p] bool, whether the replicate holds the protocol.
  """

  value: Array
  protocols: Array
  present: Array


def ratio(total: Array, weight: Array) -> Estimate:
  """Ratio of totals, elementwise: a mean, or a rate with its own denominator.

  Args:
    total: floating totals.
    weight: totals of the denominator, same shape and dtype.

  Returns:
    total / weight and the weight.
  """
  chex.assert_equal_shape([total, weight])
  chex.assert_type([total, weight], total.dtype)
  some = weight > 0
  value = jnp.where(some, total / jnp.where(some, weight, 1), 0)
  return Estimate(value, weight)


def macro_mean(total: Array, weight: Array) -> Macro:
  """Protocol means and their plain mean.

  Args:
    total: [p] sum of case values in each protocol.
    weight: [p] number of cases in each protocol, dtype of `total`.

  Returns:
    The macro mean. A protocol of weight 0 is absent and is left out of it;
    the caller decides whether to keep such a replicate. Source:
    specs/egogeneval.md sections 6.2 and 6.3.
  """
  chex.assert_rank([total, weight], 1)
  means = ratio(total, weight)
  present = weight > 0
  number = jnp.sum(present.astype(total.dtype))
  overall = ratio(jnp.sum(means.value), number)
  return Macro(overall.value, means.value, present)


def case_scores(
  values: Array,
  valid: Array,
  case: Array,
  *,
  num_cases: int,
  worst_weight: float | Array,
) -> Estimate:
  """Steps to cases: `(1 - w) * mean + w * min` over the valid steps.

  Args:
    values: [n] floating step values.
    valid: [n] bool.
    case: [n] int32 case number of each step.
    num_cases: c.
    worst_weight: w in [0, 1]: 0 is the plain mean, 0.5 mean-plus-worst.

  Returns:
    [c] case values and step counts. Source: specs/egogeneval.md sections
    4.15 and 7.6.
  """
  chex.assert_rank([values, valid, case], 1)
  chex.assert_equal_shape([values, valid, case])
  chex.assert_type(values, float)
  one = valid.astype(values.dtype)
  count = jax.ops.segment_sum(one, case, num_segments=num_cases)
  total = jax.ops.segment_sum(
    jnp.where(valid, values, 0), case, num_segments=num_cases
  )
  worst = jax.ops.segment_min(
    jnp.where(valid, values, jnp.inf), case, num_segments=num_cases
  )
  mean = ratio(total, count).value
  worst = jnp.where(count > 0, worst, 0)
  w = jnp.asarray(worst_weight, values.dtype)
  return Estimate((1 - w) * mean + w * worst, count)


def weighted_quantile(values: Array, counts: Array, *, q: float) -> Estimate:
  """Quantile of the sample that repeats each value `counts` times.

  NumPy's default (linear) definition: with N items in all, interpolate
  between the sorted items number floor(h) and floor(h) + 1, h = (N - 1) q.
  `q=0.5` is the NumPy median.

  Args:
    values: [n] floating; ignored (NaN included) where the count is 0.
    counts: [n] non-negative whole numbers, dtype of `values`.
    q: quantile in [0, 1].

  Returns:
    The quantile and N.
  """
  chex.assert_rank([values, counts], 1)
  chex.assert_equal_shape([values, counts])
  chex.assert_type([values, counts], values.dtype)
  n = values.shape[0]
  order = jnp.argsort(values)
  x, cumulative = values[order], jnp.cumsum(counts[order])
  total = cumulative[-1] if n else jnp.zeros((), values.dtype)
  if n == 0:
    return Estimate(total, total)
  h = jnp.maximum(total - 1, 0) * jnp.asarray(q, values.dtype)
  lower = jnp.floor(h)
  upper = jnp.minimum(lower + 1, jnp.maximum(total - 1, 0))

  def item(k: Array) -> Array:
    # The first item whose cumulative count exceeds k.
    position = jnp.sum((cumulative <= k).astype(jnp.int32))
    return x[jnp.minimum(position, n - 1)]

  low, high = item(lower), item(upper)
  value = low + (high - low) * (h - lower)
  return Estimate(jnp.where(total > 0, value, 0), total)
