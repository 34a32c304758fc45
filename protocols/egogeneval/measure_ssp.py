# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""SSP evidence of a step: detections, matching, signals, depths to a row.

Source: EgoGenEval specification 4, 12.6.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from perception import roles, video
from perception.errors import InputError
from protocols.egogeneval import (
  constants,
  detections,
  frames,
  matchability,
  matching,
  object_depth,
  observable,
  proposals,
  signals,
  vision,
  vocabulary,
)

Image = NDArray[np.uint8]


class GeneratedDepth(Protocol):
  """Depth of a generated image; None where it cannot be had."""

  def depth(self, image: Image) -> NDArray[np.float32] | None:
    """float32 [h, w] in any unit; the image is at its native size."""


@dataclasses.dataclass(frozen=True)
class SspBackends:
  """Perception behind a step.

  Attributes:
    detector: boxes of phrases.
    features: descriptors for the identity signal; None leaves it out.
    vision_language: propose, audit, judge.
    depth: depth of generated images; None leaves generated depths unknown.
    matcher: `vision_language` or `similarity` (the ablation of 4.16).
  """

  detector: roles.DetectionsBackend
  features: roles.FeaturesBackend | None
  vision_language: roles.VisionLanguageBackend | None
  depth: GeneratedDepth | None
  matcher: str = "vision_language"


@dataclasses.dataclass(frozen=True)
class StepInputs:
  """What a step is measured on.

  Attributes:
    record_id: the step.
    target: evaluation frame of the physical target.
    context: evaluation frames of the physical predecessor and auxiliaries.
    generated: generated image, native size.
    annotation: frozen labels of the target.
  """

  record_id: str
  target: frames.EvaluationFrame
  context: Sequence[frames.EvaluationFrame]
  generated: Image
  annotation: Mapping[str, Any]


def measure_step(
  step: StepInputs, backends: SspBackends, limits: constants.Constants
) -> dict[str, Any]:
  """Evidence row of one step.

  Args:
    step: its inputs.
    backends: perception.
    limits: constants of the variant.

  Returns:
    A row of the evidence format, with the visibility search, the calls to
    the vision-language model and the signals beside it.

  Raises:
    InputError: if a proposed pair has no crop, a mean signal is missing
      (released), or the correspondence call failed (paper).
  """
  size = step.target.size
  labels = vocabulary.step_labels(step.annotation, limits)
  phrases = vocabulary.prompts(labels, limits)
  raw_targets = _detect(backends.detector, step.target.image, phrases, limits)
  visible = observable.visibility_map(step.target, step.context, limits)
  keep, _ = observable.supported(visible, raw_targets.boxes, limits)
  targets = _matchable(raw_targets.take(keep), size)
  row: dict[str, Any] = {
    "id": step.record_id,
    "num_gt_objects": len(targets),
    "visibility": [dataclasses.asdict(p) for p in visible.projections],
  }
  image = frames.stretch_to(step.generated, size)
  candidates = _matchable(
    _detect(backends.detector, image, phrases, limits), size
  )
  if not len(targets):
    return row | {
      "num_pred_all": len(candidates),
      "num_matched": 0,
      "center_error_norm": None,
      "object_integrity": None,
      "objects": [],
      "object_depths": [],
    }
  scene = _StepScene(
    step.target.image, image, targets, candidates, backends, limits
  )
  pairs = scene.pairs()
  matched = scene.match(pairs, _matchable(raw_targets, size))
  row |= scene.report()
  return row | _matched_row(
    matched, step, targets, candidates, backends, limits
  )


