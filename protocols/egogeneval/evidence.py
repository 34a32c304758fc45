# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Frozen per-step evidence: what a score is recomputed from.

A step is `<case>__step<m>`; the third `__` field of a case id names its
protocol. `cmg` rows hold the instructed component and its estimate, `ssp` rows
hold counts, boxes and depths. Source: EgoGenEval specification 3.5, 4.15,
12.6, 16.6. Rows are checked by hand, not by a schema engine: a run reads tens
of thousands of them.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeGuard

from perception.errors import InputError
from protocols.egogeneval import constants

_STEP = re.compile(r"^(?P<case>.+)__step(?P<step>[1-9][0-9]*)$")
TRUSTED_TOPOLOGY = "RelativeTopology_AllGT"


@dataclasses.dataclass(frozen=True)
class StepKey:
  """Identity of a step.

  Attributes:
    case_id: the case.
    step: 1-based step.
    protocol: atomic, chain or cycle.
  """

  case_id: str
  step: int
  protocol: str

  @property
  def record_id(self) -> str:
    """`<case>__step<m>`."""
    return f"{self.case_id}__step{self.step}"


@dataclasses.dataclass(frozen=True)
class CmgEvidence:
  """Camera evidence of one step.

  Attributes:
    key: the step.
    expected: true component; NaN where the direction flag is 0 and it is not
      recorded.
    estimate: estimated component; NaN where not recorded.
    absolute_error: |estimate - expected|; NaN as above.
    direction: recorded direction flag in [0, 1].
    unit: `m` or `deg`; empty as above.
    row: the row itself, for diagnostics.
  """

  key: StepKey
  expected: float
  estimate: float
  absolute_error: float
  direction: float
  unit: str
  row: Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class SspEvidence:
  """Scene evidence of one step with at least one target object.

  Attributes:
    key: the step.
    targets: G.
    candidates: P.
    matches: M.
    extras: recorded extra objects.
    position_error: mean centre distance over the diagonal; 0 for M = 0.
    object_quality: mean object quality; 0 for M = 0.
    target_boxes: box of each target object.
    generated_boxes: box of its match, or None.
    target_depths: median depth, NaN where unknown.
    generated_depths: the same in the generated image.
    row: the row itself, for diagnostics.
    recorded_topology: a recorded mean pair score, trusted by the released
      aggregator; None normally.
  """

  key: StepKey
  targets: int
  candidates: int
  matches: int
  extras: int
  position_error: float
  object_quality: float
  target_boxes: tuple[Sequence[float], ...]
  generated_boxes: tuple[Sequence[float] | None, ...]
  target_depths: tuple[float, ...]
  generated_depths: tuple[float, ...]
  row: Mapping[str, Any]
  recorded_topology: float | None = None


def parse_id(record_id: object, *, source: str, field: str) -> StepKey:
  """Splits a step's record id.

  Args:
    record_id: `<case>__step<m>`.
    source: file, for the message.
    field: place in the file, for the message.

  Returns:
    The key.

  Raises:
    InputError: without a step, or if the third field is no protocol.
  """
  match = _STEP.match(record_id) if isinstance(record_id, str) else None
  parts = match["case"].split("__") if match else []
  if match is None or len(parts) < 3 or parts[2] not in constants.PROTOCOLS:
    raise InputError(
      source,
      f"{field}, id",
      found=record_id,
      expected="<dataset>__<scene>__<atomic|chain|cycle>__...__step<m>",
    )
  return StepKey(match["case"], int(match["step"]), parts[2])


