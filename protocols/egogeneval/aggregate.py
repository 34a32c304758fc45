# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Step scores to case, protocol and benchmark scores.

Means are exactly rounded sums over sorted ids, so neither order nor sharding
can change a digit. Source: EgoGenEval specification 3.6, 4.15, 6.1, 12.7.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from perception.errors import InputError
from protocols.egogeneval import constants, evidence, scoring

PILLARS = ("f1", "spatial", "integrity")


@dataclasses.dataclass(frozen=True)
class ProtocolMeans:
  """Means of one quantity.

  Attributes:
    overall: mean of the protocols.
    by_protocol: mean over each protocol's cases.
    cases: number of cases per protocol.
  """

  overall: float
  by_protocol: dict[str, float]
  cases: dict[str, int]


def mean(values: Iterable[float]) -> float:
  """Exactly rounded mean; NaN for no values."""
  listed = list(values)
  return math.fsum(listed) / len(listed) if listed else math.nan


def mean_plus_worst(values: Sequence[float], worst_weight: float) -> float:
  """`(1 - w) mean + w min`; w = 0.5 is computed as (mean + min) / 2."""
  if worst_weight == 0.5:
    return (mean(values) + min(values)) / 2.0
  return (1.0 - worst_weight) * mean(values) + worst_weight * min(values)


def rows_of_cases(keys: Sequence[evidence.StepKey]) -> dict[str, list[int]]:
  """Row numbers of every case in step order, cases sorted."""
  steps: dict[str, dict[int, int]] = {}
  for row, key in enumerate(keys):
    steps.setdefault(key.case_id, {})[key.step] = row
  return {
    case: [found[step] for step in sorted(found)]
    for case, found in sorted(steps.items())
  }


def by_case(
  keys: Sequence[evidence.StepKey], values: Sequence[float]
) -> dict[str, list[float]]:
  """Step values grouped by case, in step order, cases sorted."""
  return {
    case: [float(values[row]) for row in rows]
    for case, rows in rows_of_cases(keys).items()
  }


def protocol_means(
  case_scores: Mapping[str, float],
  *,
  source: str,
  require_all: bool = True,
) -> ProtocolMeans:
  """Case scores to protocol scores and their mean.

  Args:
    case_scores: score of every case that counts.
    source: what is aggregated, for the message.
    require_all: refuse a set that lacks a protocol; else the mean is over the
      protocols that are there.

  Returns:
    The means.

  Raises:
    InputError: if a protocol has no case.
  """
  grouped: dict[str, list[float]] = {}
  for case_id, score in sorted(case_scores.items()):
    grouped.setdefault(case_id.split("__")[2], []).append(score)
  lacking = [name for name in constants.PROTOCOLS if name not in grouped]
  if lacking and (require_all or not grouped):
    raise InputError(
      source,
      "protocols",
      found=f"no valid case of {', '.join(lacking)}",
      expected="at least one valid case of atomic, chain and cycle",
      hint="A subset needs all three protocols.",
    )
  means = {
    name: mean(grouped[name]) for name in constants.PROTOCOLS if name in grouped
  }
  return ProtocolMeans(
    mean(means.values()),
    means,
    {name: len(grouped[name]) for name in means},
  )


def cmg_summary(
  keys: Sequence[evidence.StepKey],
  scores: scoring.CmgScores,
  *,
  require_all: bool = True,
) -> dict[str, Any]:
  """Camera Motion Grounding of one system.

  Args:
    keys: the step of every row.
    scores: scores in the same order; invalid steps are left out.
    require_all: refuse a set that lacks a protocol.

  Returns:
    `cmg`, `cmg_<protocol>`, `num_<protocol>_cases`, `num_valid_cases`,
    `num_valid_steps`, and the same for the columns `dir` and `gated`.
  """
  used = [i for i in range(len(keys)) if scores.valid[i]]
  grouped = rows_of_cases([keys[i] for i in used])
  summary: dict[str, Any] = {"num_valid_steps": len(used)}
  for name, column in (
    ("cmg", scores.score),
    ("dir", scores.direction),
    ("gated", scores.gated),
  ):
    values = column[used].tolist()
    cases = {
      case: mean(values[row] for row in rows) for case, rows in grouped.items()
    }
    found = protocol_means(
      cases, source="cmg evidence", require_all=require_all
    )
    summary[name] = found.overall
    summary["num_valid_cases"] = len(cases)
    for protocol, value in found.by_protocol.items():
      summary[f"{name}_{protocol}"] = value
      summary[f"num_{protocol}_cases"] = found.cases[protocol]
  return summary


