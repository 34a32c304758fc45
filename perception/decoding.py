# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Frame-exact decoding of one video file, with every known way to be short.

A file is read from its first packet to its last; a frame's number is its place
in that order, never a header's count. Colours are the stored picture in RGB
(an alpha channel is ignored, 10-bit is reduced to 8) after the rotation that
the file asks for. Damage that FFmpeg reports, frames marked as corrupt, and a
last frame far before the declared end are all `InputError`.

Source: specs/perception.md section 11.
"""

from __future__ import annotations

import dataclasses
import fractions
import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from perception import errors

# Containers that hold their own pictures. FFmpeg would also open playlists,
# which name other files or hosts, and draw plain text as a film.
_CONTAINERS = (
  "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,avi,mpegts,mpeg,mpegvideo,flv,asf,"
  "ogg,gif,apng,yuv4mpegpipe,h264,hevc,ivf,obu,m4v,mxf,nut,mp3,flac,wav"
)
# Healthy files declare slightly more than they hold (1444 frames for 1441).
_MISSING_FRAMES = 4
_MISSING_FRACTION = 0.005


@dataclasses.dataclass
class Timeline:
  """What one pass over the file found; complete after the last frame.

  Attributes:
    fps: frames per second, 0 when neither stated nor measurable.
    seconds: presentation time of each frame.
    end: latest end of any packet of the file, in seconds.
    size: (H, W) after rotation.
    expected_frames: the header's count, a hint for allocation only.
  """

  fps: fractions.Fraction = fractions.Fraction(0)
  seconds: list[float] = dataclasses.field(default_factory=list)
  end: float = 0.0
  size: tuple[int, int] = (0, 0)
  expected_frames: int = 0

  def timestamps(self) -> np.ndarray:
    """[T] float64 seconds after the first frame."""
    seconds = np.asarray(self.seconds, np.float64)
    return seconds - seconds[:1]


def decode(
  path: str | os.PathLike[str], timeline: Timeline, *, pixels: bool
) -> Iterator[np.ndarray | None]:
  """Yields every frame of a file and fills `timeline` on the way.

  Args:
    path: video file.
    timeline: empty; holds the whole result once the iterator is exhausted.
    pixels: yield RGB uint8 [H, W, 3], or None to count without converting.

  Raises:
    InputError: no video stream, no frame, damaged, cut off, frames of several
      sizes, or timestamps that do not increase. Frames yielded before the
      error are part of a broken file.
  """
  import av  # PyAV loads 100 MB of libraries

  if not os.path.isfile(path):
    raise errors.InputError(
      path, "file", found="no file", expected="a video file"
    )
  if not os.access(path, os.R_OK):
    raise errors.InputError(
      path, "file", found="a file without read permission", expected="a video"
    )
  try:
    with av.open(
      os.fspath(path),
      metadata_errors="replace",
      options={"format_whitelist": _CONTAINERS, "protocol_whitelist": "file"},
    ) as container:
      stream = _video_stream(path, container)
      timeline.fps = fractions.Fraction(
        stream.average_rate or stream.guessed_rate or 0
      )
      timeline.expected_frames = int(stream.frames or 0)
      reformatter = av.video.reformatter.VideoReformatter()
      for frame in _frames(container, stream, timeline):
        _record(path, frame, timeline)
        yield _rgb(frame, reformatter) if pixels else None
      _check_complete(path, container, stream, timeline)
  except av.error.FFmpegError as error:
    if isinstance(error, MemoryError):
      raise
    raise errors.InputError(
      path,
      "video data",
      found=f"{_reason(error)} after {len(timeline.seconds)} frames",
      expected="a whole, undamaged video file",
      hint="Copy or export the file again.",
    ) from error


def _reason(error: Exception) -> str:
  """FFmpeg's words, or ours for a container that is not on the list."""
  import av

  if isinstance(error, av.error.ArgumentError):
    return "no video container"
  return str(getattr(error, "strerror", None) or error)


