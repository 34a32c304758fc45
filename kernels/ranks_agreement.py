# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Agreement between a measure and people, and among people.

Conventions: a panel is one vector over systems; higher is better unless the
name says `rank`, where 1 is best. `valid` masks absent systems or rows, whose
values are ignored. Counts are returned beside values, as sums that the caller
adds up over items before dividing.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import chex
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from kernels import ranks

# 9! permutations of 9 x 9 signs take 0.1 GB; 10! would take 1.5 GB.
MAX_EXACT_ITEMS = 9


class ExactP(NamedTuple):
  """Exact two-sided p values of one panel.

  Attributes:
    spearman: share of permutations whose |rho| reaches the observed one.
    kendall: the same for tau-b.
    defined: false where a vector is constant; both shares are then 1.
  """

  spearman: Array
  kendall: Array
  defined: Array


class Icc(NamedTuple):
  """Two-way absolute-agreement intraclass correlations.

  Attributes:
    a1: ICC(A,1), a single rater.
    ak: ICC(A,k), the mean of the k raters.
    ms_rows: mean square between rows.
    ms_raters: mean square between raters.
    ms_residual: residual mean square.
    rows: number of valid rows.
    defined: false with fewer than two rows or without any variance.
  """

  a1: Array
  ak: Array
  ms_rows: Array
  ms_raters: Array
  ms_residual: Array
  rows: Array
  defined: Array


class PairwiseAgreement(NamedTuple):
  """Agreement over the pairs with a strict human preference.

  Attributes:
    agree: 1 for each pair ordered alike, 0.5 for each automatic tie.
    pairs: number of pairs with a strict human preference.
  """

  agree: Array
  pairs: Array


class Preference(NamedTuple):
  """Preference credit of each system within one ranking.

  Attributes:
    credit: [n] 1 per comparison won, 0.5 per tie.
    comparisons: [n] number of comparisons that the system took part in.
  """

  credit: Array
  comparisons: Array


def exact_permutation_p(x: Array, y: Array) -> ExactP:
  """Exact two-sided p of rho and tau-b over all n! permutations of `y`.

  Both numerators are integers (with doubled, centred ranks), so the
  comparison with the observed value is exact in either precision.

  Args:
    x: [n] floating values, n from 2 to `MAX_EXACT_ITEMS`.
    y: [n] floating values, dtype of `x`.

  Returns:
    Shares in (0, 1]. Source: specs/egogeneval.md section 6.5.

  Raises:
    ValueError: n is out of range.
  """
  chex.assert_rank([x, y], 1)
  chex.assert_equal_shape([x, y])
  n = x.shape[0]
  if not 2 <= n <= MAX_EXACT_ITEMS:
    raise ValueError(f"exact p needs 2 to {MAX_EXACT_ITEMS} items, found {n}")
  order = np.array(list(itertools.permutations(range(n))))
  ones = jnp.ones_like(x)
  used = jnp.ones(n, bool)
  rank_x = 2 * ranks.average_ranks(x, ones) - (n + 1)
  rank_y = 2 * ranks.average_ranks(y, ones) - (n + 1)
  sign_x, sign_y = ranks.pair_signs(x, used), ranks.pair_signs(y, used)
  defined = jnp.any(sign_x != 0) & jnp.any(sign_y != 0)
  rho = jnp.abs(
    jnp.matmul(rank_y[order], rank_x, precision=lax.Precision.HIGHEST)
  )
  permuted = sign_y[order[:, :, None], order[:, None, :]]
  tau = jnp.abs(jnp.sum(permuted * sign_x, axis=(1, 2)))
  # The identity is the first permutation.
  p_rho = jnp.mean((rho >= rho[0]).astype(x.dtype))
  p_tau = jnp.mean((tau >= tau[0]).astype(x.dtype))
  one = jnp.ones((), x.dtype)
  return ExactP(
    jnp.where(defined, p_rho, one), jnp.where(defined, p_tau, one), defined
  )


