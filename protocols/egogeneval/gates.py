# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Motion gates of a candidate transition, and its stored scores.

A motion is given in the stored signs: tx > 0 right, ty > 0 down, tz > 0
forward, yaw > 0 right, pitch > 0 UP, roll; metres and degrees. The yaw and
pitch are those of the viewing direction; roll is what remains.
Source: EgoGenEval specification 2.2, 9.1, 9.2.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from protocols.egogeneval import instructions


@dataclasses.dataclass(frozen=True)
class Gates:
  """Thresholds, by the keys of the manifest.

  Attributes:
    min_trans, max_trans: dominant translation component, metres.
    min_yaw, max_yaw: degrees.
    min_pitch, max_pitch: degrees.
    dominance_ratio: dominant over the other translation components.
    translation_vs_rotation_ratio: least clarity of a translation.
    rotation_vs_translation_ratio: least clarity of a rotation.
    min_overlap, max_overlap: mean of the two projected shares.
    min_pair_gap, max_pair_gap: frame gap of pairs, in strides.
    chain_step_min, chain_step_max: frame gap of chain steps, in strides.
    pose_nms_translation_bin_m, pose_nms_rotation_bin_deg: pose-NMS bins.
  """

  min_trans: float = 0.15
  max_trans: float = 1.2
  min_yaw: float = 8.0
  max_yaw: float = 45.0
  min_pitch: float = 6.0
  max_pitch: float = 35.0
  dominance_ratio: float = 1.5
  translation_vs_rotation_ratio: float = 1.8
  rotation_vs_translation_ratio: float = 1.8
  min_overlap: float = 0.35
  max_overlap: float = 0.85
  min_pair_gap: int = 2
  max_pair_gap: int = 50
  chain_step_min: int = 2
  chain_step_max: int = 25
  pose_nms_translation_bin_m: float = 0.3
  pose_nms_rotation_bin_deg: float = 8.0

  def thresholds(self) -> dict[str, Any]:
    """`effective_stage1_thresholds` of a manifest row."""
    return {
      **dataclasses.asdict(self),
      "scene_profile": "indoor_like",
      "outdoor_scales_applied": {
        "frame_gap": 1.0,
        "min_trans": 1.0,
        "rotation": 1.0,
      },
    }


@dataclasses.dataclass(frozen=True)
class Motion:
  """Stored numbers of one transition.

  Attributes:
    tx, ty, tz: metres.
    yaw, pitch, roll: degrees, pitch positive up.
  """

  tx: float
  ty: float
  tz: float
  yaw: float
  pitch: float
  roll: float

  @property
  def norm(self) -> float:
    """Length of the translation, rounded to float32."""
    return float(np.float32(np.linalg.norm([self.tx, self.ty, self.tz])))

  def inverted(self) -> Motion:
    """The stored numbers of a cycle's return: all signs flipped (9.2)."""
    return Motion(*(-v for v in dataclasses.astuple(self)))


@dataclasses.dataclass(frozen=True)
class Scores:
  """Gate-normalised sizes (9.2)."""

  translation_score: float
  rotation_score: float
  motion_clarity_score: float


def motion_of(
  translation: NDArray[np.floating],
  rotation: NDArray[np.floating],
  yaw_deg: float,
  pitch_deg: float,
) -> Motion:
  """Stored numbers from a relative motion of `kernels.relative_motion`.

  Args:
    translation: [3] in source axes.
    rotation: [3, 3].
    yaw_deg: positive right.
    pitch_deg: positive down; stored with the opposite sign.

  Returns:
    The motion; roll is the turn about the viewing axis that is left after
    yaw and pitch.
  """
  yaw, pitch = np.radians(yaw_deg), np.radians(pitch_deg)
  turn_yaw = np.array(
    [
      [np.cos(yaw), 0, np.sin(yaw)],
      [0, 1, 0],
      [-np.sin(yaw), 0, np.cos(yaw)],
    ]
  )
  # Looking down by p turns about x by -p: Ry(yaw) Rx(-pitch) Rz(roll).
  turn_pitch = np.array(
    [
      [1, 0, 0],
      [0, np.cos(pitch), np.sin(pitch)],
      [0, -np.sin(pitch), np.cos(pitch)],
    ]
  )
  rest = (turn_yaw @ turn_pitch).T @ np.asarray(rotation, np.float64)
  roll = float(np.degrees(np.arctan2(rest[1, 0], rest[0, 0])))
  tx, ty, tz = (float(np.float32(v)) for v in translation)
  return Motion(tx, ty, tz, float(yaw_deg), -float(pitch_deg), roll)


def scores(motion: Motion, gates: Gates) -> Scores:
  """Gate-normalised translation, rotation and clarity.

  The clarity is of the family that the larger of the two belongs to.
  """
  translation = (
    max(abs(motion.tx), abs(motion.tz), motion.norm / 2.0) / gates.min_trans
  )
  rotation = max(
    abs(motion.yaw) / gates.min_yaw, abs(motion.pitch) / gates.min_pitch
  )
  low = max(min(translation, rotation), 1e-12)
  return Scores(translation, rotation, max(translation, rotation) / low)


def classify(motion: Motion, gates: Gates) -> instructions.Action | None:
  """The action of a motion, or None where a gate refuses it.

  Components are divided by their gates; the larger family must be clear of
  the other one, and its largest component legal and, for translations,
  dominant over the other two.
  """
  found = scores(motion, gates)
  if found.translation_score >= found.rotation_score:
    if found.motion_clarity_score < gates.translation_vs_rotation_ratio:
      return None
    return _translation(motion, gates)
  if found.motion_clarity_score < gates.rotation_vs_translation_ratio:
    return None
  return _rotation(motion, gates)


def _translation(motion: Motion, gates: Gates) -> instructions.Action | None:
  forward = abs(motion.tz) >= abs(motion.tx)
  value = motion.tz if forward else motion.tx
  others = (motion.tx if forward else motion.tz, motion.ty)
  if not gates.min_trans <= abs(value) <= gates.max_trans:
    return None
  if any(abs(value) < gates.dominance_ratio * abs(v) for v in others):
    return None
  subtype = "A1_forward_backward" if forward else "A2_lateral_strafe"
  return instructions.action_for(subtype, value)


def _rotation(motion: Motion, gates: Gates) -> instructions.Action | None:
  turns = abs(motion.yaw) / gates.min_yaw
  tilts = abs(motion.pitch) / gates.min_pitch
  if turns >= tilts:
    if not gates.min_yaw <= abs(motion.yaw) <= gates.max_yaw:
      return None
    return instructions.action_for("A3_yaw_rotation", motion.yaw)
  if not gates.min_pitch <= abs(motion.pitch) <= gates.max_pitch:
    return None
  return instructions.action_for("A4_pitch_rotation", motion.pitch)
