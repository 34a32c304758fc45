# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Requests in the forms that models take: cameras, windows, words, files."""

import itertools
import json
import pathlib

import hypothesis
import numpy as np
from absl.testing import absltest, parameterized
from hypothesis import strategies
from scipy.spatial.transform import Rotation

from perception import images
from protocols.orbia import (
  camera_conditions,
  conditions,
  dataset_writer,
  motion_script,
)
from protocols.orbia.constants import TEMPLATES
from protocols.orbia.raycast_paths import path_of
from tests.protocols.orbia import tiny_world

_FRAMES, _TURN = 357, 178


def _poses(seed=0, count=5):
  rng = np.random.default_rng(seed)
  poses = np.tile(np.eye(4), (count, 1, 1))
  poses[:, :3, :3] = Rotation.random(count, random_state=seed).as_matrix()
  poses[:, :3, 3] = rng.normal(size=(count, 3))
  return poses


class WindowTest(parameterized.TestCase):
  @hypothesis.given(
    strategies.integers(1, 400),
    strategies.integers(1, 130),
    strategies.integers(0, 5),
  )
  @hypothesis.settings(deadline=None, max_examples=60)
  def test_every_frame_is_kept_once(self, count, size, overlap):
    if overlap >= size:
      with self.assertRaises(ValueError):
        camera_conditions.windows(count, size=size, overlap=overlap)
      return
    found = camera_conditions.windows(count, size=size, overlap=overlap)
    kept = np.concatenate([w.frames[w.skip : w.skip + w.keep] for w in found])
    np.testing.assert_array_equal(kept, np.arange(count))
    for before, after in itertools.pairwise(found):
      # A window begins with frames that the one before has shown.
      shared = after.frames[: after.skip]
      np.testing.assert_array_equal(shared, before.frames[size - overlap :])

  def test_the_last_pose_repeats(self):
    (first, last) = camera_conditions.windows(7, size=5, overlap=1)
    np.testing.assert_array_equal(first.frames, [0, 1, 2, 3, 4])
    np.testing.assert_array_equal(last.frames, [4, 5, 6, 6, 6])
    self.assertEqual((last.skip, last.keep), (1, 2))


class CameraTest(absltest.TestCase):
  def test_increments_lead_from_pose_to_pose(self):
    poses = _poses()
    steps = camera_conditions.increments(poses)
    np.testing.assert_allclose(poses[:-1] @ steps, poses[1:], atol=1e-12)

  def test_opengl_looks_along_minus_z(self):
    poses = _poses()
    gl = camera_conditions.to_opengl(poses)
    np.testing.assert_allclose(-gl[:, :3, 2], poses[:, :3, 2])
    np.testing.assert_allclose(-gl[:, :3, 1], poses[:, :3, 1])
    np.testing.assert_allclose(gl[:, :, 3], poses[:, :, 3])

  def test_six_numbers_give_the_rotation_back(self):
    poses = _poses()
    six = camera_conditions.rotation_6d(poses)
    third = np.cross(six[:, :3], six[:, 3:])
    np.testing.assert_allclose(third, poses[:, :3, 2], atol=1e-12)

  def test_radius(self):
    poses = _poses()
    scaled = camera_conditions.with_radius(poses, 2.5)
    far = np.linalg.norm(scaled[:, :3, 3] - scaled[0, :3, 3], axis=1).max()
    self.assertAlmostEqual(far, 2.5)
    still = np.tile(np.eye(4), (3, 1, 1))
    np.testing.assert_array_equal(
      camera_conditions.with_radius(still, 2.5), still
    )

  def test_crop_keeps_rays(self):
    k = np.array([[900.0, 0, 640], [0, 900.0, 360], [0, 0, 1]])
    crop = camera_conditions.cover_crop(k, size=(720, 1280), target=(480, 640))
    self.assertEqual((crop.resized, crop.top, crop.left), ((480, 853), 0, 106))
    # The middle of the picture is 0.5 pixels off the middle of the cut:
    # 853 - 640 is odd.
    np.testing.assert_allclose(crop.intrinsics[:2, 2], [320.5, 240.0])
    self.assertAlmostEqual(crop.intrinsics[0, 0], 900 * 853 / 1280)
    self.assertAlmostEqual(crop.intrinsics[1, 1], 600.0)

  def test_rays_meet_the_plane_where_they_should(self):
    k = np.array([[2.0, 0, 1.5], [0, 2.0, 1.0], [0, 0, 1]])
    poses = _poses()
    rays = camera_conditions.pluecker_rays(poses, k, size=(2, 3))
    self.assertEqual(rays.shape, (5, 2, 3, 6))
    # Pixel (row 1, column 2): centre (2.5, 1.5), ray (0.5, 0.25, 1).
    direction = poses[3, :3, :3] @ np.array([0.5, 0.25, 1.0])
    direction /= np.linalg.norm(direction)
    np.testing.assert_allclose(rays[3, 1, 2, :3], direction, atol=1e-6)
    moment = np.cross(poses[3, :3, 3], direction)
    np.testing.assert_allclose(rays[3, 1, 2, 3:], moment, atol=1e-6)


