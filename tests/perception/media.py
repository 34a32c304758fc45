# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Small pictures, clips and folders that the perception tests draw."""

from __future__ import annotations

import fractions
import pathlib

import av
import cv2
import numpy as np

SHARED = pathlib.Path(__file__).parents[2] / ".." / "shared"
DATA = SHARED / "data"
GOLDEN = SHARED / "golden" / "pdi"
VP9_FAST = {"deadline": "realtime", "cpu-used": "8"}


def texture(
  height: int, width: int, *, seed: int, block: int = 4
) -> np.ndarray:
  """uint8 [H, W, 3] smooth random texture."""
  generator = np.random.default_rng(seed)
  small = generator.integers(
    0, 256, (height // block + 2, width // block + 2, 3), dtype=np.uint8
  )
  return cv2.resize(small, (width, height), interpolation=cv2.INTER_CUBIC)


def numbered_frames(count: int, height: int, width: int) -> np.ndarray:
  """Frames that show their number as eight black or white bars."""
  frames = np.full((count, height, width, 3), 90, np.uint8)
  bar = width // 8
  for number in range(count):
    for bit in range(8):
      value = 235 if number >> bit & 1 else 20
      frames[number, :, bit * bar : (bit + 1) * bar] = value
  return frames


def read_numbers(frames: np.ndarray) -> list[int]:
  """The numbers that `numbered_frames` drew."""
  bar = frames.shape[2] // 8
  numbers = []
  for frame in frames:
    middle = frame[frame.shape[0] // 2, bar // 2 :: bar, 0][:8]
    numbers.append(sum(1 << bit for bit in range(8) if middle[bit] > 128))
  return numbers


def encode(
  path: pathlib.Path,
  frames: np.ndarray,
  *,
  codec: str = "libx264",
  pixel_format: str = "yuv420p",
  source_format: str = "rgb24",
  rate: int = 24,
  ticks: np.ndarray | None = None,
  rotation: int = 0,
  sound_seconds: float = 0.0,
  options: dict[str, str] | None = None,
  container_options: dict[str, str] | None = None,
) -> pathlib.Path:
  """Encodes frames; `ticks` are presentation times in milliseconds."""
  with av.open(str(path), "w", options=container_options or {}) as container:
    stream = container.add_stream(codec, rate=rate)
    stream.height, stream.width = frames.shape[1:3]
    stream.pix_fmt = pixel_format
    stream.options = options or {}
    if ticks is not None:
      stream.time_base = fractions.Fraction(1, 1000)
      stream.codec_context.time_base = fractions.Fraction(1, 1000)
    if rotation:
      stream.set_display_rotation(rotation)
    if sound_seconds:
      webm = path.suffix == ".webm"
      sound = container.add_stream("libopus" if webm else "aac", rate=48000)
    for number, image in enumerate(frames):
      frame = av.VideoFrame.from_ndarray(image, format=source_format)
      if ticks is not None:
        frame.pts = int(ticks[number])
        frame.time_base = fractions.Fraction(1, 1000)
      container.mux(stream.encode(frame))
    container.mux(stream.encode(None))
    if sound_seconds:
      _mux_silence(container, sound, sound_seconds)
  return path


def write_avi_count(path: pathlib.Path, count: int) -> None:
  """Changes the frame counts in an AVI's headers (main and stream)."""
  data = bytearray(path.read_bytes())
  for name, place in ((b"avih", 16), (b"strh", 32)):
    start = data.index(name) + 8 + place
    data[start : start + 4] = count.to_bytes(4, "little")
  path.write_bytes(data)


def encode_sound(path: pathlib.Path) -> pathlib.Path:
  """A file with half a second of silence and no picture."""
  with av.open(str(path), "w") as container:
    _mux_silence(container, container.add_stream("aac", rate=48000), 0.5)
  return path


def encode_nothing(path: pathlib.Path) -> pathlib.Path:
  """An AVI with a video stream and no frame."""
  with av.open(str(path), "w") as container:
    stream = container.add_stream("mpeg4", rate=24)
    stream.height, stream.width, stream.pix_fmt = 32, 64, "yuv420p"
    container.start_encoding()
  return path


def _mux_silence(container, stream, seconds: float) -> None:
  samples = np.zeros((1, int(48000 * seconds)), np.float32)
  frame = av.AudioFrame.from_ndarray(samples, format="fltp", layout="mono")
  frame.sample_rate = 48000
  frame.pts = 0
  container.mux(stream.encode(frame))
  container.mux(stream.encode(None))


def write_picture(path: pathlib.Path, rgb_or_gray: np.ndarray) -> pathlib.Path:
  """Writes a PNG or JPEG."""
  image = rgb_or_gray
  if image.ndim == 3:
    image = np.ascontiguousarray(image[..., ::-1])
  assert cv2.imwrite(str(path), image)
  return path


INTRINSICS = np.array([[50.0, 0, 31.5], [0, 52.0, 23.5], [0, 0, 1]])


def rotation(axis: tuple[float, float, float], degrees: float) -> np.ndarray:
  """[3, 3] float64 rotation."""
  vector = np.array(axis) / np.linalg.norm(axis) * np.deg2rad(degrees)
  return cv2.Rodrigues(vector)[0]


def poses(count: int) -> np.ndarray:
  """[T, 4, 4] float64 of a camera that turns and moves."""
  result = np.tile(np.eye(4), (count, 1, 1))
  for row in range(count):
    result[row, :3, :3] = rotation((0.2, 1, 0.1), 5 * row)
    result[row, :3, 3] = 0.1 * row, 0.0, -0.05 * row
  return result


def write_seven_scenes(folder: pathlib.Path, *, count: int = 3) -> pathlib.Path:
  """A folder in 7-Scenes layout: 48x64, depth 1000 + column millimetres."""
  folder.mkdir(parents=True, exist_ok=True)
  depth = np.tile(1000 + np.arange(64, dtype=np.uint16), (48, 1))
  depth[0, 0], depth[0, 1] = 0, 65535
  for row, pose in enumerate(poses(count)):
    stem = folder / f"frame-{5 * row:06d}"
    write_picture(stem.with_suffix(".color.png"), texture(48, 64, seed=row))
    write_picture(stem.with_suffix(".depth.png"), depth + np.uint16(0))
    np.savetxt(stem.with_suffix(".pose.txt"), pose)
  np.savetxt(folder / "camera-intrinsics.txt", INTRINSICS)
  return folder


def moving_square(
  count: int,
  *,
  size: tuple[int, int] = (120, 160),
  side: int = 40,
  start: tuple[int, int] = (30, 40),
  step: tuple[int, int] = (2, 1),
  hidden: slice | None = None,
) -> tuple[np.ndarray, np.ndarray]:
  """A textured red square over a textured blue ground, by whole pixels.

  Args:
    count: frames.
    size: (H, W).
    side: of the square.
    start: (x, y) of its corner in frame 0.
    step: (x, y) per frame.
    hidden: frames in which a green curtain covers the left 3/4 of the picture.

  Returns:
    uint8 [T, H, W, 3] frames and bool [T, H, W] masks of what is visible.
  """
  height, width = size
  ground = texture(height, width, seed=1) // 2
  ground[..., 0] //= 4
  square = texture(side, side, seed=2) // 2 + 20
  square[..., 0] = 180 + square[..., 0] // 4
  frames = np.tile(ground, (count, 1, 1, 1))
  masks = np.zeros((count, height, width), bool)
  for row in range(count):
    x, y = start[0] + row * step[0], start[1] + row * step[1]
    frames[row, y : y + side, x : x + side] = square
    masks[row, y : y + side, x : x + side] = True
  if hidden is not None:
    edge = 3 * width // 4
    curtain = texture(height, edge, seed=3) // 4
    curtain[..., 1] += 150
    frames[hidden, :, :edge] = curtain
    masks[hidden, :, :edge] = False
  return frames, masks
