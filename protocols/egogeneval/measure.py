# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Generated outputs to evidence: one work unit per system and case."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perception.errors import InputError
from protocols.common.records import FAILED, OK, Record
from protocols.egogeneval import (
  constants,
  evidence_files,
  formats,
  frame_files,
  frames,
  label_bank,
  manifest,
  measure_backends,
  measure_cmg,
  measure_ssp,
  predictions,
)

PROTOCOL = "egogeneval"


@dataclasses.dataclass(frozen=True)
class MeasuredCase:
  """A case of one system with all that its measurement needs.

  Attributes:
    system: the generator.
    case: the manifest case.
    outputs: file of each step's output.
    labels: frozen labels of each step; empty where SSP is left out.
    stored: evaluation frames of the case's images, by reference.
  """

  system: str
  case: manifest.ManifestCase
  outputs: tuple[pathlib.Path, ...]
  labels: tuple[Mapping[str, Any], ...]
  stored: Mapping[str, frame_files.StoredFrame]

  @property
  def case_id(self) -> str:
    """Id within the system."""
    return self.case.case_id

  @property
  def groups(self) -> Mapping[str, str]:
    """Source, scene, protocol, subtype."""
    return {
      "dataset": self.case.dataset,
      "scene": self.case.scene_id,
      "protocol": self.case.protocol,
      "subtype": self.case.subtype,
    }

  @property
  def inputs(self) -> Sequence[pathlib.Path]:
    """Outputs and physical frames."""
    return [*self.outputs, *(f.image_path for f in self.stored.values())]


def cases_of(
  system: str,
  outputs: Sequence[predictions.Output],
  content: manifest.Manifest,
  labels: label_bank.LabelBank | None,
  stored: Mapping[str, frame_files.StoredFrame],
) -> list[MeasuredCase]:
  """Work units of one system; a case needs the outputs of all its steps."""
  paths: dict[str, dict[int, pathlib.Path]] = {}
  for output in outputs:
    paths.setdefault(output.case_id, {})[output.step] = output.path
  units = []
  for case in content.cases:
    found = paths.get(case.case_id, {})
    if len(found) != len(case.steps):
      continue
    references = [*case.inputs, *(step.target for step in case.steps)]
    units.append(
      MeasuredCase(
        system,
        case,
        tuple(found[step.number] for step in case.steps),
        () if labels is None else tuple(labels[case.case_id]),
        {r.path: frame_files.of_case(stored, r) for r in references},
      )
    )
  return units


def work(
  unit: MeasuredCase, *, config: measure_backends.PerceptionConfig, variant: str
) -> Record:
  """Measures one case.

  Args:
    unit: the case.
    config: backends.
    variant: `paper` or `released`.

  Returns:
    A record whose details hold the evidence rows; `failed` if a step of it
    could not be measured.
  """
  limits = constants.for_variant(variant)
  images = [predictions.load_image(path) for path in unit.outputs]
  pose = measure_backends.pose_backend(config)
  cmg, statuses = measure_cmg.measure(
    unit.case, images, unit.stored, pose, limits
  )
  ssp: list[dict[str, Any]] = []
  if config.detector != measure_backends.NONE:
    ssp, failures = measure_scene(unit, config, variant, images=images)
    statuses += failures
  bad = [s for s in statuses if s.status != OK]
  return Record(
    protocol=PROTOCOL,
    variant=variant,
    system=unit.system,
    case_id=unit.case_id,
    status=bad[0].status if bad else OK,
    reason="; ".join(f"{s.axis} {s.record_id}: {s.reason}" for s in bad[:3]),
    groups=unit.groups,
    coverage={"cmg_steps": len(cmg), "ssp_steps": len(ssp)},
    details={
      "cmg": cmg,
      "ssp": ssp,
      "statuses": [dataclasses.asdict(s) for s in statuses],
    },
    provenance={
      "images": images_of(unit),
      "backends": measure_backends.provenance(config),
      "matcher": config.matcher,
    },
    comparable_to_published=variant == constants.RELEASED.variant
    and measure_backends.comparable(config),
  )


