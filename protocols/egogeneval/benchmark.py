# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Timings of EgoGenEval: scoring from evidence against a NumPy loop.

The evidence is drawn at the benchmark's size: 18 systems, 1,400 cases, 2,360
steps. The baseline scores the same rows step by step and pair by pair in
plain Python and NumPy, and both results are compared in the same run.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from protocols.common import timing
from protocols.egogeneval import (
  aggregate,
  constants,
  evidence,
  evidence_files,
  scoring,
)

_SYSTEMS, _SCALE = 18, {"atomic": 800, "chain": 360, "cycle": 240}
_QUICK_SHARE = 20


def run(*, quick: bool) -> list[timing.Row]:
  """All timings.

  Args:
    quick: a twentieth of the cases and one repeat.

  Returns:
    Rows; ours and the baseline are timed in this call.
  """
  share = _QUICK_SHARE if quick else 1
  repeats = 1 if quick else 3
  ids = _step_ids(share)
  texts = _evidence_lines(ids, 2 if quick else _SYSTEMS)
  start = time.perf_counter()
  with evidence_files.many_objects():
    rows = _parsed(texts)
  parse_s = time.perf_counter() - start
  limits = constants.RELEASED

  def ours() -> list[tuple[float, float]]:
    return _scores(rows, len(texts), limits)

  def steps() -> tuple[scoring.CmgScores, scoring.SspScores]:
    return scoring.score_cmg(rows[0], limits), scoring.score_ssp(
      rows[1], limits
    )

  start = time.perf_counter()
  baseline = [_baseline_ssp(row) for row in rows[1]]
  baseline_cmg = [_baseline_cmg(row) for row in rows[0]]
  baseline_s = time.perf_counter() - start
  cold, warm = timing.measure(steps, repeats=repeats)
  all_cold, all_warm = timing.measure(ours, repeats=repeats)
  found = scoring.score_ssp(rows[1], limits)
  error = float(np.max(np.abs(found.score - np.array(baseline))))
  cmg = scoring.score_cmg(rows[0], limits)
  error = max(error, float(np.max(np.abs(cmg.score - np.array(baseline_cmg)))))
  note = (
    f"{len(texts)} systems x {len(ids)} steps, largest difference {error:.1e}"
  )
  return [
    timing.Row("evidence: read and check", None, parse_s, note=note),
    timing.Row(
      "evidence: score all steps",
      cold,
      warm,
      baseline_s,
      "plain NumPy loop over steps and pairs",
      note,
    ),
    timing.Row(
      "evidence: score and aggregate all systems", all_cold, all_warm, note=note
    ),
  ]


def _scores(
  rows: tuple[list[evidence.CmgEvidence], list[evidence.SspEvidence]],
  systems: int,
  limits: constants.Constants,
) -> list[tuple[float, float]]:
  """(CMG, SSP) of every system: one batch, then one aggregation each."""
  cmg = scoring.score_cmg(rows[0], limits)
  ssp = scoring.score_ssp(rows[1], limits)
  found = []
  for part in np.split(np.arange(len(rows[0])), systems):
    keys = [rows[0][i].key for i in part]
    cmg_total = aggregate.cmg_summary(keys, cmg.take(part))
    ssp_total = aggregate.ssp_summary(keys, ssp.take(part), (), limits)
    found.append((cmg_total["cmg"], ssp_total["ssp"]))
  return found


