# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""GT-anchored score: the worked example, bounds, monotonicity, no anchors."""

import math

from absl.testing import absltest, parameterized
from hypothesis import given, settings
from hypothesis import strategies as st

from protocols.pdi import constants, normalise

_PAPER = constants.for_variant("paper")


class NormaliseTest(parameterized.TestCase):
  @parameterized.parameters(
    ("scale", 0.2295, 6.69), ("traj", 0.2064, 58.51), ("rigid", 0.3392, 14.10)
  )
  def test_worked_example_of_section_15_8(self, name, value, score):
    found = normalise.component_score(value, normalise.PUBLISHED_ANCHORS[name])
    # The specification prints from z rounded to four digits.
    self.assertAlmostEqual(found, score, delta=0.011)

  @parameterized.parameters((0, 100.0), (1, 53.8), (2, 23.8), (3, 9.5))
  def test_scores_at_whole_z(self, z, score):
    anchor = normalise.Anchor(0.5, 0.1)
    found = normalise.component_score(0.5 + z * 0.14826, anchor)
    self.assertAlmostEqual(found, score, places=1)

  def test_clip_score_is_the_weighted_sum(self):
    values = {"scale": 0.2295, "traj": 0.2064, "rigid": 0.3392}
    found = normalise.clip_score(values, normalise.PUBLISHED_ANCHORS, _PAPER)
    self.assertAlmostEqual(found, 0.4 * 6.69 + 0.4 * 58.51 + 0.2 * 14.1, 1)

  @settings(max_examples=100, deadline=None, derandomize=True)
  @given(st.floats(0, 1e6), st.floats(0, 1e6))
  def test_scores_are_bounded_and_fall(self, a, b):
    anchor = normalise.Anchor(0.5, 0.1)
    low, high = sorted((a, b))
    better = normalise.component_score(low, anchor)
    worse = normalise.component_score(high, anchor)
    self.assertBetween(worse, 0.0, better)
    self.assertLessEqual(better, 100.0)

  def test_no_score_without_spread_component_or_number(self):
    flat = normalise.Anchor(0.5, 0.0)
    self.assertIsNone(normalise.component_score(0.5, flat))
    anchor = normalise.Anchor(0.5, 0.1)
    self.assertIsNone(normalise.component_score(math.nan, anchor))
    values = {"scale": 0.1, "traj": None, "rigid": 0.1}
    self.assertIsNone(
      normalise.clip_score(values, normalise.PUBLISHED_ANCHORS, _PAPER)
    )
    self.assertIsNone(normalise.clip_score({"scale": 0.1}, {}, _PAPER))

  def test_anchors_of_hand_made_values(self):
    columns = {"scale": [1.0, 2.0, 4.0], "traj": [], "rigid": [3.0]}
    found = normalise.anchors_from(columns)
    self.assertEqual(found["scale"], normalise.Anchor(2.0, 1.0))
    self.assertEqual(found["rigid"], normalise.Anchor(3.0, 0.0))
    self.assertNotIn("traj", found)


if __name__ == "__main__":
  absltest.main()
