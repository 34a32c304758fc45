# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Weighted ranks and rank correlations against SciPy and by hand."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import scipy.stats
from absl.testing import absltest, parameterized
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels import ranks

_SMALL = st.lists(
  st.tuples(st.integers(-3, 3), st.integers(-3, 3)), min_size=7, max_size=7
)


def _ones(x: np.ndarray) -> jax.Array:
  return jnp.ones(len(x), x.dtype)


_RANKS = jax.jit(ranks.average_ranks)
_RHO = jax.jit(ranks.spearman)
_TAU = jax.jit(ranks.kendall_tau_b)
_PEARSON = jax.jit(ranks.pearson)
_GRADIENT = jax.jit(
  jax.grad(lambda x, y: ranks.spearman(x, y, jnp.ones(3)).value)
)


class RanksTest(parameterized.TestCase):
  def setUp(self) -> None:
    super().setUp()
    self.enter_context(jax.enable_x64(True))

  def test_ranks_by_hand(self) -> None:
    found = _RANKS(jnp.array([3.0, 1.0, 3.0, 2.0]), jnp.ones(4))
    np.testing.assert_array_equal(found, [3.5, 1.0, 3.5, 2.0])

  @parameterized.parameters(1, 2, 7)
  def test_ranks_equal_scipy(self, n: int) -> None:
    x = np.random.default_rng(n).integers(0, 6, n).astype(float)
    np.testing.assert_array_equal(
      _RANKS(jnp.asarray(x), _ones(x)), scipy.stats.rankdata(x)
    )

  def test_empty(self) -> None:
    empty = jnp.zeros(0)
    self.assertEqual(_RANKS(empty, empty).shape, (0,))
    self.assertFalse(_RHO(empty, empty, empty).defined)
    self.assertFalse(_TAU(empty, empty, empty).defined)

  @settings(max_examples=40, deadline=None)
  @given(_SMALL)
  def test_correlations_equal_scipy(self, pairs: list[tuple[int, int]]) -> None:
    with jax.enable_x64(True):
      x, y = np.array(pairs, float).T
      rho = _RHO(x, y, _ones(x))
      tau = _TAU(x, y, _ones(x))
    constant = np.ptp(x) == 0 or np.ptp(y) == 0
    self.assertEqual(bool(rho.defined), not constant)
    self.assertEqual(bool(tau.defined), not constant)
    if constant:
      self.assertEqual((rho.value, tau.value), (0, 0))
      return
    self.assertAlmostEqual(rho.value, scipy.stats.spearmanr(x, y)[0], places=13)
    self.assertAlmostEqual(
      tau.value, scipy.stats.kendalltau(x, y)[0], places=13
    )

  @settings(max_examples=20, deadline=None)
  @given(_SMALL, st.lists(st.integers(0, 3), min_size=7, max_size=7))
  def test_weights_repeat_items(
    self, pairs: list[tuple[int, int]], counts: list[int]
  ) -> None:
    x, y = np.array(pairs, float).T
    a, b = np.repeat(x, counts), np.repeat(y, counts)
    with jax.enable_x64(True):
      w = jnp.asarray(counts, jnp.float64)
      rho = _RHO(x, y, w)
      tau = _TAU(x, y, w)
    if len(a) < 2 or np.ptp(a) == 0 or np.ptp(b) == 0:
      self.assertFalse(rho.defined)
      self.assertFalse(tau.defined)
      return
    self.assertAlmostEqual(rho.value, scipy.stats.spearmanr(a, b)[0], places=12)
    self.assertAlmostEqual(
      tau.value, scipy.stats.kendalltau(a, b)[0], places=12
    )

  def test_absent_items_may_be_nan(self) -> None:
    x = jnp.array([1.0, jnp.nan, 2.0, 3.0, jnp.inf])
    y = jnp.array([5.0, 0.0, 7.0, jnp.nan, 2.0])
    w = jnp.array([1.0, 0.0, 1.0, 0.0, 1.0])
    same = ([1.0, 2.0, 9.0], [5.0, 7.0, 2.0])
    self.assertAlmostEqual(_RHO(x, y, w).value, scipy.stats.spearmanr(*same)[0])
    self.assertAlmostEqual(
      _TAU(x, y, w).value, scipy.stats.kendalltau(*same)[0]
    )

  def test_constant_residue_is_not_a_correlation(self) -> None:
    # 0.1 added three times is not 0.3: centring leaves residue.
    x = jnp.full(3, 0.1)
    found = _PEARSON(x, jnp.array([1.0, 2.0, 3.0]), jnp.ones(3))
    self.assertFalse(found.defined)
    self.assertEqual(found.value, 0.0)

  def test_pearson_against_numpy(self) -> None:
    x, y = np.random.default_rng(3).normal(size=(2, 40)) + 1e4
    found = _PEARSON(jnp.asarray(x), jnp.asarray(y), _ones(x))
    self.assertAlmostEqual(found.value, np.corrcoef(x, y)[0, 1], places=9)

  def test_monotone_maps_change_nothing(self) -> None:
    x, y = np.random.default_rng(5).normal(size=(2, 12))
    base = _RHO(jnp.asarray(x), jnp.asarray(y), _ones(x)).value
    other = _RHO(jnp.asarray(np.exp(x)), jnp.asarray(y**3), _ones(x)).value
    self.assertEqual(base, other)
    swapped = _RHO(jnp.asarray(-x), jnp.asarray(y), _ones(x)).value
    self.assertAlmostEqual(swapped, -base, places=14)

  def test_vmap_over_weights_equals_loop(self) -> None:
    rng = np.random.default_rng(7)
    x, y = jnp.asarray(rng.normal(size=(2, 9)))
    w = jnp.asarray(rng.integers(0, 4, (5, 9)), jnp.float64)
    found = jax.vmap(ranks.spearman, in_axes=(None, None, 0))(x, y, w)
    loop = [_RHO(x, y, row).value for row in w[:2]]
    np.testing.assert_allclose(found.value[:2], loop, rtol=0, atol=1e-15)

  def test_padding_with_weight_zero_changes_nothing(self) -> None:
    x, y = np.random.default_rng(9).normal(size=(2, 6))
    plain = _TAU(jnp.asarray(x), jnp.asarray(y), _ones(x))
    pad = _TAU(
      jnp.asarray([*x, 0.0, 9.0]),
      jnp.asarray([*y, 1.0, 1.0]),
      jnp.asarray([1.0] * 6 + [0.0] * 2),
    )
    self.assertEqual(plain.value, pad.value)

  def test_float32_is_kept(self) -> None:
    x = jnp.arange(5, dtype=jnp.float32)
    for function in (_RHO, _TAU):
      self.assertEqual(function(x, x[::-1], x + 1).value.dtype, jnp.float32)
    self.assertEqual(_RANKS(x, x).dtype, jnp.float32)

  def test_bad_shapes_are_refused(self) -> None:
    with self.assertRaises(AssertionError):
      ranks.spearman(jnp.ones(3), jnp.ones(4), jnp.ones(3))
    with self.assertRaises(AssertionError):
      ranks.average_ranks(jnp.arange(3), jnp.arange(3))

  def test_gradients_are_finite(self) -> None:
    x = jnp.array([1.0, 1.0, 2.0])
    for y in (x, jnp.ones(3)):
      grad = _GRADIENT(x, y)
      self.assertTrue(jnp.all(jnp.isfinite(grad)))


if __name__ == "__main__":
  absltest.main()
