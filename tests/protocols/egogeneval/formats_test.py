# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Files: manifest rules, instruction texts, labels, predictions, results."""

import copy
import json
import pathlib

import cv2
import numpy as np
from absl.testing import absltest, parameterized

from perception.errors import InputError
from protocols.egogeneval import (
  formats,
  instructions,
  label_bank,
  manifest,
  predictions,
)
from tests.protocols.egogeneval import sample_rows
from tests.shared_files import shared


class ManifestTest(parameterized.TestCase):
  def _parse(self, row):
    return manifest.parse(row, source="m.jsonl", field="line 7")

  def test_a_row_of_every_protocol_passes(self):
    for protocol in ("atomic", "chain", "cycle"):
      case = self._parse(sample_rows.manifest_row(protocol))
      self.assertEqual(case.protocol, protocol)
      self.assertEqual(
        manifest.expected_texts(case), [step.text for step in case.steps]
      )

  def _changed(self, protocol, path, value):
    row = sample_rows.manifest_row(protocol)
    place = row
    for key in path[:-1]:
      place = place[key]
    place[path[-1]] = value
    return row

  @parameterized.named_parameters(
    ("unknown_field", "atomic", ["surprise"], 1, "surprise"),
    ("dataset", "atomic", ["dataset"], "kitti", "dataset"),
    (
      "id",
      "atomic",
      ["sample_id"],
      "a__b__atomic__x__1_2__single1",
      "sample_id",
    ),
    ("k", "atomic", ["num_context_images"], 2, "num_context_images"),
    (
      "role",
      "atomic",
      ["input_images", 0, "role"],
      "auxiliary_context",
      "role",
    ),
    ("protocol", "chain", ["instruction_type"], "atomic", "instruction_type"),
    ("step", "chain", ["instructions", 1, "step"], 3, "step"),
    (
      "mode",
      "cycle",
      ["evaluation_protocol", "call_mode"],
      "single_step",
      "mode",
    ),
    ("return", "cycle", ["target_images", 1, "image_path"], "z", "cycle"),
    ("text", "atomic", ["instructions", 0, "text"], "", "text"),
  )
  def test_a_violation_names_line_and_field(self, protocol, path, value, word):
    with self.assertRaisesRegex(InputError, f"m.jsonl: line 7.*{word}"):
      self._parse(self._changed(protocol, path, value))

  def test_missing_field_is_named(self):
    row = sample_rows.manifest_row("atomic")
    del row["scene_id"]
    with self.assertRaisesRegex(InputError, "line 7.*scene_id"):
      self._parse(row)

  def test_an_auxiliary_may_not_be_a_target(self):
    row = sample_rows.manifest_row("chain", inputs=2)
    row["input_images"][1]["image_path"] = row["target_images"][1]["image_path"]
    with self.assertRaisesRegex(InputError, "input_images that are targets"):
      self._parse(row)

  def test_repeated_ids_are_refused(self):
    path = pathlib.Path(self.create_tempfile("m.jsonl").full_path)
    formats.write_rows(path, [sample_rows.manifest_row("atomic")] * 2)
    with self.assertRaisesRegex(InputError, "line 2.*unique"):
      manifest.read(path)

  def test_generation_input_hides_targets_and_poses(self):
    row = sample_rows.manifest_row("cycle")
    paths = {i["image_path"]: "/local.png" for i in row["input_images"]}
    seen = manifest.generation_input(row, paths)
    self.assertNotIn("target_images", seen)
    self.assertNotIn("pose_metadata", seen)
    self.assertEqual(seen["input_images"][0]["image_path"], "/local.png")

  def test_sample_rows_are_reproduced(self):
    path = shared("samples/egogeneval_manifest_sample.jsonl")
    content = manifest.read(path)
    lines = path.read_text(encoding="utf-8").splitlines()
    for case, line in zip(content.cases, lines, strict=True):
      with self.subTest(case.case_id):
        self.assertEqual(
          manifest.expected_texts(case), [step.text for step in case.steps]
        )
        self.assertEqual(formats.dump(case.row), line)
        for step, pose in zip(
          case.steps, manifest.stored_poses(case), strict=True
        ):
          action = instructions.BY_ATOM[pose["action_atom"]]
          self.assertEqual(
            dict(step.meta),
            {
              "dominant_action": action.dominant_action,
              "action_family": action.family,
              "atomic_subtype": action.subtype,
            },
          )


