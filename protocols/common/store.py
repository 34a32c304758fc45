# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Records on disk: append, flush, fsync; resume after any kind of end.

A run folder holds `records.jsonl` (or `records-I-of-N.jsonl` per shard). A
line that was cut by a kill is dropped when the log is opened again. A later
record of the same case replaces the earlier one.
"""

from __future__ import annotations

import fcntl
import os
import pathlib
from collections.abc import Iterable
from types import TracebackType
from typing import IO

from absl import logging

from perception.errors import InputError
from protocols.common.records import Record

SCORED_CASES = "cases.jsonl"
_LOGS = "records*.jsonl"


def log_name(shard_index: int, num_shards: int) -> str:
  """File name of a shard's records; `records.jsonl` for a single shard."""
  if num_shards == 1:
    return "records.jsonl"
  return f"records-{shard_index:05d}-of-{num_shards:05d}.jsonl"


class RecordLog:
  """The records of one shard, open for appending by one process.

  Use as a context manager. Opening repairs a cut last line and takes a lock
  that ends with the process.
  """

  def __init__(self, path: pathlib.Path) -> None:
    """Args:
    path: the JSONL file; its folder is made if absent.
    """
    self._path = path
    self._file: IO[bytes] | None = None

  def __enter__(self) -> RecordLog:
    try:
      self._path.parent.mkdir(parents=True, exist_ok=True)
      self._file = open(self._path, "ab")
    except OSError as error:
      raise _write_error(self._path, error) from error
    try:
      fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
      self._file.close()
      raise InputError(
        self._path,
        "lock",
        found="another process is writing to it",
        expected="one writer for each output folder",
        hint="Wait for it, or choose another --output.",
      ) from error
    dropped = _drop_cut_line(self._path)
    if dropped:
      logging.warning(
        "%s: dropped %d bytes of a line that was cut", self._path, dropped
      )
    return self

  def __exit__(
    self,
    kind: type[BaseException] | None,
    error: BaseException | None,
    trace: TracebackType | None,
  ) -> None:
    if self._file is not None:
      self._file.close()
      self._file = None

  def append(self, record: Record) -> None:
    """Writes one line and waits until the disk has it.

    Args:
      record: the finished case.

    Raises:
      InputError: if the disk refuses (full, read-only).
    """
    if self._file is None:
      raise RuntimeError("append() outside the with block")
    try:
      self._file.write(record.to_json().encode() + b"\n")
      self._file.flush()
      os.fsync(self._file.fileno())
    except OSError as error:
      raise _write_error(self._path, error) from error


def scored_logs(folder: pathlib.Path) -> list[pathlib.Path]:
  """Files that hold the scored cases of a run folder.

  A protocol whose records are evidence (EgoGenEval) scores it in a second
  step and leaves `cases.jsonl`; elsewhere the records are the scores.
  """
  if (folder / SCORED_CASES).exists():
    return [folder / SCORED_CASES]
  return sorted(folder.glob(_LOGS))


def read_scored(folder: pathlib.Path) -> dict[tuple[str, str], Record]:
  """Scored cases of a run folder, like `read_records`."""
  return _read(scored_logs(folder))


def read_records(folder: pathlib.Path) -> dict[tuple[str, str], Record]:
  """All records of a run folder, over all shards.

  Args:
    folder: output folder; may be absent or empty.

  Returns:
    Records by (system, case id), sorted by key; the last of equal keys.

  Raises:
    InputError: if a line other than a cut last one is not a record.
  """
  return _read(sorted(folder.glob(_LOGS)))


def _read(
  paths: Iterable[pathlib.Path],
) -> dict[tuple[str, str], Record]:
  found: dict[tuple[str, str], Record] = {}
  for path in paths:
    for record in _records_of(path):
      found[record.key] = record
  return dict(sorted(found.items()))


def _records_of(path: pathlib.Path) -> Iterable[Record]:
  try:
    content = path.read_bytes()
  except OSError as error:
    raise InputError(
      path,
      "file",
      found=error,
      expected="a readable file of records",
      hint="Fix its permissions.",
    ) from error
  lines = content.split(b"\n")
  for number, line in enumerate(lines[:-1], start=1):
    text = line.decode(errors="replace")
    yield Record.from_json(text, source=str(path), field=f"line {number}")


def _drop_cut_line(path: pathlib.Path) -> int:
  """Cuts the file after its last line break; returns the bytes removed."""
  content = path.read_bytes()
  end = content.rfind(b"\n") + 1
  if end < len(content):
    os.truncate(path, end)
  return len(content) - end


def _write_error(path: pathlib.Path, error: OSError) -> InputError:
  return InputError(
    path,
    "write",
    found=error.strerror or error,
    expected="a writable folder with free space",
    hint="Free space or choose another --output; the run resumes.",
  )
