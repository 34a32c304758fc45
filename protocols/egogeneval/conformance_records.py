# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Golden checks of topology, aggregation and refused records."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from perception.errors import InputError
from protocols.common import conformance as common
from protocols.egogeneval import (
  aggregate,
  conformance_folder,
  constants,
  evidence,
  scoring,
)
from protocols.egogeneval import boxes as box_math
from protocols.egogeneval.conformance_folder import VARIANTS, Folder

_PILLARS = ("f1", "spatial", "integrity")
# The paper adds 1e-8 to a denominator where the code takes the larger.
_PAPER_FLOOR = 1e-6


def topology_step(folder: Folder, precision: str) -> Iterator[common.Check]:
  """Sections 4.9 to 4.14: one step from its record."""
  known = ("tag", "record", "topology", "rejected", "components")
  dtype = conformance_folder.dtype_of(precision)
  for number, case in enumerate(folder.json("topology_step.json")):
    where = f"topology_step/{number}/{case['tag']}"
    yield from conformance_folder.unknown_fields(where, case, known, precision)
    undecided = precision == "float32" and (
      _has_near_tie(case["record"]) or _has_short_offset(case["record"])
    )
    for variant in VARIANTS:
      limits = constants.for_variant(variant)
      rejected = case["rejected"] or (
        # Spec 13 item 9: the paper refuses every coincident pair.
        variant == "paper" and "same target centre" in case["tag"]
      )
      try:
        row = evidence.ssp_row(case["record"], source=where, field="record")
        scores = scoring.score_ssp([row], limits, dtype=dtype)
      except InputError:
        yield common.equal(
          where, True, rejected, variant=variant, precision=precision
        )
        continue
      pairs: list[tuple[str, Any, Any, float]] = [
        ("rejected", False, rejected, 0.0)
      ]
      if not undecided:
        pairs += _component_pairs(scores, 0, row, case["components"], limits)
        pairs += _topology_pairs(scores, 0, row, case["topology"], variant)
      else:
        # A pair sits on a limit that float32 cannot resolve.
        pairs += [
          pair
          for pair in _component_pairs(
            scores, 0, row, case["components"], limits
          )
          if pair[0] in ("f1", "integrity")
        ]
      yield conformance_folder.worst(
        where,
        [(n, f, e, _loosened(t, precision)) for n, f, e, t in pairs],
        variant=variant,
        precision=precision,
      )


def _loosened(tolerance: float, precision: str) -> float:
  return tolerance if precision == "float64" else max(tolerance, 2e-6)


def _has_near_tie(record: Mapping[str, Any]) -> bool:
  """Whether any pair's relative depth difference is on the tie limit."""
  depths = record["object_depths"] or []
  for name in ("gt_median_depth", "pred_median_depth"):
    values = [entry[name] for entry in depths if entry[name] is not None]
    for i, first in enumerate(values):
      for second in values[i + 1 :]:
        middle = max(0.5 * (abs(first) + abs(second)), 1e-8)
        ratio = abs(first - second) / middle
        if abs(ratio - 0.03) < 1e-5 or middle < 1e-6:
          return True
  return False


def _has_short_offset(record: Mapping[str, Any]) -> bool:
  """Whether centres lie closer than float32 pixel coordinates resolve."""
  for name in ("gt_box", "pred_box"):
    boxes = [o[name] for o in record["objects"] or [] if o[name] is not None]
    for i, first in enumerate(boxes):
      for second in boxes[i + 1 :]:
        if 0.0 < box_math.center_distance(first, second) < 1e-4:
          return True
  return False


def _component_pairs(
  scores: scoring.SspScores,
  index: int,
  row: evidence.SspEvidence,
  golden: Mapping[str, Any] | None,
  limits: constants.Constants,
) -> list[tuple[str, Any, Any, float]]:
  if golden is None:
    return [("G", row.targets, 0, 0.0)]
  released = limits.variant == "released"
  tolerance = 1e-12 if released else _PAPER_FLOOR
  f1 = golden["f1"]
  if not released:
    # Spec 13 item 1: the paper counts matches and recorded extras only.
    f1 = 2.0 * row.matches / (row.targets + row.matches + row.extras)
  step = (f1 + golden["spatial"] + golden["integrity"]) / 3.0
  return [
    ("f1", float(scores.presence[index]), f1, 1e-12),
    ("spatial", float(scores.spatial[index]), golden["spatial"], tolerance),
    ("integrity", float(scores.integrity[index]), golden["integrity"], 1e-12),
    ("ssp_step", float(scores.score[index]), step, tolerance),
  ]


