# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""The mining binary: flags, files, one-line errors."""

import json
import pathlib

from absl.testing import absltest

from tests.bin import running
from tests.protocols.egogeneval import drawn_room
from tests.shared_files import shared


class MineTest(absltest.TestCase):
  def test_flagfile_on_a_real_sequence(self):
    output = pathlib.Path(self.create_tempdir().full_path) / "bench"
    result = running.run(
      "mine",
      running.flagfile("mine_training"),
      f"--scenes={shared('data/sevenscenes')}",
      "--stride=3",
      "--train_trajectories=1",
      f"--output={output}",
    )
    self.assertEqual(result.returncode, 0, result.stderr)
    self.assertIn("A3_yaw_rotation", result.stdout)
    pairs = (output / "pairs.jsonl").read_text().splitlines()
    self.assertNotEmpty(pairs)
    mined = json.loads((output / "mining.json").read_text())
    self.assertIn("refused_overlap", mined["scenes"][0]["counts"])

  def test_a_calibrated_recording(self):
    root = pathlib.Path(self.create_tempdir().full_path)
    for name in ("made", "room"):
      (root / name).mkdir()
    scene = drawn_room.recording(root / "made", 14, turn_share=1.06)
    drawn_room.write_seven_scenes(root / "room", scene)
    result = running.run(
      "mine",
      running.flagfile("mine_benchmark"),
      f"--scenes={root / 'room'}",
      "--calibrate",
      "--stride=1",
      f"--output={root / 'bench'}",
    )
    self.assertEqual(result.returncode, 0, result.stderr)
    self.assertIn("calibrated: focal 175.0 ->", result.stdout)
    mined = json.loads((root / "bench" / "mining.json").read_text())
    found = mined["scenes"][0]["calibration_report"]
    self.assertAlmostEqual(
      found["focal_px"]["outlines"] / drawn_room.COLOUR_FOCAL, 1.0, delta=0.02
    )
    row = json.loads(
      (root / "bench" / "eval_frames.jsonl").read_text().splitlines()[0]
    )
    self.assertIn(
      "colour camera and poses estimated", row["calibration_source"]
    )
    # Reduced by one half: the estimated focal length, not the recorded one.
    self.assertAlmostEqual(
      row["intrinsics"][0][0], found["focal_px"]["outlines"] / 2
    )

  def test_an_empty_folder_is_one_line_and_exit_code_2(self):
    folder = self.create_tempdir().full_path
    result = running.run("mine", f"--scenes={folder}", f"--output={folder}/out")
    self.assertEqual(result.returncode, 2)
    self.assertStartsWith(result.stderr.splitlines()[-1], "error: ")


if __name__ == "__main__":
  absltest.main()
