# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Offline masks, tracks and features on drawn clips with known motion."""

import cv2
import numpy as np
from absl.testing import absltest, parameterized

from perception import (
  errors,
  offline_features,
  offline_masks,
  offline_tracks,
  optical_flow,
  roles,
  seeding,
  video,
)
from tests.perception import media


def _overlap(found, truth):
  """Intersection over union per frame."""
  axes = (1, 2)
  union = (found | truth).sum(axis=axes)
  return (found & truth).sum(axis=axes) / np.maximum(union, 1)


class MasksTest(parameterized.TestCase):
  """GrabCut carried by flow."""

  def _segment(self, frames, prompts, **settings):
    clip = video.clip_from_frames(frames, fps=24)
    return offline_masks.GrabCutFlowMasks(**settings).segment(clip, prompts)

  def test_moving_square(self):
    frames, truth = media.moving_square(12)
    prompt = roles.ObjectPrompt(4, box=(25, 35, 75, 85))
    found = self._segment(frames, [prompt])
    self.assertEqual(found.masks.shape, (1, 12, 120, 160))
    self.assertEqual(found.object_ids.tolist(), [4])
    self.assertEqual(found.provenance.backend, "grabcut_flow")
    self.assertGreater(float(_overlap(found.masks[0], truth).min()), 0.95)

  def test_work_at_reduced_size(self):
    frames, truth = media.moving_square(
      6, size=(360, 480), side=120, start=(90, 120), step=(6, 3)
    )
    prompt = roles.ObjectPrompt(1, box=(80, 110, 220, 250))
    found = self._segment(frames, [prompt], work_side=240)
    self.assertGreater(float(_overlap(found.masks[0], truth).min()), 0.93)

  @parameterized.named_parameters(
    (
      "points",
      {
        "points": np.array([[50.0, 60], [40, 50], [5, 5], [150, 100]]),
        "labels": np.array([True, True, False, False]),
      },
    ),
    ("mask", {}),
  )
  def test_other_prompts(self, hints):
    frames, truth = media.moving_square(5)
    hints = hints or {"mask": truth[0]}
    found = self._segment(frames, [roles.ObjectPrompt(1, **hints)])
    self.assertGreater(float(_overlap(found.masks[0], truth).min()), 0.9)

  def test_hidden_object_is_lost_and_stays_lost(self):
    frames, truth = media.moving_square(12, hidden=slice(5, 8))
    prompt = roles.ObjectPrompt(1, box=(25, 35, 75, 85))
    found = self._segment(frames, [prompt]).masks[0]
    self.assertGreater(float(_overlap(found, truth)[:5].min()), 0.95)
    self.assertFalse(found[5:].any())

  def test_later_prompt_finds_it_again(self):
    frames, truth = media.moving_square(12, hidden=slice(5, 8))
    prompts = [
      roles.ObjectPrompt(1, box=(25, 35, 75, 85)),
      roles.ObjectPrompt(1, frame_row=8, box=(41, 43, 91, 93)),
    ]
    found = self._segment(frames, prompts).masks[0]
    self.assertFalse(found[5:8].any())
    self.assertGreater(float(_overlap(found, truth)[8:].min()), 0.95)

  def test_object_that_leaves_the_picture(self):
    frames, truth = media.moving_square(
      24, start=(100, 40), step=(3, 0), size=(120, 230)
    )
    frames, truth = frames[:, :, :160], truth[:, :, :160]
    prompt = roles.ObjectPrompt(1, box=(95, 35, 145, 85))
    found = self._segment(frames, [prompt]).masks[0]
    self.assertGreater(float(_overlap(found, truth)[:14].min()), 0.8)
    self.assertFalse(found[21:].any())

  def test_two_objects_and_start_in_the_middle(self):
    frames, truth = media.moving_square(8, side=30)
    second, second_truth = media.moving_square(
      8, side=30, start=(110, 20), step=(-1, 2)
    )
    frames = np.where(second_truth[..., None], second, frames)
    prompts = [
      roles.ObjectPrompt(2, frame_row=3, box=(100, 20, 142, 63)),
      roles.ObjectPrompt(7, box=(24, 34, 66, 76)),
    ]
    found = self._segment(frames, prompts)
    self.assertEqual(found.object_ids.tolist(), [2, 7])
    self.assertFalse(found.of(2)[:3].any())
    overlap = _overlap(found.of(2), second_truth)[3:]
    self.assertGreater(float(overlap.min()), 0.93)
    self.assertGreater(float(_overlap(found.of(7), truth).min()), 0.93)

  def test_same_input_same_masks(self):
    frames, _ = media.moving_square(4)
    prompt = roles.ObjectPrompt(1, box=(25, 35, 75, 85))
    first = self._segment(frames, [prompt])
    cv2.setRNGSeed(77)
    np.testing.assert_array_equal(
      first.masks, self._segment(frames, [prompt]).masks
    )

  @parameterized.named_parameters(
    ("no_prompt", [], "at least one box"),
    (
      "twice",
      [roles.ObjectPrompt(1, box=(0, 0, 9, 9))] * 2,
      "two prompts in frame 0",
    ),
    ("outside", [roles.ObjectPrompt(1, box=(0, 0, 999, 9))], "inside 160x120"),
    ("later", [roles.ObjectPrompt(1, 9, box=(0, 0, 9, 9))], "frame_row"),
  )
  def test_refused(self, prompts, words):
    frames, _ = media.moving_square(3)
    with self.assertRaisesRegex(errors.InputError, words):
      self._segment(frames, prompts)

  @parameterized.named_parameters(
    ("flat", {"box": (20, 20, 60, 50)}, "no object there"),
    ("whole_picture", {"box": (0, 0, 80, 60)}, "4800 of 4800"),
    ("whole_mask", {"mask": np.ones((60, 80), bool)}, "surely beside it"),
    ("one_pixel", {"box": (30, 30, 31, 31)}, "1 of 4800"),
    ("below_a_pixel", {"box": (30.1, 30.1, 30.2, 30.2)}, "0 of 4800"),
    (
      "only_beside",
      {"points": np.array([[30.0, 30]]), "labels": np.array([False])},
      "0 of 4800",
    ),
    (
      "only_a_click",
      {"points": np.array([[30.0, 30]]), "labels": np.array([True])},
      "surely beside it",
    ),
  )
  def test_prompt_that_separates_nothing(self, hints, words):
    frames = np.full((2, 60, 80, 3), 127, np.uint8)
    with self.assertRaisesRegex(errors.InputError, words):
      self._segment(frames, [roles.ObjectPrompt(1, **hints)])

  @parameterized.parameters((1, 1), (15, 200), (1, 300), (20, 2000))
  def test_frames_too_small_to_work_on(self, height, width):
    frames = np.zeros((2, height, width, 3), np.uint8)
    prompt = roles.ObjectPrompt(1, box=(0, 0, 1, 1))
    with self.assertRaisesRegex(errors.InputError, "at least 16"):
      self._segment(frames, [prompt])


