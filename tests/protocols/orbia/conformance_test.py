# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Golden vectors: the quick files here, all of them by `bin.conformance`."""

import json
import pathlib
import shutil

import numpy as np
from absl.testing import absltest

from protocols.orbia import conformance
from tests import shared_files

_QUICK = ("schedules.npz", "scoring.npz")


def _index(folder, names):
  index = json.loads((folder / "index.json").read_text())
  index["files"] = {n: index["files"][n] for n in names}
  return index


class ConformanceTest(absltest.TestCase):
  def test_recognises_its_own_index_only(self):
    folder = shared_files.shared("golden/orbia")
    index = json.loads((folder / "index.json").read_text())
    self.assertTrue(conformance.recognises(index))
    self.assertFalse(
      conformance.recognises({"title": "Golden vectors for PDI"})
    )

  def test_quick_files(self):
    folder = shared_files.shared("golden/orbia")
    index = _index(folder, _QUICK)
    found = list(conformance.checks(folder, index, precision="float64"))
    failed = [f"{c.name}: {c.detail}" for c in found if not c.passed]
    self.assertEqual(failed, [])
    self.assertGreater(len(found), 100)
    self.assertIn("paper", {check.variant for check in found})

  def test_images_in_float32(self):
    folder = shared_files.shared("golden/orbia")
    index = _index(folder, ["masked_appearance.npz"])
    found = list(conformance.checks(folder, index, precision="float32"))
    failed = [f"{c.name}: {c.detail}" for c in found if not c.passed]
    self.assertEqual(failed, [])
    self.assertEqual({check.precision for check in found}, {"float32"})

  def test_unknown_arrays_and_wrong_values_fail(self):
    source = shared_files.shared("golden/orbia")
    folder = pathlib.Path(self.create_tempdir().full_path)
    shutil.copy(source / "index.json", folder)
    with np.load(source / "schedules.npz") as stored:
      arrays = {k: stored[k] for k in stored.files if k.startswith("n17/")}
    arrays["n17/sampling_plan"] = arrays["n17/sampling_plan"] + 1
    arrays["n17/surprise"] = np.zeros(2)
    arrays["stranger/thing"] = np.zeros(2)
    np.savez(folder / "schedules.npz", **arrays)
    index = _index(folder, ["schedules.npz"])
    entry = index["files"]["schedules.npz"]
    entry["cases"] = [c for c in entry["cases"] if c["id"] == "n17"]
    found = conformance.checks(folder, index, precision="float64")
    failed = {check.name for check in found if not check.passed}
    self.assertEqual(
      failed,
      {"n17/sampling_plan", "n17/surprise", "schedules.npz/stranger/thing"},
    )


if __name__ == "__main__":
  absltest.main()
