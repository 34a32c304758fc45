# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Runs the perception stage alone and leaves ready observations.

    python -m bin.perceive --protocol=pdi --clips=FOLDER --output=FOLDER
    python -m bin.evaluate --protocol=pdi --observations=FOLDER/observations

Takes the inputs and backends of `bin.evaluate --protocol=pdi`. Exit code 3:
finished, but a role of some case stayed empty.
"""

from __future__ import annotations

from collections.abc import Sequence

from absl import flags

from bin import cli, settings, settings_pdi

for _module in (settings, settings_pdi):
  flags.adopt_module_key_flags(_module)


def main(argv: Sequence[str]) -> int:
  """Runs perception; returns the exit code."""
  del argv
  config, options = settings_pdi.config(), settings.run_options()
  from protocols.pdi import perceive

  outcome = perceive.perceive(config, options)
  print(outcome.text)
  return cli.OK if outcome.complete else cli.TOTALS_REFUSED


if __name__ == "__main__":
  cli.run(main)
