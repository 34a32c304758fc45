# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Six appearance signals of a matched pair of boxes, each in [0, 1].

Images are RGB uint8 of one size; boxes are integer pixels in it. OpenCV's own
arithmetic is part of the definition, therefore it is called, not imitated.
Source: EgoGenEval specification 4.11, 16.4.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import cv2
import numpy as np
from numpy.typing import NDArray

from protocols.egogeneval import boxes as box_math
from protocols.egogeneval import constants

Image = NDArray[np.uint8]
Identity = Callable[[Image, Image], float | None]

_PADDING = 0.06
_MIN_SIDE, _MAX_SIDE = 16, 256
_MIN_MASK_PIXELS = 10
_TIGHT_SIDE = 64


@dataclasses.dataclass(frozen=True)
class Signals:
  """Signals of one pair and their weighted mean.

  Attributes:
    values: name -> signal, None where unavailable.
    quality: weighted mean over the available signals; None without any.
  """

  values: dict[str, float | None]
  quality: float | None


def pair_signals(
  target: Image,
  generated: Image,
  target_box: box_math.Box,
  generated_box: box_math.Box,
  identity: Identity,
) -> Signals | None:
  """Signals of one matched pair.

  Args:
    target: target image.
    generated: generated image, resized to the target's size.
    target_box: box in the target image.
    generated_box: box in the generated image.
    identity: similarity in [0, 1] of two crops, or None where unavailable.

  Returns:
    The signals; None if either crop is empty.
  """
  crop_target = crop(target, target_box)
  crop_generated = crop(generated, generated_box)
  if crop_target.size == 0 or crop_generated.size == 0:
    return None
  a, b = _common_size(crop_target, crop_generated)
  grey_a, grey_b = _grey(a), _grey(b)
  values: dict[str, float | None] = {
    "identity_sim": identity(crop_target, crop_generated),
    "struct_ssim": structure(grey_a, grey_b),
    "edge_iou": edges(grey_a, grey_b),
    "sharpness_ratio": sharpness(grey_a, grey_b),
    "color_sim": colour(a, b),
    "shape_sim": shape(
      rectangle(target.shape, target_box),
      rectangle(generated.shape, generated_box),
    ),
  }
  return Signals(values, quality(values))


def quality(values: dict[str, float | None]) -> float | None:
  """Weighted mean of the available signals, weights renormalised."""
  weights = constants.SIGNAL_WEIGHTS
  used = {k: v for k, v in values.items() if v is not None}
  total = sum(weights[name] for name in used)
  if total <= 0:
    return None
  return sum(weights[name] * value for name, value in used.items()) / total


def crop(image: Image, box: box_math.Box, padding: float = _PADDING) -> Image:
  """Part of an image around a box, padded by a share of the box's sides."""
  x1, y1, x2, y2 = (round(v) for v in box)
  pad_x, pad_y = int(padding * (x2 - x1)), int(padding * (y2 - y1))
  top, left = max(0, y1 - pad_y), max(0, x1 - pad_x)
  return image[top : max(top, y2 + pad_y), left : max(left, x2 + pad_x)]


def cosine_identity(
  feature_a: NDArray[np.float64], feature_b: NDArray[np.float64]
) -> float:
  """Cosine of two unit features, mapped to [0, 1]."""
  return _clip01((float(np.dot(feature_a, feature_b)) + 1.0) / 2.0)


