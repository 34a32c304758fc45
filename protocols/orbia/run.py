# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""The Orbia protocol from inputs to `scores.csv`: what `bin.evaluate` calls."""

from __future__ import annotations

import dataclasses
import functools
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from perception.errors import InputError
from protocols.common import outputs, runner, store
from protocols.common.records import OK, Record
from protocols.orbia import aggregate, builtin, generated, score
from protocols.orbia.constants import TEMPLATES, TIERS, constants
from protocols.orbia.dataset import PublicCase, read_dataset
from protocols.orbia.generated import OrbiaCase
from protocols.orbia.perceive import PerceptionConfig

PROTOCOL = score.PROTOCOL


@dataclasses.dataclass(frozen=True)
class OrbiaInputs:
  """What to score; see `load_cases`.

  Attributes:
    dataset: data set in the published layout.
    videos: folder `<model>/<case_id>.mp4` or `<case_id>.mp4`.
    list_file: `videos.jsonl`.
    rgbd: recorded RGB-D folder from which cases and baselines are made.
    calibrate: with `rgbd`, estimate its colour camera and poses first.
    calibration: make ray-cast cases and generators with known defects.
    frame_count: of the ray-cast cases, 357 or 961.
    limit: largest number of built cases; 0 = all.
    group: group of the models of a folder.
    profile: control profile of the models of a folder.
  """

  dataset: pathlib.Path | None = None
  videos: pathlib.Path | None = None
  list_file: pathlib.Path | None = None
  rgbd: pathlib.Path | None = None
  calibrate: bool = False
  calibration: bool = False
  frame_count: int = 357
  limit: int = 0
  group: str = "world"
  profile: str = "pose_and_action"


@dataclasses.dataclass(frozen=True)
class OrbiaConfig:
  """Everything that decides an Orbia run.

  Attributes:
    variant: `paper` or `released`.
    inputs: what to score.
    perception: which backends fill the roles.
    tiers: tiers to measure; those that a record already holds stay.
  """

  variant: str
  inputs: OrbiaInputs
  perception: PerceptionConfig = dataclasses.field(
    default_factory=PerceptionConfig
  )
  tiers: tuple[str, ...] = TIERS


def evaluate(config: OrbiaConfig, options: runner.RunOptions) -> runner.Outcome:
  """Scores every case, then writes totals.

  Args:
    config: what to score and how.
    options: output folder, workers, resume.

  Returns:
    Text for the terminal and whether all totals could be shown.

  Raises:
    InputError: for unusable input or an output folder that cannot be used.
  """
  c = constants(config.variant)
  public, found = load_cases(config, options)
  # With OK among the statuses to retry (--noresume), nothing is reused.
  fresh = OK in options.retry
  known = {} if fresh else store.read_records(options.output)
  cases = [_with_tiers(case, config.tiers, known) for case in found]
  records = runner.run_cases(
    cases,
    functools.partial(
      score.score_case, config=config.perception, constants=c, known=known
    ),
    protocol=PROTOCOL,
    variant=config.variant,
    settings=_settings(config),
    options=options,
  )
  if len(records) < len(cases) and options.num_shards > 1:
    text = f"shard done; {len(cases) - len(records)} cases are with others"
    return runner.Outcome(text, complete=True)
  totals = write_totals(public, cases, records, config, options)
  complete = not any(e["refused"] for e in totals["systems"].values())
  text = f"{table(totals)}\nresults in {options.output}"
  return runner.Outcome(text, complete)


def load_cases(
  config: OrbiaConfig, options: runner.RunOptions
) -> tuple[list[PublicCase], list[OrbiaCase]]:
  """Cases of the data set and the videos to score, sorted.

  Built-in sources write their data set and videos below the output first.

  Raises:
    InputError: unless exactly one source is given, or it is unusable.
  """
  inputs = config.inputs
  if inputs.rgbd is not None or inputs.calibration:
    root = options.output / "built"
    if inputs.rgbd is not None:
      builtin.write_recorded(
        root,
        inputs.rgbd,
        calibrate=inputs.calibrate,
        limit=inputs.limit or None,
      )
    else:
      builtin.write_raycast(
        root,
        frame_count=inputs.frame_count,
        templates=TEMPLATES[: inputs.limit or None],
      )
    public = read_dataset(root)
    return public, generated.cases_from_folder(
      root / builtin.VIDEOS, public, group="world", profile=inputs.profile
    )
  if inputs.dataset is None:
    raise InputError(
      "flags",
      "--dataset",
      found="nothing",
      expected="a folder with manifest.json",
      hint="Or give --rgbd or --calibration.",
    )
  public = read_dataset(inputs.dataset)
  if inputs.list_file is not None:
    return public, generated.cases_from_list(inputs.list_file, public)
  if inputs.videos is None:
    raise InputError(
      "flags",
      "--videos",
      found="nothing",
      expected="a folder of videos, or --list",
    )
  return public, generated.cases_from_folder(
    inputs.videos, public, group=inputs.group, profile=inputs.profile
  )