def images_of(unit: MeasuredCase) -> list[dict[str, Any]]:
  """What each step was measured on, for reports.

  Args:
    unit: the case.

  Returns:
    Per step `step`, `source` (the view that it started from: the physical one
    at step 1, then the system's own output), `target`, `prediction` (of a
    folder of frames the scored one) and `sha256` of the prediction's file.
    Paths are as the run was given them.
  """
  rows = []
  source = frame_files.of_case(unit.stored, unit.case.inputs[0]).image_path
  for step, output in zip(unit.case.steps, unit.outputs, strict=True):
    scored = predictions.scored_file(output)
    target = frame_files.of_case(unit.stored, step.target).image_path
    rows.append(
      {
        "step": step.number,
        "source": str(source),
        "target": str(target),
        "prediction": str(scored),
        "sha256": formats.sha256_of_file(scored),
      }
    )
    source = scored
  return rows


def measure_scene(
  unit: MeasuredCase,
  config: measure_backends.PerceptionConfig,
  variant: str,
  *,
  images: Sequence[NDArray[np.uint8]] | None = None,
  vision_language: Any = None,
) -> tuple[list[dict[str, Any]], list[evidence_files.StepStatus]]:
  """SSP evidence of a case.

  Args:
    unit: the case.
    config: backends.
    variant: `paper` or `released`.
    images: generated images; read where they are not given.
    vision_language: a backend that stands in for the configured one.

  Returns:
    (evidence rows, statuses of the steps without one).
  """
  limits = constants.for_variant(variant)
  if images is None:
    images = [predictions.load_image(path) for path in unit.outputs]
  rows: list[dict[str, Any]] = []
  statuses: list[evidence_files.StepStatus] = []
  for step in unit.case.steps:
    backends = measure_backends.ssp_backends(
      config, unit.outputs[step.number - 1]
    )
    if vision_language is not None:
      backends = dataclasses.replace(backends, vision_language=vision_language)
    try:
      rows.append(_ssp_row(unit, step.number, images, backends, limits))
    except InputError as error:
      record_id = f"{unit.case_id}__step{step.number}"
      statuses.append(
        evidence_files.StepStatus(record_id, "ssp", FAILED, str(error))
      )
  return rows, statuses


def write_evidence(folder: pathlib.Path, records: Sequence[Record]) -> None:
  """Evidence files of every system, from the records of a run."""
  systems: dict[str, list[Record]] = {}
  for record in records:
    systems.setdefault(record.system, []).append(record)
  for system, found in systems.items():
    rows = sorted(found, key=lambda r: r.case_id)
    statuses = [
      evidence_files.StepStatus(**entry)
      for record in rows
      for entry in record.details.get("statuses", ())
    ]
    statuses += [
      evidence_files.StepStatus(
        f"{record.case_id}__step{number}", axis, FAILED, record.reason
      )
      for record in rows
      if "cmg" not in record.details
      for number in range(
        1,
        constants.STEPS_OF_PROTOCOL[record.case_id.split("__")[2]] + 1,
      )
      for axis in evidence_files.AXES
    ]
    evidence_files.write_system(
      folder / system,
      [row for r in rows for row in r.details.get("cmg", ())],
      [row for r in rows for row in r.details.get("ssp", ())],
      statuses,
      [
        evidence_files.CaseOrigin(
          record.case_id,
          {
            key: record.provenance[key]
            for key in ("images", "backends", "matcher")
          },
          record.comparable_to_published,
        )
        for record in rows
        if "images" in record.provenance
      ],
    )


def _ssp_row(
  unit: MeasuredCase,
  number: int,
  images: Sequence[NDArray[np.uint8]],
  backends: measure_ssp.SspBackends,
  limits: constants.Constants,
) -> dict[str, Any]:
  case = unit.case
  step = case.steps[number - 1]
  predecessor = case.physical_source(number)
  context = [predecessor, *case.inputs[1:]]
  return measure_ssp.measure_step(
    measure_ssp.StepInputs(
      f"{case.case_id}__step{number}",
      _frame(unit, step.target),
      [_frame(unit, reference) for reference in context],
      images[number - 1],
      unit.labels[number - 1] if unit.labels else {},
    ),
    backends,
    limits,
  )


def _frame(
  unit: MeasuredCase, reference: manifest.ImageRef
) -> frames.EvaluationFrame:
  return frame_files.of_case(unit.stored, reference).frame
