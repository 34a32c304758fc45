# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Per-clip reports: a text for people and the record as JSON beside it.

The text keeps the fields of the released report (specification section 11.2)
and adds what it hides: status, coverage, sentinels and traps.
"""

from __future__ import annotations

import hashlib
import json
import pathlib
import re
from typing import Any

from protocols.common import outputs
from protocols.common.records import Record

_WIDE = "=" * 50
_THIN = "-" * 50
REPORT_FOLDER = "clips"


def write(record: Record, output: pathlib.Path) -> pathlib.Path:
  """Writes `clips/<system>/<case>_pdi_report.{txt,json}`.

  Args:
    record: a PDI record.
    output: run folder.

  Returns:
    Path of the text report.
  """
  folder = output / REPORT_FOLDER / safe_name(record.system)
  stem = safe_name(record.case_id) + "_pdi_report"
  outputs.write_json(folder / f"{stem}.json", json.loads(record.to_json()))
  outputs.write_atomic(folder / f"{stem}.txt", text(record))
  return folder / f"{stem}.txt"


def safe_name(name: str) -> str:
  """A file name for any system or case name; different names stay different.

  Letters, digits, dot, dash and underscore are kept. When anything else had
  to be replaced, or the name is long, a short hash of the whole is appended.
  """
  clean = re.sub(r"[^A-Za-z0-9._-]", "_", name).lstrip(".")[:80]
  if clean and clean == name:
    return clean
  return f"{clean}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def text(record: Record) -> str:
  """The report as text, ending with a line break."""
  details, values = record.details, record.values
  lines = [_WIDE, "        worldgauge: PDI report", _WIDE]
  lines += _rows(
    ("System", record.system),
    ("Sequence", record.case_id),
    ("Video", record.provenance.get("source", "")),
    ("Prompt", details.get("object_query") or "(none)"),
    ("Variant", record.variant),
    (
      "Status",
      record.status + (f" ({record.reason})" if record.reason else ""),
    ),
  )
  lines += [
    _THIN,
    f"FINAL PDI SCORE: {_number(values.get('pdi'))}",
    f"OVERALL GRADE:   {details.get('grade') or 'none'}",
    _THIN,
    "INDICATOR BREAKDOWN (lower is better):",
    f" - Scale Component (1/Z Law):      {_number(values.get('scale'))}",
    f" - Trajectory Component (H-X):     {_number(values.get('traj'))}",
    f" - Rigidity Component (Stability): {_number(values.get('rigid'))}",
    f" - Rigidity Strategy:              {details.get('strategy', 'none')}",
    f" - 2D Rigidity (not in the PDI):   {_number(values.get('rigid_2d'))}",
    f" - VP Component (weight 0):        {_number(values.get('vp'))}",
  ]
  peaks = details.get("peaks") or []
  if peaks:
    lines += [_THIN, "WHERE THE PDI COMES FROM:"]
  lines += [
    f" - {peak['component']}: {peak['share']:.4f} of the PDI, largest residual"
    f" at frame {peak['worst_frame']}"
    for peak in peaks
  ]
  lines += [
    _THIN,
    "RECONSTRUCTION AUDIT:",
  ]
  lines += [f" - {line}" for line in _audit_lines(details.get("audit") or {})]
  lines += [_THIN, "WHAT THE VALUES REST ON:"]
  lines += [
    f" - {name.replace('_', ' ')}: {_number(value)}"
    for name, value in sorted(record.coverage.items())
  ]
  lines += [
    f" - {role} backend: {backend}"
    for role, backend in sorted(_backends(record).items())
  ]
  comparable = "yes" if record.comparable_to_published else "no"
  lines.append(f" - comparable to published tables: {comparable}")
  if record.notes:
    lines += [_THIN, "READ THIS FIRST:"]
    lines += [f" - {note}" for note in record.notes]
  lines.append(_WIDE)
  return "\n".join(lines) + "\n"


def _rows(*pairs: tuple[str, Any]) -> list[str]:
  return [f"{name + ':':<10} {value}" for name, value in pairs if value]


def _audit_lines(audit: dict[str, Any]) -> list[str]:
  lines = []
  for name, value in sorted(audit.items()):
    shown = _number(value) if isinstance(value, float) else value
    lines.append(f"{name.replace('_', ' ')}: {shown}")
  return lines or ["not run"]


def _backends(record: Record) -> dict[str, str]:
  found = record.provenance.get("backends") or {}
  return {role: str(entry.get("backend")) for role, entry in found.items()}


def _number(value: float | None) -> str:
  if value is None:
    return "missing"
  return str(value) if isinstance(value, int) else f"{value:.4f}"
