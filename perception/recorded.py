# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Recorded colour, depth and poses, read frame by frame.

Three forms, one protocol (`PosedRgbdSource`):

- 7-Scenes folders: `NAME.color.jpg|png`, `NAME.depth.png` (16 bit), and
  `NAME.pose.txt` (4x4 camera-to-world) per frame, `camera-intrinsics.txt`.
- TUM RGB-D folders: `rgb.txt`, `depth.txt`, `groundtruth.txt`, each line a
  timestamp and what belongs to it, joined by nearest timestamp.
- a `Geometry` record (`.npz`) together with the clip that it describes.

Depth is camera-axis Z in metres (or the record's unit), NaN where the sensor
gave none; poses are camera-to-world with OpenCV axes; all arrays of a frame
have one resolution. Text files are read when a source is opened, pictures when
a frame is asked for. Intrinsics are never guessed.
"""

from __future__ import annotations

import dataclasses
import fractions
import functools
import hashlib
import os
import pathlib
import re
from collections.abc import Iterator, Sequence
from typing import Protocol

import cv2
import numpy as np

from perception import (
  errors,
  images,
  observation,
  rgbd_text,
  roles,
  storage,
  video,
)
from perception import observation_checks as checks

_MAX_TIME_GAP = 0.02
_INVALID_COUNTS = (0, 65535)
_COLOUR_FILE = re.compile(r"(?P<stem>.+)\.color\.(?:png|jpe?g)")


class PosedRgbdSource(roles.FrameSource, Protocol):
  """A frame source that also has depth and a pose for every frame."""

  @property
  def names(self) -> tuple[str, ...]:
    """[T] names of the frames."""

  @property
  def unit(self) -> str:
    """`metre` or `arbitrary`."""

  @property
  def intrinsics(self) -> np.ndarray:
    """[T, 3, 3] float64, pixels at `size`."""

  @property
  def c2w(self) -> np.ndarray:
    """[T, 4, 4] float64, camera-to-world."""

  def rgb(self, row: int) -> np.ndarray:
    """uint8 [H, W, 3]."""

  def depth(self, row: int) -> np.ndarray:
    """float32 [H, W], NaN = invalid; a frame may have no valid pixel."""

  def geometry(
    self, rows: Sequence[int] | np.ndarray | None = None
  ) -> observation.Geometry:
    """Depth and cameras of some rows (all by default) as one record."""

  def clip(self, rows: Sequence[int] | np.ndarray | None = None) -> video.Clip:
    """Colour frames of some rows (all by default) in memory."""


@dataclasses.dataclass(frozen=True, eq=False)
class RgbdFolder:
  """Colour and depth files with poses; made by `open_*`.

  Attributes:
    name: the folder.
    names: [T] names of the frames.
    colour_files: [T] paths.
    depth_files: [T] paths of 16-bit PNG files.
    depth_scale: counts per metre.
    size: (H, W) of all pictures.
    intrinsics: [T, 3, 3] float64.
    c2w: [T, 4, 4] float64.
    fps: frames per second, 0 = unknown.
    timestamps: [T] seconds from the first frame.
    skipped: colour frames that were left out for want of depth or pose.
  """

  name: str
  names: tuple[str, ...]
  colour_files: tuple[pathlib.Path, ...]
  depth_files: tuple[pathlib.Path, ...]
  depth_scale: float
  size: tuple[int, int]
  intrinsics: np.ndarray
  c2w: np.ndarray
  fps: fractions.Fraction
  timestamps: np.ndarray
  skipped: int = 0
  unit: str = "metre"

  @property
  def frame_indices(self) -> np.ndarray:
    """[T] int32, rows of this source."""
    return np.arange(len(self.names), dtype=np.int32)

  @functools.cached_property
  def sha256(self) -> str:
    """Digest of all pictures, poses and intrinsics, in frame order."""
    digest = hashlib.sha256()
    for path in self.colour_files + self.depth_files:
      digest.update(storage.sha256_file(path).encode())
    for array in (self.c2w, self.intrinsics, self.timestamps):
      digest.update(np.ascontiguousarray(array, np.float64).tobytes())
    digest.update(repr(self.depth_scale).encode())
    return digest.hexdigest()

  def __len__(self) -> int:
    """T."""
    return len(self.names)

  def __iter__(self) -> Iterator[np.ndarray]:
    """Yields the colour frames."""
    return (self.rgb(row) for row in range(len(self)))

  def rgb(self, row: int) -> np.ndarray:
    """uint8 [H, W, 3]; InputError when damaged or of another size."""
    image = images.read_rgb(self.colour_files[row])
    _check_size(self.colour_files[row], image, self.size)
    return image

  def depth(self, row: int) -> np.ndarray:
    """float32 [H, W] metres; InputError when damaged or of another size."""
    counts = images.read_depth_counts(self.depth_files[row])
    _check_size(self.depth_files[row], counts, self.size)
    metres = counts.astype(np.float32) / np.float32(self.depth_scale)
    metres[np.isin(counts, _INVALID_COUNTS)] = np.nan
    return metres

  def geometry(
    self, rows: Sequence[int] | np.ndarray | None = None
  ) -> observation.Geometry:
    """See `PosedRgbdSource.geometry`."""
    return _geometry(self, rows)

  def clip(self, rows: Sequence[int] | np.ndarray | None = None) -> video.Clip:
    """See `PosedRgbdSource.clip`."""
    return _clip(self, rows)


@dataclasses.dataclass(frozen=True, eq=False)
class RecordedClip:
  """A `Geometry` record and its clip, colour brought to the depth's size.

  Colour is resized by area to the record's full size and cut at the bottom
  and right as the record was.

  Attributes:
    frames: the clip, rows as in `record`.
    record: depth and cameras.
  """

  frames: video.Clip
  record: observation.Geometry

  @property
  def name(self) -> str:
    """Name of the clip."""
    return self.frames.name

  @property
  def names(self) -> tuple[str, ...]:
    """Source frame numbers as text."""
    return tuple(f"{index:06d}" for index in self.record.frame_indices)

  @property
  def sha256(self) -> str:
    """Digest of the clip."""
    return self.frames.sha256

  @property
  def fps(self) -> fractions.Fraction:
    """Frames per second."""
    return self.frames.fps

  @property
  def size(self) -> tuple[int, int]:
    """(H, W) of the depth."""
    return self.record.depth_size

  @property
  def unit(self) -> str:
    """Unit of the record."""
    return self.record.unit

  @property
  def timestamps(self) -> np.ndarray:
    """[T] seconds."""
    return self.frames.timestamps

  @property
  def frame_indices(self) -> np.ndarray:
    """[T] int32."""
    return self.record.frame_indices

  @property
  def intrinsics(self) -> np.ndarray:
    """[T, 3, 3] float64."""
    return self.record.intrinsics.astype(np.float64)

  @property
  def c2w(self) -> np.ndarray:
    """[T, 4, 4] float64."""
    return self.record.c2w

  def __len__(self) -> int:
    """T."""
    return len(self.frames)

  def __iter__(self) -> Iterator[np.ndarray]:
    """Yields the colour frames."""
    return (self.rgb(row) for row in range(len(self)))

  def rgb(self, row: int) -> np.ndarray:
    """uint8 [h, w, 3]."""
    height, width = self.record.full_size
    image = self.frames.frames[row]
    if image.shape[:2] != (height, width):
      image = cv2.resize(image, (width, height), interpolation=cv2.INTER_AREA)
    return np.ascontiguousarray(image[: self.size[0], : self.size[1]])

  def depth(self, row: int) -> np.ndarray:
    """float32 [h, w]."""
    return self.record.depth[row]

  def geometry(
    self, rows: Sequence[int] | np.ndarray | None = None
  ) -> observation.Geometry:
    """See `PosedRgbdSource.geometry`."""
    return self.record if rows is None else self.record.select(rows)

  def clip(self, rows: Sequence[int] | np.ndarray | None = None) -> video.Clip:
    """See `PosedRgbdSource.clip`."""
    return _clip(self, rows)


def is_rgbd_folder(path: str | os.PathLike[str]) -> bool:
  """Whether a folder shows one of the layouts of `open_rgbd`."""
  if not os.path.isdir(path):
    return False
  entries = rgbd_text.entries(pathlib.Path(path))
  return "rgb.txt" in entries or any(map(_COLOUR_FILE.fullmatch, entries))


def open_rgbd(
  path: str | os.PathLike[str],
  *,
  fps: float | fractions.Fraction = 0,
  intrinsics: np.ndarray | None = None,
) -> RgbdFolder:
  """Opens a folder in the layout that its files show.

  Args:
    path: folder in 7-Scenes or TUM RGB-D layout.
    fps: rate of a 7-Scenes folder's files, 0 = unknown; TUM states its own.
    intrinsics: [3, 3], or None to read `camera-intrinsics.txt`.

  Raises:
    InputError: unreadable, of neither layout, or inconsistent.
  """
  entries = rgbd_text.entries(pathlib.Path(path))
  if "rgb.txt" in entries:
    return open_tum(path, intrinsics=intrinsics)
  if any(_COLOUR_FILE.fullmatch(name) for name in entries):
    return open_seven_scenes(path, fps=fps, intrinsics=intrinsics)
  raise errors.InputError(
    path,
    "folder",
    found=f"{len(entries)} entries of another kind",
    expected="NAME.color.jpg|png files (7-Scenes) or rgb.txt (TUM RGB-D)",
  )


def open_seven_scenes(
  path: str | os.PathLike[str],
  *,
  fps: float | fractions.Fraction = 0,
  intrinsics: np.ndarray | None = None,
  depth_scale: float = 1000.0,
) -> RgbdFolder:
  """Opens a folder in 7-Scenes layout.

  Args:
    path: the folder.
    fps: rate of the files as they follow each other, 0 = unknown.
    intrinsics: [3, 3], or None to read `camera-intrinsics.txt`.
    depth_scale: counts per metre; 0 and 65535 mean no depth.

  Raises:
    InputError: a file is absent, unreadable or wrong.
  """
  folder = pathlib.Path(path)
  entries = rgbd_text.entries(folder)
  matches = [_COLOUR_FILE.fullmatch(name) for name in entries]
  colour = sorted(
    (folder / match.string for match in matches if match),
    key=images.natural_key,
  )
  stems = tuple(entry.name.rpartition(".color.")[0] for entry in colour)
  if not stems or len(set(stems)) < len(stems):
    raise errors.InputError(
      folder,
      "colour files",
      found=f"{len(stems)} files for {len(set(stems))} frames",
      expected="one NAME.color.jpg or .png per frame",
    )
  depth = tuple(folder / f"{stem}.depth.png" for stem in stems)
  for depth_file in depth:
    rgbd_text.require_file(depth_file)
  poses = [rgbd_text.read_pose(folder / f"{stem}.pose.txt") for stem in stems]
  matrix = rgbd_text.read_intrinsics(folder, intrinsics)
  size = images.read_rgb(colour[0]).shape[:2]
  rate = fractions.Fraction(fps).limit_denominator(100_000)
  return RgbdFolder(
    name=os.fspath(folder),
    names=stems,
    colour_files=tuple(colour),
    depth_files=depth,
    depth_scale=depth_scale,
    size=(size[0], size[1]),
    intrinsics=np.tile(matrix, (len(stems), 1, 1)),
    c2w=np.stack(poses),
    fps=rate,
    timestamps=np.arange(len(stems)) / float(rate or 1),
  )


def open_tum(
  path: str | os.PathLike[str],
  *,
  intrinsics: np.ndarray | None = None,
  depth_scale: float = 5000.0,
  max_time_gap: float = _MAX_TIME_GAP,
) -> RgbdFolder:
  """Opens a folder in TUM RGB-D layout.

  Each colour frame takes the depth frame and the pose nearest in time; frames
  without both within `max_time_gap` are left out and counted in `skipped`.

  Args:
    path: the folder.
    intrinsics: [3, 3], or None to read `camera-intrinsics.txt`.
    depth_scale: counts per metre; 0 and 65535 mean no depth.
    max_time_gap: seconds.

  Raises:
    InputError: a file is absent, unreadable or wrong, or nothing matches.
  """
  folder = pathlib.Path(path)
  colour_times, colour = rgbd_text.read_table(folder / "rgb.txt", columns=2)
  depth_times, depth = rgbd_text.read_table(folder / "depth.txt", columns=2)
  pose_times, poses = rgbd_text.read_table(
    folder / "groundtruth.txt", columns=8
  )
  depth_rows, depth_gaps = rgbd_text.nearest(depth_times, colour_times)
  pose_rows, pose_gaps = rgbd_text.nearest(pose_times, colour_times)
  keep = (depth_gaps <= max_time_gap) & (pose_gaps <= max_time_gap)
  rows = np.flatnonzero(keep)
  if not rows.size:
    raise errors.InputError(
      folder,
      "timestamps",
      found=f"none of {len(colour)} colour frames with depth and pose",
      expected=f"depth and pose within {max_time_gap:g} s",
    )
  colour_files = tuple(folder / colour[row][0] for row in rows)
  depth_files = tuple(folder / depth[depth_rows[row]][0] for row in rows)
  for file in colour_files + depth_files:
    rgbd_text.require_file(file)
  pose_file = folder / "groundtruth.txt"
  c2w = [rgbd_text.tum_pose(pose_file, poses[pose_rows[row]]) for row in rows]
  matrix = rgbd_text.read_intrinsics(folder, intrinsics)
  size = images.read_rgb(colour_files[0]).shape[:2]
  times = colour_times[rows] - colour_times[rows[0]]
  rate = fractions.Fraction(0)
  if len(times) > 1:
    mean_rate = (len(times) - 1) / times[-1]
    rate = fractions.Fraction(mean_rate).limit_denominator(1000)
  return RgbdFolder(
    name=os.fspath(folder),
    names=tuple(file.stem for file in colour_files),
    colour_files=colour_files,
    depth_files=depth_files,
    depth_scale=depth_scale,
    size=(size[0], size[1]),
    intrinsics=np.tile(matrix, (len(rows), 1, 1)),
    c2w=np.stack(c2w),
    fps=rate,
    timestamps=times,
    skipped=len(colour) - len(rows),
  )


def join(
  frames: video.Clip, record: observation.Geometry | str | os.PathLike[str]
) -> RecordedClip:
  """A clip and its `Geometry` record as one source.

  Args:
    frames: the clip; rows that the record lacks are left out.
    record: the record or its `.npz`.

  Raises:
    InputError: the record is bad, or belongs to another clip.
  """
  if not isinstance(record, observation.Geometry):
    record = observation.Geometry.load(record)
  digest = record.provenance.source_sha256
  if digest and digest != frames.sha256:
    raise errors.InputError(
      frames.name,
      "sha256",
      found=frames.sha256,
      expected=f"{digest} as the geometry record says",
    )
  if record.video_size != frames.size:
    raise errors.InputError(
      frames.name,
      "size",
      found=frames.size,
      expected=f"{record.video_size} as the geometry record says",
    )
  common, clip_rows, record_rows = np.intersect1d(
    frames.frame_indices, record.frame_indices, return_indices=True
  )
  if not common.size:
    raise errors.InputError(
      frames.name,
      "frame_indices",
      found="no frame of the geometry record",
      expected="frames in common",
    )
  return RecordedClip(frames.select(clip_rows), record.select(record_rows))


def _geometry(
  source: RgbdFolder, rows: Sequence[int] | np.ndarray | None
) -> observation.Geometry:
  index = np.arange(len(source)) if rows is None else np.asarray(rows)
  provenance = observation.Provenance(
    source_sha256=source.sha256,
    backend="recorded",
    backend_version="1",
    settings={"depth_scale": source.depth_scale},
  )
  try:
    return observation.Geometry(
      depth=np.stack([source.depth(int(row)) for row in index]),
      intrinsics=source.intrinsics[index],
      c2w=source.c2w[index],
      frame_indices=source.frame_indices[index],
      video_size=source.size,
      unit=source.unit,
      provenance=provenance,
    )
  except errors.InputError as error:
    if error.source != "observation":
      raise
    raise checks.attribute(error, source.name) from error


def _clip(
  source: PosedRgbdSource, rows: Sequence[int] | np.ndarray | None
) -> video.Clip:
  index = np.arange(len(source)) if rows is None else np.asarray(rows)
  return video.Clip(
    frames=np.stack([source.rgb(int(row)) for row in index]),
    fps=fractions.Fraction(source.fps),
    timestamps=source.timestamps[index],
    sha256=source.sha256,
    frame_indices=source.frame_indices[index],
    name=source.name,
  )


def _check_size(
  path: pathlib.Path, image: np.ndarray, size: tuple[int, int]
) -> None:
  if image.shape[:2] != size:
    raise errors.InputError(
      path,
      "size",
      found=image.shape[:2],
      expected=f"(height, width) {size} like the first colour frame",
    )
