# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""The rollout binary: flagfile, resume, one-line errors."""

import pathlib
import subprocess
import sys

from absl.testing import absltest

from tests.protocols.egogeneval import rollout_test as drawn
from tests.protocols.egogeneval import sample_rows

_ROOT = pathlib.Path(__file__).resolve().parents[2]


def _run(*flags):
  return subprocess.run(
    [sys.executable, "-m", "bin.rollout", *flags],
    cwd=_ROOT,
    capture_output=True,
    text=True,
    check=False,
  )


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
    flagfile = f"--flagfile={_ROOT}/bin/flags/rollout_oracle.flags"
    first = _run(flagfile, *self.flags)
    self.assertEqual(first.returncode, 0, first.stderr)
    self.assertIn("2 steps of oracle: 2 made, 0 kept", first.stdout)
    second = _run(flagfile, *self.flags)
    self.assertIn("0 made, 2 kept", second.stdout)

  def test_model_flagfile_with_an_entry_point(self):
    flagfile = f"--flagfile={_ROOT}/bin/flags/rollout_model.flags"
    entry_point = f"--entry_point={drawn.__name__}:brighten"
    made = _run(flagfile, entry_point, *self.flags)
    self.assertEqual(made.returncode, 0, made.stderr)
    self.assertIn("2 made, 0 kept", made.stdout)

  def test_without_a_generator(self):
    result = _run(*self.flags)
    self.assertEqual(result.returncode, 2)
    self.assertIn("exactly one of --reference", result.stderr)


if __name__ == "__main__":
  absltest.main()