class InstructionTest(parameterized.TestCase):
  @parameterized.parameters(
    ("A1_forward_backward", 1.2, "forward by about 1.20 meters"),
    ("A1_forward_backward", -0.547, "backward by about 0.55 meters"),
    ("A2_lateral_strafe", 0.3, "to the right by about 0.30 meters"),
    ("A2_lateral_strafe", -0.3, "to the left by about 0.30 meters"),
    ("A3_yaw_rotation", 8.06, "to the right by about 8.1 degrees"),
    ("A3_yaw_rotation", -20.0, "to the left by about 20.0 degrees"),
    ("A4_pitch_rotation", 7.0, "Tilt the camera mainly upward by about 7.0"),
    ("A4_pitch_rotation", -7.0, "Tilt the camera mainly downward by about 7.0"),
  )
  def test_clause(self, subtype, value, part):
    text = instructions.text(subtype, value, inputs=1)
    self.assertIn(part, text)
    self.assertTrue(text.endswith("and perspective consistency."))

  def test_sixteen_texts(self):
    texts = {
      instructions.text(a.subtype, sign, inputs=k)
      for a in instructions.ACTIONS
      for sign in (1.0, -1.0)
      for k in (1, 2)
    }
    self.assertLen(texts, 16)
    multi = instructions.text("A3_yaw_rotation", 10.0, inputs=3)
    self.assertTrue(multi.startswith("Image 1 is the current view"))
    self.assertTrue(multi.endswith("Do not simply copy any input image."))


class LabelBankTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    self.case = manifest.parse(
      sample_rows.manifest_row("chain"), source="m", field="line 1"
    )
    self.path = pathlib.Path(self.create_tempfile("labels.jsonl").full_path)

  def _read(self, *rows):
    formats.write_rows(self.path, rows)
    return label_bank.read(self.path, [self.case])

  def test_complete_bank(self):
    step = {"object_labels": ["chair"], "detector_prompt_labels": []}
    bank = self._read(
      {"sample_id": self.case.case_id, "target_labels": [step] * 3}
    )
    self.assertLen(bank[self.case.case_id], 3)

  def test_bank_without_the_case(self):
    with self.assertRaisesRegex(InputError, f"no row for {self.case.case_id}"):
      self._read({"sample_id": "other", "target_labels": [{}]})

  def test_wrong_count_and_empty_lists(self):
    step = {"object_labels": ["chair"]}
    with self.assertRaisesRegex(InputError, "2 entries"):
      self._read({"sample_id": self.case.case_id, "target_labels": [step] * 2})
    with self.assertRaisesRegex(InputError, r"line 1, target_labels\[2\]"):
      self._read(
        {"sample_id": self.case.case_id, "target_labels": [step, step, {}]}
      )


