# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Every number of EgoGenEval, in both variants, with its source.

Sections refer to the EgoGenEval specification. A field that differs between
the variants names the item of section 13 (paper and code disagree).
"""

from __future__ import annotations

import dataclasses
from typing import Literal

Variant = Literal["released", "paper"]

PROTOCOLS = ("atomic", "chain", "cycle")
STEPS_OF_PROTOCOL = {"atomic": 1, "chain": 3, "cycle": 2}
ATOMIC_SUBTYPES = (
  "A1_forward_backward",
  "A2_lateral_strafe",
  "A3_yaw_rotation",
  "A4_pitch_rotation",
)
CHAIN_SUBTYPES = (
  "C1_translation_chain",
  "C2_rotation_chain",
  "C3_mixed_chain",
)
CYCLE_SUBTYPES = ("Y1_translation_cycle", "Y2_rotation_cycle")
SUBTYPES = ATOMIC_SUBTYPES + CHAIN_SUBTYPES + CYCLE_SUBTYPES
PROTOCOL_OF_SUBTYPE = {
  **dict.fromkeys(ATOMIC_SUBTYPES, "atomic"),
  **dict.fromkeys(CHAIN_SUBTYPES, "chain"),
  **dict.fromkeys(CYCLE_SUBTYPES, "cycle"),
}
BENCHMARK_VERSION = "0.1"
EVALUATOR_VERSION = "0.1"
RESULT_NAMESPACE = "evaluator-v0.1"

# Order and names of the six appearance signals (4.11).
SIGNAL_WEIGHTS = {
  "identity_sim": 0.30,
  "struct_ssim": 0.20,
  "edge_iou": 0.15,
  "sharpness_ratio": 0.12,
  "color_sim": 0.13,
  "shape_sim": 0.10,
}


@dataclasses.dataclass(frozen=True)
class Constants:
  """Constants of one variant.

  Attributes:
    variant: which one.
    dead_zone_m: translation components up to this are zero (13 item 2).
    dead_zone_deg: the same for angles (13 item 2).
    floor_m: smallest denominator of a translation's relative error (3.2).
    floor_deg: the same for angles (3.2).
    min_norm: norms up to this give no scale (3.3).
    uncalibrated_without_scale: score the raw translation where the scale is
      undefined (13 item 5); otherwise the step is degenerate.
    angle_from_trace: geodesic angles by the arccosine of the trace (2.2).
    direction_min_norm: shorter translations have no direction (3.7).
    min_depth: lower limit of usable depth, metres (4.6, 4.12).
    max_depth: upper limit of usable depth, metres (4.6, 4.12).
    depth_limits_inclusive: whether the limits count (13 item 7).
    min_depth_pixels: fewer valid pixels leave an object's depth null (4.12).
    depth_margin: share of a box cut off on each side (4.12).
    depth_margin_cap: cap of that margin by box size - 1 (13 item 8); None
      where there is none.
    tie_ratio: relative depth difference of a tie (4.13).
    ratio_floor: floor of its denominator (4.13).
    ratio_floor_added: add the floor instead of taking the larger (13 item 6).
    min_offset: shortest centre offset with a direction, pixels (4.13).
    coincident_needs_match: refuse coincident target centres only where both
      objects are matched (13 item 9).
    count_all_candidates: P of the F1 is the whole candidate set (13 item 1);
      otherwise the matches and the recorded extras.
    worst_weight: weight of the worst step within a case (4.15).
    visibility_search: try six intrinsics and pose readings and keep the one
      that maps most points (16.2); otherwise the physical one.
    visibility_points: points projected per context frame (4.6).
    visibility_min_points: fewer points leave the map alone (4.6).
    visibility_share: share of a box that must be reached (4.6).
    labels_first: step labels before the fixed vocabulary (13 item 14).
    max_labels: step labels kept (4.3).
    max_prompts: prompts kept (4.3).
    failed_proposal_is_empty: a failed correspondence call yields no matches
      and the step counts (13 item 18); otherwise the step is failed.
    detector_threshold: box and text threshold (4.4).
    suppress_iou: class-agnostic suppression (4.4).
    max_detections: boxes kept per image (4.4).
    match_confidence: smallest confidence of a proposed pair (4.8).
    match_distance: largest centre distance over the diagonal (4.8).
    keep_confidence: confidence that overrules a wrong-identity flag (4.8).
    keep_identity: identity signal that overruling needs (4.8).
    recover_confidence: smallest confidence of a recovered pair (4.8).
    max_recovered: recoveries per step (4.8).
    audit_batch: records per audit call (4.8).
    propose_attempts: attempts of the correspondence call (4.8).
    audit_attempts: attempts of an audit call (4.8).
    judge_attempts: attempts of a pair judge call (4.8).
  """

  variant: Variant
  dead_zone_m: float
  dead_zone_deg: float
  uncalibrated_without_scale: bool
  angle_from_trace: bool
  depth_limits_inclusive: bool
  depth_margin_cap: float | None
  ratio_floor_added: bool
  coincident_needs_match: bool
  count_all_candidates: bool
  visibility_search: bool
  labels_first: bool
  failed_proposal_is_empty: bool
  floor_m: float = 0.1
  floor_deg: float = 5.0
  min_norm: float = 1e-8
  direction_min_norm: float = 1e-8
  min_depth: float = 0.05
  max_depth: float = 20.0
  min_depth_pixels: int = 16
  depth_margin: float = 0.1
  tie_ratio: float = 0.03
  ratio_floor: float = 1e-8
  min_offset: float = 1e-8
  worst_weight: float = 0.5
  visibility_points: int = 20_000
  visibility_min_points: int = 10
  visibility_share: float = 0.25
  max_labels: int = 20
  max_prompts: int = 64
  detector_threshold: float = 0.25
  suppress_iou: float = 0.88
  max_detections: int = 60
  match_confidence: float = 0.8
  match_distance: float = 0.35
  keep_confidence: float = 0.9
  keep_identity: float = 0.78
  recover_confidence: float = 0.8
  max_recovered: int = 12
  audit_batch: int = 10
  propose_attempts: int = 2
  audit_attempts: int = 3
  judge_attempts: int = 2

  def dead_zone(self, unit: str) -> float:
    """Dead zone of a unit, by its first letter (3.5)."""
    return self.dead_zone_m if unit.startswith("m") else self.dead_zone_deg

  def floor(self, unit: str) -> float:
    """Floor of a unit, by its first letter (3.5)."""
    return self.floor_m if unit.startswith("m") else self.floor_deg


RELEASED = Constants(
  variant="released",
  dead_zone_m=1e-3,
  dead_zone_deg=1e-2,
  uncalibrated_without_scale=True,
  angle_from_trace=True,
  depth_limits_inclusive=False,
  depth_margin_cap=0.45,
  ratio_floor_added=False,
  coincident_needs_match=True,
  count_all_candidates=True,
  visibility_search=True,
  labels_first=True,
  failed_proposal_is_empty=True,
)

PAPER = Constants(
  variant="paper",
  dead_zone_m=0.0,
  dead_zone_deg=0.0,
  uncalibrated_without_scale=False,
  angle_from_trace=False,
  depth_limits_inclusive=True,
  depth_margin_cap=None,
  ratio_floor_added=True,
  coincident_needs_match=False,
  count_all_candidates=False,
  visibility_search=False,
  labels_first=False,
  failed_proposal_is_empty=False,
)


def for_variant(variant: str) -> Constants:
  """The constants of a variant; raises ValueError for an unknown name."""
  known = {"released": RELEASED, "paper": PAPER}
  if variant not in known:
    raise ValueError(f"unknown variant {variant!r}; known: {sorted(known)}")
  return known[variant]
