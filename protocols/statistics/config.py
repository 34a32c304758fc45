# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Studies as declarations: a JSON object that says what to measure.

Example:

  {"study": "ranking", "replicates": 2000, "seed": 20260619,
   "axes": [{"name": "cmg", "metrics": ["cmg"]},
            {"name": "ssp", "metrics": ["f1", "spatial", "integrity"],
             "worst_weight": 0.5}],
   "overall": {"cmg": 0.5, "ssp": 0.5},
   "resampling": {"unit": "case", "strata": "subtype", "draws": "independent"}}

Unknown fields are refused, so that a misspelt option cannot be ignored.
`options` holds what only one kind of study needs; that study checks it.
`"base": "NAME"` takes the fields that are not given from another of our
studies; those whose name begins with `_` are bases only.
"""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Mapping
from typing import Any

from perception.errors import InputError
from protocols.common import outputs
from protocols.statistics import intervals

STUDIES_FOLDER = pathlib.Path(__file__).parent / "studies"
STATISTICS = ("macro", "mean", "median", "quantile", "ratio")
UNITS = ("case", "scene")
STRATA = ("none", "subtype", "source", "protocol")
DRAWS = ("shared", "independent")
DTYPES = ("float32", "float64")
POLICIES = ("drop", "renormalise", "refuse")
MISSING = ("refuse", "own_cases")
OVERALL = "overall"


@dataclasses.dataclass(frozen=True)
class Axis:
  """One score of a system.

  Attributes:
    name: axis name.
    metrics: metrics of the table; the case value is their plain mean.
    worst_weight: w of the step rule `(1 - w) * mean + w * min`.
    statistic: `macro` (mean of protocol means), `mean` (over all cases),
      `median`, `quantile`, or `ratio` of two sums over cases.
    quantile: for `quantile`.
    denominator: metric below the line, for `ratio`.
    lower_is_better: direction, for rankings.
    missing: a case that some systems lack is an error (`refuse`), or every
      system is averaged over its own cases (`own_cases`).
  """

  name: str
  metrics: tuple[str, ...]
  worst_weight: float = 0.0
  statistic: str = "macro"
  quantile: float = 0.5
  denominator: str = ""
  lower_is_better: bool = False
  missing: str = "refuse"


@dataclasses.dataclass(frozen=True)
class Score:
  """A score made of axes and earlier scores, after these were averaged.

  Attributes:
    name: name of the score.
    of: what it is made of.
    weights: their weights; empty for the plain mean.
    needs: `all` of them, or `any`: the mean of those that are scored.
  """

  name: str
  of: tuple[str, ...]
  weights: tuple[float, ...] = ()
  needs: str = "all"


@dataclasses.dataclass(frozen=True)
class Resampling:
  """What is drawn.

  Attributes:
    unit: `case`, or `scene` for whole (source, scene) clusters.
    strata: column whose groups keep their number of units.
    draws: `shared` by all axes, or `independent` for each axis, which then
      draws from the cases that it scores.
    missing_protocol: replicates that lack a protocol are left out (`drop`),
      averaged over the others (`renormalise`), or an error (`refuse`).
  """

  unit: str = "case"
  strata: str = "none"
  draws: str = "shared"
  missing_protocol: str = "drop"


@dataclasses.dataclass(frozen=True)
class StudyConfig:
  """A whole study.

  Attributes:
    study: kind, a key of `studies.KINDS`.
    axes: scores to form.
    scores: scores made of axes, in order.
    overall: weight of each axis or score in the overall score; empty for
      none.
    resampling: how replicates are drawn.
    replicates: number of replicates.
    seed: seed of the draws.
    level: level of intervals.
    interval: `percentile`, `basic` or `bca`.
    dtype: precision of the replicates; totals are float64 in any case.
    systems: systems to use, in order; empty for all.
    protocols: protocols to use; empty for all.
    intersect: use the common cases when systems differ, and say so.
    pool_systems: take all systems as one, each step of each as a step.
    leave_out_unscored: leave out axes that some system has no case for, and
      the scores that need them, and say so; otherwise that is an error.
    options: what only this kind of study needs.
  """

  study: str
  axes: tuple[Axis, ...] = ()
  scores: tuple[Score, ...] = ()
  overall: Mapping[str, float] = dataclasses.field(default_factory=dict)
  resampling: Resampling = Resampling()
  replicates: int = 2000
  seed: int = 0
  level: float = 0.95
  interval: str = "percentile"
  dtype: str = "float32"
  systems: tuple[str, ...] = ()
  protocols: tuple[str, ...] = ()
  intersect: bool = False
  pool_systems: bool = False
  leave_out_unscored: bool = False
  options: Mapping[str, Any] = dataclasses.field(default_factory=dict)

  @property
  def names(self) -> list[str]:
    """Names of the axes and of the scores made of them."""
    axes, scores = (a.name for a in self.axes), (s.name for s in self.scores)
    return [*axes, *scores]

  @property
  def metrics(self) -> set[str]:
    """Metrics of the table that the axes read."""
    named = {m for a in self.axes for m in (*a.metrics, a.denominator)}
    return named - {""}


def load(name: str) -> StudyConfig:
  """Reads a study: a path to a JSON file, or the name of one of ours.

  Raises:
    InputError: naming the field that is wrong.
  """
  path = pathlib.Path(name)
  if path.suffix != ".json":
    path = STUDIES_FOLDER / f"{name}.json"
    if not path.exists():
      raise InputError(
        "--study",
        "value",
        found=name,
        expected=f"a JSON file, or one of {', '.join(builtin())}",
      )
  return parse(_with_base(path), source=str(path))


def _with_base(path: pathlib.Path) -> dict[str, Any]:
  """The fields of a study file, over those of its base."""
  content = dict(outputs.read_json(path))
  base = content.pop("base", None)
  if base is None:
    return content
  under = STUDIES_FOLDER / f"{base}.json"
  if under.parent != STUDIES_FOLDER or under == path or not under.exists():
    raise InputError(
      path, "base", found=base, expected="the name of one of our studies"
    )
  return {**_with_base(under), **content}


def builtin() -> list[str]:
  """Names of the studies that come with the package."""
  return sorted(
    path.stem
    for path in STUDIES_FOLDER.glob("*.json")
    if not path.stem.startswith("_")
  )


def parse(content: Mapping[str, Any], *, source: str) -> StudyConfig:
  """Checks a JSON object and makes it a `StudyConfig`.

  Args:
    content: the object.
    source: file name, for the error text.

  Raises:
    InputError: naming the field that is wrong.
  """
  values = dict(content)
  values.pop("about", None)
  axes, scores = (
    tuple(
      _build(kind, entry, source, f"{name}[{number}]")
      for number, entry in enumerate(_list(values.pop(name, []), source, name))
    )
    for name, kind in (("axes", Axis), ("scores", Score))
  )
  resampling = _build(
    Resampling, values.pop("resampling", {}), source, "resampling"
  )
  study = _build(StudyConfig, values, source, "study")
  study = dataclasses.replace(
    study, axes=axes, scores=scores, resampling=resampling
  )
  check(study, source=source)
  return study


def _list(value: Any, source: str, field: str) -> list[Any]:
  if not isinstance(value, list):
    raise InputError(source, field, found=repr(value), expected="a list")
  return value


def _build(kind: type[Any], content: Any, source: str, field: str) -> Any:
  if not isinstance(content, Mapping):
    raise InputError(source, field, found=repr(content), expected="an object")
  known = {entry.name: entry for entry in dataclasses.fields(kind)}
  for name, value in content.items():
    if name not in known:
      raise InputError(
        source,
        f"{field}.{name}",
        found="a field that no version knows",
        expected=f"fields among {', '.join(known)}",
      )
    wanted = str(known[name].type)
    if not _has_type(value, wanted):
      raise InputError(
        source, f"{field}.{name}", found=repr(value), expected=wanted
      )
  values = {
    name: tuple(value) if isinstance(value, list) else value
    for name, value in content.items()
  }
  try:
    return kind(**values)
  except TypeError as error:
    raise InputError(
      source, field, found=error, expected="all required fields"
    ) from error


def _has_type(value: Any, wanted: str) -> bool:
  if wanted == "float":
    return isinstance(value, int | float) and not isinstance(value, bool)
  if wanted == "int":
    return isinstance(value, int) and not isinstance(value, bool)
  if wanted.startswith("tuple["):
    inner = wanted.removeprefix("tuple[").split(",")[0]
    return isinstance(value, list | tuple) and all(
      _has_type(entry, inner) for entry in value
    )
  kinds = {"str": str, "bool": bool, "Mapping": Mapping}
  wanted = wanted.split("[")[0]
  return isinstance(value, kinds[wanted]) if wanted in kinds else True


def check(study: StudyConfig, *, source: str) -> None:
  """Checks bounds and cross references.

  Raises:
    InputError: naming the field that is wrong.
  """
  rules: list[tuple[str, Any, bool, str]] = [
    ("replicates", study.replicates, study.replicates >= 1, "at least 1"),
    ("seed", study.seed, 0 <= study.seed < 2**32, "0 to 2**32 - 1"),
    ("level", study.level, 0 < study.level < 1, "between 0 and 1"),
    _one_of("interval", study.interval, intervals.METHODS),
    _one_of("dtype", study.dtype, DTYPES),
    _one_of("resampling.unit", study.resampling.unit, UNITS),
    _one_of("resampling.strata", study.resampling.strata, STRATA),
    _one_of("resampling.draws", study.resampling.draws, DRAWS),
    _one_of(
      "resampling.missing_protocol",
      study.resampling.missing_protocol,
      POLICIES,
    ),
  ]
  names = study.names
  different = len({*names, OVERALL}) == len(names) + 1
  rules.append(("axes, scores", names, different, "different names"))
  for number, score in enumerate(study.scores, len(study.axes)):
    strangers = sorted(set(score.of) - set(names[:number]))
    weights = not score.weights or len(score.weights) == len(score.of)
    field = f"scores.{score.name}"
    rules += [
      (f"{field}.of", score.of, bool(score.of), "some axis"),
      (f"{field}.of", strangers, not strangers, "axes and earlier scores"),
      (f"{field}.weights", score.weights, weights, "one for each part"),
      _one_of(f"{field}.needs", score.needs, ("all", "any")),
    ]
  for axis in study.axes:
    field = f"axes.{axis.name}"
    is_ratio = axis.statistic == "ratio"
    rules += [
      _one_of(f"{field}.statistic", axis.statistic, STATISTICS),
      _one_of(f"{field}.missing", axis.missing, MISSING),
      (f"{field}.metrics", axis.metrics, bool(axis.metrics), "some metric"),
      (
        f"{field}.worst_weight",
        axis.worst_weight,
        0 <= axis.worst_weight <= 1,
        "0 to 1",
      ),
      (f"{field}.quantile", axis.quantile, 0 <= axis.quantile <= 1, "0 to 1"),
      (
        f"{field}.denominator",
        axis.denominator,
        is_ratio == bool(axis.denominator),
        "a metric for `ratio`, and only there",
      ),
    ]
  unknown = sorted(set(study.overall) - set(names))
  rules.append(("overall", unknown, not unknown, f"scores among {names}"))
  for field, found, good, expected in rules:
    if not good:
      raise InputError(source, field, found=repr(found), expected=expected)


def _one_of(
  field: str, value: str, allowed: tuple[str, ...]
) -> tuple[str, Any, bool, str]:
  return (field, value, value in allowed, f"one of {', '.join(allowed)}")
