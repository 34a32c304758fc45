# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""GT-anchored 0-100 score (specification section 8.4).

Real clips anchor the scale: 100 is at or below the real median, and the
score falls with the robust z-score by the survival function of the
half-logistic distribution. The papers give neither formula nor constants;
this is the specification's reading.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence

import numpy as np

from protocols.pdi.constants import PdiConstants

COMPONENTS = ("scale", "traj", "rigid")
# MAD of a normal distribution times this is its standard deviation.
_MAD_TO_STD = 1.4826


@dataclasses.dataclass(frozen=True)
class Anchor:
  """Median and MAD of one component over real clips."""

  median: float
  mad: float


# Median and MAD over the 15 real clips of the published per-video results
# (specification section 8.4), valid for the published perception stack only.
PUBLISHED_ANCHORS: Mapping[str, Anchor] = {
  "scale": Anchor(0.0639, 0.0332),
  "traj": Anchor(0.1645, 0.0320),
  "rigid": Anchor(0.0861, 0.0662),
}


def anchors_from(values: Mapping[str, Sequence[float]]) -> dict[str, Anchor]:
  """Anchors from the scored clips of a reference system.

  Args:
    values: per component, the values of its clips.

  Returns:
    Anchors by component; a component without values is left out.
  """
  found = {}
  for name in COMPONENTS:
    column = np.asarray(values[name], np.float64)
    if column.size:
      median = float(np.median(column))
      found[name] = Anchor(median, float(np.median(np.abs(column - median))))
  return found


def component_score(value: float, anchor: Anchor) -> float | None:
  """Score of one component in [0, 100], higher is better.

  z = max(0, (x - median) / (1.4826 MAD)), score = 200 / (1 + exp(z)).

  Args:
    value: component residual.
    anchor: median and MAD of real clips.

  Returns:
    The score; None where the real clips do not vary (MAD 0) or the value is
    not finite, since no z-score exists then.
  """
  if anchor.mad <= 0.0 or not math.isfinite(value):
    return None
  z = max(0.0, (value - anchor.median) / (_MAD_TO_STD * anchor.mad))
  # exp(-z) form: no overflow for a residual of any size.
  return 200.0 * math.exp(-z) / (1.0 + math.exp(-z))


def clip_score(
  components: Mapping[str, float | None],
  anchors: Mapping[str, Anchor],
  constants: PdiConstants,
) -> float | None:
  """Weighted score of a clip; None if any component has none.

  Args:
    components: `scale`, `traj`, `rigid`.
    anchors: anchors by component.
    constants: supplies the weights of the index.

  Returns:
    Score in [0, 100] or None.
  """
  total = 0.0
  for name, weight in zip(COMPONENTS, constants.weights, strict=True):
    value = components.get(name)
    if value is None or name not in anchors:
      return None
    score = component_score(value, anchors[name])
    if score is None:
      return None
    total += weight * score
  return total