def write_totals(
  public: Sequence[PublicCase],
  cases: Sequence[OrbiaCase],
  records: Mapping[tuple[str, str], Record],
  config: OrbiaConfig,
  options: runner.RunOptions,
) -> dict[str, Any]:
  """Writes `scores.json`, `scores.csv`, `groups.csv`, `correlations.csv`.

  A model is expected to have a video for every case of the data set.
  """
  c = constants(config.variant)
  rows = list(records.values())
  ids = [case.case_id for case in public]
  expected = dict.fromkeys(sorted({x.system for x in cases}), ids)
  totals = aggregate.leaderboard(
    expected,
    rows,
    allow_partial=options.allow_partial,
    source=str(options.output),
    c=c,
  )
  shown = [r for r in rows if not totals["systems"][r.system]["refused"]]
  groups = aggregate.group_table(shown, c=c)
  correlations = aggregate.tier_correlations(shown, c=c)
  outputs.write_json(
    options.output / "scores.json",
    {
      "protocol": "orbia-1.0",
      "variant": config.variant,
      **totals,
      "groups": groups,
      "correlations": correlations,
      "cases": [_case_row(record) for record in rows],
    },
  )
  outputs.write_csv(
    options.output / "scores.csv", aggregate.COLUMNS, totals["rows"]
  )
  outputs.write_csv(
    options.output / "groups.csv", aggregate.GROUP_COLUMNS, groups
  )
  if correlations:
    outputs.write_csv(
      options.output / "correlations.csv",
      list(correlations[0]),
      correlations,
    )
  return totals


def table(totals: Mapping[str, Any]) -> str:
  """The leaderboard as text."""
  head = "".join(f"{tier:>8}" for tier in (*TIERS, "Overall"))
  lines = [f"{'model':<24} {'group':<6}{'cases':>6}{head}"]
  for row in totals["rows"]:
    cells = "".join(f"{_cell(row[t]):>8}" for t in (*TIERS, "Overall"))
    mark = "  PARTIAL" if totals["systems"][row["model"]]["partial"] else ""
    lines.append(
      f"{row['model'][:24]:<24} {row['group']:<6}{row['cases']:>6}{cells}{mark}"
    )
  for model, entry in totals["systems"].items():
    if entry["refused"]:
      lines.append(f"{model[:24]:<24} refused: {entry['refused']}")
  if not all(e["comparable_to_published"] for e in totals["systems"].values()):
    lines.append("not comparable with published tables (offline backends)")
  return "\n".join(lines)


def _with_tiers(
  case: OrbiaCase,
  wanted: Sequence[str],
  known: Mapping[tuple[str, str], Record],
) -> OrbiaCase:
  """The case with the tiers that its record has and those asked for."""
  record = known.get((case.system, case.case_id))
  held = set() if record is None else set(record.details.get("tiers", {}))
  return dataclasses.replace(case, tiers=tuple(sorted(held | set(wanted))))


def _settings(config: OrbiaConfig) -> dict[str, Any]:
  """What changes a record; the choice of inputs and tiers does not."""
  perception = dataclasses.asdict(config.perception)
  del perception["cache"]  # where results are kept changes none
  return {
    "perception": perception,
    "constants": dataclasses.asdict(constants(config.variant)),
  }


def _case_row(record: Record) -> dict[str, Any]:
  row = {
    "system": record.system,
    "case_id": record.case_id,
    "status": record.status,
    "reason": record.reason,
    "values": dict(record.values),
    "groups": dict(record.groups),
    "coverage": dict(record.coverage),
    "notes": list(record.notes),
  }
  if record.status != OK:
    parts = record.details.get("tiers", {})
    row["tiers"] = {name: part["status"] for name, part in parts.items()}
  return row


def _cell(value: float | None) -> str:
  return "-" if value is None else f"{value:.2f}"
