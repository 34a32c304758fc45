# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""One case of a folder of golden vectors, and the book-keeping of its arrays.

`index.json` documents every array: role, tolerance class, and whether it is
what the released code returns (`official`) or what the paper asks for. A check
consumes an array by naming it; what nobody consumed is reported at the end.
"""

from __future__ import annotations

import dataclasses
import fnmatch
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from protocols.common import conformance as common
from protocols.common.conformance import Check
from protocols.orbia.constants import PAPER, RELEASED, Constants

# Tolerance classes that a float32 kernel may replace by the class `f32`.
_FLOAT_CLASSES = ("f64", "f64_loose", "cos32", "angle")
# In float32 a rounded pixel can flip; so many counts may differ (index.json).
_FLIP_SHARE, _FLIP_EXTRA = 0.005, 2


@dataclasses.dataclass
class Case:
  """Arrays of one case.

  Attributes:
    case_id: its name.
    params: its parameters.
    docs: documentation of its arrays by name.
    tolerances: tolerance classes of the folder.
    precision: `float64` or `float32`.
    arrays: its arrays by name.
  """

  case_id: str
  params: Mapping[str, Any]
  docs: Mapping[str, Mapping[str, Any]]
  tolerances: Mapping[str, Mapping[str, Any]]
  precision: str
  arrays: Mapping[str, NDArray[Any]]
  seen: set[str] = dataclasses.field(default_factory=set)

  @property
  def dtype(self) -> type[np.floating[Any]]:
    """The dtype that kernels run in."""
    return np.float64 if self.precision == "float64" else np.float32

  def has(self, *names: str) -> bool:
    """Whether all of these arrays are there; `sizes_*` is any such name."""
    return all(fnmatch.filter(self.arrays, name) for name in names)

  def read(self, name: str) -> NDArray[Any]:
    """An array as stored; counts as consumed."""
    self.seen.add(name)
    return self.arrays[name]

  def real(self, name: str) -> NDArray[Any]:
    """A floating input in the precision of this run."""
    return self.read(name).astype(self.dtype)

  def text(self, name: str) -> Any:
    """A stored text or array of texts as Python objects."""
    return self.read(name).tolist()

  def constants(self, name: str) -> Constants:
    """The variant that an output belongs to."""
    paper = self.docs.get(name, {}).get("behaviour") == "paper"
    return PAPER if paper else RELEASED

  def outputs(self) -> list[str]:
    """Names of the outputs, in stored order."""
    return [
      name
      for name in self.arrays
      if self.docs.get(name, {}).get("role") == "output"
    ]

  def check(
    self,
    name: str,
    found: ArrayLike | None,
    *,
    host: bool = False,
    bound: float | None = None,
  ) -> Iterator[Check]:
    """Compares a result with an output; skips an output that is absent.

    Args:
      name: array.
      found: our value; None means missing, which is stored as NaN.
      host: the value comes from float64 code whatever the precision is.
      bound: absolute tolerance instead of the one documented, only where a
        float32 pixel flip is accounted for by the caller.
    """
    if name not in self.arrays:
      return
    expected = self.read(name)
    label = f"{self.case_id}/{name}"
    variant = self._label(name)
    if expected.dtype.kind in "US":
      yield common.equal(
        label,
        np.asarray(found).tolist(),
        expected.tolist(),
        variant=variant,
        precision=self.precision,
      )
      return
    value = np.nan if found is None else found
    exact = self.precision == "float64" or host
    kind = self.docs.get(name, {}).get("tol", "exact")
    if not exact and kind in _FLOAT_CLASSES:
      kind = "f32"
    limits = self.tolerances[kind]
    absolute, relative = float(limits["atol"]), float(limits["rtol"])
    if bound is not None and not exact:
      absolute = max(absolute, bound)
    yield common.compare(
      label,
      value,
      expected,
      variant=variant,
      precision=self.precision,
      tolerance=absolute,
      relative=relative,
    )

  def check_counts(self, name: str, found: ArrayLike) -> Iterator[Check]:
    """Compares correspondence counts: exact, or bounded flips in float32.

    The reported error is the largest number of flipped counts of one item.
    """
    if name not in self.arrays:
      return
    if self.precision == "float64":
      yield from self.check(name, found)
      return
    expected = self.read(name)
    allowed = np.floor(_FLIP_SHARE * np.abs(expected) + _FLIP_EXTRA)
    flips = np.abs(np.asarray(found, np.int64) - expected)
    worst = int(np.max(flips, initial=0))
    yield Check(
      f"{self.case_id}/{name}",
      self._label(name),
      self.precision,
      bool(np.all(flips <= allowed)),
      float(worst),
      float(np.max(allowed, initial=0)),
      f"{int(flips.sum())} counts flipped, at most {worst} in one item",
    )

  def leftovers(self) -> Iterator[Check]:
    """A failed check for every array that nothing consumed."""
    for name in self.arrays.keys() - self.seen:
      yield common.unknown(f"{self.case_id}/{name}", precision=self.precision)

  def _label(self, name: str) -> str:
    doc = self.docs.get(name, {})
    if doc.get("behaviour") == "paper":
      return "paper"
    twin = any(n.startswith(name) and n != name for n in self._paper_names())
    return "released" if twin else "-"

  def _paper_names(self) -> list[str]:
    return [n for n, d in self.docs.items() if d.get("behaviour") == "paper"]
