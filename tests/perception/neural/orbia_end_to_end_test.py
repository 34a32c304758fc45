# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Real frames through Orbia's neural stack with random weights.

Depth Anything 3, DINOv2, SAM 2 and LPIPS, by the command and the flagfile of
a user. 41 frames of a real clip stand for a generated video of a case that
asks for 41; the figures mean nothing and the record says so.
"""

import json
import math
import pathlib

import numpy as np
import pytest
from absl.testing import absltest

from perception import video
from protocols.orbia import dataset, dataset_writer
from protocols.orbia.perceive import resize_area
from tests.perception.neural import end_to_end_test as stacks
from tests.protocols.orbia import tiny_world
from tests.shared_files import shared

_SETTINGS = {
  "depth_anything3": stacks.SMALL["depth_anything3"],
  "sam2": stacks.SMALL["sam2"],
  "dinov2": {"weights": "random", "device": "cpu"},
  "lpips": {"weights": "random", "device": "cpu"},
}


@pytest.mark.perception
class OrbiaTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    for name in ("torch", "transformers", "depth_anything_3", "lpips"):
      pytest.importorskip(name, reason="needs the perception extra")
    self.folder = pathlib.Path(self.create_tempdir().full_path)

  def _write_case(self):
    """A data set of one case, and 41 real frames as the video of it."""
    world = tiny_world.Wall()
    root = self.folder / "data"
    dataset_writer.write_dataset(root, [tiny_world.case_content(world)])
    (case,) = dataset.read_dataset(root)
    real = video.open_video(shared("data/videos/apple.mp4"))
    frames = real.select(slice(0, case.frame_count))
    target = self.folder / "videos" / "model" / f"{case.case_id}.mp4"
    small = (resize_area(frame, (96, 128)) for frame in frames)
    video.write_video(target, small, 16)
    return root

  def _run(self, name, *flags):
    result = stacks.run(
      "evaluate",
      f"--flagfile={stacks.ROOT}/bin/flags/orbia_neural.flags",
      f"--orbia_dataset={self.folder / 'data'}",
      f"--orbia_videos={self.folder / 'videos'}",
      "--orbia_novel_view=point_splats",  # splats of a network need a GPU
      "--orbia_quality=",
      f"--orbia_backend_settings={json.dumps(_SETTINGS)}",
      f"--cache={self.folder / 'cache'}",
      f"--output={self.folder / name}",
      *flags,
    )
    (record,) = stacks.read_records(self.folder / name, result)
    return record, result

  def test_every_role(self):
    self._write_case()
    record, result = self._run("out")
    self.assertNotEqual(record["status"], "missing", record["reason"])
    self.assertIn("not comparable with published tables", result.stdout)
    self.assertFalse(record["comparable_to_published"])
    backends = record["provenance"]["backends"]
    for role in ("geometry", "features", "distance", "masks"):
      self.assertEqual(backends[role]["weights_sha256"], "random", role)
    tiers = record["details"]["tiers"]
    self.assertEqual(set(tiers), {"T1", "T2", "T3", "T4", "T5", "T6"})
    # What each network was asked for came through as a number.
    values = record["values"]
    for name in ("translation_error", "return_depth", "return_dino"):
      self.assertTrue(math.isfinite(values[name]), f"{name}: {values[name]}")
    self.assertGreater(values["revisit_same_lpips"], 0.0)
    kept = sorted((self.folder / "cache").rglob("*.npz"))
    # Untrained masks may be empty, but the tracker was asked.
    self.assertTrue(any("masks" in np.load(path).files for path in kept))
    # A second run takes every answer from the cache and says the same.
    again, _ = self._run("again", "--tiers=T1,T3")
    for tier in ("T1", "T3"):
      self.assertEqual(
        again["details"]["tiers"][tier]["values"], tiers[tier]["values"]
      )
    self.assertEqual(sorted((self.folder / "cache").rglob("*.npz")), kept)


if __name__ == "__main__":
  absltest.main()
