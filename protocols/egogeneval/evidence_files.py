# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Folders of frozen evidence: reading, completeness, the common mask.

Layout of a system's folder: `cmg.jsonl`, `ssp.jsonl`; where a step could not be
measured, `status.jsonl` with rows `{"id", "axis", "status", "reason"}`; and
optionally `origin.jsonl` with what a case was measured on and with, rows
`{"case_id", "provenance", "comparable_to_published"}`. Or flat files
`[records_]<system>_cmg.jsonl` and `..._ssp.jsonl`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import pathlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from perception.errors import InputError
from protocols.common import manifest as common_manifest
from protocols.common.records import DEGENERATE, FAILED, MISSING
from protocols.egogeneval import evidence, formats

AXES = ("cmg", "ssp")


@dataclasses.dataclass(frozen=True)
class StepStatus:
  """Why a step has no evidence.

  Attributes:
    record_id: the step.
    axis: `cmg` or `ssp`.
    status: degenerate, missing or failed.
    reason: in one line.
  """

  record_id: str
  axis: str
  status: str
  reason: str


@dataclasses.dataclass(frozen=True)
class CaseOrigin:
  """What the evidence of a case was measured on and with.

  Attributes:
    case_id: the case.
    provenance: images and backends, for the case's record.
    comparable_to_published: whether the backends are the published ones.
  """

  case_id: str
  provenance: Mapping[str, Any]
  comparable_to_published: bool


@dataclasses.dataclass(frozen=True)
class SystemEvidence:
  """All evidence of one system.

  Attributes:
    name: the system.
    cmg: checked camera rows, one per step.
    ssp: checked scene rows of steps with G >= 1.
    ssp_ids: ids of all scene rows.
    masked: cases with a G = 0 step.
    statuses: steps without evidence.
    proposals_failed: ids of scene rows whose correspondence call failed; in
      the released variant they count as M = 0.
    digests: SHA-256 of the files.
    origins: by case id; empty where the evidence does not say.
  """

  name: str
  cmg: tuple[evidence.CmgEvidence, ...]
  ssp: tuple[evidence.SspEvidence, ...]
  ssp_ids: frozenset[str]
  masked: frozenset[str]
  statuses: tuple[StepStatus, ...]
  proposals_failed: frozenset[str]
  digests: Mapping[str, str]
  origins: Mapping[str, CaseOrigin] = dataclasses.field(default_factory=dict)

  @property
  def cmg_ids(self) -> frozenset[str]:
    """Ids of all camera rows."""
    return frozenset(row.key.record_id for row in self.cmg)


def read_folder(folder: pathlib.Path) -> list[SystemEvidence]:
  """Evidence of every system in a folder, sorted by name.

  Raises:
    InputError: if there is none, or a row is malformed or repeated.
  """
  found = _locate(folder)
  if not found:
    raise InputError(
      folder,
      "folder",
      found="no evidence",
      expected="<system>/cmg.jsonl and <system>/ssp.jsonl",
    )
  with many_objects():
    return [read_system(name, paths) for name, paths in sorted(found.items())]


@contextlib.contextmanager
def many_objects() -> Iterator[None]:
  """Pauses the garbage collector while objects are made that all stay.

  It would go through the growing heap again and again and find nothing: half
  of the time of reading 40,000 rows.
  """
  enabled = gc.isenabled()
  gc.disable()
  try:
    yield
  finally:
    if enabled:
      gc.enable()


def read_system(name: str, paths: Mapping[str, pathlib.Path]) -> SystemEvidence:
  """Evidence of one system from its files by axis (and `status`)."""
  for axis in AXES:
    if axis not in paths:
      raise InputError(
        next(iter(paths.values())).parent,
        f"evidence of {name}",
        found=f"no {axis} file",
        expected="both cmg and ssp",
      )
  cmg_path, ssp_path = paths["cmg"], paths["ssp"]
  cmg = [
    evidence.cmg_row(row, source=str(cmg_path), field=field)
    for field, row in common_manifest.read_jsonl(cmg_path)
  ]
  _refuse_repeats(cmg_path, [row.key.record_id for row in cmg])
  rows, counts, failed = [], [], set()
  for field, row in common_manifest.read_jsonl(ssp_path):
    if evidence.TRUSTED_TOPOLOGY in row:
      # Spec 16.6: the released aggregator would trust it unseen.
      raise InputError(
        ssp_path,
        f"{field}, {evidence.TRUSTED_TOPOLOGY}",
        found="a score inside the evidence",
        expected="counts, boxes and depths only",
        hint="Remove the field.",
      )
    key = evidence.parse_id(row.get("id"), source=str(ssp_path), field=field)
    count = evidence.target_count(row, source=str(ssp_path), field=field)
    counts.append((key, count))
    if row.get("proposal_failed"):
      failed.add(key.record_id)
    if count:
      rows.append(evidence.ssp_row(row, source=str(ssp_path), field=field))
  ids = [key.record_id for key, _ in counts]
  _refuse_repeats(ssp_path, ids)
  masked, _ = evidence.masked_cases(counts)
  return SystemEvidence(
    name,
    tuple(cmg),
    tuple(rows),
    frozenset(ids),
    frozenset(masked),
    tuple(_statuses(paths.get("status"))),
    frozenset(failed),
    {key: formats.sha256_of_file(path) for key, path in sorted(paths.items())},
    {origin.case_id: origin for origin in _origins(paths.get("origin"))},
  )


