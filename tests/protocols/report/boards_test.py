# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Leaderboards: what is copied, what is refused, what is missing."""

import pathlib

from absl.testing import absltest

from protocols.report import boards, published, sources, tables
from protocols.report.sources import Run, Study
from tests.protocols.report import examples


def _run(protocol: str, scores: dict, *studies: Study) -> Run:
  return Run(
    folder=pathlib.Path("run"),
    protocol=protocol,
    variant="released",
    scores=scores,
    settings={},
    entries=[],
    doses=[],
    diagnostics={},
    studies=studies,
  )


def _ego_entry(overall, **changes):
  coverage = {
    "expected": 4,
    "scored": 4,
    "degenerate": 0,
    "missing": 0,
    "failed": 0,
  }
  return {
    "overall": overall,
    "cmg": {"cmg": 0.5, "cmg_atomic": 0.6},
    "ssp": None,
    "coverage": coverage,
    "partial": False,
    "refused": "",
    "comparable_to_published": False,
    **changes,
  }


class PdiBoardTest(absltest.TestCase):
  def setUp(self) -> None:
    super().setUp()
    self.folder = pathlib.Path(self.create_tempdir().full_path)

  def _board(self, records, **options):
    examples.write_pdi_run(self.folder, records, **options)
    return boards.build(sources.load([self.folder])[0][0])

  def test_lower_pdi_ranks_first_with_its_interval(self):
    records = [
      examples.pdi_record(s, str(i), pdi=v + 0.01 * i)
      for s, v in (("worse", 0.4), ("better", 0.2))
      for i in range(3)
    ]
    board = self._board(records)
    self.assertEqual([r.system for r in board.rows], ["better", "worse"])
    self.assertEqual([r.rank for r in board.rows], [1, 2])
    self.assertAlmostEqual(board.rows[0].values["pdi_mean"], 0.21)
    low, high = board.rows[0].intervals["pdi_mean"]
    self.assertBetween(0.21, low, high)
    self.assertIn("95%", board.interval_note)

  def test_refused_totals_have_no_value_and_a_reason(self):
    records = [
      examples.pdi_record("a", "1", pdi=0.2),
      examples.pdi_record("a", "2", pdi=None, status="failed", reason="bad"),
    ]
    board = self._board(records, allow_partial=False)
    (row,) = board.rows
    self.assertIsNone(row.rank)
    self.assertIsNone(row.values["pdi_mean"])
    self.assertIn("1 of 2 scored", row.refused)
    self.assertEqual(row.statuses["failed"], 1)

  def test_partial_totals_say_so(self):
    records = [
      examples.pdi_record("a", "1", pdi=0.2),
      examples.pdi_record("a", "2", pdi=None, status="missing", reason="no"),
    ]
    (row,) = self._board(records).rows
    self.assertTrue(row.partial)
    self.assertEqual((row.scored, row.expected), (1, 2))

  def test_a_system_with_records_alone_is_shown_without_totals(self):
    self.folder.mkdir(exist_ok=True)
    line = examples.pdi_record("a", "1", pdi=0.2).to_json() + "\n"
    (self.folder / "records.jsonl").write_text(line)
    board = boards.build(sources.load([self.folder])[0][0])
    self.assertIn("no totals", board.rows[0].refused)


