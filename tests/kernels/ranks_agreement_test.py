# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Exact p, ICC, pairwise agreement and preferences."""

from __future__ import annotations

import itertools
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pingouin
import scipy.stats
from absl.testing import absltest, parameterized

from kernels import ranks_agreement

_ICC = jax.jit(ranks_agreement.icc_agreement)
_EXACT = jax.jit(ranks_agreement.exact_permutation_p)
_PAIRWISE = jax.jit(ranks_agreement.pairwise_agreement)


class AgreementTest(parameterized.TestCase):
  def setUp(self) -> None:
    super().setUp()
    self.enter_context(jax.enable_x64(True))

  def test_one_adjacent_swap_of_six_is_one_in_sixty(self) -> None:
    # The published exact p, specs/egogeneval.md section 6.5.
    found = _EXACT(jnp.arange(6.0), jnp.array([0.0, 1.0, 2.0, 3.0, 5.0, 4.0]))
    self.assertEqual(found.spearman, 12 / 720)
    self.assertEqual(found.kendall, 12 / 720)

  @parameterized.product(dtype=[jnp.float32, jnp.float64], seed=[0, 1, 2])
  def test_exact_p_equals_enumeration(
    self, dtype: jnp.dtype, seed: int
  ) -> None:
    x, y = np.random.default_rng(seed).integers(0, 4, (2, 5)).astype(float)
    x[0] += 10  # never constant
    y[1] += 10

    def share(statistic) -> float:
      base = abs(statistic(x, y)[0])
      others = [
        abs(statistic(x, np.array(p))[0]) for p in itertools.permutations(y)
      ]
      return float(np.mean(np.array(others) >= base - 1e-9))

    found = _EXACT(jnp.asarray(x, dtype), jnp.asarray(y, dtype))
    self.assertAlmostEqual(found.spearman, share(scipy.stats.spearmanr), 6)
    self.assertAlmostEqual(found.kendall, share(scipy.stats.kendalltau), 6)

  def test_constant_vector_has_no_p(self) -> None:
    found = _EXACT(jnp.ones(3), jnp.arange(3.0))
    self.assertFalse(found.defined)
    self.assertEqual((found.spearman, found.kendall), (1.0, 1.0))

  @parameterized.parameters(1, 10)
  def test_exact_p_refuses_other_sizes(self, n: int) -> None:
    with self.assertRaisesRegex(ValueError, "2 to 9"):
      _EXACT(jnp.arange(1.0 * n), jnp.ones(n))

  @parameterized.parameters((6, 4), (11, 3), (2, 2))
  def test_icc_equals_pingouin(self, n: int, k: int) -> None:
    rng = np.random.default_rng(n)
    ratings = rng.normal(size=(n, 1)) + 0.6 * rng.normal(size=(n, k))
    ratings += rng.normal(size=k)
    found = _ICC(jnp.asarray(ratings), jnp.ones(n, bool))
    rows = [(i, j, ratings[i, j]) for i in range(n) for j in range(k)]
    frame = pd.DataFrame(rows, columns=["item", "rater", "value"])
    if n > 2:
      with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pingouin against pandas 3
        table = pingouin.intraclass_corr(
          frame, targets="item", raters="rater", ratings="value"
        ).set_index("Type")["ICC"]
      names = list(table.index)
      self.assertAlmostEqual(found.a1, table[names[1]], places=6)
      self.assertAlmostEqual(found.ak, table[names[4]], places=6)
    self.assertEqual(found.rows, n)

  def test_icc_by_hand(self) -> None:
    # Perfect agreement, then a constant shift of one rater: MSC > 0 only.
    same = jnp.array([[1.0, 1.0], [3.0, 3.0]])
    valid = jnp.ones(2, bool)
    self.assertEqual(_ICC(same, valid).a1, 1.0)
    shifted = jnp.array([[1.0, 2.0], [3.0, 4.0]])
    found = _ICC(shifted, valid)
    self.assertEqual(
      (found.ms_rows, found.ms_raters, found.ms_residual), (4.0, 1.0, 0.0)
    )
    # (4 - 0) / (4 + 0 + 2 (1 - 0) / 2) and (4 - 0) / (4 + (1 - 0) / 2).
    self.assertAlmostEqual(found.a1, 4 / 5)
    self.assertAlmostEqual(found.ak, 4 / 4.5)

  def test_icc_ignores_invalid_rows(self) -> None:
    ratings = np.random.default_rng(0).normal(size=(5, 3))
    padded = np.concatenate([ratings, np.full((2, 3), np.nan)])
    valid = jnp.asarray([True] * 5 + [False] * 2)
    plain = _ICC(jnp.asarray(ratings), jnp.ones(5, bool))
    found = _ICC(jnp.asarray(padded), valid)
    np.testing.assert_allclose(found.a1, plain.a1, atol=1e-14)

  def test_icc_without_variance_or_rows(self) -> None:
    flat = _ICC(jnp.ones((4, 2)), jnp.ones(4, bool))
    one = _ICC(jnp.ones((4, 2)), jnp.arange(4) == 0)
    for found in (flat, one):
      self.assertFalse(found.defined)
      self.assertEqual((found.a1, found.ak), (0.0, 0.0))
    with self.assertRaisesRegex(ValueError, "two raters"):
      _ICC(jnp.ones((4, 1)), jnp.ones(4, bool))

  @parameterized.parameters(
    ([3, 1, 2], [3, 1, 2], 3, 3),
    ([3, 1, 2], [1, 3, 2], 0, 3),
    ([1, 1, 2], [2, 1, 3], 2.5, 3),
    ([1, 2, 3], [1, 1, 2], 2, 2),
    ([1, 2, 3], [2, 2, 2], 0, 0),
  )
  def test_pairwise_by_hand(self, auto, human, agree, pairs) -> None:
    found = _PAIRWISE(
      jnp.asarray(auto, jnp.float32),
      jnp.asarray(human, jnp.float32),
      jnp.ones(3, bool),
    )
    self.assertEqual((found.agree, found.pairs), (agree, pairs))
    self.assertEqual(found.agree.dtype, jnp.float32)

  def test_pairwise_leaves_absent_systems_out(self) -> None:
    found = _PAIRWISE(
      jnp.array([1.0, jnp.nan, 2.0]),
      jnp.array([1.0, 5.0, 2.0]),
      jnp.array([True, False, True]),
    )
    self.assertEqual((found.agree, found.pairs), (1, 1))

  def test_preference_by_hand(self) -> None:
    # Ranks 1, 2.5, 2.5 and one absent: two wins; a tie and a loss each.
    found = ranks_agreement.preference_credit(
      jnp.array([1.0, 2.5, 2.5, jnp.nan]),
      jnp.array([True, True, True, False]),
    )
    np.testing.assert_array_equal(found.credit, [2.0, 0.5, 0.5, 0.0])
    np.testing.assert_array_equal(found.comparisons, [2, 2, 2, 0])


if __name__ == "__main__":
  absltest.main()
