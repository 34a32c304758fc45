# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""PSNR, single-window SSIM and grey levels on masks."""

import cv2
import jax
import jax.numpy as jnp
import numpy as np
from absl.testing import absltest, parameterized

from kernels import masked_image

_PSNR = {"peak": 255.0, "mse_floor": 1e-12, "cap_db": 100.0}


def _images(seed=0):
  rng = np.random.default_rng(seed)
  a = rng.integers(0, 256, (9, 14, 3)).astype(np.uint8)
  b = np.clip(a + rng.integers(-20, 21, a.shape), 0, 255).astype(np.uint8)
  return a, b, rng.random((9, 14)) < 0.6


class MaskedImageTest(parameterized.TestCase):
  def test_grey_equals_opencv(self):
    rng = np.random.default_rng(1)
    image = rng.integers(0, 256, (64, 64, 3)).astype(np.uint8)
    found = masked_image.grey_levels(jnp.asarray(image), dtype=jnp.float32)
    np.testing.assert_array_equal(
      found, cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)
    )

  def test_psnr_equals_numpy(self):
    a, b, mask = _images()
    error = (a[mask].astype(float) - b[mask]) ** 2
    expected = 10 * np.log10(255**2 / error.mean())
    found = masked_image.masked_psnr(
      jnp.asarray(a, jnp.float32),
      jnp.asarray(b, jnp.float32),
      jnp.asarray(mask),
      **_PSNR,
    )
    self.assertEqual(int(found.count), mask.sum())
    self.assertAlmostEqual(float(found.value), expected, places=4)

  def test_psnr_by_hand(self):
    # One grey level off everywhere: 10 log10(255^2) = 48.1308 dB.
    a = jnp.full((2, 3, 3), 10.0)
    mask = jnp.ones((2, 3), bool)
    found = masked_image.masked_psnr(a, a + 1.0, mask, **_PSNR)
    self.assertAlmostEqual(float(found.value), 48.1308, places=3)
    same = masked_image.masked_psnr(a, a, mask, **_PSNR)
    self.assertEqual(float(same.value), 100.0)

  def test_empty_mask_and_one_pixel(self):
    a = jnp.ones((2, 2, 3))
    none, one = (
      jnp.zeros((2, 2), bool),
      jnp.zeros((2, 2), bool).at[0, 0].set(True),
    )
    self.assertEqual(
      int(masked_image.masked_psnr(a, a, none, **_PSNR).count), 0
    )
    found = masked_image.masked_global_ssim(
      a[..., 0], a[..., 0], one, peak=255.0
    )
    self.assertEqual((int(found.count), float(found.value)), (1, 0.0))

  def test_ssim_equals_numpy_and_is_symmetric(self):
    a, b, mask = _images(2)
    x, y = a[..., 0].astype(float), b[..., 0].astype(float)
    p, q = x[mask], y[mask]
    c1, c2 = (0.01 * 255) ** 2, (0.03 * 255) ** 2
    covariance = np.mean((p - p.mean()) * (q - q.mean()))
    expected = (2 * p.mean() * q.mean() + c1) * (2 * covariance + c2)
    expected /= (p.mean() ** 2 + q.mean() ** 2 + c1) * (p.var() + q.var() + c2)
    with jax.enable_x64(True):
      args = [jnp.asarray(x), jnp.asarray(y)]
      found = masked_image.masked_global_ssim(
        *args, jnp.asarray(mask), peak=255.0
      )
      back = masked_image.masked_global_ssim(
        *args[::-1], jnp.asarray(mask), peak=255.0
      )
    self.assertAlmostEqual(float(found.value), expected, places=12)
    self.assertAlmostEqual(float(back.value), expected, places=12)

  def test_padding_changes_nothing(self):
    a, b, mask = _images(3)
    plain = masked_image.masked_global_ssim(
      jnp.asarray(a[..., 0], jnp.float32),
      jnp.asarray(b[..., 0], jnp.float32),
      jnp.asarray(mask),
      peak=255.0,
    )
    pad = ((0, 3), (0, 5))
    padded = masked_image.masked_global_ssim(
      jnp.asarray(np.pad(a[..., 0], pad), jnp.float32),
      jnp.asarray(np.pad(b[..., 0], pad, constant_values=9), jnp.float32),
      jnp.asarray(np.pad(mask, pad)),
      peak=255.0,
    )
    self.assertAlmostEqual(float(plain.value), float(padded.value), places=6)

  def test_gradient_is_finite_for_equal_images(self):
    mask = jnp.ones((2, 2), bool)

    def value(image):
      return masked_image.masked_psnr(
        image, jnp.ones((2, 2, 3)), mask, **_PSNR
      ).value

    slope = jax.grad(value)(jnp.ones((2, 2, 3)))
    np.testing.assert_array_equal(slope, np.zeros((2, 2, 3)))


if __name__ == "__main__":
  absltest.main()
