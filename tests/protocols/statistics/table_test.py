# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""The long table, the case table, and everything that they refuse."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import random

import numpy as np
import pyarrow as pa
from absl.testing import absltest, parameterized
from pyarrow import parquet

from perception.errors import InputError
from protocols.statistics import cases, config, table
from tests.protocols.statistics import small_study


def _write(path: pathlib.Path, rows: list[table.Row]) -> pathlib.Path:
  path.write_text(
    "".join(json.dumps(dataclasses.asdict(row)) + "\n" for row in rows)
  )
  return path


class TableTest(parameterized.TestCase):
  def setUp(self) -> None:
    super().setUp()
    self.folder = pathlib.Path(self.create_tempdir().full_path)

  def test_jsonl_and_parquet_give_the_same_table(self) -> None:
    rows = small_study.rows()
    text = _write(self.folder / "t.jsonl", rows)
    columns = {
      name: [getattr(row, name) for row in rows] for name in table.COLUMNS
    }
    parquet.write_table(pa.table(columns), self.folder / "t.parquet")
    a = table.read([text])
    b = table.read([self.folder / "t.parquet"])
    self.assertEqual(a.cases, b.cases)
    for metric, values in a.values.items():
      np.testing.assert_array_equal(values, b.values[metric])

  def test_order_of_rows_does_not_matter(self) -> None:
    rows = small_study.rows()
    mixed = list(rows)
    random.Random(0).shuffle(mixed)
    a = table.pivot(rows, source_name="x")
    b = table.pivot(mixed, source_name="x")
    np.testing.assert_array_equal(a.values["f1"], b.values["f1"])
    np.testing.assert_array_equal(a.case_of_step, b.case_of_step)

  def test_case_values_by_hand(self) -> None:
    rows = [
      table.Row("a", "x", "f1", 0.9, step=1),
      table.Row("a", "x", "f1", 0.3, step=2),
      table.Row("a", "x", "spatial", 0.5, step=1),
      table.Row("a", "x", "spatial", 0.7, step=2),
    ]
    found = cases.from_steps(
      table.pivot(rows, source_name="x"),
      small_study.study(axes=small_study.AXES[1:], overall={}),
    )
    # f1: (0.6 + 0.3) / 2 = 0.45; spatial: (0.6 + 0.5) / 2 = 0.55.
    np.testing.assert_allclose(found.values, [[[0.5]]])

  def test_masks_are_common(self) -> None:
    found = small_study.case_table()
    masked = [c.endswith(("00", "05", "10", "15", "20")) for c in found.cases]
    np.testing.assert_array_equal(found.masks[1], ~np.array(masked))
    self.assertTrue(found.masks[0].all())

  @parameterized.parameters(
    ({"value": float("nan")}, "value: found nan"),
    ({"value": "1"}, "value: found '1'"),
    ({"colour": 1}, "colour"),
    ({"system": ""}, "system"),
    ({"step": 1.5}, "step"),
  )
  def test_bad_rows(self, change: dict[str, object], message: str) -> None:
    row = {"system": "a", "case": "x", "metric": "m", "value": 1.0, **change}
    path = self.folder / "bad.jsonl"
    path.write_text(json.dumps(row) + "\n")
    with self.assertRaisesRegex(InputError, message):
      table.read([path])

  def test_other_files(self) -> None:
    with self.assertRaisesRegex(InputError, "jsonl or .parquet"):
      table.read([self.folder / "t.csv"])
    (self.folder / "e.jsonl").write_text("")
    with self.assertRaisesRegex(InputError, "found none"):
      table.read([self.folder / "e.jsonl"])

  def test_duplicates_are_refused(self) -> None:
    rows = small_study.rows()
    with self.assertRaisesRegex(InputError, "system a, case case00.*twice"):
      table.pivot([*rows, rows[0]], source_name="x")

  def test_groups_must_agree(self) -> None:
    rows = small_study.rows()
    other = dataclasses.replace(rows[0], system="d", source="elsewhere")
    with self.assertRaisesRegex(InputError, "one set of scene"):
      table.pivot([*rows, other], source_name="x")

  def _lacking(self) -> table.StepTable:
    rows = [
      r
      for r in small_study.rows()
      if not (r.system == "b" and r.case == "case04")
    ]
    return table.pivot(rows, source_name="x")

  def test_different_case_sets_are_refused(self) -> None:
    with self.assertRaisesRegex(
      InputError, "case04 step 1: a has it, b does not.*intersect"
    ):
      cases.from_steps(self._lacking(), small_study.study())

  def test_intersection_is_stated(self) -> None:
    found = cases.from_steps(self._lacking(), small_study.study(intersect=True))
    self.assertNotIn("case04", found.cases)
    self.assertLen(found.cases, 23)
    self.assertIn("1 of 24 cases left out", found.notes[0])

  def test_nothing_in_common(self) -> None:
    rows = [table.Row("a", "x", "cmg", 1.0), table.Row("b", "y", "cmg", 1.0)]
    with self.assertRaisesRegex(InputError, "none that all systems share"):
      cases.from_steps(
        table.pivot(rows, source_name="x"),
        small_study.study(
          axes=small_study.AXES[:1], overall={}, intersect=True
        ),
      )

  @parameterized.parameters(
    ({"systems": ("a", "z")}, "no system 'z'"),
    ({"protocols": ("spin",)}, "no case of spin"),
    ({"axes": (config.Axis("x", ("psnr",)),)}, "no metric 'psnr'"),
  )
  def test_unknown_names(self, fields: dict[str, object], text: str) -> None:
    with self.assertRaisesRegex(InputError, text):
      cases.from_steps(small_study.steps(), small_study.study(**fields))


class ConfigTest(parameterized.TestCase):
  def test_every_built_in_study_parses(self) -> None:
    names = config.builtin()
    self.assertGreater(len(names), 10)
    for name in names:
      self.assertTrue(config.load(name).axes, name)

  @parameterized.parameters(
    ({"sed": 1}, "sed"),
    ({"replicates": 0}, "at least 1"),
    ({"replicates": True}, "int"),
    ({"level": 1.0}, "between 0 and 1"),
    ({"interval": "normal"}, "percentile, basic, bca"),
    ({"resampling": {"unit": "step"}}, "case, scene"),
    ({"axes": [{"name": "a", "metrics": []}]}, "some metric"),
    ({"axes": [{"name": "a", "metrics": "cmg"}]}, "tuple"),
    ({"axes": [{"name": "a"}]}, "required"),
    ({"overall": {"b": 1.0}}, "axes among"),
    (
      {"axes": [{"name": "a", "metrics": ["m"], "statistic": "ratio"}]},
      "denominator",
    ),
  )
  def test_bad_studies(self, change: dict[str, object], text: str) -> None:
    with self.assertRaisesRegex(InputError, text):
      config.parse({"study": "ranking", **change}, source="s.json")

  def test_unknown_study(self) -> None:
    with self.assertRaisesRegex(InputError, "egogeneval_ranking"):
      config.load("nonsense")


if __name__ == "__main__":
  absltest.main()
