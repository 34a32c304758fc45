# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Pinhole and rigid transforms against SciPy and by hand."""

import jax
import jax.numpy as jnp
import jax.test_util
import numpy as np
from absl.testing import absltest, parameterized
from scipy.spatial import transform

from kernels import camera

_K = np.array([[50.0, 0, 15.5], [0, 60.0, 11.5], [0, 0, 1]])


def _pose(seed):
  rng = np.random.default_rng(seed)
  pose = np.eye(4)
  pose[:3, :3] = transform.Rotation.random(random_state=seed).as_matrix()
  pose[:3, 3] = rng.normal(size=3)
  return pose


class CameraTest(parameterized.TestCase):
  def test_inverse_and_relative_pose_equal_matrix_algebra(self):
    a, b = _pose(1), _pose(2)
    with jax.enable_x64(True):
      inverse = camera.invert_rigid(jnp.asarray(a))
      relative = camera.relative_pose(jnp.asarray(a), jnp.asarray(b))
    np.testing.assert_allclose(inverse, np.linalg.inv(a), atol=1e-12)
    np.testing.assert_allclose(relative, np.linalg.inv(a) @ b, atol=1e-12)

  def test_transform_points_equals_matrix_product(self):
    pose = _pose(3)
    points = np.random.default_rng(0).normal(size=(4, 5, 3))
    with jax.enable_x64(True):
      found = camera.transform_points(jnp.asarray(pose), jnp.asarray(points))
    expected = points @ pose[:3, :3].T + pose[:3, 3]
    np.testing.assert_allclose(found, expected, atol=1e-12)

  def test_unproject_then_project_returns_the_pixel_grid(self):
    depth = np.random.default_rng(1).uniform(1, 5, (24, 32))
    points = camera.unproject(jnp.float32(depth), jnp.float32(_K))
    xy, z = camera.project(points, jnp.float32(_K))
    x, y = np.meshgrid(np.arange(32), np.arange(24))
    np.testing.assert_allclose(xy, np.stack([x, y], -1), atol=1e-4)
    np.testing.assert_allclose(z, depth, rtol=1e-6)

  def test_unprojection_worked_by_hand(self):
    found = camera.unproject_pixels(
      jnp.array([[20.5, 5.5]]), jnp.array([2.0]), jnp.asarray(_K)
    )
    np.testing.assert_allclose(found, [[0.2, -0.2, 2.0]], rtol=1e-6)

  def test_nan_depth_stays_nan(self):
    found = camera.unproject(jnp.array([[jnp.nan]]), jnp.asarray(_K))
    self.assertTrue(np.all(np.isnan(found)))

  def test_projection_at_zero_depth_is_finite_with_its_gradient(self):
    xy, _ = camera.project(jnp.zeros(3), jnp.asarray(_K))
    np.testing.assert_allclose(xy, [15.5, 11.5])
    grad = jax.grad(lambda p: camera.project(p, jnp.asarray(_K))[0].sum())(
      jnp.zeros(3)
    )
    self.assertTrue(np.all(np.isfinite(grad)))

  @parameterized.parameters(0.0, 1e-3, 0.5, 3.0, np.pi)
  def test_rotation_angle_equals_scipy(self, angle):
    axis = np.array([1.0, 2.0, -2.0]) / 3
    matrix = transform.Rotation.from_rotvec(axis * angle).as_matrix()
    found = camera.rotation_angle(jnp.float32(matrix))
    # float32 matrices hold an angle near 0 and pi to about 1e-7.
    np.testing.assert_allclose(found, angle, atol=1e-6)

  def test_rotation_angle_gradient_is_finite_at_the_identity(self):
    grad = jax.grad(camera.rotation_angle)(jnp.eye(3))
    self.assertTrue(np.all(np.isfinite(grad)))

  def test_shapes_are_checked(self):
    with self.assertRaises(AssertionError):
      camera.invert_rigid(jnp.eye(3))
    with self.assertRaises(AssertionError):
      camera.unproject_pixels(jnp.ones((2, 2)), jnp.ones(3), jnp.eye(3))


if __name__ == "__main__":
  absltest.main()
