# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Pictures of Orbia and EgoGenEval cases; where their inputs are found."""

import copy
import dataclasses
import functools
import pathlib
import shutil

import numpy as np
from absl.testing import absltest

from perception import cache, observation, roles, video
from protocols.report import (
  media,
  media_egogeneval,
  orbia_video,
  places,
  sources,
  steps,
  windows,
)
from tests.protocols.report import worlds


class OrbiaTest(absltest.TestCase):
  def setUp(self) -> None:
    super().setUp()
    self.root = pathlib.Path(self.create_tempdir().full_path)
    self.video = worlds.write_orbia_data(self.root / "data")
    self.record = worlds.orbia_record(self.video)

  def _run(self, record=None, *, data=(), **changes):
    folder = self.root / f"run{len(list(self.root.iterdir()))}"
    worlds.write_run(folder, record or self.record, **changes)
    return sources.load([folder], data)[0][0]

  def test_events_falls_revisits_and_both_trajectories(self):
    found = media.gather(self._run(), self.record, ())
    self.assertEqual(found.note, "")
    titles = [section.title for section in found.sections]
    self.assertEqual(
      titles,
      [
        "Frames at the events",
        "Where scores fall: 1.25-2.5 s",
        "One world? Frame 27 seen from frame 13",
      ],
    )
    events, fall, revisit = found.sections
    self.assertEqual(events.shots[0].caption, "Frame 0: q0")
    self.assertIn("first visit", events.shots[2].caption)
    self.assertEqual(
      fall.about, "Against the best window before: depth short from 90 to 40."
    )
    # 1.25 s and 2.5 s are frames 20 and 40.
    self.assertEqual(
      [shot.name for shot in fall.shots], ["w1-20", "w1-30", "w1-39"]
    )
    # A still wall, exact depth: all that is in view is where it should be.
    self.assertStartsWith(revisit.about.split("pixels: ")[1], "100% seen again")
    self.assertIn("requested, recovered", found.plans[0].description)
    names = [shot.name for s in found.sections for shot in s.shots]
    self.assertLen(set(names), len(names))

  def test_recovered_lengths_are_brought_to_the_requests_unit(self):
    found = orbia_video.load(self._run(), self.record)
    poses = orbia_video.trajectories(found, self.record)
    # The record says that one recovered unit is two of the request.
    np.testing.assert_allclose(
      poses["recovered"][-1, :3, 3], 2.0 * poses["requested"][-1, :3, 3]
    )
    far = found.geometry.frame_indices.tolist().index(20)
    self.assertAlmostEqual(poses["recovered"][far, 0, 3], 2.0)

  def test_of_the_pairs_of_a_window_the_worst_is_shown(self):
    tier = dict(self.record.details["tiers"]["T6"])
    tier["details"] = {
      "curves": {"depth_short": [90.0, 40.0]},
      "bounds": [[0.0, 0.1], [0.0, 2.5]],
    }
    record = dataclasses.replace(self.record, details={"tiers": {"T6": tier}})
    found = media.gather(self._run(record), record, ())
    pair = found.sections[2]
    self.assertEqual(pair.title, "One world? Frame 0 seen from frame 32")
    self.assertIn("pairs 32 frames apart", pair.about)

  def test_without_a_data_set_the_ends_are_shown_and_it_is_said(self):
    alone = self.root / "a" / "b" / "c" / "d" / "e" / "tiny.mp4"
    alone.parent.mkdir(parents=True)
    shutil.copy(self.video, alone)
    record = worlds.orbia_record(alone)
    found = media.gather(self._run(record), record, ())
    self.assertEqual(
      [shot.caption for shot in found.sections[0].shots],
      ["Frame 0: first frame", "Frame 40: last frame"],
    )
    self.assertIn("name it with --data", found.note)
    self.assertIn("no tiny.geometry.npz beside the video", found.note)
    self.assertEmpty(found.plans)
    for run in (
      self._run(record, data=(self.root / "data",)),
      self._run(record, flags={"orbia_dataset": str(self.root / "data")}),
    ):
      found = media.gather(run, record, ())
      self.assertIn("Frame 6: qe1", found.sections[0].shots[1].caption)
      self.assertNotIn("--data", found.note)

  def test_a_video_that_is_gone_or_broken_is_said(self):
    record = worlds.orbia_record("/gone/tiny.mp4")
    found = media.gather(self._run(record), record, ())
    self.assertIn("/gone/tiny.mp4 is not here", found.note)
    failed = dataclasses.replace(
      self.record, provenance={}, status="failed", reason="x"
    )
    self.assertIn("names no clip", media.gather(self._run(), failed, ()).note)
    run = self._run(flags={"orbia_videos": str(self.video.parents[1])})
    self.assertEmpty(media.gather(run, failed, ()).note)
    self.video.write_bytes(b"nothing")
    found = media.gather(self._run(), self.record, ())
    self.assertIn("tiny.mp4", found.note)
    self.assertEmpty(found.sections)

  def test_geometry_in_the_published_form_is_read(self):
    file = self.video.with_suffix(".geometry.npz")
    stored = dict(np.load(file))
    file.unlink()
    folder = self.video.with_suffix(".geometry")
    (folder / "depth").mkdir(parents=True)
    for name, key in (
      ("poses_c2w", "c2w"),
      ("frame_indices", "frame_indices"),
      ("intrinsics", "intrinsics"),
    ):
      np.save(folder / f"{name}.npy", stored[key])
    for frame, depth in zip(
      stored["frame_indices"], stored["depth"], strict=True
    ):
      np.savez(folder / "depth" / f"frame_{frame:06d}.npz", depth=depth)
    found = media.gather(self._run(), self.record, ())
    self.assertIn("One world?", found.sections[-1].title)

  def test_geometry_that_a_backend_recovered_is_found_in_the_cache(self):
    file = self.video.with_suffix(".geometry.npz")
    stored = observation.Geometry.load(file)
    file.unlink()
    opened = video.open_video(self.video)
    info = roles.BackendInfo("geometry", "da3", "1", "", False)
    for frames in (opened.select(stored.frame_indices), opened):
      folder = self.root / f"cache{len(frames)}"
      source = cache.source_digest(frames)
      kept = dataclasses.replace(stored, provenance=info.provenance(source))
      cache.Cache(folder).record(
        observation.Geometry,
        cache.result_key(source, info),
        functools.partial(copy.copy, kept),
      )
      for backend, wanted in (("da3", True), ("other", False)):
        record = worlds.orbia_record(
          self.video,
          provenance={"source": str(self.video), "geometry_backend": backend},
        )
        run = self._run(record, flags={"cache": str(folder)})
        found = orbia_video.load(run, record)
        self.assertEqual(found.geometry is not None, wanted)


