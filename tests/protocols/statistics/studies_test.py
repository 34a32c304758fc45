# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Every kind of study on the small data, with oracles where there are any."""

from __future__ import annotations

import dataclasses
import itertools
import json
import pathlib
from typing import Any

import numpy as np
import scipy.stats
from absl.testing import absltest, parameterized

from perception.errors import InputError
from protocols.statistics import config, studies, studies_panels, table
from protocols.statistics.sampling import Runtime
from tests.protocols.statistics import small_study

SCENES = config.Resampling("scene", "source", "shared")


def run(
  kind: str, *, ratings: pathlib.Path | None = None, **fields: Any
) -> dict[str, Any]:
  steps = fields.pop("steps", None) or small_study.steps()
  study = small_study.study(kind, **fields)
  return studies.run(study, steps, Runtime(), ratings_path=ratings)


class ResampledStudiesTest(parameterized.TestCase):
  def test_strata_of_one_case_are_stated(self) -> None:
    rows = [
      dataclasses.replace(row, subtype="rare") if row.case == "case07" else row
      for row in small_study.rows()
    ]
    found = run("intervals", steps=table.pivot(rows, source_name="x"))
    self.assertEqual(
      found["notes"], ["1 of 5 strata hold one case and never vary: rare"]
    )

  def test_intervals(self) -> None:
    found = run("intervals", options={"per_protocol": True})
    scores = {
      (r["system"], r["score"], r["protocol"]): r for r in found["rows"]
    }
    self.assertLen(scores, 3 * (3 + 2 * 3))
    a = scores["a", "overall", ""]
    self.assertAlmostEqual(
      a["point"],
      (scores["a", "cmg", ""]["point"] + scores["a", "ssp", ""]["point"]) / 2,
    )
    self.assertLess(a["low"], a["point"])
    self.assertLess(a["point"], a["high"])
    # The replicate spread against the closed form: strata of unequal size.
    cases = small_study.case_table()
    variance = 0.0
    for protocol in small_study.PROTOCOLS:
      inside = cases.groups["protocol"] == protocol
      total = inside.sum()
      for sub in set(cases.groups["subtype"][inside]):
        values = cases.values[0, 0][cases.groups["subtype"] == sub]
        variance += len(values) * values.var() / total**2 / 9
    expected = np.sqrt(variance)
    self.assertAlmostEqual(
      scores["a", "cmg", ""]["sd"], expected, delta=0.12 * expected
    )

  def test_bca_and_basic_differ_from_percentile(self) -> None:
    ends = {}
    for method in ("percentile", "basic", "bca"):
      row = run("intervals", interval=method)["rows"][0]
      ends[method] = (row["low"], row["high"])
    self.assertLen(set(ends.values()), 3)
    low, high = ends["percentile"]
    point = row["point"]
    np.testing.assert_allclose(
      ends["basic"], (2 * point - high, 2 * point - low)
    )

  def test_a_system_compared_with_itself(self) -> None:
    found = run("paired", options={"pairs": [["a", "a"]]})["rows"]
    for row in found:
      self.assertEqual(
        (row["point"], row["sd"], row["low"], row["high"]), (0, 0, 0, 0)
      )
      self.assertEqual(row["p_at_least_zero"], 1.0)
      self.assertEqual(row["p_two_sided"], 1.0)

  def test_a_copy_flips_with_certainty(self) -> None:
    rows = small_study.rows()
    copies = [
      dataclasses.replace(r, system="a copy") for r in rows if r.system == "a"
    ]
    steps = table.pivot([*rows, *copies], source_name="x")
    found = run("ranking", steps=steps, dtype="float32", resampling=SCENES)
    self.assertEqual([r["system"] for r in found["rows"][:2]], ["a", "a copy"])
    self.assertEqual(found["rows"][0]["p_flip"], 1.0)
    self.assertEqual(found["tie_groups"][0][:2], ["a", "a copy"])

  def test_paired_is_the_difference_of_shared_draws(self) -> None:
    found = run(
      "paired",
      options={"pairs": [["a", "b"]], "axis_difference": ["cmg", "ssp"]},
    )["rows"]
    row = {r["score"]: r for r in found}
    alone = {(r["system"], r["score"]): r for r in run("intervals")["rows"]}
    self.assertAlmostEqual(
      row["cmg"]["mean"],
      alone["a", "cmg"]["mean"] - alone["b", "cmg"]["mean"],
    )
    self.assertAlmostEqual(
      row["cmg_minus_ssp"]["point"], row["cmg"]["point"] - row["ssp"]["point"]
    )
    self.assertAlmostEqual(
      row["cmg"]["p_at_least_zero"] + row["cmg"]["p_at_most_zero"], 1.0
    )

  def test_contrasts(self) -> None:
    weights = {"a": 0.5, "b": 0.5, "c": -1.0}
    found = run(
      "paired", options={"contrasts": [{"name": "x", "weights": weights}]}
    )["rows"]
    point = {
      (r["system"], r["score"]): r["point"] for r in run("intervals")["rows"]
    }
    self.assertAlmostEqual(
      found[0]["point"],
      sum(w * point[s, "cmg"] for s, w in weights.items()),
    )

  def test_power(self) -> None:
    found = run(
      "power", options={"pairs": [["b", "c"]], "power": 0.95}, replicates=2000
    )
    row = found["rows"][0]
    self.assertAlmostEqual(
      row["factor"],
      ((1.959964 + 1.644854) * row["sd"] / row["difference"]) ** 2,
      places=5,
    )
    self.assertAlmostEqual(row["power_found"], 0.95, delta=0.03)

  def test_lower_is_better(self) -> None:
    axis = config.Axis("cmg", ("cmg",), lower_is_better=True)
    found = run("ranking", axes=(axis,), overall={})
    names = [row["system"] for row in found["rows"]]
    points = [row["point"] for row in found["rows"]]
    self.assertEqual(points, sorted(points))
    self.assertEqual(sorted(names), ["a", "b", "c"])

  @parameterized.parameters("ranking", "paired", "power", "weights", "sources")
  def test_fewer_than_two_systems(self, kind: str) -> None:
    with self.assertRaisesRegex(InputError, "two systems"):
      run(kind, systems=("a",))

  def test_bad_options(self) -> None:
    for kind, options, text in (
      ("ranking", {"target": "psnr"}, "options.target"),
      ("paired", {"pairs": [["a", "z"]]}, "no system 'z'"),
      ("paired", {"axis_difference": ["cmg"]}, "axis_difference"),
      ("weights", {"axes": ["cmg"]}, "two axes"),
      ("subsampling", {"sizes": [99]}, "1 to 24"),
      ("correlation", {"level": "steps"}, "systems or cases"),
      ("correlation", {"pairs": [["cmg", "x"]]}, "two axes among"),
    ):
      with self.assertRaisesRegex(InputError, text):
        run(kind, options=options)
    with self.assertRaisesRegex(InputError, "one of"):
      run("magic")
    with self.assertRaisesRegex(InputError, "at least one score"):
      run("ranking", axes=(), overall={})


