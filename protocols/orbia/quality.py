# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""T2, visual quality: flicker is measured here, the rest comes from networks.

Aesthetic, imaging, smoothness and preference are supplied by the quality role
as native values of the frames named in the specification, section 4. A
component that nobody supplied is missing; it never counts as 0.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from protocols.common.totals import mean
from protocols.orbia.normalisation import PREFERENCE

_PEAK = 255.0


def flicker(
  frames: NDArray[np.uint8] | Sequence[NDArray[np.uint8]],
) -> float | None:
  """Flicker score of frames 0, 2, 4, ...; None with fewer than two."""
  errors = [frame_difference(a, b) for a, b in itertools.pairwise(frames)]
  return flicker_score(mean(errors))


def frame_difference(
  before: NDArray[np.uint8], after: NDArray[np.uint8]
) -> float:
  """Mean absolute difference over all pixels and channels, grey levels.

  8-bit differences are summed as integers: exact for frames of any size.
  """
  difference = np.abs(before.astype(np.int16) - after)
  return float(difference.sum(dtype=np.int64)) / difference.size


def flicker_score(error: float | None) -> float | None:
  """100 (1 - MAE / 255), the MAE averaged over pairs (4)."""
  return None if error is None else 100.0 * (1.0 - error / _PEAK)


def components(
  *,
  flicker: float | None,
  imaging: NDArray[np.floating[Any]] | None = None,
  aesthetic: NDArray[np.floating[Any]] | None = None,
  smoothness: float | None = None,
  hps: NDArray[np.floating[Any]] | None = None,
) -> dict[str, float | None]:
  """The five T2 components of a case, 0-100.

  Args:
    flicker: score from `flicker`.
    imaging: native values of frames 0, 4, 8, ..., 0-100.
    aesthetic: ten times the native values of frames 0, 4, 8, ...
    smoothness: 100 (255 - mean residual) / 255.
    hps: raw rewards; their mean is mapped, not the mapped rewards averaged.

  Returns:
    Score by component, None = missing.
  """
  return {
    "aesthetic": _mean(aesthetic),
    "imaging": _mean(imaging),
    "flicker": flicker,
    "smoothness": smoothness,
    "hps": PREFERENCE.score(_mean(hps)),
  }


def _mean(values: NDArray[np.floating[Any]] | None) -> float | None:
  return None if values is None else mean(np.asarray(values, np.float64))