def _step_ids(share: int) -> list[str]:
  ids = []
  for protocol, cases in _SCALE.items():
    subtype = next(
      s for s, p in constants.PROTOCOL_OF_SUBTYPE.items() if p == protocol
    )
    for case in range(cases // share):
      for step in range(1, constants.STEPS_OF_PROTOCOL[protocol] + 1):
        ids.append(
          f"synthetic__s{case:04d}__{protocol}__{subtype}__0_1__single1"
          f"__step{step}"
        )
  return ids


def _evidence_lines(
  ids: Sequence[str], systems: int
) -> list[tuple[list[str], list[str]]]:
  rng = np.random.default_rng(0)
  lines = []
  for _ in range(systems):
    cmg, ssp = [], []
    for record_id in ids:
      cmg.append(json.dumps(_cmg_row(rng, record_id)))
      ssp.append(json.dumps(_ssp_row(rng, record_id)))
    lines.append((cmg, ssp))
  return lines


def _cmg_row(rng: np.random.Generator, record_id: str) -> dict[str, Any]:
  expected, estimate = rng.normal(size=2).tolist()
  return {
    "id": record_id,
    "action_component": "tz_forward_m",
    "action_expected": expected,
    "action_pred": estimate,
    "action_abs_err": abs(estimate - expected),
    "action_sign_correct": float(expected * estimate > 0),
    "action_unit": "m",
  }


def _ssp_row(rng: np.random.Generator, record_id: str) -> dict[str, Any]:
  targets = int(rng.integers(1, 9))
  matches = int(rng.integers(0, targets + 1))
  corners = rng.uniform(0, 200, (2, targets, 2))
  sizes = rng.uniform(10, 60, (2, targets, 2))
  boxes = np.concatenate([corners, corners + sizes], axis=2).tolist()
  objects, depths = [], []
  for i in range(targets):
    found = i < matches
    objects.append(
      {
        "gt_idx": i,
        "pred_idx": i if found else None,
        "status": "match" if found else "missing",
        "gt_box": boxes[0][i],
        "pred_box": boxes[1][i] if found else None,
      }
    )
    depth = rng.uniform(0.5, 5, 2).tolist()
    depths.append(
      {
        "gt_idx": i,
        "pred_idx": i if found else None,
        "gt_median_depth": depth[0],
        "pred_median_depth": depth[1] if found else None,
      }
    )
  return {
    "id": record_id,
    "num_gt_objects": targets,
    "num_pred_all": matches + int(rng.integers(0, 4)),
    "num_matched": matches,
    "center_error_norm": float(rng.uniform(0, 0.3)) if matches else None,
    "object_integrity": float(rng.uniform(0.3, 1)) if matches else None,
    "objects": objects,
    "object_depths": depths,
  }


def _parsed(
  texts: Sequence[tuple[Sequence[str], Sequence[str]]],
) -> tuple[list[evidence.CmgEvidence], list[evidence.SspEvidence]]:
  cmg, ssp = [], []
  for cmg_lines, ssp_lines in texts:
    cmg += [
      evidence.cmg_row(json.loads(line), source="benchmark", field="row")
      for line in cmg_lines
    ]
    ssp += [
      evidence.ssp_row(json.loads(line), source="benchmark", field="row")
      for line in ssp_lines
    ]
  return cmg, ssp


def _baseline_cmg(row: evidence.CmgEvidence) -> float:
  floor = 0.1 if row.unit.startswith("m") else 5.0
  q = 1.0 / (1.0 + row.absolute_error / max(abs(row.expected), floor))
  return row.direction * (1.0 + q) / 2.0


def _baseline_ssp(row: evidence.SspEvidence) -> float:
  """Sections 4.9 to 4.14 for one step, pair by pair."""
  total, pairs = 0.0, 0
  for a in range(row.targets):
    for b in range(a + 1, row.targets):
      pairs += 1
      total += _baseline_pair(row, a, b)
  share = row.matches / row.targets
  found = row.matches > 0
  position = (
    share * min(1.0, max(0.0, 1.0 - row.position_error)) if found else 0
  )
  spatial = (position + total / pairs) / 2.0 if pairs else position
  integrity = share * min(1.0, max(0.0, row.object_quality)) if found else 0.0
  f1 = 2.0 * row.matches / (row.targets + row.candidates)
  return (f1 + spatial + integrity) / 3.0


def _baseline_pair(row: evidence.SspEvidence, a: int, b: int) -> float:
  def center(box: Sequence[float]) -> np.ndarray:
    return np.array([(box[0] + box[2]) / 2.0, (box[1] + box[3]) / 2.0])

  def ratio(x: float, y: float) -> float:
    return (x - y) / max(0.5 * (abs(x) + abs(y)), 1e-8)

  first, second = row.generated_boxes[a], row.generated_boxes[b]
  both = first is not None and second is not None
  planar = 0.0
  if first is not None and second is not None:
    u = center(row.target_boxes[a]) - center(row.target_boxes[b])
    v = center(first) - center(second)
    length = float(np.linalg.norm(v))
    if length >= 1e-8:
      cosine = float(np.dot(u, v)) / (float(np.linalg.norm(u)) * length)
      planar = min(1.0, max(0.0, cosine))
  z = (row.target_depths[a], row.target_depths[b])
  expected = ratio(*z) if all(math.isfinite(v) for v in z) else 0.0
  if abs(expected) <= 0.03:
    return planar
  w = (row.generated_depths[a], row.generated_depths[b])
  order = 0.0
  if both and all(math.isfinite(v) for v in w):
    estimate = ratio(*w)
    order = float(abs(estimate) > 0.03 and expected * estimate > 0)
  return (planar + order) / 2.0
