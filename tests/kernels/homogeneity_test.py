# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Diagnostics of section 9: worked cases, vanishing points, plane, views."""

import jax
import jax.numpy as jnp
import numpy as np
from absl.testing import absltest, parameterized

from kernels import (
  camera,
  ground_plane,
  homogeneity,
  reprojection,
  vanishing_point,
)

_F, _CENTRE = 500.0, np.array([320.0, 240.0], np.float32)
_DEPTH = np.array([4.0, 5, 6, 8, 10, 12], np.float32)


def _object():
  xy = _CENTRE + _F * np.stack([1 / _DEPTH, 0.5 / _DEPTH], axis=-1)
  return xy.astype(np.float32), (_F * 2 / _DEPTH).astype(np.float32)


def _log_form(height, xy):
  return homogeneity.vanishing_log_residual(
    jnp.asarray(height),
    jnp.asarray(xy),
    jnp.asarray(_CENTRE),
    jnp.int32(6),
    num_reference=5,
    floor=1e-6,
    transverse_threshold=0.05,
  )


class HomogeneityTest(parameterized.TestCase):
  def test_motion_along_a_line_gives_zero_in_every_form(self):
    xy, height = _object()
    np.testing.assert_allclose(_log_form(height, xy), 0, atol=2e-6)
    ratio = homogeneity.vanishing_ratio_residual(
      jnp.asarray(height),
      jnp.asarray(xy),
      jnp.asarray(_CENTRE),
      jnp.int32(6),
      num_reference=5,
      floor=1.0,
    )
    np.testing.assert_allclose(ratio, 0, atol=1e-5)
    depth = homogeneity.inverse_depth_residual(
      jnp.asarray(height), jnp.asarray(_DEPTH), jnp.int32(6)
    )
    np.testing.assert_allclose(depth, 0, atol=1e-6)
    offset = homogeneity.offset_ratio_residual(
      jnp.asarray(height),
      jnp.asarray(xy[:, 0] - 320),
      jnp.int32(6),
      floor=1.0,
    )
    np.testing.assert_allclose(offset[1:], 0, atol=1e-5)

  def test_specification_15_7_log_form(self):
    xy, _ = _object()
    height = (_F * 2 / np.sqrt(_DEPTH)).astype(np.float32)
    expected = [0, 0.091161, 0, 0.143841, 0.255413, 0.346574]
    np.testing.assert_allclose(_log_form(height, xy), expected, atol=2e-6)

  @parameterized.parameters(
    ((10, 0), (0, 10), 0.5),
    ((10, 0), (-3, 0), 0.0),  # nearer than 5 px: no direction
    ((10, 0), (-30, 0), 1.0),
    ((10, 0), (10, 10), 0.146447),
    ((400, 0), (10, 10), 0.0),  # foreground outside the image
    ((10, 0), (0, 0), 0.0),
  )
  def test_coupling(self, foreground, background, expected):
    found = homogeneity.direction_coupling(
      jnp.asarray(_CENTRE + np.array(foreground, np.float32)),
      jnp.asarray(_CENTRE + np.array(background, np.float32)),
      jnp.asarray(_CENTRE),
      min_offset=5.0,
    )
    self.assertAlmostEqual(float(found), expected, delta=1e-5)

  def test_height_step_is_exact(self):
    found = homogeneity.height_step(
      jnp.float32(100.0), jnp.float32(4.0), jnp.float32(1.0)
    )
    self.assertAlmostEqual(float(found), 80.0 - 100.0, delta=1e-4)