class WindowsTest(absltest.TestCase):
  def test_the_largest_fall_from_the_best_window_before(self):
    record = worlds.orbia_record("")
    (drop,) = windows.drops(record)
    self.assertEqual(
      (drop.name, drop.window, drop.before, drop.value, drop.geometric),
      ("depth short", 1, 90.0, 40.0, True),
    )
    (chart,) = windows.line_charts(record)
    self.assertEqual(chart.marks[0].text, "1.25 s: 40")
    self.assertEqual([t.text for t in chart.x_ticks], ["0 s", "1.25 s"])
    self.assertEqual(chart.y_ticks[-1].text, "100")

  def test_rises_gaps_and_small_falls_are_no_drops(self):
    tier = {"details": {"bounds": [[0, 1], [1, 2], [2, 3]], "curves": {}}}
    for curve in ([1.0, 2.0, 3.0], [None, 5.0, None], [5.0, 4.5, 4.1], []):
      tier["details"]["curves"] = {"move": curve}
      record = worlds.orbia_record("", details={"tiers": {"T6": tier}})
      self.assertEmpty(windows.drops(record))
    tier["details"]["curves"] = {"move": [4.0, 2.0, None]}
    record = worlds.orbia_record("", details={"tiers": {"T6": tier}})
    self.assertEqual(windows.drops(record)[0].window, 1)

  def test_a_record_without_windows(self):
    record = worlds.orbia_record("", details={})
    self.assertEmpty(windows.drops(record))
    self.assertEmpty(windows.line_charts(record))


