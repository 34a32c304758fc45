# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Instruction text of a step, from its action and its stored pose numbers.

Stored numbers are signed: tx > 0 right, tz > 0 forward, yaw > 0 right and
pitch > 0 UP (the opposite of `kernels.relative_motion`). The texts are fixed
benchmark data. Source: EgoGenEval specification 10.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping


@dataclasses.dataclass(frozen=True)
class Action:
  """One of the eight directed actions.

  Attributes:
    atom: `FB+` and the like.
    dominant_action: `forward` and the like.
    family: translation or rotation.
    subtype: atomic subtype.
    field: stored pose number that decides magnitude and direction.
    clause: text with `{}` for the magnitude.
  """

  atom: str
  dominant_action: str
  family: str
  subtype: str
  field: str
  clause: str

  @property
  def is_translation(self) -> bool:
    """Whether the camera moves rather than turns."""
    return self.family == "translation"


def _translation(
  atom: str, name: str, subtype: str, field: str, way: str, minor: str
) -> Action:
  clause = (
    f"Move the camera mainly {way} by about {{}} meters, with only minor"
    f" {minor} shift and minor rotation."
  )
  return Action(atom, name, "translation", subtype, field, clause)


def _rotation(
  atom: str, name: str, subtype: str, field: str, verb: str, tail: str
) -> Action:
  clause = (
    f"{verb} by about {{}} degrees, with only minor camera translation{tail}."
  )
  return Action(atom, name, "rotation", subtype, field, clause)


_A1, _A2 = "A1_forward_backward", "A2_lateral_strafe"
_A3, _A4 = "A3_yaw_rotation", "A4_pitch_rotation"
ACTIONS = (
  _translation("FB+", "forward", _A1, "tz", "forward", "sideways"),
  _translation("FB-", "backward", _A1, "tz", "backward", "sideways"),
  _translation("LR+", "right", _A2, "tx", "to the right", "forward/backward"),
  _translation("LR-", "left", _A2, "tx", "to the left", "forward/backward"),
  _rotation(
    "YAW+", "yaw_right", _A3, "yaw", "Rotate the camera mainly to the right", ""
  ),
  _rotation(
    "YAW-", "yaw_left", _A3, "yaw", "Rotate the camera mainly to the left", ""
  ),
  _rotation(
    "PITCH+",
    "pitch_up",
    _A4,
    "pitch",
    "Tilt the camera mainly upward",
    " and minor yaw rotation",
  ),
  _rotation(
    "PITCH-",
    "pitch_down",
    _A4,
    "pitch",
    "Tilt the camera mainly downward",
    " and minor yaw rotation",
  ),
)
BY_ATOM = {action.atom: action for action in ACTIONS}

_KEEP = (
  "Keep the same static 3D scene, object identities, spatial layout, relative"
  " depth order, and perspective consistency."
)
_BEFORE = (
  "Image 1 is the current view and should be used as the starting point. The"
  " other images are auxiliary context views of the same scene. Starting from"
  " Image 1, generate the new view after the following camera motion:"
)
_AFTER = (
  "Use the auxiliary images only to preserve scene identity and spatial layout."
  " Do not simply copy any input image."
)


def action_for(subtype: str, value: float) -> Action:
  """The directed action of an atomic subtype and a signed stored number."""
  positive, negative = (a for a in ACTIONS if a.subtype == subtype)
  return positive if value > 0 else negative


def motion_clause(action: Action, value: float) -> str:
  """The clause of an action, with the magnitude of a stored number.

  Args:
    action: its direction is that of the number's sign.
    value: stored metres (two decimals are shown) or degrees (one).

  Returns:
    One sentence.
  """
  digits = f"{abs(value):.2f}" if action.is_translation else f"{abs(value):.1f}"
  return action.clause.format(digits)


def text(subtype: str, value: float, *, inputs: int) -> str:
  """The instruction of one step.

  Args:
    subtype: atomic subtype of the step.
    value: its stored dominant number.
    inputs: number of input images, K.

  Returns:
    The text, character for character that of the benchmark.
  """
  clause = motion_clause(action_for(subtype, value), value)
  if inputs == 1:
    return f"{clause} {_KEEP}"
  return f"{_BEFORE} {clause} {_KEEP} {_AFTER}"


def text_of_pose(pose: Mapping[str, object], *, inputs: int) -> str:
  """The instruction of a manifest row's relative pose."""
  subtype = str(pose["atomic_subtype"])
  field = next(a.field for a in ACTIONS if a.subtype == subtype)
  return text(subtype, float(str(pose[field])), inputs=inputs)
