# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Single pictures, refused when damaged.

OpenCV fills the missing part of a cut picture with grey and returns it, so the
file's own structure is checked first: every chunk checksum of a PNG, the end
marker of a JPEG.
"""

from __future__ import annotations

import os
import pathlib
import re
import struct
import zlib

import cv2
import numpy as np

from perception import errors

SUFFIXES = (".png", ".jpg", ".jpeg")
_PNG = b"\x89PNG\r\n\x1a\n"
_JPEG_START, _JPEG_END = b"\xff\xd8\xff", b"\xff\xd9"


def read_rgb(path: str | os.PathLike[str]) -> np.ndarray:
  """RGB uint8 [H, W, 3]; alpha is ignored, grey is repeated.

  Raises:
    InputError: no such file, not a PNG or JPEG, or damaged.
  """
  flags = cv2.IMREAD_COLOR | cv2.IMREAD_IGNORE_ORIENTATION
  return cv2.cvtColor(_decode(path, flags), cv2.COLOR_BGR2RGB)


def read_depth_counts(path: str | os.PathLike[str]) -> np.ndarray:
  """uint16 [H, W] of a one-channel 16-bit PNG.

  Raises:
    InputError: no such file, damaged, or of another type.
  """
  image = _decode(path, cv2.IMREAD_UNCHANGED)
  if image.dtype != np.uint16 or image.ndim != 2:
    raise errors.InputError(
      path,
      "picture",
      found=f"{image.dtype} {image.shape}",
      expected="a 16-bit PNG with one channel",
    )
  return image


def list_images(folder: str | os.PathLike[str]) -> list[pathlib.Path]:
  """Pictures of a folder in natural order (frame 2 before frame 10).

  Raises:
    InputError: not a readable folder, or without a PNG or JPEG.
  """
  try:
    paths = sorted(pathlib.Path(folder).iterdir(), key=natural_key)
  except OSError as error:
    raise errors.InputError(
      folder,
      "folder",
      found=error.strerror or error,
      expected="a folder that can be read",
    ) from error
  found = [path for path in paths if path.suffix.lower() in SUFFIXES]
  if not found:
    raise errors.InputError(
      folder,
      "folder",
      found=f"{len(paths)} entries, none of them a picture",
      expected=f"files ending in {', '.join(SUFFIXES)}",
    )
  return found


def natural_key(path: pathlib.Path) -> tuple[tuple[bool, int, str], ...]:
  """Sort key that compares runs of digits as numbers."""
  parts = re.findall(r"\d+|\D+", path.name)
  return tuple(
    (not part.isdecimal(), int(part) if part.isdecimal() else 0, part)
    for part in parts
  )


def _decode(path: str | os.PathLike[str], flags: int) -> np.ndarray:
  """Decodes a checked file."""
  try:
    data = pathlib.Path(path).read_bytes()
  except OSError as error:
    raise errors.InputError(
      path, "file", found=error.strerror or error, expected="a picture"
    ) from error
  if data.startswith(_PNG):
    problem = _png_problem(data)
  elif data.startswith(_JPEG_START):
    whole = _JPEG_END in data[-1024:]
    problem = "" if whole else "a JPEG without its end marker"
  else:
    problem = f"{len(data)} bytes that are neither PNG nor JPEG"
  image = (
    None if problem else cv2.imdecode(np.frombuffer(data, np.uint8), flags)
  )
  if image is None:
    raise errors.InputError(
      path,
      "picture",
      found=problem or "data that cannot be decoded",
      expected="an undamaged PNG or JPEG",
      hint="Copy or export the file again.",
    )
  return image


def _png_problem(data: bytes) -> str:
  """What is wrong with a PNG's chunks; empty when they are whole."""
  start = len(_PNG)
  while start + 12 <= len(data):
    length, kind = struct.unpack(">I4s", data[start : start + 8])
    end = start + 12 + length
    if end > len(data):
      break
    (checksum,) = struct.unpack(">I", data[end - 4 : end])
    if zlib.crc32(data[start + 4 : end - 4]) != checksum:
      return f"a PNG whose {kind!r} chunk has a wrong checksum"
    if kind == b"IEND":
      return ""
    start = end
  return "a PNG that was cut off"
