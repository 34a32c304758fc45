# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Scale-depth residual and scale jump: worked cases and invariances."""

import jax
import jax.numpy as jnp
import numpy as np
from absl.testing import absltest, parameterized
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels import scale_depth

_H = [100.0, 102, 98, 100, 101, 90, 80, 0]
_Z = [1.0, 1, 1, 1.02, 1, 1.1, 1.3, 1.3]


def _run(height, depth, valid=None):
  height = jnp.asarray(height, jnp.float32)
  valid = jnp.ones(len(height), bool) if valid is None else jnp.asarray(valid)
  return scale_depth.scale_depth_residual(
    height,
    jnp.asarray(depth, jnp.float32),
    valid,
    num_reference=5,
    floor=1e-6,
  )


class ScaleDepthTest(parameterized.TestCase):
  def test_specification_15_1(self):
    found = _run(_H, _Z)
    expected = [
      0.009852, 0.030153, 0.009852, 0, 0.020001, 0.029270, 18.168267
    ]  # fmt: skip
    np.testing.assert_allclose(found.error[1:], expected, atol=3e-6)
    self.assertAlmostEqual(float(found.rms), 6.866984, delta=1e-5)
    self.assertAlmostEqual(
      float(_run(_H[:7], _Z[:7]).rms), 0.019833, delta=1e-6
    )

  def test_lost_frames_leave_reference_and_residual(self):
    valid = [True] * 7 + [False]
    found = _run(_H, _Z, valid)
    self.assertAlmostEqual(float(found.rms), 0.019833, delta=1e-6)
    self.assertEqual((int(found.num_frames), int(found.num_reference)), (6, 5))

  def test_no_usable_frame_has_count_zero(self):
    found = _run([1.0, 2.0], [1.0, 1.0], [False, False])
    self.assertEqual((float(found.rms), int(found.num_frames)), (0.0, 0))

  def test_nan_depth_propagates(self):
    self.assertTrue(np.isnan(_run([10.0, 10], [1.0, np.nan]).rms))

  @settings(max_examples=15, deadline=None)
  @given(st.floats(0.01, 100), st.floats(0.1, 10))
  def test_constant_factors_change_nothing(self, depth_factor, height_factor):
    base = _run(_H[:7], _Z[:7]).rms
    scaled = _run(
      np.array(_H[:7]) * height_factor, np.array(_Z[:7]) * depth_factor
    ).rms
    self.assertAlmostEqual(float(base), float(scaled), delta=1e-5)

  def test_gradient_equals_finite_differences_and_is_finite_at_zero(self):
    height = jnp.array(_H[:7])
    fun = lambda z: _run(height, z).rms  # noqa: E731
    grad = np.array(jax.grad(fun)(jnp.array(_Z[:7])))
    step = 1e-3
    moved = np.array(_Z[:7])
    moved[6] += step
    back = np.array(_Z[:7])
    back[6] -= step
    slope = (float(fun(moved)) - float(fun(back))) / (2 * step)
    self.assertAlmostEqual(grad[6], slope, delta=2e-3)
    flat = jax.grad(fun)(jnp.zeros(7))
    self.assertTrue(np.all(np.isfinite(flat)))

  @parameterized.parameters(
    ([1, 1, 1, 2, 1, 1], 1.999998),
    ([1, 1, 1, 2, 2, 2], 0.999999),
    ([1, 1.2, 1.5, 1.9, 2.4, 3], 0.05),
    ([2, 2, 2, 2], 0.0),
    ([1, 5], 0.0),
  )
  def test_scale_jump_of_specification_15_6(self, series, expected):
    for padding in (0, 4):
      padded = jnp.array([*series, *[9.0] * padding], jnp.float32)
      found = scale_depth.scale_jump(
        padded, jnp.int32(len(series)), epsilon=1e-6
      )
      self.assertAlmostEqual(float(found), expected, delta=2e-6)


if __name__ == "__main__":
  absltest.main()
