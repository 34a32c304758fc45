# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Lists of cases: JSONL files, clip folders, and what identifies an input."""

from __future__ import annotations

import hashlib
import itertools
import json
import pathlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from perception.errors import InputError

VIDEO_SUFFIXES = (".mp4", ".webm", ".mkv", ".mov", ".avi", ".m4v")


class Case(Protocol):
  """What the common machinery needs to know of a protocol's case."""

  @property
  def system(self) -> str:
    """Name of the generator."""

  @property
  def case_id(self) -> str:
    """Unique within the system."""

  @property
  def groups(self) -> Mapping[str, str]:
    """Category, template, source and the like."""

  @property
  def inputs(self) -> Sequence[pathlib.Path]:
    """Files that the result depends on."""


CaseT = TypeVar("CaseT", bound=Case)


def read_jsonl(path: pathlib.Path) -> Iterator[tuple[str, dict[str, Any]]]:
  """Reads objects from a JSONL file; blank lines are skipped.

  Args:
    path: the file.

  Yields:
    (`line N`, object).

  Raises:
    InputError: if the file is unreadable or a line is not a JSON object.
  """
  try:
    text = path.read_text(encoding="utf-8")
  except (OSError, UnicodeDecodeError) as error:
    raise InputError(
      path,
      "file",
      found=error,
      expected="a readable JSONL file in UTF-8",
      hint="Check the path and its permissions.",
    ) from error
  for number, line in enumerate(text.splitlines(), start=1):
    if not line.strip():
      continue
    field = f"line {number}"
    try:
      row = json.loads(line)
    except ValueError as error:
      raise InputError(
        path,
        field,
        found=f"{line[:60]!r} ({error})",
        expected="one JSON object",
      ) from error
    if not isinstance(row, dict):
      raise InputError(
        path, field, found=type(row).__name__, expected="one JSON object"
      )
    yield field, row


def videos_below(folder: pathlib.Path) -> list[pathlib.Path]:
  """Video files below a folder, sorted; hidden ones are left out.

  Raises:
    InputError: if the folder is absent, unreadable or holds no video.
  """
  try:
    listed = sorted(folder.iterdir())
    found = [
      path
      for path in sorted(folder.rglob("*"))
      if path.suffix.lower() in VIDEO_SUFFIXES
      and not path.name.startswith(".")
      and path.is_file()
    ]
  except OSError as error:
    raise InputError(
      folder,
      "folder",
      found=error.strerror or error,
      expected="a readable folder of clips",
      hint="Check the path and its permissions.",
    ) from error
  if not found:
    raise InputError(
      folder,
      "folder",
      found=f"{len(listed)} entries, none of them a video",
      expected=f"files ending in {', '.join(VIDEO_SUFFIXES)}",
      hint="One subfolder for each model; see README.md.",
    )
  return found


def unique(cases: Iterable[CaseT], *, source: str) -> list[CaseT]:
  """Cases sorted by (system, case id).

  Raises:
    InputError: if two cases have the same key, or there is none.
  """
  ordered = sorted(cases, key=lambda case: (case.system, case.case_id))
  for before, after in itertools.pairwise(ordered):
    if (before.system, before.case_id) == (after.system, after.case_id):
      raise InputError(
        source,
        "case_id",
        found=f"two cases {after.case_id!r} of system {after.system!r}",
        expected="each case once",
        hint="Rename or remove one of them.",
      )
  if not ordered:
    raise InputError(
      source,
      "cases",
      found="no case",
      expected="at least one",
      hint="Check the input flags.",
    )
  return ordered


def signature(case: Case) -> str:
  """Hash that changes when a file of the case changes.

  Taken from names, sizes and modification times, so that a resumed run over
  10,000 clips need not read them. Content hashes stand in the records.
  """
  digest = hashlib.sha256()
  for path in case.inputs:
    digest.update(str(path.name).encode())
    for part in _parts(path):
      stat = part.stat()
      digest.update(f"{part.name}:{stat.st_size}:{stat.st_mtime_ns};".encode())
  return digest.hexdigest()[:16]


def _parts(path: pathlib.Path) -> list[pathlib.Path]:
  if path.is_dir():
    return [part for part in sorted(path.rglob("*")) if part.is_file()]
  return [path] if path.exists() else []
