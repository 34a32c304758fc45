# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Recordings for the rerun viewer: one `.rrd` file per case.

A recording has what can be reached of frames, masks, tracks, boxes, cameras,
depth (which the viewer lifts to a point cloud) and residuals on one timeline:
of frames, or of steps for EgoGenEval. Needs the extra `viewer`; nothing is
imported before a recording is asked for.
"""

from __future__ import annotations

import pathlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from perception.errors import InputError
from protocols.common.progress import Progress
from protocols.common.records import Record
from protocols.report import entries, seen, windows
from protocols.report.cases import CaseTable
from protocols.report.sources import Run
from protocols.report.steps import Steps

FRAME, STEP = "frame", "step"
_QUALITY = 85


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
  run: Run,
  table: CaseTable,
  rows: Sequence[int],
  steps: Steps,
  folder: pathlib.Path,
) -> list[pathlib.Path]:
  """Writes `<row>.rrd` for cases of which anything can be reached.

  Args:
    run: the run.
    table: its cases, in the order of their pages.
    rows: which of them.
    steps: EgoGenEval's evidence; empty for others.
    folder: where the recordings go.

  Returns:
    Files written.

  Raises:
    InputError: without the extra, or if the disk refuses.
  """
  rerun = require()
  log = {"pdi": _pdi, "orbia": _orbia, "egogeneval": _egogeneval}[run.protocol]
  written = []
  with Progress(len(rows), label=f"recordings of {run.folder.name}") as bar:
    for number in rows:
      entry = table.entries[number]
      record = entries.read_record(entry)
      file = folder / f"{number}.rrd"
      _make_folder(folder)
      stream = rerun.RecordingStream(
        "worldgauge", recording_id=f"{record.system}/{record.case_id}"
      )
      stream.save(str(file))
      cmg, ssp = steps.cmg.get(entry.key, ()), steps.ssp.get(entry.key, ())
      some = log(_Log(rerun, stream), run, record, cmg, ssp)
      stream.flush()
      stream.disconnect()
      if some:
        written.append(file)
      else:
        file.unlink(missing_ok=True)
      bar.advance()
  return written


class _Log:
  """The few kinds of entries that recordings have."""

  def __init__(self, rerun: Any, stream: Any) -> None:
    self._rerun = rerun
    self._stream = stream
    self._stream.log("world", rerun.ViewCoordinates.RDF, static=True)

  def at(self, timeline: str, number: int) -> None:
    """Later entries belong to this frame or step."""
    self._stream.set_time(timeline, sequence=int(number))

  def picture(self, name: str, picture: np.ndarray) -> None:
    """RGB uint8 [h, w, 3]."""
    image = self._rerun.Image(np.ascontiguousarray(picture))
    self._stream.log(name, image.compress(jpeg_quality=_QUALITY))

  def masks(self, masks: np.ndarray) -> None:
    """bool [O, h, w], numbered from 1."""
    labels = np.zeros(masks.shape[1:], np.uint8)
    for number, mask in enumerate(masks, start=1):
      labels[mask] = number
    self._stream.log("image/mask", self._rerun.SegmentationImage(labels))

  def points(self, xy: np.ndarray) -> None:
    """[N, 2] pixels."""
    self._stream.log("image/tracks", self._rerun.Points2D(xy, radii=1.5))

  def boxes(self, name: str, drawn: Sequence[tuple]) -> None:
    """(box, colour, dashed, text) in pixels of the picture `name`."""
    corners = np.array([box for box, *_ in drawn], float).reshape(-1, 4)
    self._stream.log(
      f"{name}/boxes",
      self._rerun.Boxes2D(
        array=corners,
        array_format=self._rerun.Box2DFormat.XYXY,
        colors=[colour for _, colour, *_ in drawn],
        labels=[text for *_, text in drawn],
      ),
    )

  def camera(
    self,
    name: str,
    pose_c2w: np.ndarray,
    intrinsics: np.ndarray,
    depth: np.ndarray,
  ) -> None:
    """Pose, intrinsics and depth [h, w]; NaN is unknown."""
    height, width = depth.shape
    rerun = self._rerun
    self._stream.log(
      name,
      rerun.Transform3D(translation=pose_c2w[:3, 3], mat3x3=pose_c2w[:3, :3]),
    )
    self._stream.log(
      f"{name}/image",
      rerun.Pinhole(
        image_from_camera=intrinsics,
        resolution=[width, height],
        camera_xyz=rerun.ViewCoordinates.RDF,
      ),
    )
    known = np.nan_to_num(depth).astype(np.float32)
    self._stream.log(f"{name}/image/depth", rerun.DepthImage(known, meter=1.0))

  def path(self, name: str, poses_c2w: np.ndarray) -> None:
    """A whole trajectory as a line, at all times."""
    strip = self._rerun.LineStrips3D([poses_c2w[:, :3, 3]], labels=[name])
    self._stream.log(f"world/{name}", strip, static=True)

  def value(self, name: str, value: Any) -> None:
    """A number over time; what is no finite number is left out."""
    if isinstance(value, int | float) and np.isfinite(value):
      self._stream.log(name, self._rerun.Scalars([float(value)]))

  def text(self, name: str, text: str) -> None:
    """A line of text."""
    self._stream.log(name, self._rerun.TextLog(text))


def _pdi(
  log: _Log, run: Run, record: Record, cmg: Iterable, ssp: Iterable
) -> bool:
  del cmg, ssp
  found = seen.load(run, record)
  parts = [found.clip, found.geometry]
  count = max((len(p.frame_indices) for p in parts if p is not None), default=0)
  for row in range(count):
    log.at(FRAME, row)
    if found.geometry is not None:
      geometry = found.geometry
      log.camera(
        "world/camera",
        geometry.c2w[row],
        geometry.intrinsics[row],
        geometry.depth[row],
      )
    if found.clip is not None:
      log.picture("image/frame", found.clip.frames[row])
    if found.masks is not None:
      log.masks(found.masks.masks[:, row])
    if found.tracks is not None:
      log.points(found.tracks.xy[row][found.tracks.visible[row]])
  frames = int(record.coverage.get("frames") or count)
  for name, values in (record.details.get("series") or {}).items():
    # Series end at the last frame that the residual looks at.
    end = frames - (1 if name == "traj" else 0)
    for position, value in enumerate(values):
      log.at(FRAME, max(0, end - len(values)) + position)
      log.value(f"residuals/{name}", value)
  return bool(count)


def _orbia(
  log: _Log, run: Run, record: Record, cmg: Iterable, ssp: Iterable
) -> bool:
  del cmg, ssp
  from protocols.report import orbia_video

  found = orbia_video.load(run, record)
  for name, poses in orbia_video.trajectories(found, record).items():
    log.path(name, poses)
  for frame, name in orbia_video.events(found):
    log.at(FRAME, frame)
    log.text("events", name)
  details = windows.details(record)
  for name, curve in (details.get("curves") or {}).items():
    for bounds, value in zip(details["bounds"], curve, strict=True):
      log.at(FRAME, round(float(np.mean(bounds)) * found.fps))
      log.value(f"windows/{name}", value)
  geometry = found.geometry
  if geometry is not None:
    poses = orbia_video.trajectories(found, record)["recovered"]
    for row, frame in enumerate(geometry.frame_indices.tolist()):
      log.at(FRAME, frame)
      log.camera(
        "world/camera",
        poses[row],
        geometry.intrinsics[row],
        geometry.depth[row] * orbia_video.unit_scale(record),
      )
  rows = np.arange(found.count) if geometry is None else geometry.frame_indices
  for at, picture in found.stream(rows):
    log.at(FRAME, at)
    log.picture("image/frame", picture)
  return found.path is not None


def _egogeneval(
  log: _Log,
  run: Run,
  record: Record,
  cmg: Sequence[Mapping[str, Any]],
  ssp: Sequence[Mapping[str, Any]],
) -> bool:
  from protocols.report import media_egogeneval as media

  steps = media.load(run, record)
  objects = media.by_step(ssp)
  for step in steps:
    log.at(STEP, step.number)
    drawn = dict(
      zip(
        ("target", "prediction"),
        media.boxes(objects.get(step.number, {})),
        strict=True,
      )
    )
    for name in ("source", "target", "prediction"):
      picture = getattr(step, name)
      if picture is not None:
        log.picture(f"image/{name}", picture)
        log.boxes(f"image/{name}", drawn.get(name, ()))
    for name, view in media.physical_views(step).items():
      log.camera(f"world/{name}", view.pose_c2w, view.intrinsics, view.depth)
  for number, row in media.by_step(cmg).items():
    log.at(STEP, number)
    for name in ("expected", "pred", "abs_err"):
      log.value(f"residuals/{name}", row.get(f"action_{name}"))
  return bool(steps or cmg)


def _make_folder(folder: pathlib.Path) -> None:
  try:
    folder.mkdir(parents=True, exist_ok=True)
  except OSError as error:
    raise InputError(
      folder, "folder", found=error, expected="a folder that can be written"
    ) from error
