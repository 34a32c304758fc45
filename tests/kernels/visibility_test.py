# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Visibility maps: hand-placed points, selection, OpenCV's morphology."""

import functools

import cv2
import jax
import jax.numpy as jnp
import numpy as np
from absl.testing import absltest, parameterized

from kernels import visibility

_OPTIONS = {
  "height": 6,
  "width": 8,
  "limit": 100,
  "min_depth": 0.05,
  "max_depth": 20.0,
  "limits_inclusive": False,
  "min_points": 1,
}
_jitted = jax.jit(visibility.reached_pixels, static_argnames=tuple(_OPTIONS))


def _reach(*arrays, **options):
  return _jitted(*arrays, **{**_OPTIONS, **options})


_K = np.array([[4.0, 0, 3.5], [0, 4.0, 2.5], [0, 0, 1]], np.float32)


def _one(depth, shift=(0.0, 0.0, 0.0), **options):
  pose = np.eye(4, dtype=np.float32)
  pose[:3, 3] = shift
  return _reach(
    jnp.asarray(depth, jnp.float32),
    jnp.asarray(_K),
    jnp.asarray(_K),
    jnp.asarray(pose)[None],
    jnp.eye(4)[None],
    jnp.ones(1),
    **options,
  )


class SelectEvenlyTest(parameterized.TestCase):
  @parameterized.parameters(0, 1, 5, 9, 10)
  def test_ranks_equal_a_linear_ramp(self, marked):
    keep = np.zeros(17, bool)
    keep[np.random.default_rng(marked).choice(17, marked, replace=False)] = True
    found = visibility.select_evenly(jnp.asarray(keep), limit=6)
    positions = np.flatnonzero(keep)
    if marked > 6:
      positions = positions[[i * (marked - 1) // 5 for i in range(6)]]
    np.testing.assert_array_equal(
      np.asarray(found.indices)[np.asarray(found.valid)], positions
    )
    self.assertEqual(int(found.total), marked)

  def test_large_products_do_not_overflow(self):
    select = jax.jit(functools.partial(visibility.select_evenly, limit=20_000))
    found = select(jnp.ones(300_000, bool))
    expected = np.linspace(0, 299_999, 20_000).astype(int)
    self.assertLessEqual(
      int(np.abs(np.asarray(found.indices) - expected).max()), 1
    )
    self.assertEqual(int(found.indices[-1]), 299_999)

  def test_limit_below_two_is_refused(self):
    with self.assertRaises(ValueError):
      visibility.select_evenly(jnp.ones(3, bool), limit=1)


class ReachedPixelsTest(parameterized.TestCase):
  def test_identity_keeps_every_pixel_with_depth(self):
    depth = np.full((6, 8), 2.0)
    depth[3] = np.nan
    depth[4] = 0.0
    depth[5] = 20.0
    # Half a pixel (0.25 m at 2 m) keeps points off the pixel borders.
    found = _one(depth, shift=(0.25, 0.25, 0.0))
    self.assertEqual(int(found.points), 24)
    self.assertFalse(bool(found.mask[3:].any()))
    self.assertTrue(bool(found.mask[:3].all()))

  def test_limits_can_be_included(self):
    depth = np.full((6, 8), 20.0)
    self.assertEqual(int(_one(depth).points), 0)
    self.assertEqual(int(_one(depth, limits_inclusive=True).points), 48)

  def test_a_point_moves_by_the_disparity(self):
    depth = np.full((6, 8), np.nan)
    depth[1, 2] = 2.0
    # 4 px focal, 1.2 m to the right at 2 m: 2.4 px, from 2 to 4.4.
    found = _one(depth, shift=(1.2, 0.25, 0.0))
    self.assertEqual(np.argwhere(np.asarray(found.mask)).tolist(), [[1, 4]])

  def test_points_behind_and_outside_are_dropped(self):
    depth = np.full((6, 8), 2.0)
    self.assertFalse(bool(_one(depth, shift=(0, 0, -5.0)).mask.any()))
    self.assertFalse(bool(_one(depth, shift=(50.0, 0, 0)).mask.any()))

  def test_first_of_equal_variants_wins(self):
    depth = jnp.full((6, 8), 2.0)
    poses = jnp.broadcast_to(jnp.eye(4), (3, 4, 4))
    found = _reach(
      depth, jnp.asarray(_K), jnp.asarray(_K), poses, poses, jnp.ones(3)
    )
    self.assertEqual(int(found.chosen), 0)
    self.assertLen(set(np.asarray(found.in_bounds).tolist()), 1)

  def test_too_few_points_give_an_empty_map(self):
    depth = np.full((6, 8), np.nan)
    depth[3, 2] = 2.0
    self.assertFalse(bool(_one(depth, min_points=2).mask.any()))


class MorphologyTest(parameterized.TestCase):
  @parameterized.parameters(3, 5, 11)
  def test_equals_opencv(self, size):
    mask = np.random.default_rng(size).random((23, 17)) < 0.1
    square = np.ones((size, size), np.uint8)
    grown = cv2.dilate(mask.astype(np.uint8), square) > 0
    closed = (
      cv2.morphologyEx(mask.astype(np.uint8), cv2.MORPH_CLOSE, square) > 0
    )
    np.testing.assert_array_equal(visibility.dilate(mask, size=size), grown)
    np.testing.assert_array_equal(
      jax.jit(functools.partial(visibility.close_gaps, size=size))(mask), closed
    )

  def test_even_sizes_are_refused(self):
    with self.assertRaises(ValueError):
      visibility.dilate(jnp.zeros((3, 3), bool), size=2)


if __name__ == "__main__":
  absltest.main()