def structure(a: NDArray[np.float32], b: NDArray[np.float32]) -> float:
  """Mean structural similarity of grey images in 0..255, mapped to [0, 1]."""
  c1, c2 = (0.01 * 255) ** 2, (0.03 * 255) ** 2

  def blur(image: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.asarray(cv2.GaussianBlur(image, (7, 7), 1.5))

  mean_a, mean_b = blur(a), blur(b)
  var_a = blur(a * a) - mean_a * mean_a
  var_b = blur(b * b) - mean_b * mean_b
  cov = blur(a * b) - mean_a * mean_b
  upper = (2 * mean_a * mean_b + c1) * (2 * cov + c2)
  lower = (mean_a * mean_a + mean_b * mean_b + c1) * (var_a + var_b + c2)
  value = float(np.clip(np.mean(upper / (lower + 1e-12)), -1.0, 1.0))
  return (value + 1.0) / 2.0


def edges(a: NDArray[np.float32], b: NDArray[np.float32]) -> float:
  """Share of edge pixels that lie within one pixel of an edge of the other."""
  edge_a = cv2.Canny(a.astype(np.uint8), 60, 150) > 0
  edge_b = cv2.Canny(b.astype(np.uint8), 60, 150) > 0
  total = int(edge_a.sum()) + int(edge_b.sum())
  if total == 0:
    return 1.0
  square = np.ones((3, 3), np.uint8)
  near_a = cv2.dilate(edge_a.astype(np.uint8), square) > 0
  near_b = cv2.dilate(edge_b.astype(np.uint8), square) > 0
  hits = int((edge_a & near_b).sum()) + int((edge_b & near_a).sum())
  return _clip01(hits / total)


def sharpness(a: NDArray[np.float32], b: NDArray[np.float32]) -> float:
  """Ratio of the Laplacian variances, the smaller over the larger."""
  var_a = float(cv2.Laplacian(a, cv2.CV_32F).var())
  var_b = float(cv2.Laplacian(b, cv2.CV_32F).var())
  if var_a <= 1e-6 and var_b <= 1e-6:
    return 1.0
  ratio = var_b / (var_a + 1e-6)
  return _clip01(min(ratio, 1.0 / max(ratio, 1e-6)))


def colour(a: Image, b: Image) -> float:
  """Correlation of the joint hue and saturation histograms, in [0, 1]."""

  def histogram(image: Image) -> NDArray[np.float32]:
    hsv = cv2.cvtColor(image, cv2.COLOR_RGB2HSV)
    counts = cv2.calcHist([hsv], [0, 1], None, [30, 32], [0, 180, 0, 256])
    return np.asarray(cv2.normalize(counts, counts, 0, 1, cv2.NORM_MINMAX))

  value = cv2.compareHist(histogram(a), histogram(b), cv2.HISTCMP_CORREL)
  return _clip01((float(value) + 1.0) / 2.0)


def shape(mask_a: NDArray[np.bool_], mask_b: NDArray[np.bool_]) -> float | None:
  """Overlap of the tight shapes and distance of their log Hu moments.

  Args:
    mask_a: full-frame mask.
    mask_b: full-frame mask.

  Returns:
    A number in [0, 1]; None if either mask has fewer than 10 pixels.
  """
  if min(int(mask_a.sum()), int(mask_b.sum())) < _MIN_MASK_PIXELS:
    return None
  tight_a, tight_b = _tight(mask_a), _tight(mask_b)
  union = int((tight_a | tight_b).sum())
  overlap = int((tight_a & tight_b).sum()) / union if union else 0.0
  distance = float(np.linalg.norm(log_hu(mask_a) - log_hu(mask_b)))
  return _clip01(0.6 * overlap + 0.4 * math.exp(-distance / 3.0))


def log_hu(mask: NDArray[np.bool_]) -> NDArray[np.float64]:
  """Signed decimal logarithms of the seven Hu moments of a mask."""
  moments = cv2.moments(mask.astype(np.uint8), True)
  hu = np.asarray(cv2.HuMoments(moments), np.float64).ravel()
  return np.sign(hu) * np.log10(np.abs(hu) + 1e-30)


def _common_size(a: Image, b: Image) -> tuple[Image, Image]:
  def side(axis: int) -> int:
    return min(max(a.shape[axis], b.shape[axis], _MIN_SIDE), _MAX_SIDE)

  size = (side(1), side(0))
  return (
    np.asarray(cv2.resize(a, size, interpolation=cv2.INTER_AREA), np.uint8),
    np.asarray(cv2.resize(b, size, interpolation=cv2.INTER_AREA), np.uint8),
  )


def _grey(image: Image) -> NDArray[np.float32]:
  return np.asarray(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY), np.float32)


def rectangle(
  image_shape: tuple[int, ...], box: box_math.Box
) -> NDArray[np.bool_]:
  """Mask of a filled box in an image of some shape, end pixels included."""
  mask = np.zeros(image_shape[:2], bool)
  x1, y1, x2, y2 = (round(v) for v in box)
  mask[max(0, y1) : y2 + 1, max(0, x1) : x2 + 1] = True
  return mask


def _tight(mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
  rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
  part = mask[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
  resized = cv2.resize(
    part.astype(np.uint8),
    (_TIGHT_SIDE, _TIGHT_SIDE),
    interpolation=cv2.INTER_NEAREST,
  )
  return np.asarray(resized) > 0


def _clip01(value: float) -> float:
  return min(1.0, max(0.0, value))
