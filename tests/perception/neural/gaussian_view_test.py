# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Drawing Gaussians: what gsplat is asked for. It needs a GPU to draw.

A stand-in projects the means and paints them as points, so that conventions
are tested; the real rasteriser is not run.
"""

import sys
import types
from unittest import mock

import numpy as np
import pytest
from absl.testing import absltest

from perception import errors, roles
from perception.neural import conventions, gaussian_view

torch = pytest.importorskip("torch", reason="needs the perception extra")
pytestmark = pytest.mark.perception


def _fake_gsplat(calls):
  def rasterization(**kwargs):
    calls.append(kwargs)
    views = len(kwargs["viewmats"])
    shape = (views, kwargs["height"], kwargs["width"], 4)
    out = torch.zeros(shape)
    for row in range(views):
      camera = kwargs["means"] @ kwargs["viewmats"][row, :3, :3].T
      camera = camera + kwargs["viewmats"][row, :3, 3]
      spot = camera @ kwargs["Ks"][row].T
      spot = torch.floor(spot[:, :2] / spot[:, 2:]).long()
      for (x, y), z in zip(spot.tolist(), camera[:, 2].tolist(), strict=True):
        out[row, y, x] = torch.tensor([0.5, 2.0, -1.0, z])
    return out, None, {}

  module = types.ModuleType("gsplat")
  module.rasterization = rasterization
  return module


class RasteriseTest(absltest.TestCase):
  def test_a_point_lands_on_its_pixel(self):
    # Point (1, -0.5, 4) before fx = 40, fy = 20, centre (29.5, 14.5) in our
    # pixels: x = 40/4 + 29.5 = 39.5 -> corner 40 ... pixel 40 begins at 39.5.
    splats = roles.Gaussians(
      means=np.array([[1.02, -0.5, 4.0]]),
      scales=np.full((1, 3), 0.1),
      rotations=np.array([[1.0, 0, 0, 0]]),
      opacities=np.ones(1),
      harmonics=np.zeros((1, 3, 9)),
    )
    ours = np.tile(
      np.array([[40.0, 0, 29.5], [0, 20, 14.6], [0, 0, 1]]), (6, 1, 1)
    )
    calls = []
    with mock.patch.dict(sys.modules, {"gsplat": _fake_gsplat(calls)}):
      pictures, covered = gaussian_view.rasterise(
        splats,
        w2c=np.tile(np.eye(4), (6, 1, 1)),
        intrinsics=conventions.intrinsics_to_corner(ours),
        size=(30, 60),
        device="cpu",
      )
    self.assertEqual([len(call["viewmats"]) for call in calls], [4, 2])
    self.assertEqual(calls[0]["sh_degree"], 2)
    self.assertEqual(calls[0]["colors"].shape, (1, 9, 3))
    self.assertFalse(calls[0]["packed"])
    self.assertEqual(pictures.shape, (6, 30, 60, 3))
    self.assertEqual(covered.sum(), 6)
    self.assertTrue(covered[:, 12, 40].all())
    np.testing.assert_array_equal(pictures[5, 12, 40], [127, 255, 0])

  def test_needs_a_gpu(self):
    with self.assertRaisesRegex(errors.InputError, "GPU"):
      gaussian_view.Da3GaussianViews(device="cpu")


if __name__ == "__main__":
  absltest.main()
