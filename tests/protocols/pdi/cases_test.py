# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Cases from folders, lists and observations; bad ones in one clear line."""

import json
import pathlib

from absl.testing import absltest, parameterized

from perception.errors import InputError
from protocols.pdi import cases, categories


class CasesTest(parameterized.TestCase):
  def setUp(self):
    super().setUp()
    self.root = pathlib.Path(self.create_tempdir().full_path)

  def _touch(self, *names: str) -> None:
    for name in names:
      path = self.root / name
      path.parent.mkdir(parents=True, exist_ok=True)
      path.write_bytes(b"x")

  def _list(self, *rows: object) -> pathlib.Path:
    path = self.root / "list.jsonl"
    lines = [r if isinstance(r, str) else json.dumps(r) for r in rows]
    path.write_text("\n".join(lines))
    return path

  def test_published_layout(self):
    self._touch(
      "wan/axial_rigid/1/b.mp4",
      "wan/axial_rigid/1/a.mp4",
      "gt/Curved_Motion/car-turn.mp4",
      "plain/clip.webm",
      "plain/.hidden.mp4",
      "plain/notes.txt",
    )
    found = {
      (c.system, c.case_id): c
      for c in cases.from_clips(self.root, object_box=None)
    }
    self.assertLen(found, 3)
    wan = found["wan", "longitudinal_convergence/1"]
    self.assertEqual(wan.video.name, "a.mp4")
    self.assertEqual(wan.object_query, "red vintage car")
    real = found["gt", "curved_motion/car-turn"]
    self.assertEqual(real.groups, {"category": "curved_motion"})
    self.assertEqual(found["plain", "clip"].groups, {})

  def test_videos_directly_in_the_folder_are_one_system(self):
    self._touch("a.mp4", "b.mp4")
    found = cases.from_clips(self.root, object_box=(0, 0, 4, 4))
    self.assertEqual({c.system for c in found}, {self.root.name})
    self.assertEqual([c.case_id for c in found], ["a", "b"])
    self.assertEqual(found[0].object_box, (0, 0, 4, 4))

  def test_two_files_of_one_name_are_refused(self):
    self._touch("m/a.mp4", "m/a.webm")
    with self.assertRaisesRegex(InputError, "two files for case 'a'"):
      cases.from_clips(self.root, object_box=None)

  def test_folders_without_clips_are_refused(self):
    with self.assertRaisesRegex(InputError, "none of them a video"):
      cases.from_clips(self.root, object_box=None)
    with self.assertRaisesRegex(InputError, "No such file"):
      cases.from_clips(self.root / "absent", object_box=None)

  def test_list_with_all_fields(self):
    self._touch("v/a.mp4", "g.npz", "m.npz", "t.npz")
    path = self._list(
      {
        "system": "m",
        "case_id": "c",
        "category": "Curved Motion",
        "video": "v/a.mp4",
        "geometry": "g.npz",
        "masks": "m.npz",
        "tracks": "t.npz",
        "object_box": [1, 2, 3, 4],
        "object_query": "car",
      },
      "",
      {"system": "m", "video": "v/a.mp4"},
    )
    first, second = cases.from_list(path)
    self.assertEqual(first.case_id, "a")
    self.assertEqual(second.category, "curved_motion")
    self.assertEqual(set(second.observations), {"geometry", "masks", "tracks"})
    self.assertEqual(second.object_box, (1.0, 2.0, 3.0, 4.0))
    self.assertLen(second.inputs, 4)

  @parameterized.named_parameters(
    ("not_json", "{", "line 1"),
    ("not_object", "[1]", "found list"),
    ("no_system", {"video": "a.mp4"}, "line 1: system"),
    ("no_input", {"system": "m"}, "none of video"),
    ("absent_file", {"system": "m", "video": "b.mp4"}, "no file"),
    ("unknown_field", {"system": "m", "vidoe": "a.mp4"}, "line 1: vidoe"),
    ("number", {"system": 3, "video": "a.mp4"}, "line 1: system"),
    (
      "box_of_three",
      {"system": "m", "video": "a.mp4", "object_box": [1, 2, 3]},
      "object_box",
    ),
    (
      "box_turned",
      {"system": "m", "video": "a.mp4", "object_box": [5, 2, 3, 4]},
      "x0 < x1",
    ),
    (
      "box_of_text",
      {"system": "m", "video": "a.mp4", "object_box": "left"},
      "object_box",
    ),
  )
  def test_bad_rows_name_line_and_field(self, row, text):
    self._touch("a.mp4")
    with self.assertRaisesRegex(InputError, text) as caught:
      cases.from_list(self._list(row))
    self.assertIn("list.jsonl", str(caught.exception))
    self.assertNotIn("\n", str(caught.exception))

  def test_duplicate_ids_and_empty_lists_are_refused(self):
    self._touch("a.mp4")
    row = {"system": "m", "video": "a.mp4"}
    with self.assertRaisesRegex(InputError, "two cases 'a'"):
      cases.from_list(self._list(row, row))
    with self.assertRaisesRegex(InputError, "no case"):
      cases.from_list(self._list(""))

  def test_observation_folders(self):
    self._touch(
      "sys/partial_occlusion/3/geometry.npz",
      "sys/partial_occlusion/3/masks.npz",
      "sys/partial_occlusion/3/clip.mp4",
      "sys/other/tracks.npz",
    )
    found = cases.from_observations(self.root)
    self.assertEqual(
      [c.case_id for c in found], ["other", "partial_occlusion/3"]
    )
    self.assertEqual(found[1].video.name, "clip.mp4")
    self.assertEqual(found[1].category, "partial_occlusion")
    with self.assertRaisesRegex(InputError, "no folder"):
      cases.from_observations(self.root / "absent")

  def test_rgbd_folders(self):
    (self.root / "seq").mkdir()
    (case,) = cases.from_rgbd([self.root / "seq"], object_box=None)
    self.assertEqual((case.system, case.case_id), ("recorded", "seq"))
    with self.assertRaisesRegex(InputError, "no folder"):
      cases.from_rgbd([self.root / "absent"], object_box=None)

  def test_there_are_28_object_phrases(self):
    self.assertEqual(
      [len(c.objects) for c in categories.CATEGORIES], [6, 6, 5, 5, 6]
    )
    self.assertEqual(categories.object_query("curved_motion", "99"), "")
    self.assertEqual(categories.object_query("", "car-turn"), "car-turn")


if __name__ == "__main__":
  absltest.main()
