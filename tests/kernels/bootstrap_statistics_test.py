# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Macro means, ratios, step rules and weighted quantiles."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from absl.testing import absltest, parameterized
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels import bootstrap_statistics as statistics

_QUANTILE = jax.jit(statistics.weighted_quantile, static_argnames="q")


class MacroTest(parameterized.TestCase):
  def test_macro_by_hand(self) -> None:
    found = statistics.macro_mean(jnp.array([4.0, 3.0]), jnp.array([8.0, 2.0]))
    self.assertEqual(found.value, 1.0)
    np.testing.assert_array_equal(found.protocols, [0.5, 1.5])

  def test_missing_protocol_is_marked_and_left_out(self) -> None:
    found = statistics.macro_mean(
      jnp.array([4.0, 0.0, 3.0]), jnp.array([8.0, 0.0, 2.0])
    )
    np.testing.assert_array_equal(found.present, [True, False, True])
    self.assertEqual(found.value, 1.0)

  def test_nothing_present(self) -> None:
    found = statistics.macro_mean(jnp.zeros(2), jnp.zeros(2))
    self.assertEqual(found.value, 0.0)
    self.assertFalse(jnp.any(found.present))

  def test_gradient_with_an_absent_protocol(self) -> None:
    weight = jnp.array([2.0, 0.0])
    grad = jax.grad(lambda t: statistics.macro_mean(t, weight).value)(
      jnp.array([1.0, 0.0])
    )
    np.testing.assert_array_equal(grad, [0.5, 0.0])

  def test_ratio(self) -> None:
    found = statistics.ratio(jnp.array([3.0, 3.0]), jnp.array([2.0, 0.0]))
    np.testing.assert_array_equal(found.value, [1.5, 0.0])
    np.testing.assert_array_equal(found.weight, [2.0, 0.0])


class CaseScoresTest(parameterized.TestCase):
  @parameterized.parameters(
    ([0.9, 0.6, 0.3], 0.45),
    ([0.5], 0.5),
    ([0.2, 0.8], 0.35),
    ([0.0, 1.0, 1.0], 1 / 3),
  )
  def test_mean_plus_worst_by_hand(
    self, values: list[float], expected: float
  ) -> None:
    n = len(values)
    found = statistics.case_scores(
      jnp.array(values),
      jnp.ones(n, bool),
      jnp.zeros(n, jnp.int32),
      num_cases=1,
      worst_weight=0.5,
    )
    np.testing.assert_allclose(found.value, [expected], rtol=1e-6)
    self.assertEqual(found.weight[0], n)

  def test_masked_steps_and_empty_cases(self) -> None:
    found = statistics.case_scores(
      jnp.array([1.0, jnp.nan, 3.0, 5.0]),
      jnp.array([True, False, True, False]),
      jnp.array([0, 0, 0, 2], jnp.int32),
      num_cases=3,
      worst_weight=0.25,
    )
    np.testing.assert_array_equal(found.value, [0.75 * 2 + 0.25, 0, 0])
    np.testing.assert_array_equal(found.weight, [2, 0, 0])

  def test_weight_may_be_swept(self) -> None:
    values, case = jnp.array([1.0, 3.0]), jnp.zeros(2, jnp.int32)

    def score(w: jax.Array) -> jax.Array:
      return statistics.case_scores(
        values, jnp.ones(2, bool), case, num_cases=1, worst_weight=w
      ).value[0]

    found = jax.vmap(score)(jnp.array([0.0, 0.5, 1.0]))
    np.testing.assert_array_equal(found, [2.0, 1.5, 1.0])


class QuantileTest(parameterized.TestCase):
  @settings(max_examples=40, deadline=None)
  @given(
    st.lists(
      st.tuples(st.integers(-9, 9), st.integers(0, 3)), min_size=6, max_size=6
    ),
    st.sampled_from([0.0, 0.3, 0.5, 1.0]),
  )
  def test_equals_numpy_on_the_repeated_sample(
    self, pairs: list[tuple[int, int]], q: float
  ) -> None:
    values = np.array([v for v, _ in pairs], float) / 3
    counts = np.array([c for _, c in pairs])
    with jax.enable_x64(True):
      found = _QUANTILE(
        jnp.asarray(values), jnp.asarray(counts, jnp.float64), q=q
      )
    value, weight = float(found.value), float(found.weight)
    self.assertEqual(weight, counts.sum())
    if counts.sum():
      self.assertAlmostEqual(
        value, np.quantile(np.repeat(values, counts), q), places=12
      )
    else:
      self.assertEqual(value, 0.0)

  def test_absent_values_may_be_nan(self) -> None:
    found = _QUANTILE(
      jnp.array([jnp.nan, 2.0, jnp.inf, 1.0]),
      jnp.array([0.0, 1.0, 0.0, 1.0]),
      q=0.5,
    )
    self.assertEqual(found.value, 1.5)

  @parameterized.parameters(0, 1)
  def test_smallest_sizes(self, n: int) -> None:
    found = _QUANTILE(jnp.full(n, 4.0), jnp.ones(n), q=0.5)
    self.assertEqual(found.value, 4.0 * n)
    self.assertEqual(found.weight, n)

  def test_vmap_over_counts_equals_loop_and_keeps_dtype(self) -> None:
    rng = np.random.default_rng(0)
    values = jnp.asarray(rng.normal(size=8), jnp.float32)
    counts = jnp.asarray(rng.integers(0, 3, (5, 8)), jnp.float32)
    found = jax.vmap(lambda c: _QUANTILE(values, c, q=0.3))(counts)
    loop = [_QUANTILE(values, c, q=0.3).value for c in counts]
    np.testing.assert_array_equal(found.value, loop)
    self.assertEqual(found.value.dtype, jnp.float32)

  def test_gradient_of_the_median(self) -> None:
    grad = jax.grad(lambda v: _QUANTILE(v, jnp.ones(4), q=0.5).value)(
      jnp.array([3.0, 1.0, 2.0, 9.0])
    )
    np.testing.assert_array_equal(grad, [0.5, 0.0, 0.5, 0.0])


if __name__ == "__main__":
  absltest.main()
