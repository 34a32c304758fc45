# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Tests of bundle adjustment against known cameras and finite differences."""

import numpy as np
from absl.testing import absltest, parameterized
from scipy.spatial import transform

from perception import bundle_adjustment as ba

_K = np.array([[300.0, 0, 160], [0, 290, 120], [0, 0, 1]])


def _scene(cameras=4, points=60, seed=0):
  rng = np.random.default_rng(seed)
  world = rng.uniform([-1, -1, 3], [1, 1, 5], (points, 3))
  w2c = np.zeros((cameras, 3, 4))
  turn = transform.Rotation.from_rotvec(rng.normal(0, 0.05, (cameras, 3)))
  w2c[:, :, :3] = turn.as_matrix()
  w2c[:, :, 3] = rng.normal(0, 0.3, (cameras, 3))
  w2c[0] = np.eye(4)[:3]
  camera, point = np.divmod(np.arange(cameras * points), points)
  seen = ba.Observations(camera, point, np.zeros((len(camera), 2)))
  _, xy = ba.project(w2c, world, _K, seen)
  return w2c, world, ba.Observations(camera, point, xy)


def _disturbed(w2c, world, rng, size=0.02):
  turn = transform.Rotation.from_rotvec(
    rng.normal(0, size, (len(w2c), 3))
  ).as_matrix()
  moved = turn @ w2c
  moved[:, :, 3] += rng.normal(0, size, (len(w2c), 3))
  moved[0] = w2c[0]
  return moved, world + rng.normal(0, size, world.shape)


class AdjustTest(parameterized.TestCase):
  def test_projection_hand_worked(self):
    w2c = np.eye(4)[None, :3]
    seen = ba.Observations(np.array([0]), np.array([0]), np.array([[1.0, 2]]))
    camera, residual = ba.project(w2c, np.array([[1.0, -1, 2]]), _K, seen)
    np.testing.assert_allclose(camera, [[1, -1, 2]])
    np.testing.assert_allclose(residual, [[310 - 1, -25 - 2]])

  def test_returns_to_the_truth(self):
    w2c, world, seen = _scene()
    start = _disturbed(w2c, world, np.random.default_rng(1))
    found = ba.adjust(*start, _K, seen, refine_focal=False)
    self.assertLess(found.error_px.max(), 1e-3)
    np.testing.assert_array_equal(found.w2c[0], w2c[0])
    scale = np.linalg.norm(w2c[1, :, 3]) / np.linalg.norm(found.w2c[1, :, 3])
    np.testing.assert_allclose(
      found.w2c[:, :, 3] * scale, w2c[:, :, 3], atol=1e-4
    )
    np.testing.assert_allclose(found.points * scale, world, atol=1e-3)

  def test_finds_the_focal_length(self):
    w2c, world, seen = _scene()
    start = _disturbed(w2c, world, np.random.default_rng(2), 0.01)
    wrong = _K * np.array([[1.1, 1, 1], [1, 1.1, 1], [1, 1, 1]])
    found = ba.adjust(*start, wrong, seen, refine_focal=True)
    self.assertAlmostEqual(found.intrinsics[0, 0], 300.0, delta=3.0)
    self.assertLess(found.error_px.mean(), 0.05)

  def test_outliers_are_outvoted(self):
    w2c, world, seen = _scene()
    rng = np.random.default_rng(3)
    bad = rng.choice(len(seen.xy), 20, replace=False)
    seen.xy[bad] += rng.normal(0, 40, (20, 2))
    start = _disturbed(w2c, world, rng, 0.01)
    found = ba.adjust(*start, _K, seen, refine_focal=False)
    good = np.setdiff1d(np.arange(len(seen.xy)), bad)
    self.assertLess(np.median(found.error_px[good]), 0.3)
    self.assertGreater(np.median(found.error_px[bad]), 20)

  @parameterized.parameters(False, True)
  def test_derivatives_equal_finite_differences(self, refine):
    w2c, world, seen = _scene(3, 7)
    w2c, world = _disturbed(w2c, world, np.random.default_rng(4))
    # Below the Huber bound, so that the cost is the plain sum of squares.
    _, offset = ba.project(w2c, world, _K, seen)
    seen.xy[:] += offset - np.clip(offset, -0.4, 0.4)
    state = (w2c, world, _K.copy())
    camera, residual = ba.project(*state, seen)
    system = ba._System(state, camera, residual, seen, refine)
    step = 1e-6

    def cost(left, points):
      trial = system._apply(left, points)
      return np.sum(ba.project(*trial, seen)[1] ** 2)

    zero = np.zeros(system._width), np.zeros_like(world)
    for column in range(6, system._width):
      plus, minus = zero[0].copy(), zero[0].copy()
      plus[column], minus[column] = step, -step
      numeric = (cost(plus, zero[1]) - cost(minus, zero[1])) / (2 * step)
      self.assertAlmostEqual(
        2 * system._left_r[column], numeric, delta=1e-3 * abs(numeric) + 1e-3
      )
    for point in range(2):
      for axis in range(3):
        shift = np.zeros_like(world)
        shift[point, axis] = step
        numeric = (cost(zero[0], shift) - cost(zero[0], -shift)) / (2 * step)
        self.assertAlmostEqual(
          2 * system._right_r[point, axis],
          numeric,
          delta=1e-3 * abs(numeric) + 1e-3,
        )


if __name__ == "__main__":
  absltest.main()