class OtherBoardsTest(absltest.TestCase):
  def test_egogeneval_higher_is_better_and_unmeasured_columns_are_absent(self):
    systems = {"low": _ego_entry(0.3), "high": _ego_entry(0.7)}
    board = boards.build(_run("egogeneval", {"systems": systems}))
    self.assertEqual([r.system for r in board.rows], ["high", "low"])
    keys = [c.key for c in board.columns]
    self.assertEqual(keys, ["overall", "cmg", "cmg_atomic"])

  def test_a_system_without_overall_comes_last_without_rank(self):
    systems = {
      "a": _ego_entry(None, refused="ssp not measured"),
      "b": _ego_entry(0.1),
    }
    board = boards.build(_run("egogeneval", {"systems": systems}))
    self.assertEqual([(r.system, r.rank) for r in board.rows][-1], ("a", None))

  def test_orbia_ranks_within_groups(self):
    state = {
      "coverage": "2 of 3 scored (1 failed)",
      "partial": True,
      "refused": "",
      "comparable_to_published": False,
    }
    rows = [
      {"model": "x", "group": "world", "Overall": 50.0, "T1": 40.0},
      {"model": "y", "group": "ti2v", "Overall": 60.0, "T1": 70.0},
      {"model": "z", "group": "world", "Overall": 70.0, "T1": None},
    ]
    scores = {"systems": dict.fromkeys("xyz", state), "rows": rows}
    board = boards.build(_run("orbia", scores))
    found = [(r.system, r.rank) for r in board.rows]
    self.assertEqual(found, [("y", 1), ("z", 1), ("x", 2)])
    self.assertEqual((board.rows[0].scored, board.rows[0].expected), (2, 3))

  def test_studies_add_intervals_and_ties(self):
    interval_rows = [
      {
        "system": "a",
        "score": score,
        "protocol": protocol,
        "low": 0.1,
        "high": 0.2,
      }
      for score, protocol in (("overall", ""), ("cmg", "atomic"))
    ]
    ranking_rows = [{"system": "a", "tie_group": 1, "p_flip": None}]
    declaration = {"study": "x", "options": {"tie_level": 0.05}}
    studies = [
      Study(pathlib.Path(kind), kind, {"study": declaration, "rows": rows})
      for kind, rows in (
        ("intervals", interval_rows),
        ("ranking", ranking_rows),
      )
    ]
    studies[0].result["study"]["replicates"] = 1000
    run = _run("egogeneval", {"systems": {"a": _ego_entry(0.15)}}, *studies)
    (row,) = boards.build(run).rows
    self.assertEqual(row.intervals["overall"], (0.1, 0.2))
    self.assertEqual(row.intervals["cmg_atomic"], (0.1, 0.2))
    self.assertEqual(row.tie_group, 1)

  def test_published_rows_stand_beside_the_released_variant_alone(self):
    for protocol in sources.PROTOCOLS:
      rows = published.rows(protocol, "released")
      self.assertNotEmpty(rows)
      self.assertTrue(all(row.reference for row in rows))
      self.assertEmpty(published.rows(protocol, "paper"))
    veo = next(
      r for r in published.rows("pdi", "released") if r.system == "Veo 3.1"
    )
    self.assertEqual(veo.values["pdi_mean"], 0.4521)
    self.assertEqual(veo.intervals["pdi_mean"], (0.2611, 0.7247))


class TablesTest(absltest.TestCase):
  def _board(self):
    systems = {
      "a_1 & {b}": _ego_entry(0.7),
      "<x>|y": _ego_entry(0.3, partial=True),
    }
    return boards.build(_run("egogeneval", {"systems": systems}))

  def test_latex_escapes_names_and_marks_the_best(self):
    text = tables.latex(self._board(), variant="released")
    self.assertIn(r"a\_1 \& \{b\} & \textbf{0.700}", text)
    self.assertIn(r"\textless{}x\textgreater{}\textbar{}y (partial)", text)
    self.assertIn(r"Overall $\uparrow$", text)
    self.assertIn("Not comparable with published tables.", text)

  def test_markdown_escapes_names_and_shows_coverage(self):
    text = tables.markdown(self._board(), variant="released")
    self.assertIn(r"| a\_1 & \{b\} | **0.700** |", text)
    self.assertIn(r"\<x\>\|y (partial)", text)
    self.assertIn("| 4/4 |", text)

  def test_a_missing_value_is_a_dash(self):
    systems = {"a": _ego_entry(None), "b": _ego_entry(0.3)}
    board = boards.build(_run("egogeneval", {"systems": systems}))
    self.assertIn("| a | -- |", tables.markdown(board, variant="paper"))


if __name__ == "__main__":
  absltest.main()
