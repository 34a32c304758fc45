# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""One perception stage for three protocols: what runs once, what is kept."""

import dataclasses
import json
import pathlib
import shutil
from unittest import mock

import numpy as np
from absl.testing import absltest, parameterized

from bin import cli, settings
from perception import (
  errors,
  geometry_pass,
  observation,
  offline_geometry,
  registry,
)
from protocols import perceive
from protocols.common import outputs, runner
from protocols.egogeneval import measure_backends, pair_pose
from protocols.orbia import baselines, builtin, dataset, dataset_writer
from protocols.orbia import perceive as orbia_perceive
from protocols.orbia import run as orbia_run
from protocols.pdi import observe as pdi_observe
from protocols.pdi import perceive as pdi_perceive
from protocols.pdi import run as pdi_run
from tests.bin import running
from tests.perception import media
from tests.protocols.orbia import tiny_world

_ABSENT = registry.Availability(False, "not installed here")


class _Passes:
  """Stands in for the `opencv` backend: the wall's true depth and cameras."""

  def __init__(self):
    self.frames = []

  def __call__(self, frames, *, cameras=None):
    del cameras
    world, rows = tiny_world.Wall(), frames.frame_indices
    self.frames.append(len(frames))
    count = len(frames)
    return observation.Geometry(
      depth=np.full((count, *tiny_world.SIZE), 4.0, np.float32),
      intrinsics=np.tile(world.intrinsics.astype(np.float32), (count, 1, 1)),
      c2w=world.poses()[np.minimum(rows, tiny_world.FRAMES - 1)],
      frame_indices=rows,
      video_size=frames.size,
      unit="metre",
      provenance=observation.Provenance(frames.sha256, "opencv", "stand-in"),
    )


class _Case(parameterized.TestCase):
  """A data set of one case, and one video of it."""

  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    cls.source = pathlib.Path(absltest.get_default_test_tmpdir()) / "perceive"
    shutil.rmtree(cls.source, ignore_errors=True)
    world = tiny_world.Wall()
    dataset_writer.write_dataset(cls.source, [tiny_world.case_content(world)])
    (case,) = dataset.read_dataset(cls.source)
    builtin.write_video(
      cls.source, case, world, baselines.BASELINES["perfect"], "perfect"
    )
    # The recorded geometry beside the video would be taken by `auto` only.
    cls.videos = cls.source / builtin.VIDEOS

  def setUp(self):
    super().setUp()
    self.root = pathlib.Path(self.create_tempdir().full_path)
    self.cache = self.root / "cache"
    self.passes = _Passes()
    self.enter_context(
      mock.patch.object(
        offline_geometry.OpenCvGeometry,
        "reconstruct",
        lambda _, frames, **extra: self.passes(frames, **extra),
      )
    )

  def _options(self, name):
    return runner.RunOptions(output=self.root / name, allow_partial=True)

  def _pdi(self, name, mode, **changes):
    config = pdi_run.PdiConfig(
      variant="paper",
      inputs=pdi_run.PdiInputs(clips=self.videos),
      perception=pdi_observe.PerceptionConfig(
        geometry="opencv", geometry_pass=mode, cache=self.cache, **changes
      ),
    )
    pdi_perceive.perceive(config, self._options(name))
    (path,) = (self.root / name).rglob("geometry.npz")
    return observation.Geometry.load(path)

  def _orbia_config(self, mode, **changes):
    return orbia_run.OrbiaConfig(
      variant="paper",
      inputs=orbia_run.OrbiaInputs(dataset=self.source, videos=self.videos),
      perception=orbia_perceive.PerceptionConfig(
        geometry="opencv", geometry_pass=mode, cache=self.cache, **changes
      ),
      tiers=("T1",),
    )

  def _orbia(self, name, mode):
    orbia_run.evaluate(self._orbia_config(mode), self._options(name))
    return outputs.read_json(self.root / name / "scores.json")["rows"]


