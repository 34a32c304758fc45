# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""EgoGenEval evidence as the long table, one row per step and metric.

Always there: `cmg`, `dir`, `gated` (null where the camera row is not valid),
`f1`, `spatial`, `integrity` (null in cases without a target). For studies
that name them:

  PILLAR@STRATUM, steps@STRATUM  specs/egogeneval.md section 7.3: the pillar
      (or `ssp`, the mean of three) of a step in the stratum, else 0, and 1 or
      0; the ratio of their sums is the mean over the stratum. Strata: `all`
      and those of `diagnostics.STRATA`.
  dir@FAMILY_BIN  section 7.2: direction flag of steps in the tertile.
  under@, near@, over@FAMILY_BIN  1 or 0 for those with the right direction.
  METRIC_k1 ... METRIC_k4  section 7.5: the metric at that number of input
      images. Cases are the roots that have every number that is named; a
      root without a target at one of them is masked at all.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np

from perception.errors import InputError
from protocols.egogeneval import (
  constants,
  diagnostics,
  evidence_files,
  scoring,
)
from protocols.statistics.table import Row

PILLARS = ("f1", "spatial", "integrity")
_CONTEXT = re.compile(r"__(?:single|multi)([1-4])$")
_AT_CONTEXT = re.compile(r"(.+)_k([1-4])$")
Values = dict[str, float | None]


def rows(
  systems: Sequence[evidence_files.SystemEvidence],
  *,
  limits: constants.Constants,
  wanted: Collection[str],
) -> Iterator[Row]:
  """Rows of all systems.

  Args:
    systems: evidence.
    limits: constants of the variant.
    wanted: metrics that the study names; decides what is added to those that
      are always there.

  Yields:
    Rows, in no particular order.

  Raises:
    InputError: if systems mask different cases, or no case has every number
      of input images that the metrics name.
  """
  mask = evidence_files.common_mask(systems)
  found: dict[tuple[str, str], Values] = {}
  for system in systems:
    for record_id, values in _steps(system, mask, limits, wanted):
      found.setdefault((system.name, record_id), {}).update(values)
  if any("@" in name for name in wanted):
    _add_bins(found, systems)
  numbers = {m[2] for name in wanted if (m := _AT_CONTEXT.match(name))}
  if numbers:
    yield from _by_context(found, numbers)
    return
  for (system_name, record_id), values in found.items():
    for metric, value in values.items():
      yield _row(system_name, record_id, metric, value)


def _steps(
  system: evidence_files.SystemEvidence,
  mask: Collection[str],
  limits: constants.Constants,
  wanted: Collection[str],
) -> Iterator[tuple[str, Values]]:
  cmg = scoring.score_cmg(system.cmg, limits)
  strata: dict[str, list[str]] = {}
  for i, camera in enumerate(system.cmg):
    score = float(cmg.score[i]) if cmg.valid[i] else None
    strata[camera.key.record_id] = diagnostics.strata_of(camera, score)
    columns = {"cmg": cmg.score, "dir": cmg.direction, "gated": cmg.gated}
    yield (
      camera.key.record_id,
      {
        metric: float(column[i]) if cmg.valid[i] else None
        for metric, column in columns.items()
      },
    )
  ssp = scoring.score_ssp(system.ssp, limits)
  number = {row.key.record_id: i for i, row in enumerate(system.ssp)}
  in_strata = any("@" in name for name in wanted)
  for record_id in system.ssp_ids:
    values: Values = dict.fromkeys(PILLARS)
    if _case(record_id) not in mask:
      i = number[record_id]
      parts = [
        float(column[i])
        for column in (ssp.presence, ssp.spatial, ssp.integrity)
      ]
      values = dict(zip(PILLARS, parts, strict=True))
      if in_strata:
        values |= _in_strata(parts, strata.get(record_id, []))
    yield record_id, values


def _in_strata(parts: Sequence[float], held: Collection[str]) -> Values:
  found: Values = {}
  for stratum in ("all", *diagnostics.STRATA):
    inside = stratum == "all" or stratum in held
    found[f"steps@{stratum}"] = float(inside)
    found[f"ssp@{stratum}"] = sum(parts) / 3.0 if inside else 0.0
    for name, value in zip(PILLARS, parts, strict=True):
      found[f"{name}@{stratum}"] = value if inside else 0.0
  return found


def _add_bins(
  found: Mapping[tuple[str, str], Values],
  systems: Sequence[evidence_files.SystemEvidence],
) -> None:
  for family, is_metre in diagnostics.FAMILIES.items():
    sizes = diagnostics.instructed_sizes(systems, is_metre=is_metre)
    if not sizes:
      continue
    edges = diagnostics.tertiles(sizes)
    for system in systems:
      for row in system.cmg:
        record_id = row.key.record_id
        if record_id not in sizes or not diagnostics.measured(row):
          continue
        place = int(np.searchsorted(edges, sizes[record_id], side="left"))
        name = f"{family}_{diagnostics.BINS[place]}"
        values = found[system.name, record_id]
        values[f"dir@{name}"] = row.direction
        if row.direction == 1.0:
          own = diagnostics.response(row)
          for kind in diagnostics.RESPONSES:
            values[f"{kind}@{name}"] = float(kind == own)


def _by_context(
  found: Mapping[tuple[str, str], Values], numbers: Collection[str]
) -> Iterator[Row]:
  """Rows of roots, the number of input images behind the metric's name."""
  roots: dict[str, set[str]] = {}
  masked: set[str] = set()
  for (_, record_id), values in found.items():
    case = _case(record_id)
    context = _CONTEXT.search(case)
    if context is None or context[1] not in numbers:
      continue
    root = case[: context.start()]
    roots.setdefault(root, set()).add(context[1])
    if values.get(PILLARS[0], 0.0) is None:
      masked.add(root)
  if not any(held == set(numbers) for held in roots.values()):
    raise InputError(
      "evidence",
      "case ids",
      found=f"no case at all of {', '.join(sorted(numbers))} input images",
      expected="base cases at every number that the study names",
    )
  for (system, record_id), values in found.items():
    case = _case(record_id)
    context = _CONTEXT.search(case)
    root = case[: context.start()] if context else ""
    if context is None or roots.get(root) != set(numbers):
      continue
    for metric, value in values.items():
      hidden = root in masked and metric in PILLARS
      yield _row(
        system,
        root + record_id[len(case) :],
        f"{metric}_k{context[1]}",
        None if hidden else value,
      )


def _case(record_id: str) -> str:
  return record_id.rpartition("__step")[0]


def _row(system: str, record_id: str, metric: str, value: float | None) -> Row:
  case, _, step = record_id.rpartition("__step")
  # Ids begin with dataset, scene, protocol and subtype (section 12.1).
  parts = [*case.split("__"), "", "", "", ""][:4]
  return Row(
    system=system,
    case=case,
    metric=metric,
    value=value,
    source=parts[0],
    scene=parts[1],
    protocol=parts[2],
    subtype=parts[3],
    step=int(step),
  )
