# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Leaderboard, grouped tables, correlations, human preference."""

import random

from absl.testing import absltest

from protocols.common.records import FAILED, Record
from protocols.orbia import aggregate, tiers
from protocols.orbia.constants import PAPER, RELEASED
from protocols.orbia.normalisation import CONTROL, LEAVES, QUALITY


def _record(system, case, *, level, horizon="short", template="arc_return"):
  """A case whose every component scores `level`."""
  values = {}
  for name, end in LEAVES.items():
    share = level / 100 if end.higher_is_better else 1 - level / 100
    values[name] = end.lo + share * (end.hi - end.lo)
  values |= {f"control_{name}": level for name in CONTROL}
  values |= {f"quality_{name}": level for name in QUALITY}
  values |= {"temporal": level, "same_pairs": 1.0, "different_pairs": 0.0}
  values |= {f"T{k}": level + k * (case % 3) for k in range(1, 7)}
  return Record(
    protocol="orbia",
    variant="paper",
    system=system,
    case_id=f"case_{case}",
    status="ok",
    values=values,
    groups={
      "template": template,
      "source": "Sekai",
      "horizon": horizon,
      "group": "world",
      "control_profile": "pose_and_action",
    },
  )


def _board(records, expected, *, partial=False):
  return aggregate.leaderboard(
    expected, records, allow_partial=partial, source="run", c=PAPER
  )


class AggregateTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    self.records = [
      _record(system, case, level=level + case, horizon=horizon)
      for system, level in (("good", 70.0), ("bad", 40.0))
      for case, horizon in enumerate(["short", "short", "long"])
    ]
    self.expected = {
      s: [f"case_{k}" for k in range(3)] for s in ("good", "bad")
    }

  def test_leaderboard_by_hand(self):
    rows = _board(self.records, self.expected)["rows"]
    self.assertEqual([row["model"] for row in rows], ["good", "bad"])
    self.assertEqual([row["Overall_rank"] for row in rows], [1, 2])
    for tier in ("T1", "T2", "T3", "T4", "T5"):
      self.assertAlmostEqual(rows[0][tier], 71.0, places=9)
    # 0.3 * mean(70, 71) + 0.7 * 72.
    self.assertAlmostEqual(rows[0]["T6"], 71.55, places=9)
    self.assertAlmostEqual(
      rows[0]["Overall"], 0.8 * 71.0 + 0.2 * 71.55, places=9
    )

  def test_order_of_arrival_changes_no_digit(self):
    expected = _board(self.records, self.expected)
    random.Random(0).shuffle(self.records)
    self.assertEqual(_board(self.records, self.expected), expected)

  def test_incomplete_models_are_refused(self):
    self.records[0] = Record(
      protocol="orbia",
      variant="paper",
      system="good",
      case_id="case_0",
      status=FAILED,
      reason="no video",
    )
    found = _board(self.records, self.expected)
    self.assertEqual([row["model"] for row in found["rows"]], ["bad"])
    self.assertIn("2 of 3 scored", found["systems"]["good"]["refused"])
    partial = _board(self.records, self.expected, partial=True)
    self.assertTrue(partial["systems"]["good"]["partial"])
    self.assertEqual(partial["rows"][0]["cases"], 2)

  def test_one_horizon_has_no_t6_and_no_overall(self):
    short = [r for r in self.records if r.groups["horizon"] == "short"]
    expected = {s: ["case_0", "case_1"] for s in ("good", "bad")}
    row = _board(short, expected)["rows"][0]
    self.assertIsNone(row["T6"])
    self.assertIsNone(row["Overall"])
    table = aggregate.group_table(short, c=PAPER)
    horizon = [r for r in table if r["grouping"] == "horizon"]
    self.assertAlmostEqual(horizon[1]["T6"], 70.5, places=9)
    names = {(r["grouping"], r["name"]) for r in table}
    self.assertIn(("source_group", "public video"), names)
    self.assertIn(("template", "arc_return"), names)

  def test_correlations(self):
    records = [
      _record(f"m{k}", case, level=float(10 * k + case))
      for k in range(4)
      for case in range(3)
    ]
    rows = aggregate.tier_correlations(records, c=RELEASED)
    row = next(r for r in rows if (r["first"], r["second"]) == ("T2", "T5"))
    self.assertEqual((row["model_level"], row["models"]), (1.0, 4))
    self.assertAlmostEqual(row["within_model"], 1.0)
    few = aggregate.tier_correlations(records[:6], c=RELEASED)[0]
    self.assertIsNone(few["model_level"])

  def test_human_preference_by_hand(self):
    rankings = [{"a": 1, "b": 2, "c": 2}, {"a": 2, "b": 1}]
    found = aggregate.human_preference(rankings)
    # a: 1, 1, 0; b: 0, 0.5, 1; c: 0, 0.5.
    self.assertAlmostEqual(found["a"], 2 / 3)
    self.assertAlmostEqual(found["b"], 0.5)
    self.assertAlmostEqual(found["c"], 0.25)
    scores = {"a": 90.0, "b": 60.0, "c": 30.0}
    self.assertEqual(aggregate.human_alignment(found, scores), 1.0)

  def test_t1_in_both_variants(self):
    leaves = dict.fromkeys(LEAVES)
    cases = [
      tiers.CaseScores(leaves, control, {}, None, False, 0, 0)
      for control in (
        {"translation": 0.0, "rotation": 60.0},
        {"translation": None, "rotation": 100.0},
      )
    ]
    profile = "pose_and_action"
    released = tiers.model_scores(cases, profile=profile, c=RELEASED).tiers
    paper = tiers.model_scores(cases, profile=profile, c=PAPER).tiers
    self.assertEqual(released["T1"], 40.0)  # mean of 0 and 80
    self.assertEqual(paper["T1"], 65.0)  # mean of 30 and 100


if __name__ == "__main__":
  absltest.main()
