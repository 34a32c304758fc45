# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Clips: a video file or a folder of pictures, in memory or streamed.

Frames are RGB uint8 [H, W, 3] in presentation order. `sha256` identifies the
bytes they came from: of the file, or of the folder's pictures in their order,
whatever they are called. Pixels are used as stored: no correction of non-square
pixels, no tone mapping. Both classes satisfy `perception.roles.FrameSource`.
"""

from __future__ import annotations

import dataclasses
import fractions
import hashlib
import os
import pathlib
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from perception import decoding, errors, images, resampling, storage

_MAX_BYTES = 8 << 30


@dataclasses.dataclass(frozen=True, eq=False)
class Clip:
  """Frames in memory.

  Attributes:
    frames: uint8 [T, H, W, 3].
    fps: frames per second, 0 = unknown.
    timestamps: [T] float64 seconds, strictly increasing, first = 0 for a whole
      file; frame numbers where the rate is unknown.
    sha256: hex digest of the source.
    frame_indices: [T] int32, strictly increasing indices into the source.
    name: path or label, for messages.
  """

  frames: np.ndarray
  fps: fractions.Fraction
  timestamps: np.ndarray
  sha256: str
  frame_indices: np.ndarray
  name: str

  def __post_init__(self) -> None:
    """Raises InputError unless the arrays fit each other."""
    frames = self.frames
    if (
      not isinstance(frames, np.ndarray)
      or frames.dtype != np.uint8
      or frames.ndim != 4
      or frames.shape[3] != 3
      or min(frames.shape) < 1
    ):
      found = f"{getattr(frames, 'dtype', '?')} {np.shape(frames)}"
      raise errors.InputError(
        self.name, "frames", found=found, expected="uint8 [T>0, H>0, W>0, 3]"
      )
    for field in ("timestamps", "frame_indices"):
      values = np.asarray(getattr(self, field))
      if values.shape != frames.shape[:1] or np.any(np.diff(values) <= 0):
        raise errors.InputError(
          self.name,
          field,
          found=f"shape {values.shape}",
          expected=f"{len(frames)} strictly increasing values",
        )

  @property
  def size(self) -> tuple[int, int]:
    """(H, W)."""
    return self.frames.shape[1], self.frames.shape[2]

  def __len__(self) -> int:
    """T."""
    return len(self.frames)

  def __iter__(self) -> Iterator[np.ndarray]:
    """Yields the frames."""
    return iter(self.frames)

  def read(self) -> Clip:
    """Itself; `Video.read` decodes."""
    return self

  def select(self, rows: Sequence[int] | np.ndarray | slice) -> Clip:
    """The clip of some rows, in increasing order, with their source indices."""
    return dataclasses.replace(
      self,
      frames=self.frames[rows],
      timestamps=self.timestamps[rows],
      frame_indices=self.frame_indices[rows],
    )

  def resample(self, fps: float | fractions.Fraction) -> Clip:
    """The clip at another rate by nearest timestamp; frames may repeat.

    The result is a source of its own: rows are numbered from 0 and the digest
    covers the rows taken.

    Raises:
      InputError: this clip's rate is unknown.
    """
    rows, changes = _resampled(self, fps)
    return dataclasses.replace(self, frames=self.frames[rows], **changes)


@dataclasses.dataclass(frozen=True, eq=False)
class Video:
  """A checked source, or part of one, that is decoded anew on each pass.

  Memory is bounded by a few frames. Made by `open_video`; `select` and
  `resample` decode nothing.

  Attributes:
    name, fps, size, timestamps, sha256, frame_indices: as in `Clip`.
    rows: [T] int64 place of each frame in the file, not decreasing; a
      resampled source may repeat frames.
    count: frames of the whole file.
  """

  name: str
  fps: fractions.Fraction
  size: tuple[int, int]
  timestamps: np.ndarray
  sha256: str
  frame_indices: np.ndarray
  rows: np.ndarray
  count: int

  def __len__(self) -> int:
    """T."""
    return len(self.rows)

  def select(self, rows: Sequence[int] | np.ndarray | slice) -> Video:
    """See `Clip.select`."""
    return dataclasses.replace(
      self,
      timestamps=self.timestamps[rows],
      frame_indices=self.frame_indices[rows],
      rows=self.rows[rows],
    )

  def resample(self, fps: float | fractions.Fraction) -> Video:
    """See `Clip.resample`."""
    rows, changes = _resampled(self, fps)
    return dataclasses.replace(self, rows=self.rows[rows], **changes)

  def read(self, *, max_bytes: int = _MAX_BYTES) -> Clip:
    """The frames in memory.

    Raises:
      InputError: see `__iter__`; or they take more than `max_bytes`.
    """
    frames = _collect(iter(self), len(self), self.name, max_bytes)
    return Clip(
      frames,
      self.fps,
      self.timestamps,
      self.sha256,
      self.frame_indices,
      self.name,
    )

  def __iter__(self) -> Iterator[np.ndarray]:
    """Yields RGB uint8 [H, W, 3] frames from the first on.

    Raises:
      InputError: the source was changed or damaged since it was opened.
    """
    if os.path.isdir(self.name):
      paths = images.list_images(self.name)
      self._require(len(paths) == self.count, f"{len(paths)} pictures")
      yield from _same_size([paths[row] for row in self.rows])
      return
    timeline = decoding.Timeline()
    row = 0
    stream = decoding.decode(self.name, timeline, pixels=True)
    for number, image in enumerate(stream):
      while row < len(self) and self.rows[row] == number and image is not None:
        yield image
        row += 1
      if row == len(self) and self.count > number + 1:
        return  # the rest was checked when the file was opened
    self._require(
      len(timeline.seconds) == self.count and timeline.size == self.size,
      f"{len(timeline.seconds)} of size {timeline.size}",
    )

  def _require(self, unchanged: bool, found: str) -> None:
    if not unchanged:
      raise errors.InputError(
        self.name,
        "frames",
        found=found,
        expected=f"{self.count} of size {self.size} as when it was opened",
      )


def clip_from_frames(
  frames: np.ndarray, *, fps: float | fractions.Fraction, name: str = "frames"
) -> Clip:
  """A clip from an array; its digest is that of the pixels.

  Args:
    frames: uint8 [T, H, W, 3] RGB.
    fps: frames per second, 0 = unknown.
    name: label for messages.

  Raises:
    InputError: wrong shape or dtype.
  """
  frames = np.ascontiguousarray(frames)
  digest = hashlib.sha256(str(frames.shape).encode())
  digest.update(frames.data)
  rate, timestamps, indices = _regular_times(len(frames), fps)
  return Clip(frames, rate, timestamps, digest.hexdigest(), indices, name)


def read_clip(
  path: str | os.PathLike[str],
  *,
  fps: float | fractions.Fraction | None = None,
  max_bytes: int = _MAX_BYTES,
) -> Clip:
  """Reads a whole video file or picture folder into memory.

  Args:
    path: video file, or folder of PNG or JPEG pictures in natural order.
    fps: rate of a picture folder; None = unknown. Not allowed for a file,
      which states its own.
    max_bytes: refuse to hold more pixels than this.

  Raises:
    InputError: unreadable, damaged, cut off, empty, too large, or pictures of
      several sizes.
  """
  name = os.fspath(path)
  if os.path.isdir(name):
    paths = images.list_images(name)
    frames = _collect(_same_size(paths), len(paths), name, max_bytes)
    rate, timestamps, indices = _regular_times(len(frames), fps or 0)
    digest = _folder_digest(paths)
    return Clip(frames, rate, timestamps, digest, indices, name)
  _refuse_rate(name, fps)
  timeline = decoding.Timeline()
  pixels = decoding.decode(name, timeline, pixels=True)
  stream = (image for image in pixels if image is not None)
  first = next(stream)
  frames = _collect(
    _chain(first, stream), timeline.expected_frames or 64, name, max_bytes
  )
  indices = np.arange(len(frames), dtype=np.int32)
  digest = storage.sha256_file(name)
  timestamps = timeline.timestamps()
  return Clip(frames, timeline.fps, timestamps, digest, indices, name)


def open_video(
  path: str | os.PathLike[str],
  *,
  fps: float | fractions.Fraction | None = None,
) -> Video:
  """Checks a source by one full pass and returns it for streaming.

  Args and errors as `read_clip`, without a memory limit.
  """
  name = os.fspath(path)
  if os.path.isdir(name):
    paths = images.list_images(name)
    size = (0, 0)
    for image in _same_size(paths):
      size = image.shape[0], image.shape[1]
    rate, timestamps, indices = _regular_times(len(paths), fps or 0)
    digest = _folder_digest(paths)
    rows = np.arange(len(paths))
    return Video(
      name, rate, size, timestamps, digest, indices, rows, len(paths)
    )
  _refuse_rate(name, fps)
  timeline = decoding.Timeline()
  for _ in decoding.decode(name, timeline, pixels=False):
    pass
  return Video(
    name=name,
    fps=timeline.fps,
    size=timeline.size,
    timestamps=timeline.timestamps(),
    sha256=storage.sha256_file(name),
    frame_indices=np.arange(len(timeline.seconds), dtype=np.int32),
    rows=np.arange(len(timeline.seconds)),
    count=len(timeline.seconds),
  )


def write_video(
  path: str | os.PathLike[str],
  frames: Iterable[np.ndarray],
  fps: float | fractions.Fraction,
  *,
  lossless: bool = False,
  crf: int = 16,
) -> int:
  """Writes H.264 in mp4, atomically.

  Even sizes are stored as yuv420p, which every player shows; a size with an
  odd side as yuv444p, so that no pixel is added or cut.

  Args:
    path: target `.mp4`.
    frames: RGB uint8 [H, W, 3], one size, at least one.
    fps: frames per second, > 0.
    lossless: store RGB exactly (few players show it; our reader does).
    crf: quality of the lossy form, 0 (best) to 51.

  Returns:
    The number of frames written.

  Raises:
    InputError: no frame, frames of another form, or a path that cannot be
      written.
  """
  import av  # PyAV loads 100 MB of libraries

  name = os.fspath(path)
  iterator = iter(frames)
  first = next(iterator, None)
  if first is None or not fps > 0:
    raise errors.InputError(
      name,
      "frames",
      found="no frame" if first is None else f"{fps} frames per second",
      expected="at least one frame and a rate > 0",
    )
  shape = np.shape(first)
  odd = bool(shape[0] % 2 or shape[1] % 2) if len(shape) == 3 else False
  target = pathlib.Path(name)
  temporary = ""
  count = 0
  try:
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=target.parent, suffix=".mp4")
    os.close(handle)
    with av.open(temporary, "w", format="mp4") as container:
      rate = fractions.Fraction(fps).limit_denominator(100_000)
      codec = "libx264rgb" if lossless else "libx264"
      stream: Any = container.add_stream(codec, rate=rate)
      exact = {"qp": "0", "preset": "veryfast"}
      stream.options = exact if lossless else {"crf": str(crf)}
      stream.pix_fmt = "rgb24" if lossless else "yuv444p" if odd else "yuv420p"
      for image in _chain(first, iterator):
        _check_frame(name, count, image, shape)
        if not count:
          stream.height, stream.width = shape[:2]
        frame = av.VideoFrame.from_ndarray(
          np.ascontiguousarray(image), format="rgb24"
        )
        container.mux(stream.encode(frame))
        count += 1
      container.mux(stream.encode(None))
    os.chmod(temporary, 0o644)
    os.replace(temporary, target)
  except OSError as error:  # FFmpeg's errors of the file system are OSErrors
    raise errors.InputError(
      name,
      "file",
      found=error.strerror or error,
      expected="a path that can be written, with room on the disk",
    ) from error
  finally:
    if temporary and os.path.exists(temporary):
      os.unlink(temporary)
  return count


def _check_frame(
  name: str, row: int, image: np.ndarray, shape: tuple[int, ...]
) -> None:
  good = (
    isinstance(image, np.ndarray)
    and image.dtype == np.uint8
    and image.ndim == 3
    and image.shape[2] == 3
    and image.shape == shape
  )
  if not good:
    raise errors.InputError(
      name,
      f"frame {row}",
      found=f"{getattr(image, 'dtype', '?')} {np.shape(image)}",
      expected=f"uint8 [H, W, 3] of one size (first: {shape})",
    )


def _refuse_rate(name: str, fps: object) -> None:
  if fps is not None:
    raise errors.InputError(
      name,
      "fps",
      found=f"{fps} given for a video file",
      expected="no rate: the file states its own",
    )


def _resampled(
  source: Clip | Video, fps: float | fractions.Fraction
) -> tuple[np.ndarray, dict[str, Any]]:
  """Rows taken at another rate, and the fields that change with it."""
  if not source.fps:
    raise errors.InputError(
      source.name,
      "fps",
      found="no frame rate",
      expected="a known rate to resample from",
      hint="State the rate of picture folders.",
    )
  rate = fractions.Fraction(fps).limit_denominator(100_000)
  rows = resampling.nearest_rows(source.timestamps, fps=rate)
  taken = source.frame_indices[rows].tolist()
  digest = hashlib.sha256(f"{source.sha256} at {rate}: {taken}".encode())
  return rows, {
    "fps": rate,
    "timestamps": np.arange(len(rows)) / float(rate),
    "sha256": digest.hexdigest(),
    "frame_indices": np.arange(len(rows), dtype=np.int32),
  }


def _regular_times(
  count: int, fps: float | fractions.Fraction
) -> tuple[fractions.Fraction, np.ndarray, np.ndarray]:
  """(fps, timestamps, frame_indices) of evenly spaced frames."""
  rate = fractions.Fraction(fps).limit_denominator(100_000)
  if rate < 0:
    raise errors.InputError("clip", "fps", found=fps, expected=">= 0")
  indices = np.arange(count, dtype=np.int32)
  return rate, indices / float(rate or 1), indices


def _chain(
  first: np.ndarray, rest: Iterable[np.ndarray]
) -> Iterator[np.ndarray]:
  yield first
  yield from rest


def _same_size(paths: Sequence[pathlib.Path]) -> Iterator[np.ndarray]:
  """Pictures in order; raises at the first one of another size."""
  shape = None
  for path in paths:
    image = images.read_rgb(path)
    if shape is not None and image.shape != shape:
      raise errors.InputError(
        path, "size", found=image.shape[:2], expected=f"{shape[:2]} as before"
      )
    shape = image.shape
    yield image


def _folder_digest(paths: Sequence[pathlib.Path]) -> str:
  digest = hashlib.sha256()
  for path in paths:
    digest.update(storage.sha256_file(path).encode())
  return digest.hexdigest()


def _collect(
  stream: Iterator[np.ndarray], expected: int, name: str, max_bytes: int
) -> np.ndarray:
  """Stacks frames without holding them twice when the count is known."""
  buffer = np.empty((0, 0, 0, 3), np.uint8)
  count = 0
  for image in stream:
    if (count + 1) * image.nbytes > max_bytes:
      raise errors.InputError(
        name,
        "frames",
        found=f"more than {max_bytes / 2**30:.1f} GiB of pixels",
        expected="a clip that fits in memory",
        hint="Cut the clip, or stream it with open_video.",
      )
    if count == len(buffer):
      room = max(expected, 1) if not count else 2 * count
      room = min(room, max_bytes // image.nbytes)
      grown = np.empty((room, *image.shape), np.uint8)
      if count:
        grown[:count] = buffer
      buffer = grown
    buffer[count] = image
    count += 1
  return buffer[:count]
