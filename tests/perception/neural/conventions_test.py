# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Tests of the convention edge; needs no torch."""

import numpy as np
from absl.testing import absltest, parameterized
from scipy.spatial import transform

from perception import errors, observation
from perception.neural import conventions


def _poses(count, seed=0):
  rng = np.random.default_rng(seed)
  poses = np.tile(np.eye(4), (count, 1, 1))
  poses[:, :3, :3] = transform.Rotation.random(count, rng=rng).as_matrix()
  poses[:, :3, 3] = rng.normal(size=(count, 3))
  return poses


class PosesTest(parameterized.TestCase):
  @parameterized.parameters(3, 4)
  def test_world_to_camera_is_inverted(self, rows):
    poses = _poses(5)
    w2c = np.linalg.inv(poses)[:, :rows]
    np.testing.assert_allclose(conventions.c2w_from_w2c(w2c), poses, atol=1e-12)

  def test_a_point_lands_where_the_camera_saw_it(self):
    # Camera at (1, 2, 3) that looks along world +x: its z is world x, its x is
    # world -y, its y is world -z. The world point (5, 2, 3) lies 4 ahead.
    rotation = np.array([[0.0, 0, 1], [-1, 0, 0], [0, -1, 0]])
    centre = np.array([1.0, 2.0, 3.0])
    w2c = np.concatenate([rotation.T, (-rotation.T @ centre)[:, None]], axis=1)
    c2w = conventions.c2w_from_w2c(w2c[None])[0]
    np.testing.assert_allclose(c2w @ [0, 0, 4, 1], [5, 2, 3, 1], atol=1e-12)

  def test_noisy_rotations_become_rigid(self):
    noisy = np.linalg.inv(_poses(4))
    noisy[:, :3, :3] += np.random.default_rng(1).normal(0, 0.02, (4, 3, 3))
    c2w = conventions.c2w_from_w2c(noisy)
    rotation = c2w[:, :3, :3]
    np.testing.assert_allclose(
      rotation @ np.swapaxes(rotation, 1, 2),
      np.tile(np.eye(3), (4, 1, 1)),
      atol=1e-12,
    )
    np.testing.assert_allclose(np.linalg.det(rotation), 1.0)

  def test_a_reflection_is_projected_to_a_rotation(self):
    np.testing.assert_allclose(
      np.linalg.det(conventions.orthonormalise(np.diag([1.0, 1, -1]))), 1.0
    )

  def test_rebase_keeps_relative_motion(self):
    poses = _poses(4)
    based = conventions.rebase(poses)
    np.testing.assert_array_equal(based[0], np.eye(4))
    np.testing.assert_allclose(
      np.linalg.inv(based[1]) @ based[3],
      np.linalg.inv(poses[1]) @ poses[3],
      atol=1e-12,
    )

  @parameterized.named_parameters(
    ("shape", np.zeros((2, 3, 3))),
    ("nan", np.full((2, 4, 4), np.nan)),
    ("one matrix", np.eye(4)),
  )
  def test_refused(self, matrices):
    with self.assertRaises(errors.InputError):
      conventions.homogeneous(matrices)


class PixelsTest(parameterized.TestCase):
  def test_off_centre_point_of_a_wide_image(self):
    # A corner-origin camera of a 30x50 image with fx = 40, fy = 20 and the
    # principal point in the middle (25, 15). The point (0.5, -0.25, 1) falls
    # on x = 45, y = 10 from the corner: pixel centre 44.5, 9.5 in ours.
    corner = np.array([[40.0, 0, 25], [0, 20, 15], [0, 0, 1]])
    ours = conventions.intrinsics_from_corner(corner)
    xy = (ours @ [0.5, -0.25, 1.0])[:2]
    np.testing.assert_allclose(xy, [44.5, 9.5])
    np.testing.assert_allclose(conventions.points_to_corner(xy), [45, 10])
    np.testing.assert_array_equal(
      conventions.intrinsics_to_corner(ours), corner
    )

  def test_rescaling_commutes_with_the_shift(self):
    corner = np.array([[[40.0, 0, 25], [0, 20, 14], [0, 0, 1]]])
    scaled = corner * np.array([[3.0], [2.0], [1.0]])
    np.testing.assert_allclose(
      observation.rescale_intrinsics(
        conventions.intrinsics_from_corner(corner),
        from_size=(30, 50),
        to_size=(60, 150),
      ),
      conventions.intrinsics_from_corner(scaled),
    )

  def test_boxes_are_shifted_clipped_and_filtered(self):
    boxes = np.array(
      [
        [10.0, 5.0, 30.0, 20.0],
        [-4.0, 0.0, 60.0, 40.0],
        [60.0, 5.0, 70.0, 9.0],
        [10.0, 5.0, 10.0, 9.0],
        [np.nan, 5.0, 10.0, 9.0],
      ]
    )
    ours, keep = conventions.boxes_from_corner(boxes, size=(30, 50))
    np.testing.assert_array_equal(keep, [True, True, False, False, False])
    np.testing.assert_allclose(
      ours, [[9.5, 4.5, 29.5, 19.5], [-0.5, -0.5, 49.5, 29.5]]
    )
    empty, _ = conventions.boxes_from_corner(np.zeros((0, 4)), size=(3, 4))
    self.assertEqual(empty.shape, (0, 4))


class NormaliseTest(absltest.TestCase):
  def test_hand_worked(self):
    # Centres 0, 3, 4, 8 from the first: sorted distances 0, 3, 4, 8; the lower
    # median is element 1 = 3.
    poses = np.tile(np.eye(4), (4, 1, 1))
    poses[:, 0, 3] = [2, 5, 6, 10]
    w2c, first, scale = conventions.normalise_cameras(poses)
    self.assertEqual(scale, 3.0)
    np.testing.assert_allclose(w2c[:, 0, 3], [0, -1, -4 / 3, -8 / 3])
    np.testing.assert_array_equal(first, poses[0])
    held_out = np.eye(4)
    held_out[:3, 3] = [2, 0, 6]
    moved = conventions.to_normalised(held_out[None], first, scale)
    np.testing.assert_allclose(moved[0, :3, 3], [0, 0, 2])

  def test_small_motion_is_not_blown_up(self):
    poses = np.tile(np.eye(4), (2, 1, 1))
    poses[1, 2, 3] = 0.01
    _, _, scale = conventions.normalise_cameras(poses)
    self.assertEqual(scale, 0.1)


if __name__ == "__main__":
  absltest.main()
