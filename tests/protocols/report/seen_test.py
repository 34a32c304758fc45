# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Pictures of PDI cases: what is found beside a clip or in a cache."""

import dataclasses
import json
import pathlib
import unittest.mock

import numpy as np
from absl.testing import absltest

from perception import cache, observation, roles, video
from protocols.report import case_view, cases, media, seen, sources, write
from protocols.report.case_pages import PageOptions
from tests.protocols.report import examples
from tests.shared_files import shared


class BesideTest(absltest.TestCase):
  def setUp(self) -> None:
    super().setUp()
    self.root = pathlib.Path(self.create_tempdir().full_path)
    self.folder = self.root / "calibration" / "a" / "1"
    examples.write_clip(self.folder)

  def test_pictures_and_trajectory_of_a_run_that_was_moved(self):
    record = examples.pdi_record(
      "a", "1", pdi=0.3, source="/elsewhere/run/calibration/a/1/clip.mp4"
    )
    examples.write_pdi_run(self.root, [record])
    output = self.root / "report"
    write.write(write.ReportConfig((self.root,), output))
    text = (output / "cases/r0/0.html").read_text(encoding="utf-8")
    self.assertIn('loading="lazy" src="0-11.jpg"', text)
    self.assertIn("peak of the scale-depth residual", text)
    self.assertIn("From above", text)
    self.assertIn("no tracks beside the clip", text)
    self.assertTrue((output / "cases/r0/0-11.jpg").exists())

  def test_pictures_can_be_embedded_or_left_out(self):
    record = examples.pdi_record(
      "a", "1", pdi=0.3, source=str(self.folder / "clip.mp4")
    )
    examples.write_pdi_run(self.root, [record])
    for options, wanted in (
      (PageOptions(embed=True), "data:image/jpeg;base64,"),
      (PageOptions(pictures=0), "--pictures=-1 draws all"),
    ):
      output = self.root / f"report{options.pictures}"
      write.write(write.ReportConfig((self.root,), output, options))
      text = (output / "cases/r0/0.html").read_text(encoding="utf-8")
      self.assertIn(wanted, text)
      self.assertEmpty(list(output.rglob("*.jpg")))

  def _run(self, record, **changes):
    examples.write_pdi_run(self.root, [record])
    return sources.load([self.root], **changes)[0][0]

  def _record(self, **changes):
    clip = str(self.folder / "clip.mp4")
    return examples.pdi_record("a", "1", pdi=0.3, source=clip, **changes)

  def _gathered(self, run, record):
    view = case_view.build(record, cases.COLUMNS["pdi"])
    return media.gather(run, record, view.events)

  def test_each_peak_has_its_pair_of_views(self):
    record = self._record()
    found = self._gathered(self._run(record), record)
    frames, pair = found.sections
    self.assertEqual(frames.title, "Frames at the events")
    # The peaks at frames 11 and 10 lie so near that one pair says it.
    self.assertEqual(pair.title, "One world? Frame 3 seen from frame 11")
    self.assertLen(pair.shots, 6)
    self.assertIn("moving object, left out", pair.about)
    self.assertLen({shot.name for s in found.sections for shot in s.shots}, 8)
    for shot in pair.shots:
      self.assertStartsWith(shot.jpeg, b"\xff\xd8")
      self.assertNotEmpty(shot.description)

  def test_arrays_of_other_frames_are_not_shown(self):
    record = self._record(frames=11)
    found = seen.load(self._run(record), record)
    self.assertIsNone(found.clip)
    self.assertIn("the record has 11 frames, the files here 12", found.note)

  def test_a_clip_alone_is_resampled_as_the_protocol_does(self):
    for name in ("masks", "geometry"):
      (self.folder / f"{name}.npz").unlink()
    # Half the rate, 12 frames -> 6, of which the record used the middle 4.
    record = self._record(frames=4, fps=12.0)
    run = self._run(record)
    found = seen.load(run, record)
    self.assertLen(found.clip, 4)
    self.assertLen(seen.shots(found, [(3, "x")]), 1)
    unknown = seen.load(run, self._record(frames=4))
    self.assertIsNone(unknown.clip)

  def test_of_a_clip_beyond_the_memory_limit_no_frames_are_shown(self):
    record = self._record()
    with unittest.mock.patch.object(seen, "_MAX_BYTES", 1000):
      found = seen.load(self._run(record), record)
    self.assertIsNone(found.clip)
    self.assertIn("the clip cannot be read", found.note)
    self.assertIsNotNone(found.geometry)

  def test_events_of_one_frame_share_a_picture_and_others_are_dropped(self):
    record = self._record()
    found = seen.load(self._run(record), record)
    shots = seen.shots(found, [(3, "x"), (3, "y"), (99, "z"), (-1, "w")])
    self.assertEqual([shot.caption for shot in shots], ["Frame 3: x, y"])

  def test_a_clip_that_is_gone_is_said(self):
    record = examples.pdi_record("a", "1", pdi=0.3, source="/gone/clip.mp4")
    found = media.gather(self._run(record), record, ())
    self.assertIn("/gone/clip.mp4 is not here", found.note)

  def test_arrays_that_the_runs_list_names_are_found(self):
    elsewhere = self.root / "arrays"
    elsewhere.mkdir()
    for name in ("masks", "geometry"):
      (self.folder / f"{name}.npz").rename(elsewhere / f"my_{name}.npz")
    line = {
      "system": "a",
      "case_id": "1",
      "video": str(self.folder / "clip.mp4"),
      "masks": "my_masks.npz",
      "geometry": "my_geometry.npz",
    }
    listed = elsewhere / "list.jsonl"
    listed.write_text(json.dumps(line) + "\n")
    record = self._record()
    for flags, wanted in (({"list": str(listed)}, True), ({}, False)):
      examples.write_pdi_run(self.root, [record], flags=flags)
      run = sources.load([self.root])[0][0]
      found = seen.load(run, record)
      self.assertEqual(found.masks is not None, wanted)
      self.assertEqual(found.geometry is not None, wanted)

  def test_a_case_that_failed_is_found_by_what_the_run_was_given(self):
    clips = self.root / "clips" / "a"
    clips.mkdir(parents=True)
    (self.folder / "clip.mp4").rename(clips / "1.mp4")
    record = dataclasses.replace(
      examples.pdi_record("a", "1", pdi=None, status="failed", reason="x"),
      provenance={},
      coverage={},
    )
    for flags, wanted in (
      ({"clips": str(self.root / "clips")}, ["first frame", "last frame"]),
      ({"clips": "/gone"}, []),
      ({}, []),
    ):
      examples.write_pdi_run(self.root / "run", [record], flags=flags)
      run = sources.load([self.root / "run"])[0][0]
      found = self._gathered(run, record)
      shots = [shot for section in found.sections for shot in section.shots]
      self.assertEqual([s.caption.split(": ")[1] for s in shots], wanted)
      self.assertEqual("the record names no clip" in found.note, not wanted)

  def test_only_the_rows_of_the_window_are_shown(self):
    for name in ("masks", "geometry"):
      (self.folder / f"{name}.npz").unlink()
    record = self._record(frames=5)
    examples.write_pdi_run(self.root, [record], window=[4, 9])
    run = sources.load([self.root])[0][0]
    found = seen.load(run, record)
    self.assertEqual(found.clip.frame_indices.tolist(), [4, 5, 6, 7, 8])

  def test_a_recorded_sequence_brings_its_geometry(self):
    folder = shared("data/sevenscenes")
    record = examples.pdi_record(
      "a",
      "1",
      pdi=0.3,
      source=str(folder),
      frames=60,
      backends={"geometry": {"backend": "recorded"}},
    )
    run = self._run(record)
    found = seen.load(run, record)
    self.assertLen(found.clip, 60)
    self.assertEqual(found.geometry.unit, "metre")
    self.assertIn("no masks beside the clip", found.note)


