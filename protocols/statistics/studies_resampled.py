# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Studies made of replicates: intervals, paired differences, ranking, power."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import special

from perception.errors import InputError
from protocols.statistics import intervals, panels, sampling
from protocols.statistics.cases import CaseTable
from protocols.statistics.config import StudyConfig
from protocols.statistics.sampling import Estimand, Runtime, Sampled

Result = dict[str, Any]
AVERAGE = "mean of systems"


def intervals_study(
  cases: CaseTable, study: StudyConfig, runtime: Runtime
) -> Result:
  """Every score of every system with its interval.

  Options: `per_protocol` (bool) adds the protocol means; `average` (bool) the
  mean over systems; `one_sided` (bool) the share of replicates at or above 0.
  """
  average = bool(study.options.get("average", False))
  one_sided = bool(study.options.get("one_sided", False))
  per_protocol = bool(study.options.get("per_protocol", False))
  sampled = sampling.sample(
    cases, study, runtime, label="intervals", keep_protocols=per_protocol
  )
  rows = []
  for name in sampling.targets(study):
    panel = sampling.panel(sampled.axes, name, study)
    entries = {
      system: sampling.one_system(panel, s)
      for s, system in enumerate(sampled.systems)
    }
    if average:
      entries[AVERAGE] = sampling.contrast(
        panel, np.full(len(sampled.systems), 1 / len(sampled.systems))
      )
    for system, entry in entries.items():
      found = sampled.estimate(entry)
      if one_sided:
        found["p_at_least_zero"] = float(np.mean(sampled.values(entry) >= 0))
      rows.append({"system": system, "score": name, "protocol": "", **found})
  for a, axis in enumerate(cases.axes):
    if axis.statistic != "macro":
      continue
    for p, protocol in enumerate(sampled.protocols):
      for s, system in enumerate(sampled.systems):
        found = sampled.estimate(sampling.protocol_mean(a, p, s))
        rows.append(
          {"system": system, "score": axis.name, "protocol": protocol, **found}
        )
  return _result(sampled, rows)


def paired_study(
  cases: CaseTable, study: StudyConfig, runtime: Runtime
) -> Result:
  """Differences of systems, or any contrast, on shared draws.

  Options: `pairs` (list of [a, b] for a - b; default: neighbours in the
  ranking), `contrasts` (list of {"name", "weights": {system: weight}}),
  `axis_difference` ([axis, axis]) adds the contrast of the one minus that of
  the other. One-sided shares count equality on both sides.
  """
  need_two(cases)
  sampled = sampling.sample(cases, study, runtime, label="paired")
  scores: dict[str, Estimand] = {
    name: sampling.panel(sampled.axes, name, study)
    for name in sampling.targets(study)
  }
  difference = study.options.get("axis_difference")
  if difference:
    first, second = _axis_pair(difference, sampled, cases.source_name)
    scores[f"{first}_minus_{second}"] = lambda x: (
      scores[first](x) - scores[second](x)
    )
  rows = []
  for name, weights in contrasts(cases, study, sampled.point).items():
    for score, panel in scores.items():
      rows.append(
        {"contrast": name, "score": score, **_contrast(sampled, panel, weights)}
      )
  return _result(sampled, rows)


def ranking_study(
  cases: CaseTable, study: StudyConfig, runtime: Runtime
) -> Result:
  """Order of the systems, p_flip of neighbours, local ties.

  Options: `target` (default: the overall score), `tie_level` (default 0.05).
  Source: specs/egogeneval.md section 6.2.
  """
  need_two(cases)
  target, sign = sampling.main_target(study, cases.source_name)
  tie_level = float(study.options.get("tie_level", intervals.TIE_LEVEL))
  sampled = sampling.sample(cases, study, runtime, label="ranking")
  panel = sampling.panel(sampled.axes, target, study)
  point, drawn = panel(sampled.point), sampled.values(panel)
  order = sampling.order_of(point, sign)
  flips = [
    intervals.p_flip(sign * drawn[:, upper], sign * drawn[:, lower])
    for upper, lower in itertools.pairwise(order)
  ]
  groups = intervals.tie_groups(flips, threshold=tie_level)
  group_of = {row: g for g, rows in enumerate(groups, 1) for row in rows}
  first = np.argmax(sign * drawn, axis=1)
  rows = []
  for row, s in enumerate(order):
    found = sampled.estimate(sampling.one_system(panel, int(s)))
    rows.append(
      {
        "rank": row + 1,
        "system": sampled.systems[s],
        **found,
        "p_flip": flips[row] if row < len(flips) else None,
        "tie_group": group_of[row],
        "share_first": float(np.mean(first == s)),
      }
    )
  result = _result(sampled, rows)
  stability = panels.replicate_correlations(drawn, point)
  return {
    **result,
    "target": target,
    "tie_groups": [[sampled.systems[order[r]] for r in g] for g in groups],
    "rank_correlation_with_point": stability,
  }


