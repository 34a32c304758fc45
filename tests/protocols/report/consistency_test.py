# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Consistency maps: worked by hand, and against Orbia's correspondences."""

import dataclasses

import jax.numpy as jnp
import numpy as np
from absl.testing import absltest

from kernels import correspondence
from perception import observation
from protocols.report import consistency
from protocols.report.consistency import (
  AGREES,
  CONTRADICTS,
  HIDDEN,
  MOVING,
  OUTSIDE,
  UNKNOWN,
  View,
)

# A focal length of 10 pixels: at depth 2, 0.2 m to the right are one pixel.
_K = np.array([[10.0, 0, 2], [0, 10.0, 1], [0, 0, 1]])


def _view(depth, *, x=0.0, **changes):
  depth = np.asarray(depth, np.float32)
  pose = np.eye(4)
  pose[0, 3] = x
  picture = np.full((*depth.shape, 3), 90, np.uint8)
  return View("frame 0", picture, depth, _K, pose, **changes)


def _wall(value=2.0):
  return np.full((3, 5), value)


class CompareTest(absltest.TestCase):
  def test_a_step_aside_moves_a_wall_out_of_view(self):
    kind, error = consistency.compare(_view(_wall()), _view(_wall(), x=0.2))
    # The camera moved right by one pixel: the first column is gone.
    np.testing.assert_array_equal(kind[:, 0], OUTSIDE)
    np.testing.assert_array_equal(kind[:, 1:], AGREES)
    np.testing.assert_allclose(error[:, 1:], 0.0, atol=1e-6)
    self.assertTrue(np.isnan(error[:, 0]).all())

  def test_behind_is_hidden_and_in_front_contradicts(self):
    target = _wall()
    target[:, 1] = 1.0  # a pole in the target, nearer than the wall
    target[:, 3] = 4.0  # a hole: the target sees past the source's wall
    kind, error = consistency.compare(_view(_wall()), _view(target))
    np.testing.assert_array_equal(kind[:, 1], HIDDEN)
    np.testing.assert_array_equal(kind[:, 3], CONTRADICTS)
    np.testing.assert_array_equal(kind[:, [0, 2, 4]], AGREES)
    # z = 2 against o = 4.
    np.testing.assert_allclose(error[:, 3], 0.5)
    self.assertTrue(np.isnan(error[:, 1]).all())

  def test_unknown_depth_on_either_side_and_behind_the_camera(self):
    source, target = _wall(), _wall()
    source[0, 0], source[0, 1] = np.nan, 0.0
    target[1, 2] = np.nan
    kind, _ = consistency.compare(_view(source), _view(target))
    self.assertEqual([kind[0, 0], kind[0, 1], kind[1, 2]], [UNKNOWN] * 3)
    pose = np.eye(4)
    pose[2, 3] = 3.0  # the camera went past the wall
    ahead = dataclasses.replace(_view(_wall()), pose_c2w=pose)
    kind, error = consistency.compare(_view(_wall()), ahead)
    np.testing.assert_array_equal(kind, OUTSIDE)
    self.assertTrue(np.isnan(error).all())

  def test_moving_objects_of_either_view_are_left_out(self):
    first, second = np.zeros((3, 5), bool), np.zeros((3, 5), bool)
    first[0, 2], second[2, 3] = True, True
    kind, error = consistency.compare(
      _view(_wall(), moving=first), _view(_wall(), moving=second)
    )
    self.assertEqual((kind[0, 2], kind[2, 3]), (MOVING, MOVING))
    self.assertEqual(int((kind == MOVING).sum()), 2)
    self.assertTrue(np.isnan(error[0, 2]))

  def test_what_orbia_measures_is_what_is_drawn(self):
    rng = np.random.default_rng(0)
    depth = rng.uniform(1.5, 4.0, (2, 24, 32)).astype(np.float32)
    depth[:, ::7, ::5] = np.nan
    k = np.array([[30.0, 0, 15.5], [0, 30.0, 11.5], [0, 0, 1]])
    angle = 0.1
    pose = np.eye(4)
    pose[[0, 0, 2, 2], [0, 2, 0, 2]] = (
      *(np.cos(angle), np.sin(angle)),
      *(-np.sin(angle), np.cos(angle)),
    )
    pose[:3, 3] = (0.1, -0.05, 0.2)
    picture = np.zeros((24, 32, 3), np.uint8)
    source = View("a", picture, depth[0], k, np.eye(4))
    target = View("b", picture, depth[1], k, pose)
    kind, error = consistency.compare(source, target)
    found = correspondence.correspond(
      jnp.asarray(depth[0]),
      jnp.asarray(depth[1]),
      jnp.eye(4),
      jnp.asarray(pose, jnp.float32),
      jnp.asarray(k, jnp.float32),
      jnp.asarray(k, jnp.float32),
      pixel_stride=1,
      min_depth=1e-4,
      max_depth=1000.0,
      z_floor=1e-8,
      occlusion_tolerance=consistency.TOLERANCE,
    )
    valid = np.asarray(found.valid).reshape(24, 32)
    self.assertGreater(valid.sum(), 50)
    # Orbia keeps one source for each target pixel; every one of them is drawn
    # as compared, with the same error.
    self.assertTrue(np.isin(kind[valid], (AGREES, CONTRADICTS)).all())
    ratio = np.asarray(found.projected) / np.asarray(found.observed)
    wanted = np.abs(ratio - 1.0).reshape(24, 32)
    np.testing.assert_allclose(error[valid], wanted[valid], atol=1e-5)


class SectionTest(absltest.TestCase):
  def test_pictures_have_texts_and_shares(self):
    target = _wall()
    target[:, 3] = 4.0
    made = consistency.section(
      _view(_wall()), _view(target), key="p", why="Because."
    )
    self.assertEqual(
      [shot.name for shot in made.shots],
      [
        f"p-{n}"
        for n in ["source", "target", "depth", "depth2", "error", "regions"]
      ],
    )
    self.assertIn("20% more than 10% in front", made.about)
    self.assertIn("80% seen again", made.shots[-1].description)
    self.assertNotIn("moving", " ".join(e.text for e in made.legend))
    for shot in made.shots:
      self.assertStartsWith(shot.jpeg, b"\xff\xd8")

  def test_a_view_of_a_clip_follows_resize_and_crop(self):
    geometry = observation.Geometry(
      np.full((1, 4, 6), 2.0, np.float32),
      _K[None].astype(np.float32),
      np.eye(4)[None],
      np.array([0], np.int32),
      (12, 12),
      "metre",
      observation.Provenance("", "exact", "1"),
      resized_size=(6, 6),
    )
    frame = np.zeros((12, 12, 3), np.uint8)
    frame[:8] = 200  # of 12 rows 8 remain when 2 of 6 are cut off
    mask = np.zeros((12, 12), bool)
    mask[:2, :2] = True
    view = consistency.view_of("f", geometry, 0, frame, mask)
    self.assertEqual(view.picture.shape, (4, 6, 3))
    self.assertTrue((view.picture == 200).all())
    self.assertEqual(np.argwhere(view.moving).tolist(), [[0, 0]])


if __name__ == "__main__":
  absltest.main()
