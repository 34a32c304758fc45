# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""The z-buffer against a loop over points."""

import jax
import jax.numpy as jnp
import numpy as np
from absl.testing import absltest, parameterized

from kernels import zbuffer


def _loop(xy, z, valid, height, width, radius):
  """One splat after the other, nearest first come."""
  depth = np.full((height, width), np.inf)
  source = np.full((height, width), -1)
  for i in np.flatnonzero(valid & np.isfinite(z) & np.all(np.isfinite(xy), 1)):
    column, row = (int(np.floor(c + 0.5)) for c in xy[i])
    for y in range(max(row - radius, 0), min(row + radius + 1, height)):
      for x in range(max(column - radius, 0), min(column + radius + 1, width)):
        if z[i] < depth[y, x]:
          depth[y, x], source[y, x] = z[i], i
  return depth, source


class ZBufferTest(parameterized.TestCase):
  @parameterized.parameters(0, 1)
  def test_equals_a_loop(self, radius):
    rng = np.random.default_rng(radius)
    xy = rng.uniform(-4, 20, (300, 2)).astype(np.float32)
    z = rng.integers(1, 9, 300).astype(np.float32)  # many equal depths
    valid = rng.random(300) < 0.8
    xy[3], z[4] = np.nan, np.inf
    run = jax.jit(
      lambda *a: zbuffer.splat_points(*a, height=12, width=17, radius=radius)
    )
    found = run(xy, z, valid)
    depth, source = _loop(xy, z, valid, 12, 17, radius)
    np.testing.assert_array_equal(found.source, source)
    np.testing.assert_array_equal(found.depth, np.where(source >= 0, depth, 0))
    self.assertEqual(int(found.num_filled), np.count_nonzero(source >= 0))
    colours = rng.random((300, 3)).astype(np.float32)
    drawn = zbuffer.gather_values(found, jnp.asarray(colours))
    np.testing.assert_array_equal(
      drawn[source >= 0], colours[source[source >= 0]]
    )
    np.testing.assert_array_equal(drawn[source < 0], 0)

  def test_no_point_fills_nothing(self):
    found = zbuffer.splat_points(
      jnp.zeros((0, 2)),
      jnp.zeros(0),
      jnp.zeros(0, bool),
      height=3,
      width=4,
      radius=1,
    )
    self.assertEqual(int(found.num_filled), 0)
    np.testing.assert_array_equal(found.source, -1)

  def test_gradient_goes_to_the_nearest_point(self):
    xy = jnp.array([[1.0, 1.0], [1.0, 1.0]])
    grad = jax.grad(
      lambda z: zbuffer.splat_points(
        xy, z, jnp.ones(2, bool), height=3, width=3, radius=0
      ).depth.sum()
    )(jnp.array([2.0, 1.0]))
    np.testing.assert_array_equal(grad, [0, 1])

  def test_hidden_points_have_no_cell(self):
    # One surface at z = 2 over four pixels; points in front of it, on it,
    # just behind it, far behind it, outside, masked, and where nothing is.
    buffer = zbuffer.ZBuffer(
      depth=jnp.array([[2.0, 2.0], [2.0, 0.0]]),
      source=jnp.array([[0, 0], [0, -1]]),
      filled=jnp.array([[True, True], [True, False]]),
      num_filled=jnp.int32(3),
    )
    xy = jnp.array(
      [[0, 0], [1.4, 0], [0, 0.6], [0, 0], [5, 0], [0, 0], [1, 1]], float
    )
    z = jnp.array([1.0, 2.0, 2.05, 2.2, 1.0, 1.0, 1.0])
    valid = jnp.array([True] * 5 + [False, True])
    cells = zbuffer.cells_in_front(xy, z, valid, buffer, tolerance=0.03)
    np.testing.assert_array_equal(cells, [0, 1, 2, 4, 4, 4, 4])

  def test_means_of_cells_equal_a_loop(self):
    rng = np.random.default_rng(0)
    cells = rng.integers(-2, 9, 200).astype(np.int32)
    values = rng.random((3, 200))
    run = jax.jit(lambda c, v: zbuffer.mean_of_cells(c, v, num_cells=8))
    mean, count = run(cells, jnp.asarray(values, jnp.float32))
    for cell in range(8):
      mine = values[:, cells == cell]
      self.assertEqual(int(count[cell]), mine.shape[1])
      np.testing.assert_allclose(mean[cell], mine.mean(axis=1), rtol=1e-5)
    mean, count = run(np.full(3, 5, np.int32), jnp.ones((3, 3)))
    np.testing.assert_array_equal(count, [0, 0, 0, 0, 0, 3, 0, 0])
    np.testing.assert_array_equal(mean[5], [1, 1, 1])
    np.testing.assert_array_equal(mean[0], [0, 0, 0])

  def test_empty_frame_is_refused(self):
    with self.assertRaisesRegex(ValueError, "bad size"):
      zbuffer.splat_points(
        jnp.zeros((1, 2)),
        jnp.ones(1),
        jnp.ones(1, bool),
        height=0,
        width=4,
        radius=1,
      )


if __name__ == "__main__":
  absltest.main()
