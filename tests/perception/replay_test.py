# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Recorded results are given out for their own source, and nothing else."""

import dataclasses
import json
import pathlib

import numpy as np
from absl.testing import absltest, parameterized

from perception import (
  cache,
  errors,
  observation,
  recorded,
  registry,
  replay,
  roles,
  video,
)
from tests.perception import media, records


class RecordedArraysTest(parameterized.TestCase):
  """Array roles."""

  def setUp(self):
    super().setUp()
    self.folder = pathlib.Path(self.create_tempdir().full_path)
    frames = np.stack([media.texture(4, 6, seed=k) for k in range(3)])
    self.clip = video.clip_from_frames(frames, fps=10)
    self.provenance = dataclasses.replace(
      records.PROVENANCE, source_sha256=self.clip.sha256
    )

  def _backend(self, role, record):
    path = self.folder / "a.npz"
    dataclasses.replace(record, provenance=self.provenance).save(path)
    return registry.get(role, "recorded", path=path)

  def test_masks_rows_and_objects(self):
    backend = self._backend("masks", records.masks())
    whole = backend.segment(self.clip, [])
    np.testing.assert_array_equal(whole.masks, records.masks().masks)
    self.assertEqual(whole.provenance.backend, "drawn")
    prompt = roles.ObjectPrompt(9, box=(0, 0, 1, 1))
    part = backend.segment(self.clip.select([0, 2]), [prompt])
    np.testing.assert_array_equal(part.masks, records.masks().masks[1:, [0, 2]])
    with self.assertRaisesRegex(errors.InputError, "no object 4"):
      backend.segment(self.clip, [roles.ObjectPrompt(4, box=(0, 0, 1, 1))])

  def test_masks_of_another_size(self):
    frames = np.zeros((3, 8, 6, 3), np.uint8)
    backend = self._backend("masks", records.masks())
    with self.assertRaisesRegex(errors.InputError, r"size \(4, 6\)"):
      backend.segment(video.clip_from_frames(frames, fps=1), [])

  def test_tracks_and_features(self):
    tracks = dataclasses.replace(records.tracks(), video_size=(4, 6))
    backend = self._backend("tracks", tracks)
    found = backend.track(self.clip.select([1, 2]), None)
    np.testing.assert_array_equal(found.xy, tracks.xy[1:])
    features = self._backend("features", records.features())
    found = features.extract(self.clip.select([1]))
    np.testing.assert_array_equal(found.patches, records.features().patches[1:])

  def test_geometry_of_a_file(self):
    record = dataclasses.replace(
      records.geometry(), frame_indices=np.arange(3), video_size=(4, 6)
    )
    backend = self._backend("geometry", record)
    found = backend.reconstruct(self.clip.select([0, 1]))
    np.testing.assert_array_equal(found.depth, record.depth[:2])
    with self.assertRaisesRegex(errors.InputError, "known cameras"):
      backend.reconstruct(
        self.clip,
        cameras=roles.Cameras(record.intrinsics, record.c2w),
      )

  def test_frames_that_were_not_recorded(self):
    backend = self._backend("geometry", records.geometry())  # 0, 5, 10
    clip = dataclasses.replace(
      self.clip, frames=np.zeros((3, 20, 28, 3), np.uint8)
    )
    with self.assertRaisesRegex(errors.InputError, "2 frames, first 1"):
      backend.reconstruct(clip)

  def test_another_source(self):
    backend = self._backend("masks", records.masks())
    other = video.clip_from_frames(self.clip.frames[::-1], fps=10)
    with self.assertRaisesRegex(errors.InputError, "of the record"):
      backend.segment(other, [])

  def test_record_that_names_no_source(self):
    self.provenance = dataclasses.replace(self.provenance, source_sha256="")
    backend = self._backend("masks", records.masks())
    self.assertEqual(backend.segment(self.clip, []).masks.shape, (2, 3, 4, 6))

  def test_geometry_of_a_folder(self):
    folder = media.write_seven_scenes(self.folder / "scene")
    backend = registry.get("geometry", "recorded", path=folder)
    source = recorded.open_rgbd(folder)
    found = backend.reconstruct(source.clip([0, 2]))
    np.testing.assert_array_equal(found.c2w, source.c2w[[0, 2]])
    with self.assertRaisesRegex(errors.InputError, "of the folder"):
      backend.reconstruct(self.clip)

  def test_settings_identify_the_file_not_its_name(self):
    first = self._backend("masks", records.masks()).info
    (self.folder / "a.npz").rename(self.folder / "b.npz")
    path = self.folder / "b.npz"
    self.assertEqual(registry.get("masks", "recorded", path=path).info, first)

  def test_detections(self):
    image = media.texture(20, 28, seed=0)
    digest = replay.image_digest(image)
    self.provenance = dataclasses.replace(self.provenance, source_sha256=digest)
    backend = self._backend("detections", records.detections())
    found = backend.detect(image, ["a red cup", "a spoon"])
    self.assertEqual(found.labels.tolist(), ["a red cup"])
    self.assertEmpty(backend.detect(image, ["a spoon"]).boxes)
    with self.assertRaisesRegex(errors.InputError, "no boxes for"):
      backend.detect(image[:, ::-1], ["a red cup"])


