# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""From videos on disk to scores: tiers added later, bad input, ordering."""

import json
import pathlib
import shutil

import numpy as np
from absl.testing import absltest

from perception import observation, video
from protocols.common import records, runner, store
from protocols.orbia import baselines, builtin, dataset, dataset_writer, run
from tests.protocols.orbia import tiny_world

_SYSTEMS = ("perfect", "swap")


def _evaluate(root, output, *, tiers, variant="paper", partial=True):
  config = run.OrbiaConfig(
    variant=variant,
    inputs=run.OrbiaInputs(dataset=root, videos=root / builtin.VIDEOS),
    tiers=tiers,
  )
  options = runner.RunOptions(output=output, allow_partial=partial)
  return run.evaluate(config, options)


class RunTest(absltest.TestCase):
  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    cls.temporary = pathlib.Path(absltest.get_default_test_tmpdir()) / "orbia"
    shutil.rmtree(cls.temporary, ignore_errors=True)
    cls.root = cls.temporary / "data"
    world = tiny_world.Wall()
    dataset_writer.write_dataset(cls.root, [tiny_world.case_content(world)])
    (case,) = dataset.read_dataset(cls.root)
    for name in _SYSTEMS:
      builtin.write_video(
        cls.root, case, world, baselines.BASELINES[name], name
      )

  def _copy(self, name):
    target = self.temporary / name
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(self.root, target)
    return target

  def _records(self, output):
    return store.read_records(output)

  def test_tiers_added_later_end_with_the_same_scores(self):
    once, parts = self.temporary / "once", self.temporary / "parts"
    for folder in (once, parts):
      shutil.rmtree(folder, ignore_errors=True)
    _evaluate(self.root, once, tiers=("T1", "T2", "T3", "T4"))
    _evaluate(self.root, parts, tiers=("T1", "T2"))
    first = self._records(parts)["perfect", "tiny"]
    self.assertEqual(sorted(first.details["tiers"]), ["T1", "T2"])
    _evaluate(self.root, parts, tiers=("T3", "T4"))
    self.assertEqual(
      (once / "scores.json").read_bytes(), (parts / "scores.json").read_bytes()
    )
    log = (parts / "records.jsonl").read_bytes()
    _evaluate(self.root, parts, tiers=("T1",))  # nothing left to do
    self.assertEqual((parts / "records.jsonl").read_bytes(), log)
    found = self._records(once)
    good, bad = (found[s, "tiny"] for s in _SYSTEMS)
    self.assertEqual((good.status, bad.status), (records.OK, records.OK))
    # The other place costs T3 and T4 and leaves T1 as it is.
    self.assertEqual(good.values["T1"], 100.0)
    self.assertEqual(bad.values["T1"], 100.0)
    self.assertGreater(good.values["return_psnr"], 90.0)
    self.assertLess(bad.values["return_psnr"], 30.0)
    self.assertLess(bad.values["T4"], good.values["T4"] - 10.0)
    # An anchor that the query does not show is left out, not scored.
    part = good.details["tiers"]["T3"]["details"]
    self.assertEqual(part["empty_query_anchors"], ["A2"])
    # Components that nobody supplied are missing, never zero.
    self.assertIsNone(good.values["quality_hps"])
    self.assertIsNotNone(good.values["quality_flicker"])
    self.assertIsNone(good.values["T2"])
    self.assertFalse(good.comparable_to_published)

  def test_bad_videos_are_declared(self):
    root, output = self._copy("bad"), self.temporary / "bad_run"
    shutil.rmtree(output, ignore_errors=True)
    videos = root / builtin.VIDEOS
    (videos / "perfect/tiny.geometry.npz").unlink()
    world = tiny_world.Wall()
    short = [world.shot(f).image for f in range(30)]
    video.write_video(videos / "swap/tiny.mp4", short, 16, lossless=True)
    outcome = _evaluate(root, output, tiers=("T1", "T4"), partial=False)
    self.assertFalse(outcome.complete)
    found = self._records(output)
    gone = found["perfect", "tiny"]
    self.assertEqual(gone.status, records.MISSING)
    self.assertIn("T1: no tiny.geometry.npz beside the video", gone.reason)
    cut = found["swap", "tiny"]
    self.assertEqual(cut.status, records.FAILED)
    self.assertIn("found 30 decoded frames; expected 41", cut.reason)
    scores = json.loads((output / "scores.json").read_text())
    self.assertEqual(scores["rows"], [])

  def test_bad_geometry_is_declared(self):
    root, output = self._copy("geometry"), self.temporary / "geometry_run"
    shutil.rmtree(output, ignore_errors=True)
    path = root / builtin.VIDEOS / "perfect/tiny.geometry.npz"
    stored = observation.Geometry.load(path)
    stored.select(np.arange(1, len(stored.frame_indices))).save(path)
    other = root / builtin.VIDEOS / "swap/tiny.geometry.npz"
    with np.load(other) as content:
      arrays = {name: content[name] for name in content.files}
    arrays["video_size"] = np.array([90, 120])
    np.savez(other, **arrays)
    _evaluate(root, output, tiers=("T1",))
    found = self._records(output)
    late = found["perfect", "tiny"]
    self.assertEqual(late.status, records.FAILED)
    self.assertIn("frame 0 has no recovered pose", late.reason)
    size = found["swap", "tiny"]
    self.assertEqual(size.status, records.FAILED)
    self.assertIn("video_size: found (90, 120)", size.reason)

  def test_a_camera_that_stays_is_degenerate(self):
    root, world = self._copy("still"), tiny_world.Wall()
    (case,) = dataset.read_dataset(root)
    shutil.rmtree(root / builtin.VIDEOS / "swap")
    builtin.write_video(root, case, world, baselines.freeze, "freeze")
    output = self.temporary / "still_run"
    shutil.rmtree(output, ignore_errors=True)
    outcome = _evaluate(root, output, tiers=("T1", "T4", "T5"), partial=False)
    self.assertFalse(outcome.complete)
    found = self._records(output)["freeze", "tiny"]
    # What it does not follow counts; what would be full marks does not.
    self.assertEqual(found.status, records.OK)
    self.assertLess(found.values["T1"], 50.0)
    self.assertIsNone(found.values["T4"])
    self.assertIsNone(found.values["revisit_same_psnr"])
    self.assertIsNone(found.values["depth_short"])
    self.assertEqual(
      [
        f"{tier}: the recovered camera stays where it is"
        for tier in ("T4", "T5")
      ],
      [note.removeprefix("degenerate: ") for note in found.notes],
    )
    scores = json.loads((output / "scores.json").read_text())
    entry = scores["systems"]["freeze"]
    self.assertEqual(entry["degenerate_tiers"], {"T4": 1, "T5": 1})
    self.assertIn("without a meaningful tier", entry["refused"])
    _evaluate(root, output, tiers=("T1", "T4", "T5"))
    rows = json.loads((output / "scores.json").read_text())["rows"]
    still = next(row for row in rows if row["model"] == "freeze")
    self.assertLess(still["T1"], 50.0)
    self.assertIsNone(still["T4"])
    # The released code scores it, and so does that variant.
    other = self.temporary / "still_released"
    shutil.rmtree(other, ignore_errors=True)
    _evaluate(root, other, tiers=("T4",), variant="released")
    scored = self._records(other)["freeze", "tiny"]
    self.assertEqual(scored.values["revisit_same_psnr"], 100.0)

  def test_a_rate_that_lies(self):
    root, world = self._copy("rate"), tiny_world.Wall()
    frames = [world.shot(f).image for f in range(tiny_world.FRAMES)]
    path = root / builtin.VIDEOS / "perfect/tiny.mp4"
    video.write_video(path, frames, 24, lossless=True)
    shutil.rmtree(root / builtin.VIDEOS / "swap")
    geometry_file = path.with_suffix(".geometry.npz")
    with np.load(geometry_file) as content:
      arrays = {name: content[name] for name in content.files}
    arrays["source_sha256"] = np.asarray("")
    np.savez(geometry_file, **arrays)
    for variant, word in (("paper", "ignored"), ("released", "followed")):
      output = self.temporary / f"rate_{variant}"
      shutil.rmtree(output, ignore_errors=True)
      _evaluate(root, output, tiers=("T1",), variant=variant)
      found = self._records(output)["perfect", "tiny"]
      self.assertIn(word, found.notes[0])
      self.assertIn("24 frames per second, not 16", found.notes[0])
      if variant == "paper":
        self.assertEqual(found.values["T1"], 100.0)

  def test_no_reference_is_missing(self):
    root, output = self._copy("reference"), self.temporary / "reference_run"
    shutil.rmtree(output, ignore_errors=True)
    shutil.rmtree(root / "references/tiny")
    _evaluate(root, output, tiers=("T3",))
    found = self._records(output)["perfect", "tiny"]
    self.assertEqual(found.status, records.MISSING)
    self.assertIn("T3: no reference", found.reason)


if __name__ == "__main__":
  absltest.main()
