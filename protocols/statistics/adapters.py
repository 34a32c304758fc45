# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Other forms of input as the long table: records and published evidence.

`from_records` reads what `bin.evaluate` writes for any protocol: every value
of an `ok` record is a metric of its case (one step), a value of None is
masked, and records of another status are absent, so that the study notices.
Orbia's records also give what its tier trees read (`adapters_orbia`).
`from_evidence` reads EgoGenEval evidence (specs/egogeneval.md section 12.6)
and scores it per step: metrics `cmg`, `dir`, `gated`, `f1`, `spatial`,
`integrity`.
"""

from __future__ import annotations

import math
import pathlib
from collections.abc import Iterator, Mapping, Sequence

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
  folders: Sequence[pathlib.Path], *, variant: str
) -> StepTable:
  """EgoGenEval evidence, scored per step.

  Args:
    folders: folders of evidence, `<system>/cmg.jsonl` and `ssp.jsonl`.
    variant: `released` or `paper`.

  Returns:
    The table; cases without a target object are masked on the pillars.

  Raises:
    InputError: if a row is malformed, or systems mask different cases.
  """
  from protocols.egogeneval import constants, evidence_files, scoring

  limits = constants.for_variant(variant)
  systems = [
    system for f in folders for system in evidence_files.read_folder(f)
  ]
  mask = evidence_files.common_mask(systems)
  rows: list[Row] = []
  for system in systems:
    cmg = scoring.score_cmg(system.cmg, limits)
    for i, camera in enumerate(system.cmg):
      parts = {"cmg": cmg.score, "dir": cmg.direction, "gated": cmg.gated}
      for metric, column in parts.items():
        value = float(column[i]) if cmg.valid[i] else None
        rows.append(_step_row(system.name, camera.key.record_id, metric, value))
    ssp = scoring.score_ssp(system.ssp, limits)
    pillars = {
      "f1": ssp.presence,
      "spatial": ssp.spatial,
      "integrity": ssp.integrity,
    }
    number = {row.key.record_id: i for i, row in enumerate(system.ssp)}
    for record_id in system.ssp_ids:
      masked = record_id.rpartition("__step")[0] in mask
      for metric, column in pillars.items():
        value = None if masked else float(column[number[record_id]])
        rows.append(_step_row(system.name, record_id, metric, value))
  return table.pivot(rows, source_name=", ".join(map(str, folders)))


def _step_row(
  system: str, record_id: str, metric: str, value: float | None
) -> Row:
  case, _, step = record_id.rpartition("__step")
  # Ids begin with dataset, scene, protocol and subtype (section 12.1).
  parts = [*case.split("__"), "", "", "", ""][:4]
  return Row(
    system=system,
    case=case,
    metric=metric,
    value=value,
    source=parts[0],
    scene=parts[1],
    protocol=parts[2],
    subtype=parts[3],
    step=int(step),
  )
