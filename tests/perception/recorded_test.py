# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""RGB-D folders and joined records: right frames, and clear refusals."""

import pathlib
import shutil

import cv2
import numpy as np
from absl.testing import absltest, parameterized
from scipy.spatial import transform

from perception import errors, observation, recorded, video
from tests.perception import media


class SevenScenesTest(parameterized.TestCase):
  """The 7-Scenes layout."""

  def setUp(self):
    super().setUp()
    self.folder = pathlib.Path(self.create_tempdir().full_path)
    media.write_seven_scenes(self.folder)

  def test_content(self):
    source = recorded.open_rgbd(self.folder, fps=6)
    self.assertLen(source, 3)
    self.assertEqual(
      source.names, ("frame-000000", "frame-000005", "frame-000010")
    )
    self.assertEqual((source.size, source.unit), ((48, 64), "metre"))
    np.testing.assert_allclose(source.timestamps, [0, 1 / 6, 2 / 6])
    np.testing.assert_allclose(source.c2w, media.poses(3), atol=1e-12)
    np.testing.assert_allclose(source.intrinsics[1], media.INTRINSICS)
    np.testing.assert_array_equal(source.rgb(2), media.texture(48, 64, seed=2))
    depth = source.depth(1)
    self.assertTrue(np.isnan(depth[0, :2]).all())
    np.testing.assert_allclose(depth[5], (1000 + np.arange(64)) / 1000)
    np.testing.assert_array_equal(np.stack(list(source)), source.clip().frames)

  def test_record_and_clip_agree(self):
    source = recorded.open_rgbd(self.folder, fps=6)
    geometry, clip = source.geometry([0, 2]), source.clip([0, 2])
    np.testing.assert_array_equal(geometry.frame_indices, [0, 2])
    np.testing.assert_array_equal(clip.frame_indices, [0, 2])
    self.assertEqual(geometry.provenance.source_sha256, clip.sha256)
    self.assertEqual(geometry.video_size, clip.size)
    np.testing.assert_array_equal(geometry.depth[1], source.depth(2))

  def test_digest_is_of_content(self):
    first = recorded.open_rgbd(self.folder).sha256
    copy = pathlib.Path(self.create_tempdir().full_path) / "copy"
    shutil.copytree(self.folder, copy)
    self.assertEqual(recorded.open_rgbd(copy).sha256, first)
    path = copy / "frame-000005.pose.txt"
    pose = np.loadtxt(path)
    pose[0, 3] += 1e-6
    np.savetxt(path, pose)
    self.assertNotEqual(recorded.open_rgbd(copy).sha256, first)

  def test_intrinsics_given_by_the_caller(self):
    (self.folder / "camera-intrinsics.txt").unlink()
    source = recorded.open_rgbd(self.folder, intrinsics=media.INTRINSICS)
    np.testing.assert_array_equal(source.intrinsics[2], media.INTRINSICS)

  def _pose(self, pose):
    np.savetxt(self.folder / "frame-000005.pose.txt", pose)

  def _write(self, name, text):
    (self.folder / name).write_text(text)

  @parameterized.named_parameters(
    ("missing_pose", lambda s: s._remove("frame-000005.pose.txt"), "pose.txt"),
    ("missing_depth", lambda s: s._remove("frame-000005.depth.png"), "depth"),
    (
      "missing_intrinsics",
      lambda s: s._remove("camera-intrinsics.txt"),
      "guessed",
    ),
    ("non_rigid", lambda s: s._pose(np.diag([2.0, 1, 1, 1])), "orthonormal"),
    ("reflected", lambda s: s._pose(np.diag([-1.0, 1, 1, 1])), "reflection"),
    ("nan_pose", lambda s: s._pose(np.full((4, 4), np.nan)), "non-finite"),
    ("pose_3x4", lambda s: s._pose(np.eye(4)[:3]), "12 values"),
    (
      "pose_words",
      lambda s: s._write("frame-000005.pose.txt", "1 0 0 x"),
      "could not convert",
    ),
    (
      "zero_focal",
      lambda s: s._write("camera-intrinsics.txt", "0 0 3 0 5 2 0 0 1"),
      "focal length 0",
    ),
    (
      "intrinsics_4x4",
      lambda s: np.savetxt(s.folder / "camera-intrinsics.txt", np.eye(4)),
      "16 values",
    ),
    (
      "two_pictures_of_a_frame",
      lambda s: shutil.copy(
        s.folder / "frame-000000.color.png", s.folder / "frame-000000.color.jpg"
      ),
      "one NAME.color",
    ),
    (
      "pose_not_text",
      lambda s: (s.folder / "frame-000005.pose.txt").write_bytes(b"\xff\xfe"),
      "not text",
    ),
  )
  def test_refused_when_opened(self, damage, words):
    damage(self)
    with self.assertRaisesRegex(errors.InputError, words) as caught:
      recorded.open_rgbd(self.folder)
    self.assertIn(str(self.folder), str(caught.exception))

  def _remove(self, name):
    (self.folder / name).unlink()

  @parameterized.named_parameters(
    ("other_size", np.full((24, 64), 1000, np.uint16), r"\(24, 64\)"),
    ("eight_bit", np.full((48, 64), 100, np.uint8), "16-bit"),
    ("three_channels", np.full((48, 64, 3), 100, np.uint16), "one channel"),
  )
  def test_wrong_depth_picture(self, depth, words):
    media.write_picture(self.folder / "frame-000005.depth.png", depth)
    source = recorded.open_rgbd(self.folder)
    source.depth(0)
    with self.assertRaisesRegex(errors.InputError, words):
      source.depth(1)

  def test_damaged_depth_picture(self):
    path = self.folder / "frame-000005.depth.png"
    path.write_bytes(path.read_bytes()[:-30])
    with self.assertRaisesRegex(errors.InputError, "cut off"):
      recorded.open_rgbd(self.folder).geometry()

  def test_all_depth_invalid(self):
    for path in self.folder.glob("*.depth.png"):
      media.write_picture(path, np.full((48, 64), 65535, np.uint16))
    with self.assertRaisesRegex(errors.InputError, "no valid pixel") as caught:
      recorded.open_rgbd(self.folder).geometry()
    self.assertEqual(caught.exception.source, str(self.folder))

  def test_colour_of_another_size(self):
    media.write_picture(
      self.folder / "frame-000010.color.png", media.texture(40, 64, seed=0)
    )
    with self.assertRaisesRegex(errors.InputError, r"\(40, 64\)"):
      recorded.open_rgbd(self.folder).clip()

  def test_unreadable_folder(self):
    for path in (self.folder / "none", self.folder / "frame-000000.pose.txt"):
      with self.assertRaisesRegex(errors.InputError, "can be read"):
        recorded.open_rgbd(path)

  def test_folder_of_another_kind(self):
    empty = self.folder / "empty"
    empty.mkdir()
    self.assertTrue(recorded.is_rgbd_folder(self.folder))
    self.assertFalse(recorded.is_rgbd_folder(empty))
    self.assertFalse(recorded.is_rgbd_folder(self.folder / "none"))
    with self.assertRaisesRegex(errors.InputError, "7-Scenes"):
      recorded.open_rgbd(empty)