def _video_stream(path: str | os.PathLike[str], container: Any) -> Any:
  """The first video stream that is not cover art."""
  import av

  for stream in container.streams.video:
    if not stream.disposition & av.stream.Disposition.attached_pic:
      return stream
  kinds = sorted({stream.type for stream in container.streams})
  raise errors.InputError(
    path,
    "streams",
    found=f"only {kinds}" if kinds else "none",
    expected="a video stream",
  )


def _frames(container: Any, stream: Any, timeline: Timeline) -> Iterator[Any]:
  """Decoded frames of one stream; packets of all streams extend the end."""
  for packet in container.demux():
    if packet.pts is not None and packet.time_base is not None:
      ticks = packet.pts + (packet.duration or 0)
      timeline.end = max(timeline.end, float(ticks * packet.time_base))
    if packet.stream.index == stream.index:
      yield from packet.decode()


def _record(
  path: str | os.PathLike[str], frame: Any, timeline: Timeline
) -> None:
  """Notes a frame's time and size and refuses a bad frame."""
  number = len(timeline.seconds)
  if frame.is_corrupt:
    raise errors.InputError(
      path,
      f"frame {number}",
      found="damaged picture data",
      expected="an undamaged video file",
      hint="Copy or export the file again.",
    )
  if frame.rotation % 90:
    raise errors.InputError(
      path,
      "rotation",
      found=f"{frame.rotation} degrees",
      expected="a multiple of 90 degrees",
    )
  turned = frame.rotation % 180 != 0
  size = (frame.width, frame.height) if turned else (frame.height, frame.width)
  if number and size != timeline.size:
    raise errors.InputError(
      path,
      f"size of frame {number}",
      found=size,
      expected=f"(height, width) {timeline.size} as before",
    )
  timeline.size = size
  if frame.pts is not None:
    seconds = float(frame.pts * frame.time_base)
  elif timeline.fps:
    seconds = float(number / timeline.fps)
  else:
    seconds = float(number)
  if number and seconds <= timeline.seconds[-1]:
    raise errors.InputError(
      path,
      f"timestamp of frame {number}",
      found=f"{seconds:.6f} s after {timeline.seconds[-1]:.6f} s",
      expected="increasing timestamps",
      hint="Encode the file again.",
    )
  timeline.seconds.append(seconds)


def _rgb(frame: Any, reformatter: Any) -> np.ndarray:
  """RGB uint8 [H, W, 3], turned as the file asks."""
  converted = reformatter.reformat(frame, format="rgb24", threads=1)
  image = converted.to_ndarray()
  if frame.rotation:
    image = np.ascontiguousarray(np.rot90(image, frame.rotation // 90))
  return image


def _declared_duration(container: Any, stream: Any) -> float | None:
  """Seconds that the file says it lasts, the video stream's own if stated."""
  if stream.duration is not None and stream.duration > 0:
    return float(stream.duration * stream.time_base)
  if container.duration is not None and container.duration > 0:
    return container.duration / 1e6
  return None


def _check_complete(
  path: str | os.PathLike[str],
  container: Any,
  stream: Any,
  timeline: Timeline,
) -> None:
  """Refuses a file that has no frame or ends long before it should.

  A cut WebM decodes without complaint in every reader; only its declared
  duration tells. Where the duration belongs to the whole file, sound may
  outlast the picture, so the end of all packets is what must reach it.
  """
  count = len(timeline.seconds)
  if not count:
    raise errors.InputError(
      path, "video stream", found="no frame", expected="at least one frame"
    )
  steps = np.diff(timeline.seconds)
  if not timeline.fps and count > 1:
    mean_step = fractions.Fraction(float(steps.mean()))
    timeline.fps = (1 / mean_step).limit_denominator(100_000)
  declared = _declared_duration(container, stream)
  if declared is None:
    return
  step = float(1 / timeline.fps) if timeline.fps else 0.0
  end = max(timeline.end, timeline.seconds[-1] + step)
  allowed = max(
    _MISSING_FRAMES * step,
    _MISSING_FRACTION * declared,
    float(steps.max(initial=0.0)),
  )
  if end < declared - allowed:
    raise errors.InputError(
      path,
      "duration",
      found=f"{count} frames that end at {end:.2f} s",
      expected=f"data up to the declared {declared:.2f} s",
      hint="The file was cut off: copy or export it again.",
    )
