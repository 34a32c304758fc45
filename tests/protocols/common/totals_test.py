# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Totals: only ok enters, order cannot matter, partial ones are refused."""

import math
import random

import numpy as np
from absl.testing import absltest, parameterized
from hypothesis import given, settings
from hypothesis import strategies as st

from protocols.common import records, totals


def _record(case: str, status: str, pdi: float | None) -> records.Record:
  reason = "" if status == "ok" else "because"
  return records.Record(
    "pdi", "paper", "m", case, status, reason=reason, values={"pdi": pdi}
  )


class TotalsTest(parameterized.TestCase):
  def test_coverage_counts_every_status(self):
    rows = [
      _record(str(i), status, 0.1)
      for i, status in enumerate(
        ("ok", "ok", "degenerate", "missing", "failed")
      )
    ]
    part = totals.coverage([str(i) for i in range(6)], rows)
    self.assertEqual(
      part, totals.Coverage(6, 2, degenerate=1, missing=1, failed=1, absent=1)
    )
    self.assertFalse(part.complete)
    self.assertIn("2 of 6 scored", part.describe())
    self.assertAlmostEqual(part.fraction, 1 / 3)

  def test_records_outside_the_manifest_do_not_count(self):
    part = totals.coverage(["a"], [_record("b", "ok", 0.1)])
    self.assertEqual((part.ok, part.absent), (0, 1))

  @parameterized.parameters(
    (2, 2, False, ""),
    (2, 1, True, ""),
    (2, 1, False, "--allow_partial"),
    (2, 0, True, "found 0 of 2"),
  )
  def test_partial_totals_are_refused(self, expected, ok, allow, text):
    part = totals.Coverage(expected, ok, 0, 0, 0, expected - ok)
    reason = totals.refuse_partial("m", part, allow_partial=allow, source="o")
    self.assertEqual(bool(reason), bool(text))
    self.assertIn(text, reason)

  def test_only_ok_values_in_sorted_order(self):
    rows = [
      _record("b", "ok", 2.0),
      _record("c", "failed", 9.0),
      _record("a", "ok", 1.0),
      _record("d", "ok", None),
    ]
    np.testing.assert_array_equal(totals.sorted_values(rows, "pdi"), [1, 2])

  @settings(max_examples=50, deadline=None, derandomize=True)
  @given(st.lists(st.floats(-1e12, 1e12), min_size=1, max_size=30))
  def test_order_does_not_change_a_digit(self, values):
    shuffled = list(values)
    random.Random(0).shuffle(shuffled)
    self.assertEqual(totals.mean(values), totals.mean(shuffled))
    self.assertEqual(
      totals.population_std(values), totals.population_std(shuffled)
    )
    self.assertAlmostEqual(
      totals.population_std(values),
      float(np.std(values)),
      delta=1e-6 * (1 + np.max(np.abs(values))),
    )

  def test_nothing_has_no_mean(self):
    self.assertIsNone(totals.mean([]))
    self.assertIsNone(totals.population_std([]))
    self.assertTrue(math.isnan(totals.mean([math.nan])))


if __name__ == "__main__":
  absltest.main()
