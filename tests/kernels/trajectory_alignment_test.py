# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Path errors after one nonnegative scale."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from absl.testing import absltest, parameterized
from scipy.spatial.transform import Rotation

from kernels import trajectory_alignment

_RUN = jax.jit(
  functools.partial(
    trajectory_alignment.path_errors,
    length_floor=1e-6,
    denominator_floor=1e-12,
  )
)


def _path(count=7, seed=0):
  rng = np.random.default_rng(seed)
  poses = np.tile(np.eye(4), (count, 1, 1))
  turns = rng.normal(0, 0.2, (count, 3))
  poses[:, :3, :3] = Rotation.from_rotvec(turns).as_matrix()
  poses[:, :3, 3] = np.cumsum(rng.normal(0, 0.3, (count, 3)), axis=0)
  return poses


def _errors(recovered, requested, valid=None, length=1.0):
  valid = np.ones(len(requested), bool) if valid is None else valid
  return _RUN(
    jnp.asarray(recovered),
    jnp.asarray(requested),
    jnp.asarray(valid),
    jnp.asarray(length, jnp.asarray(recovered).dtype),
  )


class TrajectoryAlignmentTest(parameterized.TestCase):
  @parameterized.parameters(0.2, 1.0, 5.0)
  def test_frame_and_scale_of_the_recovery_do_not_matter(self, scale):
    requested = _path()
    frame = _path(2, seed=5)[1]
    recovered = requested.copy()
    recovered[:, :3, 3] *= scale
    with jax.enable_x64(True):
      found = _errors(frame @ recovered, requested)
    self.assertAlmostEqual(float(found.scale), 1.0 / scale, places=9)
    self.assertLess(float(found.mean_translation.value), 1e-9)
    self.assertLess(float(found.mean_rotation_deg.value), 1e-6)

  def test_by_hand(self):
    requested = np.tile(np.eye(4), (3, 1, 1))
    requested[:, 0, 3] = [0.0, 1.0, 2.0]
    recovered = requested.copy()
    recovered[2, :3, :3] = Rotation.from_euler(
      "y", 90, degrees=True
    ).as_matrix()
    recovered[:, 0, 3] = [0.0, 1.0, 0.0]
    # s* = (1*1 + 0*2) / (1 + 0) = 1; errors 0, 0, 2 over a path of 2.
    found = _errors(recovered, requested, length=2.0)
    self.assertAlmostEqual(float(found.scale), 1.0, places=6)
    np.testing.assert_allclose(found.translation, [0, 0, 1.0], atol=1e-6)
    np.testing.assert_allclose(found.rotation_deg, [0, 0, 90.0], atol=1e-4)
    self.assertEqual(int(found.mean_translation.count), 3)

  def test_opposite_motion_has_scale_zero_and_static_motion_one(self):
    requested = _path()
    requested[:, :3, :3] = np.eye(3)
    mirrored = requested.copy()
    mirrored[:, :3, 3] = 2 * requested[0, :3, 3] - requested[:, :3, 3]
    self.assertEqual(float(_errors(mirrored, requested).scale), 0.0)
    static = np.tile(requested[:1], (7, 1, 1))
    self.assertEqual(float(_errors(static, requested).scale), 1.0)

  def test_rows_that_are_not_valid_and_padding_change_nothing(self):
    requested, recovered = _path(), _path(seed=1)
    with jax.enable_x64(True):
      plain = _errors(recovered, requested)
      pad = np.tile(np.eye(4), (3, 1, 1))
      padded = _errors(
        np.concatenate([recovered, pad]),
        np.concatenate([requested, pad + 7.0 * np.eye(4)[3]]),
        np.arange(10) < 7,
      )
    for name in ("mean_translation", "mean_rotation_deg"):
      a, b = getattr(plain, name), getattr(padded, name)
      self.assertEqual(int(a.count), int(b.count))
      self.assertAlmostEqual(float(a.value), float(b.value), places=12)

  def test_path_length(self):
    positions = jnp.array(
      [[0.0, 0, 0], [3.0, 4.0, 0], [3.0, 4.0, 1.0], [9.0, 9, 9]]
    )
    valid = jnp.array([True, True, True, False])
    self.assertAlmostEqual(
      float(trajectory_alignment.path_length(positions, valid)), 6.0, places=6
    )

  def test_gradient_is_finite_at_a_perfect_path(self):
    requested = jnp.asarray(_path(), jnp.float32)

    def total(poses):
      found = _errors(poses, requested)
      return found.mean_translation.value + found.mean_rotation_deg.value

    slope = jax.grad(total)(requested)
    self.assertTrue(bool(jnp.all(jnp.isfinite(slope))))


if __name__ == "__main__":
  absltest.main()
