# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""An index of the records of a run that fits in memory.

Records carry series of thousands of numbers. The index keeps what tables show
and where the line of each record lies, so that one record at a time is read
again when its page is written.
"""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Iterator, Mapping, Sequence

from perception.errors import InputError
from protocols.common import store
from protocols.common.records import DEGENERATE, Record

_REASON_LIMIT = 400


@dataclasses.dataclass(frozen=True, slots=True)
class Entry:
  """One record, without its details.

  Attributes:
    system, case_id, status, reason: as in the record; the reason is cut to
      400 characters. Of a record that is ok, why parts of it have no value.
    values, groups: as in the record.
    comparable: whether its backends are the published ones.
    path: file of the record.
    offset, length: bytes of its line there.
    number: 1-based line, for messages.
  """

  system: str
  case_id: str
  status: str
  reason: str
  values: Mapping[str, float | None]
  groups: Mapping[str, str]
  comparable: bool
  path: pathlib.Path
  offset: int
  length: int
  number: int

  @property
  def key(self) -> tuple[str, str]:
    """(system, case id)."""
    return (self.system, self.case_id)


def read_index(folder: pathlib.Path) -> list[Entry]:
  """Index of all records of a run folder, sorted by system and case.

  Args:
    folder: output folder of `bin.evaluate`.

  Returns:
    Entries; the last of equal keys. Empty without records.

  Raises:
    InputError: for an unreadable file or a line that is no record.
  """
  found: dict[tuple[str, str], Entry] = {}
  names: dict[str, str] = {}
  for path in store.scored_logs(folder):
    for entry in _entries(path, names):
      found[entry.key] = entry
  return [found[key] for key in sorted(found)]


def read_record(entry: Entry) -> Record:
  """Reads the whole record of an entry again.

  Raises:
    InputError: if the file changed meanwhile.
  """
  return _parse(read_line(entry), entry.path, entry.number)


def read_line(entry: Entry) -> bytes:
  """The line of an entry as it stands in its file.

  Raises:
    InputError: if the file cannot be read.
  """
  try:
    with open(entry.path, "rb") as stream:
      stream.seek(entry.offset)
      return stream.read(entry.length)
  except OSError as error:
    raise _unreadable(entry.path, error) from error


def systems_of(entries: Sequence[Entry]) -> list[str]:
  """Names of the systems, sorted."""
  return sorted({entry.system for entry in entries})


def _entries(path: pathlib.Path, names: dict[str, str]) -> Iterator[Entry]:
  try:
    with open(path, "rb") as stream:
      offset = 0
      for number, line in enumerate(stream, start=1):
        # A run that is going on, or was killed, may end in half a line.
        if line.endswith(b"\n"):
          record = _parse(line, path, number)
          yield _entry(record, names, path, offset, len(line), number)
        offset += len(line)
  except OSError as error:
    raise _unreadable(path, error) from error


def _entry(
  record: Record,
  names: dict[str, str],
  path: pathlib.Path,
  offset: int,
  length: int,
  number: int,
) -> Entry:
  def shared(text: str) -> str:
    return names.setdefault(text, text)

  # A record may be ok although a part of it has no value, and notes say why.
  parts = [n for n in record.notes if n.startswith(f"{DEGENERATE}:")]
  reason = record.reason or "; ".join(parts)
  if len(reason) > _REASON_LIMIT:
    reason = reason[: _REASON_LIMIT - 1] + "…"
  return Entry(
    system=shared(record.system),
    case_id=record.case_id,
    status=shared(record.status),
    reason=shared(reason),
    values={
      shared(k): v for k, v in record.values.items() if not isinstance(v, str)
    },
    groups={shared(k): shared(str(v)) for k, v in record.groups.items()},
    comparable=record.comparable_to_published,
    path=path,
    offset=offset,
    length=length,
    number=number,
  )


def _parse(line: bytes, path: pathlib.Path, number: int) -> Record:
  text = line.decode(errors="replace")
  return Record.from_json(text, source=str(path), field=f"line {number}")


def _unreadable(path: pathlib.Path, error: OSError) -> InputError:
  return InputError(
    path,
    "file",
    found=error.strerror or error,
    expected="a readable file of records",
    hint="Fix its permissions.",
  )
