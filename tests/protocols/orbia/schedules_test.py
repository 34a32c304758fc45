# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Schedules by hand, from the specification's own examples."""

import numpy as np
from absl.testing import absltest, parameterized

from protocols.orbia import schedules
from protocols.orbia.constants import PAPER, RELEASED


class SchedulesTest(parameterized.TestCase):
  def setUp(self):
    super().setUp()
    self.plan = schedules.sampling_plan(357, [0, 356], [], c=RELEASED)

  def test_sampling_plan(self):
    self.assertLen(self.plan, 179)
    odd = schedules.sampling_plan(357, [0, 83, 356], [131, 225], c=RELEASED)
    self.assertLen(odd, 182)
    self.assertLen(schedules.sampling_plan(961, [], [], c=RELEASED), 481)
    np.testing.assert_array_equal(
      schedules.primary_frames(odd, c=RELEASED), self.plan
    )

  @parameterized.parameters(
    ("short", 48, [(0, 8), (6, 14), (14, 22)], (348, 356)),
    ("medium", 16, [(0, 32), (20, 52), (42, 74)], (324, 356)),
  )
  def test_pairs_of_a_short_video(self, group, count, first, last):
    items = schedules.item_groups(self.plan, c=RELEASED)[group]
    self.assertLen(items, 2 * count)
    self.assertEqual([tuple(p) for p in items[0:6:2].tolist()], first)
    self.assertEqual(tuple(items[-2].tolist()), last)
    np.testing.assert_array_equal(items[1::2], items[::2, ::-1])

  def test_feature_items_of_both_variants(self):
    released = schedules.feature_positions(96, c=RELEASED)
    self.assertEqual(int(np.sum(released % 2 == 0)), 9)
    medium = schedules.feature_positions(32, c=RELEASED)
    self.assertEqual(medium[medium % 2 == 1].tolist(), [31])
    paper = schedules.feature_positions(96, c=PAPER)
    self.assertLen(paper, 32)
    np.testing.assert_array_equal(paper[::2] + 1, paper[1::2])

  def test_reconstruction_frames(self):
    context, heldout = schedules.reconstruction_frames(self.plan, c=RELEASED)
    self.assertEqual(heldout[:3].tolist(), [12, 34, 56])
    self.assertEqual(int(heldout[-1]), 344)
    self.assertLen(context, 64)
    self.assertEmpty(set(context.tolist()) & set(heldout.tolist()))
    self.assertIsNone(
      schedules.reconstruction_frames(self.plan[:79], c=RELEASED)
    )

  def test_identity_frames(self):
    tracking, scoring = schedules.identity_frames(0, 82, c=RELEASED)
    self.assertEqual(scoring, [21, 41, 62, 82])
    self.assertTrue({0, 4, 80, 82, *scoring} <= set(tracking.tolist()))
    self.assertEqual(schedules.identity_frames(0, 1, c=RELEASED)[1], [1])

  def test_the_clock_of_both_variants(self):
    times = np.array([0.0, 1.0])
    options = {"fps": 24.0, "frame_count": 100}
    released = schedules.video_frames(times, **options, c=RELEASED)
    paper = schedules.video_frames(times, **options, c=PAPER)
    self.assertEqual(released.tolist(), [0, 24])
    self.assertEqual(paper.tolist(), [0, 16])
    late = schedules.video_frames(np.array([9.0]), **options, c=PAPER)
    self.assertEqual(late.tolist(), [-1])

  def test_windows(self):
    short = schedules.windows(357, fps=16.0, c=RELEASED)
    self.assertEqual(short[:, 0].tolist(), [0.0, 5.0, 10.0, 15.0, 17.25])
    self.assertLen(schedules.windows(961, fps=16.0, c=RELEASED), 12)
    self.assertLen(schedules.windows(60, fps=16.0, c=RELEASED), 1)
    members = schedules.window_members(
      np.array([0.0, 5.0, 16.0, 18.0, 22.25]), short, c=RELEASED
    )
    self.assertEqual(members.sum(axis=0).tolist(), [1, 1, 1, 2, 1])

  def test_quality_frames(self):
    self.assertLen(schedules.hps_frames(357, c=RELEASED), 20)
    self.assertLen(schedules.hps_frames(961, c=RELEASED), 54)
    frames = schedules.smoothness_frames(20, c=RELEASED).tolist()
    self.assertEqual(frames, [0, 1, 2, 8, 9, 10, 16, 17, 18])


if __name__ == "__main__":
  absltest.main()
