# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""The paper's diagnostics as tables over evidence; none enters a score.

What the sources leave open is fixed here and named: tertiles are taken over
steps, each once (systems share them); object sizes are split at the tertiles
of box area over image area where rows name the image size, else of box area.
Undefined values are left out, never imputed.
Source: EgoGenEval specification 3.8, 7.1 to 7.4, 7.6.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from perception.errors import InputError
from protocols.egogeneval import (
  aggregate,
  constants,
  evidence,
  evidence_files,
  scoring,
)

Systems = Sequence[evidence_files.SystemEvidence]
_STATIC = 0.2
_NEAR_LOW, _NEAR_HIGH = 0.8, 1.2
RESPONSES = ("under", "near", "over")
BINS = ("small", "medium", "large")
# Family of steps -> whether its unit is a metre.
FAMILIES = {"translation": True, "rotation": False}
# Name -> largest direction error (deg), rotation error (deg), norm error (m).
_POSE_BOUNDS = {"loose": (30.0, 15.0, 0.3), "strict": (20.0, 10.0, 0.2)}
_GOOD_STEP = 0.8
STRATA = ("cmg_at_least_0.8", *_POSE_BOUNDS)


def tables(
  systems: Systems, mask: Collection[str], limits: constants.Constants
) -> dict[str, Any]:
  """All diagnostics.

  Args:
    systems: evidence.
    mask: the common SSP mask.
    limits: constants of the variant.

  Returns:
    Table name -> table; a table whose fields no row has is None.
  """
  return {
    "cycle_response": cycle_response(systems),
    "magnitude_bins": magnitude_bins(systems),
    "pose_strata": pose_strata(systems, mask, limits),
    "retention_by_size": retention_by_size(systems, mask),
    "full_pose": full_pose(systems),
    "temporal": temporal(systems, mask, limits),
  }


def cycle_response(systems: Systems) -> dict[str, Any] | None:
  """Response ratio |a_hat| / |a*| of outbound and return steps (7.1)."""
  ratios: dict[tuple[str, str], dict[int, float]] = {}
  directions: dict[int, list[float]] = {1: [], 2: []}
  for system in systems:
    for row in system.cmg:
      if row.key.protocol != "cycle" or not measured(row):
        continue
      key = (system.name, row.key.case_id)
      ratios.setdefault(key, {})[row.key.step] = abs(row.estimate) / abs(
        row.expected
      )
      directions[row.key.step].append(row.direction)
  if not ratios:
    return None
  whole = [r for r in ratios.values() if set(r) == {1, 2}]
  steps = {}
  for step, name in ((1, "outbound"), (2, "return")):
    values = [r[step] for r in ratios.values() if step in r]
    steps[name] = {
      "n": len(values),
      "median_response_ratio": _median(values),
      "near_static": _share(v <= _STATIC for v in values),
      "direction": _mean(directions[step]),
    }
  by_system: dict[str, list[bool]] = {}
  for (name, _), found in ratios.items():
    if 2 in found:
      by_system.setdefault(name, []).append(found[2] <= _STATIC)
  return {
    "steps": steps,
    "both_steps_near_static": _share(
      r[1] <= _STATIC and r[2] <= _STATIC for r in whole
    ),
    "outbound_moves_then_return_near_static": _share(
      r[1] > _STATIC and r[2] <= _STATIC for r in whole
    ),
    "systems_over_half_return_near_static": sum(
      np.mean(flags) > 0.5 for flags in by_system.values()
    ),
    "systems": len(by_system),
  }


def magnitude_bins(systems: Systems) -> dict[str, Any] | None:
  """Direction and magnitude by tertile of the instructed size (7.2)."""
  result: dict[str, Any] = {}
  for family, is_metre in FAMILIES.items():
    sizes = instructed_sizes(systems, is_metre=is_metre)
    if not sizes:
      continue
    edges = tertiles(sizes)
    result[family] = {
      "edges": edges.tolist(),
      "bins": {
        name: _bin_row(systems, sizes, edges, index, is_metre)
        for index, name in enumerate(BINS)
      },
    }
  return result or None