class RecordedLinesTest(parameterized.TestCase):
  """Roles whose results are values."""

  def setUp(self):
    super().setUp()
    self.path = pathlib.Path(self.create_tempdir().full_path) / "a.jsonl"
    self.images = np.stack([media.texture(4, 6, seed=k) for k in range(3)])

  def _write(self, *entries):
    lines = [e if isinstance(e, str) else json.dumps(e) for e in entries]
    self.path.write_text("\n".join(lines) + "\n\n")

  def test_answers(self):
    message = roles.ChatMessage("user", ("Is it a cup?", self.images[0]))
    request = roles.ChatRequest((message,))
    self._write(
      {
        "request_sha256": request.sha256(),
        "text": "Yes.",
        "finish_reason": "stop",
        "backend": "some-vlm",
        "backend_version": "7",
        "settings": {"quantised": False},
      }
    )
    backend = registry.get("vision_language", "recorded", path=self.path)
    answer = backend.answer(request)
    self.assertEqual((answer.text, answer.finish_reason), ("Yes.", "stop"))
    self.assertEqual(answer.provenance.backend, "some-vlm")
    with self.assertRaisesRegex(errors.InputError, "none for"):
      backend.answer(roles.ChatRequest((message,), seed=3))

  def test_distances_and_quality(self):
    digests = [replay.image_digest(image) for image in self.images]
    self._write(
      {"pair_sha256": cache.digest(digests[:2]), "value": 0.25},
      {"pair_sha256": cache.digest(digests[1:]), "value": 1},
    )
    backend = registry.get("perceptual_distance", "recorded", path=self.path)
    found = backend.distance(self.images[:2], self.images[1:])
    np.testing.assert_array_equal(found, np.float32([0.25, 1]))
    with self.assertRaises(errors.InputError):
      backend.distance(self.images[1:], self.images[:2])
    self._write(
      {"image_sha256": digests[0], "value": 71.5},
      {"image_sha256": cache.digest(digests), "value": 2.0},
    )
    for scores_clip, images, expected in (
      (False, self.images[:1], [71.5]),
      (True, self.images, [2.0]),
    ):
      backend = registry.get(
        "quality",
        "recorded",
        path=self.path,
        higher_is_better=True,
        scores_clip=scores_clip,
      )
      self.assertIsInstance(backend, roles.QualityBackend)
      np.testing.assert_array_equal(backend.score(images), expected)

  @parameterized.named_parameters(
    ("not_json", ["{"], "line 1"),
    ("no_value", [{"pair_sha256": "a"}], "line 1"),
    ("list", ["[]"], "line 1"),
    (
      "contradiction",
      [{"pair_sha256": "a", "value": 1}, {"pair_sha256": "a", "value": 2}],
      "line 2: found a second entry",
    ),
  )
  def test_bad_lines(self, entries, words):
    self._write(*entries)
    with self.assertRaisesRegex(errors.InputError, words):
      replay.RecordedDistances(path=self.path)

  def test_value_that_is_no_number(self):
    key = cache.digest([replay.image_digest(i) for i in self.images[:2]])
    for value in ("high", None, float("nan")):
      self._write({"pair_sha256": key, "value": value})
      backend = replay.RecordedDistances(path=self.path)
      with self.assertRaisesRegex(errors.InputError, "a finite number"):
        backend.distance(self.images[:1], self.images[1:2])

  def test_no_file(self):
    with self.assertRaises(errors.InputError):
      replay.RecordedAnswers(path=self.path)

  def test_boxes_without_picture(self):
    path = self.path.with_suffix(".npz")
    provenance = observation.Provenance("", "drawn", "1")
    dataclasses.replace(records.detections(), provenance=provenance).save(path)
    with self.assertRaisesRegex(errors.InputError, "source_sha256"):
      replay.RecordedDetections(path=path)


if __name__ == "__main__":
  absltest.main()
