# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Golden study: point scores, given draws, case and scene bootstraps."""

from __future__ import annotations

import dataclasses
import itertools
import pathlib
from collections.abc import Iterator, Mapping, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from kernels import bootstrap
from protocols.common import conformance
from protocols.common.conformance import Check
from protocols.statistics import engine, golden, intervals, plan
from protocols.statistics.cases import CaseTable
from protocols.statistics.config import Axis, Resampling
from protocols.statistics.golden import VARIANT, Golden
from protocols.statistics.plan import Plan

PILLARS = ("f1", "spatial", "integrity")
CASES = Resampling(unit="case", strata="subtype", draws="independent")
SCENES = Resampling(unit="scene", strata="source", draws="shared")
SEED = 20260619
STANDARD_ERRORS = 4.0
# Times the replicates of the reference: our own scatter then hardly adds to
# that of the reference, and no verdict hangs on our seed.
REPLICATE_FACTOR = 5
# Columns of study.npz that no score depends on.
_DESCRIPTIVE = ("num_context", "steps", "masked")


@dataclasses.dataclass(frozen=True)
class Scores:
  """Replicates (or one point, without the first axis) of a study.

  Attributes:
    cmg, ssp, overall: [r, s].
    protocols: by axis, [r, s, p].
  """

  cmg: np.ndarray
  ssp: np.ndarray
  overall: np.ndarray
  protocols: Mapping[str, np.ndarray]


def checks(folder: pathlib.Path, *, precision: str) -> Iterator[Check]:
  """Checks `study.npz`, `reference.json` and `deterministic.npz`."""
  study = golden.read_npz(folder / "study.npz", precision=precision)
  cases = case_table(study)
  pose_free = ~study.array("pose_conditioned")
  yield from study.rest()
  yield from given_draws(
    golden.read_npz(folder / "deterministic.npz", precision=precision), cases
  )
  yield from _reference(
    golden.read_json(folder / "reference.json", precision=precision),
    cases,
    pose_free,
  )


def case_table(study: Golden) -> CaseTable:
  """The case table of a golden study: CMG, SSP and the pillars of SSP."""
  pillars = [study.array(name) for name in PILLARS]
  # SSP of a case is the mean of its pillars; masked cases are NaN.
  values = np.stack([study.array("cmg"), np.mean(pillars, axis=0), *pillars])
  for name in _DESCRIPTIVE:
    study.take(name)
  number = values.shape[-1]
  return CaseTable(
    source_name="study.npz",
    axes=tuple(Axis(name, (name,)) for name in ("cmg", "ssp", *PILLARS)),
    systems=tuple(str(name) for name in study.array("system")),
    cases=tuple(f"{row:06d}" for row in range(number)),
    groups={
      "scene": np.array([f"{s:06d}" for s in study.array("scene")]),
      "source": study.array("dataset"),
      "subtype": study.array("subtype"),
      "protocol": study.array("protocol"),
    },
    values=values,
    weights=np.isfinite(values).astype(np.float64),
  )


def scores(values: np.ndarray) -> Scores:
  """Engine output [..., a, 1 + p, s] by name; Overall is the mean of two."""
  cmg, ssp = values[..., 0, 0, :], values[..., 1, 0, :]
  by_axis = {
    name: np.moveaxis(values[..., a, 1:, :], -2, -1)
    for a, name in enumerate(("cmg", "ssp", *PILLARS))
    if a < values.shape[-3]
  }
  return Scores(cmg, ssp, (cmg + ssp) / 2, by_axis)


def _replay(
  planned: Plan, counts: Sequence[np.ndarray], *, precision: str
) -> Scores:
  """Scores of replicates whose unit counts are given: per stream, [r, n]."""
  tables = jax.tree.map(lambda x: jnp.asarray(x, precision), planned.tables)
  found = jax.jit(planned.finish)(
    tuple(jnp.asarray(c.T, precision) for c in counts), tables
  )
  return scores(np.moveaxis(np.asarray(found), -1, 0)[..., planned.distinct])