def instructed_sizes(systems: Systems, *, is_metre: bool) -> dict[str, float]:
  """|a*| of the measured steps of a family, each step once, by record id."""
  return {
    row.key.record_id: abs(row.expected)
    for system in systems
    for row in system.cmg
    if measured(row) and row.unit.startswith("m") == is_metre
  }


def tertiles(sizes: Mapping[str, float]) -> np.ndarray:
  """The two edges between the bins; a size on an edge is in the lower bin."""
  return np.quantile(list(sizes.values()), [1 / 3, 2 / 3])


def _bin_row(
  systems: Systems,
  sizes: Mapping[str, float],
  edges: np.ndarray,
  index: int,
  is_metre: bool,
) -> dict[str, Any]:
  def in_bin(row: evidence.CmgEvidence) -> bool:
    size = sizes.get(row.key.record_id)
    return (
      size is not None
      and measured(row)
      and row.unit.startswith("m") == is_metre
      and int(np.searchsorted(edges, size, side="left")) == index
    )

  def share(wanted: str) -> float | None:
    return _case_then_system_mean(
      systems,
      lambda row: (
        float(response(row) == wanted)
        if in_bin(row) and row.direction == 1.0
        else None
      ),
    )

  return {
    "direction": _case_then_system_mean(
      systems, lambda row: row.direction if in_bin(row) else None
    ),
    **{name: share(name) for name in RESPONSES},
  }


def response(row: evidence.CmgEvidence) -> str:
  """Whether a measured step moves too little, enough or too much (7.2)."""
  ratio = abs(row.estimate) / abs(row.expected)
  if ratio < _NEAR_LOW:
    return "under"
  return "near" if ratio <= _NEAR_HIGH else "over"


def _case_then_system_mean(
  systems: Systems, value: Callable[[evidence.CmgEvidence], float | None]
) -> float | None:
  per_system = []
  for system in systems:
    cases: dict[str, list[float]] = {}
    for row in system.cmg:
      found = value(row)
      if found is not None:
        cases.setdefault(row.key.case_id, []).append(found)
    if cases:
      per_system.append(_mean([_mean(v) for v in cases.values()]))
  return _mean(per_system)


def pose_strata(
  systems: Systems, mask: Collection[str], limits: constants.Constants
) -> dict[str, Any] | None:
  """SSP of steps by how well the camera motion was executed (7.3)."""
  columns: dict[str, list[tuple[float, float, float]]] = {
    name: [] for name in ("all", *STRATA)
  }
  for system in systems:
    rows = [row for row in system.ssp if row.key.case_id not in mask]
    scores = scoring.score_ssp(rows, limits)
    cmg = {row.key.record_id: i for i, row in enumerate(system.cmg)}
    grounded = scoring.score_cmg(system.cmg, limits)
    for i, row in enumerate(rows):
      pillars = (
        float(scores.presence[i]),
        float(scores.spatial[i]),
        float(scores.integrity[i]),
      )
      columns["all"].append(pillars)
      j = cmg.get(row.key.record_id)
      if j is None:
        continue
      score = float(grounded.score[j]) if grounded.valid[j] else None
      for name in strata_of(system.cmg[j], score):
        columns[name].append(pillars)
  if not columns["all"]:
    return None
  return {name: _pillar_row(found) for name, found in columns.items()}


def _pillar_row(found: Sequence[tuple[float, ...]]) -> dict[str, Any]:
  names = ("f1", "spatial", "integrity")
  row: dict[str, Any] = {"n": len(found)}
  row["ssp"] = _mean([sum(pillars) / 3.0 for pillars in found])
  for index, name in enumerate(names):
    row[name] = _mean([pillars[index] for pillars in found])
  return row


