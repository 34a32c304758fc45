# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Stage 1 of the matching: which proposed pairs are accepted.

Source: EgoGenEval specification 4.8 (stage 1), 4.16.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from protocols.egogeneval import boxes as box_math
from protocols.egogeneval import constants, replies, vocabulary

_GT_KEYS = ("gt_id", "gt", "gt_idx", "gt_index", "target_id")
_PRED_KEYS = ("pred_id", "pred", "pred_idx", "prediction_id", "pred_index")
_CONFIDENCE_KEYS = ("same_object_confidence", "confidence", "match_confidence")
_DEFAULT_CONFIDENCE = 0.5
_DISTANCE_WEIGHT = 0.4
_LABEL_BONUS = 0.1
_NO_EDGE = -1e6
_MIN_SIMILARITY = 0.78


@dataclasses.dataclass(frozen=True)
class Proposal:
  """Outcome of the correspondence reply.

  Attributes:
    pairs: accepted (target, candidate) pairs, best score first.
    edges: score of every pair that passed the gates.
    confidences: confidence behind each of those scores.
    far: proposals beyond the distance limit.
    unsure: proposals below the confidence limit.
    different: proposals that say "not the same object".
  """

  pairs: tuple[tuple[int, int], ...]
  edges: dict[tuple[int, int], float]
  confidences: dict[tuple[int, int], float]
  far: int
  unsure: int
  different: int


def accept(
  reply: Mapping[str, Any] | None,
  target_boxes: Sequence[box_math.Box],
  target_labels: Sequence[str],
  candidate_boxes: Sequence[box_math.Box],
  candidate_labels: Sequence[str],
  size: tuple[int, int],
  limits: constants.Constants,
) -> Proposal:
  """Gates the proposed pairs and assigns them one to one.

  Args:
    reply: parsed answer of the correspondence model; None accepts nothing.
    target_boxes: boxes of the target objects.
    target_labels: their labels.
    candidate_boxes: boxes of the candidates, in the same pixels.
    candidate_labels: their labels.
    size: (h, w) of both images.
    limits: constants of the variant.

  Returns:
    The accepted pairs.
  """
  edges: dict[tuple[int, int], float] = {}
  confidences: dict[tuple[int, int], float] = {}
  far = unsure = different = 0
  for entry in _entries(reply):
    target = replies.index_of(
      replies.first_of(entry, _GT_KEYS), len(target_boxes)
    )
    candidate = replies.index_of(
      replies.first_of(entry, _PRED_KEYS), len(candidate_boxes)
    )
    if target is None or candidate is None:
      continue
    if not replies.flag(entry.get("same_object"), default=True):
      different += 1
      continue
    sure = replies.confidence(
      replies.first_of(entry, _CONFIDENCE_KEYS), default=_DEFAULT_CONFIDENCE
    )
    if sure < limits.match_confidence:
      unsure += 1
      continue
    distance = box_math.normalised_distance(
      target_boxes[target], candidate_boxes[candidate], size
    )
    if distance > limits.match_distance:
      far += 1
      continue
    name = vocabulary.canonical(target_labels[target])
    same = bool(name) and name == vocabulary.canonical(
      candidate_labels[candidate]
    )
    score = sure - _DISTANCE_WEIGHT * distance + (_LABEL_BONUS if same else 0.0)
    pair = (target, candidate)
    if pair not in edges or score > edges[pair]:
      edges[pair], confidences[pair] = score, sure
  pairs = _assign(edges, len(target_boxes), len(candidate_boxes))
  return Proposal(pairs, edges, confidences, far, unsure, different)


def assign_by_similarity(
  similarity: NDArray[np.float64],
  target_boxes: Sequence[box_math.Box],
  candidate_boxes: Sequence[box_math.Box],
  size: tuple[int, int],
  limits: constants.Constants,
) -> tuple[tuple[int, int], ...]:
  """Matching by appearance alone, the ablation of section 4.16.

  Args:
    similarity: [G, P] appearance similarity in [0, 1].
    target_boxes: G boxes.
    candidate_boxes: P boxes.
    size: (h, w) of both images.
    limits: constants of the variant.

  Returns:
    One-to-one pairs by target index; non-matches cost nothing.
  """
  targets, candidates = similarity.shape
  total = targets + candidates
  weights = np.zeros((total, total))
  for i in range(targets):
    for j in range(candidates):
      distance = box_math.normalised_distance(
        target_boxes[i], candidate_boxes[j], size
      )
      if (
        distance <= limits.match_distance
        and similarity[i, j] >= _MIN_SIMILARITY
      ):
        weights[i, j] = similarity[i, j] - _MIN_SIMILARITY + 1e-12
  rows, columns = optimize.linear_sum_assignment(weights, maximize=True)
  return tuple(
    (int(i), int(j))
    for i, j in zip(rows, columns, strict=True)
    if i < targets and j < candidates and weights[i, j] > 0
  )


def _entries(reply: Mapping[str, Any] | None) -> list[Mapping[str, Any]]:
  matches = (reply or {}).get("matches")
  if isinstance(matches, Mapping):
    matches = list(matches.values())
  if not isinstance(matches, list):
    return []
  return [entry for entry in matches if isinstance(entry, Mapping)]


def _assign(
  edges: Mapping[tuple[int, int], float], targets: int, candidates: int
) -> tuple[tuple[int, int], ...]:
  if not edges:
    return ()
  scores = np.full((targets, candidates), _NO_EDGE)
  for (target, candidate), score in edges.items():
    scores[target, candidate] = score
  rows, columns = optimize.linear_sum_assignment(scores, maximize=True)
  pairs = [
    (int(i), int(j))
    for i, j in zip(rows, columns, strict=True)
    if (int(i), int(j)) in edges
  ]
  return tuple(sorted(pairs, key=lambda pair: -edges[pair]))