class SharedGeometryTest(_Case):
  def test_one_pass_over_the_video_for_both_protocols(self):
    pdi = self._pdi("pdi", geometry_pass.VIDEO)
    rows = self._orbia("orbia", geometry_pass.VIDEO)
    self.assertEqual(self.passes.frames, [tiny_world.FRAMES])
    # PDI's frames at 24 instead of 16 a second: 61, each the nearest one's.
    self.assertLen(pdi.depth, 61)
    wall = tiny_world.Wall().poses()
    nearest = np.ceil(np.arange(61) * 16 / 24 - 0.5).astype(int)
    np.testing.assert_allclose(pdi.c2w, wall[nearest])
    self.assertEqual(rows[0]["T1"], 100.0)

  def test_what_ran_first_changes_nothing(self):
    first = self._orbia("a", geometry_pass.VIDEO)
    second = self._pdi("b", geometry_pass.VIDEO)
    self.cache = self.root / "another"
    np.testing.assert_array_equal(
      self._pdi("c", geometry_pass.VIDEO).c2w, second.c2w
    )
    self.assertEqual(self._orbia("d", geometry_pass.VIDEO), first)
    self.assertEqual(self.passes.frames, [tiny_world.FRAMES] * 2)

  def test_own_passes_are_kept_by_their_frames(self):
    for name in ("a", "b"):
      self._pdi(f"pdi_{name}", geometry_pass.OWN)
      self._orbia(f"orbia_{name}", geometry_pass.OWN)
    self.assertLen(self.passes.frames, 2)
    self.assertLess(self.passes.frames[1], 41)  # Orbia takes every second
    # All frames of the video: the list that the shared pass has.
    self._pdi("native", geometry_pass.OWN, sampling="native")
    self._orbia("shared", geometry_pass.VIDEO)
    self.assertLen(self.passes.frames, 3)

  def test_pairs_of_egogeneval_run_once_for_all_systems(self):
    config = measure_backends.PerceptionConfig(pose="opencv", cache=self.cache)
    views = [pair_pose.View(media.texture(48, 64, seed=k)) for k in range(3)]
    for _ in range(2):  # the physical pair, for two systems
      pose = measure_backends.pose_backend(config)
      pose.estimate(views[0], views[1])
    pose.estimate(views[0], views[2])
    self.assertEqual(self.passes.frames, [2, 2])


class StageTest(_Case):
  def test_scores_need_no_backend_after_the_stage(self):
    config = self._orbia_config(geometry_pass.OWN, masks="grabcut_flow")
    config = dataclasses.replace(config, tiers=("T1", "T3"))
    found = perceive.keep(orbia_run.evaluate, config, self._options("stage"))
    self.assertTrue(found.complete)
    self.assertRegex(found.text, r"^\d+ kept results")
    self.assertIn(f"--cache={self.cache}", found.text)
    with mock.patch.object(registry, "availability", return_value=_ABSENT):
      orbia_run.evaluate(config, self._options("scores"))
    measured, scored = (
      outputs.read_json(self.root / name / "scores.json")
      for name in ("stage/measured", "scores")
    )
    self.assertEqual(scored["rows"], measured["rows"])
    self.assertGreater(scored["cases"][0]["values"]["return_psnr"], 90.0)
    # Other settings were never perceived: said so, nothing invented.
    other = self._orbia_config(geometry_pass.VIDEO)
    with mock.patch.object(registry, "availability", return_value=_ABSENT):
      orbia_run.evaluate(other, self._options("other"))
    scores = outputs.read_json(self.root / "other" / "scores.json")
    self.assertEqual(scores["cases"][0]["status"], "failed")
    self.assertIn("no kept result", scores["cases"][0]["reason"])

  def test_command(self):
    flags = (
      "--protocol=orbia",
      f"--orbia_dataset={self.source}",
      f"--orbia_videos={self.videos}",
      "--tiers=T3",
    )
    stage = self.root / "stage"
    done = running.run("perceive", *flags, f"--output={stage}")
    self.assertEqual(done.returncode, cli.OK, done.stderr)
    kept = sorted((stage / "cache").rglob("*.npz"))
    self.assertNotEmpty(kept)
    dates = [path.stat().st_mtime_ns for path in kept]
    done = running.run(
      "evaluate",
      *flags,
      f"--output={self.root / 'out'}",
      f"--cache={stage / 'cache'}",
    )
    self.assertIn(done.returncode, (cli.OK, cli.TOTALS_REFUSED), done.stderr)
    self.assertEqual(sorted((stage / "cache").rglob("*.npz")), kept)
    self.assertEqual([path.stat().st_mtime_ns for path in kept], dates)

  @parameterized.parameters("api_key", "apikey", "token", "Password")
  def test_a_secret_among_the_settings_is_refused_unseen(self, name):
    text = json.dumps({"openai_endpoint": {name: "sk-very-secret"}})
    with self.assertRaisesRegex(errors.InputError, "environment") as caught:
      settings.backend_settings(text, flag="--backend_settings")
    self.assertNotIn("sk-very-secret", str(caught.exception))
    fine = {"openai_endpoint": {"api_key_env": "KEY", "max_tokens": 3}}
    found = settings.backend_settings(json.dumps(fine), flag="--f")
    self.assertEqual(found, fine)


if __name__ == "__main__":
  absltest.main()
