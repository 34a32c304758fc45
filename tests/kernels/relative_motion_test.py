# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Relative motion: hand values, SciPy, invariances, gradients, dtypes."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
from absl.testing import absltest, parameterized
from scipy.spatial import transform

from kernels import relative_motion

_motion = functools.partial(
  relative_motion.relative_motion, angle_from_trace=False
)


def _rotation(yaw: float, pitch_up: float, roll: float) -> np.ndarray:
  """Ry(yaw) Rx(pitch_up) Rz(roll), degrees, right-handed."""
  return transform.Rotation.from_euler(
    "YXZ", [yaw, pitch_up, roll], degrees=True
  ).as_matrix()


def _pose(rotation: np.ndarray, center: list[float]) -> np.ndarray:
  pose = np.eye(4)
  pose[:3, :3], pose[:3, 3] = rotation, center
  return pose


def _poses(count: int) -> np.ndarray:
  rng = np.random.default_rng(0)
  rotations = transform.Rotation.random(count, random_state=1).as_matrix()
  return np.stack([_pose(r, rng.normal(size=3) * 3) for r in rotations])


class RelativeMotionTest(parameterized.TestCase):
  def test_mixed_rotation_of_the_specification(self):
    with jax.enable_x64(True):
      outbound = _motion(np.eye(4), _pose(_rotation(20, -10, 15), [0, 0, 0]))
      back = _motion(_pose(_rotation(20, -10, 15), [0, 0, 0]), np.eye(4))
    self.assertAlmostEqual(float(outbound.yaw_deg), 20.0, places=9)
    self.assertAlmostEqual(float(outbound.pitch_deg), 10.0, places=9)
    self.assertAlmostEqual(float(back.yaw_deg), -21.9311, places=4)
    self.assertAlmostEqual(float(back.pitch_deg), -3.9620, places=4)

  def test_inverse_translation_of_the_specification(self):
    target = _pose(_rotation(10, -3, 2), [0.05, 0.02, 0.40])
    with jax.enable_x64(True):
      back = _motion(target, np.eye(4))
    np.testing.assert_allclose(
      back.translation, [0.0202, 0.0004, -0.4031], atol=5e-5
    )
    self.assertAlmostEqual(float(back.yaw_deg), -10.1091, places=4)

  @parameterized.parameters(
    ([0.3, 0, 0], 0, 0.3), ([0, 0.2, 0], 1, 0.2), ([0, 0, -0.5], 2, -0.5)
  )
  def test_translation_signs(self, center, axis, expected):
    found = _motion(jnp.eye(4), jnp.asarray(_pose(np.eye(3), center)))
    self.assertAlmostEqual(float(found.translation[axis]), expected, places=6)
    self.assertAlmostEqual(float(found.distance), abs(expected), places=6)

  def test_matches_scipy_and_ignores_the_world_frame(self):
    poses = _poses(40)
    source, target = poses[:20], poses[20:]
    move = _poses(1)[0]
    with jax.enable_x64(True):
      batch = jax.jit(jax.vmap(_motion))
      found = batch(source, target)
      moved = batch(move @ source, move @ target)
    expected = transform.Rotation.from_matrix(
      np.swapaxes(source[:, :3, :3], 1, 2) @ target[:, :3, :3]
    )
    np.testing.assert_allclose(
      found.angle_deg, np.degrees(expected.magnitude()), atol=1e-9
    )
    euler = expected.as_euler("YXZ", degrees=True)
    np.testing.assert_allclose(found.yaw_deg, euler[:, 0], atol=1e-9)
    np.testing.assert_allclose(found.pitch_deg, -euler[:, 1], atol=1e-9)
    chex.assert_trees_all_close(found, moved, atol=1e-9)

  def test_vmap_equals_a_loop_with_and_without_jit(self):
    poses = jnp.asarray(_poses(6), jnp.float32)
    batch = jax.vmap(_motion)(poses[:3], poses[3:])
    for i in range(3):
      one = jax.jit(_motion)(poses[i], poses[3 + i])
      chex.assert_trees_all_close(
        jax.tree.map(lambda v, i=i: v[i], batch), one, atol=2e-5
      )

  def test_roll_does_not_enter_yaw_and_pitch(self):
    for roll in (0.0, 30.0, -80.0):
      target = jnp.asarray(_pose(_rotation(12, 5, roll), [0, 0, 0]))
      found = _motion(jnp.eye(4), target.astype(jnp.float32))
      self.assertAlmostEqual(float(found.yaw_deg), 12.0, places=4)
      self.assertAlmostEqual(float(found.pitch_deg), -5.0, places=4)

  def test_trace_angle_on_a_drifting_rotation(self):
    # The released formula reports 1.15 degrees for a matrix whose diagonal
    # lacks 1e-4 in each entry: acos(1 - 1.5e-4) = 0.99243 degrees.
    drifting = jnp.diag(jnp.asarray([1 - 1e-4] * 3, jnp.float32))
    traced = relative_motion.rotation_angle_deg(drifting, from_trace=True)
    accurate = relative_motion.rotation_angle_deg(drifting, from_trace=False)
    self.assertAlmostEqual(float(traced), 0.99243, delta=2e-3)
    self.assertEqual(float(accurate), 0.0)

  @parameterized.parameters([0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0])
  def test_view_angle_gradients_are_finite(self, *direction):
    gradient = jax.jacobian(
      lambda d: jnp.stack(relative_motion.view_angles(d))
    )(jnp.asarray(direction, jnp.float32))
    self.assertTrue(bool(jnp.all(jnp.isfinite(gradient))))

  def test_gradient_equals_finite_differences(self):
    with jax.enable_x64(True):
      poses = jnp.asarray(_poses(2))

      def value(offset):
        target = poses[1].at[:3, 3].add(offset)
        found = _motion(poses[0], target)
        return found.distance + found.translation[2]

      gradient = jax.grad(value)(jnp.zeros(3))
      step = 1e-6
      numeric = [
        (value(step * e) - value(-step * e)) / (2 * step) for e in np.eye(3)
      ]
    np.testing.assert_allclose(gradient, numeric, atol=1e-7)

  def test_singular_gradients_are_finite(self):
    gradient = jax.jit(
      jax.grad(
        lambda pose: sum(
          jnp.sum(v)
          for v in relative_motion.relative_motion(
            jnp.eye(4), pose, angle_from_trace=True
          )
        )
      )
    )(jnp.eye(4))
    self.assertTrue(bool(jnp.all(jnp.isfinite(gradient))))

  def test_dtype_is_kept(self):
    self.assertEqual(_motion(jnp.eye(4), jnp.eye(4)).yaw_deg.dtype, jnp.float32)
    with jax.enable_x64(True):
      found = _motion(jnp.eye(4), jnp.eye(4))
      self.assertEqual(found.angle_deg.dtype, jnp.float64)

  def test_wrong_inputs_are_refused_at_trace_time(self):
    with self.assertRaises(AssertionError):
      _motion(jnp.eye(3), jnp.eye(4))
    with self.assertRaises(AssertionError):
      _motion(jnp.eye(4, dtype=jnp.int32), jnp.eye(4))


if __name__ == "__main__":
  absltest.main()
