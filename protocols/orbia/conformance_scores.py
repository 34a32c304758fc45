# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Golden vectors of control, temporal stability and the aggregation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from protocols.common.conformance import Check
from protocols.orbia import (
  control as controls,
)
from protocols.orbia import (
  normalisation,
  quality,
  schedules,
  stability,
  tiers,
)
from protocols.orbia.conformance_case import Case
from protocols.orbia.constants import PAPER, RELEASED, TIERS
from protocols.orbia.normalisation import CONTROL, QUALITY

# In float32 a pose error moves a mapped score by up to its own relative
# error times 100; the accuracies move by whole labels, which must not flip.
_SCORE_BOUND = 0.02


def control(case: Case) -> Iterator[Check]:
  """Alignment, errors, labels, components, window values (3, 8.2)."""
  found = _control(case)
  yield from case.check("outcome", found.status)
  if found.status != controls.OK:
    return
  assert found.move is not None
  assert found.look is not None
  yield from case.check("scale", found.scale)
  yield from case.check("path_length", found.path_length)
  yield from case.check("primary_frames", found.primary)
  yield from case.check("translation_error", found.translation)
  yield from case.check("rotation_error_deg", found.rotation_deg, bound=2e-4)
  yield from case.check("E_trans", found.translation.mean())
  yield from case.check("E_rot", found.rotation_deg.mean(), bound=2e-4)
  yield from case.check("aligned_positions", found.positions)
  for name, part in zip(CONTROL, found.components.values(), strict=True):
    yield from case.check(f"score_{name}", part, bound=_SCORE_BOUND)
  for name, actions in (("move", found.move), ("look", found.look)):
    yield from case.check(f"{name}_frames", actions.frames)
    yield from case.check(f"{name}_accepted", actions.accepted)
    yield from case.check(f"{name}_labels_requested", actions.requested)
    yield from case.check(f"{name}_labels_recovered", actions.recovered)
    yield from case.check(f"{name}_times", actions.times_s)
    yield from case.check(f"{name}_interval_scores", actions.scores)
    yield from case.check(f"{name}_accuracy", actions.accuracy)
  curves = _control_curves(found, case.params["frame_count"])
  for name, curve in curves.items():
    yield from case.check(f"window_{name}", _numbers(curve), bound=_SCORE_BOUND)


def windows(case: Case) -> Iterator[Check]:
  """Window bounds and which samples fall into which window (8.1)."""
  c = RELEASED
  for name in [n for n in case.arrays if n.startswith("bounds_")]:
    suffix = name.removeprefix("bounds_")
    frame_count, fps = (int(n) for n in suffix.split("_"))
    bounds = schedules.windows(frame_count, fps=fps, c=c)
    yield from case.check(name, bounds, host=True)
    every = np.arange(frame_count)
    preference = schedules.hps_frames(frame_count, c=c)
    yield from case.check(f"hps_frames_{suffix}", preference, host=True)
    for kind, frames in (
      ("every4", every[:: c.quality_stride]),
      ("primary", schedules.primary_frames(every, c=c)),
      ("hps", preference),
    ):
      members = schedules.window_members(frames / fps, bounds, c=c)
      rows = [
        [frames[inside][0], frames[inside][-1], inside.sum()]
        for inside in members
      ]
      yield from case.check(f"first_last_{kind}_{suffix}", rows, host=True)


def retention(case: Case) -> Iterator[Check]:
  """Level and retention of single indicators (8.3)."""
  counts = case.read("window_count")
  found = [
    stability.level_and_retention(_optional(row[:count]))
    for row, count in zip(case.read("windows"), counts, strict=True)
  ]
  level = [np.nan if f is None else f.level for f in found]
  kept = [np.nan if f is None else f.retention for f in found]
  yield from case.check("level", level)
  yield from case.check("retention", kept)


