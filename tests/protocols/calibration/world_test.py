# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Bodies, poses and motions of the calibration world."""

import numpy as np
from absl.testing import absltest, parameterized

from protocols.calibration import textures, world

_GREY = textures.Texture((0.5, 0.5, 0.5), (0.6, 0.6, 0.6))


def _two_bodies() -> world.World:
  box = world.Part("box", (1, 1, 1), 0)
  ball = world.Part("sphere", (1, 1, 1), 0, center=(0, -1, 0))
  return world.World(
    (_GREY,),
    (
      world.Body("a", (box, ball), (1.0, 0.0, 2.0), 90.0),
      world.Body("b", (box,)),
    ),
  )


class WorldTest(parameterized.TestCase):
  def test_parts_know_their_body(self):
    found = _two_bodies()
    np.testing.assert_array_equal(found.part_body, [0, 0, 1])
    self.assertEqual(found.body_index("b"), 1)
    with self.assertRaisesRegex(KeyError, "known: \\['a', 'b'\\]"):
      found.body_index("c")

  def test_refuses_equal_names_and_unknown_textures(self):
    part = world.Part("box", (1, 1, 1), 0)
    body = world.Body("a", (part,))
    with self.assertRaisesRegex(ValueError, "not unique"):
      world.World((_GREY,), (body, body))
    with self.assertRaisesRegex(ValueError, "no texture 0"):
      world.World((), (body,))

  def test_yaw_turns_forward_to_the_right(self):
    pose = world.yaw_pose((1.0, 0.0, 2.0), 90.0)
    forward = pose[:3, :3] @ [0, 0, 1]
    np.testing.assert_allclose(forward, [1, 0, 0], atol=1e-15)
    np.testing.assert_array_equal(pose[:3, 3], [1, 0, 2])

  def test_rest_repeats_the_rest_poses(self):
    motion = _two_bodies().rest(3)
    self.assertEqual(motion.frames, 3)
    self.assertEqual(motion.body_to_world.shape, (3, 2, 4, 4))
    np.testing.assert_array_equal(
      motion.body_to_world[2, 0], world.yaw_pose((1, 0, 2), 90.0)
    )
    self.assertTrue(motion.present.all())

  def test_edits_leave_the_original_alone(self):
    motion = _two_bodies().rest(4)
    gone = motion.without_body_from(1, 2)
    np.testing.assert_array_equal(gone.present[:, 1], [1, 1, 0, 0])
    painted = motion.with_texture_from(2, 5, 3)
    np.testing.assert_array_equal(painted.texture_ids[:, 2], [0, 0, 0, 5])
    self.assertTrue(motion.present.all())
    self.assertEqual(motion.texture_ids.max(), 0)

  def test_identity_camera_looks_along_z(self):
    np.testing.assert_allclose(
      world.look_at((0, 0, 0), (0, 0, 5)), np.eye(4), atol=0
    )

  @parameterized.parameters(0, 1, 2, 3)
  def test_look_at_is_rigid_level_and_aimed(self, seed):
    rng = np.random.default_rng(seed)
    eye, target = rng.normal(size=(2, 3)) * 3
    pose = world.look_at(eye, target)
    rotation = pose[:3, :3]
    np.testing.assert_allclose(rotation.T @ rotation, np.eye(3), atol=1e-12)
    self.assertAlmostEqual(np.linalg.det(rotation), 1.0, places=12)
    self.assertAlmostEqual(rotation[1, 0], 0.0, places=12)
    camera = rotation.T @ (target - eye)
    np.testing.assert_allclose(camera[:2], 0.0, atol=1e-12)
    self.assertGreater(camera[2], 0)

  def test_look_at_refuses_a_vertical_view(self):
    with self.assertRaisesRegex(ValueError, "no level camera"):
      world.look_at((0, 0, 0), (0, 3, 0))


if __name__ == "__main__":
  absltest.main()
