# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Calls to the vision-language model: attempts, parsing, counting.

Every call is counted by outcome, so that a failed one is seen in the record
and never mistaken for an answer. Source: EgoGenEval specification 4.8.
"""

from __future__ import annotations

import collections
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perception import roles
from perception.errors import InputError
from protocols.egogeneval import (
  boards,
  constants,
  detections,
  matching,
  replies,
)

_MAX_TOKENS = 2048
Image = NDArray[np.uint8]


class StepVision:
  """All questions about one step's pair of images.

  Attributes:
    calls: number of calls by `<stage>_<ok|unparsed|failed>`.
    reasons: last reason of a failed or unparsed call, by stage.
  """

  def __init__(
    self,
    backend: roles.VisionLanguageBackend,
    target: Image,
    generated: Image,
    targets: detections.BoxList,
    candidates: detections.BoxList,
    limits: constants.Constants,
  ) -> None:
    """Args:
    backend: the model, or its recorded answers.
    target: resized target image.
    generated: generated image at the same size.
    targets: observable target objects.
    candidates: candidates in the generated image.
    limits: constants of the variant.
    """
    self._backend = backend
    self._images = (target, generated)
    self._targets = targets
    self._candidates = candidates
    self._limits = limits
    self.calls: collections.Counter[str] = collections.Counter()
    self.reasons: dict[str, str] = {}

  def propose(self) -> dict[str, Any] | None:
    """Stage 1; None if no attempt gave an object."""
    board = boards.proposal_board(
      *self._images, self._targets, self._candidates
    )
    text = boards.proposal_text(self._targets, self._candidates)
    return self._ask("propose", board, text, self._limits.propose_attempts)

  def judge(self, target: int, candidate: int) -> matching.Verdict:
    """The pair judge; a failed call is not the same, with confidence 0."""
    board = boards.judge_board(
      *self._images,
      self._targets.boxes[target],
      self._candidates.boxes[candidate],
    )
    reply = self._ask(
      "judge", board, boards.JUDGE_TEXT, self._limits.judge_attempts
    )
    if reply is None:
      return matching.Verdict(False, 0.0)
    return matching.Verdict(
      replies.flag(reply.get("same_object"), default=False),
      replies.confidence(reply.get("same_object_confidence"), default=0.5),
    )

  def audit(
    self, records: Sequence[matching.ObjectRecord]
  ) -> dict[int, Sequence[str]] | None:
    """Stage 2; defects by position, None if every call failed.

    Records go out in batches; those missing from a reply are asked one by one
    and are then counted as unparsed.
    """
    found: dict[int, Sequence[str]] = {}
    size = self._limits.audit_batch
    for first in range(0, len(records), size):
      batch = list(records[first : first + size])
      found |= self._audit_batch(batch, first)
      for offset, record in enumerate(batch):
        if first + offset not in found:
          found |= self._audit_batch([record], first + offset)
        if first + offset not in found:
          self.calls["audit_record_unparsed"] += 1
    return found or None

  def _audit_batch(
    self, batch: Sequence[matching.ObjectRecord], first: int
  ) -> dict[int, Sequence[str]]:
    board = boards.audit_board(*self._images, batch)
    text = boards.audit_text(batch, first)
    reply = self._ask("audit", board, text, self._limits.audit_attempts)
    entries = (reply or {}).get("objects")
    if not isinstance(entries, list):
      return {}
    found: dict[int, Sequence[str]] = {}
    for entry in entries:
      if not isinstance(entry, Mapping):
        continue
      position = replies.index_of(entry.get("id"), first + len(batch))
      defects = entry.get("defects")
      if position is not None and position >= first:
        names = defects if isinstance(defects, list) else []
        found[position] = [str(name) for name in names]
    return found

  def _ask(
    self, stage: str, board: Image, text: str, attempts: int
  ) -> dict[str, Any] | None:
    message = roles.ChatMessage("user", (board, text))
    request = roles.ChatRequest((message,), max_tokens=_MAX_TOKENS)
    outcome = "failed"
    for _ in range(attempts):
      try:
        answer = self._backend.answer(request)
      except InputError as error:
        # A recorded transcript cannot answer differently a second time.
        self.reasons[stage] = str(error)
        break
      reply = replies.parse(answer.text)
      if reply is not None:
        self.calls[f"{stage}_ok"] += 1
        return reply
      outcome = "unparsed"
      self.reasons[stage] = f"not a JSON object: {answer.text[:60]!r}"
    self.calls[f"{stage}_{outcome}"] += 1
    return None
