# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Candidate transitions of a scene: motion gates, overlap, pose-NMS, chains.

Where the benchmark's mining code leaves a procedure open (overlap grid, depth
layers, pose-NMS), the choice made here is named in `MiningConfig`.
Source: EgoGenEval specification 9.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from kernels import relative_motion, view_overlap
from protocols.egogeneval import gates as gate_rules
from protocols.egogeneval import instructions, scenes


@dataclasses.dataclass(frozen=True)
class MiningConfig:
  """How a scene is mined.

  Attributes:
    gates: thresholds.
    stride: loader indices per grid step; gaps are counted in grid steps.
    overlap_height: rows that depth maps are reduced to for the overlap.
    overlap_grid: sampling step on the reduced maps, pixels.
    depth_tolerance: relative depth agreement of the visible share.
    near_share: depth below this share of the median is near.
    far_share: depth above this share of the median is far.
    layer_min: least share of pixels that makes a layer present.
    require_layers: translations need all three layers.
    max_chains: chains kept per scene and subtype.
  """

  gates: gate_rules.Gates = dataclasses.field(default_factory=gate_rules.Gates)
  stride: int = 5
  overlap_height: int = 120
  overlap_grid: int = 2
  depth_tolerance: float = 0.05
  near_share: float = 0.8
  far_share: float = 1.25
  layer_min: float = 0.05
  require_layers: bool = True
  max_chains: int = 200


@dataclasses.dataclass(frozen=True)
class Visibility:
  """Overlap of an ordered pair (9.3)."""

  forward_projected: float
  forward_visible: float
  backward_projected: float
  backward_visible: float

  @property
  def overlap(self) -> float:
    """Mean of the two projected shares."""
    return (self.forward_projected + self.backward_projected) / 2.0

  def stored(self) -> dict[str, float]:
    """`zbuffer_visibility` of a manifest row."""
    return {
      "mean_visible_ratio": (self.forward_visible + self.backward_visible)
      / 2.0,
      "source_to_target_projected_ratio": self.forward_projected,
      "source_to_target_visible_ratio": self.forward_visible,
      "target_to_source_projected_ratio": self.backward_projected,
      "target_to_source_visible_ratio": self.backward_visible,
    }


@dataclasses.dataclass(frozen=True)
class Transition:
  """A legal transition between two frames of a scene.

  Attributes:
    source, target: rows of the scene's frames.
    motion: stored numbers.
    action: the action.
    scores: gate-normalised sizes.
    visibility: overlap both ways.
    layers: presence of near, mid and far depth in the source.
  """

  source: int
  target: int
  motion: gate_rules.Motion
  action: instructions.Action
  scores: gate_rules.Scores
  visibility: Visibility
  layers: tuple[bool, bool, bool]


@dataclasses.dataclass(frozen=True)
class Mined:
  """All candidates of a scene.

  Attributes:
    scene: the scene.
    pairs: transitions with a pair gap, after pose-NMS.
    chains: three consecutive transitions, by chain subtype.
    counts: how many candidates each stage left or refused.
  """

  scene: scenes.Scene
  pairs: tuple[Transition, ...]
  chains: dict[str, tuple[tuple[Transition, ...], ...]]
  counts: dict[str, int]


