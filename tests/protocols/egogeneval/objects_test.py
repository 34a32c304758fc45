# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Labels, detections, filters, frames, object depth: hand-made cases."""

import dataclasses

import numpy as np
from absl.testing import absltest, parameterized

from protocols.egogeneval import (
  boxes,
  constants,
  detections,
  frames,
  matchability,
  object_depth,
  observable,
  vocabulary,
)

_SIZE = (400, 600)


class VocabularyTest(parameterized.TestCase):
  @parameterized.parameters(
    ("The Desk-Lamp ", "desk lamp"), ("Table/Desk", "table"), ("Walls", ""),
    ({"category": None, "label": "a Sofa"}, "sofa"), (None, ""), ("TV.", "tv"),
  )  # fmt: skip
  def test_normalise(self, label, expected):
    self.assertEqual(vocabulary.normalise(label), expected)

  def test_order_of_the_prompts_is_the_variants(self):
    labels = ["whiteboard", "chair"]
    released = vocabulary.prompts(labels, constants.RELEASED)
    paper = vocabulary.prompts(labels, constants.PAPER)
    self.assertEqual(released[:3], ["whiteboard", "chair", "table"])
    self.assertEqual((paper[0], paper[-1]), ("chair", "whiteboard"))
    self.assertEqual(sorted(released), sorted(paper))

  def test_synonyms(self):
    self.assertTrue(vocabulary.compatible("tv", "monitor"))
    self.assertTrue(vocabulary.compatible("", "monitor"))
    self.assertFalse(vocabulary.compatible("tv", "chair"))
    self.assertEqual(vocabulary.canonical("couch"), "bed")


class DetectionTest(absltest.TestCase):
  def test_rounding_thresholds_and_suppression(self):
    found = detections.postprocess(
      [
        [10.5, 11.5, 60.5, 71.5],
        [10, 12, 60, 72],
        [0, 0, 5, 5],
        [90, 90, 80, 99],
      ],
      [0.9, 0.8, 0.7, 0.24],
      ["a chair.", "chair", "chair", "tv"],
      (240, 320),
      constants.RELEASED,
    )
    # Halves go to even; the second repeats the first; the third is too small.
    self.assertEqual(found.boxes, ((10, 12, 60, 72),))
    self.assertEqual((found.labels, found.sources), (("chair",), (0,)))

  def test_non_finite_boxes_are_dropped(self):
    found = detections.postprocess(
      [[np.nan, 0, 50, 50]], [0.9], ["chair"], (240, 320), constants.RELEASED
    )
    self.assertEmpty(found.boxes)


class MatchabilityTest(parameterized.TestCase):
  @parameterized.parameters(
    ([200, 150, 236, 190], "chair", ()),
    ([200, 150, 236, 189], "chair", ("small_box_area",)),
    ([200, 150, 300, 250], "book", ("ignored_label",)),
    ([1, 150, 90, 220], "chair", ("partial_edge_small",)),
    ([200, 150, 200, 250], "chair", ("invalid_box",)),
  )
  def test_rules(self, box, label, reasons):
    found = matchability.matchable([box], [label], _SIZE)
    removed = found.removed[0].reasons if found.removed else ()
    for reason in reasons:
      self.assertIn(reason, removed)
    self.assertEqual(bool(found.keep), not reasons)

  def test_duplicates_and_budgets(self):
    nested = [[100, 100, 300, 300], [105, 105, 295, 295]]
    found = matchability.matchable(nested, ["tv", "monitor"], _SIZE)
    self.assertEqual(found.keep, (0,))
    self.assertEqual(found.removed[0].duplicate_of, 0)
    row = [[20 + 110 * i, 50, 120 + 110 * i, 180] for i in range(5)]
    found = matchability.matchable(row, ["stool"] * 5, _SIZE)
    self.assertLen(found.keep, 3)

  def test_box_arithmetic(self):
    self.assertAlmostEqual(boxes.iou([0, 0, 2, 2], [1, 0, 3, 2]), 1 / 3)
    self.assertEqual(boxes.iou([0, 0, 0, 0], [0, 0, 0, 0]), 0.0)
    self.assertEqual(boxes.center_distance([0, 0, 2, 2], [3, 4, 5, 6]), 5.0)
    self.assertTrue(
      boxes.centers_contained([0, 0, 4, 4], [4, 4, 12, 12]) is False
    )
    self.assertTrue(boxes.centers_contained([0, 0, 8, 8], [4, 4, 12, 12]))