def given_draws(g: Golden, cases: CaseTable) -> Iterator[Check]:
  """Given draws give the given replicates."""
  planned = plan.build(cases, CASES, keep_protocols=True)
  counter = jax.jit(
    jax.vmap(
      lambda rows: bootstrap.counts_of_draws(
        rows, num_units=len(cases.cases), dtype=jnp.dtype(g.precision)
      )
    )
  )
  per_axis = {
    name: np.asarray(counter(g.array(f"{name}_case_index").astype(np.int32)))
    for name in ("cmg", "ssp")
  }
  # The pillars share the draws of SSP.
  counts = [
    plan.unit_counts(s, per_axis["cmg" if s.axes[0] == 0 else "ssp"])
    for s in planned.streams
  ]
  found = _replay(planned, counts, precision=g.precision)
  yield g.check("cmg_protocol", found.protocols["cmg"])
  yield g.check("ssp_protocol", found.protocols["ssp"])
  yield g.check(
    "pillar_protocol",
    np.stack([found.protocols[name] for name in PILLARS], axis=-1),
  )
  yield g.check("overall", found.overall)
  overall = found.overall
  yield g.check(
    "ci95_of_these_overall",
    intervals.interval(overall, np.nan, method="percentile", level=0.95),
  )
  order = ranking(scores(plan.point(planned)).overall)
  yield g.check("p_flip_all_rows", _flips(overall, order), tolerance=0.0)
  first = overall[:, order[0]]
  yield g.check("p_flip_self", [intervals.p_flip(first, first)], tolerance=0.0)
  yield from _given_scenes(g, cases)
  yield from g.rest()


def _given_scenes(g: Golden, cases: CaseTable) -> Iterator[Check]:
  planned = plan.build(cases, SCENES, keep_protocols=True)
  scene = [int(unit[-1]) for unit in planned.streams[0].units]
  counts = g.array("scene_multiplicity")[:, scene]
  found = _replay(planned, [counts], precision=g.precision)
  yield g.check("scene_cmg_protocol", found.protocols["cmg"])
  yield g.check("scene_ssp_protocol", found.protocols["ssp"])
  yield g.check("scene_overall", found.overall)
  name = "scene_multiplicity_without_chain"
  if name in g.below(""):
    lacking = g.array(name)[None, scene]
    alone = _replay(planned, [lacking], precision=g.precision)
    chain = planned.protocols.index("chain")
    yield conformance.equal(
      f"{g.name}/{name}/absent protocol and scores are not numbers",
      (
        bool(np.isnan(alone.protocols["cmg"][..., chain]).all()),
        bool(np.isnan(alone.overall).all()),
      ),
      (True, True),
      variant=VARIANT,
      precision=g.precision,
    )
    rule = dataclasses.replace(SCENES, missing_protocol="renormalise")
    other = plan.build(cases, rule, keep_protocols=True)
    mean = _replay(other, [lacking], precision=g.precision)
    yield conformance.compare(
      f"{g.name}/{name}/renormalised over the protocols that are present",
      mean.cmg,
      np.nanmean(np.asarray(mean.protocols["cmg"], np.float64), axis=-1),
      variant=VARIANT,
      precision=g.precision,
      tolerance=g.tolerance,
    )


def _reference(
  g: Golden, cases: CaseTable, pose_free: np.ndarray
) -> Iterator[Check]:
  cases = dataclasses.replace(
    cases,
    axes=cases.axes[:2],
    values=cases.values[:2],
    weights=cases.weights[:2],
  )
  for name, rule in (("case_bootstrap", CASES), ("scene_bootstrap", SCENES)):
    planned = plan.build(cases, rule, keep_protocols=True)
    point = scores(plan.point(planned))
    if rule is CASES:
      yield from _point(g, point)
    drawn = engine.run(
      planned,
      seed=SEED,
      replicates=REPLICATE_FACTOR * int(g.array(f"{name}/replicates")),
      dtype=g.precision,
      batch=engine.DEFAULT_BATCH,
      store=None,
      advance=None,
    )
    yield from _bootstrap(
      g, name, scores(drawn.astype(np.float64)), point, pose_free
    )
  yield from g.rest()


def _point(g: Golden, point: Scores) -> Iterator[Check]:
  # Points are float64 in any precision.
  for axis in ("cmg", "ssp"):
    yield g.check(
      f"point/{axis}_protocol", point.protocols[axis], tolerance=1e-12
    )
  for axis in ("cmg", "ssp", "overall"):
    yield g.check(f"point/{axis}", getattr(point, axis), tolerance=1e-12)


def _bootstrap(
  g: Golden,
  name: str,
  drawn: Scores,
  point: Scores,
  pose_free: np.ndarray,
) -> Iterator[Check]:
  """Everything that stands under one kind of bootstrap."""
  scale = _scale(g, name, len(drawn.cmg))
  for axis in ("cmg", "ssp", "overall"):
    yield from _distribution(g, f"{name}/{axis}", getattr(drawn, axis), scale)
    path = f"{name}/{axis}_protocol"
    if g.below(path):
      yield from _distribution(g, path, drawn.protocols[axis], scale)
  chosen = {
    "p_flip_all_rows": np.arange(len(pose_free)),
    "p_flip_pose_free": np.flatnonzero(pose_free),
  }
  for kind, rows in chosen.items():
    path = f"{name}/{kind}"
    if g.below(path):
      order = rows[ranking(point.overall[rows])]
      yield g.same(f"{path}/order", order.tolist())
      error = g.array(f"{path}/unit_error") * scale
      yield g.within_errors(
        f"{path}/p_flip",
        _flips(drawn.overall, order),
        error,
        limit=STANDARD_ERRORS,
      )
  if "median_half_width_overall" in g.below(name):
    yield from _half_width(g, name, drawn, scale)
  if g.below(f"{name}/one_sided"):
    yield from _one_sided(g, f"{name}/one_sided", drawn, scale)
  for pair in g.below(f"{name}/paired_differences"):
    yield from _pair(
      g, f"{name}/paired_differences/{pair}", drawn, point, scale
    )
  if g.below(f"{name}/temporal_gap"):
    path = f"{name}/temporal_gap"
    yield g.check(f"{path}/point", _gap(point, pose_free), tolerance=1e-12)
    yield from _distribution(g, path, _gap(drawn, pose_free), scale)


