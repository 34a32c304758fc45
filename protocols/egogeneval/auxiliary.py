# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""RefSim and VisQual: min-max aggregates of conventional metrics.

They are reported beside the scores and enter neither Overall nor a ranking.
The panel over which minimum and maximum are taken is fixed: the 16 pose-free
and 2 pose-conditioned systems. Source: EgoGenEval specification 5.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from perception.errors import InputError
from protocols.egogeneval import aggregate

# Metric -> whether higher is better.
REFERENCE_SIMILARITY = {"psnr": True, "lpips": False}
VISUAL_QUALITY = {"niqe": False, "musiq": True, "clip_iqa": True}


def normalised(
  values: Mapping[str, float], *, higher_is_better: bool, source: str
) -> dict[str, float]:
  """Min-max normalisation over a panel, 1 for the best system.

  Args:
    values: metric by system, all of the panel.
    higher_is_better: direction of the metric.
    source: name of the metric, for the message.

  Returns:
    Numbers in [0, 1] by system.

  Raises:
    InputError: for a non-finite value or a panel without spread.
  """
  low, high = min(values.values()), max(values.values())
  if not all(math.isfinite(v) for v in values.values()) or not high > low:
    raise InputError(
      source,
      "panel",
      found=f"values between {low} and {high}",
      expected="finite values that differ between systems",
    )
  return {
    name: ((v - low) if higher_is_better else (high - v)) / (high - low)
    for name, v in values.items()
  }


def combine(
  panel: Mapping[str, Mapping[str, float]],
  metrics: Mapping[str, bool],
  *,
  source: str,
) -> dict[str, float]:
  """Mean of the normalised metrics, per system.

  Args:
    panel: system -> metric -> value; every system has every metric.
    metrics: metric -> whether higher is better.
    source: where the values are from, for the message.

  Returns:
    The aggregate in [0, 1] by system.
  """
  for system, values in panel.items():
    lacking = sorted(set(metrics) - set(values))
    if lacking:
      raise InputError(
        source,
        f"metrics of {system}",
        found=f"no {', '.join(lacking)}",
        expected=f"all of {', '.join(metrics)}",
      )
  columns = [
    normalised(
      {system: values[name] for system, values in panel.items()},
      higher_is_better=better,
      source=f"{source}, {name}",
    )
    for name, better in metrics.items()
  ]
  return {
    system: aggregate.mean(column[system] for column in columns)
    for system in panel
  }


def rank(overall: Mapping[str, float], unranked: Sequence[str]) -> list[str]:
  """Systems by Overall, best first; calibration rows are left out."""
  names = [name for name in overall if name not in unranked]
  return sorted(names, key=lambda name: (-overall[name], name))
