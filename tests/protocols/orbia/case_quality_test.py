# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Quality points and construction gates by hand."""

import numpy as np
from absl.testing import absltest, parameterized

from protocols.orbia import actions, case_quality, construction


class CaseQualityTest(parameterized.TestCase):
  @parameterized.parameters((0, 0.0), (300, 1.0), (375, 1.5), (9999, 5.0))
  def test_visual_points(self, energy, points):
    self.assertAlmostEqual(case_quality.visual_points(energy), points)

  def test_an_exact_zero_residual_reads_as_missing(self):
    almost = case_quality.depth_points(1.0, 1e-9, 1.0)
    zero = case_quality.depth_points(1.0, 0.0, 1.0)
    self.assertAlmostEqual(almost - zero, 3.0, places=6)

  def test_revisit_points(self):
    points = case_quality.revisit_points(
      "strong", (0.7, 0.9), 0.0, 0.0, passed=True
    )
    self.assertEqual(points, 10.0)
    failed = case_quality.revisit_points(
      "strong", (0.7, 0.9), 0.0, 0.0, passed=False
    )
    self.assertEqual(failed, 0.0)

  def test_totals_sum_rounded_components(self):
    self.assertEqual(case_quality.total_points([1.00049, 2.00049]), 3.0)

  def test_gates(self):
    query = np.eye(4)
    query[2, 3] = 1.0
    motion = construction.pair_motion(np.eye(4), query)
    self.assertEqual((motion.forward, motion.direction_deg), (1.0, 0.0))
    self.assertTrue(construction.passes_gate(motion, "forward_backward"))
    self.assertFalse(construction.passes_gate(motion, "lateral_out_and_back"))

  def test_move_votes_need_a_majority(self):
    forward, still = [0.0, 0.0, 0.1], [0.0, 0.0, 0.0]
    most = actions.move_vote(np.array([forward, forward, still]))
    half = actions.move_vote(np.array([forward, still]))
    self.assertEqual(most, [True, False, False, False])
    self.assertEqual(half, [False] * 4)

  def test_block_plan_of_a_turn(self):
    poses = np.tile(np.eye(4), (33, 1, 1))
    angle = np.radians(np.linspace(0, 40, 33))
    poses[:, 0, 0] = poses[:, 2, 2] = np.cos(angle)
    poses[:, 0, 2], poses[:, 2, 0] = np.sin(angle), -np.sin(angle)
    plan = actions.block_plan(actions.local_motion(poses), frame_count=33)
    self.assertEqual(plan.generated_frames, 33)
    look_right = plan.actions[:, actions.KEYS.index("L")]
    self.assertEqual(look_right.sum() * 20, plan.emitted_deg[-1, 0])
    self.assertLess(abs(plan.emitted_deg[-1, 0] - 40.0), 10.001)

  def test_smoothing_keeps_fixed_frames(self):
    rng = np.random.default_rng(0)
    poses = np.tile(np.eye(4), (20, 1, 1))
    poses[:, :3, 3] = rng.normal(size=(20, 3))
    smooth = actions.smooth_poses(poses, [7])
    for frame in (0, 7, 19):
      np.testing.assert_array_equal(smooth[frame], poses[frame])
    rough = np.abs(np.diff(poses[:, 0, 3], 2)).mean()
    self.assertLess(np.abs(np.diff(smooth[:, 0, 3], 2)).mean(), rough / 2)


if __name__ == "__main__":
  absltest.main()
