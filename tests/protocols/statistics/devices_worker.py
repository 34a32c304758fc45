# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""A process of its own that draws the small study and writes the replicates.

Arguments: output file, coordinator (or -), number of processes, process id,
checkpoint folder (or -), seconds to wait after each batch.
"""

from __future__ import annotations

import pathlib
import sys
import time

import jax
import numpy as np

from protocols.statistics import checkpoint, engine, hosts, plan
from protocols.statistics.config import Resampling
from tests.protocols.statistics import small_study

REPLICATES = 5000
SEED = 3


def small_plan() -> plan.Plan:
  """Scene clusters of the small study."""
  rule = Resampling("scene", "source", "shared")
  return plan.build(small_study.case_table(), rule, keep_protocols=False)


def main(arguments: list[str]) -> None:
  output, coordinator, processes, number, folder, pause = arguments
  with hosts.joined(
    coordinator, num_processes=int(processes), process_id=int(number)
  ):
    planned = small_plan()
    store = None
    resumed = folder != "-" and pathlib.Path(folder).exists()
    if folder != "-":
      identity = checkpoint.fingerprint(planned, seed=SEED, dtype="float32")
      store = checkpoint.ReplicateStore(
        pathlib.Path(folder), identity=identity, every=512
      )
    steps: list[int] = []

    def advance(number: int) -> None:
      steps.append(number)
      time.sleep(float(pause))

    found = engine.run(
      planned,
      seed=SEED,
      replicates=REPLICATES,
      dtype="float32",
      batch=512,
      store=store,
      advance=advance,
    )
    np.save(f"{output}-{number}.npy", found)
    # A study that resumed did not draw what it counted first.
    kept = 0 if store is None or not resumed else steps[0]
    print("devices", len(jax.devices()), "drew", sum(steps) - kept, flush=True)


if __name__ == "__main__":
  main(sys.argv[1:])
