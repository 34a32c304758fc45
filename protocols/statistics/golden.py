# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Golden files of the statistics: nested content with nothing left unread.

`Golden` flattens a JSON object or an `.npz` file to leaves by path
(`case_bootstrap/cmg/mean`). A leaf is a number, a list of numbers or an
array; explanations are texts and count as read. `rest` yields a failing check
for every leaf that nobody took.
"""

from __future__ import annotations

import json
import pathlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from perception.errors import InputError
from protocols.common import conformance
from protocols.common.conformance import Check

VARIANT = "-"


class Golden:
  """One golden file."""

  def __init__(
    self, name: str, leaves: Mapping[str, Any], *, precision: str
  ) -> None:
    """Args:
    name: file name without suffix, the first part of check names.
    leaves: content by path.
    precision: `float64` or `float32`.
    """
    self.name = name
    self.precision = precision
    self.tolerance = 1e-12 if precision == "float64" else 1e-6
    self._leaves = leaves
    self._taken: set[str] = set()

  def take(self, path: str) -> Any:
    """A leaf, marked as read; None where the file has none."""
    self._taken.add(path)
    return self._leaves.get(path)

  def array(self, path: str) -> np.ndarray:
    """A numeric leaf as an array, marked as read.

    Raises:
      InputError: if the file has no such leaf.
    """
    value = self.take(path)
    if value is None:
      raise InputError(
        self.name, path, found="nothing", expected="a golden value"
      )
    return np.asarray(value)

  def below(self, path: str) -> list[str]:
    """Names of the children of a path, in order of appearance."""
    prefix = f"{path}/" if path else ""
    names = [
      leaf[len(prefix) :].split("/")[0]
      for leaf in self._leaves
      if leaf.startswith(prefix)
    ]
    return list(dict.fromkeys(names))

  def check(
    self, path: str, found: Any, *, tolerance: float | None = None
  ) -> Check:
    """Compares our value with the leaf at a path."""
    return conformance.compare(
      f"{self.name}/{path}",
      found,
      self.take(path),
      variant=VARIANT,
      precision=self.precision,
      tolerance=self.tolerance if tolerance is None else tolerance,
    )

  def same(self, path: str, found: Any) -> Check:
    """Demands equality with the leaf at a path."""
    expected = self.take(path)
    if isinstance(expected, np.ndarray):
      expected = expected.tolist()
    return conformance.equal(
      f"{self.name}/{path}",
      found,
      expected,
      variant=VARIANT,
      precision=self.precision,
    )

  def within_errors(
    self, path: str, found: Any, standard_error: Any, *, limit: float
  ) -> Check:
    """Compares a Monte-Carlo result: deviation in standard errors."""
    expected = self.array(path)
    deviation = (np.asarray(found) - expected) / standard_error
    return conformance.compare(
      f"{self.name}/{path} in standard errors",
      deviation,
      np.zeros(expected.shape),
      variant=VARIANT,
      precision=self.precision,
      tolerance=limit,
    )

  def rest(self) -> Iterator[Check]:
    """A failing check for every leaf that was not taken."""
    for path, value in self._leaves.items():
      if path not in self._taken and not isinstance(value, str):
        yield conformance.unknown(
          f"{self.name}/{path}", precision=self.precision
        )


def read_json(path: pathlib.Path, *, precision: str) -> Golden:
  """Reads a golden JSON object."""
  leaves: dict[str, Any] = {}
  _flatten(json.loads(path.read_text(encoding="utf-8")), "", leaves)
  return Golden(path.stem, leaves, precision=precision)


def read_npz(path: pathlib.Path, *, precision: str) -> Golden:
  """Reads a golden `.npz` file."""
  with np.load(path, allow_pickle=False) as content:
    leaves = {name: content[name] for name in content.files}
  return Golden(path.stem, leaves, precision=precision)


def _flatten(value: Any, path: str, leaves: dict[str, Any]) -> None:
  if isinstance(value, Mapping) and set(value) == {"__float__"}:
    leaves[path] = float(value["__float__"])
  elif isinstance(value, Mapping):
    for key, entry in value.items():
      _flatten(entry, f"{path}/{key}" if path else key, leaves)
  elif isinstance(value, list) and any(isinstance(v, Mapping) for v in value):
    for number, entry in enumerate(value):
      _flatten(entry, f"{path}/{number}", leaves)
  elif value != []:
    leaves[path] = value
