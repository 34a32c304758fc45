# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""From scores of cases to the six tiers and Overall of one model.

Order (specification, 9.4): normalise per case, average every leaf over the
cases in which it exists, then apply the tier tree to the means. Two parts are
combined per case first: the direct half of T4 and the whole of T6. A node
whose required child is missing is missing; nothing missing counts as 0. All
sums are float64 and exactly rounded, so the order of cases cannot matter.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence

from protocols.common.totals import mean
from protocols.orbia.constants import TIERS, Constants
from protocols.orbia.normalisation import CONTROL, LEAVES, QUALITY

Scores = Mapping[str, float | None]


@dataclasses.dataclass(frozen=True)
class CaseScores:
  """What one case contributes; every score is 0-100 or None.

  Attributes:
    leaves: normalised T3, T4 and T5 leaves.
    control: `translation`, `rotation`, `move`, `look`.
    quality: the five T2 components.
    temporal: score of the video.
    is_long: long horizon.
    same_pairs, different_pairs: registered revisit pairs of each branch.
  """

  leaves: Scores
  control: Scores
  quality: Scores
  temporal: float | None
  is_long: bool
  same_pairs: int
  different_pairs: int


@dataclasses.dataclass(frozen=True)
class ModelScores:
  """Everything that the tables of one model need.

  Attributes:
    tiers: `T1`..`T6`, None = missing.
    overall: weighted mean of the six, None unless all exist.
    control, quality: component means.
    preservation: `return`, `query`, `identity`.
    persistence: `direct`, `geometry`.
    temporal: `short`, `long`.
    leaf_means, leaf_counts: means and numbers of cases for each leaf.
    num_cases: cases.
  """

  tiers: dict[str, float | None]
  overall: float | None
  control: dict[str, float | None]
  quality: dict[str, float | None]
  preservation: dict[str, float | None]
  persistence: dict[str, float | None]
  temporal: dict[str, float | None]
  leaf_means: dict[str, float | None]
  leaf_counts: dict[str, int]
  num_cases: int


def model_scores(
  cases: Sequence[CaseScores], *, profile: str, c: Constants
) -> ModelScores:
  """Aggregates the cases of one model.

  Args:
    cases: scores of its cases, any order.
    profile: `pose_and_action` or `action_only`.
    c: constants.

  Returns:
    The model's scores.
  """
  columns = {n: _present(case.leaves.get(n) for case in cases) for n in LEAVES}
  leaves = {name: mean(values) for name, values in columns.items()}
  control = _component_means([case.control for case in cases], CONTROL)
  quality = _component_means([case.quality for case in cases], QUALITY)
  preservation = {
    "return": checkpoint_score(leaves, "return"),
    "query": checkpoint_score(leaves, "qe"),
    "identity": leaves["identity_mean"],
  }
  persistence = {
    "direct": _direct(cases, c=c),
    "geometry": geometry_half(leaves),
  }
  horizons = {
    name: mean(_present(x.temporal for x in cases if x.is_long == is_long))
    for name, is_long in (("short", False), ("long", True))
  }
  tiers = {
    "T1": control_tier(cases, control, profile=profile, c=c),
    "T2": required_mean([quality[name] for name in QUALITY]),
    "T3": weighted(list(preservation.values()), c.checkpoint_weights),
    "T4": required_mean(list(persistence.values())),
    "T5": consistency_tier(leaves),
    "T6": weighted(list(horizons.values()), c.horizon_weights),
  }
  return ModelScores(
    tiers=tiers,
    overall=overall(tiers, c=c),
    control=control,
    quality=quality,
    preservation=preservation,
    persistence=persistence,
    temporal=horizons,
    leaf_means=leaves,
    leaf_counts={name: len(values) for name, values in columns.items()},
    num_cases=len(cases),
  )


def overall(tiers: Scores, *, c: Constants) -> float | None:
  """Weighted mean of the six tiers; None unless all exist (9.3)."""
  return weighted([tiers.get(name) for name in TIERS], c.tier_weights)


def control_tier(
  cases: Sequence[CaseScores], control: Scores, *, profile: str, c: Constants
) -> float | None:
  """T1 (3.4, 15.1).

  Released: mean over the component means that exist. Paper: mean over videos
  of the mean of the components that were evaluated for the video.
  """
  names = control_names(profile)
  if not c.t1_per_video:
    return mean(_present(control[name] for name in names))
  videos = [mean(_present(x.control.get(n) for n in names)) for x in cases]
  return mean(_present(videos))


