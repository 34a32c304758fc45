# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""The index: weighted sum of the three residuals, and its grade (section 6)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike


def reduce_series(series: ArrayLike) -> float:
  """RMSE of a residual series; 0 for an empty one, a number for itself."""
  values = np.asarray(series, np.float64)
  if values.ndim == 0:
    return float(values)
  if values.size == 0:
    return 0.0
  return float(np.sqrt(np.mean(np.square(values))))


def combine(components: Sequence[float], weights: Sequence[float]) -> float:
  """Sum of weight times component, unrounded; NaN propagates.

  Args:
    components: scale, traj, rigid and optionally vp.
    weights: as many weights.

  Returns:
    PDI; 0 is perfect, no upper bound.
  """
  pairs = zip(components, weights, strict=True)
  return float(sum(weight * value for value, weight in pairs))


def grade(pdi: float, bounds: Sequence[tuple[str, float]]) -> str:
  """Letter of a PDI: the first whose bound lies above it, else F (NaN too)."""
  for letter, bound in bounds:
    if pdi < bound:
      return letter
  return "F"
