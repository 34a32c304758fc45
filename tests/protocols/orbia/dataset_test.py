# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Reading and writing the published layout; bad input in one line."""

import json
import pathlib

import numpy as np
from absl.testing import absltest, parameterized

from perception.errors import InputError
from protocols.orbia import dataset, dataset_writer, generated
from tests.protocols.orbia import tiny_world


def _edit(path, change):
  content = json.loads(path.read_text())
  change(content)
  path.write_text(json.dumps(content))


def _camera(root, change):
  path = root / "public/tiny/camera.npz"
  with np.load(path) as stored:
    arrays = {name: stored[name] for name in stored.files}
  change(arrays)
  np.savez(path, **arrays)


class DatasetTest(parameterized.TestCase):
  def setUp(self):
    super().setUp()
    self.root = pathlib.Path(self.create_tempdir().full_path)
    self.content = tiny_world.case_content(tiny_world.Wall())
    dataset_writer.write_dataset(self.root, [self.content])

  def test_what_is_written_is_read_back(self):
    (case,) = dataset.read_dataset(self.root)
    self.assertEqual(case.frame_count, tiny_world.FRAMES)
    self.assertEqual(case.events, self.content.events)
    self.assertEqual(case.pairs, {"C": (13, 27)})
    np.testing.assert_array_equal(case.poses(), self.content.poses)
    np.testing.assert_array_equal(case.image(), self.content.image)
    np.testing.assert_array_equal(case.k, self.content.intrinsics)
    found, given = dataset.read_reference(case), self.content.reference
    np.testing.assert_array_equal(found.scene, given.scene)
    np.testing.assert_array_equal(found.qe.depth, given.qe.depth)
    for ours, theirs in zip(found.anchors, given.anchors, strict=True):
      np.testing.assert_array_equal(ours.q0, theirs.q0)
      np.testing.assert_array_equal(ours.region, theirs.region)

  @parameterized.named_parameters(
    (
      "nan_pose",
      "poses_c2w",
      lambda a: a["poses_c2w"].__setitem__((3, 0, 3), np.nan),
    ),
    (
      "first_pose",
      "identity",
      lambda a: a["poses_c2w"].__setitem__((0, 0, 3), 0.5),
    ),
    (
      "reflection",
      "proper",
      lambda a: a["poses_c2w"].__setitem__((5, 0, 0), -1.0),
    ),
    ("length", "poses_c2w", lambda a: a.update(poses_c2w=a["poses_c2w"][:-1])),
    (
      "times",
      "timestamps_s",
      lambda a: a.update(timestamps_s=a["timestamps_s"] * 2),
    ),
  )
  def test_bad_cameras(self, expected, change):
    _camera(self.root, change)
    (case,) = dataset.read_dataset(self.root)
    with self.assertRaisesRegex(InputError, expected):
      case.poses()

  @parameterized.named_parameters(
    ("template", "template", lambda c: c.update(template="spiral")),
    ("rate", "fps", lambda c: c.update(fps=24)),
    (
      "event",
      "events.qe1",
      lambda c: c["events"]["qe1"].update(frame_index=99),
    ),
    (
      "stamp",
      "timestamp_s",
      lambda c: c["events"]["qe1"].update(timestamp_s=9.0),
    ),
    ("no_pair", "revisit_pairs.C", lambda c: c.update(revisit_pairs={})),
    ("k", "intrinsics.K", lambda c: c["intrinsics"].update(K=[[1]])),
  )
  def test_bad_case_files(self, expected, change):
    _edit(self.root / "public/tiny/case.json", change)
    with self.assertRaisesRegex(InputError, expected):
      dataset.read_dataset(self.root)

  def test_manifest_must_agree(self):
    _edit(
      self.root / "manifest.json",
      lambda c: c["cases"][0].update(frame_count=357),
    )
    with self.assertRaisesRegex(InputError, "frame_count"):
      dataset.read_dataset(self.root)

  @parameterized.named_parameters(
    ("missing_depth", "q0/depth.npy", "depth"),
    ("missing_mask", "anchors/A1/qe.png", "mask"),
  )
  def test_missing_reference_files(self, name, expected):
    (self.root / "references/tiny" / name).unlink()
    (case,) = dataset.read_dataset(self.root)
    with self.assertRaisesRegex(InputError, expected.split("_")[0]):
      dataset.read_reference(case)

  def test_depth_of_another_size(self):
    path = self.root / "references/tiny/qe/depth.npy"
    np.save(path, np.ones((10, 12), np.float32))
    (case,) = dataset.read_dataset(self.root)
    with self.assertRaisesRegex(InputError, "depth_camera.*size"):
      dataset.read_reference(case)

  def test_paths_stay_inside_the_folder(self):
    path = self.root / "references/tiny/reference.json"
    _edit(path, lambda c: c.update(qe_scene_region="../../manifest.json"))
    (case,) = dataset.read_dataset(self.root)
    with self.assertRaisesRegex(InputError, "inside"):
      dataset.read_reference(case)

  def test_query_pose_must_be_the_requested_one(self):
    path = self.root / "references/tiny/reference.json"

    def shift(content):
      content["frames"]["qe"]["T_world_camera"][0][3] += 0.1

    _edit(path, shift)
    (case,) = dataset.read_dataset(self.root)
    with self.assertRaisesRegex(InputError, "requested query pose"):
      dataset.read_reference(case)

  def test_list_of_videos(self):
    cases = dataset.read_dataset(self.root)
    path = self.root / "videos.jsonl"
    row = {"model": "m", "case_id": "tiny", "video": "a.mp4", "group": "ti2v"}
    path.write_text(json.dumps(row))
    (found,) = generated.cases_from_list(path, cases)
    self.assertEqual((found.group, found.profile), ("ti2v", "pose_and_action"))
    path.write_text(json.dumps({**row, "group": "other"}))
    with self.assertRaisesRegex(InputError, "group"):
      generated.cases_from_list(path, cases)
    path.write_text(json.dumps({**row, "case_id": "x"}))
    with self.assertRaisesRegex(InputError, "case_id"):
      generated.cases_from_list(path, cases)


if __name__ == "__main__":
  absltest.main()
