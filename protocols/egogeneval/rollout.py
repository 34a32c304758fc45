# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Drives a generator over a manifest, step by step.

Step 1 starts from the physical current view, step m > 1 from the generator's
own output of step m-1; auxiliaries keep their order and stay fixed; of a clip
the last frame is the output. A generator sees images and text, never targets,
poses or depth. Finished steps are logged as they end, so a killed run resumes
with the same bytes. Source: EgoGenEval specification 1.4, 12.3, 12.4.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import os
import pathlib
import shlex
import subprocess
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
from absl import logging
from numpy.typing import NDArray

from perception.errors import InputError
from protocols.common import manifest as common_manifest
from protocols.common.progress import Progress
from protocols.egogeneval import (
  formats,
  frame_files,
  manifest,
  predictions,
  references,
)

_LOG = "rollout.jsonl"


@dataclasses.dataclass(frozen=True, eq=False)
class Request:
  """What a generator sees of a step.

  Attributes:
    case_id: the case.
    step: 1-based.
    text: the instruction.
    images: current view first, then the auxiliaries; RGB uint8.
    row: the manifest row without targets and poses.
  """

  case_id: str
  step: int
  text: str
  images: tuple[NDArray[np.uint8], ...]
  row: Mapping[str, Any]


@dataclasses.dataclass(frozen=True, eq=False)
class Generated:
  """What a generator gave for a step.

  Attributes:
    image: RGB uint8 [h, w, 3].
    depth: depth that belongs to it, where the generator knows it.
    info: facts for the `generation` field.
  """

  image: NDArray[np.uint8]
  depth: NDArray[np.float32] | None = None
  info: Mapping[str, Any] = dataclasses.field(default_factory=dict)


class Generator(Protocol):
  """Makes the output of a step; called in step order within a case."""

  @property
  def model_type(self) -> str:
    """image, video, world-model or pose-conditioned."""

  def begin(self, case: manifest.ManifestCase) -> None:
    """Called before the first step of a case."""

  def resume(self, number: int, image: NDArray[np.uint8]) -> None:
    """Called for a step that an earlier run finished."""

  def generate(self, request: Request, work: pathlib.Path) -> Generated:
    """The output of a step; `work` is a folder for temporary files."""


@dataclasses.dataclass(frozen=True)
class RolloutConfig:
  """Everything that decides a rollout.

  Attributes:
    manifest: the manifest.
    eval_frames: evaluation frame rows: where the images are.
    output: folder of the predictions.
    model_id: name of the system.
    reference: name of a built-in reference, or empty.
    entry_point: `module:function`, or empty.
    command: command line, or empty.
    model_type: type of an entry point's or a command's model.
  """

  manifest: pathlib.Path
  eval_frames: pathlib.Path
  output: pathlib.Path
  model_id: str
  reference: str = ""
  entry_point: str = ""
  command: str = ""
  model_type: str = "image"


def run(config: RolloutConfig) -> str:
  """Rolls a generator out over a manifest.

  Args:
    config: what to run.

  Returns:
    Text for the terminal.

  Raises:
    InputError: for unusable input, or a generator that gave no image.
  """
  content = manifest.read(config.manifest)
  stored = frame_files.read(config.eval_frames)
  generator = make_generator(config, stored)
  config.output.mkdir(parents=True, exist_ok=True)
  done = _finished(config.output / _LOG)
  rows: list[dict[str, Any]] = []
  new = 0
  total = len(content.step_ids)
  with (
    open(config.output / _LOG, "a", encoding="utf-8") as log,
    Progress(total, label="rollout steps", done=0) as bar,
  ):
    for case in content.cases:
      paths = [
        frame_files.of_case(stored, ref).image_path for ref in case.inputs
      ]
      images = [predictions.load_image(path) for path in paths]
      visible = manifest.generation_input(
        case.row,
        {r.path: str(p) for r, p in zip(case.inputs, paths, strict=True)},
      )
      generator.begin(case)
      current = images[0]
      for step in case.steps:
        key = f"{case.case_id}__step{step.number}"
        if key in done and _intact(config.output, done[key]):
          row = done[key]
          current = predictions.load_image(config.output / row["output_path"])
          generator.resume(step.number, current)
        else:
          request = Request(
            case.case_id,
            step.number,
            step.text,
            (current, *images[1:]),
            visible,
          )
          made = generator.generate(request, config.output / "work")
          row = _store(config, content, case, step.number, made, generator)
          log.write(formats.dump(row) + "\n")
          log.flush()
          os.fsync(log.fileno())
          current = made.image
          new += 1
        rows.append(row)
        bar.advance()
  predictions.write(config.output / "predictions.jsonl", rows)
  kept = len(rows) - new
  return f"{len(rows)} steps of {config.model_id}: {new} made, {kept} kept"


