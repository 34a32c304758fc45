# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Fixed endpoints: raw measurements to scores on 0-100, higher is better.

The endpoints were calibrated once, on the benchmark's own runs, and are part
of the protocol (specification, sections 9.1 and 9.2): they are never fitted to
the models at hand. A missing or non-finite measurement has a missing score,
written None.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray


@dataclasses.dataclass(frozen=True)
class Endpoint:
  """A linear map of a raw measurement, clipped to 0-100.

  Attributes:
    lo: raw value at one end.
    hi: raw value at the other end.
    higher_is_better: whether `hi` scores 100 (else 0).
  """

  lo: float
  hi: float
  higher_is_better: bool

  def score(self, raw: float | None) -> float | None:
    """The score of one raw value; None for None, NaN and infinities."""
    if raw is None or not math.isfinite(raw):
      return None
    level = min(max((raw - self.lo) / (self.hi - self.lo), 0.0), 1.0)
    return 100.0 * level if self.higher_is_better else 100.0 * (1.0 - level)

  def scores(self, raw: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scores of an array; NaN where the raw value is not finite."""
    values = [self.score(float(value)) for value in np.ravel(raw)]
    filled = [math.nan if value is None else value for value in values]
    return np.array(filled, np.float64).reshape(np.shape(raw))


def _error(hi: float) -> Endpoint:
  return Endpoint(0.0, hi, higher_is_better=False)


def _gain(lo: float, hi: float) -> Endpoint:
  return Endpoint(lo, hi, higher_is_better=True)


_UNIT = _gain(0.0, 1.0)

# Leaves of T3, T4 and T5, in the order of the tables (9.2).
LEAVES: Mapping[str, Endpoint] = {
  "return_psnr": _gain(7.840857641709704, 21.064701258387007),
  "return_ssim": _UNIT,
  "return_lpips": _error(0.7513390779495239),
  "return_dino": _UNIT,
  "return_anchor_psnr": _gain(6.563484363389333, 22.54424610613289),
  "return_anchor_ssim": _UNIT,
  "return_anchor_lpips": _error(0.8377343416213989),
  "return_anchor_dino": _UNIT,
  "return_depth": _error(1.2495174358422247),
  "return_anchor_depth": _error(2.67922551011131),
  "qe_psnr": _gain(7.857921244216762, 18.650929576599054),
  "qe_ssim": _UNIT,
  "qe_lpips": _error(0.7165747284889221),
  "qe_dino": _UNIT,
  "qe_anchor_psnr": _gain(6.516648524540612, 20.357512070936565),
  "qe_anchor_ssim": _UNIT,
  "qe_anchor_lpips": _error(0.8064011335372925),
  "qe_anchor_dino": _UNIT,
  "qe_depth": _error(0.9412913785181602),
  "qe_anchor_depth": _error(2.437855698099644),
  "identity_mean": _UNIT,
  "revisit_same_psnr": _gain(8.392342638818656, 20.910536107951618),
  "revisit_same_lpips": _error(0.6862051089604696),
  "revisit_same_dino_patch_similarity": _UNIT,
  "revisit_same_depth_abs_rel": _error(2.059636474372718),
  "revisit_different_dino": _UNIT,
  "revisit_geom_dino_similarity": _UNIT,
  "revisit_geom_depth_abs_rel": _error(0.3347997114247419),
  "revisit_geom_local_pointcloud_fscore": _UNIT,
  "depth_short": _error(0.09525020744355248),
  "depth_medium": _error(0.14176436788561275),
  "reproj_short": _UNIT,
  "reproj_medium": _UNIT,
  "scale": _error(0.04653122656560562),
  "gs_psnr": _gain(10.539809218922558, 16.268401595223732),
  "gs_ssim": _UNIT,
  "gs_lpips": _error(0.7396781370043755),
}

TRANSLATION = _error(0.215320517416)  # fraction of the requested path
ROTATION = _error(32.764762231129)  # degrees
PREFERENCE = _gain(-5.21, 8.61)  # mean raw reward of the preference model

CONTROL = ("translation", "rotation", "move", "look")
QUALITY = ("aesthetic", "imaging", "flicker", "smoothness", "hps")


def leaf_scores(
  raw: Mapping[str, float | None],
) -> dict[str, float | None]:
  """Scores of the leaves of one case.

  Args:
    raw: raw measurements by leaf name; absent means missing.

  Returns:
    Score or None for every leaf of `LEAVES`.

  Raises:
    ValueError: for a name that is not a leaf.
  """
  strangers = sorted(raw.keys() - LEAVES.keys())
  if strangers:
    raise ValueError(f"not leaves of Orbia: {strangers}")
  return {name: end.score(raw.get(name)) for name, end in LEAVES.items()}
