# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Mask and track audits by a vision-language model (sections 7.1, 7.2).

The paper names both audits without prompt, frame count or rule, and the
released code has neither. The questions, the frames and the rule below are
ours. Both are off unless a vision-language backend is chosen; a reply that
cannot be read is counted and reported and is no verdict.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Sequence

import numpy as np

from perception import roles
from protocols.common import overlays

NOT_RUN = "not run"
PASSED = "passed"
REJECTED = "rejected"
UNREADABLE = "unreadable reply"

_FRAMES = 4
_TRAIL = 30
_SCHEMA = {
  "type": "object",
  "properties": {
    "accept": {"type": "boolean"},
    "reason": {"type": "string"},
  },
  "required": ["accept", "reason"],
  "additionalProperties": False,
}
_FORM = 'Answer with JSON only: {"accept": true or false, "reason": "..."}.'


@dataclasses.dataclass(frozen=True)
class Verdict:
  """Outcome of one audit.

  Attributes:
    outcome: `not run`, `passed`, `rejected` or `unreadable reply`.
    reason: the model's reason, or what was wrong with the reply.
  """

  outcome: str
  reason: str = ""


def mask_request(
  frames: Sequence[np.ndarray], masks: np.ndarray, query: str
) -> roles.ChatRequest:
  """Asks whether the highlighted region covers the object.

  Args:
    frames: T frames, uint8 [H, W, 3].
    masks: bool [T, H, W].
    query: phrase that names the object.

  Returns:
    A request with pairs (overlay, binary mask) of evenly spread frames.
  """
  parts: list[str | np.ndarray] = [
    "Each picture shows a video frame with a region tinted green and, beside"
    f" it, the region alone in white. Does the region cover the object"
    f" '{query}', all of what is visible of it and little else, in every"
    f" picture? {_FORM}"
  ]
  for row in _spread(len(frames)):
    white = np.where(masks[row][..., None], 255, 0).astype(np.uint8)
    pair = [
      overlays.with_mask(frames[row], masks[row]),
      np.repeat(white, 3, axis=2),
    ]
    parts.append(overlays.side_by_side(pair))
  return _request(parts)


def track_request(
  frames: Sequence[np.ndarray],
  xy: np.ndarray,
  visible: np.ndarray,
  query: str,
) -> roles.ChatRequest:
  """Asks whether trails of points represent the object's motion.

  Args:
    frames: T frames, uint8 [H, W, 3].
    xy: float [T, N, 2] video pixels.
    visible: bool [T, N].
    query: phrase that names the object.

  Returns:
    A request with trail maps of evenly spread frames.
  """
  parts: list[str | np.ndarray] = [
    "The cyan lines are the recent paths of points that a tracker follows."
    f" Do they lie on the object '{query}' and follow its motion in every"
    f" picture? {_FORM}"
  ]
  for row in _spread(len(frames)):
    parts.append(
      overlays.with_trails(frames[row], xy, visible, row=row, length=_TRAIL)
    )
  return _request(parts)


def parse(text: str) -> Verdict:
  """Reads a reply.

  Args:
    text: the model's answer; JSON may stand inside other text.

  Returns:
    `passed` or `rejected`; `unreadable reply` for anything without a boolean
    `accept`.
  """
  match = re.search(r"\{.*\}", text, re.DOTALL)
  try:
    content = json.loads(match.group(0)) if match else None
  except ValueError:
    content = None
  accept = content.get("accept") if isinstance(content, dict) else None
  if not isinstance(accept, bool):
    return Verdict(UNREADABLE, " ".join(text.split())[:200])
  reason = str(content.get("reason", "")) if isinstance(content, dict) else ""
  return Verdict(PASSED if accept else REJECTED, reason)


def _request(parts: Sequence[str | np.ndarray]) -> roles.ChatRequest:
  message = roles.ChatMessage("user", tuple(parts))
  return roles.ChatRequest((message,), max_tokens=256, response_schema=_SCHEMA)


def _spread(count: int) -> list[int]:
  """Up to `_FRAMES` distinct rows from the first to the last frame."""
  return sorted({round(x) for x in np.linspace(0, count - 1, _FRAMES)})