def _topology_pairs(
  scores: scoring.SspScores,
  index: int,
  row: evidence.SspEvidence,
  golden: Mapping[str, Any] | None,
  variant: str,
) -> list[tuple[str, Any, Any, float]]:
  if golden is None:
    return []
  ours = topology_fields(scores, index)
  tolerance = 1e-12 if variant == "released" else _PAPER_FLOOR
  return [
    (name, ours.get(name, "no such field of ours"), value, tolerance)
    for name, value in golden.items()
  ]


def topology_fields(
  scores: scoring.SspScores, index: int
) -> dict[str, float | int | None]:
  """A step's topology by its published names; None where undefined."""
  found = scores.topology
  pairs, both, eligible, matched, valid, correct, ties = (
    int(column[index])
    for column in (
      found.pairs,
      found.matched_pairs,
      found.eligible_pairs,
      found.matched_eligible_pairs,
      found.valid_pairs,
      found.correct_pairs,
      found.predicted_ties,
    )
  )

  def share(number: float, total: int) -> float | None:
    return number / total if total else None

  return {
    "PlanarTopology_AllGT": float(found.planar[index]) if pairs else None,
    "PlanarTopology_MatchedPairs": float(found.planar_matched[index])
    if both
    else None,
    "DepthTopology_AllGT": share(correct, eligible),
    "DepthTopology_MatchedValid": share(correct, valid),
    "RelativeTopology_AllGT": float(found.score[index]) if pairs else None,
    "GT_Pair_Coverage": share(both, pairs),
    "DepthTopology_EligibilityRate": share(eligible, pairs),
    "DepthTopology_MatchCoverage": share(matched, eligible),
    "DepthTopology_ValidCoverage": share(valid, eligible),
    "DepthTopology_NumEligibleGTPairs": eligible,
    "DepthTopology_NumMatchedEligiblePairs": matched,
    "DepthTopology_NumValidMatchedPairs": valid,
    "DepthTopology_NumCorrectPairs": correct,
    "DepthTopology_NumPredictedTies": ties,
  }


def aggregation(folder: Folder, precision: str) -> Iterator[common.Check]:
  """Sections 3.4 to 3.6 and 4.15: systems from records to results."""
  known = (
    "cmg", "ssp", "result", "provenance", "cmg_step_scores",
    "ssp_step_components", "ssp_case_pillars", "relative_topology",
  )  # fmt: skip
  dtype = conformance_folder.dtype_of(precision)
  for system, golden in folder.json("aggregation.json").items():
    where = f"aggregation/{system}"
    yield from conformance_folder.unknown_fields(
      where, golden, known, precision
    )
    cmg_rows = [
      evidence.cmg_row(row, source=where, field=str(number))
      for number, row in enumerate(folder.rows(f"records_{system}_cmg.jsonl"))
    ]
    raw = folder.rows(f"records_{system}_ssp.jsonl")
    for variant in VARIANTS:
      limits = constants.for_variant(variant)
      cmg = scoring.score_cmg(cmg_rows, limits, dtype=dtype)
      yield from _cmg_checks(where, cmg_rows, cmg, golden, variant, precision)
      yield from _ssp_checks(where, raw, golden, limits, dtype, precision)
      if variant == "released":
        yield _result_check(where, cmg_rows, cmg, raw, golden, dtype, precision)


def _cmg_checks(
  where: str,
  rows: Sequence[evidence.CmgEvidence],
  scores: scoring.CmgScores,
  golden: Mapping[str, Any],
  variant: str,
  precision: str,
) -> Iterator[common.Check]:
  expected = dict(golden["cmg_step_scores"])
  if variant == "paper":
    # Spec 13 item 2: signs of the recorded numbers, without a dead zone.
    expected = {row.key.record_id: _paper_cmg(row) for row in rows}
  ids = [row.key.record_id for row in rows]
  tolerance = _loosened(1e-12, precision)
  pairs: list[tuple[str, Any, Any, float]] = [
    ("ids", sorted(ids), sorted(golden["cmg_step_scores"]), 0.0)
  ]
  pairs += [
    (name, float(scores.score[i]), expected[name], tolerance)
    for i, name in enumerate(ids)
  ]
  yield conformance_folder.worst(
    f"{where}/cmg_step_scores", pairs, variant=variant, precision=precision
  )
  if variant == "released":
    summary = aggregate.cmg_summary([row.key for row in rows], scores)
    yield conformance_folder.worst(
      f"{where}/cmg",
      [
        (name, summary.get(name), value, tolerance)
        for name, value in golden["cmg"].items()
      ],
      variant=variant,
      precision=precision,
    )