class SceneMiner:
  """Mines one scene; depth maps and overlaps are computed once."""

  def __init__(self, scene: scenes.Scene, config: MiningConfig) -> None:
    """Args:
    scene: the scene.
    config: how to mine.
    """
    self.scene = scene
    self.config = config
    self.counts: collections.Counter[str] = collections.Counter()
    self._depths: dict[int, tuple[NDArray[Any], NDArray[Any]]] = {}
    self._overlaps: dict[tuple[int, int], Visibility] = {}

  def mine(self) -> Mined:
    """All candidates of the scene."""
    gates = self.config.gates
    legal = list(self._legal())
    pairs = [
      t
      for t in legal
      if gates.min_pair_gap <= self._gap(t) <= gates.max_pair_gap
    ]
    self.counts["pairs_before_nms"] = len(pairs)
    pairs = self._suppressed(pairs)
    self.counts["pairs"] = len(pairs)
    steps = [
      t
      for t in legal
      if gates.chain_step_min <= t.target - t.source
      and self._gap(t) <= gates.chain_step_max
    ]
    chains = self._chains(steps)
    for name, found in chains.items():
      self.counts[name] = len(found)
    return Mined(self.scene, tuple(pairs), chains, dict(self.counts))

  def visibility(self, source: int, target: int) -> Visibility:
    """Overlap of a pair of frames, both ways."""
    key = (min(source, target), max(source, target))
    if key not in self._overlaps:
      first, second = (self._reduced(row) for row in key)
      poses = [
        np.asarray(self.scene.frames[row].pose_c2w, np.float32) for row in key
      ]
      found = [
        _overlap(
          *a, pa, *b, pb,
          grid=self.config.overlap_grid,
          relative_tolerance=self.config.depth_tolerance,
        )
        for (a, pa), (b, pb) in (
          ((first, poses[0]), (second, poses[1])),
          ((second, poses[1]), (first, poses[0])),
        )
      ]  # fmt: skip
      self._overlaps[key] = Visibility(
        float(found[0].projected),
        float(found[0].visible),
        float(found[1].projected),
        float(found[1].visible),
      )
    stored = self._overlaps[key]
    if source <= target:
      return stored
    return Visibility(
      stored.backward_projected,
      stored.backward_visible,
      stored.forward_projected,
      stored.forward_visible,
    )

  def layers(self, row: int) -> tuple[bool, bool, bool]:
    """Whether a frame has near, mid and far depth."""
    depth = self._reduced(row)[0]
    known = depth[np.isfinite(depth) & (depth > 0)]
    if not known.size:
      return (False, False, False)
    middle = float(np.median(known))
    near = known < self.config.near_share * middle
    far = known > self.config.far_share * middle
    shares = (near.mean(), (~near & ~far).mean(), far.mean())
    present = [bool(s >= self.config.layer_min) for s in shares]
    return (present[0], present[1], present[2])

  def _gap(self, transition: Transition) -> int:
    return abs(transition.target - transition.source) // self.config.stride

  def _legal(self) -> Iterator[Transition]:
    """Transitions on the stride grid that pass motion, overlap and layers."""
    gates, stride = self.config.gates, self.config.stride
    rows = np.arange(0, len(self.scene.frames), stride)
    index = np.arange(len(rows))
    a, b = np.meshgrid(index, index, indexing="ij")
    gap = np.abs(a - b)
    longest = max(gates.max_pair_gap, gates.chain_step_max)
    shortest = min(gates.min_pair_gap, gates.chain_step_min)
    chosen = (gap >= max(shortest, 1)) & (gap <= longest)
    sources, targets = rows[a[chosen]], rows[b[chosen]]
    self.counts["pairs_in_gap"] = len(sources)
    if not len(sources):
      return
    poses = np.stack([frame.pose_c2w for frame in self.scene.frames])
    motions = _relative(poses, sources, targets)
    for number, (source, target) in enumerate(
      zip(sources.tolist(), targets.tolist(), strict=True)
    ):
      motion = gate_rules.motion_of(
        np.asarray(motions.translation[number]),
        np.asarray(motions.rotation[number]),
        float(motions.yaw_deg[number]),
        float(motions.pitch_deg[number]),
      )
      action = gate_rules.classify(motion, gates)
      if action is None:
        self.counts["refused_motion"] += 1
        continue
      visible = self.visibility(source, target)
      if not gates.min_overlap <= visible.overlap <= gates.max_overlap:
        self.counts["refused_overlap"] += 1
        continue
      layers = self.layers(source)
      if (
        action.is_translation and self.config.require_layers and not all(layers)
      ):
        self.counts["refused_layers"] += 1
        continue
      self.counts[f"legal_{action.subtype}"] += 1
      yield Transition(
        source,
        target,
        motion,
        action,
        gate_rules.scores(motion, gates),
        visible,
        layers,
      )

  def _reduced(self, row: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Depth and intrinsics at the overlap's size."""
    if row not in self._depths:
      frame = self.scene.frames[row]
      height, width = frame.image().shape[:2]
      rows = min(self.config.overlap_height, height)
      size = (rows, max(1, round(width * rows / height)))
      depth = scenes.depth_at(frame, size)
      matrix = np.array(frame.intrinsics, np.float64)
      for axis, (old, new) in enumerate(((width, size[1]), (height, size[0]))):
        scale = new / old
        matrix[axis] *= scale
        matrix[axis, 2] += 0.5 * scale - 0.5
      self._depths[row] = (depth, matrix.astype(np.float32))
    return self._depths[row]

  def _suppressed(self, found: Sequence[Transition]) -> list[Transition]:
    """Pose-NMS: of transitions in one bin of both poses, the clearest stays."""
    gates = self.config.gates
    best: dict[tuple[Any, ...], Transition] = {}
    ordered = sorted(
      found,
      key=lambda t: (-t.scores.motion_clarity_score, t.source, t.target),
    )
    for transition in ordered:
      key = (
        transition.action.atom,
        *self._bin(transition.source, gates),
        *self._bin(transition.target, gates),
      )
      best.setdefault(key, transition)
    return sorted(best.values(), key=lambda t: (t.source, t.target))

  def _bin(self, row: int, gates: gate_rules.Gates) -> tuple[int, ...]:
    pose = self.scene.frames[row].pose_c2w
    center = np.floor(pose[:3, 3] / gates.pose_nms_translation_bin_m)
    forward = pose[:3, 2]
    angles = np.degrees(
      [
        np.arctan2(forward[0], forward[2]),
        np.arctan2(forward[1], np.hypot(forward[0], forward[2])),
      ]
    )
    turned = np.floor(angles / gates.pose_nms_rotation_bin_deg)
    return tuple(int(v) for v in (*center, *turned))

  def _chains(
    self, steps: Sequence[Transition]
  ) -> dict[str, tuple[tuple[Transition, ...], ...]]:
    """Three consecutive transitions that move forward in time."""
    following: dict[int, list[Transition]] = {}
    for step in steps:
      following.setdefault(step.source, []).append(step)
    rules: dict[str, Callable[[Sequence[Transition]], bool]] = {
      "C1_translation_chain": lambda c: (
        _one_action(c) and c[0].action.is_translation
      ),
      "C2_rotation_chain": lambda c: (
        _one_action(c) and not c[0].action.is_translation
      ),
      "C3_mixed_chain": lambda c: len({t.action.subtype for t in c}) >= 2,
    }
    found: dict[str, list[tuple[Transition, ...]]] = {
      name: [] for name in rules
    }
    starts: dict[str, set[int]] = {name: set() for name in rules}
    for first in steps:
      for second in following.get(first.target, ()):
        for third in following.get(second.target, ()):
          chain = (first, second, third)
          for name, rule in rules.items():
            # One chain per start keeps the list short and diverse.
            if first.source in starts[name] or not rule(chain):
              continue
            if len(found[name]) < self.config.max_chains:
              starts[name].add(first.source)
              found[name].append(chain)
    return {name: tuple(chains) for name, chains in found.items()}


def _one_action(chain: Sequence[Transition]) -> bool:
  return len({transition.action.atom for transition in chain}) == 1


def _relative(
  poses: NDArray[np.float64], sources: NDArray[Any], targets: NDArray[Any]
) -> relative_motion.RelativeMotion:
  """Relative motions of many pairs, float64."""
  size = 1 << max(len(sources) - 1, 0).bit_length()
  pad = size - len(sources)
  a = poses[np.pad(sources, (0, pad))]
  b = poses[np.pad(targets, (0, pad))]
  with jax.enable_x64(True):
    found = _motions(a, b)
  return jax.tree.map(np.asarray, found)


@jax.jit
@jax.vmap
def _motions(a: jax.Array, b: jax.Array) -> relative_motion.RelativeMotion:
  return relative_motion.relative_motion(a, b, angle_from_trace=False)


_overlap = functools.partial(
  jax.jit, static_argnames=("grid", "relative_tolerance")
)(view_overlap.view_overlap)
