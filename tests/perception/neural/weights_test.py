# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Tests of finding weights; needs no torch."""

import hashlib
import json
import os
import pathlib
from unittest import mock

from absl.testing import absltest

from perception import errors
from perception.neural import checkpoints, weights
from protocols import doctor

_ENTRY = weights.Checkpoint(
  "org/model", "model.safetensors", "CC-BY-NC-4.0", ("config.json",)
)


class WeightsTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    self.root = pathlib.Path(self.create_tempdir().full_path)
    environment = {
      "HF_HUB_CACHE": str(self.root / "hub"),
      "TORCH_HOME": str(self.root / "torch"),
      "HF_HUB_OFFLINE": "1",
    }
    self.enter_context(mock.patch.dict(os.environ, environment))
    os.environ.pop("WORLDGAUGE_WEIGHTS", None)

  def _write(self, folder, names=("model.safetensors", "config.json")):
    folder.mkdir(parents=True)
    for name in names:
      (folder / name).write_bytes(name.encode())
    return folder

  def test_missing_names_file_licence_and_command_in_one_line(self):
    with self.assertRaises(errors.InputError) as caught:
      weights.find(_ENTRY)
    text = str(caught.exception)
    for part in (
      "model.safetensors",
      "CC-BY-NC-4.0",
      "hf download org/model",
      "org/model",
    ):
      self.assertIn(part, text)
    self.assertNotIn("\n", text)
    self.assertFalse(weights.is_present(_ENTRY))

  def test_gated_models_say_so(self):
    entry = checkpoints.DINO["dinov3-vitl16"]
    with self.assertRaisesRegex(errors.InputError, "gated"):
      weights.find(entry)

  def test_local_folder_and_digest(self):
    folder = self._write(self.root / "mine")
    found = weights.find(_ENTRY, str(folder))
    self.assertEqual(found.folder, folder)
    self.assertEqual(
      found.sha256, hashlib.sha256(b"model.safetensors").hexdigest()
    )
    self.assertFalse(found.random)

  def test_a_changed_file_has_another_digest(self):
    folder = self._write(self.root / "mine")
    before = weights.find(_ENTRY, str(folder)).sha256
    (folder / "model.safetensors").write_bytes(b"other")
    self.assertNotEqual(weights.find(_ENTRY, str(folder)).sha256, before)

  def test_companions_must_be_there(self):
    folder = self._write(self.root / "mine", ("model.safetensors",))
    with self.assertRaisesRegex(errors.InputError, r"without \['config.json"):
      weights.find(_ENTRY, str(folder))

  def test_hub_cache_follows_the_reference(self):
    repository = self.root / "hub" / "models--org--model"
    snapshot = self._write(repository / "snapshots" / "abc123")
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("abc123\n")
    self.assertEqual(weights.find(_ENTRY).folder, snapshot)
    self.assertEqual(weights.find(_ENTRY, "org/model").folder, snapshot)
    self.assertEqual(weights.find(_ENTRY, "org/model@abc123").folder, snapshot)
    self.assertTrue(weights.is_present(_ENTRY))
    with self.assertRaises(errors.InputError):
      weights.find(_ENTRY, "org/model@def456")

  def test_weights_root(self):
    folder = self._write(self.root / "all" / "org" / "model")
    with mock.patch.dict(
      os.environ, {"WORLDGAUGE_WEIGHTS": str(self.root / "all")}
    ):
      self.assertEqual(weights.find(_ENTRY).folder, folder)

  def test_torch_hub_folder(self):
    entry = checkpoints.ALEXNET
    folder = self._write(self.root / "torch/hub/checkpoints", (entry.file,))
    self.assertEqual(weights.find(entry).file, folder / entry.file)

  def test_shards(self):
    folder = self._write(self.root / "shards", ("a", "b", "config.json"))
    index = {"weight_map": {"x": "a", "y": "b", "z": "a"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    lines = [f"{n} {hashlib.sha256(n.encode()).hexdigest()}" for n in "ab"]
    self.assertEqual(
      weights.find(_ENTRY, str(folder)).sha256,
      hashlib.sha256("\n".join(lines).encode()).hexdigest(),
    )

  def test_bad_index(self):
    folder = self._write(self.root / "shards", ("config.json",))
    (folder / "model.safetensors.index.json").write_text("[]")
    with self.assertRaisesRegex(errors.InputError, "weight_map"):
      weights.find(_ENTRY, str(folder))

  def test_a_path_that_is_not_there(self):
    with self.assertRaisesRegex(errors.InputError, "no file or folder"):
      weights.find(_ENTRY, "/nowhere/at/all.pth")

  def test_random(self):
    found = weights.find(_ENTRY, "random")
    self.assertTrue(found.random)
    self.assertEqual(found.sha256, "random")

  def test_status_lists_every_checkpoint(self):
    rows = list(checkpoints.status())
    self.assertLen(rows, len(checkpoints.ALL))
    for name, present, remark in rows:
      self.assertFalse(present, name)
      self.assertRegex(remark, r"get it: \S")

  def test_the_doctor_tells(self):
    found = list(doctor.model_weights())
    self.assertLen(found, len(checkpoints.ALL))
    self.assertEqual({one.level for one in found}, {doctor.NOTE})
    self.assertStartsWith(found[0].topic, "weights geometry da3")
    self._write(self.root / "torch/hub/checkpoints", ("scaled_offline.pth",))
    present = [one for one in doctor.model_weights() if one.level == "ok"]
    self.assertEqual(
      [one.topic for one in present], ["weights tracks cotracker3"]
    )


if __name__ == "__main__":
  absltest.main()
