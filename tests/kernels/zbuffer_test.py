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
