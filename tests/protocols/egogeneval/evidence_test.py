# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Frozen evidence: bad rows, masks, completeness, variants, whole runs."""

import gc
import json
import math
import pathlib
import random

from absl.testing import absltest, parameterized

from perception.errors import InputError
from protocols.common import runner
from protocols.egogeneval import (
  constants,
  diagnostics,
  evidence,
  evidence_files,
  formats,
  run,
  scoring,
  totals,
)
from tests.protocols.egogeneval import sample_rows


def _step_ids():
  return [
    f"{sample_rows.case_id(protocol)}__step{m}"
    for protocol in constants.PROTOCOLS
    for m in range(1, constants.STEPS_OF_PROTOCOL[protocol] + 1)
  ]


class RowTest(parameterized.TestCase):
  def _ssp(self, **changes):
    row = sample_rows.ssp_row(_step_ids()[0], targets=3, matches=2)
    row.update(changes)
    return evidence.ssp_row(row, source="e.jsonl", field="line 3")

  @parameterized.named_parameters(
    ("bool", {"num_gt_objects": True}, "num_gt_objects"),
    ("float", {"num_pred_all": 2.0}, "num_pred_all"),
    ("too_many", {"num_matched": 3, "num_pred_all": 2}, "num_matched"),
    ("mismatch", {"num_matched": 1}, "num_matched"),
    ("objects", {"objects": None}, "objects"),
    ("depths", {"object_depths": []}, "object_depths"),
    ("nan", {"object_integrity": math.nan}, "object_integrity"),
    ("null", {"center_error_norm": None}, "center_error_norm"),
    ("id", {"id": "a__b__c"}, "id"),
  )
  def test_bad_scene_rows_name_line_and_field(self, changes, field):
    with self.assertRaisesRegex(InputError, f"e.jsonl: line 3, {field}"):
      self._ssp(**changes)

  @parameterized.named_parameters(
    ("nan", {"action_abs_err": math.nan}, "action_abs_err"),
    ("negative", {"action_abs_err": -1.0}, "action_abs_err"),
    ("unit", {"action_unit": ""}, "action_unit"),
    ("flag", {"action_sign_correct": 2.0}, "action_sign_correct"),
    ("text", {"action_expected": "1"}, "action_expected"),
  )
  def test_bad_camera_rows_name_line_and_field(self, changes, field):
    row = {**sample_rows.cmg_row(_step_ids()[0]), **changes}
    with self.assertRaisesRegex(InputError, f"line 9, {field}"):
      evidence.cmg_row(row, source="e.jsonl", field="line 9")

  def test_a_wrong_direction_needs_nothing_else(self):
    row = evidence.cmg_row(
      {"id": _step_ids()[0], "action_sign_correct": 0.0}, source="e", field="f"
    )
    for limits in (constants.RELEASED, constants.PAPER):
      scores = scoring.score_cmg([row], limits)
      self.assertEqual(float(scores.score[0]), 0.0)
      self.assertTrue(bool(scores.valid[0]))


class VariantTest(absltest.TestCase):
  def test_the_paper_has_no_dead_zone(self):
    row = sample_rows.cmg_row(_step_ids()[0], expected=0.4, estimate=0.0005)
    row["action_sign_correct"] = 0.0  # The released dead zone.
    parsed = [evidence.cmg_row(row, source="e", field="f")]
    released = scoring.score_cmg(parsed, constants.RELEASED)
    paper = scoring.score_cmg(parsed, constants.PAPER)
    self.assertEqual(float(released.score[0]), 0.0)
    self.assertGreater(float(paper.score[0]), 0.5)

  def test_the_paper_counts_extras_instead_of_all_candidates(self):
    row = sample_rows.ssp_row(
      _step_ids()[0], targets=1, matches=1, candidates=5
    )
    parsed = [evidence.ssp_row(row, source="e", field="f")]
    released = scoring.score_ssp(parsed, constants.RELEASED)
    paper = scoring.score_ssp(parsed, constants.PAPER)
    self.assertAlmostEqual(float(released.presence[0]), 2 / 6)
    self.assertAlmostEqual(float(paper.presence[0]), 1.0)


