# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Medians of groups: NumPy as oracle, exact selection, gradients."""

import jax
import jax.numpy as jnp
import numpy as np
from absl.testing import absltest, parameterized

from kernels import grouped_median

_GROUPS = 5
_median = jax.jit(grouped_median.grouped_median, static_argnames="num_groups")


def _oracle(x, group):
  values, counts = [], []
  for g in range(_GROUPS):
    mine = x[group == g]
    counts.append(len(mine))
    values.append(np.median(mine) if len(mine) else 0.0)
  return np.array(values), np.array(counts)


class GroupedMedianTest(parameterized.TestCase):
  @parameterized.parameters(np.float32, np.float64)
  def test_equals_numpy(self, dtype):
    rng = np.random.default_rng(0)
    with jax.enable_x64(dtype == np.float64):
      run = jax.jit(lambda x, g: _median(x, g, num_groups=_GROUPS))
      for trial in range(8):
        x = rng.normal(size=64) * 10.0 ** rng.integers(-6, 7)
        if trial % 2:
          x = np.round(x, 1)  # ties
        x = x.astype(dtype)
        group = rng.integers(-1, _GROUPS + 1, 64).astype(np.int32)
        found = run(jnp.asarray(x), jnp.asarray(group))
        values, counts = _oracle(x, group)
        self.assertEqual(found.value.dtype, dtype)
        np.testing.assert_array_equal(found.count, counts)
        # The mean of two middle items may round differently by one place.
        eps = np.finfo(dtype).eps
        np.testing.assert_allclose(found.value, values, rtol=2 * eps, atol=0)

  def test_by_hand(self):
    x = jnp.array([3.0, -1.0, 5.0, 2.0, 9.0, -0.0])
    group = jnp.array([0, 0, 0, 1, 1, 3], jnp.int32)
    found = _median(x, group, num_groups=4)
    np.testing.assert_array_equal(found.value, [3.0, 5.5, 0.0, 0.0])
    np.testing.assert_array_equal(found.count, [3, 2, 0, 1])

  @parameterized.parameters(0, 1)
  def test_small_sizes(self, size):
    x, group = jnp.ones((size,)), jnp.zeros((size,), jnp.int32)
    found = _median(x, group, num_groups=2)
    np.testing.assert_array_equal(found.count, [size, 0])
    np.testing.assert_array_equal(found.value, [size, 0])

  def test_items_of_no_group_change_nothing(self):
    x = jnp.array([4.0, 1.0, 2.0, 7.0])
    group = jnp.array([0, 0, 1, 1], jnp.int32)
    plain = _median(x, group, num_groups=2)
    padded = _median(
      jnp.append(x, jnp.array([jnp.nan, -jnp.inf])),
      jnp.append(group, jnp.array([-1, 2], jnp.int32)),
      num_groups=2,
    )
    np.testing.assert_array_equal(plain.value, padded.value)
    np.testing.assert_array_equal(plain.count, padded.count)

  def test_gradient_goes_to_the_middle_items(self):
    group = jnp.array([0, 0, 0, 1, 1], jnp.int32)

    def total(x):
      return _median(x, group, num_groups=2).value.sum()

    slope = jax.grad(total)(jnp.array([5.0, 1.0, 3.0, 2.0, 8.0]))
    np.testing.assert_array_equal(slope, [0.0, 0.0, 1.0, 0.5, 0.5])

  def test_vmap_equals_loop(self):
    rng = np.random.default_rng(1)
    x = jnp.asarray(rng.normal(size=(3, 20)).astype(np.float32))
    group = jnp.asarray(rng.integers(0, 3, (3, 20)).astype(np.int32))

    def one(a, g):
      return _median(a, g, num_groups=3).value

    run = jax.jit(one)
    loop = jnp.stack([run(a, g) for a, g in zip(x, group, strict=True)])
    np.testing.assert_array_equal(jax.jit(jax.vmap(one))(x, group), loop)


if __name__ == "__main__":
  absltest.main()