def strata_of(row: evidence.CmgEvidence, score: float | None) -> list[str]:
  """Strata of `STRATA` that a step belongs to, `all` excepted (7.3).

  Args:
    row: camera evidence of the step.
    score: its CMG; None where it has none.
  """
  good = score is not None and score >= _GOOD_STEP
  found = ["cmg_at_least_0.8"] if good else []
  errors = _pose_errors(row)
  for name, bounds in _POSE_BOUNDS.items():
    if all(
      error is not None and error <= bound
      for error, bound in zip(errors, bounds, strict=True)
    ):
      found.append(name)
  return found


def _pose_errors(
  row: evidence.CmgEvidence,
) -> tuple[float | None, float | None, float | None]:
  fields = row.row.get("diagnostics") or {}
  direction, rotation, norm = (
    fields.get(name)
    for name in (
      "Pose_TransDirErrDeg",
      "Pose_RotErrDeg",
      "Pose_TransNormErrM",
    )
  )
  return direction, rotation, norm


def retention_by_size(
  systems: Systems, mask: Collection[str]
) -> dict[str, Any] | None:
  """Share of target objects found again, by projected size (7.4)."""
  objects = [
    (entry, _area(entry["gt_box"]))
    for system in systems
    for row in system.ssp
    if row.key.case_id not in mask
    for entry in row.row["objects"]
    if entry["status"] != "hallucination"
  ]
  if not objects:
    return None
  edges = np.quantile([area for _, area in objects], [1 / 3, 2 / 3])
  result: dict[str, Any] = {"edges_px2": edges.tolist(), "bins": {}}
  for index, name in enumerate(BINS):
    chosen = [
      entry
      for entry, area in objects
      if int(np.searchsorted(edges, area, side="left")) == index
    ]
    matches = [entry for entry in chosen if entry["status"] == "match"]
    result["bins"][name] = {
      "n": len(chosen),
      "retention": _share(e["status"] == "match" for e in chosen),
      "position": _mean(
        [1.0 - v for e in matches if (v := e.get("center_norm")) is not None]
      ),
      "integrity": _mean(
        [v for e in matches if (v := e.get("object_quality")) is not None]
      ),
    }
  return result


def full_pose(systems: Systems) -> dict[str, Any] | None:
  """Full-pose and off-axis errors per system (3.8)."""
  result = {}
  for system in systems:
    columns: dict[str, dict[str, list[float]]] = {}
    for row in system.cmg:
      for name, value in full_pose_errors(row).items():
        if value is not None:
          column = columns.setdefault(name, {})
          column.setdefault(row.key.case_id, []).append(value)
    if columns:
      result[system.name] = {
        name: _protocol_mean(cases) for name, cases in sorted(columns.items())
      }
  return result or None


def full_pose_errors(row: evidence.CmgEvidence) -> dict[str, float | None]:
  """Errors of one step from its recorded diagnostics.

  Returns:
    `full_translation_m` and `off_axis_translation_m` for translation steps
    with a scale, `translation_direction_deg`, `so3_deg`, and
    `cross_axis_rotation_deg` for rotation steps; empty without diagnostics.
  """
  fields = row.row.get("diagnostics") or {}
  if not fields:
    return {}
  found: dict[str, float | None] = {
    "translation_direction_deg": fields.get("Pose_TransDirErrDeg"),
    "so3_deg": fields.get("Pose_RotErrDeg"),
  }
  component = fields["Pose_ActionComponent"]
  if component == "yaw_deg":
    found["cross_axis_rotation_deg"] = abs(
      fields["Pose_PitchPredDeg"] - fields["Pose_PitchExpectedDeg"]
    )
  elif component == "pitch_deg":
    found["cross_axis_rotation_deg"] = abs(
      fields["Pose_YawPredDeg"] - fields["Pose_YawExpectedDeg"]
    )
  elif fields.get("Pose_TxPredMetric") is not None:
    errors = {
      axis: fields[f"Pose_{axis}PredMetric"] - fields[f"Pose_{axis}Expected"]
      for axis in ("Tx", "Ty", "Tz")
    }
    scored = component[:2].capitalize()
    found["full_translation_m"] = math.hypot(*errors.values())
    found["off_axis_translation_m"] = math.hypot(
      *(error for axis, error in errors.items() if axis != scored)
    )
  return found