def make_generator(
  config: RolloutConfig, stored: Mapping[str, frame_files.StoredFrame]
) -> Generator:
  """The generator that a configuration names.

  Raises:
    InputError: unless exactly one is named, or it cannot be loaded.
  """
  named = [
    name
    for name in ("reference", "entry_point", "command")
    if getattr(config, name)
  ]
  if len(named) != 1:
    raise InputError(
      "flags",
      "generator",
      found=", ".join(named) or "none",
      expected="exactly one of --reference, --entry_point, --command",
    )
  if config.reference:
    if config.reference not in references.REFERENCES:
      raise InputError(
        "flags",
        "--reference",
        found=config.reference,
        expected=f"one of {', '.join(references.REFERENCES)}",
      )
    return _ReferenceGenerator(references.REFERENCES[config.reference], stored)
  if config.entry_point:
    return _PythonGenerator(
      _load_entry_point(config.entry_point), config.model_type
    )
  return _CommandGenerator(config.command, config.model_type)


class _ReferenceGenerator:
  """A built-in reference, with its privileged view of the case."""

  model_type = "pose-conditioned"

  def __init__(
    self,
    reference: references.Reference,
    stored: Mapping[str, frame_files.StoredFrame],
  ) -> None:
    self._reference = reference
    self._stored = stored
    self._case: manifest.ManifestCase | None = None
    self._inputs: tuple[references.ReferenceView, ...] = ()
    self._current: references.ReferenceView | None = None

  def begin(self, case: manifest.ManifestCase) -> None:
    """See `Generator`."""
    self._case = case
    self._inputs = tuple(self._view(ref) for ref in case.inputs)
    self._current = self._inputs[0]

  def resume(self, number: int, image: NDArray[np.uint8]) -> None:
    """A reference is a function of the case: the step is made again."""
    del image
    self._step(number)

  def generate(self, request: Request, work: pathlib.Path) -> Generated:
    """See `Generator`."""
    del work
    view = self._step(request.step)
    return Generated(
      view.image if view.native is None else view.native,
      view.depth,
      {"executed_pose_c2w": np.asarray(view.pose_c2w).tolist()},
    )

  def _step(self, number: int) -> references.ReferenceView:
    if self._case is None or self._current is None:
      raise RuntimeError("generate() before begin()")
    view = self._reference(
      references.ReferenceStep(
        self._case,
        number,
        self._current,
        self._inputs,
        self._view(self._case.physical_source(number)),
        self._view(self._case.steps[number - 1].target),
      )
    )
    self._current = view
    return view

  def _view(self, reference: manifest.ImageRef) -> references.ReferenceView:
    return references.physical_view(
      frame_files.of_case(self._stored, reference)
    )


class _PythonGenerator:
  """A function of the request: an image, or a clip whose last frame counts."""

  def __init__(
    self, function: Callable[[Request], Any], model_type: str
  ) -> None:
    self._function = function
    self.model_type = model_type

  def begin(self, case: manifest.ManifestCase) -> None:
    """See `Generator`; a fresh call per step needs no preparation."""

  def resume(self, number: int, image: NDArray[np.uint8]) -> None:
    """See `Generator`; each call is without history."""

  def generate(self, request: Request, work: pathlib.Path) -> Generated:
    """See `Generator`."""
    del work
    made = np.asarray(self._function(request))
    frames = 1
    if made.ndim == 4 and len(made):
      frames, made = len(made), made[-1]
    if made.dtype != np.uint8 or made.ndim != 3 or made.shape[2] != 3:
      raise InputError(
        request.case_id,
        f"output of step {request.step}",
        found=f"{made.dtype} {made.shape}",
        expected="RGB uint8 [h, w, 3], or [frames, h, w, 3]",
      )
    policy = {"frame_policy": "last", "frames": frames} if frames > 1 else {}
    return Generated(made, None, policy)


