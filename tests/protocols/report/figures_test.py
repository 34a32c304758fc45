# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Figures of every protocol from small data; what cannot be drawn is absent."""

import json
import pathlib

from absl.testing import absltest

from protocols.common.records import Record
from protocols.report import (
  boards,
  figures_egogeneval,
  figures_orbia,
  figures_pdi,
  figures_studies,
  sources,
)
from protocols.report.sources import Study
from tests.protocols.report import examples

_TIERS = tuple(f"T{i}" for i in range(1, 7))


def _orbia_run(folder: pathlib.Path):
  """Two models, two templates, curves over three windows with a gap."""
  folder.mkdir(exist_ok=True)
  lines = []
  for k, model in enumerate(("m", "n")):
    for case in range(2):
      details = {
        "tiers": {
          "T6": {
            "status": "ok",
            "reason": "",
            "values": {},
            "details": {
              "bounds": [[0, 5], [5, 10], [10, 15]],
              "curves": {"depth_short": [80.0 + 10 * case, None, 60.0 - k]},
            },
          }
        }
      }
      record = Record(
        protocol="orbia",
        variant="paper",
        system=model,
        case_id=str(case),
        status="ok",
        values=dict.fromkeys(_TIERS, 50.0),
        details=details,
      )
      lines.append(record.to_json() + "\n")
  (folder / "records.jsonl").write_text("".join(lines))
  state = {
    "coverage": "2 of 2 scored",
    "partial": False,
    "refused": "",
    "comparable_to_published": False,
  }
  rows = [
    {
      "model": model,
      "group": "world",
      "Overall": 50.0 + k,
      **dict.fromkeys(_TIERS, 50.0),
      "T2": None,
    }
    for k, model in enumerate(("m", "n"))
  ]
  groups = [
    {"model": m, "grouping": "template", "name": n, "T1": 40.0, "T5": None}
    for m in ("m", "n")
    for n in ("loop", "line")
  ]
  pairs = [
    {
      "group": "world",
      "horizon": "short",
      "first": first,
      "second": second,
      "model_level": None,
      "within_model": -0.5,
    }
    for i, first in enumerate(_TIERS)
    for second in _TIERS[i + 1 :]
  ]
  scores = {
    "protocol": "orbia-1.0",
    "variant": "paper",
    "systems": {"m": state, "n": state},
    "rows": rows,
    "groups": groups,
    "correlations": pairs,
  }
  (folder / "scores.json").write_text(json.dumps(scores))
  return sources.load([folder])[0][0]


class FiguresTest(absltest.TestCase):
  def setUp(self) -> None:
    super().setUp()
    self.root = pathlib.Path(self.create_tempdir().full_path)

  def test_orbia(self):
    run = _orbia_run(self.root / "run")
    found = {
      picture.name: picture
      for picture in figures_orbia.draw(run, boards.build(run), self.root)
    }
    self.assertEqual(
      set(found),
      {
        "orbia_profile",
        "orbia_template",
        "orbia_correlations_0",
        "orbia_windows",
      },
    )
    windows = found["orbia_windows"].svg
    # Mean of the two videos, 80 and 90; a window without values says none.
    self.assertIn(">85<", windows)
    self.assertIn(">none<", windows)
    self.assertIn(">5-10<", windows)
    self.assertIn(">-0.50<", found["orbia_correlations_0"].svg)
    self.assertNotIn(">T5<", found["orbia_template"].svg)

  def test_egogeneval(self):
    coverage = {
      "expected": 1,
      "scored": 1,
      "degenerate": 0,
      "missing": 0,
      "failed": 0,
    }
    entry = {
      "overall": 0.5,
      "cmg": {"cmg": 0.6, "cmg_atomic": 0.6},
      "ssp": {"ssp": 0.4, "ssp_atomic": 0.4},
      "coverage": coverage,
      "partial": False,
      "refused": "",
      "comparable_to_published": False,
    }
    scores = {
      "protocol": "egogeneval",
      "variant": "paper",
      "systems": {"a": entry},
    }
    share = {"under": 0.5, "near": 0.25, "over": 0.25}
    bins = dict.fromkeys(("small", "medium", "large"), share)
    (self.root / "run").mkdir()
    (self.root / "run/scores.json").write_text(json.dumps(scores))
    (self.root / "run/diagnostics.json").write_text(
      json.dumps({"magnitude_bins": {"rotation": {"bins": bins}}})
    )
    row = {
      "action_expected": -2.0,
      "action_pred": -1.0,
      "action_unit": "m",
    }
    run = sources.load([self.root / "run"])[0][0]
    found = figures_egogeneval.draw(
      run, boards.build(run), self.root, {("a", "c"): [row]}
    )
    self.assertEqual(
      [picture.name for picture in found],
      [f"egogeneval_{n}" for n in ("scatter", "protocols", "response", "bins")],
    )
    without = figures_egogeneval.draw(run, boards.build(run), self.root, {})
    self.assertNotIn("egogeneval_response", [p.name for p in without])

  def test_pdi_doses_and_a_single_category(self):
    examples.write_pdi_run(
      self.root / "run", [examples.pdi_record("a", "1", pdi=0.2)]
    )
    doses = [
      {"defect": "skating", "strength": s, "scale": s, "traj": None, "rigid": 0}
      for s in (0.0, 0.5, 1.0)
    ]
    (self.root / "run/doses.json").write_text(json.dumps({"rows": doses}))
    run = sources.load([self.root / "run"])[0][0]
    found = figures_pdi.draw(run, boards.build(run), self.root)
    names = [picture.name for picture in found]
    self.assertEqual(names, ["pdi_components", "pdi_doses"])

  def test_nothing_scored_is_nothing_drawn(self):
    record = examples.pdi_record(
      "a", "1", pdi=None, status="failed", reason="x"
    )
    examples.write_pdi_run(self.root / "run", [record])
    run = sources.load([self.root / "run"])[0][0]
    self.assertEmpty(figures_pdi.draw(run, boards.build(run), self.root))

  def test_paired_study_marks_intervals_without_zero(self):
    rows = [
      {"contrast": "a - b", "score": "cmg", "point": p, "low": lo, "high": hi}
      for p, lo, hi in ((0.1, 0.05, 0.2), (0.0, -0.1, 0.1))
    ]
    study = Study(self.root, "paired", {"rows": rows})
    (picture,) = figures_studies.draw(study, 0, self.root)
    self.assertIn("var(--s1)", picture.svg)
    self.assertIn("var(--s0)", picture.svg)
    power = Study(self.root, "power", {"rows": rows})
    self.assertEmpty(figures_studies.draw(power, 0, self.root))


if __name__ == "__main__":
  absltest.main()
