# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Stages 2 and 3 of the matching: audit, demote, recover.

The models behind the stages are two callables, so that recorded answers,
tests and live models take the same path. Records keep their order: targets by
index, then extras by candidate; a demoted match stays in place as `missing`
followed by its extra. Source: EgoGenEval specification 4.8, 16.3.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence

from protocols.egogeneval import boxes as box_math
from protocols.egogeneval import constants, detections, vocabulary
from protocols.egogeneval import signals as signal_math

MATCH, MISSING, EXTRA = "match", "missing", "hallucination"
WRONG_IDENTITY = "wrong_identity"


@dataclasses.dataclass(frozen=True)
class ObjectRecord:
  """One object of a step.

  Attributes:
    status: `match`, `missing` or `hallucination`.
    gt_idx: target object; None for an extra.
    pred_idx: candidate; None for a missing object.
    gt_box: box of the target object.
    pred_box: box of the candidate.
    object_quality: weighted mean of the signals; 0 for a missing object.
    center_norm: centre distance over the diagonal, for a match.
    recovered: whether stage 3 made the match.
    signals: the six signals of a match.
  """

  status: str
  gt_idx: int | None
  pred_idx: int | None
  gt_box: tuple[float, ...] | None
  pred_box: tuple[float, ...] | None
  object_quality: float | None = None
  center_norm: float | None = None
  recovered: bool = False
  signals: Mapping[str, float | None] | None = None

  @property
  def key(self) -> tuple[str, int | None, int | None]:
    """(status, target, candidate)."""
    return (self.status, self.gt_idx, self.pred_idx)


@dataclasses.dataclass(frozen=True)
class Verdict:
  """Answer of the pair judge; a failed call is not the same, confidence 0."""

  same_object: bool
  confidence: float


@dataclasses.dataclass(frozen=True)
class Matched:
  """Result of the three stages.

  Attributes:
    records: final records.
    proposed: records after stage 1.
    audited: records after stage 2.
    audit_used: whether the audit had a match or an extra to look at.
    demoted: matches undone in stage 2.
    recovered: matches made in stage 3.
    dropped: proposed pairs without a usable crop; the step is then invalid.
    calls: judge calls in order, (stage, target, candidate).
  """

  records: tuple[ObjectRecord, ...]
  proposed: tuple[ObjectRecord, ...]
  audited: tuple[ObjectRecord, ...]
  audit_used: bool
  demoted: int
  recovered: int
  dropped: tuple[tuple[int, int], ...]
  calls: tuple[tuple[str, int, int], ...]


PairSignals = Callable[[int, int], signal_math.Signals | None]
Judge = Callable[[int, int], Verdict]
Audit = Callable[[Sequence[ObjectRecord]], Mapping[int, Sequence[str]] | None]


