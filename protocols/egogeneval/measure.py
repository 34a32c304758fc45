# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Generated outputs to evidence: one work unit per system and case."""

from __future__ import annotations

import dataclasses
import functools
import json
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perception import registry, video
from perception.errors import InputError
from protocols.common.records import FAILED, OK, Record
from protocols.egogeneval import (
  constants,
  evidence_files,
  frame_files,
  frames,
  label_bank,
  manifest,
  measure_cmg,
  measure_ssp,
  pair_pose,
  predictions,
)

PROTOCOL = "egogeneval"
NONE = "none"
BESIDE = "beside"
PNP = "pnp"


@dataclasses.dataclass(frozen=True)
class PerceptionConfig:
  """Backends of a measurement, by registered name.

  Attributes:
    pose: `pnp` (offline) or a geometry backend.
    detector: detections backend, or `none` to leave SSP out.
    features: features backend, or `none`.
    vision_language: vision-language backend, or `none`.
    depth: `beside` (a .depth.npy beside each output), a geometry backend, or
      `none`.
    matcher: `vision_language` or `similarity`.
    settings: settings by backend name.
  """

  pose: str = PNP
  detector: str = NONE
  features: str = "gradient_orientation"
  vision_language: str = NONE
  depth: str = NONE
  matcher: str = "vision_language"
  settings: Mapping[str, Mapping[str, Any]] = dataclasses.field(
    default_factory=dict
  )


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
  unit: MeasuredCase, *, config: PerceptionConfig, variant: str
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
  pose = _pose_backend(config.pose, _key(config, config.pose))
  cmg, statuses = measure_cmg.measure(
    unit.case, images, unit.stored, pose, limits
  )
  ssp: list[dict[str, Any]] = []
  if config.detector != NONE:
    ssp, failures = measure_scene(unit, config, variant, images=images)
    statuses += failures
  bad = [s for s in statuses if s.status != OK]
  comparable = pose.comparable_to_published and _scene_comparable(config)
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
    provenance={"pose": pose.name, **dataclasses.asdict(config)},
    comparable_to_published=comparable,
  )


def _scene_comparable(config: PerceptionConfig) -> bool:
  """Whether SSP rests on published backends alone, none left out."""
  chosen = (
    ("detections", config.detector),
    ("features", config.features),
    ("vision_language", config.vision_language),
    ("geometry", config.depth),
  )
  return config.matcher == "vision_language" and all(
    name in registry.names(role)
    and registry.spec(role, name).comparable_to_published
    for role, name in chosen
  )


def measure_scene(
  unit: MeasuredCase,
  config: PerceptionConfig,
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
    backends = _ssp_backends(config, unit.outputs[step.number - 1])
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


def _ssp_backends(
  config: PerceptionConfig, output: pathlib.Path
) -> measure_ssp.SspBackends:
  def optional(role: str, name: str) -> Any:
    return None if name == NONE else _backend(role, name, _key(config, name))

  depth: measure_ssp.GeneratedDepth | None = None
  if config.depth == BESIDE:
    depth = _DepthBeside(output)
  elif config.depth != NONE:
    depth = _GeometryDepth(optional("geometry", config.depth))
  return measure_ssp.SspBackends(
    optional("detections", config.detector),
    optional("features", config.features),
    optional("vision_language", config.vision_language),
    depth,
    config.matcher,
  )


class _DepthBeside:
  """Depth that a generator wrote beside its output."""

  def __init__(self, output: pathlib.Path) -> None:
    self._path = output.with_suffix(".depth.npy")

  def depth(self, image: NDArray[np.uint8]) -> NDArray[np.float32] | None:
    """See `measure_ssp.GeneratedDepth`."""
    try:
      depth = np.asarray(np.load(self._path, allow_pickle=False), np.float32)
      if depth.ndim != 2:
        raise ValueError(f"an array of shape {depth.shape}")
    except (OSError, ValueError) as error:
      raise InputError(
        self._path,
        "depth",
        found=error,
        expected="a float32 .npy file beside the output",
      ) from error
    return depth


class _GeometryDepth:
  """Single-image depth from a geometry backend."""

  def __init__(self, backend: Any) -> None:
    self._backend = backend

  def depth(self, image: NDArray[np.uint8]) -> NDArray[np.float32] | None:
    """See `measure_ssp.GeneratedDepth`."""
    clip = video.clip_from_frames(image[None], fps=0, name="generated")
    return np.asarray(self._backend.reconstruct(clip).depth[0], np.float32)


def _key(config: PerceptionConfig, name: str) -> str:
  """Settings of a backend as text, so that they can key a cache."""
  return json.dumps(config.settings.get(name, {}), sort_keys=True)


@functools.cache
def _backend(role: str, name: str, settings: str) -> Any:
  own = json.loads(settings)
  # One name can stand in several roles: settings may be given by role.
  if role in own and isinstance(own[role], Mapping):
    own = dict(own[role])
  return registry.get(role, name, **own)


@functools.cache
def _pose_backend(name: str, settings: str) -> pair_pose.PairPose:
  if name == PNP:
    return pair_pose.PnpPairPose(**json.loads(settings))
  return pair_pose.GeometryPairPose(_backend("geometry", name, settings))