def power_study(
  cases: CaseTable, study: StudyConfig, runtime: Runtime
) -> Result:
  """How many cases separate two systems.

  The paired difference of a sample of `f` times the cases has about the
  standard error `sd / sqrt(f)`. The factor for the wanted power follows from
  the normal distribution, and is then checked: replicates of that many units
  are drawn, and the share that a two-sided test at `alpha` would call
  different, in the right direction, is reported.

  Options: `pairs` (default: neighbours in the ranking), `power` (0.8),
  `alpha` (0.05), `max_factor` (16): larger factors are not checked.
  """
  need_two(cases)
  options = study.options
  target, _ = sampling.main_target(study, cases.source_name)
  power = float(options.get("power", 0.8))
  alpha = float(options.get("alpha", 0.05))
  limit = float(options.get("max_factor", 16.0))
  sampled = sampling.sample(cases, study, runtime, label="power")
  panel = sampling.panel(sampled.axes, target, study)
  z_alpha = float(special.ndtri(1.0 - alpha / 2.0))
  z_power = float(special.ndtri(power))
  rows = []
  for name, weights in contrasts(cases, study, sampled.point).items():
    found = _contrast(sampled, panel, weights)
    effect, sd = found["point"], found["sd"]
    row = {"contrast": name, "score": target, "difference": effect, "sd": sd}
    if effect == 0.0 or sd == 0.0:
      rows.append({**row, "factor": None, "cases": None})
      continue
    factor = ((z_alpha + z_power) * sd / abs(effect)) ** 2
    row |= {"factor": factor, "cases": math.ceil(factor * len(cases.cases))}
    if factor <= limit:
      again = sampling.sample(
        cases, study, runtime, label=f"power-{len(rows)}", fraction=factor
      )
      drawn = again.values(sampling.contrast(panel, weights))
      z = math.copysign(1.0, effect) * drawn / np.std(drawn)
      row["power_found"] = float(np.mean(z > z_alpha))
    rows.append(row)
  return {**_result(sampled, rows), "power": power, "alpha": alpha}


def contrasts(
  cases: CaseTable, study: StudyConfig, point: np.ndarray
) -> dict[str, np.ndarray]:
  """[s] weights of each contrast that a study asks for, by name."""
  number = {name: i for i, name in enumerate(cases.systems)}
  source = cases.source_name
  found: dict[str, np.ndarray] = {}

  def add(name: str, parts: Mapping[str, float]) -> None:
    weights = np.zeros(len(number))
    for system, weight in parts.items():
      if system not in number:
        raise InputError(
          source,
          f"contrast {name}",
          found=f"no system {system!r}",
          expected=f"systems among {', '.join(number)}",
        )
      weights[number[system]] += float(weight)
    found[name] = weights

  for entry in study.options.get("contrasts", []):
    add(str(entry["name"]), entry["weights"])
  pairs = study.options.get("pairs")
  if pairs is None and not found:
    target, sign = sampling.main_target(study, source)
    names = [axis.name for axis in cases.axes]
    scores = sampling.panel(names, target, study)(point)
    order = [cases.systems[s] for s in sampling.order_of(scores, sign)]
    pairs = list(itertools.pairwise(order))
  for first, second in pairs or []:
    parts = {first: 1.0, second: -1.0} if first != second else {first: 0.0}
    add(f"{first} - {second}", parts)
  return found


def need_two(cases: CaseTable) -> None:
  """Refuses a comparison of fewer than two systems."""
  if len(cases.systems) < 2:
    raise InputError(
      cases.source_name,
      "systems",
      found=f"only {cases.systems[0]!r}",
      expected="at least two systems to compare",
    )


def _contrast(
  sampled: Sampled, panel: Estimand, weights: np.ndarray
) -> dict[str, float]:
  value = sampling.contrast(panel, weights)
  drawn = sampled.values(value)
  at_least = float(np.mean(drawn >= 0))
  at_most = float(np.mean(drawn <= 0))
  return {
    **sampled.estimate(value),
    "p_at_least_zero": at_least,
    "p_at_most_zero": at_most,
    "p_two_sided": min(1.0, 2.0 * min(at_least, at_most)),
  }


def _axis_pair(value: Any, sampled: Sampled, source: str) -> tuple[str, str]:
  good = (
    isinstance(value, Sequence)
    and len(value) == 2
    and all(name in sampled.axes for name in value)
  )
  if not good:
    raise InputError(
      source,
      "options.axis_difference",
      found=repr(value),
      expected=f"two of {', '.join(sampled.axes)}",
    )
  return str(value[0]), str(value[1])


def _result(sampled: Sampled, rows: list[dict[str, Any]]) -> Result:
  return {
    "rows": rows,
    "replicates": len(sampled.replicates),
    "replicates_without_a_protocol": sampled.left_out,
  }
