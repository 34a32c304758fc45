# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Other forms of input as the long table: records and published evidence.

`from_records` reads what `bin.evaluate` writes for any protocol: every value
of an `ok` record is a metric of its case (one step), a value of None is
masked, and records of another status are absent, so that the study notices.
Orbia's records also give what its tier trees read (`adapters_orbia`).
`from_evidence` reads EgoGenEval evidence (specs/egogeneval.md section 12.6)
and scores it per step (`adapters_egogeneval`).
"""

from __future__ import annotations

import math
import pathlib
from collections.abc import Collection, Iterator, Mapping, Sequence

from perception.errors import InputError
from protocols.common import store
from protocols.common.records import OK, Record
from protocols.statistics import table
from protocols.statistics.table import Row, StepTable

# Column of the long table -> names that protocols give it in `groups`.
_GROUPS: Mapping[str, tuple[str, ...]] = {
  "scene": ("scene", "scene_id"),
  "source": ("source", "dataset"),
  "subtype": ("subtype", "template", "category"),
  "protocol": ("protocol", "horizon"),
}


def from_records(folders: Sequence[pathlib.Path]) -> StepTable:
  """Records of one or more run folders.

  Args:
    folders: output folders of `bin.evaluate`.

  Returns:
    The table.

  Raises:
    InputError: if there is no scored record, or a value is not finite.
  """
  name = ", ".join(map(str, folders))
  rows = [
    row
    for folder in folders
    for record in store.read_scored(folder).values()
    if record.status == OK
    for row in _record_rows(record, folder)
  ]
  if not rows:
    raise InputError(
      name,
      "records",
      found="no record with status ok",
      expected="output folders of bin.evaluate",
    )
  return table.pivot(rows, source_name=name)


def _record_rows(record: Record, folder: pathlib.Path) -> Iterator[Row]:
  groups = {
    column: next((record.groups[n] for n in names if n in record.groups), "")
    for column, names in _GROUPS.items()
  }
  values = dict(record.values)
  if record.protocol == "orbia":
    # Imports the video readers of the protocol: only where it is needed.
    from protocols.statistics import adapters_orbia

    values |= adapters_orbia.metrics(record)
  for metric, value in values.items():
    if value is not None and not math.isfinite(value):
      raise InputError(
        folder,
        f"{record.system}, {record.case_id}: {metric}",
        found=value,
        expected="a finite value in an ok record",
      )
    number = None if value is None else float(value)
    yield Row(
      system=record.system,
      case=record.case_id,
      metric=metric,
      value=number,
      scene=groups["scene"],
      source=groups["source"],
      subtype=groups["subtype"],
      protocol=groups["protocol"],
    )


def from_evidence(
  folders: Sequence[pathlib.Path],
  *,
  variant: str,
  wanted: Collection[str] = (),
) -> StepTable:
  """EgoGenEval evidence, scored per step.

  Args:
    folders: folders of evidence, `<system>/cmg.jsonl` and `ssp.jsonl`.
    variant: `released` or `paper`.
    wanted: metrics that the study names, for those that are made on demand
      (`adapters_egogeneval`).

  Returns:
    The table; cases without a target object are masked on the pillars.

  Raises:
    InputError: if a row is malformed, or systems mask different cases.
  """
  from protocols.egogeneval import constants, evidence_files
  from protocols.statistics import adapters_egogeneval

  systems = [
    system for f in folders for system in evidence_files.read_folder(f)
  ]
  return table.pivot(
    adapters_egogeneval.rows(
      systems, limits=constants.for_variant(variant), wanted=wanted
    ),
    source_name=", ".join(map(str, folders)),
  )
