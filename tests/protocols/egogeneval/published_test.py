# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Published tables go through our scoring and aggregation unchanged.

Tolerances are the largest rounding deviations that the specification (6.7)
reports for each table.
"""

import json

import jax
import numpy as np
from absl.testing import absltest

from kernels import topology
from protocols.egogeneval import (
  aggregate,
  auxiliary,
  constants,
  evidence,
  scoring,
)
from tests.protocols.egogeneval import sample_rows
from tests.shared_files import shared

_PROTOCOLS = constants.PROTOCOLS


def _overall(cmg, ssp):
  document = aggregate.result_document(
    {"cmg": cmg}, {"ssp": ssp}, eligible=1, evaluated=1, provenance={}
  )
  return document["overall"]


def _macro(row, axis):
  cases = {sample_rows.case_id(p): row[f"{axis}_{p}"] for p in _PROTOCOLS}
  return aggregate.protocol_means(cases, source="table").overall


class PublishedTablesTest(absltest.TestCase):
  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    path = shared("published/egogeneval.json")
    cls.tables = json.loads(path.read_text(encoding="utf-8"))

  def test_table_2(self):
    rows = self.tables["table2_main_leaderboard"]["rows"]
    self.assertLen(rows, 19)
    for row in rows:
      with self.subTest(row["model"]):
        overall = _overall(row["cmg"], row["ssp"])
        self.assertAlmostEqual(overall, row["overall"], delta=0.00501)
        for axis in ("cmg", "ssp"):
          self.assertAlmostEqual(_macro(row, axis), row[axis], delta=0.00668)

  def test_table_7_from_steps(self):
    for row in self.tables["table7_cmg_decomposition"]["rows"]:
      for protocol in _PROTOCOLS:
        with self.subTest(row["model"], protocol=protocol):
          entry = row[protocol]
          found = self._cmg_of(protocol, entry["dir"], entry["gated"])
          self.assertAlmostEqual(found, entry["cmg"], delta=0.00051)

  def _cmg_of(self, protocol, direction, gated):
    """CMG of 1,000 cases with these mean direction and gated magnitude."""
    right = round(1000 * direction)
    error = (direction / gated - 1.0) * 0.5
    steps = []
    for index in range(1000):
      row = sample_rows.cmg_row(
        f"{sample_rows.case_id(protocol, f's{index}')}__step1",
        expected=0.5,
        estimate=0.5 + error if index < right else -0.5,
      )
      steps.append(evidence.cmg_row(row, source="table", field="row"))
    scores = scoring.score_cmg(steps, constants.RELEASED)
    summary = aggregate.cmg_summary(
      [step.key for step in steps], scores, require_all=False
    )
    self.assertAlmostEqual(summary["dir"], direction, delta=1e-9)
    self.assertAlmostEqual(summary["gated"], gated, delta=1e-9)
    return summary[f"cmg_{protocol}"]

  def test_table_8(self):
    for row in self.tables["table8_ssp_decomposition"]["rows"]:
      keys = [
        evidence.parse_id(
          f"{sample_rows.case_id(p)}__step1", source="t", field="f"
        )
        for p in _PROTOCOLS
      ]
      columns = [
        np.array([row[p][name] for p in _PROTOCOLS])
        for name in ("f1", "spatial", "integrity")
      ]
      empty = topology.Topology(*[np.zeros(3)] * 12)
      scores = scoring.SspScores(*columns, columns[0], columns[0], empty)
      found = aggregate.ssp_summary(keys, scores, (), constants.RELEASED)
      for protocol in _PROTOCOLS:
        with self.subTest(row["model"], protocol=protocol):
          self.assertAlmostEqual(
            found[f"ssp_{protocol}"], row[protocol]["ssp"], delta=0.00668
          )

  def test_tables_19_20_23(self):
    for name in (
      "table19_finetuning_probe",
      "table20_matched_endpoints",
      "table23_calibration_references",
    ):
      for row in self.tables[name]["rows"]:
        with self.subTest(name, row=row):
          found = _overall(row["cmg"], row["ssp"])
          self.assertAlmostEqual(found, row["overall"], delta=0.00051)

  def test_repository_table(self):
    rows = self.tables["repository_leaderboard_three_decimals"]["rows"]
    overall = {}
    for row in rows:
      overall[row["model"]] = _overall(row["cmg"], row["ssp"])
      self.assertAlmostEqual(
        overall[row["model"]], row["overall"], delta=0.00051
      )
    ranked = auxiliary.rank(overall, ())
    self.assertLen(ranked, len(rows))


class AuxiliaryTest(absltest.TestCase):
  def test_min_max_over_the_panel(self):
    panel = {
      "a": {"psnr": 10.0, "lpips": 0.2},
      "b": {"psnr": 20.0, "lpips": 0.6},
      "c": {"psnr": 15.0, "lpips": 0.4},
    }
    found = auxiliary.combine(
      panel, auxiliary.REFERENCE_SIMILARITY, source="panel"
    )
    # a: (0 + 1) / 2, b: (1 + 0) / 2, c: (0.5 + 0.5) / 2.
    self.assertEqual(found, {"a": 0.5, "b": 0.5, "c": 0.5})

  def test_ties_keep_the_alphabet_and_unranked_rows_stay_out(self):
    scores = {"b": 0.5, "a": 0.5, "oracle": 0.9}
    self.assertEqual(auxiliary.rank(scores, ("oracle",)), ["a", "b"])


class CompilationTest(absltest.TestCase):
  def test_row_counts_share_one_trace_per_power_of_two(self):
    before = scoring._cmg_batch._cache_size()
    rows = [
      evidence.cmg_row(
        sample_rows.cmg_row(f"{sample_rows.case_id('atomic', f's{i}')}__step1"),
        source="t",
        field="f",
      )
      for i in range(16)
    ]
    for count in (1, 5, 16):
      scores = scoring.score_cmg(rows[:count], constants.RELEASED)
      self.assertLen(scores.score, count)
    self.assertLessEqual(scoring._cmg_batch._cache_size() - before, 1)
    self.assertFalse(jax.config.jax_enable_x64)


if __name__ == "__main__":
  absltest.main()