def control_names(profile: str) -> tuple[str, ...]:
  """Components of T1 that a control profile uses."""
  return CONTROL[2:] if profile == "action_only" else CONTROL


def checkpoint_score(leaves: Scores, prefix: str) -> float | None:
  """Return (`return`) or Query (`qe`) of T3 (5.8)."""
  metrics = ("psnr", "ssim", "lpips", "dino")
  appearance = [
    required_mean([leaves[f"{prefix}_{part}{m}"] for m in metrics])
    for part in ("", "anchor_")
  ]
  depth = [leaves[f"{prefix}_depth"], leaves[f"{prefix}_anchor_depth"]]
  return required_mean([required_mean(appearance), required_mean(depth)])


def same_pose_score(leaves: Scores) -> float | None:
  """Direct comparison of a same-pose case (6.5)."""
  rgb = [leaves["revisit_same_psnr"], leaves["revisit_same_lpips"]]
  patch = leaves["revisit_same_dino_patch_similarity"]
  depth = leaves["revisit_same_depth_abs_rel"]
  return required_mean([required_mean(rgb), patch, depth])


def geometry_half(leaves: Scores) -> float | None:
  """Geometric half of T4 (6.5)."""
  names = ("dino_similarity", "depth_abs_rel", "local_pointcloud_fscore")
  return required_mean([leaves[f"revisit_geom_{name}"] for name in names])


def consistency_tier(leaves: Scores) -> float | None:
  """T5 (7.8)."""
  depth = required_mean([leaves["depth_short"], leaves["depth_medium"]])
  feature = required_mean([leaves["reproj_short"], leaves["reproj_medium"]])
  splats = [leaves["gs_psnr"], leaves["gs_ssim"], leaves["gs_lpips"]]
  parts = [depth, feature, leaves["scale"], required_mean(splats)]
  return required_mean(parts)


def direct_of_case(case: CaseScores) -> float | None:
  """Direct half of T4 for one case: branch scores weighted by pairs (6.5)."""
  branches = (
    (same_pose_score(case.leaves), case.same_pairs),
    (case.leaves["revisit_different_dino"], case.different_pairs),
  )
  known = [(score, n) for score, n in branches if score is not None and n > 0]
  total = sum(n for _, n in known)
  return math.fsum(s * n for s, n in known) / total if total else None


def _direct(cases: Sequence[CaseScores], *, c: Constants) -> float | None:
  if not c.direct_by_case_counts:
    return mean(_present(direct_of_case(case) for case in cases))
  # 15.12, paper: branch means pooled by the numbers of their valid cases,
  # which is the mean over all branch values.
  same = [same_pose_score(x.leaves) for x in cases if x.same_pairs]
  different = [
    x.leaves["revisit_different_dino"] for x in cases if x.different_pairs
  ]
  return mean(_present([*same, *different]))


def required_mean(values: Sequence[float | None]) -> float | None:
  """Mean that is missing when any of its children is."""
  present = _present(values)
  return mean(present) if len(present) == len(values) else None


def weighted(
  values: Sequence[float | None], weights: Sequence[float]
) -> float | None:
  """Weighted sum that is missing when any of its children is."""
  present = _present(values)
  if len(present) < len(values):
    return None
  return math.fsum(
    value * weight for value, weight in zip(present, weights, strict=True)
  )


def group_ranks(
  values: Mapping[str, float | None], groups: Mapping[str, str]
) -> dict[str, int | None]:
  """Rank of every model within its group (9.5).

  Args:
    values: a column of the table by model.
    groups: group by model.

  Returns:
    1 + number of models of the same group with a strictly higher value.
  """
  ranks: dict[str, int | None] = {}
  for model, value in values.items():
    rivals = (v for m, v in values.items() if groups[m] == groups[model])
    ranks[model] = (
      None
      if value is None
      else 1 + sum(v is not None and v > value for v in rivals)
    )
  return ranks


def row_order(
  overall_scores: Mapping[str, float | None], groups: Mapping[str, str]
) -> list[str]:
  """Models by group, then Overall descending (missing last), then name."""

  def key(model: str) -> tuple[str, bool, float, str]:
    value = overall_scores[model]
    return (groups[model], value is None, -(value or 0.0), model)

  return sorted(overall_scores, key=key)


def _component_means(
  rows: Sequence[Scores], names: Iterable[str]
) -> dict[str, float | None]:
  return {n: mean(_present(row.get(n) for row in rows)) for n in names}


def _present(values: Iterable[float | None]) -> list[float]:
  return [value for value in values if value is not None]
