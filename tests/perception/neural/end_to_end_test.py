# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Real frames through the neural stacks with random weights, by the binaries.

The figures mean nothing and the records say so: weights `random`, never
comparable with published tables. Without the perception extra the same
flagfiles give one line that says what to install.
"""

import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest
from absl.testing import absltest

from perception import registry
from perception.neural import cotracker3

ROOT = pathlib.Path(__file__).parents[3]
_DATA = ROOT.parent / "shared/data"
_CLIP = _DATA / "videos/apple.mp4"
_DA3 = {
  "model": "da3-small",
  "weights": "random",
  "device": "cpu",
  "process_res": 56,
  "ref_view_strategy": "first",
}
_RANDOM = {"weights": "random", "device": "cpu"}
SMALL = {
  "sam2": {**_RANDOM, "image_size": 128},
  "cotracker3": {**_RANDOM, "resolution": [96, 128]},
  "depth_anything3": _DA3,
  "depth_anything3_pair": _DA3,
  "depth_anything3_single": _DA3,
  "grounding_dino": {**_RANDOM, "box_threshold": 0.0, "text_threshold": 0.0},
  "dinov3": _RANDOM,
}


def run(module, *arguments):
  environment = {
    **os.environ,
    "JAX_PLATFORMS": "cpu",
    "OMP_NUM_THREADS": "1",
    "HF_HUB_OFFLINE": "1",
  }
  return subprocess.run(
    [sys.executable, "-W", "ignore", "-m", f"bin.{module}", *arguments],
    cwd=ROOT,
    env=environment,
    capture_output=True,
    text=True,
    check=False,
    timeout=400,
  )


def read_records(folder, result):
  path = folder / "records.jsonl"
  assert path.is_file(), result.stderr[-2000:]
  return [json.loads(line) for line in path.read_text().splitlines()]


class _Case(absltest.TestCase):
  def setUp(self):
    super().setUp()
    if not _DATA.is_dir():
      self.skipTest("../shared/data is absent")
    self.folder = pathlib.Path(self.create_tempdir().full_path)
    (self.folder / "clips").mkdir()
    shutil.copy(_CLIP, self.folder / "clips")
    self.clip = [
      f"--clips={self.folder / 'clips'}",
      "--object_box=300,110,660,470",
      "--sampling=native",
      "--frames=0:5",
      f"--output={self.folder / 'out'}",
    ]


class FlagfileTest(_Case):
  def test_without_the_extra_a_record_says_what_to_install(self):
    if importlib.util.find_spec("torch") is not None:
      self.skipTest("torch is installed here")
    result = run(
      "evaluate", f"--flagfile={ROOT}/bin/flags/pdi_neural.flags", *self.clip
    )
    (record,) = read_records(self.folder / "out", result)
    self.assertEqual(record["status"], "failed")
    self.assertIn("pip install", record["reason"])

  def test_every_backend_of_the_flagfiles_is_registered(self):
    known = {spec.name for spec in registry.specs()}
    for name in (
      "pdi_neural.flags",
      "orbia_neural.flags",
      "egogeneval_neural.flags",
    ):
      text = (ROOT / "bin" / "flags" / name).read_text()
      lines = [line for line in text.splitlines() if line.startswith("--")]
      self.assertGreater(len(lines), 3)
      for line in lines[1:]:
        value = line.partition("=")[2]
        for part in value.split(","):
          self.assertIn(part.rpartition("=")[2], known, f"{name}: {line}")


class NeuralCase(_Case):
  def setUp(self):
    super().setUp()
    for name in ("torch", "transformers", "depth_anything_3"):
      pytest.importorskip(name, reason="needs the perception extra")


@pytest.mark.perception
class PdiTest(NeuralCase):
  def _record(self, *flags):
    result = run(
      "evaluate",
      f"--flagfile={ROOT}/bin/flags/pdi_neural.flags",
      f"--backend_settings={json.dumps(SMALL)}",
      *self.clip,
      *flags,
    )
    return read_records(self.folder / "out", result)[0]

  def _check(self, record, roles):
    self.assertNotEqual(record["status"], "failed", record["reason"])
    self.assertFalse(record["comparable_to_published"])
    backends = record["provenance"]["backends"]
    for role in roles:
      self.assertEqual(backends[role]["weights_sha256"], "random")

  def test_masks_and_geometry(self):
    self._check(self._record("--tracks=lucas_kanade"), ("masks", "geometry"))

  def test_tracks_and_geometry(self):
    # Untrained masks are empty; real ones let the tracks be used.
    if cotracker3.why_absent():
      self.skipTest("CoTracker is the user's: set WORLDGAUGE_COTRACKER")
    record = self._record("--masks=grabcut_flow")
    self._check(record, ("tracks", "geometry"))


if __name__ == "__main__":
  absltest.main()
