# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Studies of robustness: sources, weights, subsamples."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from kernels import bootstrap
from perception.errors import InputError
from protocols.statistics import cases as case_tables
from protocols.statistics import panels, plan, sampling
from protocols.statistics.cases import CaseTable
from protocols.statistics.config import Resampling, StudyConfig
from protocols.statistics.studies_resampled import Result, need_two
from protocols.statistics.table import StepTable


def sources_study(cases: CaseTable, study: StudyConfig) -> Result:
  """Rankings without each source, and within each source.

  Options: `target`; `column` (default `source`); `within_protocols`: the
  protocols of the within-source panels, for sources that lack others.
  Source: specs/egogeneval.md section 7.7.
  """
  need_two(cases)
  target, sign = sampling.main_target(study, cases.source_name)
  column = str(study.options.get("column", "source"))
  within = study.options.get("within_protocols")
  full = _panel(cases, study, target)
  groups = cases.groups[column]
  names = sorted(set(groups))
  if len(names) < 2:
    raise InputError(
      cases.source_name,
      f"column {column}",
      found=f"only {names[0]!r}",
      expected="at least two groups",
    )
  allowed = np.ones(len(groups), bool)
  if within:
    allowed = np.isin(cases.groups["protocol"], within)
  rows = []
  for name in names:
    parts = {"without": groups != name, "within": (groups == name) & allowed}
    for kind, keep in parts.items():
      rows.append(
        {
          column: name,
          "panel": kind,
          "cases": int(keep.sum()),
          **_compare(cases.keep_cases(keep), study, target, sign, full),
        }
      )
  return {"rows": rows, "target": target}


def _panel(cases: CaseTable, study: StudyConfig, target: str) -> np.ndarray:
  """[s] point scores of the target, float64."""
  planned = plan.build(cases, Resampling(), keep_protocols=False)
  names = [axis.name for axis in cases.axes]
  panel = sampling.panel(names, target, study)
  return np.asarray(panel(plan.point(planned)))


def _compare(
  cases: CaseTable,
  study: StudyConfig,
  target: str,
  sign: float,
  full: np.ndarray,
) -> dict[str, Any]:
  if not all(mask.any() for mask in cases.masks):
    return {"spearman": None, "kendall_tau_b": None, "top": None}
  scores = _panel(cases, study, target)
  rho, tau = panels.correlations(scores[None], full)
  return {
    "protocols": ", ".join(sorted(set(cases.groups["protocol"]))),
    "spearman": float(rho[0]),
    "kendall_tau_b": float(tau[0]),
    "top": cases.systems[int(np.argmax(sign * scores))],
  }


def weights_study(
  steps: StepTable, cases: CaseTable, study: StudyConfig
) -> Result:
  """Weights of the axes, and of the metrics within one axis.

  Options: `axes` ([first, second]; default: those of the overall score),
  `grid` (default 0, 0.05, ..., 1), `inner_range` (default [0.25, 0.75]),
  `pillars` (name of an axis with several metrics: Dirichlet weights and
  drop-one), `draws` (20,000). Source: specs/egogeneval.md section 7.7.
  """
  need_two(cases)
  names = [axis.name for axis in cases.axes]
  chosen = list(study.options.get("axes", list(study.overall)[:2]))
  if len(chosen) != 2 or not set(chosen) <= set(names):
    raise InputError(
      cases.source_name, "options.axes", found=chosen, expected="two axes"
    )
  grid = study.options.get("grid") or [k / 20 for k in range(21)]
  first, second = (_panel(cases, study, name) for name in chosen)
  rows: list[dict[str, Any]] = [
    {**row, "top": cases.systems[int(row["top"])]}
    for row in panels.lambda_sweep(first, second, grid)
  ]
  low, high = study.options.get("inner_range", (0.25, 0.75))
  inner = [r["spearman"] for r in rows if low <= r["lambda"] <= high]
  result: Result = {
    "rows": rows,
    "axes": chosen,
    "min_spearman_on_inner_range": min(inner) if inner else None,
  }
  pillars = study.options.get("pillars")
  if pillars:
    result["pillars"] = _pillars(steps, cases, study, str(pillars))
  return result


