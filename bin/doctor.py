# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Says what is installed, which backends can run, and whether inputs read.

    python -m bin.doctor [--check=PATH ...]

The exit code is 1 when a problem was found.
"""

from __future__ import annotations

import pathlib
from collections.abc import Sequence

from absl import flags

from bin import cli

_CHECK = flags.DEFINE_multi_string(
  "check", [], "Clip, folder, RGB-D folder or .npz to look at."
)


def main(argv: Sequence[str]) -> int:
  """Prints the findings; returns 1 if one is a problem."""
  del argv
  from protocols import doctor

  found = doctor.run([pathlib.Path(path) for path in _CHECK.value])
  for finding in found:
    print(f"{finding.level:<8} {finding.topic:<28} {finding.text}")
  problems = sum(finding.level == doctor.PROBLEM for finding in found)
  print(f"{problems} problems")
  return 1 if problems else cli.OK


if __name__ == "__main__":
  cli.run(main)
