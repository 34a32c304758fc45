# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Evidence of any number of systems to records, totals and results.

All steps of all systems are scored in one batch per axis; everything after
that is exactly rounded sums in sorted order.
"""

from __future__ import annotations

import collections
import dataclasses
import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from perception.errors import InputError
from protocols.common import totals as common_totals
from protocols.common.records import DEGENERATE, FAILED, MISSING, OK, Record
from protocols.egogeneval import (
  aggregate,
  constants,
  evidence_files,
  scoring,
)

PROTOCOL = "egogeneval"
_ScoresT = TypeVar("_ScoresT", scoring.CmgScores, scoring.SspScores)


@dataclasses.dataclass(frozen=True)
class SystemTotals:
  """Scores of one system.

  Attributes:
    name: the system.
    records: one record per case.
    cmg: camera summary; None where totals are refused.
    ssp: scene summary; None where totals are refused.
    overall: mean of CMG and SSP; None where totals are refused.
    refused: why there are no totals; empty otherwise.
    partial: whether the totals rest on less than all steps.
    coverage: steps by status, and rows whose correspondence call failed.
  """

  name: str
  records: tuple[Record, ...]
  cmg: Mapping[str, Any] | None
  ssp: Mapping[str, Any] | None
  overall: float | None
  refused: str
  partial: bool
  coverage: Mapping[str, int]


def score_systems(
  systems: Sequence[evidence_files.SystemEvidence],
  limits: constants.Constants,
  *,
  expected_ids: Iterable[str] | None = None,
  allow_partial: bool = False,
) -> tuple[list[SystemTotals], frozenset[str]]:
  """Scores systems from their evidence.

  Args:
    systems: evidence of the systems.
    limits: constants of the variant.
    expected_ids: all steps of the manifest; None takes the union over the
      systems.
    allow_partial: give totals over less than all steps.

  Returns:
    (totals per system, the common SSP mask).

  Raises:
    InputError: if systems mask different cases.
  """
  mask = evidence_files.common_mask(systems)
  expected = frozenset(
    expected_ids if expected_ids is not None else _union(systems)
  )
  cmg_rows = [row for system in systems for row in system.cmg]
  ssp_rows = [row for system in systems for row in system.ssp]
  cmg = _split(
    scoring.score_cmg(cmg_rows, limits), [len(s.cmg) for s in systems]
  )
  ssp = _split(
    scoring.score_ssp(ssp_rows, limits), [len(s.ssp) for s in systems]
  )
  return [
    _totals(
      system,
      own_cmg,
      own_ssp,
      expected,
      mask,
      limits,
      allow_partial,
    )
    for system, own_cmg, own_ssp in zip(systems, cmg, ssp, strict=True)
  ], mask


def _union(systems: Sequence[evidence_files.SystemEvidence]) -> set[str]:
  found: set[str] = set()
  for system in systems:
    found |= system.cmg_ids | system.ssp_ids
    found |= {status.record_id for status in system.statuses}
  return found


def _split(scores: _ScoresT, sizes: Sequence[int]) -> list[_ScoresT]:
  """Cuts a batch into one part per system."""
  ends = np.cumsum([0, *sizes])
  return [
    scores.take(np.arange(start, end))
    for start, end in itertools.pairwise(ends)
  ]


def _totals(
  system: evidence_files.SystemEvidence,
  cmg: scoring.CmgScores,
  ssp: scoring.SspScores,
  expected: frozenset[str],
  mask: frozenset[str],
  limits: constants.Constants,
  allow_partial: bool,
) -> SystemTotals:
  steps = _StepTable(system, cmg, ssp, expected, mask, limits)
  coverage = steps.coverage()
  complete = coverage["scored"] == coverage["expected"]
  records = tuple(steps.records(limits))
  refused, cmg_total, ssp_total, overall = "", None, None, None
  if not complete and not (allow_partial and coverage["scored"]):
    refused = str(
      InputError(
        system.name,
        "totals",
        found=f"{coverage['scored']} of {coverage['expected']} steps with"
        f" evidence on {' and '.join(steps.axes)} {dict(steps.reasons())}",
        expected="every step",
        hint="Pass --allow_partial for totals over what is there.",
      )
    )
  else:
    try:
      require_all = not allow_partial
      if "cmg" in steps.axes:
        cmg_total = steps.cmg_summary(require_all=require_all)
      if "ssp" in steps.axes:
        ssp_total = steps.ssp_summary(limits, require_all=require_all)
    except InputError as error:
      refused = str(error)
  if not refused and cmg_total is not None and ssp_total is not None:
    overall = (cmg_total["cmg"] + ssp_total["ssp"]) / 2.0
  elif not refused:
    lacking = sorted({"cmg", "ssp"} - set(steps.axes))
    refused = f"{system.name}: no Overall: {', '.join(lacking)} not measured"
  return SystemTotals(
    system.name,
    records,
    cmg_total,
    ssp_total,
    overall,
    refused,
    not complete and not refused,
    coverage,
  )


class _StepTable:
  """One system's steps with scores and statuses, by case."""

  def __init__(
    self,
    system: evidence_files.SystemEvidence,
    cmg: scoring.CmgScores,
    ssp: scoring.SspScores,
    expected: frozenset[str],
    mask: frozenset[str],
    limits: constants.Constants,
  ) -> None:
    self._system = system
    self._expected = expected
    self._mask = mask
    self._cmg, self._ssp = cmg, ssp
    self._cmg_rows = {
      row.key.record_id: i
      for i, row in enumerate(system.cmg)
      if cmg.valid[i] and row.key.record_id in expected
    }
    self._ssp_rows = {
      row.key.record_id: i
      for i, row in enumerate(system.ssp)
      if row.key.record_id in expected
    }
    self._statuses = {(s.axis, s.record_id): s for s in system.statuses}
    if not limits.failed_proposal_is_empty:
      # Spec 13 item 18: a failed call is no evidence of a missing object.
      for record_id in system.proposals_failed:
        self._ssp_rows.pop(record_id, None)
        self._statuses["ssp", record_id] = evidence_files.StepStatus(
          record_id, "ssp", FAILED, "the matching call failed"
        )
    stated = {s.axis for s in system.statuses}
    present = {"cmg": bool(system.cmg), "ssp": bool(system.ssp_ids)}
    # An axis without any row or status was not measured at all.
    self.axes = tuple(
      axis for axis in evidence_files.AXES if present[axis] or axis in stated
    )
    for i, row in enumerate(system.cmg):
      if not cmg.valid[i]:
        self._statuses["cmg", row.key.record_id] = evidence_files.StepStatus(
          row.key.record_id, "cmg", DEGENERATE, "expected component has no sign"
        )

  def status(self, axis: str, record_id: str) -> tuple[str, str]:
    """(status, reason) of a step on one axis."""
    if axis == "cmg" and record_id in self._cmg_rows:
      return OK, ""
    found = self._statuses.get((axis, record_id))
    if axis == "ssp" and found is None and record_id in self._system.ssp_ids:
      return OK, ""
    if found is None:
      return MISSING, f"no {axis} evidence"
    return found.status, found.reason

  def coverage(self) -> dict[str, int]:
    """Counts of steps by status."""
    counts = collections.Counter(
      self._worst(record_id) for record_id in self._expected
    )
    return {
      "expected": len(self._expected),
      "scored": counts[OK],
      "degenerate": counts[DEGENERATE],
      "missing": counts[MISSING],
      "failed": counts[FAILED],
      "proposals_failed": len(self._system.proposals_failed),
    }

  def _worst(self, record_id: str) -> str:
    found = {self.status(axis, record_id)[0] for axis in self.axes} or {MISSING}
    return next(s for s in (FAILED, MISSING, DEGENERATE, OK) if s in found)

  def reasons(self) -> list[tuple[str, int]]:
    """The most frequent reasons of steps without evidence."""
    counts = collections.Counter(
      reason
      for record_id in self._expected
      for axis in self.axes
      if (reason := self.status(axis, record_id)[1])
    )
    return counts.most_common(3)

  def cmg_summary(self, *, require_all: bool) -> dict[str, Any]:
    """Camera summary over the cases whose steps are all there.

    The mean of fewer steps than a case has would be another quantity.
    """
    keys = {row.key.record_id: row.key for row in self._system.cmg}
    whole = self._whole(self._cmg_rows, frozenset())
    return aggregate.cmg_summary(
      [keys[s] for s in whole],
      self._cmg.take([self._cmg_rows[s] for s in whole]),
      require_all=require_all,
    )

  def ssp_summary(
    self, limits: constants.Constants, *, require_all: bool
  ) -> dict[str, Any]:
    """Scene summary over the unmasked cases whose steps are all there."""
    keys = {row.key.record_id: row.key for row in self._system.ssp}
    whole = self._whole(self._ssp_rows, self._mask)
    return aggregate.ssp_summary(
      [keys[s] for s in whole],
      self._ssp.take([self._ssp_rows[s] for s in whole]),
      self._mask & set(self._by_case()),
      limits,
      require_all=require_all,
    )

  def _whole(
    self, rows: Mapping[str, int], left_out: frozenset[str]
  ) -> list[str]:
    return sorted(
      record_id
      for case, ids in self._by_case().items()
      if case not in left_out and all(i in rows for i in ids)
      for record_id in ids
    )

  def _by_case(self) -> dict[str, list[str]]:
    cases: dict[str, list[str]] = {}
    for record_id in sorted(self._expected):
      cases.setdefault(record_id.rpartition("__step")[0], []).append(record_id)
    return cases

  def records(self, limits: constants.Constants) -> Iterable[Record]:
    """One record per case, sorted."""
    for case, ids in self._by_case().items():
      states = [
        (axis, i, *self.status(axis, i)) for i in ids for axis in self.axes
      ]
      bad = [state for state in states if state[2] != OK]
      status = next(
        (
          s
          for s in (FAILED, MISSING, DEGENERATE)
          if any(b[2] == s for b in bad)
        ),
        OK,
      )
      reason = "; ".join(
        f"{axis} {i.rpartition('__')[2]}: {why}" for axis, i, _, why in bad[:3]
      )
      parts = case.split("__")
      origin = self._system.origins.get(case)
      yield Record(
        protocol=PROTOCOL,
        variant=limits.variant,
        system=self._system.name,
        case_id=case,
        status=status,
        reason=reason,
        values=self._values(case, ids, limits),
        groups={
          "dataset": parts[0],
          "scene": parts[1],
          "protocol": parts[2],
          "subtype": parts[3] if len(parts) > 3 else "",
        },
        coverage={
          "steps": len(ids),
          "cmg_steps": sum(i in self._cmg_rows for i in ids),
          "ssp_steps": sum(i in self._system.ssp_ids for i in ids),
          "ssp_masked": float(case in self._mask),
        },
        notes=tuple(
          f"{i.rpartition('__')[2].replace('step', 'step ')}: the matching call"
          " failed and counts as no match (released)"
          for i in ids
          if i in self._system.proposals_failed and i in self._ssp_rows
        ),
        provenance={
          **(origin.provenance if origin else {}),
          "evidence_sha256": dict(self._system.digests),
        },
        comparable_to_published=origin is not None
        and origin.comparable_to_published
        and limits.variant == constants.RELEASED.variant,
      )

  def _values(
    self, case: str, ids: Sequence[str], limits: constants.Constants
  ) -> dict[str, float | None]:
    values: dict[str, float | None] = {}
    cmg = [self._cmg_rows.get(i) for i in ids]
    for name, column in (
      ("cmg", self._cmg.score),
      ("dir", self._cmg.direction),
      ("gated", self._cmg.gated),
    ):
      values[name] = _mean_of(column, cmg)
    rows = [self._ssp_rows.get(i) for i in ids]
    usable = case not in self._mask and None not in rows
    for name, column in zip(
      aggregate.PILLARS,
      (self._ssp.presence, self._ssp.spatial, self._ssp.integrity),
      strict=True,
    ):
      values[name] = (
        aggregate.mean_plus_worst(
          [float(column[i]) for i in rows if i is not None], limits.worst_weight
        )
        if usable
        else None
      )
    pillars = [values[name] for name in aggregate.PILLARS]
    known = [p for p in pillars if p is not None]
    values["ssp"] = aggregate.mean(known) if usable else None
    return values


def _mean_of(column: Any, indices: Sequence[int | None]) -> float | None:
  if None in indices:
    return None
  return common_totals.mean([float(column[i]) for i in indices])
