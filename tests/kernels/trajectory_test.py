# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Centroid path and inertia residual: worked cases, padding, gradients."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from absl.testing import absltest, parameterized
from scipy import ndimage

from kernels import trajectory

_OPTIONS = {
  "speed_floor": 1e-6,
  "acceleration_weight": 2.0,
  "tanh_scale": 5.0,
  "motion_threshold": 0.1,
  "norm_epsilon": 1e-9,
}


@functools.partial(jax.jit)
def _residual(path, frames, rate):
  filtered = trajectory.median_filter3(path, frames)
  return trajectory.kinematic_residual(filtered, frames, rate, **_OPTIONS)


def _run(points, *, rate, padding=12):
  path = np.zeros((len(points), 3))
  path[:, : np.ndim(points) and np.shape(points)[1]] = points
  with jax.enable_x64(True):
    # Padding holds values that would matter if they were read.
    padded = np.concatenate([path, np.full((padding - len(path), 3), 77.0)])
    return _residual(padded, np.int32(len(path)), np.float64(rate))


def _line(values):
  return np.array(values, float)[:, None]


def _repeated_rms(found):
  series = np.asarray(found.error)[: int(found.num_pairs)]
  series = np.concatenate([series[:1], series])
  return np.sqrt(np.mean(series**2))


class TrajectoryTest(parameterized.TestCase):
  @parameterized.parameters(
    (np.arange(8), 24, 0.0, 0.0, 24),
    (np.arange(8) ** 2, 24, 0.099668, 0.099668, 2304),
    (np.arange(8) ** 2, 12, 0.099668, 0.099668, 576),
    ([0, 1, 2, 3, 4, 3, 2, 1, 0], 24, 0.499932, 0.534450, 24),
    ([0, 1, 2, 8, 9, 10, 11, 12], 24, 0.534522, 0.577350, None),
    ([0, 1, 2, 30, 4, 5, 6, 7], 24, 0.075342, 0.081379, 1152),
  )
  def test_specification_15_2(self, x, rate, repeated, plain, reference):
    found = _run(_line(x), rate=rate)
    self.assertAlmostEqual(_repeated_rms(found), repeated, delta=1e-6)
    self.assertAlmostEqual(float(found.rms), plain, delta=1e-6)
    if reference is not None:
      self.assertAlmostEqual(
        float(found.reference_speed), reference, delta=1e-6
      )

  def test_specification_15_2_turn_in_the_plane(self):
    points = [(0, 0), (1, 0), (2, 0), (3, 0), (3, 1), (3, 2), (3, 3)]
    found = _run(np.array(points, float), rate=24)
    self.assertAlmostEqual(_repeated_rms(found), 0.612371, delta=1e-6)
    np.testing.assert_allclose(
      found.error[:5], [0, 0, 1.499997, 0, 0], atol=1e-6
    )

  def test_median_filter_equals_scipy_with_padding(self):
    path = np.random.default_rng(0).normal(size=(9, 3)).astype(np.float32)
    padded = jnp.asarray(np.concatenate([path, np.full((4, 3), 50)]))
    found = trajectory.median_filter3(padded, jnp.int32(9))
    expected = ndimage.median_filter(path, size=(3, 1), mode="nearest")
    np.testing.assert_array_equal(found[:9], expected)

  def test_lost_frames_keep_the_last_position_from_zero(self):
    values = jnp.arange(1.0, 6.0)[:, None]
    observed = jnp.array([False, True, False, False, True])
    found = trajectory.carry_forward(values, observed)
    np.testing.assert_array_equal(found[:, 0], [0, 2, 2, 2, 5])

  def test_scaling_and_shifting_the_world_change_nothing(self):
    path = np.random.default_rng(1).normal(size=(11, 3)).cumsum(axis=0)
    base = _run(path, rate=24).rms
    moved = _run(7.5 * path + np.array([3.0, -2.0, 9.0]), rate=24).rms
    self.assertAlmostEqual(float(base), float(moved), delta=1e-9)

  def test_coordinate_median_equals_numpy(self):
    points = np.random.default_rng(2).normal(size=(31, 3)).astype(np.float32)
    valid = np.random.default_rng(3).random(31) < 0.6
    median, count = trajectory.coordinate_median(
      jnp.asarray(points), jnp.asarray(valid)
    )
    np.testing.assert_allclose(median, np.median(points[valid], axis=0))
    self.assertEqual(int(count), valid.sum())

  @parameterized.parameters(0, 1, 2)
  def test_too_few_frames_have_no_pairs(self, frames):
    found = _run(_line(np.arange(frames)), rate=24)
    self.assertEqual((float(found.rms), int(found.num_pairs)), (0.0, 0))

  def test_gradient_is_finite_at_rest_and_equals_differences(self):
    def loss(path):
      return trajectory.kinematic_residual(
        path, jnp.int32(6), jnp.asarray(24.0, path.dtype), **_OPTIONS
      ).rms

    with jax.enable_x64(True):
      at_rest = jax.grad(loss)(jnp.zeros((6, 3)))
      self.assertTrue(np.all(np.isfinite(at_rest)))
      path = np.random.default_rng(4).normal(size=(6, 3)).cumsum(axis=0)
      grad = np.asarray(jax.grad(loss)(jnp.asarray(path)))
      step = np.zeros_like(path)
      step[2, 1] = 1e-6
      slope = loss(jnp.asarray(path + step)) - loss(jnp.asarray(path - step))
      self.assertAlmostEqual(grad[2, 1], float(slope) / 2e-6, delta=1e-5)


if __name__ == "__main__":
  absltest.main()
