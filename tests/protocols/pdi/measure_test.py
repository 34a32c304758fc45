# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""The metric stage against plain NumPy, its traps and its bookkeeping."""

import dataclasses

import numpy as np
from absl.testing import absltest, parameterized

from perception.errors import InputError
from protocols.pdi import anchors, benchmark, guard, lifting, measure, reference
from protocols.pdi import clip as clips
from protocols.pdi import index as pdi_index
from protocols.pdi.clip import ClipArrays
from protocols.pdi.constants import PAPER, RELEASED, for_variant


def _clip(frames=12):
  return benchmark.synthetic_clip(frames=frames, side=64, tracks=40)


def _run(clip, constants=RELEASED, dtype=np.float64):
  return measure.measure_clip(clip, constants, dtype=dtype)


class MeasureTest(parameterized.TestCase):
  @parameterized.parameters((np.float64, 2e-5), (np.float32, 2e-4))
  def test_equals_plain_numpy(self, dtype, tolerance):
    clip = _clip()
    found = _run(clip, dtype=dtype)
    verdict = guard.audit_clip(clip, found, RELEASED, images=None, dtype=dtype)
    expected = reference.reference_scores(clip)
    ours = {
      "scale": found.scale,
      "traj": found.traj,
      "rigid": found.rigid,
      "ground_rmse": verdict.ground.rmse,
      "scale_jump": verdict.scale_jump,
    }
    for key, value in expected.items():
      self.assertAlmostEqual(ours[key], value, delta=tolerance, msg=key)
    self.assertEqual((found.strategy, found.frames), (1, 12))

  def test_ready_point_maps_equal_depth_and_cameras(self):
    clip = _clip()
    maps = dataclasses.replace(clip, pointmaps=reference.point_maps(clip))
    with self.subTest("traj and rigid"):
      one, other = _run(clip), _run(maps)
      self.assertAlmostEqual(one.traj, other.traj, delta=1e-6)
      self.assertAlmostEqual(one.rigid, other.rigid, delta=1e-6)

  def test_lost_masks_score_in_one_variant_and_drop_out_in_the_other(self):
    clip = _clip()
    clip.masks[7] = False
    released, paper = _run(clip), _run(clip, PAPER)
    self.assertGreater(released.scale, 3.0)
    self.assertLess(paper.scale, 0.5)
    self.assertAlmostEqual(paper.lost_mask_fraction, 1 / 12)
    self.assertIn("lost_masks", paper.sentinels)
    self.assertTrue(paper.valid)

  def test_mostly_lost_masks_are_not_valid(self):
    clip = _clip()
    clip.masks[4:] = False
    self.assertFalse(_run(clip, PAPER).valid)

  def test_without_reconstruction_nothing_is_scored(self):
    clip = dataclasses.replace(
      _clip(), depth=None, object_depth=None, c2w=None, intrinsics=None
    )
    paper = _run(clip, PAPER)
    self.assertEqual(
      (paper.scale, paper.traj, paper.rigid, paper.pdi), (None,) * 4
    )
    self.assertEqual(set(paper.reasons), {"scale", "traj", "rigid"})
    self.assertIsNotNone(paper.rigid_2d)
    self.assertIn("reconstruction_unavailable", paper.sentinels)
    # The published code gives such a clip a perfect trajectory.
    self.assertEqual(_run(clip).traj, 0.0)
    verdict = guard.audit_clip(
      clip, paper, PAPER, images=None, dtype=np.float64
    )
    self.assertIsNone(verdict.math_pass)

  def test_too_few_anchors_are_a_sentinel(self):
    clip = _clip()
    clip = dataclasses.replace(
      clip, tracks=clip.tracks[:, :4], visibility=clip.visibility[:, :4]
    )
    released, paper = _run(clip), _run(clip, PAPER)
    self.assertEqual(released.rigid, 1.0)
    self.assertIsNone(paper.rigid)
    self.assertIn("too_few_anchors", paper.sentinels)

  def test_tracks_are_rescaled_in_the_paper_variant_alone(self):
    clip = _clip()
    wide = dataclasses.replace(
      clip,
      masks=clip.masks.repeat(2, axis=1).repeat(2, axis=2),
      tracks=clip.tracks * 2 + 0.5,
    )
    self.assertEqual(_run(wide, PAPER).clipped_track_fraction, 0.0)
    self.assertAlmostEqual(
      _run(wide, PAPER).rigid, _run(clip, PAPER).rigid, delta=1e-9
    )
    self.assertGreater(_run(wide).clipped_track_fraction, 0.0)
    self.assertIn("clipped_tracks", _run(wide).sentinels)

  def test_seeds_are_averaged_and_reported(self):
    found = _run(_clip(), PAPER)
    self.assertLen(found.rigid_seeds, 5)
    self.assertAlmostEqual(found.rigid, np.mean(found.rigid_seeds))
    subsets = anchors.random_subsets(40, PAPER)
    np.testing.assert_array_equal(subsets.sum(axis=1), 32)

  def test_missing_depth_is_left_out_in_the_paper_variant(self):
    clip = _clip()
    holed = dataclasses.replace(clip, depth=clip.depth.copy())
    rows, columns = np.nonzero(clip.masks[5])
    holed.depth[5, rows[:40], columns[:40]] = np.nan
    found = _run(holed, PAPER)
    inside = reference.point_maps(holed)[5][clip.masks[5]]
    expected = np.nanmedian(inside.astype(np.float64), axis=0)
    np.testing.assert_allclose(found.points.median[5], expected, atol=1e-6)
    self.assertEqual(int(found.points.count[5]), len(rows) - 40)
    self.assertTrue(np.isfinite(found.pdi))

  def test_scaling_and_moving_the_world_change_no_component(self):
    clip = _clip()
    base = _run(clip)
    moved = dataclasses.replace(clip, depth=clip.depth * 4, c2w=clip.c2w.copy())
    moved.c2w[:, :3, 3] = 4 * moved.c2w[:, :3, 3] + [3.0, -2.0, 5.0]
    found = _run(moved)
    for key in ("scale", "traj", "rigid"):
      self.assertAlmostEqual(
        getattr(found, key), getattr(base, key), delta=1e-4, msg=key
      )

  def test_order_of_anchors_does_not_matter(self):
    clip = _clip()
    turned = dataclasses.replace(
      clip, tracks=clip.tracks[:, ::-1], visibility=clip.visibility[:, ::-1]
    )
    self.assertAlmostEqual(_run(clip).rigid, _run(turned).rigid, delta=1e-12)

  def test_one_frame_and_no_frame(self):
    clip = _clip(frames=2)
    one = dataclasses.replace(clip, masks=clip.masks[:1])
    self.assertEqual(_run(one).pdi, 0.0)
    self.assertIsNone(_run(one, PAPER).pdi)
    none = dataclasses.replace(clip, masks=clip.masks[:0])
    with self.assertRaisesRegex(InputError, "no frame"):
      _run(none)

  def test_clips_of_many_lengths_share_compiled_stages(self):
    for frames in (9, 10, 11):
      _run(_clip(frames), dtype=np.float32)
    before = (
      measure._path_stage._cache_size(),
      lifting._frame_points._cache_size(),
    )
    for frames in (13, 14, 20, 30):
      _run(_clip(frames), dtype=np.float32)
    after = (
      measure._path_stage._cache_size(),
      lifting._frame_points._cache_size(),
    )
    self.assertEqual(before, after)


