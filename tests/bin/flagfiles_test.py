# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Every flagfile of PDI runs on tiny data; none is without a smoke test."""

import pathlib
import shutil
import subprocess
import sys

import numpy as np
from absl.testing import absltest

from bin import cli
from perception import video
from protocols.common import outputs
from tests.bin import running
from tests.protocols.pdi import small_world
from tests.shared_files import shared

_FLAGS_FOLDER = running.ROOT / "bin" / "flags"

_TINY_QUICKSTART = """
from bin import cli, evaluate
from protocols.calibration import generators

generators.FRAMES, generators.SIZE = 12, (60, 80)
generators.GENERATORS = generators.GENERATORS[:2]
cli.run(evaluate.main)
"""


class FlagfilesTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    self.root = pathlib.Path(self.create_tempdir().full_path)
    self.output = self.root / "out"

  def _main(self, module: str, name: str, *arguments: str) -> int:
    """Runs a binary in a process of its own; returns its exit code."""
    done = running.run(module, f"--flagfile={_FLAGS_FOLDER / name}", *arguments)
    self.assertNotIn("Traceback", done.stderr)
    return done.returncode

  def _evaluate(self, name: str, *arguments: str) -> int:
    return self._main("evaluate", name, f"--output={self.output}", *arguments)

  def _clips(self) -> str:
    frames = np.random.default_rng(0).integers(0, 255, (6, 48, 64, 3), np.uint8)
    (self.root / "clips" / "m").mkdir(parents=True)
    video.write_video(self.root / "clips" / "m" / "a.mp4", frames, 24)
    return f"--clips={self.root / 'clips'}"

  def _statuses(self) -> list[str]:
    scores = outputs.read_json(self.output / "scores.json")
    return [case["status"] for case in scores["cases"]]

  def test_quickstart(self):
    # The same command on two generators of a few small frames.
    arguments = [
      sys.executable,
      "-c",
      _TINY_QUICKSTART,
      f"--flagfile={_FLAGS_FOLDER / 'quickstart.flags'}",
      "--nodoses",
      f"--output={self.output}",
    ]
    done = subprocess.run(
      arguments, cwd=running.ROOT, capture_output=True, text=True, check=False
    )
    self.assertEqual(done.returncode, cli.OK, done.stderr)
    # --output given after the flagfile wins.
    self.assertEqual(self._statuses(), ["ok"] * 10)
    self.assertGreater((self.output / "leaderboard.png").stat().st_size, 5000)

  def test_pdi_released(self):
    small_world.write_run(self.root / "in", systems=("m",), cases=1)
    code = self._evaluate(
      "pdi_released.flags", f"--observations={self.root / 'in'}"
    )
    self.assertEqual(code, cli.OK)
    scores = outputs.read_json(self.output / "scores.json")
    self.assertEqual(scores["variant"], "released")

  def test_pdi_offline(self):
    code = self._evaluate(
      "pdi_offline.flags", self._clips(), "--object_box=20,10,44,38"
    )
    # Noise holds no object: whatever the masks say, there is no depth.
    self.assertEqual(code, cli.TOTALS_REFUSED)
    self.assertIn(self._statuses()[0], ("missing", "failed", "degenerate"))

  def test_pdi_rgbd(self):
    code = self._evaluate(
      "pdi_rgbd.flags",
      f"--rgbd={shared('data/sevenscenes')}",
      "--object_box=190,345,350,434",
      "--frames=52:60",
      "--fps=6",
    )
    self.assertEqual(code, cli.OK)
    self.assertEqual(self._statuses(), ["ok"])

  def test_perceive_leaves_what_evaluate_scores(self):
    folder = self.root / "rgbd"
    shutil.copytree(shared("data/sevenscenes"), folder)
    arguments = ("--object_box=190,345,350,434", "--frames=52:60", "--fps=6")
    self._evaluate("pdi_rgbd.flags", f"--rgbd={folder}", *arguments)
    direct = outputs.read_json(self.output / "scores.json")["cases"][0]
    stage = self.root / "stage"
    code = self._main(
      "perceive",
      "pdi_rgbd.flags",
      f"--rgbd={folder}",
      f"--output={stage}",
      *arguments,
    )
    self.assertEqual(code, cli.OK)
    again = self.root / "again"
    done = running.run(
      "evaluate",
      "--protocol=pdi",
      f"--observations={stage / 'observations'}",
      f"--output={again}",
    )
    self.assertEqual(done.returncode, cli.OK, done.stderr)
    staged = outputs.read_json(again / "scores.json")["cases"][0]
    self.assertEqual(staged["values"], direct["values"])

  def test_every_flagfile_is_named_in_a_test(self):
    texts = [
      path.read_text(encoding="utf-8")
      for path in (running.ROOT / "tests").rglob("*_test.py")
    ]
    for path in sorted(_FLAGS_FOLDER.glob("*.flags")):
      # By name, or with its family: glob("bootstrap_*.flags").
      family = f"{path.stem.split('_')[0]}_*.flags"
      self.assertTrue(
        any(path.stem in text or family in text for text in texts),
        f"{path.name}: no smoke test",
      )


if __name__ == "__main__":
  absltest.main()
