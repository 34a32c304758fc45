# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""MegaSaM's files: sizes, conventions, and files that do not fit."""

import pathlib

import numpy as np
from absl.testing import absltest, parameterized

from perception import megasam, registry, video
from perception.errors import InputError

_SIZE = (72, 128)
# Resized to 332 x 591 (area 384 * 512), cut to multiples of 8.
_MAP = (328, 584)


def _arrays(frames: int) -> dict[str, np.ndarray]:
  depth = np.full((frames, *_MAP), 2.0, np.float16)
  depth[0, 0, 0], depth[0, 0, 1] = 0.0, np.inf
  poses = np.repeat(np.eye(4, dtype=np.float32)[None], frames, axis=0)
  poses[:, 2, 3] = np.arange(frames)
  return {
    "depths": depth,
    "intrinsic": np.array([[500, 0, 292], [0, 500, 164], [0, 0, 1]], float),
    "cam_c2w": poses,
  }


class MegaSamTest(parameterized.TestCase):
  def setUp(self):
    super().setUp()
    self.folder = pathlib.Path(self.create_tempdir().full_path)
    pixels = np.zeros((3, *_SIZE, 3), np.uint8)
    self.clip = video.clip_from_frames(pixels, fps=24, name="in/m/clip.mp4")

  def _write(self, suffix: str = "_sgd_cvd_hr.npz", frames: int = 3, **changes):
    arrays = {**_arrays(frames), **changes}
    np.savez(self.folder / f"clip{suffix}", **arrays)

  def _read(self, **settings):
    backend = registry.get(
      "geometry", "megasam", folder=self.folder, **settings
    )
    return backend.reconstruct(self.clip)

  @parameterized.parameters(
    ((720, 1280), (332, 591)),
    ((480, 832), (336, 583)),
    ((512, 512), (443, 443)),
  )
  def test_resized_sizes(self, size, resized):
    # Section 1.4: 584x328 from 591x332, 576x336 and 440x440 after the cut.
    self.assertEqual(megasam.resized_size(size), resized)

  def test_arrays_become_the_contract(self):
    self._write(frames=2)
    found = self._read()
    self.assertEqual(found.depth_size, _MAP)
    self.assertEqual(found.full_size, (332, 591))
    self.assertEqual(found.video_size, _SIZE)
    self.assertEqual(found.frame_indices.tolist(), [0, 1])
    self.assertEqual(found.unit, "arbitrary")
    self.assertTrue(np.isnan(found.depth[0, 0, :2]).all())
    self.assertEqual(found.depth[1, 5, 5], 2.0)
    self.assertEqual(found.c2w[1, 2, 3], 1.0)
    np.testing.assert_array_equal(found.intrinsics[0, :2, 2], [291.5, 163.5])
    self.assertEqual(found.provenance.backend, "megasam")

  def test_stored_principal_point_for_the_released_arithmetic(self):
    self._write()
    found = self._read(half_pixel=False)
    np.testing.assert_array_equal(found.intrinsics[0, :2, 2], [292, 164])

  def test_consistent_depth_is_preferred_and_identity_follows_the_files(self):
    self._write("_droid.npz", depths=np.full((3, *_MAP), 3.0))
    first = registry.get("geometry", "megasam", folder=self.folder)
    self.assertEqual(self._read().depth[1, 0, 0], 3.0)
    self._write()
    self.assertEqual(self._read().depth[1, 0, 0], 2.0)
    second = registry.get("geometry", "megasam", folder=self.folder)
    self.assertNotEqual(first.info.settings, second.info.settings)

  @parameterized.named_parameters(
    ("size", {"depths": np.ones((3, 64, 64))}, "depths"),
    ("too_many", {"depths": np.ones((4, *_MAP))}, "at most 3"),
    ("intrinsic", {"intrinsic": np.ones(4)}, "intrinsic"),
    ("poses", {"cam_c2w": np.zeros((3, 4, 4))}, "c2w"),
    ("pose_count", {"cam_c2w": np.eye(4)[None]}, "c2w"),
  )
  def test_files_that_do_not_fit(self, changes, text):
    self._write(**changes)
    with self.assertRaisesRegex(InputError, text):
      self._read()

  def test_absent_files(self):
    with self.assertRaisesRegex(InputError, "clip_sgd_cvd_hr.npz or"):
      self._read()
    np.savez(self.folder / "clip_droid.npz", depths=np.ones(3))
    with self.assertRaisesRegex(InputError, "intrinsic"):
      self._read()
    with self.assertRaisesRegex(InputError, "no folder"):
      registry.get("geometry", "megasam", folder=self.folder / "absent")


if __name__ == "__main__":
  absltest.main()
