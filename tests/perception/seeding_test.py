# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Seeding against the recorded vectors and by hand."""

import json

import cv2
import numpy as np
from absl.testing import absltest, parameterized

from perception import errors, seeding
from tests.perception import media


def _box_mask(shape, box):
  mask = np.zeros(shape, bool)
  x_min, y_min, x_max, y_max = box
  mask[y_min:y_max, x_min:x_max] = True
  return mask


class GoldenSeedsTest(parameterized.TestCase):
  """Every recorded mask of every recorded picture."""

  @parameterized.parameters("seed_sc0", "seed_backpack")
  def test_equal_to_the_recorded_points(self, name):
    if not media.GOLDEN.is_dir():
      self.skipTest("../shared/golden/pdi is absent")
    index = json.loads((media.GOLDEN / "index.json").read_text())
    (entry,) = [v for v in index["vectors"] if v["name"] == name]
    arrays = np.load(media.GOLDEN / entry["file"])
    gray = arrays["in_gray"]
    left = set(arrays.files) - {"in_gray"}
    for case, facts in entry["official"].items():
      mask = _box_mask(gray.shape, facts["box_xyxy_half_open"])
      found = {
        "fg": seeding.seed_anchors(gray, mask),
        "bg": seeding.seed_background(gray, mask),
        "sift": seeding.sift_points(gray, mask, count=100),
        "grid": seeding.grid_points(mask),
      }
      self.assertLen(found["fg"], facts["n_fg"])
      self.assertLen(np.unique(found["fg"], axis=0), facts["n_fg_distinct"])
      for kind, points in found.items():
        key = f"out_{case}_{kind}"
        left.remove(key)
        self.assertEqual(points.dtype, np.float32)
        self._assert_same_points(points, arrays[key])
    self.assertEmpty(left)

  def _assert_same_points(self, points, expected):
    """In order with the recording's OpenCV, else as sets within 0.01 px."""
    self.assertEqual(points.shape, expected.shape)
    if np.array_equal(points, expected) or not len(points):
      return
    order = [np.lexsort(p.T[::-1]) for p in (points, expected)]
    np.testing.assert_allclose(points[order[0]], expected[order[1]], atol=0.01)


class SeedingRulesTest(parameterized.TestCase):
  """The rules, on small pictures."""

  def test_flat_object_gets_a_grid(self):
    gray = np.full((40, 60), 128, np.uint8)
    mask = _box_mask(gray.shape, (0, 0, 60, 40))
    points = seeding.seed_anchors(gray, mask)
    # side = 10: cells of 4 x 6 pixels, one point in each.
    self.assertEqual(points.shape, (100, 2))
    cells = (points // [6, 4]).astype(int)
    self.assertLen(np.unique(cells, axis=0), 100)

  def test_grid_ignores_what_lies_beyond_the_last_cell(self):
    mask = _box_mask((11, 11), (10, 0, 11, 11))  # side 4: cells end at 8
    points = seeding.grid_points(mask)
    self.assertLen(points, 11)  # no cell has a pixel: pixels drawn at random
    self.assertTrue(np.all(points[:, 0] == 10))
    self.assertLen(np.unique(points, axis=0), 11)

  def test_empty_mask_gives_no_anchor(self):
    gray = media.texture(40, 60, seed=0)[..., 0]
    empty = np.zeros((40, 60), bool)
    self.assertEqual(seeding.seed_anchors(gray, empty).shape, (0, 2))
    self.assertEqual(seeding.seed_background(gray, ~empty).shape, (0, 2))

  def test_background_lies_outside(self):
    gray = media.texture(80, 120, seed=0, block=8)[..., 0]
    mask = _box_mask(gray.shape, (30, 20, 90, 60))
    points = np.rint(seeding.seed_background(gray, mask)).astype(int)
    self.assertGreater(len(points), 50)
    self.assertFalse(mask[points[:, 1], points[:, 0]].any())

  @parameterized.parameters(
    ((720, 1280), (495, 880)),
    ((480, 640), (480, 640)),
    ((1080, 1920), (495, 880)),
    ((1920, 1080), (880, 495)),
    ((880, 880), (880, 880)),
    ((1, 4000), (1, 880)),
  )
  def test_tracker_size(self, size, expected):
    self.assertEqual(seeding.tracker_size(size), expected)

  def test_queries_come_back_in_video_pixels(self):
    image = media.texture(600, 1200, seed=4, block=12)
    mask = _box_mask((600, 1200), (700, 100, 1000, 400))
    queries = seeding.seed_queries(image, mask[None], np.array([5]))
    on_object = queries.object_ids == 5
    x, y = queries.xy[on_object].T
    self.assertGreater(on_object.sum(), 50)
    self.assertTrue(np.all((x > 695) & (x < 1005) & (y > 95) & (y < 405)))
    self.assertEqual(set(queries.object_ids.tolist()), {5, -1})
    self.assertTrue(np.all(queries.frame_row == 0))
    height, width = seeding.tracker_size((600, 1200))
    size = (width, height)
    small = cv2.resize(image, size, interpolation=cv2.INTER_LINEAR)
    gray = cv2.cvtColor(small, cv2.COLOR_RGB2GRAY)
    small_mask = cv2.resize(
      mask.astype(np.uint8), size, interpolation=cv2.INTER_NEAREST
    ).astype(bool)
    anchors = seeding.seed_anchors(gray, small_mask)
    np.testing.assert_allclose(
      queries.xy[on_object],
      anchors * [1200 / width, 600 / height],
      rtol=1e-6,
    )

  def test_object_without_a_pixel_on_frame_0(self):
    image = media.texture(40, 60, seed=0)
    with self.assertRaisesRegex(errors.InputError, "first frame"):
      seeding.seed_queries(image, np.zeros((1, 40, 60), bool), np.array([1]))

  @parameterized.named_parameters(
    ("colour", np.zeros((4, 4, 3), np.uint8), np.zeros((4, 4), bool)),
    ("floats", np.zeros((4, 4)), np.zeros((4, 4), bool)),
    ("sizes", np.zeros((4, 4), np.uint8), np.zeros((4, 5), bool)),
    ("mask_of_255", np.zeros((4, 4), np.uint8), np.zeros((4, 4), np.uint8)),
  )
  def test_wrong_arguments(self, gray, mask):
    with self.assertRaises(errors.InputError):
      seeding.seed_anchors(gray, mask)


if __name__ == "__main__":
  absltest.main()
