# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Ray-cast cases: paths of the templates; baselines."""

import numpy as np
from absl.testing import absltest, parameterized

from protocols.orbia import (
  baselines,
  raycast_cases,
)
from protocols.orbia.constants import RELEASED, TEMPLATES
from protocols.orbia.control import pose_problem
from tests.protocols.orbia import tiny_world


class RaycastPathTest(parameterized.TestCase):
  @parameterized.parameters(*TEMPLATES)
  def test_paths_return_and_are_smooth(self, template):
    path = raycast_cases.path_of(template, frame_count=357, turnaround=178)
    self.assertEqual(pose_problem(path, c=RELEASED), "")
    np.testing.assert_allclose(path[0], path[-1], atol=1e-12)
    step = np.linalg.norm(np.diff(path[:, :3, 3], axis=0), axis=1)
    self.assertLess(step.max(), 0.2)
    if template not in ("arc_return",):
      np.testing.assert_allclose(path[131], path[225], atol=1e-12)
    else:
      self.assertGreater(np.linalg.norm(path[131] - path[225]), 0.1)

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
