# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""A real clip through the neural stack with random weights, by the binary.

The figures mean nothing and the records say so: weights `random`, never
comparable with published tables.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest
from absl.testing import absltest

from perception.neural import cotracker3

_ROOT = pathlib.Path(__file__).parents[3]
_CLIP = _ROOT.parent / "shared/data/videos/apple.mp4"
_SMALL = {
  "sam2": {"weights": "random", "device": "cpu", "image_size": 128},
  "cotracker3": {"weights": "random", "device": "cpu", "resolution": [96, 128]},
  "depth_anything3": {
    "model": "da3-small",
    "weights": "random",
    "device": "cpu",
    "process_res": 56,
    "ref_view_strategy": "first",
  },
}


@pytest.mark.perception
class PdiTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    for name in ("torch", "transformers", "depth_anything_3"):
      pytest.importorskip(name, reason="needs the perception extra")
    if not _CLIP.is_file():
      self.skipTest("../shared/data/videos is absent")
    self.folder = pathlib.Path(self.create_tempdir().full_path)
    (self.folder / "clips").mkdir()
    shutil.copy(_CLIP, self.folder / "clips")

  def _record(self, masks, tracks):
    command = [
      sys.executable,
      "-W",
      "ignore",
      "-m",
      "bin.evaluate",
      "--protocol=pdi",
      f"--clips={self.folder / 'clips'}",
      f"--output={self.folder / 'out'}",
      f"--masks={masks}",
      f"--tracks={tracks}",
      "--geometry=depth_anything3",
      "--sampling=native",
      "--frames=0:5",
      "--object_box=300,110,660,470",
      f"--backend_settings={json.dumps(_SMALL)}",
    ]
    environment = {
      **os.environ,
      "JAX_PLATFORMS": "cpu",
      "OMP_NUM_THREADS": "1",
      "HF_HUB_OFFLINE": "1",
    }
    result = subprocess.run(
      command,
      cwd=_ROOT,
      env=environment,
      capture_output=True,
      text=True,
      check=False,
      timeout=400,
    )
    path = self.folder / "out" / "records.jsonl"
    self.assertTrue(path.is_file(), result.stderr[-2000:])
    return json.loads(path.read_text().splitlines()[0])

  def _check(self, record, roles):
    self.assertNotEqual(record["status"], "failed", record["reason"])
    self.assertFalse(record["comparable_to_published"])
    backends = record["provenance"]["backends"]
    for role in roles:
      self.assertEqual(backends[role]["weights_sha256"], "random")

  def test_masks_and_geometry(self):
    record = self._record("sam2", "lucas_kanade")
    self._check(record, ("masks", "geometry"))

  def test_tracks_and_geometry(self):
    if cotracker3.why_absent():
      self.skipTest("CoTracker is the user's: set WORLDGAUGE_COTRACKER")
    record = self._record("grabcut_flow", "cotracker3")
    self._check(record, ("tracks", "geometry"))


if __name__ == "__main__":
  absltest.main()
