# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""The observation stage: sampling, alignment, cache, what is absent."""

import dataclasses
import pathlib
from unittest import mock

import numpy as np
from absl.testing import absltest

from perception import offline_masks, video
from perception.errors import InputError
from protocols.pdi import cases, constants, observe
from tests.protocols.pdi import small_world

_BOX = (16.0, 10.0, 36.0, 30.0)


def _clip_frames(count: int) -> np.ndarray:
  """A bright textured square that moves over a dark floor."""
  rng = np.random.default_rng(0)
  frames = np.full((count, 48, 64, 3), 40, np.uint8)
  frames[..., 1] += rng.integers(0, 12, (48, 64), np.uint8)
  square = rng.integers(150, 255, (20, 20, 3), np.uint8)
  for t in range(count):
    frames[t, 10:30, 16 + t // 2 : 36 + t // 2] = square
  return frames


class ObserveTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    self.root = pathlib.Path(self.create_tempdir().full_path)

  def _video_case(self, frames: int, fps: int) -> cases.PdiCase:
    path = self.root / "m" / "clip.mp4"
    path.parent.mkdir(exist_ok=True)
    video.write_video(path, _clip_frames(frames), fps)
    return cases.PdiCase("m", "clip", video=path, object_box=_BOX)

  def _recorded_case(self) -> cases.PdiCase:
    small_world.write_case(self.root / "o" / "c", seed=0)
    (case,) = cases.from_observations(self.root)
    return case

  def _observe(self, case, **changes):
    config = observe.PerceptionConfig(**changes)
    return observe.observe(case, config, constants.PAPER)

  def test_raw_clips_follow_the_variant_and_native_ones_do_not(self):
    case = self._video_case(20, fps=12)
    paper = self._observe(case)
    self.assertEqual(paper.fps, 24.0)
    self.assertLen(paper.frames, 39)
    native = self._observe(case, sampling="native")
    self.assertEqual(native.fps, 12.0)
    self.assertLen(native.frames, 20)
    released = observe.observe(
      case, observe.PerceptionConfig(), constants.RELEASED
    )
    self.assertLen(released.frames, 20)

  def test_a_window_is_cut_before_everything_else(self):
    case = self._video_case(12, fps=24)
    found = self._observe(case, sampling="native", window=(4, 9))
    self.assertEqual(found.frames.frame_indices.tolist(), [4, 5, 6, 7, 8])
    self.assertEqual(found.masks.masks.shape[1], 5)
    with self.assertRaisesRegex(InputError, "12 frames"):
      self._observe(case, window=(12, 20))

  def test_masks_and_tracks_come_from_the_cache_the_second_time(self):
    case = self._video_case(6, fps=24)
    cached = {"sampling": "native", "cache": self.root / "cache"}
    first = self._observe(case, **cached)
    with mock.patch.object(
      offline_masks.GrabCutFlowMasks, "segment", side_effect=AssertionError
    ):
      second = self._observe(case, **cached)
      # Another prompt is another result.
      other = dataclasses.replace(case, object_box=(15.0, 9.0, 37.0, 31.0))
      with self.assertRaises(AssertionError):
        self._observe(other, **cached)
    np.testing.assert_array_equal(second.masks.masks, first.masks.masks)
    np.testing.assert_array_equal(second.tracks.xy, first.tracks.xy)

  def test_what_is_absent_says_why(self):
    case = dataclasses.replace(self._video_case(3, fps=24), object_box=None)
    found = self._observe(case, sampling="native")
    self.assertIn("--object_box", found.absent["masks"])
    self.assertIn("no mask", found.absent["tracks"])
    self.assertIn("no backend chosen", found.absent["geometry"])

  def test_arrays_are_aligned_by_frame_index(self):
    case = self._recorded_case()
    content = small_world.arrays(seed=0)
    small_world.geometry(content).select([2, 3, 5, 7]).save(
      case.observations["geometry"]
    )
    found = self._observe(case)
    self.assertEqual(found.dropped_frames, small_world.FRAMES - 4)
    self.assertEqual(found.masks.frame_indices.tolist(), [2, 3, 5, 7])
    np.testing.assert_array_equal(
      found.masks.masks[0], content["masks"][[2, 3, 5, 7]]
    )
    np.testing.assert_array_equal(found.tracks.xy, content["xy"][[2, 3, 5, 7]])

  def test_geometry_none_ignores_what_the_case_brings(self):
    found = self._observe(self._recorded_case(), geometry="none")
    self.assertIsNone(found.geometry)
    self.assertIn("geometry", found.absent)

  def test_recorded_without_a_recording_is_refused(self):
    case = dataclasses.replace(self._recorded_case(), observations={})
    with self.assertRaisesRegex(InputError, "settings of geometry backend"):
      self._observe(case, geometry="recorded")

  def test_recorded_takes_what_the_case_brings(self):
    found = self._observe(self._recorded_case(), geometry="recorded")
    self.assertEqual(found.geometry.provenance.backend, "drawn")


if __name__ == "__main__":
  absltest.main()
