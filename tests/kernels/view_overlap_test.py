# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""View overlap: a fronto-parallel wall with shares counted by hand."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from absl.testing import absltest, parameterized

from kernels import view_overlap

_K = np.array([[10.0, 0, 9.5], [0, 10.0, 4.5], [0, 0, 1]], np.float32)
_overlap = jax.jit(
  functools.partial(view_overlap.view_overlap, grid=1, relative_tolerance=0.05)
)


def _found(depth_a, depth_b, shift):
  pose = np.eye(4, dtype=np.float32)
  pose[:3, 3] = shift
  return _overlap(
    jnp.asarray(depth_a, jnp.float32), _K, np.eye(4, dtype=np.float32),
    jnp.asarray(depth_b, jnp.float32), _K, pose,
  )  # fmt: skip


class ViewOverlapTest(parameterized.TestCase):
  def setUp(self):
    super().setUp()
    self.wall = np.full((10, 20), 2.0)

  def test_same_view_overlaps_completely(self):
    found = _found(self.wall, self.wall, (0, 0, 0))
    self.assertEqual(float(found.projected), 1.0)
    self.assertEqual(float(found.visible), 1.0)
    self.assertEqual(int(found.points), 200)

  def test_sideways_motion_loses_the_columns_it_should(self):
    # 1 m at 2 m depth and 10 px focal: 5 of 20 columns leave the image.
    found = _found(self.wall, self.wall, (1.0, 0, 0))
    self.assertAlmostEqual(float(found.projected), 0.75, places=6)
    self.assertAlmostEqual(float(found.visible), 0.75, places=6)

  def test_occluded_points_are_projected_but_not_visible(self):
    nearer = self.wall.copy()
    nearer[:, :10] = 1.0
    found = _found(self.wall, nearer, (0, 0, 0))
    self.assertEqual(float(found.projected), 1.0)
    self.assertAlmostEqual(float(found.visible), 0.5, places=6)

  def test_unknown_depth_is_left_out(self):
    holes = self.wall.copy()
    holes[:, ::2] = np.nan
    found = _found(holes, self.wall, (0, 0, 0))
    self.assertEqual(int(found.points), 100)
    self.assertEqual(float(found.projected), 1.0)
    seen = _found(self.wall, holes, (0, 0, 0))
    self.assertEqual(int(seen.compared), 100)

  def test_nothing_known_gives_zero_with_count_zero(self):
    empty = np.full((10, 20), np.nan)
    found = _found(empty, self.wall, (0, 0, 0))
    self.assertEqual((float(found.projected), int(found.points)), (0.0, 0))

  def test_points_behind_the_target_are_not_projected(self):
    found = _found(self.wall, self.wall, (0, 0, 5.0))
    self.assertEqual(float(found.projected), 0.0)

  def test_grid_must_be_positive(self):
    with self.assertRaises(ValueError):
      view_overlap.view_overlap(
        jnp.ones((2, 2)), _K, jnp.eye(4), jnp.ones((2, 2)), _K, jnp.eye(4),
        grid=0, relative_tolerance=0.1,
      )  # fmt: skip


if __name__ == "__main__":
  absltest.main()
