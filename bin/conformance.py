# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Runs every golden vector of a folder against our code.

    python -m bin.conformance --golden=FOLDER [--failures_json=FILE]

The folder has an `index.json`; the protocol that recognises it checks every
case for both variants, in float64 within the vectors' tolerances and in
float32 within the protocol's stated ones. Prints each failure and ends with
`N passed, M failed`; the exit code is 1 when something failed.
"""

from __future__ import annotations

import pathlib
from collections.abc import Sequence

from absl import flags

from bin import cli

_GOLDEN = flags.DEFINE_string(
  "golden", None, "Folder of golden vectors with an index.json.", required=True
)
_PRECISIONS = flags.DEFINE_multi_enum(
  "precision",
  ["float64", "float32"],
  ["float64", "float32"],
  "Precisions to run our code in.",
)
_FAILURES_JSON = flags.DEFINE_string(
  "failures_json", None, "Write the failed checks to this JSON file."
)
_MAX_SHOWN = flags.DEFINE_integer(
  "max_shown", 50, "Failures to print.", lower_bound=0
)


def main(argv: Sequence[str]) -> int:
  """Runs the checks; returns 1 if one failed."""
  del argv
  from protocols import conformance

  report = conformance.run(
    pathlib.Path(_GOLDEN.value), precisions=tuple(_PRECISIONS.value)
  )
  print(report.text(max_shown=_MAX_SHOWN.value))
  if _FAILURES_JSON.value:
    report.write_failures(pathlib.Path(_FAILURES_JSON.value))
  return 1 if report.failed else cli.OK


if __name__ == "__main__":
  cli.run(main)
