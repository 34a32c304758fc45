# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""The flagfiles of Orbia, each run by its command."""

import pathlib

from absl.testing import absltest

from bin import cli
from protocols.common import outputs
from protocols.orbia import baselines, builtin, dataset, dataset_writer
from tests.bin import running
from tests.protocols.orbia import tiny_world
from tests.shared_files import shared

_FLAGS = running.ROOT / "bin" / "flags"


class OrbiaFlagfilesTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    self.root = pathlib.Path(self.create_tempdir().full_path)
    self.output = self.root / "out"

  def _run(self, name: str, *arguments: str) -> dict:
    done = running.run(
      "evaluate",
      f"--flagfile={_FLAGS / name}",
      f"--output={self.output}",
      *arguments,
    )
    self.assertNotIn("Traceback", done.stderr)
    self.assertIn(done.returncode, (cli.OK, cli.TOTALS_REFUSED), done.stderr)
    self.assertIn("not comparable with published tables", done.stdout)
    return outputs.read_json(self.output / "scores.json")

  def test_orbia_rgbd(self):
    scores = self._run(
      "orbia_rgbd.flags",
      f"--orbia_rgbd={shared('data/sevenscenes')}",
      "--orbia_masks=none",
      "--orbia_limit=1",
      "--tiers=T1",
    )
    self.assertContainsSubset({"perfect", "freeze"}, set(scores["systems"]))

  def test_orbia_calibration(self):
    scores = self._run(
      "orbia_calibration.flags", "--orbia_limit=1", "--tiers=T1"
    )
    self.assertContainsSubset({"perfect", "repaint"}, set(scores["systems"]))

  def test_orbia_released(self):
    world = tiny_world.Wall()
    root = self.root / "data"
    dataset_writer.write_dataset(root, [tiny_world.case_content(world)])
    (case,) = dataset.read_dataset(root)
    builtin.write_video(
      root, case, world, baselines.BASELINES["perfect"], "perfect"
    )
    scores = self._run(
      "orbia_released.flags",
      f"--orbia_dataset={root}",
      f"--orbia_videos={root / builtin.VIDEOS}",
      "--tiers=T1",
    )
    self.assertEqual(scores["variant"], "released")


if __name__ == "__main__":
  absltest.main()
