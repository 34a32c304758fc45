# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Surface F-score: SciPy's KD-tree as oracle, hand-made clouds."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from absl.testing import absltest, parameterized
from scipy.spatial import cKDTree

from kernels import point_cloud

_SCORE = jax.jit(functools.partial(point_cloud.radius_fscore, tile=16))


def _score(a, b, radius):
  return _SCORE(
    jnp.asarray(a),
    jnp.ones(len(a), bool),
    jnp.asarray(b),
    jnp.ones(len(b), bool),
    jnp.asarray(radius, jnp.asarray(a).dtype),
  )


class PointCloudTest(parameterized.TestCase):
  def test_equals_kd_tree(self):
    rng = np.random.default_rng(0)
    a, b = rng.uniform(0, 1, (45, 3)), rng.uniform(0, 1, (70, 3))
    radius = 0.15
    with jax.enable_x64(True):
      found = _score(a, b, radius)
    precision = np.mean(cKDTree(b).query(a)[0] <= radius)
    recall = np.mean(cKDTree(a).query(b)[0] <= radius)
    self.assertAlmostEqual(float(found.precision), precision, places=12)
    self.assertAlmostEqual(float(found.recall), recall, places=12)
    self.assertAlmostEqual(
      float(found.value),
      2 * precision * recall / (precision + recall),
      places=12,
    )

  def test_by_hand(self):
    a = np.array([[0.0, 0, 0], [5.0, 0, 0]], np.float32)
    b = np.array([[0.0, 0, 0.5], [0, 0.5, 0], [9, 9, 9]], np.float32)
    found = _score(a, b, 0.5)  # a distance equal to the radius is near
    self.assertAlmostEqual(float(found.precision), 1 / 2)
    self.assertAlmostEqual(float(found.recall), 2 / 3, places=6)
    self.assertAlmostEqual(float(found.value), 4 / 7, places=6)

  def test_far_clouds_score_zero_and_empty_ones_nothing(self):
    a = np.zeros((3, 3), np.float32)
    far = _score(a, a + 10, 0.5)
    self.assertTrue(bool(far.valid))
    self.assertEqual(float(far.value), 0.0)
    empty = point_cloud.radius_fscore(
      jnp.asarray(a),
      jnp.zeros(3, bool),
      jnp.asarray(a),
      jnp.ones(3, bool),
      jnp.float32(1.0),
      tile=2,
    )
    self.assertFalse(bool(empty.valid))

  def test_order_and_rigid_motion_change_nothing(self):
    rng = np.random.default_rng(1)
    a = rng.uniform(0, 1, (40, 3)).astype(np.float32)
    b = rng.uniform(0, 1, (40, 3)).astype(np.float32)
    plain = float(_score(a, b, 0.2).value)
    self.assertEqual(plain, float(_score(a[::-1], b[::-1], 0.2).value))
    turn = np.array([[0, -1, 0], [1, 0, 0], [0, 0, 1]], np.float32)
    moved = float(_score(a @ turn.T, b @ turn.T, 0.2).value)
    self.assertAlmostEqual(plain, moved, places=6)

  def test_first_point_of_a_voxel_stays(self):
    points = jnp.array(
      [[0.1, 0, 0], [0.9, 0, 0], [-0.1, 0, 0], [5, 5, 5], [0.5, 0.5, 0.5]]
    )
    valid = jnp.array([True, True, True, False, True])
    kept = point_cloud.first_per_voxel(points, valid, jnp.float32(1.0))
    np.testing.assert_array_equal(kept, [True, False, True, False, False])

  def test_voxels_equal_numpy(self):
    rng = np.random.default_rng(2)
    points = rng.uniform(-2, 2, (200, 3)).astype(np.float32)
    valid = rng.random(200) < 0.8
    kept = point_cloud.first_per_voxel(
      jnp.asarray(points), jnp.asarray(valid), jnp.float32(0.5)
    )
    places = np.flatnonzero(valid)
    _, first = np.unique(
      np.floor(points[valid] / np.float32(0.5)), axis=0, return_index=True
    )
    np.testing.assert_array_equal(np.flatnonzero(kept), np.sort(places[first]))

  @parameterized.parameters((False, 3.0), (True, 1.0))
  def test_threshold_of_two_views(self, pooled, median):
    # Medians 1 and 5; the pooled median of 1 1 1 5 is 1.
    def cloud(depth):
      z = jnp.asarray(depth, jnp.float32)
      return point_cloud.PointCloud(
        jnp.zeros((len(depth), 3)), z, jnp.ones(len(depth), bool)
      )

    tau = point_cloud.distance_threshold(
      cloud([1.0, 1.0, 1.0]),
      cloud([5.0]),
      relative=0.05,
      minimum=0.02,
      pooled=pooled,
    )
    self.assertAlmostEqual(float(tau), 0.05 * median, places=6)

  def test_the_same_view_twice_is_perfect(self):
    rng = np.random.default_rng(3)
    depth = jnp.asarray(rng.uniform(2, 3, (12, 16)).astype(np.float32))
    k = jnp.array([[10.0, 0, 8], [0, 10.0, 6], [0, 0, 1]])
    cloud = point_cloud.surface_points(
      depth.at[0, 0].set(jnp.nan),
      k,
      jnp.eye(4),
      pixel_stride=2,
      min_depth=1e-4,
      max_depth=1000.0,
    )
    self.assertEqual(int(cloud.valid.sum()), 6 * 8 - 1)
    found = point_cloud.surface_fscore(cloud, cloud, jnp.float32(0.1), tile=16)
    self.assertEqual(float(found.value), 1.0)


if __name__ == "__main__":
  absltest.main()
