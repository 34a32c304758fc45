# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""The mining binary: flags, files, one-line errors."""

import json
import pathlib

from absl.testing import absltest

from tests.bin import running
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

  def test_an_empty_folder_is_one_line_and_exit_code_2(self):
    folder = self.create_tempdir().full_path
    result = running.run("mine", f"--scenes={folder}", f"--output={folder}/out")
    self.assertEqual(result.returncode, 2)
    self.assertStartsWith(result.stderr.splitlines()[-1], "error: ")


if __name__ == "__main__":
  absltest.main()
