# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Matched local features of two images: SIFT, compared both ways.

Pixel centres are integers. Needs no weights and runs on a CPU.
"""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

_RATIO = 0.85
_CONTRAST = 0.01  # Indoor walls have little: OpenCV's 0.04 finds half as much.
_KEPT_IMAGES = 64
_BLOCK = 2000  # Rows of products in memory at once.

Points = NDArray[np.float64]


class LocalFeatures:
  """Matches images; features of the last images are kept."""

  def __init__(self, limit: int) -> None:
    """Args:
    limit: strongest features kept per image.
    """
    self._limit = limit
    self._cache: dict[
      bytes, tuple[NDArray[np.float32], NDArray[np.float32]]
    ] = {}

  def matches(
    self, source: NDArray[np.uint8], target: NDArray[np.uint8]
  ) -> tuple[Points, Points]:
    """Mutually nearest features that pass the ratio test.

    Args:
      source: RGB uint8 [h, w, 3].
      target: RGB uint8 [h', w', 3].

    Returns:
      float64 [n, 2] and [n, 2] pixels in source and target.
    """
    xy_a, descriptors_a = self._features(source)
    xy_b, descriptors_b = self._features(target)
    if len(xy_a) < 2 or len(xy_b) < 2:
      return np.zeros((0, 2)), np.zeros((0, 2))
    rows = _mutual(descriptors_a, descriptors_b)
    return (
      xy_a[rows[:, 0]].astype(np.float64),
      xy_b[rows[:, 1]].astype(np.float64),
    )

  def _features(
    self, image: NDArray[np.uint8]
  ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    key = image.tobytes()
    if key not in self._cache:
      grey = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)
      detector = cv2.SIFT.create(self._limit, contrastThreshold=_CONTRAST)
      points, descriptors = detector.detectAndCompute(grey, None)
      xy = np.array([p.pt for p in points], np.float32).reshape(-1, 2)
      if descriptors is None:
        descriptors = np.zeros((0, 128), np.float32)
      if len(self._cache) >= _KEPT_IMAGES:
        self._cache.pop(next(iter(self._cache)))
      # Square roots of the normalised histograms compare better (RootSIFT).
      histograms = np.asarray(descriptors, np.float32)
      total = np.maximum(histograms.sum(axis=1, keepdims=True), 1e-9)
      self._cache[key] = (xy, np.sqrt(histograms / total))
    return self._cache[key]


def _mutual(
  first: NDArray[np.float32], second: NDArray[np.float32]
) -> NDArray[np.int64]:
  """[m, 2] mutually nearest rows whose nearest is clear of the next.

  Descriptors have unit length, so that products order them as distances do.
  """
  columns = np.arange(len(second))
  best_of_column = np.full(len(second), -np.inf, np.float32)
  nearest_of_column = np.zeros(len(second), np.int64)
  nearest = np.zeros(len(first), np.int64)
  clear = np.zeros(len(first), bool)
  for start in range(0, len(first), _BLOCK):
    product = first[start : start + _BLOCK] @ second.T
    rows = np.arange(len(product))
    top = np.argmax(product, axis=0)
    better = product[top, columns] > best_of_column
    best_of_column = np.where(better, product[top, columns], best_of_column)
    nearest_of_column = np.where(better, top + start, nearest_of_column)
    found = np.argmax(product, axis=1)
    highest = product[rows, found]
    product[rows, found] = -np.inf
    # |a - b|^2 = 2 - 2 a.b
    ahead = np.maximum(2.0 - 2.0 * highest, 0.0)
    behind = np.maximum(2.0 - 2.0 * product.max(axis=1), 0.0)
    nearest[start : start + _BLOCK] = found
    clear[start : start + _BLOCK] = ahead < _RATIO**2 * behind
  source = np.flatnonzero(clear)
  source = source[nearest_of_column[nearest[source]] == source]
  return np.stack([source, nearest[source]], axis=1)
