# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Recordings for the rerun viewer: one `.rrd` file per case.

A recording has frames, masks, tracks, cameras, depth and residuals on one
timeline of frames. Needs the extra `viewer`; nothing is imported before a
recording is asked for.
"""

from __future__ import annotations

import pathlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from perception import observation
from perception.errors import InputError
from protocols.common.progress import Progress
from protocols.common.records import Record
from protocols.report import entries, pictures
from protocols.report.entries import Entry
from protocols.report.pictures import Seen
from protocols.report.sources import Run

_TIMELINE = "frame"


def require() -> Any:
  """The rerun package.

  Raises:
    InputError: if the extra is not installed.
  """
  try:
    import rerun
  except ImportError as error:
    raise InputError(
      "--rerun",
      "package rerun",
      found="not installed",
      expected="the extra viewer",
      hint='Run pip install -e ".[viewer]".',
    ) from error
  return rerun


def write(
  run: Run, chosen: Sequence[Entry], folder: pathlib.Path
) -> list[pathlib.Path]:
  """Writes `<row>.rrd` for cases whose clip or arrays can be reached.

  Args:
    run: the run.
    chosen: cases, in the order of their pages.
    folder: where the recordings go.

  Returns:
    Files written.

  Raises:
    InputError: without the extra, or if the disk refuses.
  """
  rerun = require()
  written = []
  with Progress(len(chosen), label="recordings") as bar:
    for number, entry in enumerate(chosen):
      record = entries.read_record(entry)
      source = str(record.provenance.get("source") or "")
      path = pictures.locate(source, run.folder)
      if path is not None:
        frames = record.coverage.get("frames")
        seen = pictures.load(
          path,
          rows=None if frames is None else int(frames),
          fps=float(record.provenance.get("fps") or 0.0),
        )
        file = folder / f"{number}.rrd"
        _write_one(rerun, record, seen, file)
        written.append(file)
      bar.advance()
  return written


def _write_one(
  rerun: Any, record: Record, seen: Seen, file: pathlib.Path
) -> None:
  try:
    file.parent.mkdir(parents=True, exist_ok=True)
  except OSError as error:
    raise InputError(
      file, "folder", found=error, expected="a folder that can be written"
    ) from error
  stream = rerun.RecordingStream("worldgauge", recording_id=str(record.key))
  stream.save(str(file))
  stream.log("world", rerun.ViewCoordinates.RDF, static=True)
  count = len(seen.clip) if seen.clip is not None else 0
  if seen.geometry is not None:
    count = max(count, len(seen.geometry.frame_indices))
  for row in range(count):
    stream.set_time(_TIMELINE, sequence=row)
    if seen.geometry is not None:
      _log_camera(rerun, stream, seen.geometry, row)
    _log_image(rerun, stream, seen, row)
  series = record.details.get("series") or {}
  for name, values in series.items():
    end = count - (1 if name == "traj" else 0)
    for position, value in enumerate(values):
      if isinstance(value, int | float):
        frame = max(0, end - len(values)) + position
        stream.set_time(_TIMELINE, sequence=frame)
        stream.log(f"residuals/{name}", rerun.Scalars([float(value)]))
  stream.flush()
  stream.disconnect()


def _log_camera(
  rerun: Any, stream: Any, geometry: observation.Geometry, row: int
) -> None:
  """Pose, intrinsics and depth; the viewer lifts depth to points."""
  height, width = geometry.depth_size
  stream.log(
    "world/camera",
    rerun.Transform3D(
      translation=geometry.c2w[row, :3, 3], mat3x3=geometry.c2w[row, :3, :3]
    ),
  )
  stream.log(
    "world/camera/image",
    rerun.Pinhole(
      image_from_camera=geometry.intrinsics[row],
      resolution=[width, height],
      camera_xyz=rerun.ViewCoordinates.RDF,
    ),
  )
  stream.log(
    "world/camera/image/depth",
    rerun.DepthImage(np.nan_to_num(geometry.depth[row]), meter=1.0),
  )


def _log_image(rerun: Any, stream: Any, seen: Seen, row: int) -> None:
  if seen.clip is not None:
    picture = rerun.Image(seen.clip.frames[row])
    stream.log("image/frame", picture.compress(jpeg_quality=85))
  if seen.masks is not None:
    labels = np.zeros(seen.masks.masks.shape[2:], np.uint8)
    for number, mask in enumerate(seen.masks.masks[:, row], start=1):
      labels[mask] = number
    stream.log("image/mask", rerun.SegmentationImage(labels))
  if seen.tracks is not None:
    visible = seen.tracks.visible[row]
    points = rerun.Points2D(seen.tracks.xy[row][visible], radii=1.5)
    stream.log("image/tracks", points)