class FlowTest(absltest.TestCase):
  """Backward flow of a shift."""

  def test_shift(self):
    picture = media.texture(80, 120, seed=0)[..., 0]
    moved = np.roll(picture, (3, -5), axis=(0, 1))
    flow = optical_flow.DenseFlow().backward(picture, moved)
    inner = (slice(15, -15), slice(15, -15))
    y, x = np.mgrid[:80, :120]
    expected = np.stack([x + 5, y - 3], axis=-1)[inner]
    error = np.linalg.norm(flow.source[inner] - expected, axis=-1)
    self.assertLess(float(np.quantile(error, 0.95)), 0.3)
    self.assertGreater(float(flow.consistent[inner].mean()), 0.95)
    self.assertFalse(flow.inside[:, -2].any())

  def test_unrelated_pictures_are_not_consistent(self):
    first = media.texture(80, 120, seed=0)[..., 0]
    second = media.texture(80, 120, seed=1)[..., 0]
    flow = optical_flow.DenseFlow().backward(first, second)
    self.assertLess(float(flow.consistent.mean()), 0.7)


class TracksTest(parameterized.TestCase):
  """Lucas-Kanade with the round trip."""

  def _track(self, frames, xy, *, rows=None, **settings):
    xy = np.asarray(xy, np.float32).reshape(-1, 2)
    queries = roles.Queries(
      xy,
      np.zeros(len(xy), np.int32) if rows is None else np.asarray(rows),
      np.arange(len(xy), dtype=np.int32),
    )
    clip = video.clip_from_frames(frames, fps=24)
    return offline_tracks.LucasKanadeTracks(**settings).track(clip, queries)

  def test_points_follow_the_square_and_the_ground_stays(self):
    frames, truth = media.moving_square(12)
    queries = seeding.seed_queries(frames[0], truth[:1], np.array([1]))
    clip = video.clip_from_frames(frames, fps=24)
    found = offline_tracks.LucasKanadeTracks().track(clip, queries)
    square = found.of(1)
    x, y = queries.xy[queries.object_ids == 1].T
    interior = (x > 38) & (x < 62) & (y > 48) & (y < 72)
    self.assertGreater(interior.sum(), 10)
    steps = np.arange(12)[:, None] * np.array([2.0, 1.0])
    expected = square.xy[0] + steps[:, None]
    error = np.linalg.norm(square.xy - expected, axis=-1)[:, interior]
    seen = square.visible[:, interior]
    self.assertGreater(float(seen.mean()), 0.9)
    self.assertLess(float(np.median(error[seen])), 0.05)
    self.assertLess(float(np.quantile(error[seen], 0.9)), 0.4)
    ground = found.of(-1)
    still = np.linalg.norm(ground.xy - ground.xy[0], axis=-1)
    self.assertLess(float(np.median(still[ground.visible])), 0.05)

  def test_hidden_points_are_invisible_from_then_on(self):
    frames, _ = media.moving_square(10, hidden=slice(4, 6))
    found = self._track(frames, [[50, 60], [40, 50]])
    self.assertTrue(found.visible[:4].all())
    self.assertFalse(found.visible[4:].any())
    self.assertTrue((found.confidence[4:] == 0).all())
    np.testing.assert_array_equal(found.xy[4:], np.tile(found.xy[3], (6, 1, 1)))

  def test_point_that_leaves_the_picture(self):
    frames, _ = media.moving_square(
      20, start=(100, 40), step=(3, 0), size=(120, 230)
    )
    found = self._track(frames[:, :, :160], [[130, 60]])
    self.assertTrue(found.visible[:6, 0].all())
    self.assertFalse(found.visible[12:, 0].any())

  def test_later_query(self):
    frames, _ = media.moving_square(8)
    found = self._track(frames, [[50, 60], [56, 63]], rows=[0, 3])
    self.assertFalse(found.visible[:3, 1].any())
    np.testing.assert_allclose(found.xy[:4, 1], [[56, 63]] * 4, atol=1e-4)
    np.testing.assert_allclose(found.xy[7, 1], [64, 67], atol=0.2)
    self.assertEqual(found.query_frame.tolist(), [0, 3])

  def test_confidence_and_visibility_agree(self):
    frames, truth = media.moving_square(10)
    queries = seeding.seed_queries(frames[0], truth[:1], np.array([1]))
    found = self._track(frames, queries.xy)
    np.testing.assert_array_equal(found.visible, found.confidence >= 0.5)
    self.assertTrue(np.all(np.diff(found.confidence, axis=0) <= 0))

  def test_frames_above_the_tracker_size(self):
    """Half-pixel centres: a point of the large frame is not shifted."""
    frames, _ = media.moving_square(
      4, size=(300, 1760), side=120, start=(800, 80), step=(8, 4)
    )
    frames = np.stack([cv2.GaussianBlur(f, (0, 0), 3) for f in frames])
    found = self._track(frames, [[860.0, 140.0]])
    np.testing.assert_allclose(found.xy[0, 0], [860, 140], atol=1e-3)
    np.testing.assert_allclose(found.xy[3, 0], [884, 152], atol=0.5)

  def test_no_points_and_one_frame(self):
    frames, _ = media.moving_square(3)
    self.assertEqual(self._track(frames, []).xy.shape, (3, 0, 2))
    found = self._track(frames[:1], [[50, 60]])
    self.assertTrue(found.visible.all())

  @parameterized.named_parameters(
    ("outside", [[160.0, 5]], None),
    ("nan", [[np.nan, 5]], None),
    ("row", [[5.0, 5]], [3]),
    ("row_count", [[5.0, 5]], [0, 0]),
  )
  def test_refused(self, xy, rows):
    frames, _ = media.moving_square(3)
    with self.assertRaises(errors.InputError):
      self._track(frames, xy, rows=rows)


