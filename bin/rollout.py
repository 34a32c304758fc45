# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Drives a generator over an EgoGenEval manifest.

    python -m bin.rollout --manifest=M --eval_frames=F --reference=oracle \
        --output=OUT
    python -m bin.rollout ... --entry_point=my_model:generate
    python -m bin.rollout ... --command='my_model --prompt {prompt}
        --images {images} --output {output}'

Writes the outputs and `predictions.jsonl`. The same command resumes.
"""

from __future__ import annotations

import pathlib
from collections.abc import Sequence

from absl import flags

from bin import cli

_MANIFEST = flags.DEFINE_string(
  "manifest", None, "EgoGenEval manifest (JSONL).", required=True
)
_EVAL_FRAMES = flags.DEFINE_string(
  "eval_frames", None, "Evaluation frame rows (JSONL).", required=True
)
_OUTPUT = flags.DEFINE_string(
  "output", None, "Folder of the predictions.", required=True
)
_MODEL_ID = flags.DEFINE_string(
  "model_id", "", "Name of the system; default: the reference's."
)
_REFERENCE = flags.DEFINE_enum(
  "reference",
  None,
  [
    "oracle",
    "source_copy",
    "nearest_input_copy",
    "depth_warp",
    "underexecuting_warp",
  ],
  "Built-in reference.",
)
_ENTRY_POINT = flags.DEFINE_string(
  "entry_point", "", "module:function of one request."
)
_COMMAND = flags.DEFINE_string(
  "command",
  "",
  "Command line per step, with {images}, {prompt}, {request}, {output}.",
)
_MODEL_TYPE = flags.DEFINE_enum(
  "model_type",
  "image",
  ["image", "video", "world-model", "pose-conditioned"],
  "Type of an entry point's or a command's model.",
)


def main(argv: Sequence[str]) -> int:
  """Runs the rollout; returns the exit code."""
  del argv
  from protocols.egogeneval import rollout

  config = rollout.RolloutConfig(
    manifest=pathlib.Path(_MANIFEST.value),
    eval_frames=pathlib.Path(_EVAL_FRAMES.value),
    output=pathlib.Path(_OUTPUT.value),
    model_id=_MODEL_ID.value or _REFERENCE.value or "model",
    reference=_REFERENCE.value or "",
    entry_point=_ENTRY_POINT.value,
    command=_COMMAND.value,
    model_type=_MODEL_TYPE.value,
  )
  print(rollout.run(config))
  return cli.OK


if __name__ == "__main__":
  cli.run(main)
