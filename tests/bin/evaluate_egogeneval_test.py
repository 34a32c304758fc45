# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""bin.evaluate for EgoGenEval: its flagfiles on tiny data, exit codes."""

import json
import pathlib

from absl.testing import absltest

from protocols.egogeneval import constants, evidence_files, rollout
from tests.bin import running
from tests.protocols.egogeneval import rollout_test as drawn
from tests.protocols.egogeneval import sample_rows


class EvaluateTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    self.root = pathlib.Path(self.create_tempdir().full_path)

  def test_evidence(self):
    ids = [
      f"{sample_rows.case_id(p)}__step{m}"
      for p in constants.PROTOCOLS
      for m in range(1, constants.STEPS_OF_PROTOCOL[p] + 1)
    ]
    evidence_files.write_system(
      self.root / "evidence" / "demo",
      [sample_rows.cmg_row(i) for i in ids],
      [sample_rows.ssp_row(i, targets=2) for i in ids],
      [],
    )
    result = running.run(
      "evaluate",
      running.flagfile("egogeneval_evidence"),
      f"--evidence={self.root}/evidence",
      f"--output={self.root}/out",
    )
    self.assertEqual(result.returncode, 0, result.stderr)
    self.assertIn("6 of 6", result.stdout)
    scores = json.loads((self.root / "out" / "scores.json").read_text())
    self.assertEqual(scores["ranking"], ["demo"])
    run = json.loads((self.root / "out" / "run.json").read_text())
    self.assertEqual(run["flags"]["evidence"], f"{self.root}/evidence")
    self.assertEqual(run["flags"]["protocol"], "egogeneval")

  def test_offline_measurement_refuses_what_it_cannot_localise(self):
    drawn.write_scene(self.root, [sample_rows.manifest_row("atomic")])
    manifest, frames = (
      self.root / "manifest.jsonl", self.root / "eval_frames.jsonl",
    )  # fmt: skip
    rollout.run(
      rollout.RolloutConfig(
        manifest, frames, self.root / "oracle", "oracle", reference="oracle"
      )
    )
    result = running.run(
      "evaluate",
      running.flagfile("egogeneval_offline"),
      f"--manifest={manifest}",
      f"--eval_frames={frames}",
      f"--predictions={self.root}/oracle",
      f"--output={self.root}/out",
    )
    # The drawn images share no surface: nothing is localised, nothing scored.
    self.assertEqual(result.returncode, 3, result.stderr)
    self.assertIn("not localised", result.stdout)

  def test_missing_input_is_one_line(self):
    result = running.run(
      "evaluate",
      running.flagfile("egogeneval_offline"),
      f"--output={self.root}/out",
    )
    self.assertEqual(result.returncode, 2)
    self.assertIn("--evidence, or --manifest", result.stderr)


if __name__ == "__main__":
  absltest.main()