class PanelStudiesTest(parameterized.TestCase):
  def test_sources(self) -> None:
    found = run("sources", options={"within_protocols": ["atomic", "cycle"]})
    rows = {(r["source"], r["panel"]): r for r in found["rows"]}
    self.assertLen(rows, 4)
    self.assertEqual(
      rows["source0", "without"]["cases"] + rows["source1", "without"]["cases"],
      24,
    )
    self.assertEqual(rows["source0", "within"]["protocols"], "atomic, cycle")

  def test_weights(self) -> None:
    found = run("weights", options={"pillars": "ssp", "draws": 50})
    rows = found["rows"]
    self.assertLen(rows, 21)
    self.assertEqual(rows[10]["spearman"], 1.0)
    self.assertLen(found["pillars"]["drop_one"], 2)

  @parameterized.parameters(([200, 120, 120], 140), ([3, 5, 2], 10), ([5], 1))
  def test_quotas(self, sizes: list[int], total: int) -> None:
    found = studies_panels.quotas(np.array(sizes), total)
    self.assertEqual(found.sum(), total)
    self.assertTrue(np.all(found <= sizes))
    exact = np.array(sizes) * total / sum(sizes)
    self.assertTrue(np.all(np.abs(found - exact) < 1))

  def test_subsampling(self) -> None:
    found = run("subsampling", options={"sizes": [12, 24]}, replicates=50)
    small, full = found["rows"]
    self.assertEqual(full["median_spearman"], 1.0)
    self.assertEqual(full["top_match"], 1.0)
    self.assertLess(full["mean_absolute_error"], 1e-12)
    self.assertGreater(small["mean_absolute_error"], 0.005)

  def test_temporal(self) -> None:
    found = run(
      "temporal",
      replicates=200,
      options={"rules": [[0.0, 0.5], [0.5, 0.5]], "grid": [0.0, 0.5, 1.0]},
    )
    official, both = found["rows"]
    self.assertAlmostEqual(
      official["gap_point"],
      official["second_drop"] - official["first_drop"],
    )
    self.assertEqual(official["second_drop"], both["second_drop"])
    self.assertAlmostEqual(found["sweep"]["gaps"][1], both["gap_point"])

  def test_temporal_needs_steps(self) -> None:
    rows = [r for r in small_study.rows() if r.step == 1]
    with self.assertRaisesRegex(InputError, "table of steps"):
      run("temporal", steps=table.pivot(rows, source_name="x"))


