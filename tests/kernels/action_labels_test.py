# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Move and look labels, and rotation vectors."""

import jax
import jax.numpy as jnp
import numpy as np
from absl.testing import absltest, parameterized
from scipy.spatial.transform import Rotation

from kernels import action_labels

_MOVE = {"active_fraction": 0.01, "threshold": 0.5, "direction_floor": 1e-12}


def _steps(positions, yaw=0.0):
  poses = np.tile(np.eye(4), (len(positions), 1, 1))
  poses[:, :3, :3] = Rotation.from_euler("y", yaw, degrees=True).as_matrix()
  poses[:, :3, 3] = positions
  return jnp.asarray(poses, jnp.float32)


def _turns(degrees):
  poses = np.tile(np.eye(4), (len(degrees), 1, 1))
  poses[:, :3, :3] = Rotation.from_rotvec(np.radians(degrees)).as_matrix()
  return jnp.asarray(poses, jnp.float32)


class ActionLabelsTest(parameterized.TestCase):
  def test_moves_by_hand(self):
    # Forward, left, forward and right at once, up, standing still.
    path = np.cumsum(
      [[0, 0, 0], [0, 0, 1], [-1, 0, 0], [1, 0, 1], [0, -1, 0], [0, 0, 0]],
      axis=0,
    )
    labels = action_labels.move_labels(_steps(path), jnp.ones(6, bool), **_MOVE)
    expected = [
      [True, False, False, False],
      [False, True, False, False],
      [True, False, False, True],
      [False] * 4,
      [False] * 4,
    ]
    np.testing.assert_array_equal(labels, expected)

  def test_moves_are_in_the_axes_of_the_first_camera(self):
    # Looking along world +x (yaw 90), a step along +x is forward.
    labels = action_labels.move_labels(
      _steps([[0, 0, 0], [1, 0, 0]], yaw=90.0), jnp.ones(2, bool), **_MOVE
    )
    np.testing.assert_array_equal(labels, [[True, False, False, False]])

  def test_slow_steps_have_no_label(self):
    path = [[0, 0, 0], [0, 0, 1], [0, 0, 1.004]]
    labels = action_labels.move_labels(_steps(path), jnp.ones(3, bool), **_MOVE)
    np.testing.assert_array_equal(labels[:, 0], [True, False])

  @parameterized.parameters(
    ([0.5, 0, 0], "I"),
    ([0, -0.5, 0], "J"),
    ([-0.5, 0, 0], "K"),
    ([0, 0.5, 0], "L"),
    ([0.3, 0.3, 5.0], ""),
  )
  def test_looks(self, turn, expected):
    labels = action_labels.look_labels(
      _turns([[0, 0, 0], turn]), jnp.ones(2, bool), threshold_deg=0.4
    )
    found = "".join(k for k, on in zip("IJKL", labels[0], strict=True) if on)
    self.assertEqual(found, expected)

  def test_agreement_counts_equal_sets_of_active_steps(self):
    wanted = jnp.array([[1, 0, 0, 1], [0, 0, 0, 0], [1, 0, 0, 0]], bool)
    given = jnp.array([[1, 0, 0, 1], [1, 0, 0, 0], [1, 1, 0, 0]], bool)
    found = action_labels.label_agreement(
      wanted, given, jnp.ones(3, bool), dtype=jnp.float32
    )
    np.testing.assert_array_equal(found.active, [True, False, True])
    self.assertEqual(
      (float(found.mean.value), int(found.mean.count)), (50.0, 2)
    )

  def test_rotation_vectors_equal_scipy_up_to_half_turns(self):
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(30, 3))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors *= np.concatenate([np.linspace(0, np.pi - 1e-6, 29), [1e-9]])[
      :, None
    ]
    matrices = Rotation.from_rotvec(vectors).as_matrix()
    with jax.enable_x64(True):
      found = jax.vmap(action_labels.rotation_vector)(jnp.asarray(matrices))
    np.testing.assert_allclose(found, vectors, atol=1e-8)

  def test_gradient_at_the_identity(self):
    slope = jax.jacobian(action_labels.rotation_vector)(jnp.eye(3))
    self.assertTrue(bool(jnp.all(jnp.isfinite(slope))))

  def test_padding_rows_have_no_label(self):
    path = _steps([[0, 0, 0], [0, 0, 1], [0, 0, 99]])
    labels = action_labels.move_labels(
      path, jnp.array([True, True, False]), **_MOVE
    )
    np.testing.assert_array_equal(labels[:, 0], [True, False])


if __name__ == "__main__":
  absltest.main()
