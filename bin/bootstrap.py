# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Runs a statistical study over case scores.

    python -m bin.bootstrap --study=egogeneval_ranking --records=RUN \
        --output=OUT
    python -m bin.bootstrap --study=my_study.json --table=scores.jsonl \
        --replicates=1000000 --checkpoint --output=OUT

Input is a long table, run folders of bin.evaluate, or EgoGenEval evidence.
With --checkpoint, the same command resumes after any kind of end. Several
hosts run the same command with --coordinator, --num_processes, --process_id.
"""

from __future__ import annotations

import pathlib
from collections.abc import Sequence

from absl import flags

from bin import cli
from protocols.statistics import engine, hosts, run
from protocols.statistics.sampling import Runtime

_STUDY = flags.DEFINE_string(
  "study", None, "Study: a JSON file, or one of ours.", required=True
)
_TABLE = flags.DEFINE_multi_string("table", [], "Long table, JSONL or Parquet.")
_RECORDS = flags.DEFINE_multi_string("records", [], "Run folder.")
_EVIDENCE = flags.DEFINE_multi_string("evidence", [], "Folder of evidence.")
_VARIANT = flags.DEFINE_enum(
  "variant", "paper", ["paper", "released"], "Variant, for --evidence."
)
_RATINGS = flags.DEFINE_string("ratings", None, "Human ratings, JSONL.")
_OUTPUT = flags.DEFINE_string("output", None, "Folder.", required=True)
_REPLICATES = flags.DEFINE_integer(
  "replicates", None, "Instead of the study's number.", lower_bound=1
)
_SEED = flags.DEFINE_integer(
  "seed", None, "Instead of the study's seed.", lower_bound=0
)
_DTYPE = flags.DEFINE_enum(
  "dtype", None, ["float32", "float64"], "Instead of the study's precision."
)
_INTERSECT = flags.DEFINE_bool(
  "intersect", None, "Use the common cases when systems differ."
)
_BATCH = flags.DEFINE_integer(
  "batch",
  engine.DEFAULT_BATCH,
  "Replicates per dispatch and device.",
  lower_bound=1,
)
_CHECKPOINT = flags.DEFINE_bool(
  "checkpoint", False, "Keep finished replicates in OUTPUT/checkpoint."
)
_CHECKPOINT_EVERY = flags.DEFINE_integer(
  "checkpoint_every", 100_000, "Replicates between.", lower_bound=1
)
_COORDINATOR = flags.DEFINE_string(
  "coordinator", None, "HOST:PORT of the first process, for several hosts."
)
_NUM_PROCESSES = flags.DEFINE_integer(
  "num_processes", 1, "Number of processes.", lower_bound=1
)
_PROCESS_ID = flags.DEFINE_integer(
  "process_id", 0, "Number of this process.", lower_bound=0
)


def main(argv: Sequence[str]) -> int:
  """Runs the study and prints its table."""
  del argv
  with hosts.joined(
    _COORDINATOR.value,
    num_processes=_NUM_PROCESSES.value,
    process_id=_PROCESS_ID.value,
  ):
    print(run.run(_config()))
  return cli.OK


def _config() -> run.RunConfig:
  output = pathlib.Path(_OUTPUT.value)
  overrides = {
    "replicates": _REPLICATES.value,
    "seed": _SEED.value,
    "dtype": _DTYPE.value,
    "intersect": _INTERSECT.value,
  }
  return run.RunConfig(
    study=_STUDY.value,
    output=output,
    tables=tuple(map(pathlib.Path, _TABLE.value)),
    records=tuple(map(pathlib.Path, _RECORDS.value)),
    evidence=tuple(map(pathlib.Path, _EVIDENCE.value)),
    variant=_VARIANT.value,
    ratings=pathlib.Path(_RATINGS.value) if _RATINGS.value else None,
    overrides={k: v for k, v in overrides.items() if v is not None},
    runtime=Runtime(
      batch=_BATCH.value,
      checkpoint=output / "checkpoint" if _CHECKPOINT.value else None,
      checkpoint_every=_CHECKPOINT_EVERY.value,
      show_progress=True,
    ),
  )


if __name__ == "__main__":
  cli.run(main)
