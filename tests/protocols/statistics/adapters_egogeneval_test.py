# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Studies of EgoGenEval's groups against the protocol's own diagnostics."""

from __future__ import annotations

import dataclasses
import pathlib
from typing import Any

import numpy as np
from absl.testing import absltest

from perception.errors import InputError
from protocols.egogeneval import constants, diagnostics, evidence_files
from protocols.statistics import adapters, config, studies
from protocols.statistics.sampling import Runtime
from tests.protocols.egogeneval import sample_rows

_SYSTEMS = ("a", "b")


def _ids(context: str = "single1") -> list[str]:
  return [
    sample_rows.case_id(protocol, scene).replace("single1", context)
    + f"__step{step}"
    for scene in ("s1", "s2", "s3", "s4")
    for protocol in constants.PROTOCOLS
    for step in range(1, constants.STEPS_OF_PROTOCOL[protocol] + 1)
  ]


def _camera(record_id: str, rng: np.random.Generator) -> dict[str, Any]:
  """A camera row with pose diagnostics; some lack the direction error."""
  rotation = rng.random() < 0.5
  expected = rng.uniform(5, 30) if rotation else rng.uniform(0.1, 0.9)
  row = sample_rows.cmg_row(
    record_id,
    expected=expected,
    estimate=expected * rng.choice([-0.4, 0.5, 0.9, 1.0, 1.1, 1.5]),
  )
  if rotation:
    row |= {"action_component": "yaw_deg", "action_unit": "deg"}
  row["diagnostics"] = {
    "Pose_TransDirErrDeg": rng.uniform(0, 40) if rng.random() < 0.9 else None,
    "Pose_RotErrDeg": rng.uniform(0, 18),
    "Pose_TransNormErrM": rng.uniform(0, 0.35),
  }
  return row


class GroupsTest(absltest.TestCase):
  def setUp(self) -> None:
    super().setUp()
    self.folder = pathlib.Path(self.create_tempdir().full_path)

  def _write(self, contexts: dict[str, int]) -> None:
    """Two systems; by context, matches of two targets, 0 for one or two."""
    for number, system in enumerate(_SYSTEMS):
      rng = np.random.default_rng(number)
      ids = [i for context in contexts for i in _ids(context)]
      # The instructed motion is the same for all systems.
      shared = np.random.default_rng(9)
      camera = [_camera(i, shared) for i in ids]
      for row in camera:
        row["action_pred"] = row["action_expected"] * rng.choice(
          [-0.4, 0.5, 0.9, 1.0, 1.1, 1.5]
        )
        row["action_sign_correct"] = float(
          row["action_pred"] * row["action_expected"] > 0
        )
        row["action_abs_err"] = abs(row["action_pred"] - row["action_expected"])
      scene = [
        sample_rows.ssp_row(
          i,
          targets=2,
          matches=next(m for c, m in contexts.items() if f"__{c}__" in i)
          or 1 + int(rng.integers(2)),
          candidates=2 + int(rng.integers(2)),
        )
        for i in ids
      ]
      evidence_files.write_system(self.folder / system, camera, scene, [])

  def _run(self, name: str, **changes: Any) -> dict[str, Any]:
    study = dataclasses.replace(config.load(name), replicates=200, **changes)
    steps = adapters.from_evidence(
      [self.folder], variant="paper", wanted=study.metrics
    )
    return studies.run(study, steps, Runtime(), ratings_path=None)

  def test_pose_strata(self) -> None:
    self._write({"single1": 0})
    systems = list(evidence_files.read_folder(self.folder))
    expected = diagnostics.pose_strata(
      systems,
      evidence_files.common_mask(systems),
      constants.for_variant("paper"),
    )
    assert expected is not None
    self.assertBetween(expected["strict"]["n"], 1, expected["loose"]["n"] - 1)
    result = self._run("egogeneval_pose_strata")
    self.assertLen(result["rows"], 16)
    for row in result["rows"]:
      self.assertEqual(row["system"], "all systems")
      metric, stratum = row["score"].split(", ")
      self.assertAlmostEqual(row["point"], expected[stratum][metric], 12)
      self.assertBetween(row["mean"], row["low"], row["high"])

  def test_magnitude_bins(self) -> None:
    self._write({"single1": 0})
    systems = list(evidence_files.read_folder(self.folder))
    expected = diagnostics.magnitude_bins(systems)
    assert expected is not None
    result = self._run("egogeneval_magnitude")
    checked = 0
    for row in result["rows"]:
      if row["system"] == "mean of systems":
        kind, place = row["score"].split(", ")
        name, family = place.split()
        kind = {"dir": "direction"}.get(kind, kind)
        wanted = expected[family]["bins"][name][kind]
        self.assertAlmostEqual(row["point"], wanted, 12)
        checked += 1
    self.assertGreaterEqual(checked, 12)

  def test_context_k(self) -> None:
    found = {"single1": 1, "multi2": 1, "multi3": 1, "multi4": 2}
    self._write(found)
    result = self._run("egogeneval_context_k")
    rows = {(row["system"], row["score"]): row for row in result["rows"]}
    names = (*_SYSTEMS, "mean of systems")
    for system in names:
      gain = rows[system, "k4_minus_k1"]
      self.assertAlmostEqual(
        gain["point"],
        rows[system, "ssp_k4"]["point"] - rows[system, "ssp_k1"]["point"],
      )
      # All targets are found at K=4, half of them below.
      self.assertGreater(gain["low"], 0.0)
      self.assertEqual(gain["p_at_least_zero"], 1.0)
    mean = np.mean([rows[s, "ssp_k4"]["point"] for s in _SYSTEMS])
    self.assertAlmostEqual(rows["mean of systems", "ssp_k4"]["point"], mean)

  def test_context_needs_every_number(self) -> None:
    self._write({"single1": 1, "multi4": 2})
    with self.assertRaisesRegex(InputError, "no case at all of 1, 2, 3, 4"):
      self._run("egogeneval_context_k")


if __name__ == "__main__":
  absltest.main()
