# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""The long table, the case table, and everything that they refuse."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import random

import jax
import jax.numpy as jnp
import numpy as np
import pyarrow as pa
from absl.testing import absltest, parameterized
from pyarrow import parquet

from perception.errors import InputError
from protocols.statistics import cases, config, plan, sampling, scope, table
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


class OwnCasesTest(absltest.TestCase):
  """Axes whose systems are averaged over their own cases."""

  def _table(self) -> table.StepTable:
    number = {"a": (1.0, 2.0, 6.0), "b": (4.0, None, 2.0)}
    rows = [
      table.Row(system, f"c{i}", "x", value)
      for system, values in number.items()
      for i, value in enumerate(values)
    ]
    rows += [table.Row(s, f"c{i}", "y", 1.0) for s in "ab" for i in range(3)]
    rows.append(table.Row("a", "c0", "only a", 1.0))
    return table.pivot(rows, source_name="x")

  def _study(self, **changes: object) -> config.StudyConfig:
    return config.parse(
      {
        "study": "intervals",
        "axes": [
          {"name": "x", "metrics": ["x"], "statistic": "mean"}
          | {"missing": "own_cases"},
          {"name": "y", "metrics": ["y"], "statistic": "mean"},
          {"name": "z", "metrics": ["only a"], "statistic": "mean"}
          | {"missing": "own_cases"},
        ],
        "scores": [
          {"name": "both", "of": ["x", "y"], "weights": [0.75, 0.25]},
          {"name": "some", "of": ["y", "z"], "needs": "any"},
          {"name": "every", "of": ["both", "z"]},
        ],
        "overall": {"every": 1.0},
        **changes,
      },
      source="s.json",
    )

  def test_each_system_has_its_own_mean(self) -> None:
    study = self._study(leave_out_unscored=True)
    study, (note,) = scope.scored_part(self._table(), study)
    self.assertEqual(
      note,
      "left out, because some system has no case for them: z, every, overall",
    )
    self.assertEqual(study.names, ["x", "y", "both", "some"])
    found = cases.from_steps(self._table(), study)
    planned = plan.build(found, study.resampling, keep_protocols=False)
    point = plan.point(planned)
    np.testing.assert_allclose(point[0, 0], [3.0, 3.0])
    both = sampling.panel(["x", "y"], "both", study)(point)
    np.testing.assert_allclose(both, [2.5, 2.5])
    some = sampling.panel(["x", "y"], "some", study)(point)
    np.testing.assert_allclose(some, [1.0, 1.0])
    # c1 three times holds nothing of b, and is left out of the replicates.
    only = np.asarray(
      planned.finish(
        (jnp.array([[0.0], [3.0], [0.0]]),),
        jax.tree.map(jnp.asarray, planned.tables),
      )
    )[0, 0, :, 0]
    self.assertEqual(only[0], 2.0)
    self.assertTrue(np.isnan(only[1]))

  def test_a_system_without_a_case_is_refused(self) -> None:
    with self.assertRaisesRegex(
      InputError, "axis z: found no scored case of b"
    ):
      cases.from_steps(self._table(), self._study())

  def test_nothing_left(self) -> None:
    study = self._study(leave_out_unscored=True)
    study = dataclasses.replace(study, axes=study.axes[2:])
    with self.assertRaisesRegex(InputError, "none that every system"):
      scope.scored_part(self._table(), study)


class ConfigTest(parameterized.TestCase):
  def test_base_gives_what_is_not_given(self) -> None:
    folder = pathlib.Path(self.create_tempdir().full_path)
    path = folder / "mine.json"
    path.write_text(
      '{"base": "orbia_ranking", "replicates": 7, "options": {"target": "T4"}}'
    )
    found = config.load(str(path))
    self.assertEqual(found.study, "ranking")
    self.assertEqual((found.replicates, found.options["target"]), (7, "T4"))
    self.assertEqual(found.names[-1], "T6")
    for base in ("nonsense", "../studies/orbia_ranking"):
      path.write_text(f'{{"base": "{base}"}}')
      with self.assertRaisesRegex(InputError, "name of one of our studies"):
        config.load(str(path))
    self.assertNotIn("_orbia_tree", config.builtin())

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
    ({"overall": {"b": 1.0}}, "scores among"),
    ({"scores": [{"name": "a", "of": ["b"]}]}, "earlier scores"),
    ({"scores": [{"name": "a", "of": []}]}, "some axis"),
    ({"scores": [{"name": "overall", "of": []}]}, "different names"),
    (
      {
        "axes": [{"name": "a", "metrics": ["m"]}],
        "scores": [{"name": "b", "of": ["a"], "weights": [1.0, 2.0]}],
      },
      "one for each part",
    ),
    (
      {
        "axes": [{"name": "a", "metrics": ["m"]}],
        "scores": [{"name": "b", "of": ["a"], "weights": ["1"]}],
      },
      "tuple",
    ),
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
