# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""What every protocol's conformance run yields: one `Check` per comparison.

A folder of golden vectors has an `index.json`. The protocol whose
`recognises(index)` is true walks it and compares our code with each recorded
value; a value, array or case that nobody consumes is a failed check, so that
a silent skip cannot pass for agreement.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from numpy.typing import ArrayLike


@dataclasses.dataclass(frozen=True)
class Check:
  """One comparison of our code with a golden value.

  Attributes:
    name: vector and field, for example `pristine_a/official/traj`.
    variant: `released`, `paper` or `-` where the two cannot differ.
    precision: `float64` or `float32`, the dtype that our code ran in.
    passed: whether the error is within the tolerance.
    error: largest absolute error; NaN where the comparison is not numeric.
    tolerance: the tolerance applied.
    detail: what differs, in one line; empty when passed.
  """

  name: str
  variant: str
  precision: str
  passed: bool
  error: float
  tolerance: float
  detail: str = ""


def compare(
  name: str,
  found: ArrayLike | None,
  expected: ArrayLike | None,
  *,
  variant: str,
  precision: str,
  tolerance: float,
  relative: float = 0.0,
) -> Check:
  """Compares numbers or arrays; NaN and infinities must agree in place.

  Args:
    name: vector and field.
    found: our value; None means missing.
    expected: golden value; None means missing.
    variant: variant of the protocol that produced `found`.
    precision: dtype that our code ran in.
    tolerance: absolute tolerance.
    relative: additional tolerance times |expected|.

  Returns:
    The check. Missing equals missing only; shapes must be equal.
  """

  def check(passed: bool, error: float, detail: str) -> Check:
    text = "" if passed else detail
    return Check(name, variant, precision, passed, error, tolerance, text)

  if found is None or expected is None:
    same = found is None and expected is None
    return check(
      same, math.nan, f"found {_short(found)}, expected {_short(expected)}"
    )
  ours = np.asarray(found, np.float64)
  golden = np.asarray(expected, np.float64)
  if ours.shape != golden.shape:
    return check(
      False, math.nan, f"shape {ours.shape}, expected {golden.shape}"
    )
  finite = np.isfinite(golden)
  same_special = np.array_equal(ours[~finite], golden[~finite], equal_nan=True)
  difference = np.abs(ours[finite] - golden[finite])
  error = float(np.max(difference, initial=0.0))
  bound = tolerance + relative * np.abs(golden[finite])
  passed = bool(same_special and np.all(difference <= bound))
  return check(
    passed,
    error,
    f"error {error:.3g} above {tolerance:.3g}"
    if same_special
    else "non-finite values differ",
  )


def equal(
  name: str,
  found: object,
  expected: object,
  *,
  variant: str,
  precision: str,
) -> Check:
  """Compares what must be the same: texts, flags, counts, index lists."""
  passed = found == expected
  detail = (
    "" if passed else f"found {_short(found)}, expected {_short(expected)}"
  )
  return Check(name, variant, precision, passed, math.nan, 0.0, detail)


def unknown(name: str, *, precision: str) -> Check:
  """A failed check for a golden array or case that our code does not know."""
  return Check(
    name,
    "-",
    precision,
    False,
    math.nan,
    0.0,
    "no check of ours reads this entry",
  )


def _short(value: object) -> str:
  text = " ".join(str(value).split())
  return text if len(text) <= 80 else text[:77] + "..."