def icc_agreement(ratings: Array, valid: Array) -> Icc:
  """ICC(A,1) and ICC(A,k) of McGraw and Wong, without replications.

  `(MSR - MSE) / (MSR + (k - 1) MSE + k (MSC - MSE) / n)` and
  `(MSR - MSE) / (MSR + (MSC - MSE) / n)`.

  Args:
    ratings: [n, k] floating, k raters of n rows, k at least 2.
    valid: [n] bool; rows to use.

  Returns:
    The coefficients and mean squares, zeros where undefined. Source:
    specs/egogeneval.md section 6.6.
  """
  chex.assert_rank([ratings, valid], [2, 1])
  chex.assert_equal_shape_prefix([ratings, valid], 1)
  chex.assert_type(ratings, float)
  k = ratings.shape[1]
  if k < 2:
    raise ValueError(f"an ICC needs at least two raters, found {k}")
  w = valid.astype(ratings.dtype)
  n = jnp.sum(w)
  enough = n >= 2
  safe_n = jnp.where(enough, n, 2)
  x = jnp.where(valid[:, None], ratings, 0)
  grand = jnp.sum(x) / (safe_n * k)
  row_mean = jnp.mean(x, axis=1)
  rater_mean = jnp.sum(x, axis=0) / safe_n
  rest = x - row_mean[:, None] - rater_mean[None, :] + grand
  ms_rows = k * jnp.sum(w * (row_mean - grand) ** 2) / (safe_n - 1)
  ms_raters = safe_n * jnp.sum((rater_mean - grand) ** 2) / (k - 1)
  ms_residual = jnp.sum(w[:, None] * rest**2) / ((safe_n - 1) * (k - 1))
  over = (ms_raters - ms_residual) / safe_n
  den_1 = ms_rows + (k - 1) * ms_residual + k * over
  den_k = ms_rows + over
  defined = enough & (den_1 > 0) & (den_k > 0)
  zero = jnp.zeros((), ratings.dtype)

  def ratio(den: Array) -> Array:
    safe = jnp.where(defined, den, 1)
    return jnp.where(defined, (ms_rows - ms_residual) / safe, zero)

  return Icc(
    ratio(den_1),
    ratio(den_k),
    jnp.where(enough, ms_rows, zero),
    jnp.where(enough, ms_raters, zero),
    jnp.where(enough, ms_residual, zero),
    jnp.sum(valid.astype(jnp.int32)),
    defined,
  )


def pairwise_agreement(
  automatic: Array, human: Array, valid: Array
) -> PairwiseAgreement:
  """Does the measure order each pair as people do? Half credit for its ties.

  Args:
    automatic: [n] floating scores, higher better.
    human: [n] floating scores, higher better, dtype of `automatic`.
    valid: [n] bool; systems to use.

  Returns:
    Sums over pairs, in the dtype of the scores. Source:
    specs/egogeneval.md section 6.6.
  """
  chex.assert_rank([automatic, human, valid], 1)
  chex.assert_equal_shape([automatic, human, valid])
  chex.assert_type([automatic, human], automatic.dtype)
  sign_a = ranks.pair_signs(automatic, valid)
  sign_h = ranks.pair_signs(human, valid)
  strict = jnp.abs(sign_h)
  # Every pair appears twice, hence the halves.
  pairs = jnp.sum(strict) / 2
  agree = (pairs + jnp.sum(sign_a * sign_h) / 2) / 2
  return PairwiseAgreement(agree, pairs)


def preference_credit(rank: Array, valid: Array) -> Preference:
  """Pairwise wins of each system within one ranking; a tie counts half.

  Args:
    rank: [n] floating, 1 = best, ties allowed.
    valid: [n] bool; systems that were ranked.

  Returns:
    Sums per system, zero for absent ones. Source: specs/orbia.md
    section 14.1.
  """
  chex.assert_rank([rank, valid], 1)
  chex.assert_equal_shape([rank, valid])
  chex.assert_type(rank, float)
  used = valid.astype(rank.dtype)
  comparisons = used * (jnp.sum(used) - 1)
  # credit = wins + ties / 2 = (comparisons + wins - losses) / 2.
  lead = -jnp.sum(ranks.pair_signs(rank, valid), axis=1)
  return Preference((comparisons + lead) / 2, comparisons)
