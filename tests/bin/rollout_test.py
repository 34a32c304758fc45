# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""The rollout binary: flagfile, resume, one-line errors."""

import pathlib

from absl.testing import absltest

from tests.bin import running
from tests.protocols.egogeneval import rollout_test as drawn
from tests.protocols.egogeneval import sample_rows


class RolloutBinaryTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    self.root = pathlib.Path(self.create_tempdir().full_path)
    drawn.write_scene(self.root, [sample_rows.manifest_row("cycle")])
    self.flags = (
      f"--manifest={self.root}/manifest.jsonl",
      f"--eval_frames={self.root}/eval_frames.jsonl",
      f"--output={self.root}/out",
    )

  def test_flagfile_and_resume(self):
    flagfile = running.flagfile("rollout_oracle")
    first = running.run("rollout", flagfile, *self.flags)
    self.assertEqual(first.returncode, 0, first.stderr)
    self.assertIn("2 steps of oracle: 2 made, 0 kept", first.stdout)
    second = running.run("rollout", flagfile, *self.flags)
    self.assertIn("0 made, 2 kept", second.stdout)

  def test_model_flagfile_with_an_entry_point(self):
    flagfile = running.flagfile("rollout_model")
    entry_point = f"--entry_point={drawn.__name__}:brighten"
    made = running.run("rollout", flagfile, entry_point, *self.flags)
    self.assertEqual(made.returncode, 0, made.stderr)
    self.assertIn("2 made, 0 kept", made.stdout)

  def test_without_a_generator(self):
    result = running.run("rollout", *self.flags)
    self.assertEqual(result.returncode, 2)
    self.assertIn("exactly one of --reference", result.stderr)


if __name__ == "__main__":
  absltest.main()
