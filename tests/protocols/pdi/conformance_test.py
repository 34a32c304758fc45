# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Golden vectors pass; changed, unknown and broken ones fail."""

import json
import pathlib
import shutil

import numpy as np
from absl.testing import absltest, parameterized

from protocols.pdi import conformance
from tests.shared_files import shared

# A part that covers every kind; bin.conformance runs the whole folder.
_SMALL = (
  "border_anchors",
  "zero_half_exact",
  "plane_constant_z",
  "pointmaps_none",
  "unit_scale",
  "unit_rigid_21",
  "unit_pairs2d",
  "unit_scalejump",
  "unit_index",
  "unit_masks",
  "unit_lift",
  "unit_filter",
  "unit_diag",
)


class ConformanceTest(parameterized.TestCase):
  def _folder(self, names):
    golden = shared("golden/pdi")
    folder = pathlib.Path(self.create_tempdir().full_path)
    index = json.loads((golden / "index.json").read_text("utf-8"))
    vectors = [v for v in index["vectors"] if v["name"] in names]
    index["vectors"] = vectors
    index["meta"]["count"] = len(vectors)
    for vector in vectors:
      shutil.copy(golden / vector["file"], folder / vector["file"])
    self._write(folder, index)
    return folder, index

  def _write(self, folder, index):
    (folder / "index.json").write_text(json.dumps(index), "utf-8")

  def _failed(self, folder, index, precision="float64"):
    checks = list(conformance.checks(folder, index, precision=precision))
    self.assertNotEmpty(checks)
    return [check.name for check in checks if not check.passed]

  @parameterized.parameters("float64", "float32")
  def test_golden_vectors_pass(self, precision):
    folder, index = self._folder(_SMALL)
    self.assertTrue(conformance.recognises(index))
    self.assertEqual(self._failed(folder, index, precision), [])

  def test_one_changed_value_fails(self):
    folder, index = self._folder(("border_anchors",))
    path = folder / "border_anchors.npz"
    with np.load(path) as archive:
      arrays = {key: value.copy() for key, value in archive.items()}
    path.chmod(0o644)
    arrays["in_Z"][3] *= 1.001
    np.savez(path, **arrays)
    self.assertNotEmpty(self._failed(folder, index))

  def test_one_changed_scalar_of_the_index_fails(self):
    folder, index = self._folder(("plane_constant_z",))
    index["vectors"][0]["result"]["paper"]["scale"] += 1e-3
    self.assertEqual(
      self._failed(folder, index), ["plane_constant_z/paper/scale"]
    )

  def test_an_unknown_array_case_and_file_fail(self):
    folder, index = self._folder(("unit_filter",))
    path = folder / "unit_filter.npz"
    with np.load(path) as archive:
      arrays = dict(archive.items())
    path.chmod(0o644)
    np.savez(path, **arrays, out_surprise=np.zeros(2))
    (folder / "extra.npz").write_bytes(b"")
    index["vectors"][0]["novelty"] = 1
    failed = self._failed(folder, index)
    self.assertCountEqual(
      failed,
      ["unit_filter/out_surprise", "unit_filter/novelty", "extra.npz"],
    )

  def test_a_missing_file_fails_one_vector_only(self):
    folder, index = self._folder(("unit_filter", "unit_pairs2d"))
    (folder / "unit_filter.npz").unlink()
    self.assertEqual(self._failed(folder, index), ["unit_filter"])

  def test_other_folders_are_not_recognised(self):
    self.assertFalse(conformance.recognises({"meta": {}, "vectors": []}))


if __name__ == "__main__":
  absltest.main()
