# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Reports name what a score hides and survive any name."""

import json
import pathlib

from absl.testing import absltest, parameterized

from protocols.common.records import MISSING, OK, Record
from protocols.pdi import report


def _record(**changes) -> Record:
  fields = {
    "protocol": "pdi",
    "variant": "paper",
    "system": "wan",
    "case_id": "curved_motion/1",
    "status": OK,
    "values": {"pdi": 0.25, "scale": 0.1, "traj": 0.2, "rigid": None},
    "coverage": {"lost_mask_fraction": 0.125},
    "notes": ("3 of 24 masks are lost",),
    "details": {"grade": "B", "strategy": 1, "object_query": "a car"},
    "provenance": {"backends": {"masks": {"backend": "grabcut_flow"}}},
  }
  return Record(**{**fields, **changes})


class ReportTest(parameterized.TestCase):
  def test_text_shows_values_coverage_backends_and_notes(self):
    text = report.text(_record())
    for part in (
      "FINAL PDI SCORE: 0.2500",
      "OVERALL GRADE:   B",
      "Scale Component (1/Z Law):      0.1000",
      "Rigidity Component (Stability): missing",
      "lost mask fraction: 0.1250",
      "masks backend: grabcut_flow",
      "comparable to published tables: no",
      "3 of 24 masks are lost",
      "Prompt:    a car",
      " - not run",
    ):
      self.assertIn(part, text)

  def test_a_case_without_score_says_why_and_shows_no_number(self):
    record = _record(
      status=MISSING,
      reason="geometry: none",
      values={"rigid_2d": 0.05, "pdi": None},
    )
    text = report.text(record)
    self.assertIn("missing (geometry: none)", text)
    self.assertIn("FINAL PDI SCORE: missing", text)
    self.assertIn("2D Rigidity (not in the PDI):   0.0500", text)

  @parameterized.parameters(
    "../../etc/passwd", "a/b", "a b", "<script>", "x" * 300, "", ".", "né"
  )
  def test_any_name_is_one_file_inside_the_folder(self, name):
    folder = pathlib.Path(self.create_tempdir().full_path)
    path = report.write(_record(system=name, case_id=name), folder)
    self.assertTrue(path.is_relative_to(folder / "clips"))
    self.assertLen(path.relative_to(folder).parts, 3)
    content = json.loads(path.with_suffix(".json").read_text())
    self.assertEqual(content["system"], name)

  def test_different_names_get_different_files(self):
    names = ["a/b", "a_b", "a b", "a.b", "A.b"]
    self.assertLen({report.safe_name(name) for name in names}, len(names))


if __name__ == "__main__":
  absltest.main()
