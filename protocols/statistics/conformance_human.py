# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Golden human study: system level, item level, reannotation."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator, Mapping

import numpy as np

from protocols.common.conformance import Check
from protocols.statistics import golden, human, human_panel, intervals
from protocols.statistics.config import Axis, StudyConfig
from protocols.statistics.golden import Golden
from protocols.statistics.table import StepTable

AXES: Mapping[str, Axis] = {
  "cmg": Axis("cmg", ("cmg",)),
  "ssp": Axis("ssp", ("f1", "spatial", "integrity"), worst_weight=0.5),
}
_STUDY = StudyConfig(study="human")
_SEED = 20260619
_STANDARD_ERRORS = 4.0


def checks(folder: pathlib.Path, *, precision: str) -> Iterator[Check]:
  """Checks `human.json` against the data of `human.npz`."""
  data = golden.read_npz(folder / "human.npz", precision=precision)
  g = golden.read_json(folder / "human.json", precision=precision)
  steps = step_table(data)
  pairs = {}
  for name, axis in AXES.items():
    pairs[name] = human_panel.system_level(steps, axis, _STUDY)
    yield from _system(g, name, *pairs[name])
    yield from _item(g, name, steps)
    yield from _all_steps(g, name, data)
    yield from _reannotation(g, name, data)
  means = [(pairs["cmg"][i] + pairs["ssp"][i]) / 2.0 for i in (0, 1)]
  yield from _system(g, "overall", *means)
  yield from _counts(g, steps, data)
  yield from data.rest()
  yield from g.rest()


def step_table(data: Golden) -> StepTable:
  """Automatic scores and the utilities of the first group of annotators."""
  case = data.array("step_case").astype(np.int32)
  masked = data.array("case_masked")[case]
  values = {"cmg": data.array("cmg_auto").T}
  for name, pillar in zip(
    AXES["ssp"].metrics, data.array("ssp_pillars_auto"), strict=True
  ):
    values[name] = np.where(masked, np.nan, pillar.T)
  number = len(data.array("case_protocol"))
  empty = np.full(number, "")
  steps = StepTable(
    source_name="human.npz",
    systems=tuple(f"system{s}" for s in range(len(values["cmg"]))),
    cases=tuple(f"{c:06d}" for c in range(number)),
    groups={
      "scene": np.array([f"{c:06d}" for c in range(number)]),
      "source": empty,
      "subtype": empty,
      "protocol": data.array("case_protocol"),
    },
    case_of_step=case,
    step=data.array("step_index").astype(np.int32),
    values=values,
    present={name: np.ones(v.shape, bool) for name, v in values.items()},
  )
  for name, axis in AXES.items():
    mean = human.utilities(data.array(f"{name}_rank")[0]).mean(axis=0)
    steps = human_panel.add_human(steps, axis, mean.T)
  return steps


def _system(
  g: Golden, axis: str, automatic: np.ndarray, people: np.ndarray
) -> Iterator[Check]:
  agreement = human.rank_agreement(automatic, people)
  path = f"system/{axis}"
  yield g.check(f"{path}/auto", automatic)
  yield g.check(f"{path}/human", people)
  for name in g.below(path):
    if name not in ("auto", "human"):
      yield g.check(f"{path}/{name}", getattr(agreement, name, None))


def _item(g: Golden, axis: str, steps: StepTable) -> Iterator[Check]:
  found = human_panel.item_level(steps, AXES[axis])
  path = f"item/{axis}"
  # Steps without any human pair are those that the axis masks.
  masked = int((found.pairs == 0).sum())
  yield g.check(f"{path}/mean_spearman", found.mean_spearman)
  yield g.check(f"{path}/undefined_steps", found.undefined - masked)
  for name in ("pairwise", "pairwise_masked"):
    if g.below(f"{path}/{name}"):
      yield from _pairs(g, f"{path}/{name}", found)
  base = f"{path}/cluster_bootstrap"
  replicates = int(g.array(f"{base}/replicates"))
  drawn = human_panel.bootstrap_items(
    steps, found, seed=_SEED, replicates=replicates, dtype="float64"
  )
  clusters = np.unique(steps.case_of_step[np.isfinite(found.spearman)]).size
  yield g.check(f"{base}/clusters", clusters)
  low, high = intervals.interval(drawn, np.nan, method="percentile", level=0.95)
  scale = np.sqrt(2.0 / replicates)
  for name, value in {
    "mean": drawn.mean(),
    "ci_low": low,
    "ci_high": high,
  }.items():
    error = g.array(f"{base}/unit_error_{name}") * scale
    yield g.within_errors(
      f"{base}/{name}", value, error, limit=_STANDARD_ERRORS
    )
  error = drawn.std() / np.sqrt(2.0) * scale
  yield g.within_errors(
    f"{base}/sd", drawn.std(), error, limit=_STANDARD_ERRORS
  )


def _pairs(g: Golden, path: str, found: human.ItemAgreement) -> Iterator[Check]:
  yield g.check(f"{path}/pooled", found.pooled_agreement)
  yield g.check(f"{path}/pairs", found.pairs.sum(), tolerance=0.0)
  yield g.check(f"{path}/mean_of_steps", found.mean_agreement)


def _all_steps(g: Golden, axis: str, data: Golden) -> Iterator[Check]:
  """Pairwise agreement over masked steps as well."""
  path = f"item/{axis}/pairwise_all_steps"
  if g.below(path):
    mean = human.utilities(data.array(f"{axis}_rank")[0]).mean(axis=0)
    automatic = data.array("ssp_pillars_auto").mean(axis=0)
    yield from _pairs(g, path, human.item_agreement(automatic, mean))


def _reannotation(g: Golden, axis: str, data: Golden) -> Iterator[Check]:
  chosen = data.array("reannotated_step")
  rank = data.array(f"{axis}_rank")[:, :, chosen]
  path = f"reannotation/{axis}"
  for suffix, ratings in (
    ("", human.utilities(rank[1])),
    ("_on_ranks", rank[1]),
  ):
    found = human.icc(ratings)
    yield g.check(f"{path}/icc_a1{suffix}", float(found.a1))
    yield g.check(f"{path}/icc_a3{suffix}", float(found.ak))
    if not suffix:
      yield g.check(f"{path}/rows", int(found.rows))
      yield g.check(f"{path}/mean_squares/msr", float(found.ms_rows))
      yield g.check(f"{path}/mean_squares/msc", float(found.ms_raters))
      yield g.check(f"{path}/mean_squares/mse", float(found.ms_residual))
  groups = human.utilities(rank).mean(axis=(1, 2))
  yield g.check(f"{path}/system_mean_group_a", groups[0])
  yield g.check(f"{path}/system_mean_group_b", groups[1])
  across = human.rank_agreement(groups[0], groups[1])
  yield g.check(f"{path}/cross_group_spearman", across.spearman)


def _counts(g: Golden, steps: StepTable, data: Golden) -> Iterator[Check]:
  scored = np.isfinite(steps.values["f1"]).all(axis=0)
  found = {
    "cases": len(steps.cases),
    "steps": len(steps.step),
    "ssp_steps": int(scored.sum()),
    "ssp_cases": len(np.unique(steps.case_of_step[scored])),
    "reannotated_steps": int(data.array("reannotated_step").sum()),
  }
  for name, value in found.items():
    yield g.same(f"counts/{name}", value)
