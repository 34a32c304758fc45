# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Built-in data sets: what exists is kept, and nothing else joins it."""

import pathlib
from unittest import mock

from absl.testing import absltest

from perception import recorded
from perception.errors import InputError
from protocols.orbia import baselines, builtin


class KeptRecordingTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    self.root = pathlib.Path(self.create_tempdir().full_path) / "built"
    rows = mock.MagicMock()
    rows.__len__.return_value = 56  # one walk with time, one against it
    self.enter_context(
      mock.patch.object(recorded, "open_rgbd", return_value=rows)
    )
    self.estimate = self.enter_context(
      mock.patch.object(builtin, "CalibratedRecording")
    )
    self.estimate.side_effect = RuntimeError("estimated")

  def _write(self, *, calibrate):
    builtin.write_recorded(
      self.root,
      pathlib.Path("recording"),
      calibrate=calibrate,
      generators={"perfect": baselines.perfect},
    )

  def test_cameras_are_estimated_only_while_a_video_is_absent(self):
    with self.assertRaisesRegex(RuntimeError, "estimated"):
      self._write(calibrate=True)
    folder = self.root / builtin.VIDEOS / "perfect"
    folder.mkdir(parents=True)
    (folder / "recorded_000.geometry.npz").touch()
    with self.assertRaisesRegex(RuntimeError, "estimated"):
      self._write(calibrate=True)
    (folder / "recorded_001.geometry.npz").touch()
    self._write(calibrate=True)
    self.assertEqual(self.estimate.call_count, 2)

  def test_cases_of_other_cameras_do_not_join(self):
    with self.assertRaisesRegex(RuntimeError, "estimated"):
      self._write(calibrate=True)
    with self.assertRaisesRegex(
      InputError, "calibrate: found True; expected False.*another --output"
    ):
      self._write(calibrate=False)


if __name__ == "__main__":
  absltest.main()