def case_pillars(
  keys: Sequence[evidence.StepKey],
  scores: scoring.SspScores,
  limits: constants.Constants,
) -> dict[str, dict[str, float]]:
  """Mean-plus-worst of each pillar, per case."""
  columns = [
    column.tolist()
    for column in (scores.presence, scores.spatial, scores.integrity)
  ]
  return {
    case: {
      name: mean_plus_worst([values[row] for row in rows], limits.worst_weight)
      for name, values in zip(PILLARS, columns, strict=True)
    }
    for case, rows in rows_of_cases(keys).items()
  }


def ssp_summary(
  keys: Sequence[evidence.StepKey],
  scores: scoring.SspScores,
  masked: Iterable[str],
  limits: constants.Constants,
  *,
  require_all: bool = True,
) -> dict[str, Any]:
  """Scene State Preservation of one system.

  Args:
    keys: the step of every row; masked cases are already left out.
    scores: scores in the same order.
    masked: ids of the masked cases, for the record.
    limits: constants of the variant.
    require_all: refuse a set that lacks a protocol.

  Returns:
    `ssp`, `ssp_<protocol>`, `<protocol>_<pillar>`, counts, `invalid_cases`.
  """
  pillars = case_pillars(keys, scores, limits)
  invalid = sorted(masked)
  summary: dict[str, Any] = {
    "num_valid_cases": len(pillars),
    "num_valid_steps": len(keys),
    "num_invalid_cases": len(invalid),
    "invalid_cases": invalid,
  }
  for name in PILLARS:
    found = protocol_means(
      {case: values[name] for case, values in pillars.items()},
      source="ssp evidence",
      require_all=require_all,
    )
    for protocol, value in found.by_protocol.items():
      summary[f"{protocol}_{name}"] = value
      summary[f"num_{protocol}_cases"] = found.cases[protocol]
  present = [p for p in constants.PROTOCOLS if f"{p}_f1" in summary]
  for protocol in present:
    summary[f"ssp_{protocol}"] = mean(
      summary[f"{protocol}_{name}"] for name in PILLARS
    )
  summary["ssp"] = mean(summary[f"ssp_{protocol}"] for protocol in present)
  return summary


def result_document(
  cmg: Mapping[str, Any],
  ssp: Mapping[str, Any],
  *,
  eligible: int,
  evaluated: int,
  provenance: Mapping[str, Any],
  missing: int = 0,
  failed: int = 0,
) -> dict[str, Any]:
  """The published result format.

  Args:
    cmg: camera summary.
    ssp: scene summary.
    eligible: steps of the manifest.
    evaluated: steps with evidence.
    provenance: `benchmark_version`, `evaluator_version`, `manifest_sha256`,
      `code_commit` and the optional fields of the format.
    missing: steps without evidence.
    failed: steps whose measurement failed.

  Returns:
    The document; `overall` is the mean of CMG and SSP.
  """
  document = {
    "result_namespace": constants.RESULT_NAMESPACE,
    **provenance,
    "eligible": eligible,
    "evaluated": evaluated,
    "missing": missing,
    "failed": failed,
    "cmg": cmg["cmg"],
    "ssp": ssp["ssp"],
    "overall": (cmg["cmg"] + ssp["ssp"]) / 2.0,
  }
  for protocol in constants.PROTOCOLS:
    for name, summary in (("cmg", cmg), ("ssp", ssp)):
      if f"{name}_{protocol}" in summary:
        document[f"{name}_{protocol}"] = summary[f"{name}_{protocol}"]
  return document
