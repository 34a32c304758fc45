# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Scene pillars: the worked check, extremes, masks, gradients."""

import jax
import jax.numpy as jnp
import numpy as np
from absl.testing import absltest, parameterized

from kernels import scene_preservation

_pillars = jax.jit(scene_preservation.step_pillars)


def _step(*values):
  return _pillars(*(jnp.float32(v) for v in values))


class StepPillarsTest(parameterized.TestCase):
  def test_worked_check_of_the_specification(self):
    found = _step(3, 4, 2, 0.0296583, 0.8, 0.3325383)
    self.assertAlmostEqual(float(found.position), 0.6468945, places=6)
    self.assertAlmostEqual(float(found.spatial), 0.4897164, places=6)
    self.assertAlmostEqual(float(found.presence), 0.5714286, places=6)
    self.assertAlmostEqual(float(found.integrity), 0.5333333, places=6)
    self.assertAlmostEqual(float(found.score), 0.5314928, places=6)

  @parameterized.parameters(
    (1, 3, 0, float("nan"), float("nan"), 0.0, 0.0),
    (4, 0, 0, float("nan"), float("nan"), 0.0, 0.0),
    (1, 1, 1, 0.0, 1.0, float("nan"), 1.0),
    (5, 5, 5, 0.0, 1.0, 1.0, 1.0),
    (2, 2, 2, 1.7, 1.3, 0.5, 0.75),
  )
  def test_extremes(self, g, p, m, pe, quality, topology, expected):
    # The last row clips: Pos 0, Int 1, F1 1, S 0.25.
    found = _step(g, p, m, pe, quality, topology)
    self.assertTrue(bool(found.valid))
    self.assertAlmostEqual(float(found.score), expected, places=6)

  def test_no_target_is_not_valid(self):
    found = _step(0, 3, 0, 0.0, 0.0, 0.0)
    self.assertFalse(bool(found.valid))
    self.assertEqual(float(found.score), 0.0)

  def test_gradient_is_finite_without_a_match(self):
    gradient = jax.grad(
      lambda pe: (
        scene_preservation.step_pillars(
          *(jnp.float32(v) for v in (3.0, 2.0, 0.0)),
          pe,
          jnp.float32(jnp.nan),
          jnp.float32(0.0),
        ).score
      )
    )(jnp.float32(0.2))
    self.assertEqual(float(gradient), 0.0)

  def test_dtype_is_kept(self):
    with jax.enable_x64(True):
      found = scene_preservation.step_pillars(
        *(jnp.float64(v) for v in (3, 4, 2, 0.1, 0.8, 0.3))
      )
      self.assertEqual(found.score.dtype, jnp.float64)

  def test_integers_are_refused(self):
    with self.assertRaises(AssertionError):
      scene_preservation.step_pillars(*(jnp.int32(1) for _ in range(6)))


class QualityTest(absltest.TestCase):
  def test_weights_are_renormalised(self):
    # (0.3 * 0.5 + 0.2 * 1.0) / 0.5 = 0.7.
    found = scene_preservation.weighted_quality(
      jnp.asarray([0.5, 1.0, jnp.nan]),
      jnp.asarray([True, True, False]),
      weights=(0.3, 0.2, 0.5),
    )
    self.assertAlmostEqual(float(found.value), 0.7, places=6)
    self.assertEqual(int(found.count), 2)

  def test_nothing_available(self):
    found = scene_preservation.weighted_quality(
      jnp.ones(2), jnp.zeros(2, bool), weights=(0.5, 0.5)
    )
    self.assertEqual((float(found.value), int(found.count)), (0.0, 0))


class MeanPlusWorstTest(parameterized.TestCase):
  @parameterized.parameters((0.5, 0.45), (0.0, 0.6), (1.0, 0.3))
  def test_example_of_the_specification(self, weight, expected):
    found = scene_preservation.mean_plus_worst(
      jnp.asarray([0.9, 0.6, 0.3]), jnp.ones(3, bool), worst_weight=weight
    )
    self.assertAlmostEqual(float(found.value), expected, places=6)

  def test_padding_changes_nothing(self):
    found = scene_preservation.mean_plus_worst(
      jnp.asarray([0.9, -5.0, 0.6, jnp.nan, 0.3]),
      jnp.asarray([True, False, True, False, True]),
      worst_weight=0.5,
    )
    self.assertAlmostEqual(float(found.value), 0.45, places=6)
    self.assertEqual(int(found.count), 3)

  def test_no_step(self):
    for size in (0, 2):
      found = scene_preservation.mean_plus_worst(
        jnp.ones(size), jnp.zeros(size, bool), worst_weight=0.5
      )
      self.assertEqual((float(found.value), int(found.count)), (0.0, 0))

  def test_vmap_equals_numpy(self):
    values = np.random.default_rng(0).random((5, 3)).astype(np.float32)
    found = jax.vmap(
      lambda v: scene_preservation.mean_plus_worst(
        v, jnp.ones(3, bool), worst_weight=0.5
      )
    )(values)
    np.testing.assert_allclose(
      found.value, (values.mean(1) + values.min(1)) / 2, rtol=1e-6
    )


if __name__ == "__main__":
  absltest.main()