class _StepScene:
  """Boxes of both images and the questions about them."""

  def __init__(
    self,
    target: Image,
    generated: Image,
    targets: detections.BoxList,
    candidates: detections.BoxList,
    backends: SspBackends,
    limits: constants.Constants,
  ) -> None:
    self._target, self._generated = target, generated
    self._targets, self._candidates = targets, candidates
    self._backends, self._limits = backends, limits
    self._size = (target.shape[0], target.shape[1])
    self._features: dict[bytes, NDArray[np.float64]] = {}
    self._proposal_failed = False
    model = backends.vision_language
    if model is None and backends.matcher == "vision_language":
      raise InputError(
        "backends",
        "vision_language",
        found="none",
        expected="a model or recorded answers for the matching",
        hint="Or choose the similarity matcher (an ablation).",
      )
    self._vision = (
      None
      if model is None
      else vision.StepVision(
        model, target, generated, targets, candidates, limits
      )
    )

  def pairs(self) -> tuple[tuple[int, int], ...]:
    """Accepted pairs of stage 1, or of the similarity ablation."""
    if not len(self._targets) or not len(self._candidates):
      return ()
    if self._backends.matcher == "similarity":
      similarity = np.array(
        [
          [self._identity_of(gt, pred) for pred in range(len(self._candidates))]
          for gt in range(len(self._targets))
        ]
      )
      return proposals.assign_by_similarity(
        similarity,
        self._targets.boxes,
        self._candidates.boxes,
        self._size,
        self._limits,
      )
    assert self._vision is not None
    reply = self._vision.propose()
    self._proposal_failed = reply is None
    if self._proposal_failed and not self._limits.failed_proposal_is_empty:
      # Spec 13 item 18: the released code counts such a step as M = 0.
      raise InputError(
        "vision-language model",
        "correspondence reply",
        found=self._vision.reasons.get("propose", "no answer"),
        expected="one JSON object",
        hint="Run the step again; it must not count as no match.",
      )
    return proposals.accept(
      reply,
      self._targets.boxes,
      self._targets.labels,
      self._candidates.boxes,
      self._candidates.labels,
      self._size,
      self._limits,
    ).pairs

  def match(
    self,
    pairs: Sequence[tuple[int, int]],
    all_targets: detections.BoxList,
  ) -> matching.Matched:
    """Audit, demotion and recovery of accepted pairs."""
    asks = self._vision if self._backends.matcher == "vision_language" else None
    return matching.Matcher(
      self._targets,
      all_targets,
      self._candidates,
      self._size,
      self._limits,
      pair_signals=self._pair_signals,
      audit=asks.audit if asks else lambda _records: {},
      judge=asks.judge
      if asks
      else lambda _gt, _pred: matching.Verdict(False, 0.0),
    ).run(pairs)

  def report(self) -> dict[str, Any]:
    """What the models answered, for the record."""
    if self._vision is None:
      return {"vlm_calls": {}}
    report: dict[str, Any] = {
      "vlm_calls": dict(sorted(self._vision.calls.items()))
    }
    if self._vision.reasons:
      report["vlm_reasons"] = self._vision.reasons
    if self._proposal_failed:
      report["proposal_failed"] = True
    return report

  def _pair_signals(self, gt: int, pred: int) -> signals.Signals | None:
    return signals.pair_signals(
      self._target,
      self._generated,
      self._targets.boxes[gt],
      self._candidates.boxes[pred],
      self._identity,
    )

  def _identity_of(self, gt: int, pred: int) -> float:
    found = self._identity(
      signals.crop(self._target, self._targets.boxes[gt]),
      signals.crop(self._generated, self._candidates.boxes[pred]),
    )
    return 0.0 if found is None else found

  def _identity(self, first: Image, second: Image) -> float | None:
    if self._backends.features is None:
      return None
    return signals.cosine_identity(self._feature(first), self._feature(second))

  def _feature(self, crop: Image) -> NDArray[np.float64]:
    key = str(crop.shape).encode() + crop.tobytes()
    if key not in self._features:
      assert self._backends.features is not None
      clip = video.clip_from_frames(crop[None], fps=0, name="crop")
      pooled = np.asarray(
        self._backends.features.extract(clip).pooled[0], np.float64
      )
      norm = float(np.linalg.norm(pooled))
      self._features[key] = pooled / norm if norm > 0 else pooled
    return self._features[key]


def _detect(
  backend: roles.DetectionsBackend,
  image: Image,
  phrases: Sequence[str],
  limits: constants.Constants,
) -> detections.BoxList:
  found = backend.detect(image, phrases)
  # Boxes come with pixel centres at integers (perception.observation); the
  # published rounding is of coordinates whose origin is the image's corner.
  return detections.postprocess(
    found.boxes + 0.5,
    found.scores,
    [str(label) for label in found.labels],
    (image.shape[0], image.shape[1]),
    limits,
  )


def _matchable(
  boxes: detections.BoxList, size: tuple[int, int]
) -> detections.BoxList:
  kept = matchability.matchable(boxes.boxes, boxes.labels, size)
  return boxes.take(kept.keep)


def _matched_row(
  matched: matching.Matched,
  step: StepInputs,
  targets: detections.BoxList,
  candidates: detections.BoxList,
  backends: SspBackends,
  limits: constants.Constants,
) -> dict[str, Any]:
  if matched.dropped:
    raise InputError(
      step.record_id,
      "crops",
      found=f"no crop for pairs {list(matched.dropped)}",
      expected="boxes with extent in both images",
    )
  means = matching.summary(matched.records)
  if means.matches and limits.variant == "released":
    lacking = [name for name, value in means.signals.items() if value is None]
    if lacking:
      # 4.11: the released pipeline refuses a step with a null mean signal.
      raise InputError(
        step.record_id,
        "signals",
        found=f"no {', '.join(lacking)}",
        expected="all six signals",
        hint="Give a features backend.",
      )
  matches = {
    record.gt_idx: record.pred_idx
    for record in matched.records
    if record.gt_idx is not None and record.pred_idx is not None
  }
  depth_target = step.target.depth
  assert depth_target is not None
  depths = object_depth.object_depths(
    depth_target,
    backends.depth.depth(step.generated)
    if backends.depth is not None and len(matches) >= 2
    else None,
    targets.boxes,
    candidates.boxes,
    matches,
    step.target.size,
    limits,
  )
  return {
    "num_pred_all": len(candidates),
    "num_matched": means.matches,
    "center_error_norm": means.position_error,
    "object_integrity": means.object_quality,
    "mean_signals": means.signals,
    "vlm_used": matched.audit_used,
    "num_demoted": matched.demoted,
    "num_recovered": matched.recovered,
    "objects": [
      {
        **_object(record),
        "gt_label": None
        if record.gt_idx is None
        else targets.labels[record.gt_idx],
      }
      for record in matched.records
    ],
    "object_depths": [dataclasses.asdict(depth) for depth in depths],
  }


def _object(record: matching.ObjectRecord) -> dict[str, Any]:
  content = dataclasses.asdict(record)
  for name in ("gt_box", "pred_box"):
    if content[name] is not None:
      content[name] = list(content[name])
  return content