class FolderTest(parameterized.TestCase):
  def setUp(self):
    super().setUp()
    self.root = pathlib.Path(self.create_tempdir().full_path)
    self.evidence = self.root / "evidence"
    for name, estimate in (("good", 0.35), ("poor", 0.1)):
      self._write(
        name,
        [sample_rows.cmg_row(i, estimate=estimate) for i in _step_ids()],
        [sample_rows.ssp_row(i, targets=2, matches=1) for i in _step_ids()],
      )

  def _write(self, name, cmg, ssp, statuses=()):
    evidence_files.write_system(self.evidence / name, cmg, ssp, statuses)

  def _run(self, output="out", variant="released", **options):
    return run.evaluate(
      run.EgoGenEvalConfig(variant, evidence=self.evidence),
      runner.RunOptions(output=self.root / output, **options),
    )

  def test_scores_are_written_and_hand_checked(self):
    outcome = self._run()
    self.assertTrue(outcome.complete)
    content = json.loads((self.root / "out" / "scores.json").read_text())
    self.assertEqual(content["ranking"], ["good", "poor"])
    good = content["systems"]["good"]
    # q = 1 / (1 + 0.05 / 0.4) = 0.888889; g = (1 + q) / 2.
    self.assertAlmostEqual(good["cmg"]["cmg"], 0.944444, places=6)
    # F1 = 2/3; Pos = 0.45, T = 0, S = 0.225; Int = 0.4.
    expected = (2 / 3 + 0.225 + 0.4) / 3
    self.assertAlmostEqual(good["ssp"]["ssp"], expected, places=12)
    self.assertAlmostEqual(
      good["overall"], (good["cmg"]["cmg"] + expected) / 2, places=12
    )
    for name in ("scores.csv", "cases.jsonl", "mask.json", "diagnostics.json"):
      self.assertTrue((self.root / "out" / name).exists(), name)

  def test_auxiliary_scores_stand_beside_and_change_nothing(self):
    panel = {
      name: {
        "psnr": 10.0 + i, "lpips": 0.5 - i / 10, "niqe": 5.0 - i,
        "musiq": 50.0 + i, "clip_iqa": 0.5 + i / 10,
      }
      for i, name in enumerate(("poor", "good"))
    }  # fmt: skip
    path = self.root / "panel.json"
    path.write_text(json.dumps(panel))
    self._run()
    run.evaluate(
      run.EgoGenEvalConfig("released", evidence=self.evidence, auxiliary=path),
      runner.RunOptions(output=self.root / "aux"),
    )
    plain, with_panel = (
      json.loads((self.root / name / "scores.json").read_text())
      for name in ("out", "aux")
    )
    self.assertEqual(with_panel["auxiliary"]["refsim"]["good"], 1.0)
    self.assertEqual(with_panel["auxiliary"]["visqual"]["poor"], 0.0)
    self.assertEqual(plain["systems"], with_panel["systems"])
    del panel["good"]["musiq"]
    path.write_text(json.dumps(panel))
    with self.assertRaisesRegex(InputError, "metrics of good.*musiq"):
      run.auxiliary_scores(path)

  def test_order_of_rows_changes_no_byte(self):
    self._run()
    for path in self.evidence.rglob("*.jsonl"):
      lines = path.read_text().splitlines(keepends=True)
      random.Random(0).shuffle(lines)
      path.write_text("".join(lines))
    self._run(output="again")
    for name in ("scores.json", "scores.csv"):
      self.assertEqual(
        (self.root / "out" / name).read_bytes(),
        (self.root / "again" / name).read_bytes(),
      )

  def test_incomplete_evidence_is_refused_unless_partial_is_asked_for(self):
    ids = _step_ids()
    failed = evidence_files.StepStatus(ids[1], "cmg", "failed", "not localised")
    self._write(
      "hurt",
      [sample_rows.cmg_row(i) for i in ids if i != ids[1]],
      [sample_rows.ssp_row(i) for i in ids],
      [failed],
    )
    outcome = self._run()
    self.assertFalse(outcome.complete)
    self.assertIn("5 of 6 steps", outcome.text)
    self.assertIn("not localised", outcome.text)
    partial = self._run(output="partial", allow_partial=True)
    self.assertTrue(partial.complete)
    self.assertIn("PARTIAL", partial.text)
    content = json.loads((self.root / "partial" / "scores.json").read_text())
    hurt = content["systems"]["hurt"]
    # The chain of the failed step leaves as a whole.
    self.assertNotIn("cmg_chain", hurt["cmg"])
    records = (self.root / "partial" / "cases.jsonl").read_text().splitlines()
    statuses = [json.loads(r)["status"] for r in records if '"hurt"' in r]
    self.assertEqual(sorted(statuses), ["failed", "ok", "ok"])

  def test_no_target_anywhere_is_an_error_not_a_score(self):
    empty = [
      {"id": i, "num_gt_objects": 0, "num_pred_all": 1, "num_matched": 0}
      for i in _step_ids()
    ]
    for name in ("good", "poor"):
      self._write(name, [sample_rows.cmg_row(i) for i in _step_ids()], empty)
    outcome = self._run()
    self.assertFalse(outcome.complete)
    self.assertIn("no valid case", outcome.text)

  def test_masks_must_agree(self):
    rows = [sample_rows.ssp_row(i, targets=2, matches=1) for i in _step_ids()]
    rows[0] = {**rows[0], "num_gt_objects": 0}
    self._write("odd", [sample_rows.cmg_row(i) for i in _step_ids()], rows)
    with self.assertRaisesRegex(InputError, "SSP mask"):
      self._run()

  @parameterized.named_parameters(
    ("repeated", lambda rows: rows + rows[:1], "row 7, id.*again"),
    (
      "trusted",
      lambda rows: [{**rows[0], "RelativeTopology_AllGT": 1.0}, *rows[1:]],
      "line 1, RelativeTopology_AllGT",
    ),
  )
  def test_bad_files(self, change, words):
    rows = [sample_rows.ssp_row(i) for i in _step_ids()]
    formats.write_rows(self.evidence / "good" / "ssp.jsonl", change(rows))
    with self.assertRaisesRegex(InputError, words):
      self._run()

  def test_nan_in_a_file_names_the_line(self):
    path = self.evidence / "good" / "cmg.jsonl"
    lines = path.read_text().splitlines()
    row = {**json.loads(lines[2]), "action_expected": math.nan}
    lines[2] = json.dumps(row)
    path.write_text("\n".join(lines))
    with self.assertRaisesRegex(InputError, "line 3, action_expected"):
      self._run()

  def test_no_evidence(self):
    empty = self.root / "empty"
    empty.mkdir()
    with self.assertRaisesRegex(InputError, "no evidence"):
      evidence_files.read_folder(empty)

  def test_an_axis_that_was_not_measured_gives_no_overall(self):
    self._write("camera", [sample_rows.cmg_row(i) for i in _step_ids()], [])
    outcome = self._run()
    self.assertFalse(outcome.complete)
    self.assertIn("ssp not measured", outcome.text)

  def test_the_collector_runs_again_after_reading(self):
    self.assertTrue(gc.isenabled())
    evidence_files.read_folder(self.evidence)
    self.assertTrue(gc.isenabled())
    with (
      self.assertRaises(ValueError),
      evidence_files.many_objects(),
    ):
      self.assertFalse(gc.isenabled())
      raise ValueError
    self.assertTrue(gc.isenabled())

  def test_a_split_batch_equals_single_systems(self):
    systems = evidence_files.read_folder(self.evidence)
    together, _ = totals.score_systems(systems, constants.PAPER)
    for system, entry in zip(systems, together, strict=True):
      alone, _ = totals.score_systems([system], constants.PAPER)
      self.assertEqual(alone[0].overall, entry.overall)


