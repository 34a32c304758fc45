# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Finds the protocol of a golden folder and runs all of its checks."""

from __future__ import annotations

import collections
import dataclasses
import importlib
import pathlib
from collections.abc import Sequence
from typing import Any

import jax
from absl import logging

from perception.errors import InputError
from protocols.common import outputs
from protocols.common.conformance import Check

PROTOCOLS = ("pdi", "orbia", "egogeneval", "statistics")


@dataclasses.dataclass(frozen=True)
class Report:
  """All checks of one folder.

  Attributes:
    protocol: the protocol that recognised it.
    checks: every comparison made.
  """

  protocol: str
  checks: tuple[Check, ...]

  @property
  def failed(self) -> list[Check]:
    """Checks that failed."""
    return [check for check in self.checks if not check.passed]

  def text(self, *, max_shown: int) -> str:
    """A line for each failure, a table, and `N passed, M failed`."""
    lines = [
      f"FAILED {c.name} [{c.variant}, {c.precision}]: {c.detail}"
      for c in self.failed[:max_shown]
    ]
    hidden = len(self.failed) - max_shown
    if hidden > 0:
      lines.append(f"... and {hidden} more")
    counts: collections.Counter[tuple[str, str, bool]] = collections.Counter(
      (c.variant, c.precision, c.passed) for c in self.checks
    )
    for variant, precision in sorted({key[:2] for key in counts}):
      passed = counts[variant, precision, True]
      failed = counts[variant, precision, False]
      lines.append(
        f"{self.protocol} {variant:>8} {precision}: {passed} passed,"
        f" {failed} failed"
      )
    bad = len(self.failed)
    lines.append(f"{len(self.checks) - bad} passed, {bad} failed")
    return "\n".join(lines)

  def write_failures(self, path: pathlib.Path) -> None:
    """Writes the failed checks as JSON."""
    rows = [dataclasses.asdict(check) for check in self.failed]
    outputs.write_json(path, {"protocol": self.protocol, "failed": rows})


def run(folder: pathlib.Path, *, precisions: Sequence[str]) -> Report:
  """Checks every vector of a folder.

  Args:
    folder: golden folder with an `index.json`.
    precisions: `float64`, `float32` or both.

  Returns:
    The report. A folder without a single check is an error, not a pass.

  Raises:
    InputError: if the index is unreadable or no protocol recognises it.
  """
  index = outputs.read_json(folder / "index.json")
  name, module = _recognise(folder, index)
  found: list[Check] = []
  for precision in precisions:
    logging.info("%s: checking in %s", name, precision)
    with jax.enable_x64(precision == "float64"):
      found += module.checks(folder, index, precision=precision)
  if not found:
    raise InputError(
      folder, "index.json", found="no vector", expected="at least one"
    )
  return Report(name, tuple(found))


def _recognise(folder: pathlib.Path, index: dict[str, Any]) -> tuple[str, Any]:
  for name in PROTOCOLS:
    module = importlib.import_module(f"protocols.{name}.conformance")
    if module.recognises(index):
      return name, module
  raise InputError(
    folder / "index.json",
    "form",
    found=f"keys {sorted(index)[:8]}",
    expected=f"golden vectors of {', '.join(PROTOCOLS)}",
    hint="Give a folder such as golden/pdi.",
  )