def _scale(g: Golden, name: str, replicates: int) -> float:
  reference = int(g.array(f"{name}/replicates"))
  return float(np.sqrt(1.0 / replicates + 1.0 / reference))


def _distribution(
  g: Golden, path: str, values: np.ndarray, scale: float
) -> Iterator[Check]:
  """Mean, standard deviation and interval ends of [r, ...] replicates."""
  low, high = intervals.interval(
    values, np.nan, method="percentile", level=0.95
  )
  found = {"mean": np.mean(values, axis=0), "ci_low": low, "ci_high": high}
  for key, value in found.items():
    error = g.array(f"{path}/unit_error_{key}") * scale
    yield g.within_errors(f"{path}/{key}", value, error, limit=STANDARD_ERRORS)
  spread = np.std(values, axis=0)
  fourth = np.mean((values - found["mean"]) ** 4, axis=0)
  unit = np.sqrt(np.maximum(fourth - spread**4, 0.0)) / (2.0 * spread)
  yield g.within_errors(
    f"{path}/sd", spread, unit * scale, limit=STANDARD_ERRORS
  )


def _half_width(
  g: Golden, name: str, drawn: Scores, scale: float
) -> Iterator[Check]:
  low, high = intervals.interval(
    drawn.overall, np.nan, method="percentile", level=0.95
  )
  # The median's own error is below that of a typical half width.
  ends = [
    np.median(g.array(f"{name}/overall/unit_error_ci_{end}"))
    for end in ("low", "high")
  ]
  error = scale * float(np.hypot(*ends)) / 2.0
  yield g.within_errors(
    f"{name}/median_half_width_overall",
    np.median((high - low) / 2.0),
    error,
    limit=STANDARD_ERRORS,
  )


def _one_sided(
  g: Golden, path: str, drawn: Scores, scale: float
) -> Iterator[Check]:
  a, b = int(g.array(f"{path}/a")), int(g.array(f"{path}/b"))
  p = float(g.array(f"{path}/p"))
  unit = max(np.sqrt(p * (1 - p)), np.sqrt(1 / len(drawn.overall)))
  found = np.mean(drawn.overall[:, b] - drawn.overall[:, a] >= 0)
  yield g.within_errors(f"{path}/p", found, unit * scale, limit=STANDARD_ERRORS)


def _pair(
  g: Golden, path: str, drawn: Scores, point: Scores, scale: float
) -> Iterator[Check]:
  a, b = (int(part) for part in path.rsplit("/", 1)[1].split(","))
  for axis in ("overall", "cmg", "ssp", "cmg_minus_ssp"):
    yield from _distribution(
      g, f"{path}/{axis}", _difference(drawn, axis, a, b), scale
    )
    if axis in g.below(f"{path}/point"):
      yield g.check(
        f"{path}/point/{axis}",
        _difference(point, axis, a, b),
        tolerance=1e-12,
      )


def _difference(values: Scores, axis: str, a: int, b: int) -> np.ndarray:
  if axis == "cmg_minus_ssp":
    return _difference(values, "cmg", a, b) - _difference(values, "ssp", a, b)
  found = getattr(values, axis)
  return np.asarray(found[..., a] - found[..., b])


def _gap(values: Scores, pose_free: np.ndarray) -> np.ndarray:
  """Section 7.6: drop from atomic (0) to chain (1), SSP minus CMG."""
  drop = {
    axis: (values.protocols[axis][..., 0] - values.protocols[axis][..., 1])[
      ..., pose_free
    ]
    for axis in ("cmg", "ssp")
  }
  return np.asarray(np.mean(drop["ssp"] - drop["cmg"], axis=-1))


def ranking(overall: np.ndarray) -> np.ndarray:
  """Rows from the highest score down; equal scores keep their order."""
  return np.argsort(-overall, kind="stable")


def _flips(overall: np.ndarray, order: np.ndarray) -> list[float]:
  return [
    intervals.p_flip(overall[:, upper], overall[:, lower])
    for upper, lower in itertools.pairwise(order)
  ]