def common_mask(systems: Sequence[SystemEvidence]) -> frozenset[str]:
  """The GT-only mask, which must be the same for every system.

  A step that a system lacks cannot unmask a case: masks are compared over the
  cases that both systems cover.

  Raises:
    InputError: naming two systems and a case that they mask differently.
  """
  mask = frozenset[str]().union(*(system.masked for system in systems))
  for system in systems:
    covered = {
      record_id.rpartition("__step")[0] for record_id in system.ssp_ids
    }
    complete = not any(s.axis == "ssp" for s in system.statuses)
    different = (mask & covered) - system.masked
    if different and complete:
      other = next(s for s in systems if different & s.masked)
      raise InputError(
        system.name,
        "SSP mask",
        found=f"{sorted(different)[0]} counts, but not for {other.name}",
        expected="one mask: it depends on the target images alone",
        hint="Measure both systems with the same detections.",
      )
  return mask


def write_system(
  folder: pathlib.Path,
  cmg: Iterable[Mapping[str, Any]],
  ssp: Iterable[Mapping[str, Any]],
  statuses: Iterable[StepStatus],
  origins: Iterable[CaseOrigin] = (),
) -> None:
  """Writes the evidence files of one system."""
  formats.write_rows(folder / "cmg.jsonl", cmg)
  formats.write_rows(folder / "ssp.jsonl", ssp)
  formats.write_rows(
    folder / "status.jsonl",
    (
      {
        "id": s.record_id,
        "axis": s.axis,
        "status": s.status,
        "reason": s.reason,
      }
      for s in statuses
    ),
  )
  formats.write_rows(
    folder / "origin.jsonl", (dataclasses.asdict(o) for o in origins)
  )


def _locate(folder: pathlib.Path) -> dict[str, dict[str, pathlib.Path]]:
  if not folder.is_dir():
    raise InputError(
      folder, "folder", found="no folder", expected="a folder of evidence"
    )
  found: dict[str, dict[str, pathlib.Path]] = {}
  for path in sorted(folder.rglob("*.jsonl")):
    for kind in (*AXES, "status", "origin"):
      if path.name == f"{kind}.jsonl" and path.parent != folder:
        name = "/".join(path.parent.relative_to(folder).parts)
      elif path.parent == folder and path.stem.endswith(f"_{kind}"):
        name = path.stem.removesuffix(f"_{kind}").removeprefix("records_")
      else:
        continue
      found.setdefault(name, {})[kind] = path
  return found


def _statuses(path: pathlib.Path | None) -> list[StepStatus]:
  if path is None:
    return []
  found = []
  for field, row in common_manifest.read_jsonl(path):
    key = evidence.parse_id(row.get("id"), source=str(path), field=field)
    status, axis = row.get("status"), row.get("axis")
    if status not in (DEGENERATE, MISSING, FAILED) or axis not in AXES:
      raise InputError(
        path,
        field,
        found=f"status {status!r}, axis {axis!r}",
        expected="degenerate, missing or failed; cmg or ssp",
      )
    reason = str(row.get("reason") or "no reason given")
    found.append(StepStatus(key.record_id, axis, status, reason))
  return found


def _origins(path: pathlib.Path | None) -> list[CaseOrigin]:
  if path is None:
    return []
  found = []
  for field, row in common_manifest.read_jsonl(path):
    case_id, told = row.get("case_id"), row.get("provenance")
    if not isinstance(case_id, str) or not isinstance(told, Mapping):
      raise InputError(
        path,
        field,
        found=f"case_id {case_id!r}, provenance {type(told).__name__}",
        expected="a text and an object",
      )
    comparable = row.get("comparable_to_published") is True
    found.append(CaseOrigin(case_id, told, comparable))
  return found


def _refuse_repeats(path: pathlib.Path, ids: Sequence[str]) -> None:
  seen: set[str] = set()
  for number, record_id in enumerate(ids, start=1):
    if record_id in seen:
      raise InputError(
        path,
        f"row {number}, id",
        found=f"{record_id} again",
        expected="each step once",
      )
    seen.add(record_id)
