# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Times our metric stages against a stated baseline in the same run.

python -m bin.benchmark --suite=pdi [--output=FILE.json]
"""

from __future__ import annotations

import pathlib
from collections.abc import Sequence

from absl import flags

from bin import cli
from protocols.benchmark import SUITES

_SUITE = flags.DEFINE_multi_enum(
  "suite", ["pdi"], list(SUITES), "What to measure; may be given repeatedly."
)
_QUICK = flags.DEFINE_bool(
  "quick", False, "Small sizes, to see that the suite runs."
)
_OUTPUT = flags.DEFINE_string(
  "output", None, "Also write the figures to this JSON file."
)


def main(argv: Sequence[str]) -> int:
  """Runs the suites and prints their tables."""
  del argv
  from protocols import benchmark

  result = benchmark.run(_SUITE.value, quick=_QUICK.value)
  print(result.text())
  if _OUTPUT.value:
    result.write(pathlib.Path(_OUTPUT.value))
  return cli.OK


if __name__ == "__main__":
  cli.run(main)
