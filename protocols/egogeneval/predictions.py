# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Generated outputs: discovery in a folder, prediction rows, validation.

Source: EgoGenEval specification 1.4, 12.3.
"""

from __future__ import annotations

import dataclasses
import os
import pathlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from perception import images
from perception.errors import InputError
from protocols.egogeneval import constants, formats, manifest

IMAGE_SUFFIXES = images.SUFFIXES
VIDEO_SUFFIXES = (".mp4", ".webm", ".mkv", ".mov", ".avi")


@dataclasses.dataclass(frozen=True)
class Output:
  """Output of one step.

  Attributes:
    case_id: the case.
    step: 1-based.
    path: image, clip, or folder of frames; the last frame is scored.
  """

  case_id: str
  step: int
  path: pathlib.Path


def discover(
  folder: pathlib.Path, cases: Sequence[manifest.ManifestCase]
) -> list[Output]:
  """Finds the output of every step in a generation folder.

  Layouts: `<case>/step1.png`, `<case>/step1.mp4`, `<case>/step1/` with frames
  sorted by name, `<case>_step1.png`, and `<case>.png` for one-step cases; the
  step may also be written step01, step_1, step_01.

  Args:
    folder: the generation folder.
    cases: cases of the manifest.

  Returns:
    Outputs in manifest order.

  Raises:
    InputError: if a step has no candidate, or several.
  """
  if not folder.is_dir():
    raise InputError(
      folder, "folder", found="no folder", expected="a generation folder"
    )
  outputs = []
  for case in cases:
    for step in case.steps:
      found = _candidates(folder, case, step.number)
      if len(found) != 1:
        raise InputError(
          folder,
          f"{case.case_id}, step {step.number}",
          found=f"{len(found)} outputs"
          + "".join(f" {p.relative_to(folder)}" for p in found[:3]),
          expected="exactly one",
          hint="Layouts: <case>/step1.png, <case>/step1.mp4, <case>/step1/,"
          " <case>_step1.png.",
        )
      outputs.append(Output(case.case_id, step.number, found[0]))
  return outputs


def _candidates(
  folder: pathlib.Path, case: manifest.ManifestCase, number: int
) -> list[pathlib.Path]:
  token = re.compile(rf"^step_?0?{number}$")
  suffixes = IMAGE_SUFFIXES + VIDEO_SUFFIXES
  found = []
  inner = folder / case.case_id
  if inner.is_dir():
    for path in sorted(inner.iterdir()):
      is_output = path.is_dir() or path.suffix.lower() in suffixes
      name = path.name if path.is_dir() else path.stem
      if is_output and token.match(name):
        found.append(path)
  for form in (
    f"step{number}",
    f"step0{number}",
    f"step_{number}",
    f"step_0{number}",
  ):
    for suffix in suffixes:
      path = folder / f"{case.case_id}_{form}{suffix}"
      if path.is_file():
        found.append(path)
  if len(case.steps) == 1:
    found += [
      path
      for suffix in suffixes
      if (path := folder / f"{case.case_id}{suffix}").is_file()
    ]
  return found


def input_ids(case: manifest.ManifestCase, step: int) -> list[str]:
  """Ids of the inputs of a step: the current view, then the auxiliaries."""
  first = (
    f"{case.case_id}:input:1"
    if step == 1
    else f"{case.case_id}:generated:step{step - 1}"
  )
  rest = range(2, len(case.inputs) + 1)
  return [first, *(f"{case.case_id}:input:{index}" for index in rest)]


def interface_type(model_type: str, inputs: int) -> str:
  """Interface of a model type for K inputs."""
  if model_type == "image":
    return "image-editing" if inputs == 1 else "multi-image-editing"
  if model_type == "pose-conditioned":
    return "pose-conditioned"
  return "autoregressive-rollout"


def prediction_row(
  case: manifest.ManifestCase,
  step: int,
  *,
  manifest_sha256: str,
  model_id: str,
  model_type: str,
  output_path: str,
  output_sha256: str,
  generation: Mapping[str, Any],
) -> dict[str, Any]:
  """A row of the prediction file."""
  return {
    "benchmark_version": constants.BENCHMARK_VERSION,
    "manifest_sha256": manifest_sha256,
    "model_id": model_id,
    "model_type": model_type,
    "case_id": case.case_id,
    "step_id": step,
    "output_path": output_path,
    "output_sha256": output_sha256,
    "interface_type": interface_type(model_type, len(case.inputs)),
    "input_ids": input_ids(case, step),
    "prompt_sha256": formats.sha256_of_text(case.steps[step - 1].text),
    "generation": dict(generation),
  }


def read(
  path: pathlib.Path,
  content: manifest.Manifest,
  *,
  allow_partial: bool = False,
) -> tuple[str, list[Output]]:
  """Reads a prediction file and validates it against manifest and outputs.

  Args:
    path: JSONL file; outputs lie below its folder.
    content: the manifest that it answers.
    allow_partial: accept a file that lacks steps.

  Returns:
    (model id, outputs in manifest order).

  Raises:
    InputError: for a row that does not fit the manifest, an output outside
      the folder, a hash that differs, an image that does not decode, rows
      out of order, repeated or missing.
  """
  cases = {case.case_id: case for case in content.cases}
  found: dict[str, Output] = {}
  model_ids: set[str] = set()
  order: list[str] = []
  for field, row in formats.read_rows(path, formats.PREDICTION):
    output = _checked(row, cases, content.sha256, path, field)
    key = f"{output.case_id}__step{output.step}"
    if key in found:
      raise InputError(
        path, f"{field}, step_id", found=f"{key} again", expected="each once"
      )
    found[key] = output
    order.append(key)
    model_ids.add(row["model_id"])
    if len(model_ids) > 1:
      raise InputError(
        path,
        f"{field}, model_id",
        found=sorted(model_ids),
        expected="one model per file",
      )
  wanted = [key for key in content.step_ids if key in found]
  missing = [key for key in content.step_ids if key not in found]
  if missing and not (allow_partial and found):
    raise InputError(
      path,
      "rows",
      found=f"{len(missing)} steps missing, first {missing[0]}",
      expected=f"all {len(content.step_ids)} steps of the manifest",
      hint="Complete the run, or pass --allow_partial.",
    )
  if order != wanted:
    position = next(
      i for i, (a, b) in enumerate(zip(order, wanted, strict=True)) if a != b
    )
    raise InputError(
      path,
      "row order",
      found=f"{order[position]} as row {position + 1}",
      expected=f"{wanted[position]} (manifest order)",
    )
  return model_ids.pop(), [found[key] for key in wanted]


def _checked(
  row: Mapping[str, Any],
  cases: Mapping[str, manifest.ManifestCase],
  manifest_sha256: str,
  source: pathlib.Path,
  field: str,
) -> Output:
  def fail(name: str, found: object, expected: object) -> InputError:
    return InputError(
      source, f"{field}, {name}", found=found, expected=expected
    )

  if row["manifest_sha256"] != manifest_sha256:
    raise fail("manifest_sha256", row["manifest_sha256"], manifest_sha256)
  case = cases.get(row["case_id"])
  if case is None:
    raise fail("case_id", row["case_id"], "a case of the manifest")
  step = row["step_id"]
  if step > len(case.steps):
    raise fail("step_id", step, f"1..{len(case.steps)}")
  fitting = {
    "interface_type": interface_type(row["model_type"], len(case.inputs)),
    "input_ids": input_ids(case, step),
    "prompt_sha256": formats.sha256_of_text(case.steps[step - 1].text),
  }
  for name, expected in fitting.items():
    if row[name] != expected:
      raise fail(name, row[name], expected)
  path = source.parent / row["output_path"]
  if pathlib.PurePath(row["output_path"]).is_absolute() or not (
    path.resolve().is_relative_to(source.parent.resolve())
  ):
    raise fail(
      "output_path", row["output_path"], "a path inside the prediction folder"
    )
  if not path.is_file():
    raise fail("output_path", f"no file {row['output_path']}", "the output")
  digest = formats.sha256_of_file(path)
  if digest != row["output_sha256"]:
    raise fail("output_sha256", digest, row["output_sha256"])
  load_image(path)
  return Output(case.case_id, step, path)


def load_image(path: pathlib.Path) -> NDArray[np.uint8]:
  """The scored frame of an output as RGB uint8 [h, w, 3].

  An image is read as it is; of a clip or a folder of frames the last one.

  Raises:
    InputError: if it does not decode.
  """
  path = scored_file(path)
  if path.suffix.lower() in VIDEO_SUFFIXES:
    return last_frame(path)
  return np.asarray(images.read_rgb(path), np.uint8)


def scored_file(path: pathlib.Path) -> pathlib.Path:
  """The file that is scored: of a folder of frames the last by name.

  Raises:
    InputError: for a folder without an image.
  """
  if not path.is_dir():
    return path
  names = sorted(
    p for p in path.iterdir() if p.suffix.lower() in IMAGE_SUFFIXES
  )
  if not names:
    raise InputError(
      path, "frames", found="no image", expected="frames sorted by name"
    )
  return names[-1]


def last_frame(path: pathlib.Path) -> NDArray[np.uint8]:
  """The last frame of a clip as RGB uint8."""
  from perception import video

  *_, last = video.open_video(path)
  return np.asarray(last, np.uint8)


def write_image(path: pathlib.Path, image: NDArray[np.uint8]) -> None:
  """Writes RGB uint8 as PNG, atomically.

  Raises:
    InputError: if the disk refuses.
  """
  path.parent.mkdir(parents=True, exist_ok=True)
  temporary = path.with_name(f".{path.name}.tmp.png")
  bgr = cv2.cvtColor(image, cv2.COLOR_RGB2BGR)
  if not cv2.imwrite(str(temporary), bgr):
    raise InputError(
      path, "write", found="refused", expected="a writable folder with space"
    )
  os.replace(temporary, path)


def write(path: pathlib.Path, rows: Iterable[Mapping[str, Any]]) -> None:
  """Writes a prediction file after checking every row against the schema."""
  listed = list(rows)
  for number, row in enumerate(listed, start=1):
    formats.check(row, formats.PREDICTION, source=path, field=f"line {number}")
  formats.write_rows(path, listed)