class CachedTest(absltest.TestCase):
  """Arrays that a run kept in its cache, found by their provenance."""

  def setUp(self) -> None:
    super().setUp()
    self.root = pathlib.Path(self.create_tempdir().full_path)
    examples.write_clip(self.root / "clip")
    self.file = self.root / "clip" / "clip.mp4"
    self.masks = observation.Masks.load(self.root / "clip" / "masks.npz")
    for name in ("masks", "geometry"):
      (self.root / "clip" / f"{name}.npz").unlink()
    self.clip = video.read_clip(self.file)
    self.cache = self.root / "cache"

  def _keep(self, *, prompt: object, version: str = "1") -> None:
    """A mask backend's result, kept as `bin.evaluate --cache` keeps it."""
    info = roles.BackendInfo("masks", "grabcut_flow", version, "", False)
    source = cache.source_digest(self.clip)
    record = observation.Masks(
      self.masks.masks,
      self.masks.object_ids,
      self.masks.frame_indices,
      info.provenance(source),
    )
    key = cache.result_key(source, info, prompts=prompt)
    cache.Cache(self.cache).record(observation.Masks, key, lambda: record)
    self.used = {
      "backend": "grabcut_flow",
      "backend_version": version,
      "source_sha256": source,
      "weights_sha256": "",
      "settings": {},
    }

  def _load(self, **changes):
    record = examples.pdi_record(
      "a", "1", pdi=0.3, source=str(self.file), backends={"masks": self.used}
    )
    examples.write_pdi_run(self.root / "run", [record], **changes)
    run = sources.load([self.root / "run"])[0][0]
    return seen.load(run, record)

  def test_masks_are_found_by_the_flag_of_the_run(self):
    self._keep(prompt=[1, 2])
    self._keep(prompt=[1, 2], version="0")
    self._keep(prompt=[1, 2])
    found = self._load(flags={"cache": str(self.cache)})
    np.testing.assert_array_equal(found.masks.masks, self.masks.masks)
    self.assertIn("no tracks beside the clip", found.note)
    self.assertIsNone(self._load(flags={}).masks)

  def test_another_version_is_not_taken_and_two_prompts_are_no_answer(self):
    self._keep(prompt=[1, 2])
    self.used = {**self.used, "backend_version": "2"}
    found = self._load(flags={"cache": str(self.cache)})
    self.assertIsNone(found.masks)
    self.assertIn("no masks in the cache", found.note)

  def test_two_prompts_are_no_answer(self):
    self._keep(prompt=[1, 2])
    self._keep(prompt=[3, 4])
    found = self._load(flags={"cache": str(self.cache)})
    self.assertIsNone(found.masks)
    self.assertIn("2 masks of this clip in the cache", found.note)

  def test_what_is_no_entry_is_passed_over(self):
    self._keep(prompt=[1, 2])
    folder = next(self.cache.glob("??"))
    (folder / "broken.npz").write_bytes(b"PK\x03\x04 nothing")
    np.savez(folder / "other.npz", depth=np.zeros(3))
    found = self._load(flags={"cache": str(self.cache)})
    self.assertIsNotNone(found.masks)


if __name__ == "__main__":
  absltest.main()