def temporal(case: Case) -> Iterator[Check]:
  """Whole temporal record of a video, with its T1 and T2 components (8)."""
  params, c = case.params, RELEASED
  count, fps = params["frame_count"], float(params["fps"])
  found = _control(case)
  poses = case.read("requested_c2w")
  samples = stability.control_samples(
    found,
    template=params["template"],
    group=params["group"],
    pure_yaw=controls.is_pure_yaw(poses, params["template"], c=c),
    c=c,
  )
  frames = schedules.hps_frames(count, c=c)
  yield from _same_frames(case, "hps_frames", frames)
  imaging, aesthetic = case.read("imaging"), case.read("aesthetic")
  rewards = case.read("hps_reward")
  samples |= stability.quality_samples(
    imaging=imaging,
    aesthetic=aesthetic,
    hps=rewards,
    frame_count=count,
    fps=fps,
    c=c,
  )
  groups = ("short", "medium")
  samples |= stability.geometry_samples(
    {g: case.read(f"items_{g}") for g in groups},
    {g: case.read(f"depth_{g}") for g in groups},
    {g: case.read(f"feature_{g}") for g in groups},
    {g: case.read(f"scale_{g}") for g in groups},
    fps=fps,
  )
  result = stability.measure_stability(
    samples,
    profile=params["control_profile"],
    frame_count=count,
    fps=fps,
    c=c,
  )
  yield from _indicators(case, result)
  for name, pair in result.dimensions.items():
    yield from case.check(f"dimension_{name}", _pair(pair), bound=_SCORE_BOUND)
  yield from case.check("video_score", result.score, bound=_SCORE_BOUND)
  components = [found.components[name] for name in CONTROL]
  yield from case.check(
    "control_components", _numbers(components), bound=_SCORE_BOUND
  )
  parts = quality.components(
    flicker=quality.flicker(case.read("flicker_frames")),
    imaging=imaging,
    aesthetic=aesthetic,
    smoothness=100.0 * params["amt_score_0_1"],
    hps=rewards,
  )
  yield from case.check(
    "quality_components", _numbers([parts[n] for n in QUALITY]), host=True
  )
  yield from case.check("horizon", "long" if count > c.long_above else "short")


def control_maps(case: Case) -> Iterator[Check]:
  """Maps of control errors and of the preference reward (3.4, 4)."""
  for name, source, end in (
    ("translation_score", "translation", normalisation.TRANSLATION),
    ("rotation_score", "rotation", normalisation.ROTATION),
    ("hps_score", "reward", normalisation.PREFERENCE),
  ):
    yield from case.check(name, end.scores(case.read(source)), host=True)


def maps(case: Case) -> Iterator[Check]:
  """Maps of single leaves (9.1, 9.2)."""
  yield from case.check("score", _leaf_table(case), host=True)


def board(case: Case) -> Iterator[Check]:
  """Several models and cases through the whole aggregation (9)."""
  scores = _leaf_table(case)
  yield from case.check("case_leaf_scores", scores, host=True)
  cases = _board_cases(case, scores)
  owners = np.array(case.text("case_model"))
  settings: Mapping[str, Any] = case.params["models"]
  # The order of the model rows is an output: it says how to compare the rest.
  models = sorted(settings)
  yield from case.check("model_names", models)
  found = {}
  for c, variant in ((RELEASED, "released"), (PAPER, "paper")):
    for model in models:
      mine = [
        x for x, owner in zip(cases, owners, strict=True) if owner == model
      ]
      found[variant, model] = tiers.model_scores(
        mine, profile=settings[model]["control_profile"], c=c
      )
  rows = [found["released", model] for model in models]
  names = case.text("leaf_names")

  def table(part: str, columns: Sequence[str]) -> NDArray[np.float64]:
    return np.array(
      [_numbers([getattr(r, part)[k] for k in columns]) for r in rows]
    )

  yield from case.check("leaf_means", table("leaf_means", names), host=True)
  counts = [[r.leaf_counts[n] for n in names] for r in rows]
  yield from case.check("leaf_counts", counts, host=True)
  for name, part, columns in (
    ("T1_components", "control", CONTROL),
    ("T2_components", "quality", QUALITY),
    ("T3_parts", "preservation", ("return", "query", "identity")),
    ("T4_parts", "persistence", ("direct", "geometry")),
    ("T6_horizons", "temporal", ("short", "long")),
    ("tiers", "tiers", TIERS),
  ):
    yield from case.check(name, table(part, columns), host=True)
  overall = {m: found["released", m].overall for m in models}
  yield from case.check("overall", _numbers(list(overall.values())), host=True)
  groups = {model: settings[model]["group"] for model in models}
  scored = [{m: found["released", m].tiers[t] for m in models} for t in TIERS]
  ranks = [tiers.group_ranks(x, groups) for x in [*scored, overall]]
  yield from case.check(
    "ranks", [_numbers([r[m] for r in ranks]) for m in models], host=True
  )
  yield from case.check("row_order", tiers.row_order(overall, groups))
  paper = [found["paper", m].tiers["T1"] for m in models]
  yield from case.check("T1_paper", _numbers(paper), host=True)


