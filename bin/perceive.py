# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Runs the perception stage alone, here or where the models are installed.

    python -m bin.perceive --protocol=pdi --clips=FOLDER --output=FOLDER
    python -m bin.evaluate --protocol=pdi --observations=FOLDER/observations

    python -m bin.perceive --protocol=orbia ... --output=FOLDER
    python -m bin.evaluate --protocol=orbia ... --cache=FOLDER/cache

Takes the inputs and backends of `bin.evaluate`. PDI leaves `.npz` observations;
every protocol keeps its backends' results in --cache. With one --cache and
--geometry_pass=video, PDI and Orbia share the geometry of a video. Exit code 3:
finished, but something of some case could not be had.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence

from absl import flags

from bin import (
  cli,
  evaluate,
  settings,
  settings_egogeneval,
  settings_orbia,
  settings_pdi,
)

for _module in (settings, settings_pdi, settings_orbia, settings_egogeneval):
  flags.adopt_module_key_flags(_module)


def main(argv: Sequence[str]) -> int:
  """Runs perception; returns the exit code."""
  del argv
  flags_module, run_module = evaluate.RUNS[settings.protocol()]
  config = importlib.import_module(flags_module).config()
  options = settings.run_options()
  if settings.protocol() == "pdi":
    from protocols.pdi import perceive

    outcome = perceive.perceive(config, options)
  else:
    from protocols import perceive as stage

    run = importlib.import_module(run_module)
    outcome = stage.keep(run.evaluate, config, options)
  print(outcome.text)
  return cli.OK if outcome.complete else cli.TOTALS_REFUSED


if __name__ == "__main__":
  cli.run(main)
