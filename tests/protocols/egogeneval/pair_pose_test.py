# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Pair poses: exact rooms, images of two sizes, what is not localised."""

import numpy as np
from absl.testing import absltest
from scipy.spatial import transform

from perception import roles
from perception.degenerate import DegenerateError
from protocols.egogeneval import pair_pose
from tests.protocols.egogeneval import drawn_room


def _info(name):
  return roles.BackendInfo("geometry", name, "1", "none", False)


class _Joint:
  """A geometry backend without a pair mode: moves 0.1 m to the right."""

  info = _info("joint")

  def __init__(self):
    self.sizes = []

  def reconstruct(self, frames):
    self.sizes.append(frames.size)
    moved = np.eye(4)
    moved[0, 3] = 0.1

    class Found:
      """What the caller reads of a geometry record."""

      c2w = np.stack([np.eye(4), moved])

    return Found


class _Paired(_Joint):
  """One with a pair mode that tells the sizes it was given."""

  info = _info("paired")

  def pair_poses(self, source, target):
    self.sizes.append((source.shape[:2], target.shape[:2]))
    first, second = np.eye(4), np.eye(4)
    first[2, 3], second[2, 3] = 1.0, 1.5
    return np.stack([first, second])


class _Static(_Joint):
  """One that finds nothing to reconstruct."""

  info = _info("static")

  def reconstruct(self, frames):
    raise DegenerateError(
      "pair", "geometry", found="no parallax", expected="some"
    )


def _view(height, width):
  return pair_pose.View(np.zeros((height, width, 3), np.uint8))


class GeometryTest(absltest.TestCase):
  def test_a_pair_mode_gets_both_images_at_their_own_size(self):
    backend = _Paired()
    found = pair_pose.GeometryPairPose(backend).estimate(
      _view(48, 64), _view(30, 90)
    )
    self.assertEqual(backend.sizes, [((48, 64), (30, 90))])
    np.testing.assert_allclose(found.pose[:3, 3], [0, 0, 0.5])

  def test_without_a_pair_mode_two_sizes_are_refused_not_resized(self):
    backend = _Joint()
    pair = pair_pose.GeometryPairPose(backend)
    found = pair.estimate(_view(48, 64), _view(30, 90))
    self.assertIsNone(found.pose)
    self.assertIn("no images of two sizes: (48, 64), (30, 90)", found.reason)
    self.assertEqual(backend.sizes, [])
    same = pair.estimate(_view(48, 64), _view(48, 64))
    np.testing.assert_allclose(same.pose[:3, 3], [0.1, 0, 0])

  def test_a_degenerate_pair_has_its_reason(self):
    pair = pair_pose.GeometryPairPose(_Static())
    found = pair.estimate(_view(8, 8), _view(8, 8))
    self.assertIsNone(found.pose)
    self.assertIn("no parallax", found.reason)
    self.assertEqual(pair.info.name, "static")


class PnpTest(absltest.TestCase):
  def _room(self, turn_deg, move, noise_m=0.0):
    intrinsics = drawn_room.intrinsics(drawn_room.COLOUR_FOCAL)
    image, depth = drawn_room.render(drawn_room.COLOUR_FOCAL, np.eye(4))
    rng = np.random.default_rng(0)
    depth = depth + noise_m * rng.normal(size=depth.shape)
    pose = np.eye(4)
    pose[:3, :3] = transform.Rotation.from_euler(
      "yx", turn_deg, degrees=True
    ).as_matrix()
    pose[:3, 3] = move
    target, _ = drawn_room.render(drawn_room.COLOUR_FOCAL, pose)
    found = pair_pose.PnpPairPose().estimate(
      pair_pose.View(image, intrinsics, depth.astype(np.float32)),
      pair_pose.View(target, intrinsics),
    )
    return found, pose

  def test_an_exact_room(self):
    found, pose = self._room([8.0, 3.0], [0.1, -0.02, 0.05])
    self.assertGreater(found.support, 100)
    error = np.linalg.inv(pose) @ found.pose
    turn = transform.Rotation.from_matrix(error[:3, :3]).magnitude()
    self.assertLess(np.degrees(turn), 0.1)
    self.assertLess(np.linalg.norm(error[:3, 3]), 0.005)

  def test_noisy_depth_biases_neither_turn_nor_move(self):
    found, pose = self._room([10.0, 0.0], [0.15, 0.0, 0.0], noise_m=0.02)
    turn = transform.Rotation.from_matrix(found.pose[:3, :3]).magnitude()
    self.assertAlmostEqual(np.degrees(turn) / 10.0, 1.0, delta=0.02)
    self.assertAlmostEqual(found.pose[0, 3] / pose[0, 3], 1.0, delta=0.05)

  def test_equal_pictures_have_not_moved_at_all(self):
    found, _ = self._room([0.0, 0.0], [0.0, 0.0, 0.0])
    np.testing.assert_array_equal(found.pose, np.eye(4))


if __name__ == "__main__":
  absltest.main()