class PredictionTest(parameterized.TestCase):
  def setUp(self):
    super().setUp()
    self.folder = pathlib.Path(self.create_tempdir().full_path)
    rows = [
      sample_rows.manifest_row("atomic"),
      sample_rows.manifest_row("cycle"),
    ]
    formats.write_rows(self.folder / "m.jsonl", rows)
    self.manifest = manifest.read(self.folder / "m.jsonl")
    self.out = self.folder / "predictions"
    self.rows = []
    for case in self.manifest.cases:
      for step in case.steps:
        name = f"{case.case_id}/step{step.number}.png"
        path = self.out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        cv2.imwrite(str(path), np.full((4, 6, 3), step.number, np.uint8))
        self.rows.append(
          predictions.prediction_row(
            case,
            step.number,
            manifest_sha256=self.manifest.sha256,
            model_id="demo",
            model_type="image",
            output_path=name,
            output_sha256=formats.sha256_of_file(path),
            generation={},
          )
        )

  def _read(self, **options):
    path = self.out / "predictions.jsonl"
    formats.write_rows(path, self.rows)
    return predictions.read(path, self.manifest, **options)

  def test_complete_file(self):
    name, outputs = self._read()
    self.assertEqual(name, "demo")
    self.assertEqual([o.step for o in outputs], [1, 1, 2])
    second = self.rows[2]["input_ids"][0]
    self.assertTrue(second.endswith(":generated:step1"))

  @parameterized.named_parameters(
    ("outside", "output_path", "../m.jsonl", "inside the prediction folder"),
    ("absolute", "output_path", "/etc/hosts", "inside the prediction folder"),
    ("hash", "output_sha256", "0" * 64, "output_sha256"),
    ("manifest", "manifest_sha256", "0" * 64, "manifest_sha256"),
    ("prompt", "prompt_sha256", "0" * 64, "prompt_sha256"),
    ("interface", "interface_type", "multi-image-editing", "interface_type"),
    ("case", "case_id", "x", "case_id"),
    ("step", "step_id", 9, "step_id"),
    ("inputs", "input_ids", ["x"], "input_ids"),
    ("unknown", "surprise", 1, "surprise"),
  )
  def test_a_bad_row_names_line_and_field(self, field, value, words):
    self.rows[1][field] = value
    with self.assertRaisesRegex(InputError, f"line 2.*{words}"):
      self._read()

  def test_missing_repeated_and_unordered_steps(self):
    kept = self.rows[1]
    del self.rows[1]
    with self.assertRaisesRegex(InputError, "1 steps missing"):
      self._read()
    _, outputs = self._read(allow_partial=True)
    self.assertLen(outputs, 2)
    self.rows.insert(0, kept)
    with self.assertRaisesRegex(InputError, "row order"):
      self._read()
    self.rows = [kept, kept]
    with self.assertRaisesRegex(InputError, "line 2.*each once"):
      self._read(allow_partial=True)

  def test_undecodable_image(self):
    path = self.out / self.rows[0]["output_path"]
    path.write_bytes(b"no image")
    self.rows[0]["output_sha256"] = formats.sha256_of_file(path)
    with self.assertRaisesRegex(InputError, "step1.png"):
      self._read()

  def test_two_models_in_one_file(self):
    self.rows[2]["model_id"] = "other"
    with self.assertRaisesRegex(InputError, "one model per file"):
      self._read()

  def test_discovery_finds_every_layout(self):
    folder = self.folder / "generated"
    atomic, cycle = self.manifest.cases
    image = np.zeros((4, 6, 3), np.uint8)
    frames = folder / cycle.case_id / "step_02"
    frames.mkdir(parents=True)
    cv2.imwrite(str(folder / f"{atomic.case_id}.png"), image)
    cv2.imwrite(str(folder / f"{cycle.case_id}_step1.png"), image)
    cv2.imwrite(str(frames / "0.png"), image)
    cv2.imwrite(str(frames / "1.png"), image + 9)
    found = predictions.discover(folder, self.manifest.cases)
    self.assertEqual([o.path.name for o in found][2], "step_02")
    self.assertEqual(int(predictions.load_image(found[2].path).max()), 9)
    cv2.imwrite(str(folder / f"{cycle.case_id}_step_1.png"), image)
    with self.assertRaisesRegex(InputError, "2 outputs"):
      predictions.discover(folder, self.manifest.cases)
    (folder / f"{atomic.case_id}.png").unlink()
    with self.assertRaisesRegex(InputError, "0 outputs"):
      predictions.discover(folder, self.manifest.cases)


class ResultFormatTest(absltest.TestCase):
  def test_example_of_the_specification(self):
    document = json.loads(
      '{"result_namespace":"evaluator-v0.1","benchmark_version":"0.1",'
      '"evaluator_version":"0.1","code_commit":"abc","eligible":2360,'
      '"evaluated":2360,"missing":0,"failed":0,"cmg":0.5,"ssp":0.4,'
      '"overall":0.45}'
    )
    document["manifest_sha256"] = "a" * 64
    formats.check(document, formats.RESULT, source="r", field="document")
    wrong = copy.deepcopy(document)
    wrong["cmg"] = 1.2
    with self.assertRaisesRegex(InputError, "cmg"):
      formats.check(wrong, formats.RESULT, source="r", field="document")


if __name__ == "__main__":
  absltest.main()