class PartsTest(parameterized.TestCase):
  def test_mask_figures_by_hand(self):
    masks = np.zeros((3, 40, 30), bool)
    masks[0, 10:16, 4:8] = True
    masks[1, 0:6, 2:8] = True
    masks[2, 20, :10] = True  # ten pixels: lost
    found = clips.mask_statistics(masks, RELEASED)
    np.testing.assert_array_equal(found.height, [5, 5, 0])
    np.testing.assert_array_equal(found.truncated, [False, True, True])
    np.testing.assert_allclose(found.x_center, [5.5, 4.5, 4.5])

  @parameterized.parameters((61, 24), (24, 61), (7, 7), (5, 1))
  def test_nearest_resize_takes_the_floor(self, source, target):
    row = np.arange(source)[None].repeat(2, axis=0)
    found = clips.resize_nearest(row, 2, target)
    expected = [d * source // target for d in range(target)]
    np.testing.assert_array_equal(found[0], expected)

  def test_edge_distance_worked_by_hand(self):
    mask = np.zeros((32, 32), bool)
    mask[6:26, 5:27] = True
    found = anchors.edge_distances(mask)
    self.assertAlmostEqual(float(found[9, 8]), 4.0, delta=1e-5)
    self.assertAlmostEqual(float(found[8, 20]), 3.0, delta=1e-5)
    full = anchors.edge_distances(np.ones((4, 4), bool))
    np.testing.assert_array_equal(full, np.finfo(np.float32).max)

  @parameterized.parameters(
    (1, 64), (64, 64), (65, 80), (120, 128), (129, 160), (5000, 5120)
  )
  def test_buckets(self, count, expected):
    self.assertEqual(clips.bucket(count, smallest=64), expected)

  def test_row_and_column(self):
    index = np.array([0, 1, 511, 512, 262143], np.int32)
    row, column = lifting._row_and_column(index, np.int32(512))
    np.testing.assert_array_equal(row, index // 512)
    np.testing.assert_array_equal(column, index % 512)

  @parameterized.parameters(
    (0.0999, "A"), (0.1, "B"), (0.3, "C"), (0.6, "F"), (np.nan, "F")
  )
  def test_grades(self, pdi, letter):
    self.assertEqual(pdi_index.grade(pdi, RELEASED.grade_bounds), letter)

  def test_unknown_variant_is_refused(self):
    self.assertIs(for_variant("paper"), PAPER)
    with self.assertRaisesRegex(ValueError, "unknown variant"):
      for_variant("published")

  def test_arrays_that_do_not_fit_are_one_clear_line(self):
    masks = np.ones((2, 4, 4), bool)
    with self.assertRaisesRegex(InputError, "visibility"):
      ClipArrays(masks, np.zeros((2, 3, 2)), np.ones((2, 4), bool), 24.0)
    with self.assertRaisesRegex(InputError, "masks"):
      ClipArrays(masks.astype(np.uint8), None, None, 24.0)
    with self.assertRaisesRegex(InputError, "c2w"):
      ClipArrays(masks, None, None, 24.0, depth=np.ones((2, 4, 4)))


class GuardTest(absltest.TestCase):
  def test_pictures_of_the_scene_itself_reproject(self):
    clip = _clip()
    clip = dataclasses.replace(clip, c2w=np.tile(np.eye(4), (12, 1, 1)))
    rng = np.random.default_rng(0)
    still = rng.integers(0, 255, (1, 64, 64, 3), np.uint8).repeat(12, axis=0)
    measured = _run(clip, PAPER)
    found = guard.audit_clip(
      clip, measured, PAPER, images=still, dtype=np.float64
    )
    self.assertGreater(found.reprojection.coverage, 0.9)
    self.assertEqual(found.mask_audit, guard.NOT_RUN)
    without = guard.audit_clip(
      clip, measured, PAPER, images=None, dtype=np.float64
    )
    self.assertIsNone(without.reprojection)
    self.assertIn("pictures", without.reprojection_reason)

  def test_pairs_of_the_specification(self):
    self.assertEqual(
      guard.frame_pairs(24, PAPER), ((0, 3), (0, 6), (12, 15), (12, 18))
    )
    self.assertEqual(guard.frame_pairs(1, PAPER), ())


if __name__ == "__main__":
  absltest.main()
