# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""CMG evidence of a case: pose pairs to rows.

Source: EgoGenEval specification 3, 12.6.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perception import observation
from protocols.common.records import DEGENERATE, FAILED
from protocols.egogeneval import (
  actions,
  constants,
  evidence_files,
  frame_files,
  grounding,
  manifest,
  pair_pose,
)

Rows = tuple[list[dict[str, Any]], list[evidence_files.StepStatus]]


def measure(
  case: manifest.ManifestCase,
  outputs: Sequence[NDArray[np.uint8]],
  stored: Mapping[str, frame_files.StoredFrame],
  backend: pair_pose.PairPose,
  limits: constants.Constants,
) -> Rows:
  """Camera evidence of every step of a case.

  Args:
    case: the case.
    outputs: generated image of every step, native size.
    stored: evaluation frames by image reference.
    backend: pair pose backend.
    limits: constants of the variant.

  Returns:
    (evidence rows, statuses of the steps without one).
  """
  rows: list[dict[str, Any]] = []
  statuses: list[evidence_files.StepStatus] = []
  first = _physical(stored, case.inputs[0])
  for step in case.steps:
    record_id = f"{case.case_id}__step{step.number}"
    source = frame_files.of_case(stored, case.physical_source(step.number))
    target = frame_files.of_case(stored, step.target)
    component = actions.component_of({**step.meta, "subtype": case.subtype})
    if component is None:
      statuses.append(
        evidence_files.StepStatus(
          record_id, "cmg", DEGENERATE, "unknown action label"
        )
      )
      continue
    physical_source = _view(source)
    physical = backend.estimate(physical_source, _view(target, depth=False))
    evaluated = pair_pose.relative_through(
      backend,
      [physical_source, first],
      physical_source
      if step.number == 1
      else _generated(outputs[step.number - 2], source),
      _generated(outputs[step.number - 1], target),
    )
    if physical.pose is None or evaluated.pose is None:
      which = "physical" if physical.pose is None else "evaluated"
      reason = physical.reason or evaluated.reason
      statuses.append(
        evidence_files.StepStatus(
          record_id, "cmg", FAILED, f"{which} pair not localised: {reason}"
        )
      )
      continue
    grounded = grounding.ground_steps(
      [
        grounding.PosePair(
          source.pose_c2w,
          target.pose_c2w,
          physical.pose,
          evaluated.pose,
          component,
        )
      ],
      limits,
    )[0]
    if grounded.score is None:
      statuses.append(
        evidence_files.StepStatus(record_id, "cmg", DEGENERATE, grounded.reason)
      )
      continue
    rows.append(_row(record_id, grounded, evaluated.support))
  return rows, statuses


def _row(
  record_id: str, grounded: grounding.GroundedStep, support: int
) -> dict[str, Any]:
  fields = grounded.fields
  return {
    "id": record_id,
    "action_component": fields["Pose_ActionComponent"],
    "action_expected": fields["Pose_ActionExpected"],
    "action_pred": fields["Pose_ActionPred"],
    "action_abs_err": fields["Pose_ActionAbsErr"],
    "action_sign_correct": fields["Pose_ActionSignCorrect"],
    "action_unit": fields["Pose_ActionUnit"],
    "inliers": support,
    "alpha": grounded.scale,
    "diagnostics": fields,
  }


def _physical(
  stored: Mapping[str, frame_files.StoredFrame], image: manifest.ImageRef
) -> pair_pose.View:
  return _view(frame_files.of_case(stored, image))


def _view(
  frame: frame_files.StoredFrame, *, depth: bool = True
) -> pair_pose.View:
  return pair_pose.View(
    frame.native,
    frame.native_intrinsics,
    frame.frame.depth if depth else None,
  )


def _generated(
  image: NDArray[np.uint8], reference: frame_files.StoredFrame
) -> pair_pose.View:
  """A generated image with the intrinsics that its physical twin has."""
  native = reference.native.shape
  intrinsics = observation.rescale_intrinsics(
    reference.native_intrinsics,
    from_size=(native[0], native[1]),
    to_size=(image.shape[0], image.shape[1]),
  )
  return pair_pose.View(image, np.asarray(intrinsics, np.float64))
