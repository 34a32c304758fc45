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
  """Score of the mean absolute difference of consecutive frames.

  100 (1 - MAE / 255), the MAE over all pixels and channels of each pair, then
  over pairs. Differences of 8-bit values are summed as integers, so the result
  does not depend on the size of the frames.

  Args:
    frames: [N, H, W, 3] uint8 or a sequence of such frames: 0, 2, 4, ...

  Returns:
    0-100, higher is better; None with fewer than two frames.
  """
  errors = []
  for before, after in itertools.pairwise(frames):
    difference = np.abs(before.astype(np.int16) - after)
    errors.append(float(difference.sum(dtype=np.int64)) / difference.size)
  error = mean(errors)
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
