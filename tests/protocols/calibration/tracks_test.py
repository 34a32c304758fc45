# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Exact tracks: positions, depths and visibility."""

import numpy as np
from absl.testing import absltest, parameterized

from protocols.calibration import render, scenes, textures, tracks, world

_SIZE = (48, 64)
_K = np.array([[60.0, 0, 31.5], [0, 60.0, 23.5], [0, 0, 1]])
_TEX = (textures.Texture((0.5, 0.5, 0.5), (0.6, 0.6, 0.6)),)
_BALL = world.Part("sphere", (1, 1, 1), 0)
_SCREEN = world.Part("box", (0.5, 0.5, 0.05), 0)


def _still(found: world.World, frames: int) -> tuple[world.Motion, np.ndarray]:
  return found.rest(frames), np.tile(np.eye(4), (frames, 1, 1))


class HandCaseTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    self.world = world.World(
      _TEX,
      (
        world.Body("ball", (_BALL,), (0, 0, 5)),
        world.Body("screen", (_SCREEN,), (3, 0, 2)),
      ),
    )
    # The pole facing the camera, the far pole, the right rim just in front.
    self.points = tracks.SurfacePoints(
      np.zeros(3, int),
      np.array([[0, 0, -1.0], [0, 0, 1.0], [0.8, 0.0, -0.6]]),
    )

  def _follow(self, motion, c2w):
    return tracks.project_points(
      self.world, motion, c2w, _K, _SIZE, self.points
    )

  def test_positions_and_self_occlusion(self):
    found = self._follow(*_still(self.world, 1))
    np.testing.assert_allclose(found.depth, [[4, 6, 4.4]])
    np.testing.assert_allclose(
      found.xy[0], [[31.5, 23.5], [31.5, 23.5], [31.5 + 60 * 0.8 / 4.4, 23.5]]
    )
    np.testing.assert_array_equal(found.visible, [[True, False, True]])

  def test_a_screen_hides_while_it_is_there(self):
    motion, c2w = _still(self.world, 4)
    poses = np.tile(world.yaw_pose((0, 0, 2), 0.0), (4, 1, 1))
    poses[1, 0, 3] = 0.9
    motion = motion.with_body(1, poses).without_body_from(1, 3)
    found = self._follow(motion, c2w)
    np.testing.assert_array_equal(
      found.visible[:, [0, 2]],
      [[False, False], [True, True], [False, False], [True, True]],
    )

  def test_absent_body_behind_camera_and_outside_the_picture(self):
    motion, c2w = _still(self.world, 3)
    motion = motion.without_body_from(0, 2)
    c2w[0, 2, 3] = 12.0
    c2w[1] = world.yaw_pose((0, 0, 0), 60.0)
    found = self._follow(motion, c2w)
    self.assertFalse(found.visible.any())
    np.testing.assert_array_equal(found.xy[0], np.zeros((3, 2)))
    self.assertTrue(np.isfinite(found.xy).all())

  def test_points_follow_a_deformation(self):
    motion, c2w = _still(self.world, 2)
    poses = np.tile(world.yaw_pose((0, 0, 5), 0.0), (2, 1, 1))
    poses[1, :3, :3] *= 2.0
    found = self._follow(motion.with_body(0, poses), c2w)
    np.testing.assert_allclose(found.depth[1], [3, 7, 3.8])
    np.testing.assert_allclose(found.xy[1, 2, 0], 31.5 + 60 * 1.6 / 3.8)

  def test_a_ray_into_the_sky_has_no_part(self):
    motion, c2w = _still(self.world, 1)
    found = tracks.points_at_pixels(
      self.world, motion, c2w, _K, np.array([[0.0, 0.0]]), frame=0
    )
    np.testing.assert_array_equal(found.part, [-1])


class SceneTest(parameterized.TestCase):
  @parameterized.parameters("partial_occlusion", "biological_motion")
  def test_tracks_agree_with_the_rendered_depth_and_parts(self, category):
    scene = scenes.make_scene(category, seed=1, frames=12, size=_SIZE, fps=24.0)
    frames = render.render_sequence(
      scene.world,
      scene.c2w,
      scene.intrinsics,
      scene.size,
      motion=scene.motion,
      color=False,
    )
    # Every pixel centre of the subject in frame 0 is a point.
    row, column = np.nonzero(frames.mask(scene.world, 0)[0])
    xy = np.stack([column, row], axis=1).astype(float)
    args = (scene.world, scene.motion, scene.c2w, scene.intrinsics)
    points = tracks.points_at_pixels(*args, xy, frame=0)
    np.testing.assert_array_equal(points.part, frames.part[0, row, column])
    found = tracks.project_points(*args, scene.size, points)
    self.assertTrue(found.visible[0].all())
    np.testing.assert_allclose(found.xy[0], xy, atol=1e-9)
    np.testing.assert_allclose(
      found.depth[0], frames.depth[0, row, column], rtol=2e-5
    )
    self.assertBetween(found.visible[6:].mean(), 0.2, 0.995)
    # A fresh cast through each visible track meets the same material point.
    for frame in (5, 11):
      seen = found.visible[frame]
      again = tracks.points_at_pixels(*args, found.xy[frame], frame=frame)
      np.testing.assert_array_equal(again.part[seen], points.part[seen])
      np.testing.assert_allclose(
        again.local[seen], points.local[seen], atol=1e-6
      )
      moved = np.linalg.norm(again.local - points.local, axis=1)
      self.assertGreater(moved[~seen].min(initial=np.inf), 1e-6)


class SamplePixelsTest(absltest.TestCase):
  def test_inside_distinct_and_repeatable(self):
    mask = np.zeros((20, 30), bool)
    mask[5:15, 8:24] = True
    found = tracks.sample_pixels(mask, count=40, seed=3)
    self.assertEqual(found.shape, (40, 2))
    pixels = np.rint(found).astype(int)
    self.assertLen({tuple(p) for p in pixels}, 40)
    self.assertTrue((pixels >= [9, 6]).all() and (pixels <= [22, 13]).all())
    np.testing.assert_array_equal(
      found, tracks.sample_pixels(mask, count=40, seed=3)
    )

  def test_thin_and_empty_masks(self):
    mask = np.zeros((9, 9), bool)
    self.assertEqual(tracks.sample_pixels(mask, count=5, seed=0).shape, (0, 2))
    mask[4, :] = True
    self.assertEqual(tracks.sample_pixels(mask, count=99, seed=0).shape, (9, 2))


if __name__ == "__main__":
  absltest.main()
