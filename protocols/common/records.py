# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""One record per case: what was measured, or why nothing was.

A record is one JSON line. Its `status` decides whether it enters a total:
only `ok` does. Non-finite numbers are written as the texts `nan`, `inf` and
`-inf`, since JSON has none; missing values are `null`.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from perception.errors import InputError

SCHEMA_VERSION = 1
OK = "ok"
DEGENERATE = "degenerate"
MISSING = "missing"
FAILED = "failed"
STATUSES = (OK, DEGENERATE, MISSING, FAILED)

_SPECIAL = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


@dataclasses.dataclass(frozen=True)
class Record:
  """What is known about one case of one system.

  Attributes:
    protocol: `pdi`, `orbia` or `egogeneval`.
    variant: `released` or `paper`.
    system: the generator that made the case, as the user names it.
    case_id: the case, unique within a system.
    status: `ok`; `degenerate` (the formula has no meaning here); `missing`
      (an input is absent); `failed` (an exception).
    reason: why the status is not `ok`, in one line; empty for `ok`.
    values: scalars by name; None where a value could not be measured.
    groups: category, template, source and the like, for grouped totals.
    coverage: shares and counts of what the values rest on.
    notes: sentinels and traps met, in one line each.
    details: series and intermediates for reports.
    provenance: input hashes, backends, weights, settings.
    comparable_to_published: whether the backends are those of the paper.
  """

  protocol: str
  variant: str
  system: str
  case_id: str
  status: str
  reason: str = ""
  values: Mapping[str, float | None] = dataclasses.field(default_factory=dict)
  groups: Mapping[str, str] = dataclasses.field(default_factory=dict)
  coverage: Mapping[str, float | None] = dataclasses.field(default_factory=dict)
  notes: tuple[str, ...] = ()
  details: Mapping[str, Any] = dataclasses.field(default_factory=dict)
  provenance: Mapping[str, Any] = dataclasses.field(default_factory=dict)
  comparable_to_published: bool = False

  def __post_init__(self) -> None:
    if self.status not in STATUSES:
      raise ValueError(f"unknown status {self.status!r}; one of {STATUSES}")
    if (self.status == OK) == bool(self.reason):
      raise ValueError(
        f"status {self.status!r} with reason {self.reason!r}: every status"
        " but ok has a reason, and ok has none"
      )

  @property
  def key(self) -> tuple[str, str]:
    """(system, case_id): what a run holds once."""
    return (self.system, self.case_id)

  def to_json(self) -> str:
    """The record as one line of JSON with sorted keys, no line break."""
    content = {"schema_version": SCHEMA_VERSION, **dataclasses.asdict(self)}
    return json.dumps(
      plain(content), sort_keys=True, allow_nan=False, ensure_ascii=False
    )

  @classmethod
  def from_json(cls, line: str, *, source: str, field: str) -> Record:
    """Reads one line.

    Args:
      line: a line that `to_json` wrote.
      source: file name, for the error text.
      field: place in the file, for example `line 3`.

    Returns:
      The record.

    Raises:
      InputError: if the line is not a record of this schema version.
    """
    try:
      content = json.loads(line)
      version = content.pop("schema_version")
      if version != SCHEMA_VERSION:
        raise ValueError(f"schema_version {version}")
      content["notes"] = tuple(content["notes"])
      content["values"] = numbers(content["values"])
      content["coverage"] = numbers(content["coverage"])
      return cls(**content)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
      raise InputError(
        source,
        field,
        found=f"{line[:80]!r} ({error})",
        expected=f"one record of schema version {SCHEMA_VERSION}",
        hint="Move the file away and run again.",
      ) from error


def numbers(content: Mapping[str, Any]) -> dict[str, float | None]:
  """Numbers as `plain` wrote them: texts for non-finite ones are decoded."""
  return {
    key: _SPECIAL[value] if isinstance(value, str) else value
    for key, value in content.items()
  }


def plain(value: Any) -> Any:
  """Content that `json.dumps(allow_nan=False)` accepts.

  NumPy scalars and arrays become numbers and lists, tuples become lists, and
  non-finite floats become the texts `nan`, `inf`, `-inf`.
  """
  if isinstance(value, Mapping):
    return {str(key): plain(entry) for key, entry in value.items()}
  if isinstance(value, list | tuple):
    return [plain(entry) for entry in value]
  if isinstance(value, np.ndarray):
    return plain(value.tolist())
  if isinstance(value, np.generic):
    return plain(value.item())
  if isinstance(value, float) and not math.isfinite(value):
    return "nan" if math.isnan(value) else ("inf" if value > 0 else "-inf")
  return value
