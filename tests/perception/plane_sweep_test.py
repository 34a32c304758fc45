# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Tests of the plane sweep on a drawn wall with known depth."""

import cv2
import numpy as np
from absl.testing import absltest, parameterized

from perception import plane_sweep

_SIZE = (48, 64)
_K = np.array([[60.0, 0, 31.5], [0, 60, 23.5], [0, 0, 1]])
_DEPTH = 3.0


def _view(x=0.0, y=0.0, z=0.0):
  """A camera at (x, y, z) that looks at a textured wall at z = 3."""
  rng = np.random.default_rng(0)
  wall = cv2.GaussianBlur(
    rng.integers(0, 256, (400, 400)).astype(np.float32), (0, 0), 2.0
  )
  wall = np.clip((wall - wall.mean()) * 4 + 128, 0, 255)
  w2c = np.eye(4)[:3]
  w2c[:, 3] = [-x, -y, -z]
  v, u = np.mgrid[: _SIZE[0], : _SIZE[1]]
  ray = np.stack([u, v, np.ones_like(u)], -1) @ np.linalg.inv(_K).T
  spot = ray * (_DEPTH - z) + [x, y, z]
  map_xy = (spot[..., :2] * 60 + 200).astype(np.float32)
  gray = cv2.remap(wall, map_xy[..., 0], map_xy[..., 1], cv2.INTER_LINEAR)
  return plane_sweep.View(gray.astype(np.uint8), w2c)


class SweepTest(parameterized.TestCase):
  @parameterized.named_parameters(
    ("sideways", [(0.3, 0, 0), (-0.3, 0, 0)]),
    ("up", [(0, 0.3, 0)]),
    ("forward", [(0, 0, 0.6), (0, 0, -0.6)]),
    ("diagonal", [(0.2, -0.1, 0.3)]),
  )
  def test_depth_of_a_wall(self, places):
    depth = plane_sweep.sweep(
      _view(), [_view(*place) for place in places], _K, (1.5, 6.0)
    )
    self.assertEqual(depth.dtype, np.float32)
    self.assertEqual(depth.shape, _SIZE)
    known = np.isfinite(depth)
    self.assertGreater(known.mean(), 0.4)
    self.assertLess(np.median(np.abs(depth[known] - _DEPTH)), 0.06)

  def test_flat_pictures_have_no_depth(self):
    flat = plane_sweep.View(np.full(_SIZE, 90, np.uint8), _view().w2c)
    other = plane_sweep.View(flat.gray, _view(0.3).w2c)
    self.assertTrue(
      np.isnan(plane_sweep.sweep(flat, [other], _K, (1.5, 6.0))).all()
    )

  def test_depth_beyond_the_range_is_unknown(self):
    depth = plane_sweep.sweep(_view(), [_view(0.3)], _K, (0.5, 1.0))
    self.assertLess(np.isfinite(depth).mean(), 0.2)


class PartnersTest(absltest.TestCase):
  def test_nearest_to_a_tenth(self):
    w2c = np.tile(np.eye(4)[:3], (5, 1, 1))
    w2c[:, 0, 3] = [0, -0.02, -0.3, -0.5, -3.0]
    self.assertEqual(
      plane_sweep.choose_partners(0, range(5), w2c, 3.0, most=2), [2, 3]
    )
    self.assertEqual(
      plane_sweep.choose_partners(0, [0, 1, 4], w2c, 3.0, most=2), []
    )


class AgreementTest(absltest.TestCase):
  def test_counts(self):
    depth = np.full(_SIZE, _DEPTH, np.float32)
    depth[0] = np.nan
    moved = np.eye(4)[:3]
    moved[0, 3] = -0.5  # 10 columns to the left of the other picture.
    other = np.full(_SIZE, _DEPTH, np.float32)
    other[:, :20] *= 1.2
    agree, compared = plane_sweep.agreement(
      depth, np.eye(4)[:3], _K, [(other, moved)]
    )
    self.assertFalse(compared[0].any())
    self.assertFalse(compared[1:, :10].any())
    np.testing.assert_array_equal(compared[1:, 10:], 1)
    np.testing.assert_array_equal(agree[1:, 10:30], 0)
    np.testing.assert_array_equal(agree[1:, 30:], 1)


if __name__ == "__main__":
  absltest.main()
