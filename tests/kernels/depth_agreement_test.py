# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Depth errors with and without a common scale."""

import jax
import jax.numpy as jnp
import numpy as np
from absl.testing import absltest, parameterized

from kernels import depth_agreement


class DepthAgreementTest(parameterized.TestCase):
  def test_colocated_by_hand(self):
    a = jnp.array([[1.0, 2.0, 4.0], [0.0, jnp.nan, 5.0]])
    b = jnp.array([[1.5, 1.0, 4.0], [3.0, 3.0, -1.0]])
    found = depth_agreement.colocated_error(a, b)
    self.assertEqual(int(found.count), 3)
    self.assertAlmostEqual(float(found.value), (0.5 + 0.5 + 0.0) / 3, places=6)

  def test_colocated_nothing_valid(self):
    nothing = jnp.full((2, 2), jnp.nan)
    found = depth_agreement.colocated_error(nothing, jnp.ones((2, 2)))
    self.assertEqual((int(found.count), float(found.value)), (0, 0.0))

  @parameterized.parameters(0.1, 1.0, 7.5)
  def test_one_scale_is_forgiven(self, factor):
    reference = jnp.arange(1.0, 11.0)
    found = depth_agreement.aligned_depth_error(
      reference,
      reference / factor,
      jnp.ones(10, bool),
      jnp.zeros((1, 10), bool).at[0, :3].set(True),
    )
    self.assertAlmostEqual(float(found.scale), factor, places=5)
    self.assertAlmostEqual(float(found.scene.value), 0.0, places=6)
    self.assertAlmostEqual(float(found.regions.value[0]), 0.0, places=6)

  def test_regions_expected_and_evaluated(self):
    reference = jnp.array([1.0, 2.0, 0.0, 4.0])
    generated = jnp.array([1.0, 2.0, 3.0, jnp.nan])
    regions = jnp.array(
      [[True, True, True, False], [False, False, False, True]]
    )
    found = depth_agreement.aligned_depth_error(
      reference, generated, jnp.ones(4, bool), regions
    )
    np.testing.assert_array_equal(found.expected, [2, 1])
    np.testing.assert_array_equal(found.regions.count, [2, 0])
    self.assertEqual(int(found.scene.count), 2)

  def test_equals_numpy(self):
    rng = np.random.default_rng(0)
    d, g = rng.uniform(1, 5, 51), rng.uniform(1, 5, 51)
    scene = rng.random(51) < 0.7
    scale = np.median(d[scene] / g[scene])
    expected = np.mean(np.abs(scale * g[scene] - d[scene]) / d[scene])
    with jax.enable_x64(True):
      found = depth_agreement.aligned_depth_error(
        jnp.asarray(d),
        jnp.asarray(g),
        jnp.asarray(scene),
        jnp.zeros((0, 51), bool),
      )
    self.assertAlmostEqual(float(found.scene.value), expected, places=12)

  def test_gradient_with_holes(self):
    with jax.enable_x64(True):
      rng = np.random.default_rng(1)
      d = jnp.asarray(rng.uniform(1, 5, 9)).at[4].set(jnp.nan)
      g = jnp.asarray(rng.uniform(1, 5, 9))

      def value(power):
        return depth_agreement.aligned_depth_error(
          d, g**power, jnp.ones(9, bool), jnp.zeros((0, 9), bool)
        ).scene.value

      step = 1e-6
      numeric = (value(1.0 + step) - value(1.0 - step)) / (2 * step)
      np.testing.assert_allclose(jax.grad(value)(1.0), numeric, rtol=1e-6)


if __name__ == "__main__":
  absltest.main()
