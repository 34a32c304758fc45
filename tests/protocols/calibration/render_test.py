# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Ray casting against closed forms in NumPy float64.

Depth tolerance 2e-5 relative: maps are rounded to float32 once, and grazing
hits on the ground amplify that rounding by the ratio of depth to eye height.
"""

import cv2
import numpy as np
from absl.testing import absltest, parameterized

from protocols.calibration import render, scenes, textures, world

_SIZE = (48, 64)
_K = np.array([[60.0, 0, 31.5], [0, 60.0, 23.5], [0, 0, 1]])
_TEX = (
  textures.checker((0.2, 0.3, 0.4), (0.9, 0.8, 0.7), cell=0.4, seed=1),
  textures.speckle((0.7, 0.2, 0.2), (0.9, 0.9, 0.6), period=0.3, seed=2),
)
_POSE = world.look_at((0.4, -1.3, -0.2), (0.2, -0.6, 5.0))


def _world(*bodies: world.Body, **light) -> world.World:
  return world.World(_TEX, bodies, world.Light(**light))


def _rays(pose: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
  """Origin [3] and directions [H, W, 3] of unit camera-axis depth."""
  v, u = np.mgrid[: _SIZE[0], : _SIZE[1]].astype(np.float64)
  camera = np.stack([(u - 31.5) / 60.0, (v - 23.5) / 60.0, np.ones_like(u)], -1)
  return pose[:3, 3], camera @ pose[:3, :3].T


def _one(found: world.World, motion=None) -> render.Frames:
  return render.render_sequence(
    found, _POSE[None], _K, _SIZE, motion=motion, color=False
  )


def _sphere_depth(center, radius, matrix=None) -> np.ndarray:
  """Depth of a sphere, or of a sphere under a linear map, float64."""
  origin, rays = _rays(_POSE)
  inverse = np.linalg.inv(np.eye(3) if matrix is None else matrix)
  o = inverse @ (origin - center)
  d = rays @ inverse.T
  a = (d * d).sum(-1)
  b = d @ o
  disc = b * b - a * (o @ o - radius**2)
  with np.errstate(invalid="ignore"):
    return (-b - np.sqrt(disc)) / a


class DepthTest(parameterized.TestCase):
  def test_ground_plane(self):
    ground = world.Body("g", (world.Part("plane", (500, 0, 500), 0),))
    depth = _one(_world(ground)).depth[0]
    origin, rays = _rays(_POSE)
    with np.errstate(divide="ignore"):
      expected = -origin[1] / rays[..., 1]
    expected[(expected <= 0) | (expected > 400)] = np.nan
    np.testing.assert_allclose(
      depth[depth < 400], expected[depth < 400], rtol=2e-5
    )
    self.assertTrue(np.isnan(depth[0]).all())
    self.assertFalse(np.isnan(depth[-1]).any())

  def test_sphere(self):
    part = world.Part("sphere", (0.8, 0.8, 0.8), 0, center=(0, -0.8, 0))
    frames = _one(_world(world.Body("s", (part,), (0.3, 0, 4.5))))
    expected = _sphere_depth((0.3, -0.8, 4.5), 0.8)
    np.testing.assert_array_equal(np.isnan(frames.depth[0]), np.isnan(expected))
    np.testing.assert_allclose(frames.depth[0], expected, rtol=2e-5)
    self.assertGreater((frames.part[0] == 0).sum(), 200)

  def test_box_against_its_six_planes(self):
    part = world.Part(
      "box", (0.7, 0.5, 0.9), 0, (0, -0.5, 0), rotation_deg=(10, 35, -5)
    )
    found = _world(world.Body("b", (part,), (0.1, 0, 4.0), 20.0))
    depth = _one(found).depth[0]
    pose = world.yaw_pose((0.1, 0, 4.0), 20.0) @ found.part_to_body()[0]
    origin, rays = _rays(_POSE)
    o = pose[:3, :3].T @ (origin - pose[:3, 3])
    d = rays @ pose[:3, :3]
    half = np.array(part.half)
    best = np.full(_SIZE, np.inf)
    for axis in range(3):
      for side in (-1, 1):
        t = (side * half[axis] - o[axis]) / d[..., axis]
        p = o + t[..., None] * d
        others = [k for k in range(3) if k != axis]
        inside = (np.abs(p[..., others]) <= half[others]).all(-1)
        best = np.where(inside & (t > 0), np.minimum(best, t), best)
    np.testing.assert_array_equal(np.isnan(depth), np.isinf(best))
    np.testing.assert_allclose(
      depth[np.isfinite(best)], best[np.isfinite(best)], rtol=2e-5
    )

  def test_sheared_and_scaled_sphere(self):
    part = world.Part("sphere", (0.6, 0.6, 0.6), 0)
    found = _world(world.Body("s", (part,)))
    matrix = np.array([[1.3, 0.5, 0], [0, 0.9, 0], [0.2, 0, 1.1]])
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = matrix, (0.1, -0.7, 4.0)
    motion = found.rest(1).with_body(0, pose[None])
    depth = _one(found, motion).depth[0]
    expected = _sphere_depth((0.1, -0.7, 4.0), 0.6, matrix)
    np.testing.assert_allclose(depth, expected, rtol=2e-5)

  def test_nearest_surface_wins_and_absent_bodies_do_not_count(self):
    ball = world.Part("sphere", (0.4, 0.4, 0.4), 0, (0, -0.8, 0))
    found = _world(
      world.Body("near", (ball,), (0.2, 0, 3.0)),
      world.Body("far", (ball,), (0.2, 0, 4.0)),
    )
    both = _one(found)
    near = _sphere_depth((0.2, -0.8, 3.0), 0.4)
    far = _sphere_depth((0.2, -0.8, 4.0), 0.4)
    hit = np.isfinite(near)
    np.testing.assert_array_equal(both.mask(found, 0)[0], hit)
    np.testing.assert_allclose(both.depth[0], np.fmin(near, far), rtol=2e-5)
    gone = _one(found, found.rest(1).without_body_from(0, 0))
    self.assertFalse(gone.mask(found, 0).any())
    np.testing.assert_allclose(gone.depth[0], far, rtol=2e-5)

  def test_camera_inside_a_box_sees_its_walls(self):
    room = world.Part("box", (3, 3, 6), 0)
    frames = _one(_world(world.Body("room", (room,))))
    self.assertTrue(np.isfinite(frames.depth).all())
    self.assertLessEqual(frames.depth.max(), 7.0)

  def test_sphere_mask_has_the_area_of_its_outline(self):
    # A sphere of angular radius r about the axis covers f^2 pi tan(r)^2.
    part = world.Part("sphere", (1, 1, 1), 0)
    found = _world(world.Body("s", (part,), (0, 0, 4.0)))
    frames = render.render_sequence(
      found, np.eye(4)[None], _K, _SIZE, color=False
    )
    tangent = np.tan(np.arcsin(1 / 4.0))
    area = np.pi * (60.0 * tangent) ** 2
    self.assertAlmostEqual(frames.mask(found, 0).sum() / area, 1.0, delta=0.02)


class SequenceTest(parameterized.TestCase):
  def _scene(self, frames: int = 19) -> scenes.Scene:
    return scenes.make_scene(
      "partial_occlusion", seed=3, frames=frames, size=_SIZE, fps=24.0
    )

  def _render(self, scene: scenes.Scene, color: bool) -> render.Frames:
    return render.render_sequence(
      scene.world,
      scene.c2w,
      scene.intrinsics,
      scene.size,
      motion=scene.motion,
      color=color,
    )

  def test_shapes_types_and_repeatability(self):
    scene = self._scene()
    a, b = self._render(scene, True), self._render(scene, True)
    self.assertEqual((a.rgb.shape, a.rgb.dtype), ((19, 48, 64, 3), np.uint8))
    self.assertEqual(a.depth.dtype, np.float32)
    np.testing.assert_array_equal(a.rgb, b.rgb)
    np.testing.assert_array_equal(a.depth, b.depth)
    bare = self._render(scene, False)
    self.assertIsNone(bare.rgb)
    np.testing.assert_array_equal(a.depth, bare.depth)
    np.testing.assert_array_equal(a.part, bare.part)
    np.testing.assert_array_equal(np.isnan(a.depth), a.part < 0)

  def test_chunks_do_not_change_a_frame(self):
    scene = self._scene()
    whole = self._render(scene, True)
    last = render.render_sequence(
      scene.world,
      scene.c2w[18:],
      scene.intrinsics,
      scene.size,
      motion=world.Motion(
        scene.motion.body_to_world[18:],
        scene.motion.present[18:],
        scene.motion.texture_ids[18:],
      ),
    )
    np.testing.assert_array_equal(whole.rgb[18], last.rgb[0])
    np.testing.assert_array_equal(whole.depth[18], last.depth[0])

  def test_static_points_reproject_onto_the_same_surface(self):
    scene = self._scene()
    frames = self._render(scene, False)
    first, second = scene.c2w[0], scene.c2w[18]
    v, u = np.mgrid[:48, :64]
    k = scene.intrinsics
    depth = frames.depth[0].astype(np.float64)
    camera = np.stack(
      [(u - k[0, 2]) / k[0, 0] * depth, (v - k[1, 2]) / k[1, 1] * depth, depth],
      -1,
    )
    points = camera @ first[:3, :3].T + first[:3, 3]
    seen = (points - second[:3, 3]) @ second[:3, :3]
    x = seen[..., 0] / seen[..., 2] * k[0, 0] + k[0, 2]
    y = seen[..., 1] / seen[..., 2] * k[1, 1] + k[1, 2]
    floor = scene.world.body_index("ground")
    here = frames.mask(scene.world, floor)
    column, row = np.rint(x), np.rint(y)
    ok = here[0] & (column >= 0) & (column < 64) & (row >= 0) & (row < 48)
    column, row = column[ok].astype(int), row[ok].astype(int)
    same = here[1 * 18][row, column]
    self.assertGreater(same.sum(), 300)
    # Inverse depth of a plane is linear in the image: exact at x, y from the
    # depth and its gradient at the pixel centre, in closed form.
    normal = second[:3, :3].T @ [0.0, -1.0, 0.0]
    height = -second[1, 3]
    inverse = (
      -(
        normal[0] * (x[ok] - k[0, 2]) / k[0, 0]
        + normal[1] * (y[ok] - k[1, 2]) / k[1, 1]
        + normal[2]
      )
      / height
    )
    np.testing.assert_allclose(seen[ok][:, 2] * inverse, 1.0, rtol=2e-5)
    center = (
      -(
        normal[0] * (column - k[0, 2]) / k[0, 0]
        + normal[1] * (row - k[1, 2]) / k[1, 1]
        + normal[2]
      )
      / height
    )
    rendered = frames.depth[18][row, column]
    np.testing.assert_allclose((rendered * center)[same], 1.0, rtol=2e-5)

  def test_texture_of_a_part_changes_from_a_frame_on(self):
    scene = self._scene(4)
    part = int(np.flatnonzero(scene.world.part_body == 0)[0])
    motion = scene.motion.with_texture_from(part, 2, 2)
    painted = render.render_sequence(
      scene.world, scene.c2w, scene.intrinsics, _SIZE, motion=motion
    )
    plain = self._render(scene, True)
    np.testing.assert_array_equal(painted.rgb[:2], plain.rgb[:2])
    np.testing.assert_array_equal(painted.depth, plain.depth)
    changed = (painted.rgb[2:] != plain.rgb[2:]).any(-1)
    inside = plain.part[2:] == part
    self.assertGreater(changed[inside].mean(), 0.8)
    # Only the smoothed outline may reach beyond the part.
    ring = np.stack(
      [cv2.dilate(m.astype(np.uint8), np.ones((3, 3))) for m in inside]
    )
    self.assertFalse(changed[ring == 0].any())

  def test_edges_are_smoothed(self):
    part = world.Part("sphere", (1, 1, 1), 1)
    found = _world(
      world.Body("s", (part,), (0, 0, 4.0)), haze_m=1e6, shadows=False
    )
    frames = render.render_sequence(found, np.eye(4)[None], _K, _SIZE)
    row = frames.rgb[0, 24].astype(int)
    outline = int(np.flatnonzero(frames.part[0, 24] == 0)[0])
    sky, ball = row[outline - 2], row[outline + 2]
    middle = row[outline - 1 : outline + 1]
    between = (middle - sky) @ (ball - sky) / ((ball - sky) @ (ball - sky))
    self.assertTrue(((between > 0.1) & (between < 0.9)).any(), between)

  def test_shadows_fall_away_from_the_sun(self):
    ball = world.Part("sphere", (0.5, 0.5, 0.5), 1, (0, -1.2, 0))
    ground = world.Body("g", (world.Part("plane", (50, 0, 50), 0),))
    bodies = (ground, world.Body("s", (ball,), (0, 0, 4.0)))
    pose = world.look_at((0, -3.0, -1.0), (0, 0, 4.0))
    lit, shaded = (
      render.render_sequence(
        _world(*bodies, to_sun=(-1, -1, 0), shadows=on), pose[None], _K, _SIZE
      ).rgb[0]
      for on in (False, True)
    )
    dark = lit.astype(int).sum(-1) - shaded.astype(int).sum(-1) > 30
    self.assertGreater(dark.sum(), 30)
    self.assertGreater(np.nonzero(dark)[1].mean(), 36.0)

  def test_one_program_serves_other_worlds_of_one_size(self):
    self._render(self._scene(), False)
    before = render._render_chunk._cache_size()
    for seed in range(3):
      scene = scenes.make_scene(
        "curved_motion", seed=seed, frames=5, size=_SIZE, fps=24.0
      )
      self._render(scene, False)
    self.assertLessEqual(render._render_chunk._cache_size() - before, 1)

  def test_refuses_shapes_that_do_not_fit(self):
    found = self._scene(3)
    with self.assertRaisesRegex(ValueError, r"expected \[T, 4, 4\]"):
      render.render_sequence(found.world, np.eye(4), _K, _SIZE)
    with self.assertRaisesRegex(ValueError, "3 frames, poses_c2w 2"):
      render.render_sequence(
        found.world, found.c2w[:2], _K, _SIZE, motion=found.motion
      )


class PictureTest(absltest.TestCase):
  def test_every_subject_gives_sift_at_least_fifty_keypoints(self):
    counts = {}
    for category in scenes.CATEGORIES:
      scene = scenes.make_scene(
        category, seed=0, frames=1, size=(240, 320), fps=24.0
      )
      frames = render.render_sequence(
        scene.world,
        scene.c2w,
        scene.intrinsics,
        scene.size,
        motion=scene.motion,
      )
      grey = cv2.cvtColor(frames.rgb[0], cv2.COLOR_RGB2GRAY)
      mask = frames.mask(scene.world, 0)[0].astype(np.uint8)
      counts[category] = len(cv2.SIFT_create().detect(grey, mask))
    self.assertGreaterEqual(min(counts.values()), 50, counts)


if __name__ == "__main__":
  absltest.main()