class FrameTest(absltest.TestCase):
  def test_far_depth_and_unknown_depth(self):
    depth = np.full((40, 60), 2.0, np.float32)
    depth[0, 0], depth[2, 2], depth[4, 4] = np.nan, 50.0, np.inf
    reduced = frames.reduce_depth(depth, (40, 60), "hypersim")
    self.assertEqual(reduced.shape, (20, 30))
    self.assertEqual(reduced[0, 0], 0.0)
    self.assertEqual(reduced[1, 1], 0.0)
    self.assertEqual(reduced[10, 10], 2.0)

  def test_scannet_is_reduced_twice(self):
    image = np.zeros((48, 64, 3), np.uint8)
    self.assertEqual(frames.reduce_image(image, "scannet").shape, (12, 16, 3))
    matrix = np.array([[40.0, 0, 32], [0, 40.0, 24], [0, 0, 1]])
    np.testing.assert_allclose(
      frames.reduce_intrinsics(matrix, "scannet"),
      [[10, 0, 8], [0, 10, 6], [0, 0, 1]],
    )

  def test_matterport_counts_are_quarter_millimetres(self):
    counts = np.full((8, 8), 8000, np.uint16)
    reduced = frames.reduce_depth(counts, (8, 8), "matterport3d")
    np.testing.assert_allclose(reduced, 2.0)

  def test_hypersim_view_is_60_degrees_wide(self):
    matrix = frames.hypersim_intrinsics((768, 1024))
    self.assertAlmostEqual(2 * np.degrees(np.arctan(512 / matrix[0, 0])), 60.0)

  def test_generated_images_are_stretched(self):
    image = np.zeros((30, 90, 3), np.uint8)
    self.assertEqual(frames.stretch_to(image, (20, 20)).shape, (20, 20, 3))


class ObjectDepthTest(parameterized.TestCase):
  def test_even_median_is_a_float32_mean(self):
    depth = np.full((40, 40), 1.0, np.float32)
    depth[:, 20:] = 1.1
    found = object_depth.median_depth(
      depth, [0, 0, 40, 40], (40, 40), constants.RELEASED
    )
    self.assertEqual(found, float((np.float32(1.0) + np.float32(1.1)) / 2))

  @parameterized.parameters((0.05, None, 0.05), (20.0, None, 20.0))
  def test_the_limits_belong_to_the_paper_alone(self, value, released, paper):
    depth = np.full((40, 40), value, np.float32)
    for limits, expected in (
      (constants.RELEASED, released),
      (constants.PAPER, paper),
    ):
      found = object_depth.median_depth(depth, [5, 5, 30, 30], (40, 40), limits)
      if expected is None:
        self.assertIsNone(found)
      else:
        self.assertAlmostEqual(found, expected, places=6)

  def test_too_few_pixels_and_empty_boxes(self):
    depth = np.zeros((40, 40), np.float32)
    depth[10:13, 10:15] = 1.0  # 15 pixels.
    box = [5, 5, 30, 30]
    limits = constants.RELEASED
    self.assertIsNone(object_depth.median_depth(depth, box, (40, 40), limits))
    depth[13, 10] = 1.0
    self.assertEqual(
      object_depth.median_depth(depth, box, (40, 40), limits), 1.0
    )
    for bad in ([5, 5, 5.5, 30], [np.nan, 5, 9, 30]):
      self.assertIsNone(object_depth.median_depth(depth, bad, (40, 40), limits))

  def test_one_object_has_no_depth(self):
    depth = np.ones((40, 40), np.float32)
    found = object_depth.object_depths(
      depth, depth, [[5, 5, 30, 30]], [[5, 5, 30, 30]], {0: 0}, (40, 40),
      constants.RELEASED,
    )  # fmt: skip
    self.assertIsNone(found[0].gt_median_depth)


class ObservableTest(absltest.TestCase):
  def test_share_and_empty_map(self):
    mask = np.zeros((20, 30), bool)
    mask[:, :10] = True
    visible = observable.Visibility(mask, ())
    keep, shares = observable.supported(
      visible, [(0, 0, 19, 9), (10, 0, 29, 9), (5, 5, 24, 5)], constants.PAPER
    )
    np.testing.assert_allclose(shares, [0.5, 0.0, 0.25])
    self.assertEqual(keep, [0, 2])
    empty = dataclasses.replace(visible, mask=np.zeros_like(mask))
    keep, _ = observable.supported(empty, [(0, 0, 9, 9)], constants.PAPER)
    self.assertEqual(keep, [0])

  def test_context_without_geometry_gives_an_empty_map(self):
    blank = np.zeros((20, 30, 3), np.uint8)
    target = frames.EvaluationFrame(
      blank, np.ones((20, 30), np.float32), np.eye(3), np.eye(4)
    )
    bare = frames.EvaluationFrame(blank, None, None, None)
    found = observable.visibility_map(target, [bare], constants.RELEASED)
    self.assertFalse(found.mask.any())
    self.assertEmpty(found.projections)


if __name__ == "__main__":
  absltest.main()
