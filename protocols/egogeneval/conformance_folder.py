# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Reading a folder of golden vectors and remembering what was read."""

from __future__ import annotations

import json
import math
import pathlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from protocols.common import conformance as common

VARIANTS = ("released", "paper")
BOTH = "-"


class Folder:
  """Golden files with a record of the entries that checks consumed."""

  def __init__(self, path: pathlib.Path) -> None:
    """Args:
    path: the folder.
    """
    self.path = path
    self._arrays: dict[str, dict[str, NDArray[Any]]] = {}
    self._read: dict[str, set[str]] = {}

  def json(self, name: str) -> Any:
    """A JSON file; `{"__float__": "nan"}` becomes a float."""
    self._read.setdefault(name, set())
    text = (self.path / name).read_text(encoding="utf-8")
    return json.loads(text, object_hook=_decode)

  def rows(self, name: str) -> list[dict[str, Any]]:
    """A JSONL file."""
    self._read.setdefault(name, set())
    lines = (self.path / name).read_text(encoding="utf-8").splitlines()
    return [
      json.loads(line, object_hook=_decode) for line in lines if line.strip()
    ]

  def exists(self, name: str) -> bool:
    """Whether the folder has a file."""
    return (self.path / name).exists()

  def array(self, name: str, key: str) -> NDArray[Any]:
    """An array of an npz file; marks it as read."""
    self._read.setdefault(name, set()).add(key)
    return self._open(name)[key]

  def has_array(self, name: str, key: str) -> bool:
    """Whether an npz file has an array."""
    return key in self._open(name)

  def unread(self, name: str, precision: str) -> Iterator[common.Check]:
    """Failing checks for a file, or arrays of it, that nothing read."""
    if name not in self._read:
      yield common.unknown(name, precision=precision)
    elif name.endswith(".npz"):
      for key in sorted(set(self._open(name)) - self._read[name]):
        yield common.unknown(f"{name}/{key}", precision=precision)

  def _open(self, name: str) -> dict[str, NDArray[Any]]:
    if name not in self._arrays:
      with np.load(self.path / name) as content:
        self._arrays[name] = {key: content[key] for key in content.files}
    return self._arrays[name]


def dtype_of(precision: str) -> type[np.floating]:
  """NumPy type of a precision name."""
  return np.float64 if precision == "float64" else np.float32


def unknown_fields(
  where: str,
  case: Mapping[str, Any],
  known: Collection[str],
  precision: str,
) -> Iterator[common.Check]:
  """Failing checks for fields of a case that no check reads."""
  for name in sorted(set(case) - set(known)):
    yield common.unknown(f"{where}/{name}", precision=precision)


def worst(
  name: str,
  pairs: Sequence[tuple[str, Any, Any, float]],
  *,
  variant: str,
  precision: str,
) -> common.Check:
  """One check over several named values.

  Args:
    name: case.
    pairs: (field, found, expected, tolerance); numbers within the tolerance
      (absolute, plus the same relative to the expected value), everything
      else equal.
    variant: variant that produced the values.
    precision: dtype that it ran in.

  Returns:
    The check of the field that is furthest outside, or of the largest error.
  """
  largest, bound, failures = 0.0, 0.0, []
  for field, found, expected, tolerance in pairs:
    error = _error(found, expected)
    limit = tolerance * (1.0 + (abs(expected) if _is_number(expected) else 0.0))
    if not error <= limit:
      failures.append(f"{field}: found {found!r}, expected {expected!r}")
    if error >= largest and math.isfinite(error):
      largest, bound = error, limit
  return common.Check(
    name,
    variant,
    precision,
    not failures,
    largest,
    bound,
    "; ".join(failures)[:300],
  )


def _error(found: Any, expected: Any) -> float:
  if _is_number(found) and _is_number(expected):
    if math.isnan(found) or math.isnan(expected):
      return 0.0 if math.isnan(found) and math.isnan(expected) else math.inf
    if math.isinf(found) or math.isinf(expected):
      return 0.0 if found == expected else math.inf
    return abs(float(found) - float(expected))
  return 0.0 if found == expected else math.inf


def _is_number(value: Any) -> bool:
  return isinstance(value, int | float | np.number) and not isinstance(
    value, bool
  )


def _decode(content: dict[str, Any]) -> Any:
  if set(content) == {"__float__"}:
    return float(content["__float__"])
  return content
