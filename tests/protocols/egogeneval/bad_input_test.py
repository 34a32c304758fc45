# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Every kind of bad input and the one line that a user reads.

Each is a run of the protocol that differs from a healthy one in one point;
the healthy one is read as well, so that nothing passes by refusing all. The
lines are what `bin.evaluate` prints after `error: `, with ROOT for the folder.
"""

import json
import math
import pathlib
import re

import cv2
import numpy as np
from absl.testing import absltest, parameterized

from perception.errors import InputError
from protocols.common import runner
from protocols.egogeneval import (
  constants,
  evidence_files,
  formats,
  manifest,
  measure_backends,
  predictions,
  run,
)
from tests.protocols.egogeneval import rollout_test as drawn
from tests.protocols.egogeneval import sample_rows

_CASE = "synthetic__s1__cycle__Y1_translation_cycle__0_10_0__single1"


def _rows(path):
  return [json.loads(line) for line in path.read_text().splitlines()]


def _outside(root):
  _edit(root, lambda row: row.update(output_path="../m.png"))


def _hash(root):
  _edit(root, lambda row: row.update(output_sha256="0" * 64))


def _edit(root, change):
  path = root / "demo" / "predictions.jsonl"
  rows = _rows(path)
  change(rows[1])
  formats.write_rows(path, rows)


def _missing(root):
  path = root / "demo" / "predictions.jsonl"
  formats.write_rows(path, _rows(path)[:1])


def _undecodable(root):
  path = root / "demo" / _CASE / "step2.png"
  path.write_bytes(b"no image")
  digest = formats.sha256_of_file(path)
  _edit(root, lambda row: row.update(output_sha256=digest))


def _two_candidates(root):
  (root / "demo" / "predictions.jsonl").unlink()
  image = np.zeros((4, 6, 3), np.uint8)
  cv2.imwrite(str(root / "demo" / _CASE / "step_02.png"), image)


def _no_label(root):
  formats.write_rows(root / "labels.jsonl", [])


def _unknown_field(root):
  path = root / "manifest.jsonl"
  (row,) = _rows(path)
  formats.write_rows(path, [{**row, "surprise": 1}])


class MeasuredTest(parameterized.TestCase):
  def setUp(self):
    super().setUp()
    self.root = pathlib.Path(self.create_tempdir().full_path)
    drawn.write_scene(self.root, [sample_rows.manifest_row("cycle")])
    content = manifest.read(self.root / "manifest.jsonl")
    (case,) = content.cases
    rows = []
    for step in case.steps:
      name = f"{case.case_id}/step{step.number}.png"
      path = self.root / "demo" / name
      path.parent.mkdir(parents=True, exist_ok=True)
      cv2.imwrite(str(path), np.full((48, 64, 3), 90 * step.number, np.uint8))
      rows.append(
        predictions.prediction_row(
          case,
          step.number,
          manifest_sha256=content.sha256,
          model_id="demo",
          model_type="image",
          output_path=name,
          output_sha256=formats.sha256_of_file(path),
          generation={},
        )
      )
    formats.write_rows(self.root / "demo" / "predictions.jsonl", rows)
    labels = [{"object_labels": ["chair"]}] * 2
    formats.write_rows(
      self.root / "labels.jsonl",
      [{"sample_id": case.case_id, "target_labels": labels}],
    )

  def _evaluate(self, detector="recorded"):
    return run.evaluate(
      run.EgoGenEvalConfig(
        "paper",
        manifest=self.root / "manifest.jsonl",
        predictions=(self.root / "demo",),
        labels=self.root / "labels.jsonl",
        eval_frames=self.root / "eval_frames.jsonl",
        perception=measure_backends.PerceptionConfig(
          detector=detector,
          settings={"recorded": {"path": str(self.root)}},
        ),
      ),
      runner.RunOptions(output=self.root / "out"),
    )

  def test_healthy_files_are_read_and_flat_images_are_not_localised(self):
    outcome = self._evaluate(detector=measure_backends.NONE)
    self.assertFalse(outcome.complete)
    self.assertIn("physical pair not localised:", outcome.text)

  @parameterized.named_parameters(
    (
      "outside",
      _outside,
      "ROOT/demo/predictions.jsonl: line 2, output_path: found ../m.png;"
      " expected a path inside the prediction folder",
    ),
    (
      "hash",
      _hash,
      "ROOT/demo/predictions.jsonl: line 2, output_sha256: found DIGEST;"
      " expected ZEROS",
    ),
    (
      "missing_step",
      _missing,
      "ROOT/demo/predictions.jsonl: rows: found 1 steps missing, first"
      " CASE__step2; expected all 2 steps of the manifest. Complete the run,"
      " or pass --allow_partial.",
    ),
    (
      "two_candidates",
      _two_candidates,
      "ROOT/demo: CASE, step 2: found 2 outputs CASE/step2.png"
      " CASE/step_02.png; expected exactly one. Layouts: <case>/step1.png,"
      " <case>/step1.mp4, <case>/step1/, <case>_step1.png.",
    ),
    (
      "undecodable",
      _undecodable,
      "ROOT/demo/CASE/step2.png: picture: found 8 bytes that are neither PNG"
      " nor JPEG; expected an undamaged PNG or JPEG. Copy or export the file"
      " again.",
    ),
    (
      "label_bank",
      _no_label,
      "ROOT/labels.jsonl: sample_id: found no row for CASE; expected labels of"
      " every selected case. Add the row or select fewer cases.",
    ),
    (
      "unknown_field",
      _unknown_field,
      "ROOT/manifest.jsonl: line 1: found Additional properties are not allowed"
      " ('surprise' was unexpected); expected a row of the manifest format. See"
      " protocols/egogeneval/schemas/manifest.schema.json.",
    ),
  )
  def test_line(self, damage, expected):
    damage(self.root)
    with self.assertRaises(InputError) as caught:
      self._evaluate()
    line = str(caught.exception).replace(str(self.root), "ROOT")
    line = line.replace(_CASE, "CASE").replace("0" * 64, "ZEROS")
    line = re.sub("[0-9a-f]{64}", "DIGEST", line)
    self.assertEqual(line, expected)


class EvidenceTest(parameterized.TestCase):
  def setUp(self):
    super().setUp()
    self.root = pathlib.Path(self.create_tempdir().full_path)
    self.ids = [
      f"{sample_rows.case_id(p)}__step{m}"
      for p in constants.PROTOCOLS
      for m in range(1, constants.STEPS_OF_PROTOCOL[p] + 1)
    ]
    self.cmg = [sample_rows.cmg_row(i) for i in self.ids]
    self.ssp = [sample_rows.ssp_row(i, targets=2) for i in self.ids]

  def _evaluate(self, variant="released"):
    evidence_files.write_system(
      self.root / "evidence" / "demo", self.cmg, self.ssp, []
    )
    return run.evaluate(
      run.EgoGenEvalConfig(variant, evidence=self.root / "evidence"),
      runner.RunOptions(output=self.root / "out"),
    )

  @parameterized.parameters(
    ("action_pred", "a finite number"),
    ("action_abs_err", "a finite number in [0, inf]"),
  )
  def test_nan_estimate(self, field, expected):
    path = self.root / "evidence" / "demo" / "cmg.jsonl"
    self._evaluate()
    self.cmg[2][field] = math.nan
    path.write_text("".join(json.dumps(row) + "\n" for row in self.cmg))
    with self.assertRaises(InputError) as caught:
      evidence_files.read_folder(self.root / "evidence")
    self.assertEqual(
      str(caught.exception).replace(str(self.root), "ROOT"),
      f"ROOT/evidence/demo/cmg.jsonl: line 3, {field}: found nan;"
      f" expected {expected}",
    )

  def test_no_object_in_any_target(self):
    self.ssp = [
      {"id": i, "num_gt_objects": 0, "num_pred_all": 1, "num_matched": 0}
      for i in self.ids
    ]
    outcome = self._evaluate()
    self.assertFalse(outcome.complete)
    self.assertIn(
      "refused: ssp evidence: protocols: found no valid case", outcome.text
    )
    scores = json.loads((self.root / "out" / "scores.json").read_text())
    self.assertIsNone(scores["systems"]["demo"]["ssp"])
    self.assertIsNone(scores["systems"]["demo"]["overall"])

  def test_a_reply_that_was_not_json_shows_wherever_it_counts(self):
    self.ssp[1] = {
      **sample_rows.ssp_row(self.ids[1], targets=2, matches=0),
      "proposal_failed": True,
    }
    outcome = self._evaluate()
    self.assertIn("1 failed matching calls", outcome.text)
    scores = json.loads((self.root / "out" / "scores.json").read_text())
    self.assertEqual(
      scores["systems"]["demo"]["coverage"]["proposals_failed"], 1
    )
    case = self.ids[1].rpartition("__step")[0]
    records = [
      json.loads(line)
      for line in (self.root / "out" / "cases.jsonl").read_text().splitlines()
    ]
    notes = {record["case_id"]: record["notes"] for record in records}
    self.assertEqual(
      notes.pop(case),
      ["step 1: the matching call failed and counts as no match (released)"],
    )
    self.assertEqual(set(map(tuple, notes.values())), {()})

  def test_the_paper_variant_does_not_score_such_a_step(self):
    self.ssp[1]["proposal_failed"] = True
    outcome = self._evaluate("paper")
    self.assertFalse(outcome.complete)
    self.assertIn("the matching call failed", outcome.text)


if __name__ == "__main__":
  absltest.main()