class _CommandGenerator:
  """A command line, run once per step."""

  def __init__(self, command: str, model_type: str) -> None:
    self._command = command
    self.model_type = model_type

  def begin(self, case: manifest.ManifestCase) -> None:
    """See `Generator`; a fresh call per step needs no preparation."""

  def resume(self, number: int, image: NDArray[np.uint8]) -> None:
    """See `Generator`; each call is without history."""

  def generate(self, request: Request, work: pathlib.Path) -> Generated:
    """See `Generator`.

    Placeholders: {images} (folder with image1.png ...), {prompt} (text file),
    {request} (JSON file), {output} (image to write; a clip of the same stem
    is taken instead), {case_id}, {step}.
    """
    folder = work / f"{request.case_id}_step{request.step}"
    images = folder / "images"
    images.mkdir(parents=True, exist_ok=True)
    for number, image in enumerate(request.images, start=1):
      predictions.write_image(images / f"image{number}.png", image)
    prompt, described = folder / "prompt.txt", folder / "request.json"
    prompt.write_text(request.text, encoding="utf-8")
    described.write_text(json.dumps(request.row), encoding="utf-8")
    output = folder / "output.png"
    for old in folder.glob("output.*"):
      old.unlink()
    values = {
      "images": images,
      "prompt": prompt,
      "request": described,
      "output": output,
      "case_id": request.case_id,
      "step": request.step,
    }
    words = [word.format(**values) for word in shlex.split(self._command)]
    try:
      result = subprocess.run(
        words, capture_output=True, text=True, check=False
      )
    except OSError as error:
      raise InputError(
        "flags", "--command", found=error, expected="a program that runs"
      ) from error
    made = sorted(folder.glob("output.*"))
    if result.returncode or len(made) != 1:
      raise InputError(
        request.case_id,
        f"step {request.step}",
        found=f"exit code {result.returncode}, {len(made)} outputs:"
        f" {result.stderr[-200:]}",
        expected="exit code 0 and one output",
        hint=f"Run by hand: {shlex.join(words)}",
      )
    is_clip = made[0].suffix.lower() in predictions.VIDEO_SUFFIXES
    return Generated(
      predictions.load_image(made[0]),
      None,
      {"frame_policy": "last"} if is_clip else {},
    )


def _store(
  config: RolloutConfig,
  content: manifest.Manifest,
  case: manifest.ManifestCase,
  number: int,
  made: Generated,
  generator: Generator,
) -> dict[str, Any]:
  path = config.output / case.case_id / f"step{number}.png"
  predictions.write_image(path, made.image)
  if made.depth is not None:
    np.save(path.with_suffix(".depth.npy"), made.depth)
  return predictions.prediction_row(
    case,
    number,
    manifest_sha256=content.sha256,
    model_id=config.model_id,
    model_type=generator.model_type,
    output_path=path.relative_to(config.output).as_posix(),
    output_sha256=formats.sha256_of_file(path),
    generation=made.info,
  )


def _finished(path: pathlib.Path) -> dict[str, dict[str, Any]]:
  """Rows of finished steps; a line that was cut by a kill is dropped."""
  if not path.exists():
    return {}
  text = path.read_bytes()
  end = text.rfind(b"\n") + 1
  if end < len(text):
    logging.warning("%s: dropped a line that was cut", path)
    os.truncate(path, end)
  return {
    f"{row['case_id']}__step{row['step_id']}": row
    for _, row in common_manifest.read_jsonl(path)
  }


def _intact(folder: pathlib.Path, row: Mapping[str, Any]) -> bool:
  path = folder / row["output_path"]
  return path.is_file() and (
    formats.sha256_of_file(path) == row["output_sha256"]
  )


def _load_entry_point(text: str) -> Callable[[Request], Any]:
  module, _, name = text.partition(":")
  try:
    function = getattr(importlib.import_module(module), name)
  except (ImportError, AttributeError, ValueError) as error:
    raise InputError(
      "flags",
      "--entry_point",
      found=f"{text} ({error})",
      expected="module:function that can be imported",
    ) from error
  if not callable(function):
    raise InputError(
      "flags",
      "--entry_point",
      found=f"{text} is no function",
      expected="a function of one request",
    )
  loaded: Callable[[Request], Any] = function
  return loaded
