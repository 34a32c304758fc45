# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Reading golden PDI vectors, and the tolerances of our two precisions.

Everything is read through `Entries`, which knows what nobody has read: an
array or field without a check becomes a failed check.
"""

from __future__ import annotations

import dataclasses
import json
import pathlib
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any

import jax
import numpy as np

from perception.errors import InputError
from protocols.common.conformance import Check, compare, equal, unknown
from protocols.pdi.lifting import Dtype

# Fields that say what a vector is, and hold nothing to compare.
DESCRIPTION = ("name", "file", "group", "description", "spec", "flags")

# float32 against float64, largest errors allowed. Residuals are ratios of
# order 0.1 made from coordinates known to 6e-8 of their size. Heights and
# depths enter as logarithms up to 20 (1e-6 each); second differences of a path
# cancel up to four digits, and a series entry passes through a tanh and a
# quotient of two such differences; the scale jump divides by the object's
# depth range, a few per cent of its depth.
FLOAT32 = {
  "scale": 1e-5,
  "scale_series": 2e-5,
  "traj": 2e-4,
  "traj_series": 5e-3,
  "rigid": 5e-6,
  "rigid_series": 2e-5,
  "pdi": 1e-4,
  "ground": 2e-5,
  "scale_jump": 1e-3,
  "paper": 2e-4,
  "position": 1e-5,
  "relative": 5e-4,
}
FLOAT64 = {"position": 1e-6, "relative": 1e-6}


class Entries:
  """A mapping that remembers which of its entries were read."""

  def __init__(self, source: Mapping[str, Any], name: str) -> None:
    """Wraps `source`; `name` names it in failed checks."""
    self._source = source
    self._unread = dict.fromkeys(source)
    self.name = name

  def __contains__(self, key: str) -> bool:
    """Whether there is such an entry, read or not."""
    return key in self._source

  def take(self, key: str, default: Any = None) -> Any:
    """The entry, from now on counted as read."""
    self._unread.pop(key, None)
    return self._source.get(key, default)

  def unread(self) -> list[str]:
    """Entries that nobody has read."""
    return list(self._unread)

  def leftovers(self, *, precision: str) -> Iterator[Check]:
    """A failed check for every unread entry."""
    for key in self._unread:
      yield unknown(f"{self.name}/{key}", precision=precision)


@dataclasses.dataclass(frozen=True)
class Comparer:
  """Compares under one variant and precision.

  Attributes:
    variant: `released`, `paper` or `-`.
    precision: `float64` or `float32`.
    tolerances: the vector's own tolerances by kind.
  """

  variant: str
  precision: str
  tolerances: Mapping[str, float]

  @property
  def dtype(self) -> Dtype:
    """NumPy type of the precision."""
    return np.float64 if self.precision == "float64" else np.float32

  def x64(self) -> AbstractContextManager[Any]:
    """Enables JAX's 64-bit types for float64, disables them for float32."""
    return jax.enable_x64(self.precision == "float64")

  def tolerance(self, kind: str) -> float:
    """Absolute tolerance of a kind of value in this precision."""
    own = float(self.tolerances.get(kind, FLOAT64.get(kind, 0.0)))
    if self.precision == "float64":
      return own
    return max(own, FLOAT32.get(kind, 0.0))

  def number(
    self,
    name: str,
    found: Any,
    expected: Any,
    kind: str,
    *,
    relative: bool = False,
    at_least: float = 0.0,
  ) -> Check:
    """Compares numbers or arrays with the tolerance of `kind`.

    Args:
      name: vector and field.
      found: ours; None: missing.
      expected: golden; None: missing.
      kind: key of the tolerances.
      relative: also allow the precision's relative tolerance.
      at_least: lower bound of the absolute tolerance.
    """
    return compare(
      name,
      found,
      plain(expected),
      variant=self.variant,
      precision=self.precision,
      tolerance=max(self.tolerance(kind), at_least),
      relative=self.tolerance("relative") if relative else 0.0,
    )

  def same(self, name: str, found: Any, expected: Any) -> Check:
    """Compares what must be equal: flags, counts, letters, index lists."""
    return equal(
      name,
      _listed(found),
      _listed(expected),
      variant=self.variant,
      precision=self.precision,
    )


def plain(value: Any) -> Any:
  """JSON value with the texts `nan`, `inf`, `-inf` as numbers."""
  if isinstance(value, str) and value in ("nan", "inf", "-inf"):
    return float(value)
  if isinstance(value, list):
    return [plain(item) for item in value]
  return value


def numbers(value: Any) -> np.ndarray:
  """JSON list of numbers as a float64 array."""
  return np.asarray(plain(value), np.float64)


def read(path: pathlib.Path) -> Entries:
  """Opens an `.npz` or `.json` vector.

  Raises:
    InputError: the file is missing or of another kind.
  """
  if not path.is_file():
    raise InputError(
      path, "vector", found="no file", expected="the file that index.json names"
    )
  if path.suffix == ".npz":
    with np.load(path) as archive:
      return Entries(dict(archive), path.stem)
  if path.suffix == ".json":
    return Entries(json.loads(path.read_text("utf-8")), path.stem)
  raise InputError(path, "vector", found=path.suffix, expected=".npz or .json")


def _listed(value: Any) -> Any:
  return value.tolist() if isinstance(value, np.ndarray | np.generic) else value