def cmg_row(row: Mapping[str, Any], *, source: str, field: str) -> CmgEvidence:
  """Checks one camera row.

  A direction flag of 0 scores 0 whatever else is recorded, as the released
  aggregator has it; otherwise every field must be there and finite.

  Raises:
    InputError: naming the field.
  """
  key = parse_id(row.get("id"), source=source, field=field)
  direction = _number(row, "action_sign_correct", source, field, 0.0, 1.0)
  if direction == 0.0:
    return CmgEvidence(
      key,
      _finite(row.get("action_expected")),
      _finite(row.get("action_pred")),
      _finite(row.get("action_abs_err")),
      0.0,
      str(row.get("action_unit") or ""),
      row,
    )
  unit = row.get("action_unit")
  if not isinstance(unit, str) or not unit:
    raise _error(source, field, "action_unit", unit, "m or deg")
  return CmgEvidence(
    key,
    _number(row, "action_expected", source, field),
    # The score needs the error alone; an estimate that is there must be one.
    math.nan
    if row.get("action_pred") is None
    else _number(row, "action_pred", source, field),
    _number(row, "action_abs_err", source, field, 0.0),
    direction,
    unit,
    row,
  )


def target_count(row: Mapping[str, Any], *, source: str, field: str) -> int:
  """G of a scene row; 0 masks the whole case."""
  return _count(row, "num_gt_objects", source, field)


def ssp_row(row: Mapping[str, Any], *, source: str, field: str) -> SspEvidence:
  """Checks one scene row with G >= 1.

  Raises:
    InputError: for counts that do not fit each other or the object records,
      a target object without a box or without exactly one depth record, a
      depth record of another pair, or a missing mean with M > 0.
  """
  key = parse_id(row.get("id"), source=source, field=field)
  targets = target_count(row, source=source, field=field)
  candidates = _count(row, "num_pred_all", source, field)
  matches = _count(row, "num_matched", source, field)
  if matches > min(targets, candidates):
    raise _error(
      source,
      field,
      "num_matched",
      matches,
      f"at most min(G, P) = {min(targets, candidates)}",
    )
  objects = _objects(row, targets, matches, source, field)
  depths = _depths(row, objects.pairs, targets, source, field)
  found = matches > 0
  return SspEvidence(
    key,
    targets,
    candidates,
    matches,
    objects.extras,
    _number(row, "center_error_norm", source, field) if found else 0.0,
    _number(row, "object_integrity", source, field) if found else 0.0,
    objects.target_boxes,
    objects.generated_boxes,
    tuple(target for target, _ in depths),
    tuple(generated for _, generated in depths),
    row,
    None
    if row.get(TRUSTED_TOPOLOGY) is None
    else _number(row, TRUSTED_TOPOLOGY, source, field),
  )


@dataclasses.dataclass(frozen=True)
class _Objects:
  target_boxes: tuple[Sequence[float], ...]
  generated_boxes: tuple[Sequence[float] | None, ...]
  pairs: tuple[int | None, ...]
  extras: int


def _objects(
  row: Mapping[str, Any], targets: int, matches: int, source: str, field: str
) -> _Objects:
  entries = _list_of_objects(row, "objects", source, field)
  boxes: list[Sequence[float] | None] = [None] * targets
  generated: list[Sequence[float] | None] = [None] * targets
  pairs: list[int | None] = [None] * targets
  used: set[int] = set()
  extras = matched = 0
  for entry in entries:
    status, index = entry.get("status"), entry.get("gt_idx")
    if status == "hallucination":
      extras += 1
      continue
    if status not in ("match", "missing") or not _is_index(index, targets):
      raise _error(
        source,
        field,
        "objects",
        f"status {status!r}, gt_idx {index!r}",
        f"match, missing or hallucination and gt_idx in 0..{targets - 1}",
      )
    if boxes[index] is not None:
      raise _error(
        source, field, "objects", f"gt_idx {index} twice", "each once"
      )
    boxes[index] = _box(entry, "gt_box", source, field)
    if status == "match":
      matched += 1
      candidate = entry.get("pred_idx")
      if not _is_index(candidate, None) or candidate in used:
        raise _error(
          source,
          field,
          "objects",
          f"pred_idx {candidate!r} of gt_idx {index}",
          "a candidate that no other match uses",
        )
      used.add(candidate)
      pairs[index] = candidate
      generated[index] = _box(entry, "pred_box", source, field)
  if matched != matches:
    raise _error(
      source, field, "num_matched", matches, f"{matched} match records"
    )
  complete = tuple(box for box in boxes if box is not None)
  if len(complete) != targets:
    raise _error(
      source,
      field,
      "objects",
      f"{len(complete)} target objects",
      f"num_gt_objects = {targets}",
    )
  return _Objects(complete, tuple(generated), tuple(pairs), extras)


