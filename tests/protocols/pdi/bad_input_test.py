# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Bad input ends in one clear line or a declared status, never in a score.

Every kind is a small end-to-end run of the protocol on a case that differs
from a healthy one in one point. The healthy case is scored as well, so that
the test cannot pass by refusing everything.
"""

import dataclasses
import fractions
import json
import os
import pathlib
from collections.abc import Callable
from unittest import mock

import av
import cv2
import numpy as np
from absl.testing import absltest, parameterized

from perception import video
from perception.errors import InputError
from protocols.common import records, runner
from protocols.pdi import run
from protocols.pdi.observe import PerceptionConfig
from tests.protocols.pdi import small_world

_NATIVE = PerceptionConfig(sampling="native")
_BOX = (8.0, 10.0, 28.0, 30.0)


def _rewrite(path: pathlib.Path, change: Callable[[dict], object]) -> None:
  """Changes arrays of an `.npz` behind the back of its record class."""
  with np.load(path) as archive:
    arrays = dict(archive)
  change(arrays)
  np.savez(path, **arrays)


def _frames(count: int, size: tuple[int, int]) -> np.ndarray:
  rng = np.random.default_rng(0)
  small = rng.integers(0, 255, (count, 12, 16, 3), np.uint8)
  return np.stack([cv2.resize(f, size[::-1]) for f in small])


def _audio_only(path: pathlib.Path) -> None:
  with av.open(str(path), "w") as container:
    stream = container.add_stream("aac", rate=44100)
    frame = av.AudioFrame.from_ndarray(
      np.zeros((1, 1024), np.float32), format="fltp", layout="mono"
    )
    frame.sample_rate = 44100
    frame.time_base = fractions.Fraction(1, 44100)
    frame.pts = 0
    container.mux(stream.encode(frame))
    container.mux(stream.encode(None))


def _infinite(arrays: dict) -> None:
  arrays["depth"][3, 5, 5] = np.inf


def _zero_depth(arrays: dict) -> None:
  arrays["depth"][2] = 0.0


def _nan_depth(arrays: dict) -> None:
  arrays["depth"][:] = np.nan


def _sheared(arrays: dict) -> None:
  arrays["c2w"][4, 0, 0] = 1.5


def _mirrored(arrays: dict) -> None:
  arrays["c2w"][:, 0, 0] = -1.0


def _nan_pose(arrays: dict) -> None:
  arrays["c2w"][1, 0, 3] = np.nan


def _shuffled(arrays: dict) -> None:
  arrays["frame_indices"] = arrays["frame_indices"][::-1]


def _repeated(arrays: dict) -> None:
  arrays["frame_indices"][5] = 4


def _no_focal(arrays: dict) -> None:
  arrays["intrinsics"][:, 0, 0] = 0.0


def _short_poses(arrays: dict) -> None:
  arrays["c2w"] = arrays["c2w"][:-1]


def _integer_depth(arrays: dict) -> None:
  arrays["depth"] = (1000 * arrays["depth"]).astype(np.uint16)


def _feet(arrays: dict) -> None:
  arrays["unit"] = np.asarray("foot")


def _no_depth(arrays: dict) -> None:
  del arrays["depth"]


def _future(arrays: dict) -> None:
  arrays["schema_version"] = np.asarray(99)


def _extra(arrays: dict) -> None:
  arrays["dpeth"] = np.zeros(3)


def _elsewhere(arrays: dict) -> None:
  arrays["frame_indices"] = arrays["frame_indices"] + 1000


def _numbers(arrays: dict) -> None:
  arrays["masks"] = arrays["masks"].astype(np.uint8) * 255


def _flat(arrays: dict) -> None:
  arrays["masks"] = arrays["masks"][0]


def _empty_first(arrays: dict) -> None:
  arrays["masks"][:, 0] = False


def _always_empty(arrays: dict) -> None:
  arrays["masks"][:] = False


def _mostly_lost(arrays: dict) -> None:
  arrays["masks"][:, 4:] = False


def _same_ids(arrays: dict) -> None:
  arrays["masks"] = np.repeat(arrays["masks"], 2, axis=0)
  arrays["object_ids"] = np.array([1, 1], np.int32)


def _nan_track(arrays: dict) -> None:
  arrays["xy"][3, 2] = np.nan


def _too_sure(arrays: dict) -> None:
  arrays["confidence"][:] = 1.5


def _two_tracks(arrays: dict) -> None:
  for name in ("xy", "visible", "confidence"):
    arrays[name] = arrays[name][:, :2]
  arrays["query_frame"] = arrays["query_frame"][:2]


def _one_frame(arrays: dict) -> None:
  for name in ("xy", "visible", "confidence"):
    arrays[name] = arrays[name][:1]


class BadInputTest(parameterized.TestCase):
  def setUp(self):
    super().setUp()
    self.root = pathlib.Path(self.create_tempdir().full_path)
    self.case = self.root / "in" / "m" / "clip0"

  def _score(self, inputs: run.PdiInputs, perception=_NATIVE):
    options = runner.RunOptions(output=self.root / "out")
    config = run.PdiConfig("paper", inputs, perception)
    outcome = run.evaluate(config, options)
    lines = (self.root / "out" / "records.jsonl").read_text().splitlines()
    found = [
      records.Record.from_json(line, source="r", field="l") for line in lines
    ]
    return outcome, found

  def _observations(self):
    return run.PdiInputs(observations=self.root / "in")

  def _assert_refused(self, inputs, text, perception=_NATIVE):
    """One line as an error, or a record without a score that says why."""
    try:
      outcome, found = self._score(inputs, perception)
    except InputError as error:
      message = str(error)
    else:
      (record,) = found
      self.assertNotEqual(record.status, records.OK)
      self.assertFalse(outcome.complete)
      self.assertIn("refused", outcome.text)
      totals = json.loads((self.root / "out" / "scores.json").read_text())
      self.assertEqual(totals["systems"]["m"]["groups"], {})
      self.assertNotIn("traceback", record.details)
      message = record.reason
    self.assertNotIn("\n", message)
    self.assertNotIn("Traceback", message)
    self.assertRegex(message, text)

  def test_the_healthy_case_is_scored(self):
    small_world.write_case(self.case, seed=0)
    outcome, (record,) = self._score(self._observations())
    self.assertEqual(record.status, records.OK, record.reason)
    self.assertTrue(outcome.complete)
    self.assertGreater(record.values["pdi"], 0.0)

  @parameterized.named_parameters(
    ("infinite_depth", _infinite, "depth"),
    ("zero_depth", _zero_depth, "depth"),
    ("no_valid_depth", _nan_depth, "depth"),
    ("sheared_pose", _sheared, "c2w"),
    ("mirrored_pose", _mirrored, "c2w"),
    ("nan_pose", _nan_pose, "c2w"),
    ("shuffled_frames", _shuffled, "frame_indices"),
    ("repeated_frame", _repeated, "frame_indices"),
    ("zero_focal", _no_focal, "intrinsics"),
    ("poses_of_other_length", _short_poses, "c2w"),
    ("integer_depth", _integer_depth, "depth"),
    ("unknown_unit", _feet, "unit"),
    ("missing_key", _no_depth, "depth"),
    ("unknown_version", _future, "schema_version"),
    ("unknown_key", _extra, "dpeth"),
    ("other_frames", _elsewhere, "frame_indices"),
  )
  def test_geometry(self, change, text):
    small_world.write_case(self.case, seed=0)
    _rewrite(self.case / "geometry.npz", change)
    self._assert_refused(self._observations(), text)

  @parameterized.named_parameters(
    ("masks_of_255", _numbers, "masks"),
    ("masks_without_object_axis", _flat, "masks"),
    ("empty_on_frame_0", _empty_first, "frame 0|mask 0"),
    ("always_empty", _always_empty, "."),
    ("mostly_lost", _mostly_lost, "67% of the masks are lost"),
    ("duplicate_object_ids", _same_ids, "object_ids"),
  )
  def test_masks(self, change, text):
    small_world.write_case(self.case, seed=0)
    _rewrite(self.case / "masks.npz", change)
    self._assert_refused(self._observations(), text)

  @parameterized.named_parameters(
    ("nan_track", _nan_track, "xy"),
    ("confidence_above_one", _too_sure, "confidence"),
    ("two_tracks", _two_tracks, "anchor"),
    ("tracks_of_one_frame", _one_frame, "frame_indices"),
  )
  def test_tracks(self, change, text):
    small_world.write_case(self.case, seed=0)
    _rewrite(self.case / "tracks.npz", change)
    self._assert_refused(self._observations(), text)

  @parameterized.named_parameters(
    ("empty_file", b"", "clip"),
    ("no_video", b"\x00" * 2000, "clip"),
    ("text", b"hello world" * 100, "clip"),
  )
  def test_files_that_are_no_video(self, content, text):
    path = self.root / "in" / "m" / "clip.mp4"
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    self._assert_refused(
      run.PdiInputs(clips=self.root / "in", object_box=_BOX), text
    )

  def _clip(self, count: int, size=(48, 64)) -> pathlib.Path:
    path = self.root / "in" / "m" / "clip.mp4"
    path.parent.mkdir(parents=True)
    video.write_video(path, _frames(count, size), 24)
    return path

  def _clips(self, box=_BOX):
    return run.PdiInputs(clips=self.root / "in", object_box=box)

  def test_truncated_mp4(self):
    path = self._clip(30)
    path.write_bytes(path.read_bytes()[:-200])
    self._assert_refused(self._clips(), "clip.mp4")

  def test_audio_only(self):
    path = self.root / "in" / "m" / "clip.mp4"
    path.parent.mkdir(parents=True)
    _audio_only(path)
    self._assert_refused(self._clips(), "video")

  def test_one_frame_clip(self):
    self._clip(1)
    self._assert_refused(self._clips(), ".")

  def test_clip_below_96_frames_is_reported_not_scored(self):
    self._clip(30)
    self._assert_refused(
      self._clips(), "96", PerceptionConfig(sampling="variant")
    )

  @parameterized.named_parameters(
    ("outside", (500.0, 10.0, 600.0, 30.0)),
    ("partly_outside", (40.0, 10.0, 90.0, 30.0)),
  )
  def test_box_outside_the_image(self, box):
    self._clip(4)
    self._assert_refused(self._clips(box), "box")

  def test_no_box_is_missing_masks(self):
    self._clip(4)
    self._assert_refused(self._clips(None), "masks: .*--object_box")

  def test_unknown_backend_is_named(self):
    self._clip(4)
    perception = dataclasses.replace(_NATIVE, masks="sam9")
    self._assert_refused(self._clips(), "sam9", perception)

  def test_unknown_backend_setting_is_named(self):
    self._clip(4)
    perception = dataclasses.replace(
      _NATIVE, masks="grabcut_flow", settings={"grabcut_flow": {"speed": 1}}
    )
    self._assert_refused(self._clips(), "speed", perception)

  def test_a_full_disk_is_one_clear_line(self):
    small_world.write_case(self.case, seed=0)
    error = OSError(28, os.strerror(28))
    with (
      mock.patch.object(os, "fsync", side_effect=error),
      self.assertRaisesRegex(InputError, "No space left on device"),
    ):
      self._score(self._observations())

  def test_output_that_is_a_file_is_one_clear_line(self):
    small_world.write_case(self.case, seed=0)
    (self.root / "out").write_text("x")
    with self.assertRaisesRegex(InputError, "out"):
      self._score(self._observations())

  def test_a_bad_clip_does_not_stop_the_others(self):
    small_world.write_case(self.case, seed=0)
    small_world.write_case(self.root / "in" / "m" / "clip1", seed=1)
    (self.case / "geometry.npz").write_bytes(b"no zip")
    outcome, found = self._score(self._observations())
    self.assertEqual(
      sorted(record.status for record in found), ["failed", "ok"]
    )
    self.assertFalse(outcome.complete)
    self.assertIn("1 of 2 scored (1 failed)", outcome.text)


if __name__ == "__main__":
  absltest.main()