def _control(case: Case) -> controls.Control:
  params = case.params
  return controls.measure_control(
    case.read("requested_c2w"),
    case.read("recovered_frames"),
    case.read("recovered_c2w"),
    template=params["template"],
    group=params["group"],
    frame_count=params["frame_count"],
    fps=float(params["fps"]),
    c=RELEASED,
    input_frame=params.get("event_q0", 0),
  )


def _control_curves(
  found: controls.Control, frame_count: int
) -> dict[str, list[float | None]]:
  """Window values before template exclusions."""
  samples = stability.control_samples(
    found, template="none", group="world", pure_yaw=False, c=RELEASED
  )
  bounds = schedules.windows(frame_count, fps=found.fps, c=RELEASED)
  return {
    name: stability.window_curve(part, bounds, c=RELEASED)
    for name, part in samples.items()
  }


def _indicators(case: Case, result: stability.Stability) -> Iterator[Check]:
  """Window values and level and retention of each stored indicator."""
  empty = [None] * len(result.bounds)
  for name in case.outputs():
    if name.startswith("window_"):
      # The vectors call the look indicator `turn`.
      key = name.removeprefix("window_").replace("turn", "look")
      curve = result.curves.get(key, empty)
      yield from case.check(name, _numbers(curve), bound=_SCORE_BOUND)
    elif name.startswith("LR_"):
      key = name.removeprefix("LR_").replace("turn", "look")
      pair = _pair(result.indicators.get(key))
      yield from case.check(name, pair, bound=_SCORE_BOUND)


def _leaf_table(case: Case) -> NDArray[np.float64]:
  names = case.text("leaf_names")
  raw = case.read("raw")
  columns = [
    normalisation.LEAVES[name].scores(raw[:, k]) for k, name in enumerate(names)
  ]
  return np.stack(columns, axis=1)


def _board_cases(
  case: Case, scores: NDArray[np.float64]
) -> list[tiers.CaseScores]:
  names = case.text("leaf_names")
  control_rows, quality_rows = case.read("control"), case.read("quality")
  temporal_scores = _optional(case.read("temporal"))
  is_long = case.read("is_long")
  same = case.read("same_pair_count")
  different = case.read("different_pair_count")
  return [
    tiers.CaseScores(
      leaves=dict(zip(names, _optional(scores[k]), strict=True)),
      control=dict(zip(CONTROL, _optional(control_rows[k]), strict=True)),
      quality=dict(zip(QUALITY, _optional(quality_rows[k]), strict=True)),
      temporal=temporal_scores[k],
      is_long=bool(is_long[k]),
      same_pairs=int(same[k]),
      different_pairs=int(different[k]),
    )
    for k in range(len(scores))
  ]


def _same_frames(
  case: Case, name: str, frames: NDArray[np.int64]
) -> Iterator[Check]:
  """An input that our schedule must reproduce before it can be used."""
  stored = case.read(name)
  yield Check(
    f"{case.case_id}/{name} (schedule)",
    "-",
    case.precision,
    bool(np.array_equal(stored, frames)),
    float("nan"),
    0.0,
    "our schedule differs from the stored frames",
  )


def _pair(pair: stability.LevelRetention | None) -> list[float]:
  return [np.nan, np.nan] if pair is None else [pair.level, pair.retention]


def _optional(values: NDArray[np.floating[Any]]) -> list[float | None]:
  return [float(v) if np.isfinite(v) else None for v in values]


def _numbers(values: Sequence[float | None]) -> list[float]:
  return [np.nan if value is None else float(value) for value in values]
