# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Writes built-in data sets with their generators' videos to disk.

The layout is the published one with a folder `videos/<model>/<case_id>.mp4`
and the recovered geometry beside each video, so that what is built here is
scored like anything else. What already exists is kept.
"""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Callable, Mapping

from perception import recorded, storage, video
from perception.errors import InputError
from protocols.common import outputs
from protocols.orbia import (
  baselines,
  dataset,
  dataset_writer,
  raycast_cases,
  recorded_cases,
)
from protocols.orbia.baselines import BASELINES, Shot, ShownWorld
from protocols.orbia.calibrated_recording import CalibratedRecording
from protocols.orbia.constants import RELEASED, TEMPLATES
from protocols.orbia.dataset import PublicCase
from protocols.orbia.fused_depth import PosedDepthSource

VIDEOS = "videos"
_MADE = "made.json"  # how cases of a recording were made
Generator = Callable[[ShownWorld, int], Shot]


def write_recorded(
  root: pathlib.Path,
  rgbd: pathlib.Path,
  *,
  calibrate: bool = False,
  limit: int | None = None,
  generators: Mapping[str, Generator] = BASELINES,
) -> None:
  """Cases and baselines over a recorded RGB-D folder.

  Args:
    root: data set folder, made if absent.
    rgbd: 7-Scenes or TUM folder.
    calibrate: estimate the colour camera and the poses from the recording
      first; for depth that is not registered to colour.
    limit: largest number of cases; None = all.
    generators: generators by name.

  Raises:
    InputError: unreadable folder, too few frames for a case, or `root` was
      made with another `calibrate`.
  """
  opened = recorded.open_rgbd(rgbd, fps=RELEASED.fps)
  count = len(recorded_cases.short_worlds(opened)[:limit])
  if not count:
    raise InputError(
      rgbd,
      "frames",
      found=len(opened),
      expected="at least 56 frames with depth and pose",
    )
  case_ids = [f"recorded_{number:03d}" for number in range(count)]
  _claim(root, calibrate=calibrate)
  if all(
    _geometry_file(root, name, case_id).exists()
    for name in generators
    for case_id in case_ids
  ):
    return  # an estimate of the cameras takes minutes
  source: PosedDepthSource = opened
  if calibrate:
    source = CalibratedRecording(opened)
  worlds = recorded_cases.short_worlds(source)[:limit]
  contents = [
    recorded_cases.build_case(world, case_id=case_id)
    for world, case_id in zip(worlds, case_ids, strict=True)
  ]
  dataset_writer.write_dataset(root, contents)
  cases = {case.case_id: case for case in dataset.read_dataset(root)}
  for content, world in zip(contents, worlds, strict=True):
    for name, generator in generators.items():
      write_video(root, cases[content.case_id], world, generator, name)


def write_raycast(
  root: pathlib.Path,
  *,
  frame_count: int = 357,
  templates: tuple[str, ...] = TEMPLATES,
  generators: Mapping[str, Generator] = BASELINES,
) -> None:
  """Ray-cast cases of the templates with all baselines, forgetting, repaint.

  Args:
    root: data set folder, made if absent.
    frame_count: 357 or 961.
    templates: templates.
    generators: generators by name, beside the two changed worlds.
  """
  worlds = {
    template: raycast_cases.make_world(
      template, frame_count=frame_count, seed=number
    )
    for number, template in enumerate(templates)
  }
  contents = [
    raycast_cases.build_case(world, case_id=f"{template}_{frame_count}")
    for template, world in worlds.items()
  ]
  dataset_writer.write_dataset(root, contents)
  cases = {case.case_id: case for case in dataset.read_dataset(root)}
  for content, world in zip(contents, worlds.values(), strict=True):
    case = cases[content.case_id]
    for name, generator in generators.items():
      write_video(root, case, world, generator, name)
    for kind in ("forgetting", "repaint"):
      other = raycast_cases.changed_world(world, kind)
      write_video(root, case, other, baselines.perfect, kind)


def write_video(
  root: pathlib.Path,
  case: PublicCase,
  world: ShownWorld,
  generator: Generator,
  name: str,
) -> None:
  """One lossless video with its recovered geometry; kept if it exists.

  The geometry is written last: where it exists, the video is complete.
  """
  geometry_file = _geometry_file(root, name, case.case_id)
  if geometry_file.exists():
    return
  path = geometry_file.with_name(f"{case.case_id}.mp4")
  path.parent.mkdir(parents=True, exist_ok=True)
  world.prepare(generator, range(case.frame_count))
  frames = (generator(world, frame).image for frame in range(case.frame_count))
  video.write_video(path, frames, RELEASED.fps, lossless=True)
  made = baselines.generate(world, case, generator, name=name)
  assert made.geometry is not None
  source = dataclasses.replace(
    made.geometry.provenance, source_sha256=storage.sha256_file(path)
  )
  dataclasses.replace(made.geometry, provenance=source).save(geometry_file)


def _geometry_file(root: pathlib.Path, name: str, case_id: str) -> pathlib.Path:
  return root / VIDEOS / name / f"{case_id}.geometry.npz"


def _claim(root: pathlib.Path, *, calibrate: bool) -> None:
  """Says how a data set is made; refuses one that was made otherwise.

  Videos that exist are kept: cases of other cameras must not join them.
  """
  path = root / _MADE
  wanted = {"calibrate": calibrate}
  found = outputs.read_json(path) if path.exists() else wanted
  if found != wanted:
    raise InputError(
      path,
      "calibrate",
      found=found.get("calibrate"),
      expected=calibrate,
      hint="Give another --output.",
    )
  root.mkdir(parents=True, exist_ok=True)
  outputs.write_json(path, wanted)
