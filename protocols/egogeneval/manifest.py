# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""The benchmark manifest: rows, their rules, and what they are made of.

A row passes the JSON Schema first and then the rules between its fields: id
grammar, roles, number of inputs and targets, step order, cycles, wrapper.
Source: EgoGenEval specification 1.4, 9.4, 12.1, 12.4.
"""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from perception.errors import InputError
from protocols.egogeneval import constants, formats, instructions

CALL_MODES = {
  "atomic": "single_step",
  "chain": "autoregressive_chain",
  "cycle": "two_step_inverse_cycle",
}
_REPLACE = "replace current image with previous generated image for chain/cycle"
UPDATE_RULES = {
  "atomic": "single-step target is generated from Image 1",
  "chain": _REPLACE,
  "cycle": _REPLACE,
}


@dataclasses.dataclass(frozen=True)
class ImageRef:
  """An image of a case.

  Attributes:
    role: current, auxiliary_context or target_step_<m>.
    path: `${ROOT}/relative` or a plain path.
    frame_id: loader index within the scene.
  """

  role: str
  path: str
  frame_id: str


@dataclasses.dataclass(frozen=True)
class Step:
  """One instructed step.

  Attributes:
    number: 1-based.
    text: the instruction.
    meta: `dominant_action`, `action_family`, `atomic_subtype` where stored.
    target: the physical target frame.
  """

  number: int
  text: str
  meta: Mapping[str, str]
  target: ImageRef


@dataclasses.dataclass(frozen=True)
class ManifestCase:
  """One checked row.

  Attributes:
    case_id: `sample_id`.
    root_id: `root_sample_id`.
    dataset: source.
    scene_id: scene of the source.
    protocol: atomic, chain or cycle.
    subtype: one of the nine.
    inputs: current view and auxiliaries.
    steps: the steps in order.
    row: the row itself.
  """

  case_id: str
  root_id: str
  dataset: str
  scene_id: str
  protocol: str
  subtype: str
  inputs: tuple[ImageRef, ...]
  steps: tuple[Step, ...]
  row: Mapping[str, Any]

  @property
  def step_ids(self) -> list[str]:
    """Record ids of the steps, in order."""
    return [f"{self.case_id}__step{step.number}" for step in self.steps]

  def physical_source(self, number: int) -> ImageRef:
    """The physical frame before step `number`."""
    return self.inputs[0] if number == 1 else self.steps[number - 2].target


@dataclasses.dataclass(frozen=True)
class Manifest:
  """All cases and the hash that predictions refer to.

  Attributes:
    path: the file.
    sha256: of its bytes.
    cases: in file order.
  """

  path: pathlib.Path
  sha256: str
  cases: tuple[ManifestCase, ...]

  @property
  def step_ids(self) -> list[str]:
    """Record ids of all steps, in manifest order."""
    return [step for case in self.cases for step in case.step_ids]


def read(path: pathlib.Path) -> Manifest:
  """Reads and checks a manifest.

  Raises:
    InputError: naming line and field of the first violation.
  """
  cases: dict[str, ManifestCase] = {}
  for field, row in formats.read_rows(path, formats.MANIFEST):
    case = parse(row, source=path, field=field)
    if case.case_id in cases:
      raise InputError(
        path,
        f"{field}, sample_id",
        found=f"{case.case_id} a second time",
        expected="unique ids",
      )
    cases[case.case_id] = case
  if not cases:
    raise InputError(path, "rows", found="none", expected="at least one case")
  return Manifest(path, formats.sha256_of_file(path), tuple(cases.values()))


def parse(
  row: Mapping[str, Any], *, source: str | pathlib.Path, field: str
) -> ManifestCase:
  """Checks one row against schema and rules.

  Args:
    row: the parsed row.
    source: file, for the message.
    field: place in the file, for the message.

  Returns:
    The case.

  Raises:
    InputError: naming the field.
  """
  formats.check(row, formats.MANIFEST, source=source, field=field)
  inputs = tuple(_image(entry) for entry in row["input_images"])
  targets = tuple(_image(entry) for entry in row["target_images"])
  for name, found, expected in _rules(row, inputs, targets):
    if found != expected:
      raise InputError(
        source, f"{field}, {name}", found=found, expected=expected
      )
  steps = tuple(
    Step(
      entry["step"],
      entry["text"],
      {k: v for k, v in entry.items() if k not in ("step", "text")},
      target,
    )
    for entry, target in zip(row["instructions"], targets, strict=True)
  )
  return ManifestCase(
    row["sample_id"],
    row["root_sample_id"],
    row["dataset"],
    row["scene_id"],
    row["instruction_type"],
    row["subtype"],
    inputs,
    steps,
    row,
  )


def case_id(
  dataset: str,
  scene_id: str,
  subtype: str,
  frame_ids: Sequence[str],
  context: str,
) -> str:
  """A sample id: `dataset__scene__protocol__subtype__frames__context`."""
  return "__".join(
    (
      dataset,
      scene_id.replace("/", "_"),
      constants.PROTOCOL_OF_SUBTYPE[subtype],
      subtype,
      "_".join(frame_ids),
      context,
    )
  )


def generation_input(
  row: Mapping[str, Any], paths: Mapping[str, str]
) -> dict[str, Any]:
  """What a generator may see: the row without targets and poses.

  Args:
    row: manifest row.
    paths: local path of every input image, by its reference.

  Returns:
    A copy with local image paths (specification 12.4).
  """
  kept = {
    key: value
    for key, value in row.items()
    if key not in ("target_images", "pose_metadata")
  }
  kept["input_images"] = [
    {**entry, "image_path": paths[entry["image_path"]]}
    for entry in row["input_images"]
  ]
  return kept


def _image(entry: Mapping[str, Any]) -> ImageRef:
  return ImageRef(entry["role"], entry["image_path"], str(entry["frame_id"]))


def _rules(
  row: Mapping[str, Any],
  inputs: Sequence[ImageRef],
  targets: Sequence[ImageRef],
) -> list[tuple[str, object, object]]:
  """(field, found, expected) of every rule between fields."""
  subtype, count = row["subtype"], len(inputs)
  protocol = constants.PROTOCOL_OF_SUBTYPE[subtype]
  steps = constants.STEPS_OF_PROTOCOL[protocol]
  context = "single1" if count == 1 else f"multi{count}"
  frames = [inputs[0].frame_id, *(target.frame_id for target in targets)]
  names = (row["dataset"], row["scene_id"], subtype, frames)
  evaluation = row["evaluation_protocol"]
  rules: list[tuple[str, object, object]] = [
    ("instruction_type", row["instruction_type"], protocol),
    ("num_context_images", row["num_context_images"], count),
    ("context_type", row["context_type"], "single" if count == 1 else "multi"),
    ("scene_id", "__" in row["scene_id"], False),
    ("sample_id", row["sample_id"], case_id(*names, context)),
    ("root_sample_id", row["root_sample_id"], case_id(*names, "root0")),
    (
      "input_images, role",
      [image.role for image in inputs],
      ["current"] + ["auxiliary_context"] * (count - 1),
    ),
    (
      "target_images, role",
      [image.role for image in targets],
      [f"target_step_{m}" for m in range(1, steps + 1)],
    ),
    (
      "instructions, step",
      [entry["step"] for entry in row["instructions"]],
      list(range(1, steps + 1)),
    ),
    (
      "evaluation_protocol.call_mode",
      evaluation["call_mode"],
      CALL_MODES[protocol],
    ),
    (
      "evaluation_protocol.num_model_calls",
      evaluation["num_model_calls"],
      steps,
    ),
  ]
  if protocol == "cycle":
    first, last = inputs[0], targets[-1]
    rules.append(
      (
        "target_images of a cycle's return",
        (last.path, last.frame_id),
        (first.path, first.frame_id),
      )
    )
  shown = {image.path for image in inputs}
  allowed = {inputs[0].path} if protocol == "cycle" else set()
  reused = sorted(
    image.path
    for image in targets
    if image.path in shown and image.path not in allowed
  )
  rules.append(("input_images that are targets", reused, []))
  return rules


def stored_poses(case: ManifestCase) -> Sequence[Mapping[str, Any]]:
  """The row's `relative_poses`; empty where it stores none."""
  poses: Sequence[Mapping[str, Any]] = case.row["pose_metadata"].get(
    "relative_poses", ()
  )
  return poses


def expected_texts(case: ManifestCase) -> list[str]:
  """Instruction texts rebuilt from the row's stored pose numbers."""
  return [
    instructions.text_of_pose(pose, inputs=len(case.inputs))
    for pose in stored_poses(case)
  ]
