# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""EgoGenEval's evidence rows beside a run, for its figures and case pages."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Mapping
from typing import Any

from perception.errors import InputError
from protocols.report.sources import Run

Key = tuple[str, str]


@dataclasses.dataclass(frozen=True)
class Steps:
  """Evidence rows as they stand in the files, in order of the steps.

  Attributes:
    cmg: camera rows by (system, case).
    ssp: scene rows by (system, case).
    reason: why there are none; empty otherwise.
  """

  cmg: Mapping[Key, list[Mapping[str, Any]]]
  ssp: Mapping[Key, list[Mapping[str, Any]]]
  reason: str = ""


def read(run: Run) -> Steps:
  """Reads the evidence that a run was scored from.

  Args:
    run: a run of any protocol.

  Returns:
    The rows; empty with a reason when the evidence cannot be reached.
  """
  if run.protocol != "egogeneval":
    return Steps({}, {}, "another protocol")
  from protocols.egogeneval import evidence_files

  stated = run.settings.get("settings", {}).get("evidence")
  folder = pathlib.Path(stated) if stated else run.folder / "evidence"
  try:
    systems = evidence_files.read_folder(folder)
  except (InputError, OSError) as error:
    return Steps({}, {}, f"the evidence cannot be read: {error}")
  steps: Any
  found: tuple[dict[Key, list[Any]], dict[Key, list[Any]]] = ({}, {})
  for system in systems:
    for steps, table in zip((system.cmg, system.ssp), found, strict=True):
      for step in sorted(steps, key=lambda s: (s.key.case_id, s.key.step)):
        table.setdefault((system.name, step.key.case_id), []).append(step.row)
  return Steps(*found)
