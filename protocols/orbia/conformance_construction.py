# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Golden vectors of case construction and of discrete actions (float64)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from protocols.common.conformance import Check
from protocols.orbia import actions as keys
from protocols.orbia import case_quality, construction
from protocols.orbia.conformance_case import Case
from protocols.orbia.constants import RELEASED


def actions(case: Case) -> Iterator[Check]:
  """Smoothing, local motion, block plan, timed plans (12.3)."""
  poses = case.read("poses_c2w")
  count = len(poses)
  pure_yaw = case.params["template"] == "yaw_return"
  smoothed = keys.smooth_poses(poses, case.read("event_frames"))
  yield from case.check("smoothed", smoothed, host=True)
  motion, direct = keys.local_motion(smoothed), keys.local_motion(poses)
  yield from case.check("local_translation", motion.translation, host=True)
  yield from case.check("local_angle_deg", motion.angle_deg, host=True)
  if pure_yaw:
    motion, direct = map(keys.without_translation, (motion, direct))
  plan = keys.block_plan(motion, frame_count=count)
  yield from case.check("block_actions", plan.actions, host=True)
  yield from case.check("block_frames", plan.frames, host=True)
  yield from case.check("block_target_deg", plan.target_deg, host=True)
  yield from case.check("block_emitted_deg", plan.emitted_deg, host=True)
  yield from case.check("generated_frames", plan.generated_frames, host=True)
  raw = keys.block_plan(direct, frame_count=count)
  yield from case.check("block_actions_unsmoothed", raw.actions, host=True)
  horizon = "long" if count > RELEASED.long_above else "short"
  for name in [n for n in case.params if n.startswith("timed_")]:
    settings = case.params[name]
    timed = keys.timed_plan(
      motion,
      seconds=settings["seconds"][horizon],
      rates_deg_per_s=(
        settings["yaw_deg_per_s"],
        settings["pitch_deg_per_s"],
      ),
    )
    yield from case.check(f"{name}_times", timed.times_s, host=True)
    yield from case.check(f"{name}_keys", timed.keys, host=True)
    yield from case.check(f"{name}_debt", timed.debt_deg, host=True)
    yield from case.check(f"{name}_saturated", timed.saturated, host=True)


def votes(case: Case) -> Iterator[Check]:
  """Move vote of single windows (12.3)."""
  rows = [
    keys.move_vote(steps[:length])
    for steps, length in zip(
      case.read("translation"), case.read("length"), strict=True
    )
  ]
  yield from case.check("keys", np.array(rows, np.int64), host=True)


def gates(case: Case) -> Iterator[Check]:
  """Input-query pairs against the gate of their template (11.2)."""
  motions = [
    construction.pair_motion(q0, qe)
    for q0, qe in zip(case.read("q0_c2w"), case.read("qe_c2w"), strict=True)
  ]
  yield from case.check("measures", [list(m) for m in motions], host=True)
  passed = [
    construction.passes_gate(motion, template)
    for motion, template in zip(motions, case.text("template"), strict=True)
  ]
  yield from case.check("passed", passed, host=True)


def evidence(case: Case) -> Iterator[Check]:
  """Shared unseen surface of two visits (11.7)."""
  views = [
    construction.world_points(
      depth, case.read("K"), pose, pixel_stride=case.params["pixel_stride"]
    )
    for depth, pose in zip(
      case.read("depth"), case.read("poses_c2w"), strict=True
    )
  ]
  for name in [n for n in case.arrays if n.startswith("grade_")]:
    suffix = name.removeprefix("grade_")
    found = construction.revisit_evidence(
      *views,
      voxel=int(suffix) / 100,
      radius=case.params["exclusion_radius"],
    )
    for field, value in found._asdict().items():
      yield from case.check(f"{field}_{suffix}", value, host=True)


def exclusion(case: Case) -> Iterator[Check]:
  """Removal of cells near the input view (11.7)."""
  cells = case.read("candidates")
  keep = construction.away_from(
    cells,
    case.read("seen"),
    voxel=case.params["voxel"],
    radius=case.params["exclusion_radius"],
  )
  yield from case.check("kept", np.unique(cells[keep], axis=0), host=True)


def anchor_points(case: Case) -> Iterator[Check]:
  """Anchor area, integrity and depth points (11.9)."""
  area = [
    case_quality.area_points(percent, factor)
    for percent, factor in zip(
      case.read("area_percent"), case.read("position_factor"), strict=True
    )
  ]
  yield from case.check("area_points", area, host=True)
  integrity = [
    case_quality.endpoint_integrity(*row) for row in case.read("integrity")
  ]
  yield from case.check("endpoint_integrity", integrity, host=True)
  depth = [
    case_quality.depth_points(*row) for row in case.read("depth_direction")
  ]
  yield from case.check("depth_points_direction", depth, host=True)


def revisit_points(case: Case) -> Iterator[Check]:
  """Revisit points (11.9)."""
  points = [
    case_quality.revisit_points(
      grade, values[:2], values[2], values[3], passed=bool(passed)
    )
    for grade, values, passed in zip(
      case.text("grade"), case.read("values"), case.read("passed"), strict=True
    )
  ]
  yield from case.check("points", points, host=True)


def trajectory_points(case: Case) -> Iterator[Check]:
  """Trajectory measurements and points (11.9)."""
  shapes = [case_quality.path_shape(poses) for poses in case.read("poses_c2w")]
  yield from case.check("metrics", [list(shape) for shape in shapes], host=True)
  upright = [case_quality.upright_points(shape) for shape in shapes]
  yield from case.check("upright_points", upright, host=True)
  motion = [
    case_quality.motion_points(value, quantiles)
    for value, quantiles in zip(
      case.read("motion_value"), case.read("motion_quantiles"), strict=True
    )
  ]
  yield from case.check("motion_points", motion, host=True)


def visual_points(case: Case) -> Iterator[Check]:
  """Edge energy and points (11.9)."""
  energy = [case_quality.edge_energy(image) for image in case.read("images")]
  yield from case.check("edge_energy", energy, host=True)
  points = [case_quality.visual_points(value) for value in energy]
  yield from case.check("points", points, host=True)
