# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""One pass over a video serves every selection of its frames."""

import dataclasses
import pathlib

import numpy as np
from absl.testing import absltest

from perception import cached, geometry_pass, observation, roles, video
from tests.perception import media


class _Counting:
  """Depth = frame number + 1; counts its passes and their frames."""

  def __init__(self):
    self.info = roles.BackendInfo("geometry", "counting", "1", "none", False)
    self.passes = []

  def reconstruct(self, frames, *, cameras=None):
    del cameras
    numbers = media.read_numbers(np.stack(list(frames)))
    self.passes.append(numbers)
    count = len(numbers)
    depth = np.ones((count, 2, 3), np.float32)
    depth += np.array(numbers, np.float32)[:, None, None]
    return observation.Geometry(
      depth=depth,
      intrinsics=np.tile(np.eye(3, dtype=np.float32), (count, 1, 1)),
      c2w=np.tile(np.eye(4), (count, 1, 1)),
      confidence=depth / 2,
      frame_indices=frames.frame_indices,
      video_size=frames.size,
      unit="arbitrary",
      provenance=self.info.provenance(frames.sha256),
    )


class GeometryPassTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    folder = pathlib.Path(self.create_tempdir().full_path)
    path = media.encode(
      folder / "a.mp4", media.numbered_frames(8, 32, 64), rate=12
    )
    self.opened = video.open_video(path)
    self.backend = _Counting()
    self.kept = cached.wrap(self.backend, folder / "cache")

  def _numbers(self, frames, whole):
    found = geometry_pass.reconstruct(self.kept, frames, whole=whole)
    np.testing.assert_array_equal(found.frame_indices, frames.frame_indices)
    self.assertEqual(found.video_size, frames.size)
    np.testing.assert_array_equal(found.confidence, found.depth / 2)
    return (found.depth[:, 0, 0] - 1).tolist()

  def test_one_pass_for_all_selections(self):
    whole = self.opened
    double = whole.resample(24).select(slice(3, 9))
    for frames, numbers in (
      (whole.select([0, 3, 7]), [0, 3, 7]),
      (whole, list(range(8))),
      (double, [1, 2, 2, 3, 3, 4]),
      (whole.select(slice(2, 5)), [2, 3, 4]),
    ):
      self.assertEqual(self._numbers(frames, whole), numbers)
      # Own passes see the same frames.
      own = geometry_pass.reconstruct(_Counting(), frames, whole=None)
      self.assertEqual((own.depth[:, 0, 0] - 1).tolist(), numbers)
    self.assertEqual(self.backend.passes, [list(range(8))])

  def test_own_passes_are_shared_where_the_frames_are_the_same(self):
    for rows in ([0, 3, 7], [0, 3], [0, 3, 7]):
      self.assertEqual(self._numbers(self.opened.select(rows), None), rows)
    self.assertEqual(self.backend.passes, [[0, 3, 7], [0, 3]])

  def test_pictures_in_memory_have_no_whole(self):
    clip = self.opened.read()
    found = geometry_pass.reconstruct(
      self.backend, clip.select([1, 2]), whole=self.opened
    )
    self.assertLen(found.depth, 2)
    self.assertEqual(self.backend.passes, [[1, 2]])

  def test_a_copy_under_another_name_is_the_same_video(self):
    path = pathlib.Path(self.opened.name)
    other = path.with_name("b.mp4")
    other.write_bytes(path.read_bytes())
    self.kept.reconstruct(self.opened)
    self.kept.reconstruct(video.open_video(other))
    self.assertLen(self.backend.passes, 1)
    self.kept.reconstruct(
      dataclasses.replace(self.opened, sha256="another film")
    )
    self.assertLen(self.backend.passes, 2)


if __name__ == "__main__":
  absltest.main()