def _depths(
  row: Mapping[str, Any],
  pairs: Sequence[int | None],
  targets: int,
  source: str,
  field: str,
) -> list[tuple[float, float]]:
  entries = _list_of_objects(row, "object_depths", source, field)
  found: dict[int, tuple[float, float]] = {}
  for entry in entries:
    index = entry.get("gt_idx")
    if not _is_index(index, targets) or index in found:
      raise _error(
        source,
        field,
        "object_depths",
        f"gt_idx {index!r}",
        f"each of 0..{targets - 1} once",
      )
    if entry.get("pred_idx") != pairs[index]:
      raise _error(
        source,
        field,
        "object_depths",
        f"gt_idx {index} with pred_idx {entry.get('pred_idx')!r}",
        f"its match {pairs[index]!r}",
      )
    found[index] = (
      _finite(entry.get("gt_median_depth")),
      _finite(entry.get("pred_median_depth")),
    )
  if len(found) != targets:
    raise _error(
      source,
      field,
      "object_depths",
      f"{len(found)} records",
      f"one for each of {targets} target objects",
    )
  return [found[index] for index in range(targets)]


def _list_of_objects(
  row: Mapping[str, Any], name: str, source: str, field: str
) -> list[Mapping[str, Any]]:
  entries = row.get(name)
  if not isinstance(entries, list) or not all(
    isinstance(entry, dict) for entry in entries
  ):
    raise _error(
      source, field, name, type(entries).__name__, "a list of objects"
    )
  return entries


def _box(
  entry: Mapping[str, Any], name: str, source: str, field: str
) -> Sequence[float]:
  box = entry.get(name)
  # A sum is finite only if every part is; texts do not add to numbers.
  try:
    fits = isinstance(box, list) and len(box) == 4 and math.isfinite(sum(box))
  except TypeError:
    fits = False
  if not fits or box is None:
    raise _error(source, field, name, box, "four finite numbers")
  found: Sequence[float] = box
  return found


def _count(row: Mapping[str, Any], name: str, source: str, field: str) -> int:
  value = row.get(name)
  if isinstance(value, bool) or not isinstance(value, int) or value < 0:
    raise _error(source, field, name, repr(value), "an integer >= 0")
  return value


def _number(
  row: Mapping[str, Any],
  name: str,
  source: str,
  field: str,
  low: float = -math.inf,
  high: float = math.inf,
) -> float:
  value = row.get(name)
  if not _is_finite(value) or not low <= value <= high:
    limits = f" in [{low:g}, {high:g}]" if low > -math.inf else ""
    raise _error(source, field, name, repr(value), f"a finite number{limits}")
  return float(value)


def _is_finite(value: object) -> TypeGuard[float]:
  return isinstance(value, int | float) and math.isfinite(value)


def _finite(value: object) -> float:
  return float(value) if _is_finite(value) else math.nan


def _is_index(value: object, count: int | None) -> TypeGuard[int]:
  return (
    isinstance(value, int)
    and not isinstance(value, bool)
    and value >= 0
    and (count is None or value < count)
  )


def _error(
  source: str, field: str, name: str, found: object, expected: object
) -> InputError:
  return InputError(source, f"{field}, {name}", found=found, expected=expected)


def masked_cases(
  counts: Iterable[tuple[StepKey, int]],
) -> tuple[set[str], set[str]]:
  """(masked, kept) case ids: a case with any G = 0 step is masked."""
  masked: set[str] = set()
  kept: set[str] = set()
  for key, count in counts:
    (masked if count == 0 else kept).add(key.case_id)
  return masked, kept - masked