class Matcher:
  """The three stages over one step's boxes."""

  def __init__(
    self,
    targets: detections.BoxList,
    all_targets: detections.BoxList,
    candidates: detections.BoxList,
    size: tuple[int, int],
    limits: constants.Constants,
    *,
    pair_signals: PairSignals,
    audit: Audit,
    judge: Judge,
  ) -> None:
    """Args:
    targets: observable target objects (G).
    all_targets: matchable target boxes without the visibility test (F).
    candidates: matchable boxes of the generated image (P).
    size: (h, w) of both images.
    limits: constants of the variant.
    pair_signals: signals of (target, candidate); None without a crop.
    audit: defects by position in the list that it is given; None if every
      call failed.
    judge: whether (target, candidate) show one object.
    """
    self._targets = targets
    self._all_targets = all_targets
    self._candidates = candidates
    self._size = size
    self._limits = limits
    self._pair_signals = pair_signals
    self._audit = audit
    self._judge = judge
    self._calls: list[tuple[str, int, int]] = []

  def run(self, pairs: Sequence[tuple[int, int]]) -> Matched:
    """Carries accepted pairs through audit and recovery.

    Args:
      pairs: one-to-one pairs of stage 1.

    Returns:
      The records of the step.
    """
    proposed, dropped = self._first_records(dict(pairs))
    audited, barred, used = self._demote(proposed)
    final = list(audited)
    recovered = self._recover(final, barred) if used else 0
    return Matched(
      tuple(final),
      tuple(proposed),
      tuple(audited),
      used,
      len(barred),
      recovered,
      dropped,
      tuple(self._calls),
    )

  def _match(
    self, target: int, candidate: int, *, recovered: bool
  ) -> ObjectRecord | None:
    found = self._pair_signals(target, candidate)
    if found is None:
      return None
    gt_box = self._targets.boxes[target]
    pred_box = self._candidates.boxes[candidate]
    return ObjectRecord(
      MATCH,
      target,
      candidate,
      _floats(gt_box),
      _floats(pred_box),
      found.quality,
      box_math.normalised_distance(gt_box, pred_box, self._size),
      recovered,
      found.values,
    )

  def _missing(self, target: int) -> ObjectRecord:
    return ObjectRecord(
      MISSING, target, None, _floats(self._targets.boxes[target]), None, 0.0
    )

  def _extra(self, candidate: int) -> ObjectRecord:
    return ObjectRecord(
      EXTRA, None, candidate, None, _floats(self._candidates.boxes[candidate])
    )

  def _first_records(
    self, matches: Mapping[int, int]
  ) -> tuple[list[ObjectRecord], tuple[tuple[int, int], ...]]:
    records: list[ObjectRecord] = []
    dropped = []
    for target in range(len(self._targets)):
      if target not in matches:
        records.append(self._missing(target))
        continue
      record = self._match(target, matches[target], recovered=False)
      if record is None:
        dropped.append((target, matches[target]))
      else:
        records.append(record)
    used = [r.pred_idx for r in records if r.pred_idx is not None]
    extras: list[int] = []
    for candidate in range(len(self._candidates)):
      if self._is_extra(candidate, used, extras):
        extras.append(candidate)
    return records + [self._extra(c) for c in extras], tuple(dropped)

  def _is_extra(
    self, candidate: int, used: Sequence[int], extras: Sequence[int]
  ) -> bool:
    box = self._candidates.boxes[candidate]
    for other in (*used, *extras):
      shown = self._candidates.boxes[other]
      if box_math.iou(box, shown) >= 0.4 or box_math.centers_contained(
        box, shown
      ):
        return False
    name = vocabulary.canonical(self._candidates.labels[candidate])
    for target, label in zip(
      self._all_targets.boxes, self._all_targets.labels, strict=True
    ):
      if box_math.iou(box, target) >= 0.25:
        return False
      same = bool(name) and name == vocabulary.canonical(label)
      if same and box_math.centers_contained(box, target):
        return False
    return True

  def _demote(
    self, records: Sequence[ObjectRecord]
  ) -> tuple[list[ObjectRecord], set[tuple[int, int]], bool]:
    shown = [record for record in records if record.status != MISSING]
    if not shown:
      return list(records), set(), False
    defects = self._audit(shown) or {}
    flagged = {
      shown[position].key
      for position, names in defects.items()
      if WRONG_IDENTITY in names and shown[position].status == MATCH
    }
    result: list[ObjectRecord] = []
    barred: set[tuple[int, int]] = set()
    for record in records:
      target, candidate = record.gt_idx, record.pred_idx
      if target is None or candidate is None or record.key not in flagged:
        result.append(record)
        continue
      if self._keeps(record, target, candidate):
        result.append(record)
      else:
        barred.add((target, candidate))
        result += [self._missing(target), self._extra(candidate)]
    return result, barred, True

  def _keeps(self, record: ObjectRecord, target: int, candidate: int) -> bool:
    verdict = self._ask("demote", target, candidate)
    identity = (record.signals or {}).get("identity_sim")
    return (
      verdict.same_object
      and verdict.confidence >= self._limits.keep_confidence
      and (identity is None or identity >= self._limits.keep_identity)
    )

  def _recover(
    self, records: list[ObjectRecord], barred: set[tuple[int, int]]
  ) -> int:
    """Fills missing objects in place; consumed extras are removed."""
    recovered = 0
    consumed: set[int] = set()
    for position, record in enumerate(records):
      if recovered >= self._limits.max_recovered:
        break
      if record.status != MISSING or record.gt_idx is None:
        continue
      nearest = self._nearest_extra(records, record.gt_idx, consumed, barred)
      if nearest is None:
        continue
      verdict = self._ask("recover", record.gt_idx, nearest)
      if (
        not verdict.same_object
        or verdict.confidence < self._limits.recover_confidence
      ):
        continue
      found = self._match(record.gt_idx, nearest, recovered=True)
      if found is not None:
        records[position] = found
        consumed.add(nearest)
        recovered += 1
    records[:] = [
      r for r in records if not (r.status == EXTRA and r.pred_idx in consumed)
    ]
    return recovered

  def _nearest_extra(
    self,
    records: Sequence[ObjectRecord],
    target: int,
    consumed: set[int],
    barred: set[tuple[int, int]],
  ) -> int | None:
    best, best_distance = None, math.inf
    for record in records:
      candidate = record.pred_idx
      if record.status != EXTRA or candidate is None or candidate in consumed:
        continue
      if (target, candidate) in barred:
        continue
      distance = box_math.normalised_distance(
        self._targets.boxes[target],
        self._candidates.boxes[candidate],
        self._size,
      )
      if distance <= self._limits.match_distance and distance < best_distance:
        best, best_distance = candidate, distance
    return best

  def _ask(self, stage: str, target: int, candidate: int) -> Verdict:
    self._calls.append((stage, target, candidate))
    return self._judge(target, candidate)


def _floats(box: Sequence[float]) -> tuple[float, ...]:
  return tuple(float(v) for v in box)


@dataclasses.dataclass(frozen=True)
class Summary:
  """Counts and means over a step's records.

  Attributes:
    targets: G.
    matches: M.
    missing: target objects without a match.
    extras: recorded extra objects.
    object_quality: mean over matches; None without a match or a value.
    position_error: mean centre distance over the diagonal; None for M = 0.
    signals: mean of each signal over the matches that have it.
  """

  targets: int
  matches: int
  missing: int
  extras: int
  object_quality: float | None
  position_error: float | None
  signals: dict[str, float | None]


def summary(records: Sequence[ObjectRecord]) -> Summary:
  """Counts and means of a step (specification 4.9 to 4.11)."""
  matches = [record for record in records if record.status == MATCH]
  missing = sum(record.status == MISSING for record in records)
  signals = {
    name: _mean([(record.signals or {}).get(name) for record in matches])
    for name in constants.SIGNAL_WEIGHTS
  }
  return Summary(
    len(matches) + missing,
    len(matches),
    missing,
    len(records) - len(matches) - missing,
    _mean([record.object_quality for record in matches]),
    _mean([record.center_norm for record in matches]),
    signals,
  )


def _mean(values: Sequence[float | None]) -> float | None:
  known = [value for value in values if value is not None]
  return math.fsum(known) / len(known) if known else None
