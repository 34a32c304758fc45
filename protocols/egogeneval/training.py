# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""The training set: depth-consistent trajectories and teacher-forced pairs.

Source: EgoGenEval specification 11. The same gates and subtypes as the
benchmark, then a bidirectional depth-consistent overlap in the same range at
every step. Subsets are drawn over whole trajectories, stratified by subtype.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from protocols.egogeneval import assembly, constants, instructions, mining


def is_consistent(
  candidate: assembly.Candidate, config: mining.MiningConfig
) -> bool:
  """Whether every step's visible share lies in the range, both ways."""
  gates = config.gates
  return all(
    gates.min_overlap <= share <= gates.max_overlap
    for step in candidate.steps
    for share in (
      step.visibility.forward_visible,
      step.visibility.backward_visible,
    )
  )


def trajectories(
  mined: Sequence[tuple[mining.SceneMiner, mining.Mined]],
  per_subtype: int,
  seed: int,
) -> list[dict[str, Any]]:
  """Manifest-like rows of the training trajectories.

  The number of inputs cycles through the benchmark's K, as far as a scene has
  auxiliaries.

  Args:
    mined: scenes with what was mined from them.
    per_subtype: trajectories kept per subtype; 0 keeps all.
    seed: of the draw.

  Returns:
    Rows sorted by subtype and id.
  """
  rng = np.random.default_rng(seed)
  rows: list[dict[str, Any]] = []
  pools = [(miner, assembly.candidates(found)) for miner, found in mined]
  for subtype in constants.SUBTYPES:
    entries = [
      (miner, candidate)
      for miner, pool in pools
      for candidate in pool[subtype]
      if is_consistent(candidate, miner.config)
    ]
    if per_subtype and len(entries) > per_subtype:
      chosen = sorted(
        rng.choice(len(entries), per_subtype, replace=False).tolist()
      )
      entries = [entries[i] for i in chosen]
    for number, (miner, candidate) in enumerate(entries):
      wanted = number % len(assembly.K_SHARES)
      auxiliaries = assembly.rank_auxiliaries(miner, candidate)[:wanted]
      rows.append(assembly.case_row(miner, candidate, auxiliaries))
  return rows


def pairs(row: Mapping[str, Any]) -> list[dict[str, Any]]:
  """Teacher-forced pairs of a trajectory, one per step.

  Pair i has the references [f_{i-1}, auxiliaries], text i and the target f_i;
  f_{i-1} is always the physical frame.

  Args:
    row: manifest-like row.

  Returns:
    Pairs in step order.
  """
  auxiliaries = [image["image_path"] for image in row["input_images"][1:]]
  current = row["input_images"][0]["image_path"]
  found = []
  for step, target, pose in zip(
    row["instructions"],
    row["target_images"],
    row["pose_metadata"]["relative_poses"],
    strict=True,
  ):
    references = [current, *auxiliaries]
    found.append(
      {
        "pair_id": f"{row['sample_id']}__step{step['step']}",
        "trajectory_id": row["sample_id"],
        "dataset": row["dataset"],
        "scene_id": row["scene_id"],
        "subtype": row["subtype"],
        "step": step["step"],
        "reference_images": references,
        "text": instructions.text_of_pose(pose, inputs=len(references)),
        "target_image": target["image_path"],
      }
    )
    current = target["image_path"]
  return found
