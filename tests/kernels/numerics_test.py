# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Safe functions and masked statistics against NumPy."""

import jax
import jax.numpy as jnp
import jax.test_util
import numpy as np
from absl.testing import absltest, parameterized
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels import numerics

_STATS = {
  "mean": (numerics.masked_mean, np.mean),
  "std": (numerics.masked_std, np.std),
  "rms": (numerics.masked_rms, lambda a: np.sqrt(np.mean(a * a))),
  "median": (numerics.masked_median, np.median),
  "mad": (
    numerics.masked_mad,
    lambda a: np.median(np.abs(a - np.median(a))),
  ),
  "p75": (
    lambda x, v: numerics.masked_quantile(x, v, q=0.75),
    lambda a: np.percentile(a, 75),
  ),
}


def _data(size, seed):
  rng = np.random.default_rng(seed)
  return rng.normal(size=size), rng.random(size) < 0.7


class StatisticsTest(parameterized.TestCase):
  @parameterized.product(name=list(_STATS), size=[1, 2, 7, 40])
  def test_equals_numpy_on_the_valid_items(self, name, size):
    ours, numpy_form = _STATS[name]
    values, valid = _data(size, size)
    valid[0] = True
    # What is masked must not matter.
    values = np.where(valid, values, np.nan)
    with jax.enable_x64(True):
      found = ours(jnp.asarray(values), jnp.asarray(valid))
    self.assertEqual(found.value.dtype, np.float64)
    self.assertEqual(int(found.count), valid.sum())
    np.testing.assert_allclose(found.value, numpy_form(values[valid]), 1e-12)

  @parameterized.parameters(*_STATS)
  def test_nothing_valid_gives_zero_and_count_zero(self, name):
    ours, _ = _STATS[name]
    for size in (0, 3):
      found = ours(jnp.full(size, jnp.nan), jnp.zeros(size, bool))
      self.assertEqual((float(found.value), int(found.count)), (0.0, 0))

  @parameterized.parameters(*_STATS)
  def test_a_valid_nan_propagates(self, name):
    ours, _ = _STATS[name]
    found = ours(jnp.array([1.0, jnp.nan, 2.0]), jnp.ones(3, bool))
    self.assertTrue(np.isnan(found.value))

  @parameterized.parameters(*_STATS)
  def test_gradient_is_finite_where_all_items_are_equal(self, name):
    ours, _ = _STATS[name]
    valid = jnp.array([True, True, False])
    grad = jax.grad(lambda x: ours(x, valid).value)(jnp.array([2.0, 2.0, 5.0]))
    self.assertTrue(np.all(np.isfinite(grad)))
    self.assertEqual(float(grad[2]), 0.0)

  def test_large_arrays_select_exactly(self):
    # More than one counting block, with a remainder and repeated values.
    values = np.random.default_rng(0).integers(0, 50, 20001).astype(np.float32)
    valid = np.random.default_rng(1).random(20001) < 0.5
    found = jax.jit(numerics.masked_median)(values, valid)
    self.assertEqual(float(found.value), np.median(values[valid]))

  def test_median_of_infinities_and_signed_zeros(self):
    for values in ([-np.inf, 1.0, np.inf], [np.inf, np.inf, 2.0, -0.0], [-0.0]):
      array = np.array(values, np.float32)
      found = numerics.masked_median(
        jnp.asarray(array), jnp.ones(len(values), bool)
      )
      self.assertEqual(float(found.value), np.median(array))

  def test_median_gradient_goes_to_the_two_middle_items(self):
    grad = jax.grad(
      lambda x: numerics.masked_median(x, jnp.ones(4, bool)).value
    )(jnp.array([4.0, 1.0, 3.0, 2.0]))
    np.testing.assert_array_equal(grad, [0, 0, 0.5, 0.5])

  def test_equal_items_give_a_quantile_without_rounding(self):
    # "Strictly below the quantile" must remove all of them.
    value = np.float32(0.1)
    found = numerics.masked_quantile(
      jnp.full(6, value), jnp.ones(6, bool), q=0.75
    )
    self.assertEqual(np.float32(found.value), value)

  def test_quantile_outside_the_unit_interval_is_refused(self):
    with self.assertRaisesRegex(ValueError, "q must be"):
      numerics.masked_quantile(jnp.ones(2), jnp.ones(2, bool), q=1.5)

  def test_vmap_equals_a_loop_and_jit(self):
    values, valid = _data((3, 9), 5)
    values = values.astype(np.float32)
    batched = jax.jit(jax.vmap(numerics.masked_median))(values, valid)
    for row in range(3):
      one = numerics.masked_median(
        jnp.asarray(values[row]), jnp.asarray(valid[row])
      )
      self.assertEqual(float(batched.value[row]), float(one.value))

  def test_wrong_types_are_refused(self):
    with self.assertRaises(AssertionError):
      numerics.masked_mean(jnp.ones(3), jnp.ones(3))
    with self.assertRaises(AssertionError):
      numerics.masked_mean(jnp.ones((3, 1)), jnp.ones((3, 1), bool))

  @settings(max_examples=25, deadline=None)
  @given(st.lists(st.floats(width=32, allow_nan=False), min_size=8, max_size=8))
  def test_median_equals_numpy_for_any_floats(self, values):
    array = np.array(values, np.float32)
    with np.errstate(all="ignore"):
      expected = np.sort(array)[3:5]
    found = numerics._select(
      jnp.asarray(array), jnp.ones(8, bool), jnp.int32(3)
    )
    np.testing.assert_array_equal(np.array(found), expected)


class SafeTest(parameterized.TestCase):
  def test_norm_and_root_have_zero_gradient_at_zero(self):
    grad = jax.grad(lambda x: numerics.safe_norm(x, axis=0))(jnp.zeros(3))
    np.testing.assert_array_equal(grad, 0)
    self.assertEqual(float(jax.grad(numerics.safe_sqrt)(0.0)), 0.0)
    self.assertTrue(np.isnan(numerics.safe_sqrt(jnp.float32(jnp.nan))))

  def test_division_fills_and_keeps_finite_gradients(self):
    grad = jax.grad(
      lambda d: jnp.sum(numerics.safe_divide(jnp.ones(2), d, fill=7.0))
    )(jnp.array([0.0, 2.0]))
    np.testing.assert_allclose(grad, [0, -0.25])
    found = numerics.safe_divide(jnp.ones(2), jnp.array([0.0, 2.0]), fill=7.0)
    np.testing.assert_array_equal(found, [7, 0.5])

  def test_angles_worked_by_hand(self):
    a = jnp.array([[1.0, 0, 0], [1, 0, 0], [1, 0, 0], [0, 0, 0]])
    b = jnp.array([[0.0, 2, 0], [-3, 0, 0], [1, 1e-4, 0], [1, 0, 0]])
    found = numerics.angle_between(a, b)
    np.testing.assert_allclose(found, [np.pi / 2, np.pi, 1e-4, 0], rtol=1e-5)

  def test_angle_gradient_is_finite_for_parallel_and_zero_vectors(self):
    for vector in (jnp.ones(3), jnp.zeros(3)):
      grad = jax.grad(lambda v: numerics.angle_between(v, jnp.ones(3)))(vector)
      self.assertTrue(np.all(np.isfinite(grad)))

  def test_angle_gradient_equals_finite_differences(self):
    with jax.enable_x64(True):
      a, b = jnp.array([1.0, 2.0, -0.5]), jnp.array([0.3, -1.0, 2.0])
      jax.test_util.check_grads(
        numerics.angle_between, (a, b), order=1, modes=("rev",)
      )


if __name__ == "__main__":
  absltest.main()