class TumTest(parameterized.TestCase):
  """The TUM RGB-D layout."""

  def setUp(self):
    super().setUp()
    self.folder = pathlib.Path(self.create_tempdir().full_path)
    (self.folder / "rgb").mkdir()
    (self.folder / "depth").mkdir()
    rgb = ["# colour"]
    depth = ["# depth"]
    # The third colour frame has no depth within 0.02 s, the fourth no pose.
    depth_times = [10.001, 10.05, 10.121, 10.149]
    for row in range(4):
      time = 10 + 0.05 * row
      media.write_picture(
        self.folder / f"rgb/{row}.png", media.texture(48, 64, seed=row)
      )
      counts = np.full((48, 64), 5000 * (row + 1), np.uint16)
      counts[0, 0] = 0
      media.write_picture(self.folder / f"depth/{row}.png", counts)
      rgb.append(f"{time:.6f} rgb/{row}.png")
      depth.append(f"{depth_times[row]:.6f} depth/{row}.png")
    (self.folder / "rgb.txt").write_text("\n".join(rgb))
    (self.folder / "depth.txt").write_text("\n".join(depth))
    self.rotations = transform.Rotation.from_euler(
      "xyz", [[0, 0, 0], [10, 20, 30], [-5, 60, 3]], degrees=True
    )
    lines = ["# timestamp tx ty tz qx qy qz qw"]
    for row, time in enumerate([9.995, 10.058, 10.1]):
      quaternion = " ".join(f"{q:.9f}" for q in self.rotations[row].as_quat())
      lines.append(f"{time:.4f} {row} 0.5 -1 {quaternion}")
    (self.folder / "groundtruth.txt").write_text("\n".join(lines))
    np.savetxt(self.folder / "camera-intrinsics.txt", media.INTRINSICS)

  def test_association_scale_and_poses(self):
    source = recorded.open_rgbd(self.folder)
    self.assertEqual(source.names, ("0", "1"))
    self.assertEqual(source.skipped, 2)
    np.testing.assert_allclose(source.timestamps, [0, 0.05], atol=1e-9)
    self.assertEqual(source.fps, 20)
    np.testing.assert_allclose(source.depth(1)[5, 5], 2.0)
    self.assertTrue(np.isnan(source.depth(1)[0, 0]))
    for row in range(2):
      np.testing.assert_allclose(
        source.c2w[row, :3, :3], self.rotations[row].as_matrix(), atol=1e-8
      )
      np.testing.assert_allclose(source.c2w[row, :3, 3], [row, 0.5, -1])

  def test_wider_gap(self):
    self.assertLen(recorded.open_tum(self.folder, max_time_gap=0.06), 4)

  def test_intrinsics_are_never_guessed(self):
    (self.folder / "camera-intrinsics.txt").unlink()
    with self.assertRaisesRegex(errors.InputError, "never guessed"):
      recorded.open_rgbd(self.folder)

  @parameterized.named_parameters(
    ("words", "groundtruth.txt", "10.0 a b c 0 0 0 1", "seven numbers"),
    ("columns", "groundtruth.txt", "10.0 1 2 3", "7 more columns"),
    ("not_unit", "groundtruth.txt", "10.0 0 0 0 0 0 0 2", "unit quaternion"),
    ("far_away", "groundtruth.txt", "99.0 0 0 0 0 0 0 1", "none of 4"),
    ("same_time", "depth.txt", "10 depth/0.png\n10 depth/1.png", "distinct"),
    ("no_rows", "depth.txt", "# nothing", "0 rows"),
    ("absent_picture", "depth.txt", "10 depth/none.png", "no file"),
  )
  def test_refused(self, name, text, words):
    (self.folder / name).write_text(text)
    with self.assertRaisesRegex(errors.InputError, words):
      recorded.open_rgbd(self.folder)

  def test_missing_list(self):
    (self.folder / "groundtruth.txt").unlink()
    with self.assertRaisesRegex(errors.InputError, "groundtruth.txt"):
      recorded.open_rgbd(self.folder)


