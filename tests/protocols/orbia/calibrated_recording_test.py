# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""What the estimate sees of a recording, and what is made of its answer.

The estimate itself is tested with EgoGenEval's recordings.
"""

import dataclasses
import fractions
import pathlib
from unittest import mock

import cv2
import numpy as np
from absl.testing import absltest

from perception import recorded
from protocols.egogeneval import recording_calibration
from protocols.orbia.calibrated_recording import CalibratedRecording

_K = np.array([[20.0, 0, 7.5], [0, 20.0, 5.5], [0, 0, 1]])


class CalibratedRecordingTest(absltest.TestCase):
  def test_frames_go_in_and_corrected_frames_come_out(self):
    folder = pathlib.Path(self.create_tempdir().full_path)
    poses = np.tile(np.eye(4), (3, 1, 1))
    poses[:, 0, 3] = [0.0, 0.1, 0.2]
    colour, depth = [], []
    for row in range(3):
      colour.append(folder / f"{row}.color.png")
      depth.append(folder / f"{row}.depth.png")
      cv2.imwrite(str(colour[row]), np.full((12, 16, 3), 50 * row, np.uint8))
      cv2.imwrite(str(depth[row]), np.full((12, 16), 1000 + row, np.uint16))
    source = recorded.RgbdFolder(
      name=str(folder),
      names=("0", "1", "2"),
      colour_files=tuple(colour),
      depth_files=tuple(depth),
      depth_scale=1000.0,
      size=(12, 16),
      intrinsics=np.tile(_K, (3, 1, 1)),
      c2w=poses,
      fps=fractions.Fraction(0),
      timestamps=np.arange(3.0),
    )
    seen = []

    def estimate(scene):
      seen.append(scene)
      frames = tuple(
        dataclasses.replace(
          frame,
          intrinsics=frame.intrinsics * [[0.9], [0.9], [1.0]],
          correct=lambda image: image + np.uint8(1),
        )
        for frame in scene.frames
      )
      report = {"made": "by hand"}
      return dataclasses.replace(scene, frames=frames), report

    with (
      mock.patch.object(recording_calibration, "calibrated", estimate),
      mock.patch.object(recording_calibration, "summary", return_value="text"),
    ):
      found = CalibratedRecording(source)
    (scene,) = seen
    np.testing.assert_array_equal(
      [frame.pose_c2w[0, 3] for frame in scene.frames], [0.0, 0.1, 0.2]
    )
    np.testing.assert_allclose(scene.frames[2].read_depth(), 1.002)
    self.assertEqual(int(scene.frames[2].image()[0, 0, 0]), 100)
    self.assertLen(found, 3)
    self.assertEqual(found.size, (12, 16))
    self.assertAlmostEqual(found.intrinsics[1, 0, 0], 18.0)
    self.assertEqual(int(found.rgb(1)[0, 0, 0]), 51)
    np.testing.assert_allclose(found.depth(1), 1.001)
    np.testing.assert_allclose(found.c2w, poses)


if __name__ == "__main__":
  absltest.main()
