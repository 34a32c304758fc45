# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""From a real sequence to scores: mine, roll out, measure, replay, score."""

import json
import pathlib

import numpy as np
from absl.testing import absltest

from perception.errors import InputError
from protocols.common import runner, store
from protocols.egogeneval import (
  assembly,
  benchmark_files,
  formats,
  frame_files,
  manifest,
  measure_backends,
  mining,
  pair_pose,
  regions,
  rollout,
  run,
)
from tests.shared_files import shared


class EndToEndTest(absltest.TestCase):
  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    cls.root = pathlib.Path(cls.create_tempdir_for_class())
    cls.bench = cls.root / "bench"
    benchmark_files.mine(
      benchmark_files.MineConfig(
        scenes=(shared("data/sevenscenes"),),
        layout="7scenes",
        output=cls.bench,
        mining=mining.MiningConfig(stride=3, require_layers=False),
        quotas=assembly.Quotas(atomic=2, chain=0, cycle=2, max_per_scene=4),
      )
    )
    cls.systems = {}
    for name in ("oracle", "source_copy", "underexecuting_warp"):
      rollout.run(
        rollout.RolloutConfig(
          cls.bench / "manifest.jsonl",
          cls.bench / "eval_frames.jsonl",
          cls.root / name,
          name,
          reference=name,
        )
      )
      cls.systems[name] = cls.root / name / "predictions.jsonl"
    cls.content = manifest.read(cls.bench / "manifest.jsonl")
    cls.stored = frame_files.read(cls.bench / "eval_frames.jsonl")

  @classmethod
  def create_tempdir_for_class(cls):
    import tempfile

    folder = tempfile.TemporaryDirectory()
    cls.addClassCleanup(folder.cleanup)
    return folder.name

  def _config(self, variant):
    recorded = {
      "detections": {"path": str(self.bench / "detections")},
      "vision_language": {"path": str(self.bench / "answers.jsonl")},
    }
    return run.EgoGenEvalConfig(
      variant,
      manifest=self.bench / "manifest.jsonl",
      predictions=tuple(self.systems.values()),
      labels=self.bench / "labels.jsonl",
      eval_frames=self.bench / "eval_frames.jsonl",
      perception=measure_backends.PerceptionConfig(
        detector="recorded",
        vision_language="recorded",
        depth=measure_backends.BESIDE,
        settings={"recorded": recorded},
      ),
    )

  def test_whole_chain(self):
    count = regions.record(
      self.bench, self.content, self.stored, self.systems, variant="released"
    )
    self.assertGreater(count, 5)
    outcome = run.evaluate(
      self._config("released"),
      runner.RunOptions(output=self.root / "scored", allow_partial=True),
    )
    self.assertTrue(outcome.complete, outcome.text)
    scores = json.loads((self.root / "scored" / "scores.json").read_text())
    systems = scores["systems"]
    self.assertGreater(systems["oracle"]["cmg"]["dir"], 0.99)
    self.assertLess(systems["source_copy"]["cmg"]["dir"], 0.1)
    under = systems["underexecuting_warp"]["cmg"]
    self.assertGreater(under["dir"], 0.6)
    self.assertLess(under["gated"], systems["oracle"]["cmg"]["gated"])
    for name in ("source_copy", "underexecuting_warp"):
      self.assertGreater(
        systems["oracle"]["ssp"]["ssp"], systems[name]["ssp"]["ssp"]
      )
    rows = [
      json.loads(line)
      for line in (self.root / "scored" / "evidence" / "oracle" / "ssp.jsonl")
      .read_text()
      .splitlines()
    ]
    for row in rows:
      # Ground truth as prediction: every object is found where it was.
      self.assertEqual(row["num_matched"], row["num_gt_objects"])
      if row["num_matched"]:
        self.assertEqual(row["center_error_norm"], 0.0)
    self._check_origins(self.root / "scored")
    # The evidence alone gives the same scores.
    again = run.evaluate(
      run.EgoGenEvalConfig(
        "released",
        evidence=self.root / "scored" / "evidence",
        manifest=self.bench / "manifest.jsonl",
      ),
      runner.RunOptions(output=self.root / "replayed", allow_partial=True),
    )
    self.assertTrue(again.complete)
    self.assertEqual(
      (self.root / "scored" / "scores.json").read_bytes(),
      (self.root / "replayed" / "scores.json").read_bytes(),
    )
    self.assertEqual(
      (self.root / "scored" / "cases.jsonl").read_bytes(),
      (self.root / "replayed" / "cases.jsonl").read_bytes(),
    )

  def _check_origins(self, folder):
    """Every record names its images and backends."""
    records = store.read_scored(folder)
    self.assertLen(records, len(self.systems) * len(self.content.cases))
    for (system, case_id), record in records.items():
      images = record.provenance["images"]
      source = images[0]["source"]
      for number, row in enumerate(images, start=1):
        self.assertEqual(row["step"], number)
        self.assertEqual(row["source"], source)
        source = row["prediction"]
        expected = self.root / system / case_id / f"step{number}.png"
        self.assertEqual(row["prediction"], str(expected))
        self.assertEqual(row["sha256"], formats.sha256_of_file(expected))
        for name in ("source", "target"):
          self.assertTrue(pathlib.Path(row[name]).is_file(), row[name])
      backends = record.provenance["backends"]
      self.assertEqual(backends["pose"]["backend"], "pnp_sift")
      for role in ("detections", "features", "vision_language"):
        self.assertIn("backend_version", backends[role])
      self.assertEqual(backends["depth"], {"backend": "beside"})
      self.assertFalse(record.comparable_to_published)

  def test_evaluation_frames_are_checked(self):
    frame = next(iter(self.stored.values()))
    frame.verify()
    self.assertEqual(frame.frame.size, (240, 320))
    np.testing.assert_allclose(frame.native_intrinsics[0, 0], 585.0)
    with self.assertRaisesRegex(InputError, "no row for nowhere"):
      frame_files.of_case(
        self.stored, manifest.ImageRef("current", "nowhere", "0")
      )

  def test_pairs_that_cannot_be_localised_have_a_reason(self):
    frame = next(iter(self.stored.values()))
    backend = pair_pose.PnpPairPose()
    view = pair_pose.View(
      frame.native, frame.native_intrinsics, frame.frame.depth
    )
    flat = pair_pose.View(
      np.full_like(frame.native, 128), frame.native_intrinsics
    )
    found = backend.estimate(view, flat)
    self.assertIsNone(found.pose)
    self.assertIn("matches", found.reason)
    same = backend.estimate(view, view)
    np.testing.assert_array_equal(same.pose, np.eye(4))
    blind = backend.estimate(flat, view)
    self.assertIn("without recorded depth", blind.reason)
    through = pair_pose.relative_through(backend, [], flat, view)
    self.assertIn("not localised", through.reason)


if __name__ == "__main__":
  absltest.main()