def _paper_cmg(row: evidence.CmgEvidence) -> float:
  direction = float(
    math.copysign(1, row.expected) == math.copysign(1, row.estimate)
    and row.estimate != 0
  )
  floor = 0.1 if row.unit.startswith("m") else 5.0
  error = row.absolute_error / max(abs(row.expected), floor)
  return direction * (1.0 + 1.0 / (1.0 + error)) / 2.0


def read_ssp(
  raw: Sequence[Mapping[str, Any]], *, source: str
) -> tuple[list[evidence.SspEvidence], set[str]]:
  """Rows with G >= 1 and the ids of masked cases, from raw records."""
  rows, counts = [], []
  for number, record in enumerate(raw):
    field = f"line {number + 1}"
    key = evidence.parse_id(record.get("id"), source=source, field=field)
    count = evidence.target_count(record, source=source, field=field)
    counts.append((key, count))
    if count:
      rows.append(evidence.ssp_row(record, source=source, field=field))
  masked, _ = evidence.masked_cases(counts)
  return rows, masked


def _ssp_checks(
  where: str,
  raw: Sequence[Mapping[str, Any]],
  golden: Mapping[str, Any],
  limits: constants.Constants,
  dtype: Any,
  precision: str,
) -> Iterator[common.Check]:
  rows, masked = read_ssp(raw, source=where)
  scores = scoring.score_ssp(rows, limits, dtype=dtype)
  components = golden["ssp_step_components"]
  topologies = golden["relative_topology"]
  ids = [row.key.record_id for row in rows]
  pairs: list[tuple[str, Any, Any, float]] = [
    ("ids", sorted(ids), sorted(components), 0.0),
    (
      "topology ids",
      sorted(i for i, r in zip(ids, rows, strict=True) if r.targets >= 2),
      sorted(topologies),
      0.0,
    ),
  ]
  for index, (name, row) in enumerate(zip(ids, rows, strict=True)):
    if name not in components:
      continue
    found = _component_pairs(scores, index, row, components[name], limits)
    found += _topology_pairs(
      scores, index, row, topologies.get(name), limits.variant
    )
    pairs += [
      (f"{name} {field}", ours, value, _loosened(tolerance, precision))
      for field, ours, value, tolerance in found
    ]
  yield conformance_folder.worst(
    f"{where}/ssp_step_components",
    pairs,
    variant=limits.variant,
    precision=precision,
  )
  kept = [i for i, row in enumerate(rows) if row.key.case_id not in masked]
  keys = [rows[i].key for i in kept]
  chosen = scoring.score_ssp([rows[i] for i in kept], limits, dtype=dtype)
  pillars = aggregate.case_pillars(keys, chosen, limits)
  summary = aggregate.ssp_summary(keys, chosen, masked, limits)
  names = _PILLARS if limits.variant == "released" else ("spatial", "integrity")
  tolerance = 1e-12 if limits.variant == "released" else _PAPER_FLOOR
  pairs = [("cases", sorted(pillars), sorted(golden["ssp_case_pillars"]), 0.0)]
  pairs += [
    (f"{case} {name}", pillars.get(case, {}).get(name), values[name], tolerance)
    for case, values in golden["ssp_case_pillars"].items()
    for name in names
  ]
  # In the paper variant F1, and all that contains it, has another P.
  pairs += [
    (name, summary.get(name), value, tolerance)
    for name, value in golden["ssp"].items()
    if limits.variant == "released"
    or not (name.startswith("ssp") or name.endswith("_f1"))
  ]
  yield conformance_folder.worst(
    f"{where}/ssp",
    [(n, f, e, _loosened(t, precision) if t else 0.0) for n, f, e, t in pairs],
    variant=limits.variant,
    precision=precision,
  )


