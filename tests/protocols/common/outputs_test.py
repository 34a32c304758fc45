# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Output files: whole or absent, stable bytes, clear errors."""

import csv
import pathlib
import stat

from absl.testing import absltest

from perception.errors import InputError
from protocols.common import outputs


class OutputsTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    self.folder = pathlib.Path(self.create_tempdir().full_path)

  def test_json_round_trip_with_special_numbers_and_stable_bytes(self):
    path = self.folder / "deep" / "scores.json"
    outputs.write_json(path, {"b": float("nan"), "a": [1.5, None]})
    first = path.read_bytes()
    self.assertEqual(outputs.read_json(path), {"a": [1.5, None], "b": "nan"})
    outputs.write_json(path, {"a": [1.5, None], "b": float("nan")})
    self.assertEqual(path.read_bytes(), first)
    self.assertLen(list(path.parent.iterdir()), 1)

  def test_csv_keeps_digits_and_defuses_formulas(self):
    path = self.folder / "scores.csv"
    rows = [{"system": "=1+1", "pdi": 0.1 + 0.2}, {"system": 'a,"b"'}]
    outputs.write_csv(path, ["system", "pdi"], rows)
    with open(path, newline="", encoding="utf-8") as file:
      read = list(csv.reader(file))
    self.assertEqual(read[0], ["system", "pdi"])
    self.assertEqual(read[1], ["'=1+1", "0.30000000000000004"])
    self.assertEqual(read[2], ['a,"b"', ""])

  def test_a_target_that_is_a_folder_is_one_clear_line(self):
    with self.assertRaisesRegex(InputError, "file: found"):
      outputs.write_atomic(self.folder, "text")

  def test_a_parent_that_is_a_file_is_one_clear_line(self):
    (self.folder / "file").write_text("x")
    with self.assertRaisesRegex(InputError, "file: found"):
      outputs.write_atomic(self.folder / "file" / "scores.json", "text")

  def test_unreadable_and_wrong_json_are_one_clear_line(self):
    for name, content in (("a", "{"), ("b", "[]"), ("c", "")):
      (self.folder / name).write_text(content)
      with self.assertRaisesRegex(InputError, "JSON object"):
        outputs.read_json(self.folder / name)
    with self.assertRaises(InputError):
      outputs.read_json(self.folder / "absent")

  def test_environment_names_versions_and_devices(self):
    info = outputs.environment()
    self.assertIsNotNone(info["packages"]["jax"])
    self.assertNotEmpty(info["devices"])
    self.assertTrue(stat.S_ISDIR(self.folder.stat().st_mode))


if __name__ == "__main__":
  absltest.main()