class FeaturesTest(parameterized.TestCase):
  """Gradient-orientation descriptors."""

  def _extract(self, frames, **settings):
    clip = video.clip_from_frames(frames, fps=24)
    return offline_features.GradientOrientationFeatures(**settings).extract(
      clip
    )

  def test_shapes_and_norms(self):
    frames = np.stack([media.texture(50, 70, seed=k) for k in range(2)])
    found = self._extract(frames)
    self.assertEqual(found.patches.shape, (2, 3, 4, 33))
    self.assertEqual(found.image_size, (48, 64))
    np.testing.assert_allclose(
      np.linalg.norm(found.patches, axis=-1), 1, atol=1e-6
    )
    np.testing.assert_allclose(
      np.linalg.norm(found.pooled, axis=-1), 1, atol=1e-6
    )

  def test_by_hand(self):
    """A horizontal ramp has one gradient direction, bin 0 of all cells.

    64 grey levels over 16 pixels: 4/255 per pixel in each inner cell.
    """
    ramp = np.tile(np.arange(64, dtype=np.uint8) * 4, (48, 1))
    found = self._extract(np.repeat(ramp[None, ..., None], 3, axis=-1))
    inner = found.patches[0, 1, 1]
    slope = 4 / 255
    length = np.sqrt(4 * slope**2 + 0.01**2)
    expected = np.zeros(33)
    expected[[0, 8, 16, 24]] = slope / length
    expected[32] = 0.01 / length
    np.testing.assert_allclose(inner, expected, atol=1e-5)

  def test_flat_picture_and_brightness(self):
    flat = self._extract(np.full((1, 32, 32, 3), 9, np.uint8)).patches
    np.testing.assert_array_equal(flat[..., :32], 0)
    np.testing.assert_array_equal(flat[..., 32], 1)
    frame = media.texture(32, 48, seed=0, block=8) // 2
    lighter = self._extract(np.stack([frame, frame + 60])).patches
    np.testing.assert_allclose(lighter[0], lighter[1], atol=1e-5)

  def test_whole_patch_shift_moves_the_grid(self):
    frame = media.texture(64, 80, seed=0)
    moved = np.roll(frame, (16, 32), axis=(0, 1))
    found = self._extract(np.stack([frame, moved])).patches
    np.testing.assert_allclose(
      found[1, 2:3, 3:4], found[0, 1:2, 1:2], atol=1e-5
    )
    other = np.sum(found[0, 1, 1] * found[0, 2, 3])
    self.assertLess(float(other), 0.97)

  def test_refused(self):
    with self.assertRaisesRegex(errors.InputError, "even"):
      offline_features.GradientOrientationFeatures(patch=15)
    with self.assertRaisesRegex(errors.InputError, "one patch"):
      self._extract(np.zeros((1, 15, 40, 3), np.uint8))


if __name__ == "__main__":
  absltest.main()
