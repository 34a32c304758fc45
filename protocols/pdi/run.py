# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""The PDI protocol from inputs to `scores.csv`: what `bin.evaluate` calls."""

from __future__ import annotations

import dataclasses
import functools
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from protocols.common import outputs, runner
from protocols.common.records import OK, Record
from protocols.pdi import (
  aggregate,
  calibration,
  cases,
  figures,
  normalise,
  report,
  score,
)
from protocols.pdi.constants import PdiConstants, for_variant
from protocols.pdi.observe import PerceptionConfig

PROTOCOL = "pdi"


@dataclasses.dataclass(frozen=True)
class PdiInputs:
  """What to score; exactly one source is set.

  Attributes:
    clips: folder of clips.
    list_file: JSONL list.
    rgbd: recorded RGB-D folders.
    observations: folder of ready arrays.
    calibration_clips: clips for each built-in generator and category; 0 when
      another source is given.
    doses: also make the dose-response table.
    object_box: box of the object in frame 0 for sources that state none.
  """

  clips: pathlib.Path | None = None
  list_file: pathlib.Path | None = None
  rgbd: tuple[pathlib.Path, ...] = ()
  observations: pathlib.Path | None = None
  calibration_clips: int = 0
  doses: bool = False
  object_box: cases.Box | None = None


@dataclasses.dataclass(frozen=True)
class PdiConfig:
  """Everything that decides a PDI run.

  Attributes:
    variant: `paper` or `released`.
    inputs: what to score.
    perception: which backends fill the roles.
    reference_system: system of real clips that anchors the 0-100 score.
  """

  variant: str
  inputs: PdiInputs
  perception: PerceptionConfig
  reference_system: str = ""


def evaluate(config: PdiConfig, options: runner.RunOptions) -> runner.Outcome:
  """Scores every case, then writes totals, reports and pictures.

  Args:
    config: what to score and how.
    options: output folder, workers, resume.

  Returns:
    Text for the terminal and whether all totals could be shown.

  Raises:
    InputError: for unusable input or an output folder that cannot be used.
  """
  constants = for_variant(config.variant)
  found = load_cases(config, options)
  records = runner.run_cases(
    found,
    functools.partial(
      score.score_case, config=config.perception, constants=constants
    ),
    protocol=PROTOCOL,
    variant=config.variant,
    settings=result_settings(config, constants),
    options=options,
    on_record=functools.partial(report.write, output=options.output),
  )
  if len(records) < len(found) and options.num_shards > 1:
    text = f"shard done; {len(found) - len(records)} cases are with others"
    return runner.Outcome(text, complete=True)
  totals = write_totals(found, records, config, options)
  lines = [table(totals), f"results in {options.output}"]
  if config.inputs.doses:
    rows = calibration.dose_table(constants)
    calibration.write_doses(options.output, rows)
    lines.append(calibration.describe_doses(rows))
  complete = not any(e["refused"] for e in totals["systems"].values())
  return runner.Outcome("\n".join(lines), complete)


def load_cases(
  config: PdiConfig, options: runner.RunOptions
) -> list[cases.PdiCase]:
  """Cases of the chosen source, sorted; calibration clips are made first."""
  inputs = config.inputs
  if inputs.clips is not None:
    return cases.from_clips(inputs.clips, object_box=inputs.object_box)
  if inputs.list_file is not None:
    return cases.from_list(inputs.list_file)
  if inputs.rgbd:
    return cases.from_rgbd(inputs.rgbd, object_box=inputs.object_box)
  if inputs.observations is not None:
    return cases.from_observations(inputs.observations)
  root = options.output / "calibration"
  calibration.write_generators(
    root, clips_per_category=inputs.calibration_clips
  )
  return cases.from_observations(root)


