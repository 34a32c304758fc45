# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Replicates of a study and estimates made from them.

An estimand is a function of scores `[..., a, 1 + p, s]` (axes, then the axis
score followed by the protocol means, systems). The same function is applied
to the point scores, the replicates and the jackknife, in float64.
"""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Callable, Sequence

import numpy as np

from perception.errors import InputError
from protocols.common.progress import Progress
from protocols.statistics import checkpoint, engine, intervals, plan
from protocols.statistics.cases import CaseTable
from protocols.statistics.config import OVERALL, StudyConfig

Estimand = Callable[[np.ndarray], np.ndarray]


@dataclasses.dataclass(frozen=True)
class Runtime:
  """How to run, none of which changes a result.

  Attributes:
    batch: replicates per dispatch and device.
    checkpoint: folder for finished replicates, or None.
    checkpoint_every: replicates between checkpoints.
    show_progress: draw a bar, or log lines where there is no terminal.
  """

  batch: int = engine.DEFAULT_BATCH
  checkpoint: pathlib.Path | None = None
  checkpoint_every: int = 100_000
  show_progress: bool = False


@dataclasses.dataclass(frozen=True)
class Sampled:
  """Point scores and replicates.

  Attributes:
    systems: [s] names.
    axes: [a] names.
    protocols: [p] names; empty when only axis scores were kept.
    point: [a, 1 + p, s] float64.
    replicates: [r, a, 1 + p, s]; only those that hold every protocol.
    left_out: replicates that lacked a protocol.
    jackknife: per stratum, [n, a, 1 + p, s]; only for BCa intervals.
    method, level: how intervals are formed.
  """

  systems: tuple[str, ...]
  axes: tuple[str, ...]
  protocols: tuple[str, ...]
  point: np.ndarray
  replicates: np.ndarray
  left_out: int
  jackknife: tuple[np.ndarray, ...]
  method: str
  level: float

  def estimate(self, estimand: Estimand) -> dict[str, float]:
    """Point, mean, standard deviation and interval of a scalar estimand."""
    point = float(estimand(self.point))
    drawn = self.values(estimand)
    low, high = intervals.interval(
      drawn,
      point,
      method=self.method,
      level=self.level,
      jackknife=[
        np.asarray(estimand(part), np.float64) for part in self.jackknife
      ],
    )
    return {
      "point": point,
      "mean": float(np.mean(drawn)),
      "sd": float(np.std(drawn)),
      "low": float(low),
      "high": float(high),
    }

  def values(self, estimand: Estimand) -> np.ndarray:
    """[r, ...] an estimand of every replicate, float64."""
    return np.asarray(estimand(self.replicates), np.float64)


def sample(
  cases: CaseTable,
  study: StudyConfig,
  runtime: Runtime,
  *,
  label: str,
  keep_protocols: bool = False,
  fraction: float = 1.0,
) -> Sampled:
  """Draws the replicates of a study over a case table.

  Args:
    cases: the table.
    study: supplies resampling, replicates, seed, precision and intervals.
    runtime: batch, checkpoints and progress.
    label: names the draw in the progress bar and the checkpoint folder.
    keep_protocols: keep protocol means beside axis scores.
    fraction: share of each stratum's units that a replicate draws.

  Returns:
    The replicates.

  Raises:
    InputError: if a replicate lacks a protocol and the study refuses that,
      or if all do.
  """
  planned = plan.build(
    cases, study.resampling, keep_protocols=keep_protocols, fraction=fraction
  )
  drawn = draw(planned, study, runtime, label=label)
  keep = intervals.finite_replicates(drawn[:, :, 0])
  left_out = len(drawn) - int(np.count_nonzero(keep))
  refuse = study.resampling.missing_protocol == "refuse"
  if left_out == len(drawn) or (left_out and refuse):
    raise InputError(
      cases.source_name,
      f"replicates of {label}",
      found=f"{left_out} of {len(drawn)} without a case of some protocol",
      expected="every protocol in every replicate",
      hint='Set "missing_protocol" to "drop" or "renormalise", or stratify.',
    )
  bca = study.interval == "bca"
  return Sampled(
    systems=cases.systems,
    axes=tuple(axis.name for axis in cases.axes),
    protocols=planned.protocols,
    point=plan.point(planned),
    replicates=drawn[keep] if left_out else drawn,
    left_out=left_out,
    jackknife=tuple(plan.jackknife(planned)) if bca else (),
    method=study.interval,
    level=study.level,
  )


def draw(
  planned: plan.Plan, study: StudyConfig, runtime: Runtime, *, label: str
) -> np.ndarray:
  """[r, a, 1 + p, s] replicates of a plan, with checkpoints and progress."""
  store = None
  if runtime.checkpoint is not None:
    store = checkpoint.ReplicateStore(
      runtime.checkpoint / label,
      identity=checkpoint.fingerprint(
        planned, seed=study.seed, dtype=study.dtype
      ),
      every=runtime.checkpoint_every,
    )

  def run(advance: Callable[[int], None] | None) -> np.ndarray:
    return engine.run(
      planned,
      seed=study.seed,
      replicates=study.replicates,
      dtype=study.dtype,
      batch=runtime.batch,
      store=store,
      advance=advance,
    )

  if not runtime.show_progress:
    return run(None)
  with Progress(study.replicates, label=f"replicates {label}") as bar:
    return run(bar.advance)


def one_system(panel: Estimand, system: int) -> Estimand:
  """Estimand: the entry of one system in a panel."""
  return lambda scores: panel(scores)[..., system]


def protocol_mean(axis: int, protocol: int, system: int) -> Estimand:
  """Estimand: one protocol mean of one system."""
  return lambda scores: scores[..., axis, 1 + protocol, system]


def contrast(panel: Estimand, weights: np.ndarray) -> Estimand:
  """Estimand: weighted sum over systems.

  Systems are added one after another in float64, so that equal columns with
  opposite weights cancel exactly.
  """

  def value(scores: np.ndarray) -> np.ndarray:
    found = panel(scores)
    total = np.zeros(found.shape[:-1])
    for s in np.flatnonzero(weights):
      total = total + weights[s] * found[..., s].astype(np.float64)
    return total

  return value


def panel(names: Sequence[str], target: str, study: StudyConfig) -> Estimand:
  """Estimand: the target score of all systems, [..., s].

  Args:
    names: axis names of the scores.
    target: an axis, a score of the study, or `overall`.
    study: supplies the scores and the weights of the overall score.
  """
  if target in names:
    axis = list(names).index(target)
    return lambda scores: scores[..., axis, 0, :]
  if target == OVERALL:
    parts, weights = tuple(study.overall), tuple(study.overall.values())
  else:
    score = next(score for score in study.scores if score.name == target)
    parts = score.of
    weights = score.weights or (1.0 / len(parts),) * len(parts)
  below = [panel(names, part, study) for part in parts]

  def weighted(scores: np.ndarray) -> np.ndarray:
    # One part after another: no copy of all scores in float64.
    return np.asarray(
      sum(
        w * part(scores).astype(np.float64)
        for w, part in zip(weights, below, strict=True)
        if w
      )
    )

  return weighted


def targets(study: StudyConfig) -> list[str]:
  """Scores that a study reports: `options.targets`, or all that it forms.

  Raises:
    InputError: if `options.targets` names no score of the study.
  """
  known = _known(study)
  chosen = list(study.options.get("targets") or known)
  strangers = [name for name in chosen if name not in known]
  if strangers:
    raise InputError(
      "study", "options.targets", found=strangers, expected=f"some of {known}"
    )
  return chosen


def _known(study: StudyConfig) -> list[str]:
  return study.names + [OVERALL] * bool(study.overall)


def main_target(study: StudyConfig, source: str) -> tuple[str, float]:
  """The score that orders systems, and 1, or -1 where lower is better.

  Raises:
    InputError: if `options.target` is no score of the study.
  """
  known = _known(study)
  name = str(study.options.get("target", known[-1]))
  if name not in known:
    raise InputError(
      source,
      "options.target",
      found=f"{name}, which this study does not form",
      expected=f"one of {', '.join(known)}",
    )
  directions = {axis.name: axis.lower_is_better for axis in study.axes}
  return name, -1.0 if directions.get(name, False) else 1.0


def order_of(scores: np.ndarray, sign: float) -> np.ndarray:
  """System numbers from the best down; equal scores keep their order."""
  return np.argsort(-sign * scores, kind="stable")
