# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Recovered geometry in its two forms: the same cameras either way."""

import pathlib

import numpy as np
from absl.testing import absltest, parameterized

from perception import observation
from perception.errors import InputError
from protocols.orbia import generated
from protocols.orbia.constants import PAPER, RELEASED

_VIDEO, _GRID = (72, 128), (28, 56)
# An estimator's K in video pixels: its principal point is the middle, W / 2.
_RAW = np.array([[100.0, 0, 64.0], [0, 100.0, 36.0], [0, 0, 1]])


def _write(folder: pathlib.Path) -> None:
  (folder / "depth").mkdir(parents=True)
  np.save(folder / "poses_c2w.npy", np.tile(np.eye(4), (2, 1, 1)))
  np.save(folder / "frame_indices.npy", np.array([0, 2]))
  np.save(folder / "intrinsics.npy", np.tile(_RAW, (2, 1, 1)))
  for frame in (0, 2):
    depth = np.full(_GRID, 1.0 + frame, np.float32)
    depth[0, 0] = 0.0
    np.savez(folder / f"depth/frame_{frame:06d}.npz", depth=depth)


class FolderTest(parameterized.TestCase):
  def setUp(self):
    super().setUp()
    self.folder = pathlib.Path(self.create_tempdir().full_path) / "geometry"
    _write(self.folder)

  def test_it_is_read_in_our_convention(self):
    found = generated.read_geometry_folder(self.folder, video_size=_VIDEO)
    # The middle of a 56 x 28 grid lies between pixels 27 and 28, 13 and 14.
    np.testing.assert_allclose(found.intrinsics[0, :2, 2], [27.5, 13.5])
    np.testing.assert_allclose(
      found.intrinsics[0, [0, 1], [0, 1]], [100 * 56 / 128, 100 * 28 / 72]
    )
    self.assertTrue(np.isnan(found.depth[0, 0, 0]))
    self.assertEqual(float(found.depth[1, 5, 5]), 3.0)
    np.testing.assert_array_equal(found.frame_indices, [0, 2])

  @parameterized.parameters((RELEASED, (28.0, 14.0)), (PAPER, (27.5, 13.5)))
  def test_the_released_code_is_half_a_pixel_off(self, c, centre):
    found = generated.read_geometry_folder(self.folder, video_size=_VIDEO)
    views = generated.views_of(found, np.array([0, 1, 2]), c=c)
    np.testing.assert_array_equal(views.has_depth, [True, False, True])
    for row in (0, 2):
      np.testing.assert_allclose(views.intrinsics[row, :2, 2], centre)
    self.assertIsInstance(found, observation.Geometry)

  def test_a_missing_array_is_named(self):
    (self.folder / "poses_c2w.npy").unlink()
    with self.assertRaisesRegex(InputError, "poses_c2w.npy"):
      generated.read_geometry_folder(self.folder, video_size=_VIDEO)

  def test_depth_of_another_size_is_named(self):
    path = self.folder / "depth/frame_000002.npz"
    np.savez(path, depth=np.ones((14, 56), np.float32))
    with self.assertRaisesRegex(InputError, "frame_000002.npz.*14, 56"):
      generated.read_geometry_folder(self.folder, video_size=_VIDEO)


if __name__ == "__main__":
  absltest.main()