class DiagnosticsTest(absltest.TestCase):
  def _system(self, rows, ssp=()):
    parsed = [evidence.cmg_row(r, source="e", field="f") for r in rows]
    scenes = [evidence.ssp_row(r, source="e", field="f") for r in ssp]
    return evidence_files.SystemEvidence(
      "s",
      tuple(parsed),
      tuple(scenes),
      frozenset(),
      frozenset(),
      (),
      frozenset(),
      {},
    )

  def test_cycle_response_counts_the_frozen_return(self):
    case = sample_rows.case_id("cycle")
    system = self._system(
      [
        sample_rows.cmg_row(f"{case}__step1", expected=0.5, estimate=0.25),
        sample_rows.cmg_row(f"{case}__step2", expected=-0.5, estimate=-0.05),
      ]
    )
    found = diagnostics.cycle_response([system])
    self.assertEqual(found["steps"]["outbound"]["median_response_ratio"], 0.5)
    self.assertEqual(found["steps"]["return"]["near_static"], 1.0)
    self.assertEqual(found["outbound_moves_then_return_near_static"], 1.0)
    self.assertEqual(found["both_steps_near_static"], 0.0)
    self.assertEqual(found["systems_over_half_return_near_static"], 1)

  def test_magnitude_shares_sum_to_one(self):
    rows = [
      sample_rows.cmg_row(
        f"{sample_rows.case_id('atomic', f's{i}')}__step1",
        expected=0.2 + 0.1 * i,
        estimate=(0.2 + 0.1 * i) * ratio,
      )
      for i, ratio in enumerate([0.5, 1.0, 1.5, 0.5, 1.0, 1.5, 0.5, 1.0, 1.5])
    ]
    found = diagnostics.magnitude_bins([self._system(rows)])
    for entry in found["translation"]["bins"].values():
      self.assertEqual(entry["direction"], 1.0)
      for name in ("under", "near", "over"):
        self.assertAlmostEqual(entry[name], 1 / 3)

  def test_full_pose_errors_of_a_forward_step(self):
    row = sample_rows.cmg_row(f"{sample_rows.case_id('atomic')}__step1")
    row["diagnostics"] = {
      "Pose_ActionComponent": "tz_forward_m",
      "Pose_TransDirErrDeg": 10.0,
      "Pose_RotErrDeg": 2.0,
      **{f"Pose_T{a}Expected": 0.0 for a in "xyz"},
      "Pose_TxPredMetric": 0.3,
      "Pose_TyPredMetric": 0.4,
      "Pose_TzPredMetric": 1.2,
    }
    parsed = evidence.cmg_row(row, source="e", field="f")
    found = diagnostics.full_pose_errors(parsed)
    self.assertAlmostEqual(found["full_translation_m"], 1.3)
    self.assertAlmostEqual(found["off_axis_translation_m"], 0.5)
    self.assertEqual(found["so3_deg"], 2.0)
    self.assertNotIn("cross_axis_rotation_deg", found)

  def test_temporal_weights_the_worst_step(self):
    rows, ssp = [], []
    for protocol in ("atomic", "chain"):
      case = sample_rows.case_id(protocol)
      for m in range(1, constants.STEPS_OF_PROTOCOL[protocol] + 1):
        rows.append(sample_rows.cmg_row(f"{case}__step{m}", estimate=0.4))
        ssp.append(sample_rows.ssp_row(f"{case}__step{m}", matches=int(m != 3)))
    found = diagnostics.temporal(
      [self._system(rows, ssp)], (), constants.RELEASED
    )
    # A perfect step is worth (1 + 0.9 + 0.8) / 3 = 0.9, the lost one 0.
    self.assertAlmostEqual(found["mean"]["ssp_drop"], 0.3)
    self.assertAlmostEqual(found["published"]["ssp_drop"], 0.6)
    self.assertAlmostEqual(found["published"]["cmg_drop"], 0.0)


if __name__ == "__main__":
  absltest.main()
