# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Human alignment in the forms of the three papers, on arrays.

Conventions: ranks are [raters, items, systems], 1 = best, ties averaged, NaN
where a rater did not rank; scores are [items, systems], higher is better.
Everything is float64.

- EgoGenEval: ranks become utilities `(n - r) / (n - 1)`, averaged over the
  raters of an item, then follow the same path as the automatic score.
- Orbia: every pair within a ranking gives credit 1, 0.5 or 0; a system's
  preference is its mean credit over comparisons.
- PDI-Bench: each system has the mean of its expert ratings.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from kernels import ranks, ranks_agreement

_T = TypeVar("_T")


@dataclasses.dataclass(frozen=True)
class RankAgreement:
  """Agreement of two vectors over systems.

  Attributes:
    spearman: rho; NaN where a vector is constant.
    kendall_tau_b: tau-b; NaN where a vector is constant.
    exact_p_spearman: exact two-sided p of rho; NaN for more systems than
      `ranks_agreement.MAX_EXACT_ITEMS` or a constant vector.
    exact_p_kendall: the same for tau-b.
  """

  spearman: float
  kendall_tau_b: float
  exact_p_spearman: float
  exact_p_kendall: float


@dataclasses.dataclass(frozen=True)
class ItemAgreement:
  """Agreement within items.

  Attributes:
    spearman: [i] rho of each item; NaN where undefined.
    agree: [i] pairs ordered alike, automatic ties counting half.
    pairs: [i] pairs with a strict human preference.
  """

  spearman: np.ndarray
  agree: np.ndarray
  pairs: np.ndarray

  @property
  def mean_spearman(self) -> float:
    """Mean over the items that have a correlation."""
    return float(np.nanmean(self.spearman))

  @property
  def undefined(self) -> int:
    """Items without a correlation: a vector is constant."""
    return int(np.isnan(self.spearman).sum())

  @property
  def pooled_agreement(self) -> float:
    """Agreement over all pairs of all items."""
    return float(self.agree.sum() / self.pairs.sum())

  @property
  def mean_agreement(self) -> float:
    """Mean over items of the agreement within the item."""
    some = self.pairs > 0
    return float(np.mean(self.agree[some] / self.pairs[some]))


def rank_agreement(a: np.ndarray, b: np.ndarray) -> RankAgreement:
  """Spearman, Kendall and exact p of two vectors over systems.

  Args:
    a: [n] finite values.
    b: [n] finite values.

  Returns:
    The agreement. Source: specs/egogeneval.md section 6.5.
  """
  with jax.enable_x64(True):
    x, y = jnp.asarray(a, jnp.float64), jnp.asarray(b, jnp.float64)
    ones = jnp.ones_like(x)
    rho = jax.jit(ranks.spearman)(x, y, ones)
    tau = jax.jit(ranks.kendall_tau_b)(x, y, ones)
    exact = (np.nan, np.nan)
    if rho.defined and 2 <= len(a) <= ranks_agreement.MAX_EXACT_ITEMS:
      found = jax.jit(ranks_agreement.exact_permutation_p)(x, y)
      exact = (float(found.spearman), float(found.kendall))
    return RankAgreement(
      float(rho.value) if rho.defined else np.nan,
      float(tau.value) if tau.defined else np.nan,
      *exact,
    )


def utilities(rank: np.ndarray) -> np.ndarray:
  """Ranks to utilities: 1 for the best of n systems, 0 for the last.

  Args:
    rank: [..., systems], 1 = best.

  Returns:
    [..., systems]. Source: specs/egogeneval.md section 6.6.
  """
  n = rank.shape[-1]
  return (n - np.asarray(rank, np.float64)) / (n - 1)


def preference(rank: np.ndarray) -> np.ndarray:
  """Mean pairwise credit of each system over all its comparisons.

  Args:
    rank: [raters, items, systems]; NaN where a video was not ranked.

  Returns:
    [systems]; NaN for a system that nobody compared. Source:
    specs/orbia.md section 14.1.
  """
  flat = np.asarray(rank, np.float64).reshape(-1, rank.shape[-1])
  found = _vmapped(
    ranks_agreement.preference_credit, flat, valid=np.isfinite(flat)
  )
  number = found.comparisons.sum(axis=0)
  with np.errstate(invalid="ignore"):
    return np.asarray(found.credit.sum(axis=0) / number)


def item_agreement(automatic: np.ndarray, human: np.ndarray) -> ItemAgreement:
  """Spearman and pairwise agreement within each item.

  Args:
    automatic: [items, systems].
    human: [items, systems]; a NaN in either leaves the system out of the
      item.

  Returns:
    The agreement. Source: specs/egogeneval.md section 6.6.
  """
  valid = np.isfinite(automatic) & np.isfinite(human)
  rho = _vmapped(_masked_spearman, automatic, human, valid=valid)
  pairs = _vmapped(
    ranks_agreement.pairwise_agreement, automatic, human, valid=valid
  )
  return ItemAgreement(
    spearman=np.where(rho.defined, rho.value, np.nan),
    agree=np.asarray(pairs.agree),
    pairs=np.asarray(pairs.pairs),
  )


def icc(ratings: np.ndarray) -> ranks_agreement.Icc:
  """ICC(A,1) and ICC(A,k) of rows rated by every rater, in float64.

  Args:
    ratings: [raters, ...]; the rows are all other axes together, and rows
      with a NaN are left out.

  Returns:
    Coefficients and mean squares. Source: specs/egogeneval.md section 6.6.
  """
  rows = np.asarray(ratings, np.float64).reshape(len(ratings), -1).T
  valid = np.asarray(np.isfinite(rows).all(axis=1))
  with jax.enable_x64(True):
    found = jax.jit(ranks_agreement.icc_agreement)(
      jnp.asarray(np.where(valid[:, None], rows, 0.0)), jnp.asarray(valid)
    )
    return jax.tree.map(np.asarray, found)


def _masked_spearman(x: Array, y: Array, valid: Array) -> ranks.Correlation:
  return ranks.spearman(x, y, valid.astype(x.dtype))


def _vmapped(
  kernel: Callable[..., _T], *arrays: np.ndarray, valid: np.ndarray
) -> _T:
  """Applies a kernel to every row in float64; masked entries become 0."""
  with jax.enable_x64(True):
    inputs = [
      jnp.asarray(np.where(valid, array, 0.0), jnp.float64) for array in arrays
    ]
    found = _batched(kernel)(*inputs, jnp.asarray(valid))
    return jax.tree.map(np.asarray, found)


@functools.cache
def _batched(kernel: Callable[..., _T]) -> Callable[..., _T]:
  """Compiled once for a kernel, not once for a call."""
  return jax.jit(jax.vmap(kernel))
