# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Calibrating a recording: known rigs, registration, bundle derivatives."""

import dataclasses
import pathlib

import numpy as np
from absl.testing import absltest, parameterized
from scipy.spatial import transform

from perception.errors import InputError
from protocols.egogeneval import (
  recording_bundle,
  recording_calibration,
  recording_terms,
  registration,
)
from tests.protocols.egogeneval import drawn_room


class CalibrationTest(absltest.TestCase):
  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    cls.folder = pathlib.Path(absltest.get_default_test_tmpdir()) / "room"
    cls.folder.mkdir(parents=True, exist_ok=True)
    cls.scene = drawn_room.recording(cls.folder, 14, turn_share=1.06)
    cls.found, cls.report = recording_calibration.calibrated(cls.scene)

  def test_camera_and_offset_are_found(self):
    focal = self.found.frames[0].intrinsics[0, 0]
    self.assertAlmostEqual(focal / drawn_room.COLOUR_FOCAL, 1.0, delta=0.02)
    np.testing.assert_allclose(
      self.report["depth_to_colour_m"][:2], drawn_room.OFFSET_M, atol=0.008
    )
    self.assertAlmostEqual(
      self.report["depth_to_colour_deg"][2],
      drawn_room.OFFSET_ROLL_DEG,
      delta=0.3,
    )

  def test_turns_that_were_stated_too_wide_are_corrected(self):
    true = drawn_room.depth_poses(14) @ np.linalg.inv(drawn_room.offset())
    ends = {
      "true": (true[0], true[-1]),
      "stated": tuple(self.scene.frames[i].pose_c2w for i in (0, -1)),
      "found": tuple(self.found.frames[i].pose_c2w for i in (0, -1)),
    }
    angle = {
      name: np.linalg.norm(
        transform.Rotation.from_matrix(
          (np.linalg.inv(a) @ b)[:3, :3]
        ).as_rotvec(degrees=True)
      )
      for name, (a, b) in ends.items()
    }
    self.assertAlmostEqual(angle["stated"] / angle["true"], 1.06, delta=0.002)
    self.assertAlmostEqual(angle["found"] / angle["true"], 1.0, delta=0.01)
    self.assertLess(self.report["pose_change"]["rotation_share"], 0.97)

  def test_held_out_residuals_fall_at_every_stage(self):
    stages = self.report["residuals"]
    recorded, registered, refined = (
      stages[name] for name in ("recorded", "registered", "refined")
    )
    self.assertLess(registered["feature_px"], recorded["feature_px"])
    self.assertLess(refined["feature_px"], 0.5 * registered["feature_px"])
    self.assertLess(refined["surface_m"], recorded["surface_m"])
    self.assertLess(registered["outline_px"], recorded["outline_px"])
    text = recording_calibration.summary(self.report)
    self.assertIn("focal 175.0 ->", text)

  def test_registered_depth_is_that_of_the_colour_camera(self):
    pose = drawn_room.depth_poses(14)[3] @ np.linalg.inv(drawn_room.offset())
    _, expected = drawn_room.render(drawn_room.COLOUR_FOCAL, pose)
    depth = self.found.frames[3].read_depth()
    known = np.isfinite(depth)
    self.assertGreater(known.mean(), 0.75)
    error = np.abs(depth - expected)[known] / expected[known]
    self.assertLess(np.median(error), 0.01)
    self.assertLess(np.mean(error > 0.05), 0.05)

  def test_a_scene_without_features_is_refused(self):
    flat = np.full((*drawn_room.SIZE, 3), 128, np.uint8)

    class Blank:
      """A frame without any texture."""

      intrinsics = drawn_room.intrinsics(drawn_room.DEPTH_FOCAL)
      pose_c2w = np.eye(4)
      read_depth = staticmethod(
        lambda: np.full(drawn_room.SIZE, 2.0, np.float32)
      )
      image = staticmethod(lambda: flat)

    scene = dataclasses.replace(self.scene, frames=(Blank(),) * 5)
    with self.assertRaisesRegex(InputError, "0 matched features.*--calibrate"):
      recording_calibration.calibrate(scene)


