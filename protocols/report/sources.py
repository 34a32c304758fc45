# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Folders that a report is made from: evaluation runs and studies."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from perception.errors import InputError
from protocols.common import outputs
from protocols.common.records import numbers
from protocols.report import entries
from protocols.report.entries import Entry

PROTOCOLS = ("pdi", "egogeneval", "orbia")


@dataclasses.dataclass(frozen=True)
class Study:
  """Output folder of `bin.bootstrap`.

  Attributes:
    folder: the folder.
    kind: `intervals`, `ranking`, `paired`, ...
    result: content of `study.json`.
  """

  folder: pathlib.Path
  kind: str
  result: Mapping[str, Any]

  @property
  def rows(self) -> list[dict[str, Any]]:
    """Rows of the result table; `nan`, `inf` as floats."""
    return [_decoded(row) for row in self.result.get("rows", [])]

  @property
  def systems(self) -> frozenset[str]:
    """Systems that its rows name; empty for contrasts and others."""
    return frozenset(row["system"] for row in self.rows if "system" in row)


@dataclasses.dataclass(frozen=True)
class Run:
  """Output folder of `bin.evaluate`.

  Attributes:
    folder: the folder.
    protocol: `pdi`, `egogeneval` or `orbia`.
    variant: `paper` or `released`.
    scores: content of `scores.json`; empty when no totals were written.
    settings: content of `run.json`.
    entries: index of the records, sorted.
    doses: rows of the dose-response table; empty without one.
    diagnostics: content of `diagnostics.json`; empty without one.
    studies: studies over the systems of this run.
    data: folders and files that the report was told to look into.
  """

  folder: pathlib.Path
  protocol: str
  variant: str
  scores: Mapping[str, Any]
  settings: Mapping[str, Any]
  entries: Sequence[Entry]
  doses: Sequence[Mapping[str, Any]]
  diagnostics: Mapping[str, Any]
  studies: tuple[Study, ...] = ()
  data: tuple[pathlib.Path, ...] = ()

  @property
  def systems(self) -> list[str]:
    """Systems with totals or records, sorted."""
    named = set(self.scores.get("systems", {}))
    return sorted(named | set(entries.systems_of(self.entries)))

  def study(self, kind: str) -> Study | None:
    """The first study of a kind; None without one."""
    return next((s for s in self.studies if s.kind == kind), None)


def load(
  folders: Sequence[pathlib.Path], data: tuple[pathlib.Path, ...] = ()
) -> tuple[list[Run], list[Study]]:
  """Reads every input folder.

  Args:
    folders: output folders of `bin.evaluate` and `bin.bootstrap`.
    data: what runs were made from, for pictures: data sets, caches, files.

  Returns:
    (runs with the studies that belong to them, all studies).

  Raises:
    InputError: for a folder that is neither, or an unreadable file.
  """
  runs: list[Run] = []
  studies: list[Study] = []
  for folder in folders:
    if (folder / "study.json").exists():
      content = outputs.read_json(folder / "study.json")
      studies.append(Study(folder, _kind(content, folder), content))
    else:
      runs.append(dataclasses.replace(_read_run(folder), data=data))
  return [_with_studies(run, studies) for run in runs], studies


def _read_run(folder: pathlib.Path) -> Run:
  scores = _optional(folder / "scores.json")
  settings = _optional(folder / "run.json")
  found = entries.read_index(folder)
  if not scores and not found:
    raise InputError(
      folder,
      "content",
      found="no scores.json, no records, no study.json",
      expected="an output folder of bin.evaluate or bin.bootstrap",
      hint="Check the path.",
    )
  # The file of Orbia scores names the version of its layout.
  named = scores.get("protocol") or settings.get("protocol")
  if named is None and found:
    named = entries.read_record(found[0]).protocol
  protocol = str(named).split("-")[0]
  if protocol not in PROTOCOLS:
    raise InputError(
      folder,
      "protocol",
      found=repr(named),
      expected=f"one of {', '.join(PROTOCOLS)}",
    )
  return Run(
    folder=folder,
    protocol=protocol,
    variant=str(scores.get("variant") or settings.get("variant") or "unknown"),
    scores=scores,
    settings=settings,
    entries=found,
    doses=[
      _decoded(row) for row in _optional(folder / "doses.json").get("rows", [])
    ],
    diagnostics=_optional(folder / "diagnostics.json"),
  )


def _with_studies(run: Run, studies: Sequence[Study]) -> Run:
  """The run with the studies whose systems are all its own."""
  known = set(run.systems)
  own = tuple(s for s in studies if s.systems and s.systems <= known)
  return dataclasses.replace(run, studies=own)


def _kind(content: Mapping[str, Any], folder: pathlib.Path) -> str:
  try:
    return str(content["study"]["study"])
  except (KeyError, TypeError) as error:
    raise InputError(
      folder / "study.json",
      "study",
      found=content.get("study"),
      expected="the declaration of a study, as bin.bootstrap writes it",
    ) from error


def _optional(path: pathlib.Path) -> dict[str, Any]:
  return outputs.read_json(path) if path.exists() else {}


def _decoded(row: Mapping[str, Any]) -> dict[str, Any]:
  """A row with non-finite numbers decoded and other texts kept."""
  special = {"nan", "inf", "-inf"}
  texts = {k: v for k, v in row.items() if isinstance(v, str) and v in special}
  return {**row, **numbers(texts)}
