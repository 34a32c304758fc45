# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Records of all three protocols and published evidence as tables."""

from __future__ import annotations

import dataclasses
import json
import pathlib
from typing import Any

import numpy as np
from absl.testing import absltest, parameterized

from perception.errors import InputError
from protocols.common import store
from protocols.common.records import Record
from protocols.statistics import adapters, cases, config, studies
from protocols.statistics.sampling import Runtime


class RecordsTest(parameterized.TestCase):
  def setUp(self) -> None:
    super().setUp()
    self.folder = pathlib.Path(self.create_tempdir().full_path)

  def _write(self, **change: Any) -> None:
    with store.RecordLog(self.folder / "records.jsonl") as log:
      for system in ("a", "b"):
        for case in range(4):
          record = {
            "protocol": "pdi",
            "variant": "paper",
            "system": system,
            "case_id": f"c{case}",
            "status": "ok",
            "values": {"pdi": 0.1 * case + (system == "b"), "scale": None},
            **change,
          }
          log.append(Record(**record))

  @parameterized.parameters(
    ("pdi", {"category": "curved_motion"}, "subtype", "curved_motion"),
    ("orbia", {"template": "loop"}, "subtype", "loop"),
    ("egogeneval", {"dataset": "scannet"}, "source", "scannet"),
    ("egogeneval", {"protocol": "chain"}, "protocol", "chain"),
  )
  def test_groups_of_every_protocol(
    self, protocol: str, groups: dict[str, str], column: str, value: str
  ) -> None:
    self._write(protocol=protocol, groups=groups)
    found = adapters.from_records([self.folder])
    self.assertEqual(set(found.groups[column]), {value})
    self.assertEqual(found.systems, ("a", "b"))
    np.testing.assert_allclose(found.values["pdi"][0], [0, 0.1, 0.2, 0.3])
    self.assertTrue(np.isnan(found.values["scale"]).all())

  def test_a_case_that_failed_is_noticed(self) -> None:
    self._write()
    with store.RecordLog(self.folder / "records.jsonl") as log:
      log.append(Record("pdi", "paper", "b", "c3", "failed", "lost mask"))
    study = config.load("pdi_ranking")
    found = adapters.from_records([self.folder])
    with self.assertRaisesRegex(InputError, "case c3 step 1: a has it, b"):
      cases.from_steps(found, study)

  def test_nothing_scored_or_not_finite(self) -> None:
    with self.assertRaisesRegex(InputError, "status ok"):
      adapters.from_records([self.folder])
    self._write(values={"pdi": float("inf")})
    with self.assertRaisesRegex(InputError, "a, c0: pdi"):
      adapters.from_records([self.folder])

  def test_built_in_study_on_records(self) -> None:
    self._write()
    result = studies.run(
      dataclasses.replace(config.load("pdi_ranking"), replicates=400),
      adapters.from_records([self.folder]),
      Runtime(),
      ratings_path=None,
    )
    self.assertEqual([r["system"] for r in result["rows"]], ["a", "b"])
    self.assertEqual(result["rows"][0]["p_flip"], 0.0)


class EvidenceTest(absltest.TestCase):
  def test_steps_and_mask(self) -> None:
    folder = pathlib.Path(self.create_tempdir().full_path)
    case = "scannet__scene7__chain__C1__0"
    empty = "hypersim__room__atomic__A2__1"
    for system, predicted in (("a", 0.31), ("b", -0.2)):
      (folder / system).mkdir()
      camera = [
        {
          "id": f"{name}__step{step}",
          "action_component": "tz_forward_m",
          "action_expected": 0.4,
          "action_pred": predicted,
          "action_abs_err": abs(0.4 - predicted),
          "action_sign_correct": float(predicted > 0),
          "action_unit": "m",
        }
        for name, steps in ((case, 2), (empty, 1))
        for step in range(1, steps + 1)
      ]
      scene = [_scene(f"{case}__step{step}", 1) for step in (1, 2)]
      scene.append(_scene(f"{empty}__step1", 0))
      for axis, rows in (("cmg", camera), ("ssp", scene)):
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / system / f"{axis}.jsonl").write_text(text)
    found = adapters.from_evidence([folder], variant="paper")
    self.assertEqual(found.cases, (empty, case))
    self.assertEqual(list(found.groups["source"]), ["hypersim", "scannet"])
    self.assertEqual(list(found.groups["subtype"]), ["A2", "C1"])
    np.testing.assert_array_equal(found.case_of_step, [0, 1, 1])
    self.assertTrue((found.values["cmg"][0] > 0).all())
    self.assertTrue((found.values["cmg"][1] == 0).all())
    np.testing.assert_array_equal(
      np.isnan(found.values["f1"][0]), [True, False, False]
    )


def _scene(record_id: str, targets: int) -> dict[str, Any]:
  box = [10.0, 10.0, 50.0, 60.0]
  matched = [
    {
      "gt_idx": 0,
      "pred_idx": 0,
      "status": "match",
      "gt_box": box,
      "pred_box": box,
    }
  ]
  depths = [
    {
      "gt_idx": 0,
      "pred_idx": 0,
      "gt_median_depth": 1.9,
      "pred_median_depth": 1.8,
    }
  ]
  return {
    "id": record_id,
    "num_gt_objects": targets,
    "num_pred_all": targets,
    "num_matched": targets,
    "center_error_norm": 0.05 if targets else None,
    "object_integrity": 0.8 if targets else None,
    "objects": matched[:targets],
    "object_depths": depths[:targets],
  }


if __name__ == "__main__":
  absltest.main()
