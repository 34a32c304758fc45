# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Mined transitions to manifest rows: cases, auxiliaries, quotas.

The published selection weights are not known. Here auxiliaries are ranked by
how much of the targets they see, then overlap with the current view, then
novelty and closeness; cases are drawn bucket by bucket (subtype x K), scene
after scene, the clearest motion first.
Source: EgoGenEval specification 1.3, 9.4, 10, 12.1.
"""

from __future__ import annotations

import collections
import dataclasses
import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from perception.errors import InputError
from protocols.egogeneval import (
  constants,
  instructions,
  manifest,
  mining,
)

K_SHARES = {1: 0.50, 2: 0.35, 3: 0.10, 4: 0.05}
_SUPPORT_WEIGHT, _OVERLAP_WEIGHT = 1.0, 0.5
_NOVELTY_WEIGHT, _DISTANCE_WEIGHT = 0.25, 0.1
_IN_CONTEXT, _NEAR_BOUNDARY = 0.8, 0.5
_STORED_NUMBERS = ("tx", "ty", "tz", "yaw", "pitch", "roll")


@dataclasses.dataclass(frozen=True)
class Quotas:
  """How many cases to select.

  Attributes:
    atomic, chain, cycle: cases per subtype of each protocol.
    max_per_scene: cases per scene over all subtypes.
  """

  atomic: int = 200
  chain: int = 120
  cycle: int = 120
  max_per_scene: int = 7

  def of_bucket(self, subtype: str, inputs: int) -> int:
    """Cases wanted of a subtype with K inputs."""
    total: int = getattr(self, constants.PROTOCOL_OF_SUBTYPE[subtype])
    return round(total * K_SHARES[inputs])


@dataclasses.dataclass(frozen=True)
class Candidate:
  """A possible case before its inputs are chosen.

  Attributes:
    subtype: subtype of the case.
    steps: its transitions; the return of a cycle is not among them.
    clarity: smallest clarity of its steps, for ranking.
  """

  subtype: str
  steps: tuple[mining.Transition, ...]
  clarity: float

  @property
  def frames(self) -> tuple[int, ...]:
    """Rows of the current view and of every target."""
    rows = (self.steps[0].source, *(step.target for step in self.steps))
    is_cycle = constants.PROTOCOL_OF_SUBTYPE[self.subtype] == "cycle"
    return (*rows, rows[0]) if is_cycle else rows


def candidates(mined: mining.Mined) -> dict[str, list[Candidate]]:
  """Possible cases of a scene by subtype, clearest first."""
  found: dict[str, list[Candidate]] = {name: [] for name in constants.SUBTYPES}
  for pair in mined.pairs:
    clarity = pair.scores.motion_clarity_score
    found[pair.action.subtype].append(
      Candidate(pair.action.subtype, (pair,), clarity)
    )
    cycle = constants.CYCLE_SUBTYPES[0 if pair.action.is_translation else 1]
    found[cycle].append(Candidate(cycle, (pair,), clarity))
  for subtype, chains in mined.chains.items():
    for chain in chains:
      clarity = min(step.scores.motion_clarity_score for step in chain)
      found[subtype].append(Candidate(subtype, chain, clarity))
  for entries in found.values():
    entries.sort(key=lambda c: (-c.clarity, c.frames))
  return found


def select(
  miners: Sequence[tuple[mining.SceneMiner, mining.Mined]],
  quotas: Quotas,
) -> list[dict[str, Any]]:
  """Draws cases and writes their rows, in the manifest's order.

  Args:
    miners: scenes with what was mined from them.
    quotas: how many.

  Returns:
    Manifest rows: subtype A1..Y2, K, dataset, scene.
  """
  pools = [(miner, candidates(mined)) for miner, mined in miners]
  per_scene: collections.Counter[str] = collections.Counter()
  used: set[tuple[str, str, tuple[int, ...]]] = set()
  rows: list[dict[str, Any]] = []
  # Rare buckets first: many inputs are the hardest to fill.
  buckets = sorted(
    itertools.product(constants.SUBTYPES, K_SHARES), key=lambda b: -b[1]
  )
  for subtype, inputs in buckets:
    wanted = quotas.of_bucket(subtype, inputs)
    for miner, candidate in _turns(pools, subtype):
      if wanted <= 0:
        break
      scene = miner.scene.scene_id
      key = (scene, subtype, candidate.frames)
      if key in used or per_scene[scene] >= quotas.max_per_scene:
        continue
      auxiliaries = rank_auxiliaries(miner, candidate)[: inputs - 1]
      if len(auxiliaries) < inputs - 1:
        continue
      rows.append(case_row(miner, candidate, auxiliaries))
      used.add(key)
      per_scene[scene] += 1
      wanted -= 1
  return sorted(rows, key=_row_order)


def _turns(
  pools: Sequence[tuple[mining.SceneMiner, Mapping[str, Sequence[Candidate]]]],
  subtype: str,
) -> Iterator[tuple[mining.SceneMiner, Candidate]]:
  """Candidates of a subtype, one scene after the other."""
  columns = [[(m, c) for c in pool[subtype]] for m, pool in pools]
  for turn in itertools.zip_longest(*columns):
    yield from (entry for entry in turn if entry is not None)


def _row_order(row: Mapping[str, Any]) -> tuple[Any, ...]:
  return (
    constants.SUBTYPES.index(row["subtype"]),
    row["num_context_images"],
    row["dataset"],
    row["scene_id"],
    row["sample_id"],
  )


def rank_auxiliaries(
  miner: mining.SceneMiner, candidate: Candidate
) -> list[int]:
  """Rows of possible auxiliary views, best first; never current or target."""
  frames = set(candidate.frames)
  current = candidate.frames[0]
  targets = [row for row in candidate.frames[1:] if row != current]
  center = miner.scene.frames[current].pose_c2w[:3, 3]
  ranked = []
  stride = miner.config.stride
  for row in range(0, len(miner.scene.frames), stride):
    if row in frames:
      continue
    support = float(
      np.mean(
        [miner.visibility(target, row).forward_visible for target in targets]
      )
    )
    shared = miner.visibility(row, current).overlap
    distance = float(
      np.linalg.norm(miner.scene.frames[row].pose_c2w[:3, 3] - center)
    )
    score = (
      _SUPPORT_WEIGHT * support
      + _OVERLAP_WEIGHT * shared
      + _NOVELTY_WEIGHT * (1.0 - shared)
      - _DISTANCE_WEIGHT * distance
    )
    if support > 0:
      ranked.append((-score, row))
  return [row for _, row in sorted(ranked)]


def case_row(
  miner: mining.SceneMiner,
  candidate: Candidate,
  auxiliaries: Sequence[int],
) -> dict[str, Any]:
  """Manifest row of a case."""
  scene = miner.scene
  subtype, frames = candidate.subtype, candidate.frames
  protocol = constants.PROTOCOL_OF_SUBTYPE[subtype]
  inputs = 1 + len(auxiliaries)
  frame_ids = [scene.frames[row].frame_id for row in frames]
  poses = [_stored_pose(step, n) for n, step in enumerate(candidate.steps, 1)]
  if protocol == "cycle":
    poses.append(_returned(poses[0]))
  names = (scene.dataset, scene.scene_id, subtype, frame_ids)
  context = "single1" if inputs == 1 else f"multi{inputs}"
  return {
    "sample_id": manifest.case_id(*names, context),
    "root_sample_id": manifest.case_id(*names, "root0"),
    "dataset": scene.dataset,
    "scene_id": scene.scene_id,
    "context_type": "single" if inputs == 1 else "multi",
    "num_context_images": inputs,
    "instruction_type": protocol,
    "subtype": subtype,
    "input_images": [
      _image(miner, frames[0], "current"),
      *(_image(miner, row, "auxiliary_context") for row in auxiliaries),
    ],
    "target_images": [
      _image(miner, row, f"target_step_{n}")
      for n, row in enumerate(frames[1:], 1)
    ],
    "instructions": [
      {
        "step": pose["step"],
        "text": instructions.text_of_pose(pose, inputs=inputs),
        "dominant_action": pose["dominant_action"],
        "action_family": pose["action_family"],
        "atomic_subtype": pose["atomic_subtype"],
      }
      for pose in poses
    ],
    "evaluation_protocol": {
      "call_mode": manifest.CALL_MODES[protocol],
      "num_model_calls": len(poses),
      "use_teacher_forcing": False,
      "current_view_update_rule": manifest.UPDATE_RULES[protocol],
    },
    "pose_metadata": {
      "depth_layers": dict.fromkeys(
        ("has_near", "has_mid", "has_far"),
        any(pose["has_three_depth_layers"] for pose in poses),
      ),
      "effective_stage1_thresholds": miner.config.gates.thresholds(),
      "scene_profile": "indoor_like",
      "target_relation_to_context": _relation(miner, candidate, auxiliaries),
      "relative_poses": poses,
    },
  }


def _image(miner: mining.SceneMiner, row: int, role: str) -> dict[str, Any]:
  frame = miner.scene.frames[row]
  return {
    "role": role,
    "image_path": frame.reference,
    "frame_id": frame.frame_id,
  }


def _stored_pose(step: mining.Transition, number: int) -> dict[str, Any]:
  motion = {name: getattr(step.motion, name) for name in _STORED_NUMBERS}
  return {
    "step": number,
    **motion,
    "overlap": step.visibility.overlap,
    "translation_norm": step.motion.norm,
    "translation_score": step.scores.translation_score,
    "rotation_score": step.scores.rotation_score,
    "motion_clarity_score": step.scores.motion_clarity_score,
    "dominant_action": step.action.dominant_action,
    "action_family": step.action.family,
    "action_atom": step.action.atom,
    "atomic_subtype": step.action.subtype,
    "has_three_depth_layers": all(step.layers),
    "residual_motion": motion,
    "zbuffer_visibility": step.visibility.stored(),
  }


def _returned(outbound: Mapping[str, Any]) -> dict[str, Any]:
  """Step 2 of a cycle: the six numbers flipped, the rest repeated (9.2)."""
  motion = {name: -outbound[name] for name in _STORED_NUMBERS}
  subtype = outbound["atomic_subtype"]
  forward = instructions.BY_ATOM[outbound["action_atom"]]
  back = next(
    action
    for action in instructions.ACTIONS
    if action.subtype == subtype and action != forward
  )
  return {
    **outbound,
    **motion,
    "step": 2,
    "residual_motion": motion,
    "dominant_action": back.dominant_action,
    "action_atom": back.atom,
  }


def _relation(
  miner: mining.SceneMiner, candidate: Candidate, auxiliaries: Sequence[int]
) -> str | None:
  """How the targets lie to the inputs; None for a single input.

  The benchmark's own definition is not documented. Here: the largest share of
  a target that any input projects onto, smallest over the targets.
  """
  if not auxiliaries:
    return None
  inputs = (candidate.frames[0], *auxiliaries)
  share = min(
    max(
      miner.visibility(t, row).forward_projected for row in inputs if row != t
    )
    for t in candidate.frames[1:]
  )
  if share >= _IN_CONTEXT:
    return "in_context"
  return "near_boundary" if share >= _NEAR_BOUNDARY else "extrapolation"


def refuse_blocked(
  scene_keys: Collection[tuple[str, str]],
  blocked: Collection[tuple[str, str]],
  *,
  source: str,
) -> None:
  """Raises InputError if a scene is on the blocklist (exact match)."""
  shared = sorted(set(scene_keys) & set(blocked))
  if shared:
    raise InputError(
      source,
      "scene_id",
      found=f"{len(shared)} scenes of the blocklist, first {shared[0]}",
      expected="scenes that the other set does not contain",
      hint="Leave them out.",
    )
