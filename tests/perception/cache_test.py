# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""The cache goes by content and trusts nothing."""

import dataclasses
import pathlib

import numpy as np
from absl.testing import absltest, parameterized

from perception import cache, errors, observation, roles, storage, video
from tests.perception import media, records

_INFO = roles.BackendInfo(
  role="masks",
  name="drawn",
  version="1",
  licence="none",
  comparable_to_published=False,
  weights_sha256="aa",
  settings={"side": 3},
)


class KeyTest(parameterized.TestCase):
  """What changes a key and what does not."""

  def setUp(self):
    super().setUp()
    frames = media.numbered_frames(4, 8, 16)
    self.clip = video.clip_from_frames(frames, fps=10, name="one")

  def _key(self, clip=None, info=_INFO, **inputs):
    source = cache.source_digest(clip or self.clip)
    return cache.result_key(source, info, **inputs)

  def test_name_and_rate_play_no_part(self):
    renamed = dataclasses.replace(self.clip, name="two")
    self.assertEqual(self._key(), self._key(renamed))

  @parameterized.named_parameters(
    ("role", {"role": "tracks"}),
    ("name", {"name": "other"}),
    ("version", {"version": "2"}),
    ("weights", {"weights_sha256": "bb"}),
    ("settings", {"settings": {"side": 4}}),
  )
  def test_backend_counts(self, change):
    info = dataclasses.replace(_INFO, **change)
    self.assertNotEqual(self._key(), self._key(info=info))

  def test_frames_and_inputs_count(self):
    box = roles.ObjectPrompt(1, box=(0, 0, 3, 3))
    masked = roles.ObjectPrompt(1, mask=np.ones((8, 16), bool))
    keys = [
      self._key(),
      self._key(self.clip.select([0, 1])),
      self._key(self.clip.select([0, 2])),
      self._key(prompts=[box]),
      self._key(prompts=[dataclasses.replace(box, frame_row=1)]),
      self._key(prompts=[masked]),
    ]
    self.assertLen(set(keys), len(keys))
    self.assertEqual(self._key(prompts=[box]), self._key(prompts=[box]))

  def test_order_of_settings_plays_no_part(self):
    one = dataclasses.replace(_INFO, settings={"a": 1, "b": (2, 3)})
    two = dataclasses.replace(_INFO, settings={"b": [2, 3], "a": 1})
    self.assertEqual(self._key(info=one), self._key(info=two))

  def test_arrays_enter_by_shape_type_and_value(self):
    arrays = [
      np.zeros(4, np.float32),
      np.zeros((2, 2), np.float32),
      np.zeros(4, np.int32),
      np.array([0, 0, 0, 1], np.float32),
    ]
    self.assertLen({cache.digest(array) for array in arrays}, 4)
    strided = np.zeros((4, 2), np.float32)[:, 0]
    self.assertEqual(cache.digest(strided), cache.digest(arrays[0]))

  @parameterized.parameters(
    (object(),), (np.array([None]),), (b"bytes",), ({1, 2},)
  )
  def test_no_digest_of_what_has_none(self, value):
    with self.assertRaises(TypeError):
      cache.digest(value)


class CacheTest(parameterized.TestCase):
  """Hits, misses and damage."""

  def setUp(self):
    super().setUp()
    self.folder = pathlib.Path(self.create_tempdir().full_path)
    self.cache = cache.Cache(self.folder)
    self.calls = 0

  def _compute(self):
    self.calls += 1
    return records.masks()

  def _record(self, key="ab" * 32):
    return self.cache.record(observation.Masks, key, self._compute)

  def test_computed_once(self):
    first, second = self._record(), self._record()
    self.assertEqual(self.calls, 1)
    np.testing.assert_array_equal(first.masks, second.masks)
    self.assertEqual(first.provenance, second.provenance)
    self._record("cd" * 32)
    self.assertEqual(self.calls, 2)

  def test_entry_is_an_ordinary_record(self):
    self._record()
    (path,) = self.folder.rglob("*.npz")
    self.assertEqual(path.stem, "ab" * 32)
    np.testing.assert_array_equal(
      observation.Masks.load(path).masks, records.masks().masks
    )

  def test_no_folder_keeps_nothing(self):
    self.cache = cache.Cache(None)
    self._record()
    self._record()
    self.assertEqual(self.calls, 2)
    self.assertEqual(self.cache.value("k", lambda: 3), 3)

  @parameterized.parameters("cut", "empty", "other_key", "changed", "no_digest")
  def test_bad_entry_is_reported_and_made_again(self, damage):
    self._record()
    (path,) = self.folder.rglob("*.npz")
    good = path.read_bytes()
    if damage == "cut":
      path.write_bytes(good[:-100])
    elif damage == "empty":
      path.write_bytes(b"")
    elif damage == "other_key":
      self._record("cd" * 32)
      (other,) = self.folder.rglob("cd*.npz")
      path.write_bytes(other.read_bytes())
      self.calls = 1
    else:
      arrays = storage.read_npz(path)
      if damage == "changed":
        arrays["masks"] = ~arrays["masks"]
      else:
        del arrays["cache_sha256"]
      np.savez(path, **arrays)
    with self.assertLogs(level="WARNING") as logs:
      record = self._record()
    self.assertLen(logs.output, 1)
    self.assertIn("computing again", logs.output[0])
    self.assertEqual(self.calls, 2)
    np.testing.assert_array_equal(record.masks, records.masks().masks)
    self.assertEqual(path.read_bytes(), good)

  def test_values(self):
    def make():
      self.calls += 1
      return {"text": "Täßchen", "score": 0.1}

    key = "ef" * 32
    self.assertEqual(self.cache.value(key, make), make())
    self.assertEqual(self.cache.value(key, make)["text"], "Täßchen")
    self.assertEqual(self.calls, 2)
    (path,) = self.folder.rglob("*.json")
    path.write_text(path.read_text().replace("0.1", "0.2"))
    with self.assertLogs(level="WARNING"):
      self.assertEqual(self.cache.value(key, make)["score"], 0.1)
    path.write_text("{")
    with self.assertLogs(level="WARNING"):
      self.assertEqual(self.cache.value(key, make)["score"], 0.1)

  def test_failure_is_not_kept(self):
    def fail():
      raise errors.InputError("x", "y", found=1, expected=2)

    for _ in range(2):
      with self.assertRaises(errors.InputError):
        self.cache.record(observation.Masks, "ab" * 32, fail)
    self.assertEmpty(list(self.folder.iterdir()))


class WriteAtomicTest(absltest.TestCase):
  """A failed write leaves the old file and no other."""

  def test_old_file_survives(self):
    folder = pathlib.Path(self.create_tempdir().full_path)
    path = folder / "a"
    storage.write_atomic(path, lambda stream: stream.write(b"old"))

    def fail(stream):
      stream.write(b"half")
      raise OSError(28, "No space left on device")

    with self.assertRaisesRegex(errors.InputError, "No space left"):
      storage.write_atomic(path, fail)
    with self.assertRaises(ZeroDivisionError):
      storage.write_atomic(path, lambda stream: 1 / 0)
    self.assertEqual(path.read_bytes(), b"old")
    self.assertLen(list(folder.iterdir()), 1)


if __name__ == "__main__":
  absltest.main()