def _result_check(
  where: str,
  cmg_rows: Sequence[evidence.CmgEvidence],
  cmg: scoring.CmgScores,
  raw: Sequence[Mapping[str, Any]],
  golden: Mapping[str, Any],
  dtype: Any,
  precision: str,
) -> common.Check:
  rows, masked = read_ssp(raw, source=where)
  kept = [row for row in rows if row.key.case_id not in masked]
  limits = constants.RELEASED
  document = aggregate.result_document(
    aggregate.cmg_summary([row.key for row in cmg_rows], cmg),
    aggregate.ssp_summary(
      [row.key for row in kept],
      scoring.score_ssp(kept, limits, dtype=dtype),
      masked,
      limits,
    ),
    eligible=len(cmg_rows),
    evaluated=len(cmg_rows),
    provenance=golden["provenance"],
  )
  tolerance = _loosened(1e-12, precision)
  pairs: list[tuple[str, Any, Any, float]] = [
    ("fields", sorted(document), sorted(golden["result"]), 0.0)
  ]
  pairs += [
    (name, document.get(name), value, tolerance)
    for name, value in golden["result"].items()
  ]
  return conformance_folder.worst(
    f"{where}/result", pairs, variant="released", precision=precision
  )


def rejections(folder: Folder, precision: str) -> Iterator[common.Check]:
  """Sections 3.5, 4.13, 4.15, 16.6: what the aggregators refuse."""
  content = folder.json("aggregation_rejections.json")
  yield from conformance_folder.unknown_fields(
    "aggregation_rejections",
    content,
    ("base", "modified_record", "cases"),
    precision,
  )
  known = (
    "tag", "kind", "rejected", "replacement", "replace_first_id", "score",
  )  # fmt: skip
  system = re.findall(r"system\d+", content["base"])[0]
  cmg = folder.rows(f"records_{system}_cmg.jsonl")
  ssp = folder.rows(f"records_{system}_ssp.jsonl")
  _, masked = read_ssp(ssp, source="golden")
  ssp = [row for row in ssp if row["id"].rpartition("__step")[0] not in masked]
  for case in content["cases"]:
    where = f"aggregation_rejections/{case['tag']}"
    yield from conformance_folder.unknown_fields(where, case, known, precision)
    for variant in VARIANTS:
      limits = constants.for_variant(variant)
      trusted = evidence.TRUSTED_TOPOLOGY in (case.get("replacement") or {})
      try:
        if case["kind"] == "cmg":
          score = _cmg_total(_changed_cmg(case, cmg), limits, precision)
        else:
          changed = [
            case["replacement"]
            if row["id"] == content["modified_record"]
            else row
            for row in ssp
          ]
          score = _ssp_total(changed, limits, precision)
        refused = False
      except InputError:
        score, refused = None, True
      pairs: list[tuple[str, Any, Any, float]] = [
        ("rejected", refused, case["rejected"], 0.0)
      ]
      # A recorded topology is trusted by the released aggregator alone; other
      # scores of the paper variant have another P.
      if "score" in case and variant == "released":
        pairs.append(
          ("score", score, case["score"], _loosened(1e-12, precision))
        )
      elif trusted:
        plain = _ssp_total(
          [_without_topology(row) for row in changed], limits, precision
        )
        pairs.append(("field ignored", score, plain, 0.0))
      yield conformance_folder.worst(
        where, pairs, variant=variant, precision=precision
      )


def _changed_cmg(
  case: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
  if case["tag"] == "empty":
    return []
  if case["tag"] == "no chain case":
    return [row for row in rows if row["id"].split("__")[2] != "chain"]
  first = {**rows[0], "id": case["replace_first_id"]}
  return [first, *rows[1:]]


def _without_topology(row: Mapping[str, Any]) -> dict[str, Any]:
  return {k: v for k, v in row.items() if k != evidence.TRUSTED_TOPOLOGY}


def _cmg_total(
  raw: Sequence[Mapping[str, Any]], limits: constants.Constants, precision: str
) -> float:
  rows = [
    evidence.cmg_row(row, source="golden", field=f"line {number + 1}")
    for number, row in enumerate(raw)
  ]
  scores = scoring.score_cmg(
    rows, limits, dtype=conformance_folder.dtype_of(precision)
  )
  summary = aggregate.cmg_summary([row.key for row in rows], scores)
  return float(summary["cmg"])


def _ssp_total(
  raw: Sequence[Mapping[str, Any]], limits: constants.Constants, precision: str
) -> float:
  rows, masked = read_ssp(raw, source="golden")
  kept = [row for row in rows if row.key.case_id not in masked]
  scores = scoring.score_ssp(
    kept, limits, dtype=conformance_folder.dtype_of(precision)
  )
  summary = aggregate.ssp_summary(
    [row.key for row in kept], scores, masked, limits
  )
  return float(summary["ssp"])
