# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Ray-cast cases: paths of the templates; baselines."""

import numpy as np
from absl.testing import absltest, parameterized

from protocols.orbia import baselines, raycast_cases, raycast_paths
from protocols.orbia.constants import RELEASED, TEMPLATES
from protocols.orbia.control import pose_problem
from protocols.orbia.raycast_paths import path_of
from tests.protocols.orbia import tiny_world


class RaycastPathTest(parameterized.TestCase):
  @parameterized.parameters(*TEMPLATES)
  def test_paths_return_and_are_smooth(self, template):
    path = path_of(template, frame_count=357, turnaround=178)
    self.assertEqual(pose_problem(path, c=RELEASED), "")
    np.testing.assert_allclose(path[0], path[-1], atol=1e-12)
    step = np.linalg.norm(np.diff(path[:, :3, 3], axis=0), axis=1)
    self.assertLess(step.max(), 0.2)
    if template not in ("arc_return",):
      np.testing.assert_allclose(path[131], path[225], atol=1e-12)
    else:
      self.assertGreater(np.linalg.norm(path[131] - path[225]), 0.1)

  @parameterized.product(template=TEMPLATES, frame_count=(357, 961))
  def test_a_landmark_is_passed_and_lost_from_sight(
    self, template, frame_count
  ):
    first, turnaround = (105, 178) if frame_count == 357 else (200, 480)
    path = path_of(template, frame_count=frame_count, turnaround=turnaround)
    last = frame_count - 1
    foot = raycast_paths.landmark_place(path, first=first, revisit=last - first)
    eyes = path[:, :3, 3] * [1, 0, 1]
    self.assertGreater(np.linalg.norm(eyes - foot, axis=1).min(), 0.8 - 1e-9)
    offset = (foot - eyes) / np.linalg.norm(foot - eyes, axis=1)[:, None]
    cosine = np.sum(path[:, :3, 2] * offset, axis=1)
    off_axis = np.degrees(np.arccos(np.clip(cosine, -1, 1)))
    self.assertLess(off_axis[first], 25.0)
    self.assertLess(off_axis[last - first], 31.5)
    self.assertGreater(off_axis[first : last - first].max(), 55.0)

  def test_nothing_is_lost_by_a_camera_that_stays(self):
    path = np.tile(
      path_of("yaw_return", frame_count=9, turnaround=4)[0], (9, 1, 1)
    )
    with self.assertRaisesRegex(ValueError, "ever out of sight"):
      raycast_paths.landmark_place(path, first=2, revisit=6)

  def test_a_body_changes_while_it_is_out_of_sight(self):
    world = raycast_cases.make_world("yaw_return", frame_count=357, seed=2)
    other = raycast_cases.changed_world(world, "forgetting")
    kind, body, start = other.change
    self.assertEqual(kind, "forgetting")
    self.assertBetween(start, 106, 250)
    pixels = world.body_pixels([105, start])[:, body]
    self.assertGreater(pixels[0], 0.05 * 27 * 48)
    self.assertEqual(pixels[1], 0)
    before, after = other.shot(105), other.shot(251)
    np.testing.assert_array_equal(before.image, world.shot(105).image)
    np.testing.assert_allclose(before.pose, after.pose, atol=1e-12)
    changed = np.any(before.image != after.image, axis=-1)
    self.assertGreater(changed.mean(), 0.05)

  def test_wrong_frame_counts_are_refused(self):
    with self.assertRaisesRegex(ValueError, "neither a short nor a long"):
      raycast_cases.make_world("yaw_return", frame_count=100, seed=0)


class BaselineTest(parameterized.TestCase):
  def setUp(self):
    super().setUp()
    self.world = tiny_world.Wall()

  def test_depth_warp_of_the_input_is_the_world_where_it_was_seen(self):
    warped = baselines.depth_warp(self.world, 12)
    true = self.world.shot(12)
    # 12 steps of 5 cm at 4 m and focal 60: nine columns are new.
    seen = slice(0, -9)
    difference = warped.image[:, seen].astype(int) - true.image[:, seen]
    self.assertLess(np.abs(difference).mean(), 3.0)
    np.testing.assert_allclose(warped.depth, 4.0, rtol=1e-5)
    np.testing.assert_array_equal(warped.pose, true.pose)

  def test_depth_warp_of_nothing_seen_has_no_depth(self):
    class Away(tiny_world.Wall):
      def poses(self):
        poses = super().poses()
        poses[5, 2, 3] = 50.0
        return poses

    warped = baselines.depth_warp(Away(), 5)
    self.assertTrue(np.all(np.isnan(warped.depth)))

  def test_rotated_view_is_exact(self):
    shot = self.world.shot(0)
    there = baselines.rotated_view(shot, self.world.intrinsics, 10.0)
    # The wall z = 4 seen by a camera turned by 10 degrees to the right: at
    # the image centre the depth is 4 / cos(10 degrees).
    k = self.world.intrinsics
    centre = there.depth[int(k[1, 2]), int(k[0, 2])]
    self.assertAlmostEqual(centre, 4.0 / np.cos(np.radians(10.0)), delta=0.01)

  def test_freeze_stays_and_swap_leaves_after_the_turnaround(self):
    frozen = baselines.freeze(self.world, 12)
    np.testing.assert_array_equal(frozen.pose, np.eye(4))
    before, after = self.world.turnaround, self.world.turnaround + 1
    same = baselines.swap(self.world, before)
    np.testing.assert_array_equal(same.image, self.world.shot(before).image)
    other = baselines.swap(self.world, after)
    self.assertTrue(np.any(other.image != self.world.shot(after).image))
    np.testing.assert_array_equal(other.pose, self.world.shot(after).pose)


if __name__ == "__main__":
  absltest.main()