def write_totals(
  found: Sequence[cases.PdiCase],
  records: Mapping[tuple[str, str], Record],
  config: PdiConfig,
  options: runner.RunOptions,
) -> dict[str, Any]:
  """Writes `scores.json`, `scores.csv`, `leaderboard.png`.

  Args:
    found: the manifest.
    records: records by (system, case id).
    config: variant and reference system.
    options: output folder and `allow_partial`.

  Returns:
    Result of `aggregate.leaderboard`.
  """
  constants = for_variant(config.variant)
  expected: dict[str, dict[str, str]] = {}
  for case in found:
    expected.setdefault(case.system, {})[case.case_id] = case.category
  rows = list(records.values())
  totals = aggregate.leaderboard(
    expected,
    rows,
    constants,
    anchors=_anchors(rows, config.reference_system),
    allow_partial=options.allow_partial,
    source=str(options.output),
  )
  outputs.write_json(
    options.output / "scores.json",
    {
      "protocol": PROTOCOL,
      "variant": config.variant,
      "lower_is_better": True,
      "reference_system": config.reference_system,
      **{key: totals[key] for key in ("systems", "ranking")},
      "cases": [_case_row(record) for record in rows],
    },
  )
  outputs.write_csv(
    options.output / "scores.csv", aggregate.COLUMNS, totals["table"]
  )
  figures.leaderboard(options.output / "leaderboard.png", totals, constants)
  return totals


def _anchors(
  records: Sequence[Record], reference_system: str
) -> Mapping[str, normalise.Anchor] | None:
  """Anchors of the 0-100 score; None where there is no fair reference."""
  scored = [record for record in records if record.status == OK]
  if reference_system:
    mine = [r for r in scored if r.system == reference_system]
    return normalise.anchors_from(
      {
        name: [v for r in mine if (v := r.values.get(name)) is not None]
        for name in normalise.COMPONENTS
      }
    )
  # The published anchors hold for the published perception stack alone.
  if scored and all(record.comparable_to_published for record in scored):
    return normalise.PUBLISHED_ANCHORS
  return None


def result_settings(
  config: PdiConfig, constants: PdiConstants
) -> dict[str, Any]:
  """What changes a record; the choice of inputs and totals does not."""
  perception = dataclasses.asdict(config.perception)
  perception.pop("cache")
  box = config.inputs.object_box
  return {
    "perception": perception,
    "object_box": list(box) if box else None,
    "constants": dataclasses.asdict(constants),
  }


def _case_row(record: Record) -> dict[str, Any]:
  return {
    "system": record.system,
    "case_id": record.case_id,
    "status": record.status,
    "reason": record.reason,
    "values": dict(record.values),
    "groups": dict(record.groups),
    "coverage": dict(record.coverage),
  }


def table(totals: Mapping[str, Any]) -> str:
  """The leaderboard as text: ranked systems, then those without totals."""
  lines = [
    f"{'system':<24} {'PDI':>8} {'95% interval':>19} {'median':>8}"
    f" {'scale':>8} {'traj':>8} {'rigid':>8}  coverage"
  ]
  systems = totals["systems"]
  unranked = [name for name in systems if name not in totals["ranking"]]
  for name in totals["ranking"]:
    entry = systems[name]
    group = entry["groups"][aggregate.ALL]
    interval = f"{group['pdi_mean_low']:.4f}-{group['pdi_mean_high']:.4f}"
    mark = "  PARTIAL" if entry["partial"] else ""
    lines.append(
      f"{name[:24]:<24} {group['pdi_mean']:8.4f} {interval:>19}"
      f" {group['pdi_median']:8.4f} {group['scale_mean']:8.4f}"
      f" {group['traj_mean']:8.4f} {group['rigid_mean']:8.4f}"
      f"  {entry['coverage']['text']}{mark}"
    )
  for name in unranked:
    lines.append(f"{name[:24]:<24} refused: {systems[name]['refused']}")
  comparable = all(e["comparable_to_published"] for e in systems.values())
  if not comparable:
    lines.append("not comparable with published tables (offline backends)")
  return "\n".join(lines)