class ScriptTest(parameterized.TestCase):
  def _script(self, template):
    path = path_of(template, frame_count=_FRAMES, turnaround=_TURN)
    return motion_script.motion_script(path, template=template)

  @parameterized.parameters(*TEMPLATES)
  def test_phases_cover_the_path_and_alternate(self, template):
    script = self._script(template)
    self.assertTrue(script.closed)
    self.assertEqual(script.phases[0].start, 0)
    self.assertEqual(script.phases[-1].stop, _FRAMES)
    for before, after in itertools.pairwise(script.phases):
      self.assertEqual(before.stop, after.start)
      self.assertNotEqual(before.label, after.label)
    text = script.text()
    self.assertIn("return to the opening view", text)
    self.assertIn("fixed focal length", text)

  def test_a_yaw_return_by_hand(self):
    lines = self._script("yaw_return").text().splitlines()
    self.assertEqual(lines[2], "From 0 to 11 s: turn right by 110 degrees.")
    self.assertEqual(
      lines[3], "From 11 to 22.5 s: reverse and turn left by 110 degrees."
    )

  def test_a_way_back_is_the_same_or_another(self):
    self.assertIn("retracing", self._script("forward_backward").text())
    arc = self._script("arc_return").text()
    self.assertIn("by a separate path", arc)
    self.assertIn("curving to the left", arc)

  def test_a_pause_is_said_and_a_short_one_is_not(self):
    for seconds, expected in ((5, True), (1, False)):
      out = np.linspace(0, 2, 80)
      still = np.full(16 * seconds, 2.0)
      place = np.concatenate([out, still, out[::-1]])
      path = np.tile(np.eye(4), (len(place), 1, 1))
      path[:, 2, 3] = place
      text = motion_script.motion_script(
        path, template="forward_backward"
      ).text()
      self.assertEqual("hold still" in text, expected)

  def test_an_open_path_does_not_return(self):
    path = np.tile(np.eye(4), (100, 1, 1))
    path[:, 0, 3] = np.linspace(0, 3, 100)
    script = motion_script.motion_script(path, template="lateral_out_and_back")
    self.assertFalse(script.closed)
    self.assertNotIn("opening view", script.text())

  def test_windows_have_their_own_times(self):
    script = self._script("forward_backward")
    later = script.window(96, 240)
    self.assertIn("The same shot continues", later)
    self.assertNotIn("advances", later)
    self.assertIn("From 0 to 5 s: move forward.", later)
    self.assertNotIn("opening view", later)
    self.assertIn("opening view", script.window(240, _FRAMES))
    # Frames last two thirds as long at 24 a second.
    self.assertIn("From 0 to 7.5 s: move forward.", script.text(fps=24.0))

  @parameterized.parameters((-1, 5), (5, 5), (0, 358))
  def test_windows_outside_the_path_are_refused(self, start, stop):
    with self.assertRaisesRegex(ValueError, "of 357"):
      self._script("yaw_return").window(start, stop)

  def test_unusable_paths_are_refused(self):
    with self.assertRaisesRegex(ValueError, "1 poses"):
      motion_script.motion_script(np.eye(4)[None], template="yaw_return")
    with self.assertRaisesRegex(ValueError, "'spiral'"):
      motion_script.motion_script(_poses(), template="spiral")


class FilesTest(absltest.TestCase):
  def test_a_case_in_all_forms(self):
    root = pathlib.Path(self.create_tempdir().full_path)
    world = tiny_world.Wall()
    dataset_writer.write_dataset(
      root / "data", [tiny_world.case_content(world)]
    )
    config = conditions.ConditionsConfig(
      root / "data", root / "out", size=(24, 40), window=20, overlap=2
    )
    self.assertEqual(conditions.write(config), 1)
    folder = root / "out/tiny"
    image = images.read_rgb(folder / "image.png")
    self.assertEqual(image.shape, (24, 40, 3))
    with np.load(folder / "cameras.npz") as arrays:
      np.testing.assert_allclose(arrays["poses_c2w"], world.poses())
      self.assertEqual(arrays["timestamps_s"][-1], 2.5)
      self.assertEqual(arrays["increments"].shape, (40, 4, 4))
    actions = json.loads((folder / "actions.json").read_text())
    self.assertEqual(actions["keys"], "WASDIJKL")
    # A camera that steps to the right, then to the left.
    pressed = [block["keys"] for block in actions["blocks"]]
    self.assertEqual(pressed[0], "D")
    self.assertEqual(pressed[-1], "A")
    self.assertEqual(actions["blocks"][-1]["last_frame"], 40)
    text = (folder / "prompt.txt").read_text()
    self.assertStartsWith(text, "A wall.\n\nThe camera moves sideways")
    parts = json.loads((folder / "windows.json").read_text())["windows"]
    self.assertEqual([p["first_frame"] for p in parts], [0, 18, 36])
    self.assertEqual(sum(p["new_frames"] for p in parts), 41)
    self.assertIn("The same shot continues", parts[1]["prompt"])


if __name__ == "__main__":
  absltest.main()
