# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Overlays: where they draw, and that the frame itself is left alone."""

import numpy as np
from absl.testing import absltest

from protocols.common import overlays

_RED = (200, 0, 0)


class OverlaysTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    self.frame = np.full((40, 60, 3), 100, np.uint8)

  def test_a_mask_is_tinted_by_its_share_and_outlined_if_wanted(self):
    mask = np.zeros((40, 60), bool)
    mask[10:20, 10:20] = True
    plain = overlays.with_mask(
      self.frame, mask, colour=_RED, opacity=0.5, outline=False
    )
    np.testing.assert_array_equal(plain[15, 15], [150, 50, 50])
    np.testing.assert_array_equal(plain[10, 10], [150, 50, 50])
    np.testing.assert_array_equal(plain[~mask], 100)
    lined = overlays.with_mask(self.frame, mask, colour=_RED, opacity=0.5)
    self.assertGreater(lined[10, 10, 0], 150)

  def test_a_solid_box_is_closed_and_a_dashed_one_has_gaps(self):
    share = {}
    for dashed in (False, True):
      drawn = overlays.with_box(
        self.frame, (5.2, 5, 50, 30), colour=_RED, dashed=dashed
      )
      line = (drawn[5, 5:51] != 100).any(axis=-1)
      share[dashed] = float(line.mean())
      np.testing.assert_array_equal(drawn[15:20, 20:30], 100)
    self.assertEqual(share[False], 1.0)
    self.assertBetween(share[True], 0.3, 0.9)
    np.testing.assert_array_equal(self.frame, 100)

  def test_boxes_without_size_and_beyond_the_frame_are_drawn(self):
    for box in ((5, 5, 5, 5), (-20, -20, 200, 200), (70, 50, 90, 60)):
      for dashed in (False, True):
        drawn = overlays.with_box(
          self.frame, box, colour=_RED, dashed=dashed, text="3"
        )
        self.assertEqual(drawn.shape, self.frame.shape)

  def test_pictures_are_joined_with_a_gap(self):
    joined = overlays.side_by_side([self.frame, self.frame])
    self.assertEqual(joined.shape, (40, 124, 3))
    np.testing.assert_array_equal(joined[:, 60:64], 255)


if __name__ == "__main__":
  absltest.main()
