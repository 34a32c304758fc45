# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Mines an EgoGenEval benchmark, or its training set, from posed RGB-D.

    python -m bin.mine --scenes=FOLDER[,FOLDER] --layout=7scenes --output=OUT

Writes `manifest.jsonl` (or `trajectories.jsonl` and `pairs.jsonl`),
`eval_frames.jsonl` with reduced depth, and `mining.json` with every gate's
counts.
"""

from __future__ import annotations

import pathlib
from collections.abc import Sequence

from absl import flags

from bin import cli

_SCENES = flags.DEFINE_list(
  "scenes", None, "Folders of posed RGB-D scenes.", required=True
)
_LAYOUT = flags.DEFINE_enum(
  "layout",
  "7scenes",
  ["7scenes", "tum", "scannet", "scannetpp", "hypersim", "matterport3d"],
  "Layout of the folders.",
)
_SCENE_IDS = flags.DEFINE_list(
  "scene_ids", [], "Ids in the manifest, one per folder; default: its name."
)
_DATASET = flags.DEFINE_string(
  "dataset", "", "Dataset name in the manifest; default: the layout's."
)
_OUTPUT = flags.DEFINE_string("output", None, "Folder to write.", required=True)
_STRIDE = flags.DEFINE_integer(
  "stride", 5, "Frames per grid step; gaps are counted in it.", lower_bound=1
)
_CALIBRATE = flags.DEFINE_bool(
  "calibrate",
  False,
  "Estimate colour focal length, depth-to-colour offset and poses of each"
  " recording first, and register depth to colour. For hand-held RGB-D whose"
  " colour and depth are not registered, such as 7-Scenes.",
)
_MIN_TRANS = flags.DEFINE_float(
  "min_trans", 0.15, "Smallest translation, metres.", lower_bound=0.01
)
_MAX_CASES_PER_SCENE = flags.DEFINE_integer(
  "max_cases_per_scene", 7, "Cases per scene.", lower_bound=1
)
_ATOMIC = flags.DEFINE_integer(
  "atomic_cases", 200, "Cases per atomic subtype.", lower_bound=0
)
_CHAIN = flags.DEFINE_integer(
  "chain_cases", 120, "Cases per chain subtype.", lower_bound=0
)
_CYCLE = flags.DEFINE_integer(
  "cycle_cases", 120, "Cases per cycle subtype.", lower_bound=0
)
_REQUIRE_LAYERS = flags.DEFINE_bool(
  "require_layers", True, "Translations need near, mid and far depth."
)
_BLOCKLIST = flags.DEFINE_string(
  "blocklist", None, "JSONL with dataset and scene_id that may not be used."
)
_TRAINING = flags.DEFINE_bool(
  "training", False, "Write training trajectories and pairs instead."
)
_TRAIN_TRAJECTORIES = flags.DEFINE_integer(
  "train_trajectories", 0, "Trajectories per subtype; 0 = all.", lower_bound=0
)
_SEED = flags.DEFINE_integer("seed", 0, "Seed of the training draw.")


def main(argv: Sequence[str]) -> int:
  """Mines and writes; returns the exit code."""
  del argv
  from protocols.egogeneval import assembly, benchmark_files, gates, mining

  config = benchmark_files.MineConfig(
    scenes=tuple(pathlib.Path(path) for path in _SCENES.value),
    layout=_LAYOUT.value,
    output=pathlib.Path(_OUTPUT.value),
    scene_ids=tuple(_SCENE_IDS.value),
    dataset=_DATASET.value,
    mining=mining.MiningConfig(
      gates=gates.Gates(min_trans=_MIN_TRANS.value),
      stride=_STRIDE.value,
      require_layers=_REQUIRE_LAYERS.value,
    ),
    quotas=assembly.Quotas(
      atomic=_ATOMIC.value,
      chain=_CHAIN.value,
      cycle=_CYCLE.value,
      max_per_scene=_MAX_CASES_PER_SCENE.value,
    ),
    blocklist=pathlib.Path(_BLOCKLIST.value) if _BLOCKLIST.value else None,
    training=_TRAINING.value,
    train_trajectories=_TRAIN_TRAJECTORIES.value,
    seed=_SEED.value,
    calibrate=_CALIBRATE.value,
  )
  print(benchmark_files.mine(config))
  return cli.OK


if __name__ == "__main__":
  cli.run(main)
