# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Geometry of a case against plain NumPy; compilations; small videos."""

import numpy as np
from absl.testing import absltest

from protocols.orbia import benchmark, geometry
from protocols.orbia import benchmark_baseline as plain
from protocols.orbia import geometry_programs as programs
from protocols.orbia.constants import PAPER, RELEASED

_GRID, _VIDEO = (24, 40), (48, 80)


def _scene(frame_count, seed=0):
  return benchmark.make_scene(frame_count, grid=_GRID, seed=seed, c=RELEASED)


def _items(scene):
  every = np.concatenate([*scene.groups.values(), scene.pairs])
  return geometry.measure_items(
    scene.views, every, video_size=_VIDEO, c=RELEASED
  )


class GeometryTest(absltest.TestCase):
  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    cls.scene = _scene(357)
    cls.found = _items(cls.scene)

  def test_items_equal_numpy(self):
    errors, scales, counts = plain.items(
      self.scene.views, self.found.items, RELEASED
    )
    # float32 against float64: a pixel may flip, at most one in a hundred.
    flips = np.abs(self.found.num_found - counts)
    self.assertLessEqual(int(flips.max()), 1)
    self.assertLessEqual(int(flips.sum()), 13)
    same = flips == 0
    np.testing.assert_allclose(
      self.found.abs_rel[same], np.array(errors)[same], rtol=1e-2, atol=1e-5
    )
    both = np.isfinite(self.found.scale) & np.isfinite(scales)
    np.testing.assert_array_equal(
      np.isfinite(self.found.scale)[same], np.isfinite(scales)[same]
    )
    np.testing.assert_allclose(
      self.found.scale[both & same], np.array(scales)[both & same], atol=1e-4
    )

  def test_features_equal_numpy(self):
    scene, found = self.scene, self.found
    wanted = [
      k
      for k, pair in enumerate(found.items)
      if all(int(f) in scene.descriptors for f in pair)
    ][:12]
    ours = geometry.measure_features(
      found, np.array(wanted), scene.descriptors, c=RELEASED
    )
    theirs = plain.features(
      scene.views, found.items[wanted], scene.descriptors, _VIDEO, RELEASED
    )
    np.testing.assert_allclose(ours[wanted], theirs, atol=2e-3)
    untouched = np.delete(ours, wanted)
    self.assertTrue(np.all(np.isnan(untouched)))

  def test_fscore_equals_numpy(self):
    ours = geometry.measure_clouds(
      self.scene.views, self.scene.pairs, c=RELEASED
    )
    theirs = plain.fscore(self.scene.views, self.scene.pairs[0], RELEASED)
    self.assertAlmostEqual(ours.fscore[0], theirs, places=3)

  def test_published_frame_counts_share_one_compilation(self):
    before = programs.TRACES["items"]
    for frame_count in (357, 961, 357):
      _items(_scene(frame_count, seed=frame_count))
    self.assertLessEqual(programs.TRACES["items"] - before, 1)

  def test_all_720_cases_have_at_most_two_padded_shapes(self):
    shapes = benchmark.published_shapes(seed=1, c=RELEASED)
    self.assertLessEqual(len(shapes), 2)

  def test_absent_frames_are_named(self):
    views = self.scene.views
    views.has_depth[0], views.has_pose[1] = False, False
    self.addCleanup(views.has_depth.__setitem__, 0, True)
    self.addCleanup(views.has_pose.__setitem__, 1, True)
    first, second = (int(f) for f in views.frames[:2])
    found = geometry.measure_items(
      views, np.array([[first, second]]), video_size=_VIDEO, c=RELEASED
    )
    self.assertEqual(found.reason, ["missing_target_pose;missing_source_depth"])
    self.assertTrue(np.isnan(found.abs_rel[0]))

  def test_group_means(self):
    values = np.array([1.0, 3.0, 5.0, np.nan])
    self.assertEqual(geometry.group_mean(values, by_pair=False), 3.0)
    self.assertEqual(geometry.group_mean(values, by_pair=True), 3.5)
    self.assertIsNone(geometry.group_mean(np.array([np.nan]), by_pair=False))

  def test_a_pair_without_value_in_both_variants(self):
    values = np.array([0.5, np.nan])
    self.assertIsNone(geometry.case_value(values, c=RELEASED))
    self.assertEqual(geometry.case_value(values, c=PAPER), 0.5)


if __name__ == "__main__":
  absltest.main()
