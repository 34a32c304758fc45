# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Golden vectors pass, and nothing in a folder can go unread.

The whole folder in both precisions is `bin.conformance`; here the vectors
that need no large compilation run in float64.
"""

import json
import pathlib
import shutil

import jax
from absl.testing import absltest, parameterized

from protocols.egogeneval import (
  conformance,
  conformance_folder,
  conformance_grounding,
  conformance_images,
  conformance_objects,
  conformance_records,
)
from tests.shared_files import shared

_CHECKS = (
  conformance_grounding.action_component,
  conformance_grounding.cmg_score_table,
  conformance_objects.labels,
  conformance_objects.detections,
  conformance_objects.matchability,
  conformance_objects.proposals,
  conformance_objects.audit_and_recovery,
  conformance_images.evaluation_frames,
  conformance_images.integrity,
  conformance_records.topology_step,
  conformance_records.aggregation,
  conformance_records.rejections,
)


class ConformanceTest(parameterized.TestCase):
  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    cls.golden = shared("golden/egogeneval")

  @parameterized.parameters(*_CHECKS)
  def test_vectors(self, check):
    folder = conformance_folder.Folder(self.golden)
    with jax.enable_x64(True):
      found = list(check(folder, "float64"))
    self.assertNotEmpty(found)
    failed = [c for c in found if not c.passed]
    self.assertEmpty([f"{c.name} [{c.variant}]: {c.detail}" for c in failed])

  def test_the_index_is_recognised(self):
    index = json.loads((self.golden / "index.json").read_text())
    self.assertTrue(conformance.recognises(index))
    self.assertFalse(conformance.recognises({"vectors": [{"file": "x.npz"}]}))

  def test_unknown_files_fields_and_changed_values_fail(self):
    folder = pathlib.Path(self.create_tempdir().full_path)
    for name in ("action_component.json", "index.json"):
      shutil.copy(self.golden / name, folder / name)
    path = folder / "action_component.json"
    cases = json.loads(path.read_text())[:3]
    cases[0]["surprise"] = 1
    cases[1]["out"][1] = 9.0
    path.write_text(json.dumps(cases))
    (folder / "extra.npz").write_bytes(b"")
    found = list(conformance.checks(folder, {}, precision="float64"))
    failed = sorted(c.name for c in found if not c.passed)
    self.assertEqual(
      failed,
      ["action_component/0/surprise", "action_component/1", "extra.npz"],
    )


if __name__ == "__main__":
  absltest.main()