class VanishingPointTest(parameterized.TestCase):
  def test_lines_through_one_point_meet_there(self):
    target = np.array([200.0, 120.0])
    angles = np.linspace(0.2, 2.8, 7)
    steps = np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    lines = vanishing_point.lines_through(
      jnp.float32(target + 30 * steps),
      jnp.float32(target + 90 * steps),
      epsilon=1e-8,
    )
    outlier = jnp.array([[1.0, 0.0, 500.0]])
    found = vanishing_point.intersect_lines(
      jnp.concatenate([lines, outlier]),
      jnp.ones(8, bool),
      jnp.array([0, 1, 0]),
      jnp.array([7, 4, 3]),
      tolerance=20.0,
      divide_by_norm=False,
      min_w=1e-8,
      epsilon=1e-8,
    )
    np.testing.assert_allclose(found.xy, target, atol=0.05)
    self.assertEqual(int(found.num_inliers), 7)

  def test_parallel_lines_have_no_point(self):
    lines = jnp.array([[1.0, 0, -5], [1.0, 0, -9]])
    found = vanishing_point.intersect_lines(
      lines,
      jnp.ones(2, bool),
      jnp.array([0]),
      jnp.array([1]),
      tolerance=20.0,
      divide_by_norm=True,
      min_w=1e-8,
      epsilon=1e-8,
    )
    self.assertEqual(int(found.num_inliers), 0)


class GroundPlaneTest(parameterized.TestCase):
  def test_specification_15_6(self):
    x, z = np.meshgrid(np.arange(4.0), np.arange(4.0))
    checker = np.where((x + z) % 2 == 0, 0.05, -0.05)
    bowl = 0.02 * (x - 1.5) ** 2
    for y, expected in ((checker, 0.05), (bowl, 0.02)):
      points = np.stack([x, y, z], axis=-1).reshape(-1, 3)
      found = ground_plane.fit_plane(jnp.float32(points), jnp.ones(16, bool))
      self.assertAlmostEqual(float(found.rms), expected, delta=1e-6)

  def test_equals_the_thin_decomposition_and_ignores_padding(self):
    points = np.random.default_rng(0).normal(size=(50, 3)) * [3, 0.1, 2]
    centred = points - points.mean(axis=0)
    normal = np.linalg.svd(centred, full_matrices=False)[2][-1]
    padded = np.concatenate([points, np.full((9, 3), 40.0)])
    found = ground_plane.fit_plane(jnp.float32(padded), jnp.arange(59) < 50)
    expected = np.sqrt(np.mean((centred @ normal) ** 2))
    self.assertAlmostEqual(float(found.rms), expected, delta=1e-6)
    self.assertEqual(int(found.num_points), 50)

  @parameterized.parameters(0, 2)
  def test_too_few_points_give_zero(self, count):
    found = ground_plane.fit_plane(jnp.ones((4, 3)), jnp.arange(4) < count)
    self.assertEqual((float(found.rms), int(found.num_points)), (0.0, count))

  def test_gradient_is_finite_for_a_perfect_plane(self):
    points = jnp.array([[0.0, 0, 0], [1, 0, 0], [0, 0, 1], [1, 0, 1]])
    grad = jax.grad(lambda p: ground_plane.fit_plane(p, jnp.ones(4, bool)).rms)(
      points
    )
    self.assertTrue(np.all(np.isfinite(grad)))


class ReprojectionTest(absltest.TestCase):
  def test_a_view_of_itself_agrees_and_another_picture_does_not(self):
    rng = np.random.default_rng(0)
    matrix = jnp.array([[20.0, 0, 9.5], [0, 20.0, 7.5], [0, 0, 1]])
    depth = jnp.float32(rng.uniform(2, 3, (16, 20)))
    points = camera.unproject(depth, matrix).reshape(-1, 3)
    image = jnp.float32(rng.random((16, 20, 3)))
    allowed = jnp.ones((16, 20), bool).at[:4].set(False)

    def run(target):
      return reprojection.reprojection_error(
        points,
        image.reshape(-1, 3),
        jnp.ones(320, bool),
        target,
        allowed,
        jnp.eye(4),
        matrix,
        min_depth=1e-3,
        radius=0,
      )

    same, other = run(image), run(1 - image)
    self.assertEqual(float(same.coverage), 1.0)
    self.assertEqual(float(same.mae), 0.0)
    self.assertEqual(int(same.num_compared), 12 * 20)
    expected = np.abs(2 * np.array(image)[4:] - 1)
    self.assertAlmostEqual(float(other.mae), expected.mean(), delta=1e-6)
    self.assertAlmostEqual(
      float(other.l2), np.sqrt((expected**2).mean()), delta=1e-6
    )


if __name__ == "__main__":
  absltest.main()
