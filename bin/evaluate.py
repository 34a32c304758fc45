# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Scores generated clips with one of the protocols.

    python -m bin.evaluate --protocol=pdi --clips=FOLDER --output=FOLDER
    python -m bin.evaluate --flagfile=bin/flags/quickstart.flags

Exit code 0: finished; 2: bad input, said in one line; 3: finished, but the
totals of a system were refused because some of its cases have no score.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence

from absl import flags

from bin import (
  cli,
  settings,
  settings_egogeneval,
  settings_orbia,
  settings_pdi,
)

# Protocol -> (module with its flags, module that runs it).
RUNS: Mapping[str, tuple[str, str]] = {
  "pdi": (settings_pdi.__name__, "protocols.pdi.run"),
  "egogeneval": (settings_egogeneval.__name__, "protocols.egogeneval.run"),
  "orbia": (settings_orbia.__name__, "protocols.orbia.run"),
}

# `--help` shows the flags of these modules as this binary's own.
for _module in (settings, settings_pdi, settings_orbia, settings_egogeneval):
  flags.adopt_module_key_flags(_module)


def main(argv: Sequence[str]) -> int:
  """Runs the chosen protocol; returns the exit code."""
  del argv
  flags_module, run_module = RUNS[settings.protocol()]
  config = importlib.import_module(flags_module).config()
  outcome = importlib.import_module(run_module).evaluate(
    config, settings.run_options()
  )
  print(outcome.text)
  return cli.OK if outcome.complete else cli.TOTALS_REFUSED


if __name__ == "__main__":
  cli.run(main)