class RegistrationTest(parameterized.TestCase):
  def test_the_identity_changes_nothing(self):
    depth = np.linspace(1.0, 3.0, 48, dtype=np.float32).reshape(6, 8)
    depth[2, 3] = np.nan
    k = np.array([[9.0, 0, 3.5], [0, 9.0, 2.5], [0, 0, 1]])
    found = registration.register_depth(depth, k, k, np.eye(4), (6, 8))
    known = np.isfinite(depth)
    np.testing.assert_allclose(found[known], depth[known], rtol=1e-6)
    # One open cell is closed from beside it.
    self.assertAlmostEqual(found[2, 3], np.nanmin(depth[1:4, 2:5]), places=5)

  def test_the_nearer_surface_hides_the_other(self):
    k = np.array([[10.0, 0, 4.5], [0, 10.0, 4.5], [0, 0, 1]])
    depth = np.full((10, 10), 2.0, np.float32)
    depth[:, :5] = 1.0
    shift = np.eye(4)
    shift[0, 3] = 0.2  # The near half moves by 2 pixels, the far one by 1.
    found = registration.register_depth(depth, k, k, shift, (10, 10))
    np.testing.assert_allclose(found[4, 2:7], 1.0)
    np.testing.assert_allclose(found[4, 7:], 2.0)
    self.assertTrue(np.isnan(found[4, 0]))

  @parameterized.parameters(0.5, 1.0, 2.0, 3.3)
  def test_any_scale_leaves_no_crack(self, scale):
    k = np.array([[20.0, 0, 9.5], [0, 20.0, 9.5], [0, 0, 1]])
    other = k * [[scale], [scale], [1.0]]
    size = (int(20 * scale), int(20 * scale))
    depth = np.full((20, 20), 1.5, np.float32)
    found = registration.register_depth(depth, k, other, np.eye(4), size)
    self.assertTrue(np.all(np.isfinite(found[2:-2, 2:-2])))

  def test_nothing_known_gives_nothing(self):
    k = np.eye(3)
    depth = np.full((4, 5), np.nan, np.float32)
    found = registration.register_depth(depth, k, k, np.eye(4), (3, 3))
    self.assertTrue(np.all(np.isnan(found)))
    self.assertFalse(registration.is_smooth(depth, window=3).any())

  def test_smooth_means_away_from_jumps_and_holes(self):
    depth = np.full((9, 9), 2.0, np.float32)
    depth[:, 6:] = 3.0
    depth[4, 1] = 0.0
    found = registration.is_smooth(depth, window=3)
    np.testing.assert_array_equal(
      found[0], [True] * 5 + [False] * 2 + [True] * 2
    )
    self.assertFalse(found[3:6, :3].any())


class LensTest(absltest.TestCase):
  def test_points_return(self):
    k = drawn_room.intrinsics(150.0)
    xy = np.random.default_rng(0).uniform(0, 140, (50, 2))
    lens = np.array([-0.1, 0.05])
    bent = registration.distort(xy, k, lens)
    self.assertGreater(np.abs(bent - xy).max(), 1.0)
    np.testing.assert_allclose(
      registration.undistort(bent, k, lens), xy, atol=1e-4
    )
    # The centre stays; a hand-worked point: (0.5, 0) at r^2 = 0.25.
    point = np.array([[95.5 + 75.0, 71.5]])
    expected = 95.5 + 75.0 * (1 - 0.1 * 0.25 + 0.05 * 0.0625)
    np.testing.assert_allclose(
      registration.distort(point, k, lens), [[expected, 71.5]]
    )

  def test_a_picture_is_moved_as_its_points_are(self):
    k = np.array([[60.0, 0, 39.5], [0, 60.0, 29.5], [0, 0, 1]])
    lens = np.array([-0.2, 0.0])
    image = np.zeros((60, 80, 3), np.uint8)
    spot = np.array([[66.0, 12.0]])
    column, row = np.rint(registration.distort(spot, k, lens)[0]).astype(int)
    image[row - 1 : row + 2, column - 1 : column + 2] = 255
    found = registration.undistort_image(image, k, lens)
    rows, columns = np.nonzero(found[..., 0] > 128)
    self.assertAlmostEqual(columns.mean(), 66.0, delta=0.7)
    self.assertAlmostEqual(rows.mean(), 12.0, delta=0.7)
    np.testing.assert_array_equal(
      registration.undistort_image(image, k, np.zeros(2)), image
    )


class BundleTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    rng = np.random.default_rng(0)
    self.poses = np.tile(np.eye(4), (3, 1, 1))
    for i in range(3):
      self.poses[i, :3, :3] = transform.Rotation.from_rotvec(
        0.1 * rng.normal(size=3)
      ).as_matrix()
      self.poses[i, :3, 3] = 0.1 * rng.normal(size=3)
    self.cameras = recording_bundle.Cameras(
      self.poses, 100.0, np.array([50.0, 40.0])
    )
    n = 60
    self.depth = rng.uniform(1.0, 3.0, n)
    source = rng.integers(0, 3, n)
    target = (source + rng.integers(1, 3, n)) % 3
    blank = recording_terms.Matches(
      source, target, rng.uniform(10, 70, (n, 2)), np.zeros((n, 2))
    )
    seen = recording_bundle.feature_residual(self.cameras, blank, self.depth)
    self.matches = dataclasses.replace(blank, xy_target=seen)
    self.offset = drawn_room.offset()
    points = rng.uniform(-1, 1, (n, 3)) + np.array([0.0, 0.0, 2.0])
    depth_poses = self.poses @ self.offset
    motion = np.linalg.inv(depth_poses)[target] @ depth_poses[source]
    anchors = np.einsum("nij,nj->ni", motion[:, :3, :3], points)
    normals = rng.normal(size=(n, 3))
    self.planes = recording_terms.Planes(
      source,
      target,
      points,
      anchors + motion[:, :3, 3],
      normals / np.linalg.norm(normals, axis=1, keepdims=True),
    )

  def test_exact_measurements_have_no_residual(self):
    features = recording_bundle.feature_residual(
      self.cameras, self.matches, self.depth
    )
    np.testing.assert_allclose(features, 0, atol=1e-9)
    planes = recording_bundle.plane_residual(
      self.poses @ self.offset, self.planes
    )
    np.testing.assert_allclose(planes, 0, atol=1e-12)

  def test_moved_poses_return(self):
    rng = np.random.default_rng(1)
    moved = self.poses.copy()
    for pose in moved:
      turn = transform.Rotation.from_rotvec(0.01 * rng.normal(size=3))
      pose[:3, :3] = pose[:3, :3] @ turn.as_matrix()
      pose[:3, 3] += 0.01 * rng.normal(size=3)
    start = dataclasses.replace(self.cameras, poses=moved)
    found = recording_bundle.refine(
      start,
      self.matches,
      self.depth,
      self.planes,
      self.offset,
      prior=self.poses,
      iterations=8,
    )
    np.testing.assert_allclose(found.poses, self.poses, atol=1e-5)

  def test_the_lens_of_exact_features(self):
    lens = np.array([0.04, -0.08])
    k = self.cameras.intrinsics
    drawn = dataclasses.replace(
      self.matches,
      xy_source=registration.distort(self.matches.xy_source, k, lens),
      xy_target=registration.distort(self.matches.xy_target, k, lens),
    )
    start = dataclasses.replace(self.cameras, focal=112.0)
    found = recording_bundle.fitted_lens(
      start, drawn, self.depth, move_focal=True
    )
    self.assertAlmostEqual(found.focal, 100.0, places=2)
    np.testing.assert_allclose(found.lens, lens, atol=1e-3)
    held = recording_bundle.fitted_lens(
      self.cameras, drawn, self.depth, move_focal=False
    )
    self.assertEqual(held.focal, 100.0)
    np.testing.assert_allclose(held.lens, lens, atol=1e-3)


if __name__ == "__main__":
  absltest.main()
