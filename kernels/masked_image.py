# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""PSNR and single-window SSIM of two images on a mask.

Images are on the 0-255 scale. Higher is better. A padded canvas with a False
mask outside the image changes no answer.
"""

from __future__ import annotations

import chex
import jax.numpy as jnp
from jax import Array

from kernels import numerics

# OpenCV's fixed-point weights of R, G, B for 8-bit images, 15 fractional bits.
_GREY_WEIGHTS = (9798, 19235, 3735)
_GREY_SHIFT = 15


def grey_levels(image: Array, *, dtype: jnp.dtype) -> Array:
  """8-bit grey values of an 8-bit RGB image, as OpenCV computes them.

  (9798 R + 19235 G + 3735 B + 2^14) >> 15.

  Args:
    image: [h, w, 3] uint8.
    dtype: floating dtype of the result.

  Returns:
    [h, w] integers 0..255 in `dtype`.
  """
  chex.assert_rank(image, 3)
  chex.assert_type(image, jnp.uint8)
  weights = jnp.array(_GREY_WEIGHTS, jnp.int32)
  total = jnp.sum(image.astype(jnp.int32) * weights, axis=-1)
  return ((total + (1 << (_GREY_SHIFT - 1))) >> _GREY_SHIFT).astype(dtype)


def masked_psnr(
  reference: Array,
  generated: Array,
  mask: Array,
  *,
  peak: float,
  mse_floor: float,
  cap_db: float,
) -> numerics.Stat:
  """min(cap, 10 log10(peak^2 / MSE)) over masked pixels and channels.

  Args:
    reference: [h, w, C] floating.
    generated: [h, w, C] floating.
    mask: [h, w] bool.
    peak: largest value, for example 255.
    mse_floor: a mean squared error not above it gives the cap.
    cap_db: the cap, for example 100.

  Returns:
    `Stat(value, masked pixels)`; value 0 with count 0. The gradient is 0 at
    the cap.

  Source: Orbia specification, section 5.3.
  """
  chex.assert_rank([reference, generated, mask], [3, 3, 2])
  chex.assert_type([reference, generated, mask], [float, float, bool])
  chex.assert_equal_shape([reference, generated])
  error = jnp.mean(jnp.square(reference - generated), axis=-1)
  mse = numerics.masked_mean(error.reshape(-1), mask.reshape(-1))
  exact = mse.value <= mse_floor
  ratio = peak * peak / jnp.where(exact, 1, mse.value)
  decibel = jnp.minimum(10 * jnp.log10(ratio), cap_db)
  value = jnp.where(exact, jnp.asarray(cap_db, decibel.dtype), decibel)
  return numerics.Stat(jnp.where(mse.count > 0, value, 0), mse.count)


def masked_global_ssim(
  reference: Array, generated: Array, mask: Array, *, peak: float
) -> numerics.Stat:
  """SSIM with one window: the means and population moments of the mask.

  (2 mA mB + c1)(2 cov + c2) / ((mA^2 + mB^2 + c1)(vA + vB + c2)) with
  c1 = (0.01 peak)^2 and c2 = (0.03 peak)^2.

  Args:
    reference: [h, w] floating grey values.
    generated: [h, w] floating grey values.
    mask: [h, w] bool.
    peak: largest value, for example 255.

  Returns:
    `Stat(value, masked pixels)`; fewer than two pixels have no SSIM: the value
    is then 0 and the caller must look at the count. Range [-1, 1].

  Source: Orbia specification, section 5.3.
  """
  chex.assert_rank([reference, generated, mask], 2)
  chex.assert_type([reference, generated, mask], [float, float, bool])
  chex.assert_equal_shape([reference, generated, mask])
  flat = mask.reshape(-1)
  a, b = reference.reshape(-1), generated.reshape(-1)
  mean_a = numerics.masked_mean(a, flat).value
  mean_b = numerics.masked_mean(b, flat).value
  # Centred sums: the mean of squares minus the square of the mean would lose
  # the variance of a flat region in float32.
  off_a, off_b = a - mean_a, b - mean_b
  var_a = numerics.masked_mean(off_a * off_a, flat).value
  var_b = numerics.masked_mean(off_b * off_b, flat).value
  covariance, count = numerics.masked_mean(off_a * off_b, flat)
  c1, c2 = (0.01 * peak) ** 2, (0.03 * peak) ** 2
  value = (2 * mean_a * mean_b + c1) * (2 * covariance + c2)
  value /= (mean_a**2 + mean_b**2 + c1) * (var_a + var_b + c2)
  return numerics.Stat(jnp.where(count > 1, value, 0), count)
