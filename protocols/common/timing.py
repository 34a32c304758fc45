# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Timings for `bin.benchmark`: ours against a stated baseline, in one run."""

from __future__ import annotations

import dataclasses
import resource
import sys
import time
from collections.abc import Callable

import jax


@dataclasses.dataclass(frozen=True)
class Row:
  """One line of a benchmark table.

  Attributes:
    name: what was measured.
    cold_s: first call, compilation included, seconds; None if not measured.
    warm_s: best of the later calls, seconds.
    baseline_s: the same work by the baseline, seconds; None without one.
    baseline: what the baseline is.
    note: anything a reader must know (sizes, what bounds it).
  """

  name: str
  cold_s: float | None
  warm_s: float
  baseline_s: float | None = None
  baseline: str = ""
  note: str = ""

  @property
  def speedup(self) -> float | None:
    """Baseline time over warm time; None without a baseline."""
    if self.baseline_s is None or self.warm_s <= 0.0:
      return None
    return self.baseline_s / self.warm_s


def measure(
  function: Callable[[], object], *, repeats: int
) -> tuple[float, float]:
  """Times a call that returns JAX or NumPy arrays.

  Args:
    function: the work; its result is waited for.
    repeats: number of warm calls, at least 1.

  Returns:
    (cold seconds, best warm seconds).
  """
  times = []
  for _ in range(repeats + 1):
    start = time.perf_counter()
    jax.block_until_ready(function())
    times.append(time.perf_counter() - start)
  return times[0], min(times[1:])


def peak_memory_bytes() -> int:
  """Largest resident size of this process so far, in bytes."""
  peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
  return peak if sys.platform == "darwin" else peak * 1024