class JoinTest(parameterized.TestCase):
  """A clip and the record that describes it."""

  def _record(self, clip, **changes):
    values = {
      "depth": np.full((3, 8, 16), 2.0, np.float32),
      "intrinsics": np.tile(media.INTRINSICS, (3, 1, 1)),
      "c2w": media.poses(3),
      "frame_indices": np.array([0, 2, 3]),
      "video_size": clip.size,
      "unit": "metre",
      "provenance": observation.Provenance(clip.sha256, "drawn", "1"),
      "resized_size": (9, 18),
    }
    return observation.Geometry(**(values | changes))

  def setUp(self):
    super().setUp()
    frames = np.stack([media.texture(36, 72, seed=k) for k in range(4)])
    self.clip = video.clip_from_frames(frames, fps=10)

  def test_colour_comes_at_depth_size_with_the_same_cut(self):
    source = recorded.join(self.clip, self._record(self.clip))
    self.assertLen(source, 3)
    np.testing.assert_array_equal(source.frame_indices, [0, 2, 3])
    resized = cv2.resize(
      self.clip.frames[2], (18, 9), interpolation=cv2.INTER_AREA
    )
    np.testing.assert_array_equal(source.rgb(1), resized[:8, :16])
    np.testing.assert_array_equal(source.depth(1), 2.0)
    self.assertEqual(source.clip().size, (8, 16))
    self.assertEqual(source.geometry([1]).frame_indices.tolist(), [2])

  def test_from_file_and_only_frames_in_common(self):
    path = pathlib.Path(self.create_tempdir().full_path) / "g.npz"
    self._record(self.clip).save(path)
    source = recorded.join(self.clip.select([1, 2, 3]), path)
    np.testing.assert_array_equal(source.frame_indices, [2, 3])

  def test_another_clip(self):
    other = video.clip_from_frames(self.clip.frames[::-1], fps=10)
    with self.assertRaisesRegex(errors.InputError, "geometry record says"):
      recorded.join(other, self._record(self.clip))

  def test_another_size(self):
    record = self._record(self.clip, video_size=(36, 70))
    with self.assertRaisesRegex(errors.InputError, "size"):
      recorded.join(self.clip, record)

  def test_no_common_frame(self):
    with self.assertRaisesRegex(errors.InputError, "in common"):
      recorded.join(self.clip.select([1]), self._record(self.clip))


if __name__ == "__main__":
  absltest.main()