def _pillars(
  steps: StepTable, cases: CaseTable, study: StudyConfig, name: str
) -> Result:
  """Other weights of the metrics of one axis; the other axes stay."""
  axis = next((a for a in cases.axes if a.name == name), None)
  if axis is None or len(axis.metrics) < 2:
    raise InputError(
      cases.source_name,
      "options.pillars",
      found=name,
      expected="an axis with at least two metrics",
    )
  single = [
    dataclasses.replace(axis, name=metric, metrics=(metric,))
    for metric in axis.metrics
  ]
  # All pillars of an axis share its mask, whatever each of them scores.
  table = _masked_like(
    case_tables.from_steps(
      steps, dataclasses.replace(study, axes=tuple(single))
    ),
    cases,
    name,
  )
  parts = {a.name: _panel(table, study, a.name) for a in single}
  matrix = np.array(list(parts.values()))
  draws = int(study.options.get("draws", 20_000))
  weights = panels.dirichlet_weights(
    seed=study.seed, draws=draws, parts=len(parts)
  )
  drawn = weights @ matrix
  reference = matrix.mean(axis=0)
  rho, _ = panels.correlations(drawn, reference)
  top = np.argmax(drawn, axis=1) == np.argmax(reference)
  return {
    "axis": name,
    "draws": draws,
    "share_with_same_top": float(np.mean(top)),
    "spearman": panels.spread(rho),
    "drop_one": [
      {**row, "top": cases.systems[int(str(row["top"]))]}
      for row in panels.drop_one(parts)
    ],
  }


def _masked_like(table: CaseTable, cases: CaseTable, name: str) -> CaseTable:
  mask = cases.masks[cases.axis_number(name)]
  return table.keep_cases(mask)


def subsampling_study(cases: CaseTable, study: StudyConfig) -> Result:
  """Stability of the ranking under smaller sets of cases.

  Cases are drawn without replacement, a proportional number from each
  stratum, the same for all axes. `replicates` is the number per size.

  Options: `target`; `sizes` (default: tenths of all cases). Source:
  specs/egogeneval.md section 7.7.
  """
  need_two(cases)
  target, sign = sampling.main_target(study, cases.source_name)
  total = len(cases.cases)
  sizes = study.options.get("sizes") or [
    round(total * k / 10) for k in range(1, 11)
  ]
  rule = dataclasses.replace(study.resampling, unit="case", draws="shared")
  planned = plan.build(cases, rule, keep_protocols=False)
  names = [axis.name for axis in cases.axes]
  panel = sampling.panel(names, target, study)
  full = np.asarray(panel(plan.point(planned)))
  best = int(np.argmax(sign * full))
  rows = []
  for size in sizes:
    if not 1 <= size <= total:
      raise InputError(
        cases.source_name,
        "options.sizes",
        found=size,
        expected=f"sizes from 1 to {total}",
      )
    drawn = panel(_subsamples(planned, study, int(size)))
    good = np.isfinite(drawn).all(axis=1)
    kept = drawn[good]
    row: dict[str, Any] = {"size": size, "replicates": int(good.sum())}
    if len(kept):
      rho, _ = panels.correlations(kept, full)
      row |= {
        "median_spearman": float(np.nanmedian(rho)),
        "top_match": float(np.mean(np.argmax(sign * kept, axis=1) == best)),
        "mean_absolute_error": float(np.mean(np.abs(kept - full))),
      }
    rows.append(row)
  return {"rows": rows, "target": target, "full_size": total}


def quotas(sizes: np.ndarray, total: int) -> np.ndarray:
  """Splits a total over strata in proportion to their sizes.

  Largest remainders get the rest; equal remainders go to the first.

  Args:
    sizes: [h] sizes of the strata.
    total: number to split, at most their sum.

  Returns:
    [h] whole numbers with the given sum, none above its size.
  """
  shares = sizes * (total / sizes.sum())
  found = np.floor(shares).astype(np.int32)
  rest = total - int(found.sum())
  order = np.argsort(-(shares - found), kind="stable")
  found[order[:rest]] += 1
  return found


def _subsamples(
  planned: plan.Plan, study: StudyConfig, size: int
) -> np.ndarray:
  """[r, a, 1, s] scores of subsamples of one size."""
  stream = planned.streams[0]
  strata = np.bincount(stream.stratum)
  quota = quotas(strata, min(size, stream.num_units))[stream.stratum]
  dtype = jnp.dtype(study.dtype)
  with jax.enable_x64(study.dtype == "float64"):
    key = jax.random.fold_in(
      jax.random.key(study.seed, impl="threefry2x32"), size
    )
    tables = jax.tree.map(lambda x: jnp.asarray(x, dtype), planned.tables)
    stratum, quota = jnp.asarray(stream.stratum), jnp.asarray(quota)

    def one(number: Array) -> Array:
      counts = bootstrap.subsample(
        jax.random.fold_in(key, number), stratum, quota, dtype=dtype
      )
      return planned.finish((counts[:, None],), tables)[..., 0]

    numbers = jnp.arange(study.replicates, dtype=jnp.uint32)
    found = jax.jit(lambda n: jax.lax.map(one, n, batch_size=256))(numbers)
    return np.asarray(found)[..., planned.distinct]