def temporal(
  systems: Systems, mask: Collection[str], limits: constants.Constants
) -> dict[str, Any] | None:
  """Atomic-to-chain drop of both axes under matched aggregation (7.6).

  The weight w of the worst step is swept from 0 (mean) to 1; `published` is
  CMG by mean and SSP by mean plus worst.
  """
  cases = [_case_steps(system, mask, limits) for system in systems]
  cases = [c for c in cases if _has_both(c[0]) and _has_both(c[1])]
  if not cases:
    return None

  def drops(axis: int, weight: float) -> list[float]:
    return [_drop(found[axis], weight) for found in cases]

  def row(cmg_weight: float, ssp_weight: float) -> dict[str, Any]:
    cmg, ssp = drops(0, cmg_weight), drops(1, ssp_weight)
    gap = (_mean(ssp) or 0.0) - (_mean(cmg) or 0.0)
    return {
      "cmg_drop": _mean(cmg),
      "ssp_drop": _mean(ssp),
      "ssp_minus_cmg": gap,
      "ssp_larger": sum(s > c for s, c in zip(ssp, cmg, strict=True)),
      "of": len(cases),
    }

  sweep = [
    {"min_step_weight": w / 20, **row(w / 20, w / 20)} for w in range(21)
  ]
  return {
    "published": row(0.0, limits.worst_weight),
    "mean": row(0.0, 0.0),
    "mean_plus_worst": row(limits.worst_weight, limits.worst_weight),
    "sweep": sweep,
  }


_Steps = dict[str, list[list[float]]]


def _case_steps(
  system: evidence_files.SystemEvidence,
  mask: Collection[str],
  limits: constants.Constants,
) -> tuple[_Steps, _Steps]:
  """Step values of each case per axis: one list per pillar."""
  cmg = scoring.score_cmg(system.cmg, limits)
  kept = [i for i in range(len(system.cmg)) if cmg.valid[i]]
  grounded = aggregate.by_case(
    [system.cmg[i].key for i in kept], [float(cmg.score[i]) for i in kept]
  )
  rows = [row for row in system.ssp if row.key.case_id not in mask]
  scores = scoring.score_ssp(rows, limits)
  keys = [row.key for row in rows]
  columns = (scores.presence, scores.spatial, scores.integrity)
  pillars = [aggregate.by_case(keys, c.tolist()) for c in columns]
  return (
    {case: [steps] for case, steps in grounded.items()},
    {case: [column[case] for column in pillars] for case in pillars[0]},
  )


def _has_both(cases: Mapping[str, object]) -> bool:
  found = {case.split("__")[2] for case in cases}
  return {"atomic", "chain"} <= found


def _drop(cases: _Steps, weight: float) -> float:
  means = {}
  for protocol in ("atomic", "chain"):
    means[protocol] = aggregate.mean(
      aggregate.mean(
        aggregate.mean_plus_worst(steps, weight) for steps in columns
      )
      for case, columns in sorted(cases.items())
      if case.split("__")[2] == protocol
    )
  return means["atomic"] - means["chain"]


def measured(row: evidence.CmgEvidence) -> bool:
  """Whether the row has an estimate and something to divide it by."""
  return (
    math.isfinite(row.expected)
    and math.isfinite(row.estimate)
    and row.expected != 0
    and row.unit != ""
  )


def _area(box: Sequence[float]) -> float:
  return (box[2] - box[0]) * (box[3] - box[1])


def _protocol_mean(cases: Mapping[str, Sequence[float]]) -> float | None:
  means = {case: aggregate.mean(values) for case, values in cases.items()}
  try:
    return aggregate.protocol_means(
      means, source="diagnostics", require_all=False
    ).overall
  except InputError:
    return None


def _mean(values: Iterable[float | None]) -> float | None:
  known = [v for v in values if v is not None]
  return math.fsum(known) / len(known) if known else None


def _median(values: Sequence[float]) -> float | None:
  return float(np.median(values)) if values else None


def _share(flags: Iterable[bool]) -> float | None:
  return _mean([float(flag) for flag in flags])
