# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""pycolmap's bundle adjustment against ours, with the real package."""

from unittest import mock

import numpy as np
import pytest
from absl.testing import absltest, parameterized

from perception import bundle_adjustment as ba
from perception import errors, pycolmap_adjustment, registry
from tests.perception import bundle_adjustment_test as scenes


class SolverTest(absltest.TestCase):
  def test_without_the_package_numpy_solves_and_says_so(self):
    with mock.patch.object(pycolmap_adjustment, "version", return_value=""):
      info = registry.get("geometry", "opencv").info
      self.assertEqual(info.settings["adjustment"], "numpy")
      with self.assertRaisesRegex(errors.InputError, "pip install pycolmap"):
        registry.get("geometry", "opencv", adjustment="pycolmap")

  def test_with_the_package_its_version_enters_the_settings(self):
    with mock.patch.object(pycolmap_adjustment, "version", return_value="9.1"):
      info = registry.get("geometry", "opencv").info
      self.assertEqual(info.settings["adjustment"], "pycolmap 9.1")
      info = registry.get("geometry", "opencv", adjustment="numpy").info
      self.assertEqual(info.settings["adjustment"], "numpy")

  def test_unknown(self):
    with self.assertRaisesRegex(errors.InputError, "adjustment"):
      registry.get("geometry", "opencv", adjustment="ceres")


@pytest.mark.perception
class AdjustTest(parameterized.TestCase):
  def setUp(self):
    super().setUp()
    if not pycolmap_adjustment.version():
      self.skipTest("pycolmap 4 or newer is not installed")

  def _both(self, seed, size, factor=1.0, *, refine_focal, outliers=0):
    rng = np.random.default_rng(seed)
    w2c, world, seen = scenes._scene()
    seen.xy[:] += rng.normal(0, 0.3, seen.xy.shape)
    bad = rng.choice(len(seen.xy), outliers, replace=False)
    seen.xy[bad] += rng.normal(0, 40, (outliers, 2))
    start = scenes._disturbed(w2c, world, rng, size)
    camera = scenes._K * np.array([[factor, 1, 1], [1, factor, 1], [1, 1, 1]])
    return [
      solve(*start, camera, seen, refine_focal=refine_focal)
      for solve in (ba.adjust, pycolmap_adjustment.adjust)
    ]

  @parameterized.parameters((False, 1.0, 0), (True, 1.1, 0), (False, 1.0, 15))
  def test_same_minimum_as_ours(self, refine, factor, outliers):
    ours, theirs = self._both(
      1, 0.01, factor, refine_focal=refine, outliers=outliers
    )
    # Ours stops at a gain of 1e-5, which leaves 0.3 % of the baseline open.
    scale = [np.linalg.norm(one.w2c[1, :, 3]) for one in (ours, theirs)]
    np.testing.assert_allclose(
      theirs.w2c[:, :, 3] / scale[1], ours.w2c[:, :, 3] / scale[0], atol=1e-2
    )
    np.testing.assert_allclose(
      theirs.w2c[:, :, :3], ours.w2c[:, :, :3], atol=2e-3
    )
    np.testing.assert_allclose(theirs.intrinsics, ours.intrinsics, rtol=5e-3)
    costs = [ba._cost(one.error_px[:, None]) for one in (ours, theirs)]
    self.assertLess(costs[1], costs[0] * 1.001)

  def test_the_first_camera_stays_and_digits_repeat(self):
    (_, one), (_, two) = (
      self._both(3, 0.01, refine_focal=True) for _ in range(2)
    )
    np.testing.assert_array_equal(one.w2c, two.w2c)
    np.testing.assert_array_equal(one.points, two.points)
    np.testing.assert_allclose(one.w2c[0], np.eye(4)[:3], atol=1e-12)

  def test_points_keep_their_order(self):
    w2c, world, seen = scenes._scene()
    rng = np.random.default_rng(4)
    shuffled = rng.permutation(len(seen.xy))[: len(seen.xy) * 3 // 4]
    lonely = seen.point == 7  # seen by one picture: cannot move
    shuffled = shuffled[~lonely[shuffled] | (seen.camera[shuffled] == 2)]
    some = ba.Observations(
      seen.camera[shuffled], seen.point[shuffled], seen.xy[shuffled]
    )
    start = scenes._disturbed(w2c, world, rng, 0.005)
    found = pycolmap_adjustment.adjust(
      *start, scenes._K, some, refine_focal=False
    )
    often = np.bincount(some.point, minlength=len(world)) > 1
    self.assertLess(found.error_px[often[some.point]].max(), 1e-3)
    scale = np.linalg.norm(w2c[1, :, 3]) / np.linalg.norm(found.w2c[1, :, 3])
    np.testing.assert_allclose(
      found.points[often] * scale, world[often], atol=1e-3
    )
    self.assertFalse(often[7])
    np.testing.assert_array_equal(found.points[~often], start[1][~often])


if __name__ == "__main__":
  absltest.main()
