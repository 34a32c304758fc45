# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Level and retention over windows."""

import jax
import jax.numpy as jnp
import numpy as np
from absl.testing import absltest, parameterized

from kernels import window_stability


def _measure(windows, valid=None):
  valid = np.ones(len(windows), bool) if valid is None else np.array(valid)
  return window_stability.level_and_retention(
    jnp.asarray(windows, jnp.float32), jnp.asarray(valid)
  )


class WindowStabilityTest(parameterized.TestCase):
  def test_by_hand(self):
    # Declines against the first window: 20, 0 (improvement), 10.
    found = _measure([80.0, 60.0, 90.0, 70.0])
    self.assertAlmostEqual(float(found.level), 75.0, places=5)
    self.assertAlmostEqual(float(found.retention), 90.0, places=5)
    self.assertEqual(int(found.num_later), 3)

  def test_constant_and_worst(self):
    self.assertEqual(float(_measure([0.0, 0.0]).retention), 100.0)
    self.assertEqual(float(_measure([100.0, 0.0]).retention), 0.0)

  @parameterized.parameters(
    ([False, True, True],), ([True, False, False],), ([False] * 3,)
  )
  def test_needs_the_first_and_a_later_window(self, valid):
    self.assertFalse(bool(_measure([50.0, 50.0, 50.0], valid).valid))

  def test_padding_changes_nothing(self):
    plain = _measure([80.0, 60.0])
    padded = _measure([80.0, 60.0, 7.0], [True, True, False])
    self.assertEqual(float(plain.level), float(padded.level))
    self.assertEqual(float(plain.retention), float(padded.retention))

  def test_window_means_skip_invalid_samples(self):
    members = jnp.array([[1, 1, 0], [0, 1, 1]], bool)
    found = window_stability.window_means(
      jnp.array([1.0, jnp.nan, 5.0]), jnp.array([True, False, True]), members
    )
    np.testing.assert_array_equal(found.value, [1.0, 5.0])
    np.testing.assert_array_equal(found.count, [1, 1])

  def test_gradient(self):
    def retention(windows):
      return window_stability.level_and_retention(
        windows, jnp.ones(3, bool)
      ).retention

    slope = jax.grad(retention)(jnp.array([80.0, 60.0, 90.0]))
    np.testing.assert_allclose(slope, [-0.5, 0.5, 0.0])


if __name__ == "__main__":
  absltest.main()
