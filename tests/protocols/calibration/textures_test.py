# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Procedural textures: range, determinism, cells, band limit."""

import jax.numpy as jnp
import numpy as np
from absl.testing import absltest, parameterized

from protocols.calibration import textures

_BLACK, _WHITE = (0.0, 0.0, 0.0), (1.0, 1.0, 1.0)
_KINDS = {
  "checker": textures.checker(_BLACK, _WHITE, cell=0.5, seed=3),
  "bricks": textures.bricks(_BLACK, _WHITE, width=0.5, seed=3),
  "tiles": textures.tiles(_BLACK, _WHITE, cell=0.5, seed=3),
  "speckle": textures.speckle(_BLACK, _WHITE, period=0.5, seed=3),
}


def _grid(texture, *, footprint, axis=1, side=64, step=0.0371):
  """Red channel on a grid of the plane y = 0.1."""
  line = np.arange(side, dtype=np.float32) * step - 1.0
  x, z = (v.ravel() for v in np.meshgrid(line, line))
  y = np.full_like(x, 0.1)
  foot = np.full_like(x, footprint)
  red, green, blue = textures.evaluate(
    jnp.asarray(texture.row())[None],
    jnp.zeros(x.shape, jnp.int32),
    (jnp.asarray(x), jnp.asarray(y), jnp.asarray(z)),
    (jnp.asarray(foot),) * 3,
    jnp.full(x.shape, axis, jnp.int32),
  )
  return np.stack([red, green, blue], axis=-1).reshape(side, side, 3)


class TexturesTest(parameterized.TestCase):
  @parameterized.parameters(*_KINDS)
  def test_colours_stay_in_range_vary_and_repeat(self, name):
    found = _grid(_KINDS[name], footprint=0.005)
    self.assertGreaterEqual(found.min(), 0.0)
    self.assertLessEqual(found.max(), 1.0)
    self.assertGreater(found[..., 0].std(), 0.08)
    np.testing.assert_array_equal(found, _grid(_KINDS[name], footprint=0.005))

  @parameterized.parameters(*_KINDS)
  def test_a_pixel_of_many_periods_sees_almost_no_pattern(self, name):
    fine = _grid(_KINDS[name], footprint=0.005)[..., 0]
    coarse = _grid(_KINDS[name], footprint=3.0)[..., 0]
    self.assertLess(coarse.std(), 0.1 * fine.std())

  def test_other_seeds_give_other_textures(self):
    other = textures.speckle(_BLACK, _WHITE, period=0.5, seed=4)
    a = _grid(_KINDS["speckle"], footprint=0.005)[..., 0]
    b = _grid(other, footprint=0.005)[..., 0]
    self.assertLess(abs(np.corrcoef(a.ravel(), b.ravel())[0, 1]), 0.35)

  def test_checker_alternates_by_hand(self):
    texture = textures.Texture(
      _BLACK, _WHITE, cell=(2.0, 1.0, 2.0), parity=1.0, noise=0.0
    )
    # x and z = -1, 1, 3, 5: centres of cells -1, 0, 1, 2, so the product of
    # the signs is +1 (white) where the sum of the indices is even.
    inner = _grid(texture, footprint=0.05, side=4, step=2.0)[..., 0]
    odd = np.add.outer(np.arange(4), np.arange(4)) % 2
    np.testing.assert_allclose(inner, 1 - odd, atol=1e-4)
    # x and z on the edges between cells: box averages are grey.
    edges = textures.Texture(
      _BLACK, _WHITE, cell=(1.0, 1.0, 1.0), parity=1.0, noise=0.0
    )
    found = _grid(edges, footprint=0.05, side=4, step=1.0)[..., 0]
    np.testing.assert_allclose(found, 0.5, atol=1e-4)

  def test_flat_faces_ignore_the_coordinate_across_them(self):
    texture = textures.Texture(
      _BLACK, _WHITE, cell=(0.3, 0.3, 0.3), parity=1.0, noise=0.0
    )
    table = jnp.asarray(texture.row())[None]
    zeros = jnp.zeros(5)
    for axis in range(3):
      point = [jnp.full(5, 0.1)] * 3
      point[axis] = jnp.linspace(-1.0, 1.0, 5)
      red, _, _ = textures.evaluate(
        table,
        jnp.zeros(5, jnp.int32),
        tuple(point),
        (zeros, zeros, zeros),
        jnp.full(5, axis, jnp.int32),
      )
      np.testing.assert_array_equal(red, np.full(5, red[0]))

  def test_square_wave_has_exact_box_averages(self):
    x = jnp.asarray([0.5, 1.5, 1.0, 0.9, 2.25])
    width = jnp.full(5, 0.4)
    # Shares of +1 in [x - 0.2, x + 0.2]: 1, 0, 0.5, 0.75, 1.
    np.testing.assert_allclose(
      textures._square_wave(x, width), [1, -1, 0, 0.5, 1], atol=1e-6
    )


if __name__ == "__main__":
  absltest.main()