class EgoGenEvalTest(absltest.TestCase):
  def setUp(self) -> None:
    super().setUp()
    self.root = pathlib.Path(self.create_tempdir().full_path)
    self.folder, self.record = worlds.write_egogeneval(self.root)

  def _gather(self, record=None):
    run = sources.load([self.folder])[0][0]
    record = record or self.record
    found = steps.read(run)
    return media.gather(
      run,
      record,
      (),
      cmg=found.cmg[self.record.key],
      ssp=found.ssp[self.record.key],
    )

  def test_each_step_has_source_target_prediction_and_numbers(self):
    found = self._gather()
    self.assertEqual(found.note, "")
    self.assertEqual(
      [section.title for section in found.sections],
      [
        "Step 1: asked and generated",
        "One world? The view before seen from the view after",
        "Step 2: asked and generated",
        "One world? The view before seen from the view after",
      ],
    )
    step = found.sections[0]
    self.assertEqual(
      [shot.name for shot in step.shots],
      ["step1-source", "step1-target", "step1-prediction"],
    )
    self.assertIn("with 2 boxes", step.shots[1].description)
    self.assertIn("with 1 boxes", step.shots[2].description)
    self.assertIn("1 are matched, 1 missing; 0 are extra", step.about)
    self.assertEqual(dict(step.facts)["requested"], "+0.4 m")
    self.assertEqual(dict(step.facts)["recovered"], "+0.3 m")
    self.assertEqual(dict(step.facts)["direction"], "right")

  def test_boxes_are_drawn_on_the_reduced_target(self):
    run = sources.load([self.folder])[0][0]
    first, second = media_egogeneval.load(run, self.record)
    self.assertEqual(first.target.shape, (24, 32, 3))
    self.assertEqual(first.prediction.shape, first.target.shape)
    # The second step starts from what the system itself made.
    self.assertEqual(second.source.shape, (40, 40, 3))
    on_target, on_prediction = media_egogeneval.boxes(
      {
        "objects": [
          {"gt_idx": 3, "status": "missing", "gt_box": [0, 0, 4, 4]},
          {"gt_idx": 4, "status": "match", "gt_box": [1, 1, 2, 2],
           "pred_box": [2, 2, 3, 3]},
          {"gt_idx": None, "status": "hallucination", "pred_box": [5, 5, 9, 9]},
        ]
      }
    )  # fmt: skip
    self.assertEqual([b[2] for b in on_target], [True, False])
    self.assertEqual([b[3] for b in on_target], ["3", "4"])
    self.assertEqual(
      [b[0] for b in on_prediction], [[2, 2, 3, 3], [5, 5, 9, 9]]
    )

  def test_what_changed_or_is_gone_is_said(self):
    images = [dict(row) for row in self.record.provenance["images"]]
    images[0]["sha256"] = "0" * 64
    images[1]["target"] = "/gone/target.png"
    changed = dataclasses.replace(self.record, provenance={"images": images})
    found = self._gather(changed)
    self.assertIn("step 1: the prediction changed", found.note)
    self.assertIn("step 2: the target is not here", found.note)
    titles = [section.title for section in found.sections]
    self.assertLen([t for t in titles if t.startswith("One world?")], 1)

  def test_frozen_evidence_names_no_images(self):
    found = self._gather(dataclasses.replace(self.record, provenance={}))
    self.assertEmpty(found.sections)
    self.assertIn("frozen evidence", found.note)

  def test_without_evaluation_frames_pictures_are_reduced_by_data_set(self):
    (self.root / "eval_frames.jsonl").unlink()
    found = self._gather()
    self.assertEqual(
      [section.title for section in found.sections],
      ["Step 1: asked and generated", "Step 2: asked and generated"],
    )
    run = sources.load([self.folder])[0][0]
    self.assertEqual(
      media_egogeneval.load(run, self.record)[0].target.shape, (24, 32, 3)
    )


class PlacesTest(absltest.TestCase):
  def test_a_path_that_climbs_out_is_not_looked_for_in_the_run(self):
    root = pathlib.Path(self.create_tempdir().full_path)
    folder = worlds.write_run(root / "run", worlds.orbia_record(""))
    (root / "secret.mp4").write_text("x")
    (folder / "inside.mp4").write_text("x")
    run = sources.load([folder])[0][0]
    self.assertEqual(
      places.locate("/else/where/inside.mp4", run), folder / "inside.mp4"
    )
    self.assertIsNone(places.locate("/else/where/../secret.mp4", run))
    self.assertIsNone(places.locate("", run))


if __name__ == "__main__":
  absltest.main()
