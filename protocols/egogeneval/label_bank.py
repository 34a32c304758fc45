# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""The frozen label bank: object labels of every target frame.

Source: EgoGenEval specification 4.3, 12.2.
"""

from __future__ import annotations

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from perception.errors import InputError
from protocols.egogeneval import formats, manifest

LabelBank = Mapping[str, Sequence[Mapping[str, Any]]]


def read(
  path: pathlib.Path, cases: Sequence[manifest.ManifestCase]
) -> LabelBank:
  """Labels of the given cases.

  Args:
    path: JSONL file.
    cases: cases that will be scored.

  Returns:
    `sample_id` -> one annotation per step.

  Raises:
    InputError: if a case is absent, the number of annotations differs from
      its targets, or both label lists of a step are empty.
  """
  found: dict[str, tuple[str, list[dict[str, Any]]]] = {}
  for field, row in formats.read_rows(path, formats.LABELS):
    found[row["sample_id"]] = (field, row["target_labels"])
  bank = {}
  for case in cases:
    if case.case_id not in found:
      raise InputError(
        path,
        "sample_id",
        found=f"no row for {case.case_id}",
        expected="labels of every selected case",
        hint="Add the row or select fewer cases.",
      )
    field, steps = found[case.case_id]
    if len(steps) != len(case.steps):
      raise InputError(
        path,
        f"{field}, target_labels",
        found=f"{len(steps)} entries",
        expected=f"{len(case.steps)}, one per target of {case.case_id}",
      )
    for number, entry in enumerate(steps, start=1):
      if not entry.get("detector_prompt_labels") and not entry.get(
        "object_labels"
      ):
        raise InputError(
          path,
          f"{field}, target_labels[{number - 1}]",
          found="no detector_prompt_labels and no object_labels",
          expected="at least one label",
        )
    bank[case.case_id] = steps
  return bank
