# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Actions: which motion component an instruction is about.

Source: EgoGenEval specification 3.2, 12.1. The label decides; the subtype text
is read only where the label is empty, `pitch` before `rotation`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping


@dataclasses.dataclass(frozen=True)
class Component:
  """A scored component of the relative motion.

  Attributes:
    name: name in the evidence files.
    index: position in (tx, ty, tz, yaw, pitch).
    unit: `m` or `deg`.
  """

  name: str
  index: int
  unit: str

  @property
  def is_translation(self) -> bool:
    """Whether the component is one of the three translations."""
    return self.index < 3


RIGHT = Component("tx_right_m", 0, "m")
DOWN = Component("ty_down_m", 1, "m")
FORWARD = Component("tz_forward_m", 2, "m")
YAW = Component("yaw_deg", 3, "deg")
PITCH = Component("pitch_deg", 4, "deg")
COMPONENTS = (RIGHT, DOWN, FORWARD, YAW, PITCH)

_BY_LABEL = {
  **dict.fromkeys(("forward", "backward"), FORWARD),
  **dict.fromkeys(
    ("left", "right", "strafe_left", "strafe_right", "lateral"), RIGHT
  ),
  **dict.fromkeys(("up", "down", "vertical_up", "vertical_down"), DOWN),
  **dict.fromkeys(("yaw_left", "yaw_right", "turn_left", "turn_right"), YAW),
  **dict.fromkeys(("pitch_up", "pitch_down"), PITCH),
}
_BY_SUBTYPE = (
  ("forward_backward", FORWARD),
  ("lateral", RIGHT),
  ("vertical", DOWN),
  ("pitch", PITCH),
  ("yaw", YAW),
  ("rotation", YAW),
)


def component_of(meta: Mapping[str, object]) -> Component | None:
  """Component of an instruction.

  Args:
    meta: `dominant_action` and, as a fallback, `atomic_subtype` or `subtype`.

  Returns:
    The component; None for a non-empty unknown label, and where neither the
    label nor the subtype names one.
  """
  label = str(meta.get("dominant_action") or "").lower()
  if label:
    return _BY_LABEL.get(label)
  subtype = str(meta.get("atomic_subtype") or meta.get("subtype") or "").lower()
  return next(
    (component for word, component in _BY_SUBTYPE if word in subtype), None
  )
