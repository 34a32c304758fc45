# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Regional scale dispersion on hand-made correspondences."""

import jax
import jax.numpy as jnp
import numpy as np
from absl.testing import absltest, parameterized

from kernels import correspondence, regional_scale

_H, _W = 30, 26


def _found(ratio):
  """One correspondence on every pixel, with observed = ratio * projected."""
  rows, columns = np.indices((_H, _W)).reshape(2, -1).astype(np.int32)
  size = rows.size
  return correspondence.Correspondences(
    source_row=jnp.asarray(rows),
    source_column=jnp.asarray(columns),
    target_row=jnp.asarray(rows),
    target_column=jnp.asarray(columns),
    projected=jnp.full(size, 2.0),
    observed=jnp.asarray(2.0 * np.ravel(ratio)),
    valid=jnp.ones(size, bool),
    attempted=jnp.int32(size),
    num_valid=jnp.int32(size),
  )


def _measure(found, *, min_support=16):
  return regional_scale.regional_scale(
    found,
    jnp.array([_H, _W], jnp.int32),
    grid=4,
    min_support=min_support,
    min_cells=2,
    depth_floor=1e-8,
  )


def _cells():
  """Cell numbers by the real-valued bounds of the definition."""
  rows, columns = np.indices((_H, _W))
  down = np.searchsorted(np.arange(1, 4) * _H / 4, rows, side="right")
  across = np.searchsorted(np.arange(1, 4) * _W / 4, columns, side="right")
  return down * 4 + across


class RegionalScaleTest(parameterized.TestCase):
  @parameterized.parameters(0.5, 1.0, 3.0)
  def test_one_factor_for_all_is_no_dispersion(self, factor):
    found = _measure(_found(np.full((_H, _W), factor)))
    self.assertTrue(bool(found.valid))
    self.assertEqual(int(found.num_cells), 16)
    self.assertAlmostEqual(float(found.value), 0.0, places=6)

  def test_two_halves_by_hand(self):
    # Eight cells at 1 and eight at e^0.2: the median of the logarithms is
    # 0.1, and every cell deviates by 0.1.
    ratio = np.where(_cells() % 4 < 2, 1.0, np.exp(0.2))
    self.assertAlmostEqual(float(_measure(_found(ratio)).value), 0.1, places=5)

  def test_one_wrong_cell_changes_nothing(self):
    ratio = np.where(_cells() == 5, 1.3, 1.0)
    found = _measure(_found(ratio))
    self.assertAlmostEqual(float(found.value), 0.0, places=6)
    self.assertAlmostEqual(float(found.ratio[1, 1]), 1.3, places=5)

  def test_cells_have_real_valued_bounds(self):
    support = np.asarray(_measure(_found(np.ones((_H, _W)))).support)
    expected = np.bincount(_cells().ravel(), minlength=16).reshape(4, 4)
    np.testing.assert_array_equal(support, expected)

  @parameterized.parameters((15, 1, False), (16, 1, False), (16, 2, True))
  def test_support_and_cell_limits_are_inclusive(self, pixels, cells, valid):
    flags = np.zeros((_H, _W), bool)
    for cell in range(cells):
      rows, columns = np.nonzero(_cells() == cell)
      flags[rows[:pixels], columns[:pixels]] = True
    found = _found(np.ones((_H, _W)))._replace(valid=jnp.asarray(flags.ravel()))
    self.assertEqual(bool(_measure(found).valid), valid)

  def test_nothing_valid(self):
    found = _found(np.ones((_H, _W)))
    found = found._replace(valid=jnp.zeros_like(found.valid))
    result = _measure(found)
    self.assertEqual((bool(result.valid), float(result.value)), (False, 0.0))

  def test_gradient_is_finite_and_equals_differences(self):
    rng = np.random.default_rng(0)
    with jax.enable_x64(True):
      ratio = rng.lognormal(0, 0.2, (_H, _W))
      base = _found(ratio)._replace(projected=jnp.full(ratio.size, 2.0))

      def value(power):
        observed = 2.0 * jnp.asarray(ratio.ravel()) ** power
        return _measure(base._replace(observed=observed)).value

      step = 1e-6
      numeric = (value(1.0 + step) - value(1.0 - step)) / (2 * step)
      np.testing.assert_allclose(jax.grad(value)(1.0), numeric, rtol=1e-6)
      slope = jax.grad(lambda p: value(p * 0.0 + 1.0) * p)(1.0)
      self.assertTrue(np.isfinite(slope))


if __name__ == "__main__":
  absltest.main()
