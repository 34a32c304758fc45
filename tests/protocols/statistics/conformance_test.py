# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""The conformance checks themselves: they pass, and they can fail."""

from __future__ import annotations

import json
import pathlib
import shutil

import jax
from absl.testing import absltest

from protocols.statistics import conformance, conformance_study, golden
from tests.shared_files import shared


def _index(*files: str) -> dict[str, object]:
  return {"vectors": [{"file": name} for name in files]}


class ConformanceTest(absltest.TestCase):
  def setUp(self) -> None:
    super().setUp()
    self.source = shared("golden/statistics")
    self.folder = pathlib.Path(self.create_tempdir().full_path)

  def _run(self, index: dict[str, object], precision: str) -> dict[str, bool]:
    with jax.enable_x64(precision == "float64"):
      found = list(conformance.checks(self.folder, index, precision=precision))
    return {check.name: check.passed for check in found}

  def test_recognises(self) -> None:
    index = json.loads((self.source / "index.json").read_text())
    self.assertTrue(conformance.recognises(index))
    for other in ({}, {"vectors": {}}, _index("clip.npz", "other.json")):
      self.assertFalse(conformance.recognises(other))

  def test_rank_statistics_pass_unless_wrong_or_unknown(self) -> None:
    content = json.loads((self.source / "rank_statistics.json").read_text())
    for name in ("spearman_kendall", "icc", "pairwise"):
      content[name] = content[name][:1]
    content["utility"] = [{"rank": 1, "utility": 0.9}]
    content["surprise"] = [1.0]
    path = self.folder / "rank_statistics.json"
    path.write_text(json.dumps(content))
    (self.folder / "extra.npz").write_bytes(b"")
    found = self._run(_index(path.name), "float32")
    self.assertGreater(len(found), 20)
    failed = {name for name, passed in found.items() if not passed}
    self.assertEqual(
      failed,
      {
        "rank_statistics/utility/0/utility",
        "rank_statistics/surprise",
        "extra.npz",
      },
    )

  def test_human_study(self) -> None:
    for name in ("human.npz", "human.json"):
      shutil.copy(self.source / name, self.folder)
    found = self._run(_index("human.npz + human.json"), "float64")
    self.assertGreater(len(found), 50)
    self.assertTrue(all(found.values()), [k for k, v in found.items() if not v])

  def test_given_draws(self) -> None:
    # The bootstraps of the folder take longer: bin.conformance runs them.
    cases = conformance_study.case_table(
      golden.read_npz(self.source / "study.npz", precision="float64")
    )
    self.assertEqual(int((~cases.masks[1]).sum()), 44)
    draws = golden.read_npz(
      self.source / "deterministic.npz", precision="float64"
    )
    with jax.enable_x64(True):
      found = list(conformance_study.given_draws(draws, cases))
    self.assertGreaterEqual(len(found), 12)
    self.assertEqual([c.name for c in found if not c.passed], [])


if __name__ == "__main__":
  absltest.main()
