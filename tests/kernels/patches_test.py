# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Patch descriptors: pairs, neighbourhoods, pooled masks, cells."""

import cv2
import jax
import jax.numpy as jnp
import numpy as np
from absl.testing import absltest, parameterized

from kernels import grid_cells, patches


def _table(count, channels=6, seed=0):
  rng = np.random.default_rng(seed)
  return jnp.asarray(rng.normal(size=(count, channels)).astype(np.float32))


def _cosine(a, b):
  return float(np.dot(a, b) / np.linalg.norm(a) / np.linalg.norm(b))


class PatchesTest(parameterized.TestCase):
  def test_every_pair_counts_once(self):
    a, b = _table(16, seed=1), _table(16, seed=2)
    first = jnp.array([3, 3, 3, 7, 0], jnp.int32)
    second = jnp.array([5, 5, 6, 2, 0], jnp.int32)
    valid = jnp.array([True, True, True, True, False])
    found = patches.unique_pair_similarity(
      first, second, valid, a, b, norm_floor=1e-12
    )
    expected = [_cosine(a[i], b[j]) for i, j in ((3, 5), (3, 6), (7, 2))]
    self.assertEqual(int(found.num_pairs), 3)
    self.assertAlmostEqual(float(found.value), np.mean(expected), places=6)
    self.assertTrue(bool(found.present[7, 2]))
    self.assertFalse(bool(found.present[0, 0]))

  def test_no_pair_has_no_value(self):
    none = jnp.zeros(3, bool)
    index = jnp.zeros(3, jnp.int32)
    found = patches.unique_pair_similarity(
      index, index, none, _table(4), _table(4), norm_floor=1e-12
    )
    self.assertEqual((int(found.num_pairs), float(found.value)), (0, 0.0))

  def test_colocated_bounds(self):
    a = _table(9)
    for other, expected in (
      (a, 1.0),
      (3.0 * a, 1.0),
      (-a, -1.0),
      (0.0 * a, 0.0),
    ):
      found = patches.colocated_similarity(a, other, norm_floor=1e-12)
      self.assertAlmostEqual(float(found), expected, places=6)

  def test_local_similarity_forgives_one_patch(self):
    a = _table(16)
    moved = jnp.roll(a.reshape(4, 4, -1), 1, axis=1).reshape(16, -1)
    inner = jnp.asarray(np.tile([True, True, True, False], 4))
    found = patches.local_similarity(a, moved, inner, norm_floor=1e-12)
    self.assertEqual(int(found.count), 12)
    self.assertAlmostEqual(float(found.value), 1.0, places=6)

  def test_used_patches_follow_whole_pixel_rectangles(self):
    rng = np.random.default_rng(3)
    mask = rng.random((30, 52)) < 0.004
    expected = np.zeros((16, 16), bool)
    for i in range(16):
      for j in range(16):
        part = mask[i * 30 // 16 : (i + 1) * 30 // 16]
        expected[i, j] = part[:, j * 52 // 16 : (j + 1) * 52 // 16].any()
    used = patches.used_patches(jnp.asarray(mask), grid=16)
    np.testing.assert_array_equal(used.reshape(16, 16), expected)

  @parameterized.parameters((64, 36), (36, 64), (45, 80))
  def test_pooled_weights_are_area_interpolation(self, height, width):
    rng = np.random.default_rng(4)
    mask = rng.random((height, width)) < 0.5
    table = np.asarray(_table(256))
    resized = cv2.resize(
      mask.astype(np.float32), (16, 16), interpolation=cv2.INTER_AREA
    ).ravel()
    mean = resized @ table / resized.sum()
    found = patches.pooled_descriptor(
      jnp.asarray(table),
      jnp.asarray(mask),
      min_pixels=16,
      min_weight=1.0,
      norm_floor=1e-12,
    )
    self.assertTrue(bool(found.valid))
    np.testing.assert_allclose(
      found.descriptor, mean / np.linalg.norm(mean), atol=2e-6
    )

  @parameterized.parameters((15, False), (16, True))
  def test_small_masks_are_not_measurable(self, pixels, valid):
    mask = np.zeros((16, 16), bool)
    mask.ravel()[:pixels] = True
    found = patches.pooled_descriptor(
      _table(256),
      jnp.asarray(mask),
      min_pixels=16,
      min_weight=1.0,
      norm_floor=1e-12,
    )
    self.assertEqual(bool(found.valid), valid)
    self.assertEqual(int(found.num_pixels), pixels)

  def test_gradient_is_finite_at_zero_descriptors(self):
    zero = jnp.zeros((4, 3))

    def value(a):
      return patches.colocated_similarity(a, zero, norm_floor=1e-12)

    self.assertTrue(bool(jnp.all(jnp.isfinite(jax.grad(value)(zero)))))


class CellIndexTest(parameterized.TestCase):
  @parameterized.parameters(1, 7, 38, 294, 1080, 4096)
  def test_equals_integer_division(self, length):
    pixel = np.arange(length, dtype=np.int32)
    found = grid_cells.cell_index(
      jnp.asarray(pixel),
      jnp.zeros_like(jnp.asarray(pixel)),
      jnp.array([length, 5], jnp.int32),
      grid=16,
    )
    np.testing.assert_array_equal(found // 16, pixel * 16 // length)

  def test_pixels_beyond_the_frame_fall_into_the_last_cell(self):
    pixel = jnp.array([500, 9], jnp.int32)
    found = grid_cells.cell_index(
      pixel, pixel, jnp.array([10, 10], jnp.int32), grid=4
    )
    np.testing.assert_array_equal(found, [15, 15])


if __name__ == "__main__":
  absltest.main()