class AgreementStudiesTest(parameterized.TestCase):
  def test_correlation_over_systems(self) -> None:
    found = run("correlation")["rows"][0]
    self.assertEqual(found["cases"], 19)  # those that both axes score
    self.assertLessEqual(found["spearman_low"], found["spearman"])
    self.assertLessEqual(found["spearman"], found["spearman_high"])

  def test_correlation_over_cases(self) -> None:
    found = run("correlation", options={"level": "cases"})["rows"][0]
    cases = small_study.case_table()
    both = cases.masks.all(axis=0)
    expected = [
      scipy.stats.spearmanr(*cases.values[:, s][:, both])[0] for s in range(3)
    ]
    np.testing.assert_allclose(list(found["by_system"].values()), expected)
    self.assertAlmostEqual(found["spearman"], np.mean(expected))

  def _ratings(self, rows: list[dict[str, Any]]) -> pathlib.Path:
    path = pathlib.Path(self.create_tempfile().full_path)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path

  def _ranks(self) -> list[dict[str, Any]]:
    """Three raters rank every step by its CMG score; a second group too."""
    steps = small_study.steps()
    rows = []
    for n, c in enumerate(steps.case_of_step):
      rank = scipy.stats.rankdata(-steps.values["cmg"][:, n])
      groups = [("", 3)] + [("again", 2)] * (n < 10)
      for group, raters in groups:
        for rater, s in itertools.product(range(raters), range(3)):
          rows.append(
            {
              "rater": f"{group}{rater}",
              "group": group,
              "system": steps.systems[s],
              "case": steps.cases[c],
              "step": int(steps.step[n]),
              "axis": "cmg",
              "rank": float(rank[s]),
            }
          )
    return rows

  def test_utilities_of_perfect_raters(self) -> None:
    found = run("human", ratings=self._ratings(self._ranks()))["rows"][0]
    self.assertEqual(found["item_spearman"], 1.0)
    self.assertEqual(found["pairwise_agreement"], 1.0)
    self.assertEqual(found["reannotation"]["steps"], 10)
    self.assertEqual(found["reannotation"]["icc_a1"], 1.0)
    self.assertEqual(found["spearman"], 1.0)
    self.assertEqual(found["exact_p_spearman"], 2 / 6)

  def test_preference_and_expert_means(self) -> None:
    one_step = table.pivot(
      [r for r in small_study.rows() if r.step == 1], source_name="x"
    )
    ranks = [r for r in self._ranks() if r["step"] == 1 and not r["group"]]
    found = run(
      "human",
      steps=one_step,
      ratings=self._ratings(ranks),
      options={"form": "preference"},
    )["rows"][0]
    self.assertAlmostEqual(sum(found["human"]), 1.5)  # half a credit each
    scores = [
      {
        "rater": str(k),
        "system": s,
        "case": "case00",
        "axis": "cmg",
        "score": float(value + k),
      }
      for k in (0, 1)
      for s, value in (("a", 1), ("b", 3), ("c", 5))
    ]
    found = run(
      "human",
      steps=one_step,
      ratings=self._ratings(scores),
      options={"form": "expert_means"},
    )["rows"][0]
    self.assertEqual(found["human"], [1.5, 3.5, 5.5])
    self.assertEqual(found["human_sd"], [0.5, 0.5, 0.5])

  @parameterized.parameters(
    ({"rank": None}, "rank or score"),
    ({"score": 1.0}, "exactly one"),
    ({"mood": 1}, "mood"),
    ({"case": "nowhere"}, "cases and steps"),
    ({"system": "z"}, "systems of"),
    ({"axis": "looks"}, "ratings of cmg, ssp"),
  )
  def test_bad_ratings(self, change: dict[str, Any], text: str) -> None:
    rows = [
      {"rater": "r", "system": s, "case": "case00", "axis": "cmg", "rank": 1.0}
      for s in "abc"
    ]
    rows = [{**row, **change} for row in rows]
    with self.assertRaisesRegex(InputError, text):
      run("human", ratings=self._ratings(rows))

  def test_ratings_given_twice_or_not_at_all(self) -> None:
    row = {"rater": "r", "system": "a", "case": "case00", "axis": "cmg"}
    with self.assertRaisesRegex(InputError, "two ratings"):
      run("human", ratings=self._ratings([{**row, "rank": 1.0}] * 2))
    with self.assertRaisesRegex(InputError, "--ratings"):
      run("human")


if __name__ == "__main__":
  absltest.main()
