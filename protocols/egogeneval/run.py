# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""The EgoGenEval protocol from inputs to `scores.csv`.

Two ways in: frozen evidence of any number of systems, or a manifest with
prediction files, whose evidence is measured first and then scored by the same
code. What `bin.evaluate` calls.
"""

from __future__ import annotations

import dataclasses
import functools
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from perception.errors import InputError
from protocols.common import outputs, runner, store
from protocols.egogeneval import (
  aggregate,
  auxiliary,
  constants,
  diagnostics,
  evidence_files,
  formats,
  frame_files,
  label_bank,
  manifest,
  measure,
  measure_backends,
  predictions,
  totals,
)

PROTOCOL = totals.PROTOCOL
_COLUMNS = (
  "system",
  "overall",
  "cmg",
  *(f"cmg_{name}" for name in constants.PROTOCOLS),
  "dir",
  "gated",
  "ssp",
  *(f"ssp_{name}" for name in constants.PROTOCOLS),
  "steps_scored",
  "steps_expected",
  "partial",
  "refused",
)


@dataclasses.dataclass(frozen=True)
class EgoGenEvalConfig:
  """Everything that decides an EgoGenEval run.

  Attributes:
    variant: `paper` or `released`.
    evidence: folder of frozen evidence; None where it is measured.
    manifest: manifest of the cases; needed to measure, optional to score.
    predictions: prediction files or generation folders, one per system.
    labels: frozen label bank; needed for SSP.
    eval_frames: evaluation frame rows of the physical views.
    perception: backends of the measurement.
    auxiliary: JSON object system -> metric -> value of the panel, for RefSim
      (psnr, lpips) and VisQual (niqe, musiq, clip_iqa); None leaves them out.
  """

  variant: str
  evidence: pathlib.Path | None = None
  manifest: pathlib.Path | None = None
  predictions: tuple[pathlib.Path, ...] = ()
  labels: pathlib.Path | None = None
  eval_frames: pathlib.Path | None = None
  perception: measure_backends.PerceptionConfig = dataclasses.field(
    default_factory=measure_backends.PerceptionConfig
  )
  auxiliary: pathlib.Path | None = None


def evaluate(
  config: EgoGenEvalConfig, options: runner.RunOptions
) -> runner.Outcome:
  """Measures where needed, then scores and writes everything.

  Args:
    config: what to score and how.
    options: output folder, workers, resume.

  Returns:
    Text for the terminal and whether all totals could be shown.

  Raises:
    InputError: for unusable input or an output folder that cannot be used.
  """
  content = manifest.read(config.manifest) if config.manifest else None
  if config.evidence is not None:
    runner.claim_folder(
      options,
      PROTOCOL,
      config.variant,
      {"evidence": str(config.evidence)},
    )
    folder = config.evidence
  else:
    if content is None:
      raise InputError(
        "flags",
        "input",
        found="neither evidence nor a manifest",
        expected="--evidence, or --manifest with --predictions",
        hint="See README.md.",
      )
    folder = options.output / "evidence"
    if not _measure(config, content, options, folder):
      return runner.Outcome("shard done; others are not", complete=True)
  return score_folder(folder, config, content, options)


def score_folder(
  folder: pathlib.Path,
  config: EgoGenEvalConfig,
  content: manifest.Manifest | None,
  options: runner.RunOptions,
) -> runner.Outcome:
  """Scores a folder of evidence and writes records, totals and results."""
  limits = constants.for_variant(config.variant)
  systems = evidence_files.read_folder(folder)
  found, mask = totals.score_systems(
    systems,
    limits,
    expected_ids=content.step_ids if content else None,
    allow_partial=options.allow_partial,
  )
  write_outputs(
    options.output,
    config.variant,
    found,
    mask,
    content,
    auxiliary_scores(config.auxiliary) if config.auxiliary else {},
  )
  outputs.write_json(
    options.output / "diagnostics.json",
    diagnostics.tables(systems, mask, limits),
  )
  complete = not any(entry.refused for entry in found)
  return runner.Outcome(
    "\n".join([table(found), f"results in {options.output}"]), complete
  )


def write_outputs(
  output: pathlib.Path,
  variant: str,
  found: Sequence[totals.SystemTotals],
  mask: frozenset[str],
  content: manifest.Manifest | None,
  auxiliary_table: Mapping[str, Mapping[str, float]],
) -> None:
  """Writes `scores.json`, `scores.csv`, `cases.jsonl`, `mask.json`, results."""
  ranking = auxiliary.rank(
    {t.name: t.overall for t in found if t.overall is not None}, ()
  )
  outputs.write_json(
    output / "scores.json",
    {
      "protocol": PROTOCOL,
      "variant": variant,
      "lower_is_better": False,
      "ranking": ranking,
      "ssp_mask": sorted(mask),
      "auxiliary": auxiliary_table,
      "systems": {t.name: system_entry(t) for t in found},
    },
  )
  outputs.write_json(output / "mask.json", {"masked_cases": sorted(mask)})
  outputs.write_csv(
    output / "scores.csv", _COLUMNS, [_csv_row(entry) for entry in found]
  )
  outputs.write_atomic(
    output / store.SCORED_CASES,
    "".join(r.to_json() + "\n" for entry in found for r in entry.records),
  )
  if content is None:
    return
  commit = outputs.environment()["git_commit"] or "unknown"
  for entry in found:
    if entry.cmg is None or entry.ssp is None:
      continue
    document = aggregate.result_document(
      entry.cmg,
      entry.ssp,
      eligible=entry.coverage["expected"],
      evaluated=entry.coverage["scored"],
      missing=entry.coverage["missing"],
      failed=entry.coverage["failed"] + entry.coverage["degenerate"],
      provenance={
        "benchmark_version": constants.BENCHMARK_VERSION,
        "evaluator_version": constants.EVALUATOR_VERSION,
        "manifest_sha256": content.sha256,
        "code_commit": commit,
      },
    )
    path = output / "results" / f"{entry.name.replace('/', '_')}.json"
    formats.check(document, formats.RESULT, source=path, field="document")
    path.parent.mkdir(parents=True, exist_ok=True)
    outputs.write_json(path, document)


def auxiliary_scores(path: pathlib.Path) -> dict[str, dict[str, float]]:
  """RefSim and VisQual of a panel; reported, never part of Overall.

  Args:
    path: JSON object system -> metric -> value.

  Returns:
    `refsim` and `visqual` by system.

  Raises:
    InputError: if a system lacks a metric, or the panel has no spread.
  """
  panel = outputs.read_json(path)
  return {
    name: auxiliary.combine(panel, metrics, source=str(path))
    for name, metrics in (
      ("refsim", auxiliary.REFERENCE_SIMILARITY),
      ("visqual", auxiliary.VISUAL_QUALITY),
    )
  }


def system_entry(entry: totals.SystemTotals) -> dict[str, Any]:
  """One system of `scores.json`."""
  return {
    "overall": entry.overall,
    "cmg": entry.cmg,
    "ssp": entry.ssp,
    "coverage": dict(entry.coverage),
    "partial": entry.partial,
    "refused": entry.refused,
    "comparable_to_published": all(
      record.comparable_to_published for record in entry.records
    ),
  }


def table(found: Sequence[totals.SystemTotals]) -> str:
  """The leaderboard as text; refused systems last."""
  lines = [
    f"{'system':<28} {'Overall':>7} {'CMG':>7} {'Dir':>7} {'Gated':>7}"
    f" {'SSP':>7}  steps"
  ]
  for entry in sorted(found, key=lambda t: (-(t.overall or 0.0), t.name)):
    if entry.cmg is None and entry.ssp is None:
      continue
    cmg, ssp = entry.cmg or {}, entry.ssp or {}
    cells = (entry.overall, cmg.get("cmg"), cmg.get("dir"), cmg.get("gated"))
    text = " ".join(_number(v) for v in (*cells, ssp.get("ssp")))
    mark = "  PARTIAL" if entry.partial else ""
    failed = entry.coverage["proposals_failed"]
    note = f"  {failed} failed matching calls" if failed else ""
    lines.append(
      f"{entry.name[:28]:<28} {text}  {entry.coverage['scored']} of"
      f" {entry.coverage['expected']}{mark}{note}"
    )
  lines += [
    f"{entry.name[:28]:<28} refused: {entry.refused}"
    for entry in found
    if entry.refused
  ]
  return "\n".join(lines)


def _number(value: float | None) -> str:
  return f"{'-':>7}" if value is None else f"{value:7.3f}"


def _csv_row(entry: totals.SystemTotals) -> Mapping[str, Any]:
  return {
    **{k: v for k, v in (entry.cmg or {}).items() if k in _COLUMNS},
    **{k: v for k, v in (entry.ssp or {}).items() if k in _COLUMNS},
    "system": entry.name,
    "overall": entry.overall,
    "steps_scored": entry.coverage["scored"],
    "steps_expected": entry.coverage["expected"],
    "partial": entry.partial,
    "refused": entry.refused,
  }


def _measure(
  config: EgoGenEvalConfig,
  content: manifest.Manifest,
  options: runner.RunOptions,
  folder: pathlib.Path,
) -> bool:
  """Measures all systems; False if other shards still have cases to do."""
  if not config.predictions or config.eval_frames is None:
    raise InputError(
      "flags",
      "input",
      found="no --predictions or no --eval_frames",
      expected="both, beside --manifest",
      hint="bin.mine writes the frames, bin.rollout the predictions.",
    )
  wants_ssp = config.perception.detector != measure_backends.NONE
  if wants_ssp and config.labels is None:
    raise InputError(
      "flags",
      "--labels",
      found="none",
      expected="a label bank, since a detector is given",
    )
  labels = (
    label_bank.read(config.labels, content.cases)
    if config.labels and wants_ssp
    else None
  )
  stored = frame_files.read(config.eval_frames)
  for frame in stored.values():
    frame.verify()
  units: list[measure.MeasuredCase] = []
  for path in config.predictions:
    if path.is_dir() and not (path / "predictions.jsonl").exists():
      name, found = path.name, predictions.discover(path, content.cases)
    else:
      file = path / "predictions.jsonl" if path.is_dir() else path
      name, found = predictions.read(
        file, content, allow_partial=options.allow_partial
      )
    units += measure.cases_of(name, found, content, labels, stored)
  records = runner.run_cases(
    sorted(units, key=lambda unit: (unit.system, unit.case_id)),
    functools.partial(
      measure.work, config=config.perception, variant=config.variant
    ),
    protocol=PROTOCOL,
    variant=config.variant,
    settings=_settings(config),
    options=options,
  )
  if len(records) < len(units):
    return False
  measure.write_evidence(folder, list(records.values()))
  return True


def _settings(config: EgoGenEvalConfig) -> dict[str, Any]:
  """What changes a record; where results are kept does not."""
  perception = dataclasses.asdict(config.perception)
  del perception["cache"]
  return {"perception": perception}
