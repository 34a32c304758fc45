# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Correspondences: hand-worked pixels, invariances, a NumPy oracle."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
from absl.testing import absltest, parameterized
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels import correspondence
from protocols.orbia import benchmark_baseline as oracle
from protocols.orbia.constants import RELEASED
from protocols.orbia.views import Views

_K = np.array([[20.0, 0, 9.5], [0, 20.0, 7.5], [0, 0, 1]], np.float32)
_OPTIONS = {
  "pixel_stride": 1,
  "min_depth": 1e-4,
  "max_depth": 1000.0,
  "z_floor": 1e-8,
  "occlusion_tolerance": 0.1,
}
_RUN = jax.jit(functools.partial(correspondence.correspond, **_OPTIONS))


def _pose(x=0.0, z=0.0):
  pose = np.eye(4, dtype=np.float32)
  pose[0, 3], pose[2, 3] = x, z
  return pose


def _find(first, second, pose=None, run=_RUN):
  pose = _pose() if pose is None else pose
  return run(first, second, _pose(), pose, _K, _K)


def _room(seed=0, size=(16, 20)):
  rng = np.random.default_rng(seed)
  return (4.0 + rng.uniform(0, 1, size)).astype(np.float32)


class CorrespondenceTest(parameterized.TestCase):
  def test_identity_matches_every_pixel_with_itself(self):
    depth = _room()
    found = _find(depth, depth)
    self.assertEqual(int(found.num_valid), depth.size)
    np.testing.assert_array_equal(found.source_row, found.target_row)
    np.testing.assert_array_equal(found.source_column, found.target_column)
    error = correspondence.reprojection_error(found, depth_floor=1e-8)
    self.assertEqual(int(error.count), depth.size)
    self.assertLess(float(error.value), 1e-6)

  def test_sideways_step_by_hand(self):
    # A wall at 4 m and a step of 1 m: 20 * 1 / 4 = 5 pixels to the left.
    wall = np.full((16, 20), 4.0, np.float32)
    found = _find(wall, wall, _pose(x=1.0))
    keep = np.asarray(found.valid)
    self.assertEqual(int(found.attempted), 320)
    self.assertEqual(keep.sum(), 16 * 15)
    shift = np.asarray(found.source_column - found.target_column)[keep]
    np.testing.assert_array_equal(shift, 5)

  def test_occlusion_is_one_sided(self):
    source = np.full((16, 20), 4.0, np.float32)
    for factor, kept in ((1.2, 320), (1.0, 320), (0.92, 320), (0.9, 0)):
      target = source * np.float32(factor)
      self.assertEqual(int(_find(source, target).num_valid), kept, factor)

  def test_nearest_of_a_pixel_wins_and_ties_go_to_the_first(self):
    pixel = jnp.array([3, 3, 3, 5, 5, 7], jnp.int32)
    z = jnp.array([2.0, 1.0, 1.0, 4.0, 4.0, 9.0])
    valid = jnp.array([True, True, True, True, True, False])
    wins = correspondence.nearest_per_pixel(pixel, z, valid, num_pixels=8)
    np.testing.assert_array_equal(
      wins, [False, True, False, True, False, False]
    )

  def test_a_winner_that_is_hidden_is_not_replaced(self):
    # All points fall on one pixel; the nearest lies behind the surface there.
    source = np.full((16, 20), 4.0, np.float32)
    far = _pose(z=-396.0)
    target = np.full((16, 20), 1.0, np.float32)
    self.assertEqual(int(_find(source, target, far).num_valid), 0)

  def test_invalid_depth_is_neither_attempted_nor_seen(self):
    source, target = _room(), _room()
    source[0, :6] = [np.nan, np.inf, -1.0, 0.0, 1e-5, 2000.0]
    target[1, :3] = [np.nan, 0.0, 2000.0]
    found = _find(source, target)
    self.assertEqual(int(found.attempted), source.size - 6)
    self.assertEqual(int(found.num_valid), source.size - 9)

  def test_nothing_valid_gives_no_value(self):
    empty = np.full((16, 20), np.nan, np.float32)
    found = _find(empty, _room())
    error = correspondence.reprojection_error(found, depth_floor=1e-8)
    self.assertEqual((int(found.attempted), int(error.count)), (0, 0))
    self.assertEqual(float(error.value), 0.0)

  def test_nan_pose_gives_no_correspondence(self):
    pose = _pose()
    pose[0, 3] = np.nan
    self.assertEqual(int(_find(_room(), _room(), pose).num_valid), 0)

  def test_padding_changes_nothing(self):
    source, target = _room(1), _room(2)
    plain = _find(source, target, _pose(x=0.3, z=0.5))
    canvas = [
      np.pad(d, ((0, 4), (0, 12)), constant_values=np.nan)
      for d in (source, target)
    ]
    padded = _find(*canvas, _pose(x=0.3, z=0.5))
    for name in ("attempted", "num_valid"):
      self.assertEqual(int(getattr(plain, name)), int(getattr(padded, name)))
    a = correspondence.reprojection_error(plain, depth_floor=1e-8)
    b = correspondence.reprojection_error(padded, depth_floor=1e-8)
    self.assertAlmostEqual(float(a.value), float(b.value), places=7)

  @parameterized.parameters(1, 4)
  def test_equals_numpy(self, stride):
    size = (40, 52)
    depth = np.stack([_room(3, size), _room(4, size)])
    poses = np.stack([_pose(), _pose(x=0.4, z=0.7)])
    views = Views(
      np.arange(2),
      depth,
      np.tile(size, (2, 1)),
      np.stack([_K, _K]),
      poses,
      np.ones(2, bool),
      np.ones(2, bool),
    )

    c = dataclasses.replace(RELEASED, pixel_stride=stride)
    expected = oracle.correspondences(views, 0, 1, c)
    options = {**_OPTIONS, "pixel_stride": stride}
    run = jax.jit(functools.partial(correspondence.correspond, **options))
    found = run(depth[0], depth[1], poses[0], poses[1], _K, _K)
    keep = np.asarray(found.valid)
    self.assertEqual(keep.sum(), len(expected.z))
    columns = np.asarray(found.target_column)[keep]
    order = np.lexsort((columns, np.asarray(found.target_row)[keep]))
    for ours, theirs in (
      (found.source_row, expected.source_row),
      (found.source_column, expected.source_column),
      (found.target_row, expected.target_row),
      (found.target_column, expected.target_column),
    ):
      np.testing.assert_array_equal(np.asarray(ours)[keep][order], theirs)
    # float32 against float64.
    np.testing.assert_allclose(
      np.asarray(found.projected)[keep][order], expected.z, rtol=1e-5
    )

  @settings(max_examples=10, deadline=None)
  @given(scale=st.floats(0.3, 3.0))
  def test_error_does_not_depend_on_the_unit(self, scale):
    source, target = _room(5), _room(6)
    plain = _find(source, target, _pose(x=0.2))
    scaled = _find(
      source * np.float32(scale),
      target * np.float32(scale),
      _pose(x=0.2 * scale),
    )
    a = correspondence.reprojection_error(plain, depth_floor=1e-8)
    b = correspondence.reprojection_error(scaled, depth_floor=1e-8)
    # A pixel may flip by rounding: its share of the mean is below 1e-2.
    self.assertAlmostEqual(float(a.value), float(b.value), delta=1e-2)
    self.assertLessEqual(abs(int(a.count) - int(b.count)), 3)

  def test_vmap_equals_loop_and_dtype_is_kept(self):
    with jax.enable_x64(True):
      first = jnp.asarray(np.stack([_room(1), _room(2)]), jnp.float64)
      second = jnp.asarray(np.stack([_room(3), _room(4)]), jnp.float64)
      k, eye = jnp.asarray(_K, jnp.float64), jnp.eye(4)
      pose = jnp.asarray(_pose(x=0.5), jnp.float64)

      def one(a, b):
        return correspondence.correspond(a, b, eye, pose, k, k, **_OPTIONS)

      batched = jax.vmap(one)(first, second)
      self.assertEqual(batched.projected.dtype, jnp.float64)
      for row in range(2):
        alone = one(first[row], second[row])
        np.testing.assert_array_equal(batched.valid[row], alone.valid)
        np.testing.assert_allclose(
          batched.projected[row], alone.projected, rtol=1e-12
        )

  def test_gradients_are_finite_with_holes_and_equal_differences(self):
    with jax.enable_x64(True):
      source = jnp.asarray(_room(7), jnp.float64)
      target = jnp.asarray(_room(8), jnp.float64).at[5, 6].set(jnp.nan)
      k, eye = jnp.asarray(_K, jnp.float64), jnp.eye(4)
      pose = jnp.asarray(_pose(z=0.4), jnp.float64)

      def error(scale):
        found = correspondence.correspond(
          (source * scale).at[2, 3].set(jnp.nan),
          target,
          eye,
          pose,
          k,
          k,
          **_OPTIONS,
        )
        return correspondence.reprojection_error(found, depth_floor=1e-8).value

      step = 1e-7
      slope = jax.grad(error)(1.0)
      numeric = (error(1.0 + step) - error(1.0 - step)) / (2 * step)
      np.testing.assert_allclose(slope, numeric, rtol=1e-5)

      def by_pose(p):
        found = correspondence.correspond(
          source, target, eye, p, k, k, **_OPTIONS
        )
        return correspondence.reprojection_error(found, depth_floor=1e-8).value

      self.assertTrue(bool(jnp.all(jnp.isfinite(jax.grad(by_pose)(pose)))))

  def test_wrong_rank_raises_at_trace_time(self):
    with self.assertRaises(AssertionError):
      _find(np.zeros((2, 3, 4), np.float32), _room())


if __name__ == "__main__":
  absltest.main()
