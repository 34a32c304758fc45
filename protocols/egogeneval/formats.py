# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Published file formats: JSON Schema checks, rows, and their bytes.

Files of many rows are JSON Lines in UTF-8; a row is one object with sorted
keys and no spaces, so that rebuilding a row reproduces its bytes.
Source: EgoGenEval specification 12.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.resources
import json
import pathlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import jsonschema

from perception.errors import InputError
from protocols.common import manifest as common_manifest
from protocols.common import outputs

MANIFEST = "manifest"
LABELS = "labels"
PREDICTION = "prediction"
RESULT = "result"
EVALUATION_FRAME = "evaluation_frame"


def schema(name: str) -> dict[str, Any]:
  """The JSON Schema of a format."""
  text = (
    importlib.resources.files("protocols.egogeneval")
    .joinpath("schemas", f"{name}.schema.json")
    .read_text(encoding="utf-8")
  )
  content: dict[str, Any] = json.loads(text)
  return content


def check(
  row: Mapping[str, Any], name: str, *, source: str | pathlib.Path, field: str
) -> None:
  """Checks one row.

  Args:
    row: the row.
    name: format.
    source: file, for the message.
    field: place in the file, for example `line 3`.

  Raises:
    InputError: naming line and field, what is there and what should be.
  """
  error = jsonschema.exceptions.best_match(_validator(name).iter_errors(row))
  if error is None:
    return
  path = "".join(
    f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.path
  ).lstrip(".")
  raise InputError(
    source,
    f"{field}, {path}" if path else field,
    found=error.message,
    expected=f"a row of the {name} format",
    hint=f"See protocols/egogeneval/schemas/{name}.schema.json.",
  )


def read_rows(
  path: pathlib.Path, name: str
) -> Iterator[tuple[str, dict[str, Any]]]:
  """Checked rows of a JSONL file as (`line N`, row).

  Raises:
    InputError: if the file or a row is not of the format.
  """
  for field, row in common_manifest.read_jsonl(path):
    check(row, name, source=path, field=field)
    yield field, row


def dump(row: Mapping[str, Any]) -> str:
  """One row as the published bytes, without a line break."""
  return json.dumps(row, sort_keys=True, separators=(",", ":"), allow_nan=False)


def write_rows(path: pathlib.Path, rows: Iterable[Mapping[str, Any]]) -> None:
  """Writes a JSONL file atomically."""
  path.parent.mkdir(parents=True, exist_ok=True)
  outputs.write_atomic(path, "".join(dump(row) + "\n" for row in rows))


def sha256_of_file(path: pathlib.Path) -> str:
  """Lower-case hex SHA-256 of a file's bytes."""
  try:
    with path.open("rb") as stream:
      return hashlib.file_digest(stream, "sha256").hexdigest()
  except OSError as error:
    raise InputError(
      path, "file", found=error.strerror or error, expected="a readable file"
    ) from error


def sha256_of_text(text: str) -> str:
  """Lower-case hex SHA-256 of a text in UTF-8."""
  return hashlib.sha256(text.encode("utf-8")).hexdigest()


@functools.cache
def _validator(name: str) -> jsonschema.Draft202012Validator:
  content = schema(name)
  jsonschema.Draft202012Validator.check_schema(content)
  return jsonschema.Draft202012Validator(content)
