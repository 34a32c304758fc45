# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Benchmark suites by name, and their table."""

from __future__ import annotations

import dataclasses
import importlib
import pathlib
from collections.abc import Mapping, Sequence

from protocols.common import outputs, timing

# Suite name -> module with `run(*, quick) -> list[timing.Row]`.
SUITES: Mapping[str, str] = {
  "pdi": "protocols.pdi.benchmark",
  "orbia": "protocols.orbia.benchmark",
  "egogeneval": "protocols.egogeneval.benchmark",
  "bootstrap": "protocols.statistics.benchmark",
  "perception": "protocols.perception_benchmark",
}


@dataclasses.dataclass(frozen=True)
class Result:
  """Figures of a benchmark run.

  Attributes:
    rows: by suite, in order.
    environment: versions and devices.
  """

  rows: Mapping[str, Sequence[timing.Row]]
  environment: Mapping[str, object]

  def text(self) -> str:
    """A readable table with devices, times, speed-ups and notes."""
    lines = [f"devices: {self.environment['devices']}"]
    for suite, rows in self.rows.items():
      lines.append(f"suite {suite}")
      for row in rows:
        lines.append(f"  {row.name}")
        lines.append(
          f"    cold {_seconds(row.cold_s)}, warm {_seconds(row.warm_s)}"
        )
        if row.baseline_s is not None:
          lines.append(
            f"    baseline {_seconds(row.baseline_s)} ({row.baseline}):"
            f" {row.speedup or 0.0:.1f} times faster"
          )
        if row.note:
          lines.append(f"    {row.note}")
    peak = timing.peak_memory_bytes() / 2**20
    lines.append(f"peak memory of this process: {peak:.0f} MiB")
    return "\n".join(lines)

  def write(self, path: pathlib.Path) -> None:
    """Writes the figures as JSON."""
    suites = {
      suite: [{**dataclasses.asdict(r), "speedup": r.speedup} for r in rows]
      for suite, rows in self.rows.items()
    }
    outputs.write_json(
      path,
      {
        "suites": suites,
        "environment": self.environment,
        "peak_memory_bytes": timing.peak_memory_bytes(),
      },
    )


def run(suites: Sequence[str], *, quick: bool) -> Result:
  """Runs suites one after the other.

  Args:
    suites: names out of `SUITES`.
    quick: small sizes.

  Returns:
    All rows.
  """
  rows = {}
  for suite in suites:
    module = importlib.import_module(SUITES[suite])
    rows[suite] = module.run(quick=quick)
  return Result(rows, outputs.environment())


def _seconds(value: float | None) -> str:
  if value is None:
    return "not measured"
  return f"{value * 1e3:.1f} ms" if value < 1.0 else f"{value:.2f} s"
