# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Files that are either whole or absent, and archives that run no code.

Writing goes to a temporary neighbour that replaces the target once it is
flushed, so that a killed process leaves no half file. Reading an `.npz` never
unpickles: an archive that holds Python objects is refused.
"""

from __future__ import annotations

import hashlib
import os
import pathlib
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Mapping
from typing import IO

import numpy as np

from perception import errors

_READ_ERRORS = (
  OSError,
  EOFError,
  KeyError,
  ValueError,
  SyntaxError,
  NotImplementedError,
  MemoryError,
  OverflowError,
  zipfile.BadZipFile,
  zlib.error,
)


def sha256_file(path: str | os.PathLike[str]) -> str:
  """Hex SHA-256 of a file's bytes.

  Raises:
    InputError: the file cannot be read.
  """
  try:
    with open(path, "rb") as stream:
      return hashlib.file_digest(stream, "sha256").hexdigest()
  except OSError as error:
    raise errors.InputError(
      path,
      "file",
      found=error.strerror or error,
      expected="a readable file",
    ) from error


def write_atomic(
  path: str | os.PathLike[str], write: Callable[[IO[bytes]], object]
) -> None:
  """Creates or replaces `path` with what `write(stream)` puts in the stream.

  Raises:
    InputError: the folder cannot be written or the disk is full. The old file,
      if any, is untouched.
  """
  target = pathlib.Path(path)
  temporary = ""
  try:
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(
      dir=target.parent, prefix=f".{target.name}.", suffix=".tmp"
    )
    with os.fdopen(handle, "wb") as stream:
      write(stream)
      stream.flush()
      os.fsync(stream.fileno())
    os.chmod(temporary, 0o644)
    os.replace(temporary, target)
  except BaseException as error:
    if temporary and os.path.exists(temporary):
      os.unlink(temporary)
    if isinstance(error, OSError):
      raise errors.InputError(
        target,
        "file",
        found=error.strerror or error,
        expected="a folder that can be written, with room on the disk",
      ) from error
    raise


def write_npz(
  path: str | os.PathLike[str],
  arrays: Mapping[str, np.ndarray],
  *,
  compress: bool,
) -> None:
  """Writes named arrays as one `.npz`; the same arrays give the same bytes.

  Raises:
    InputError: the file cannot be written.
  """
  save = np.savez_compressed if compress else np.savez
  payload = {name: np.asarray(array) for name, array in arrays.items()}
  write_atomic(path, lambda stream: save(stream, **payload))  # type: ignore[arg-type]


def read_npz(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
  """All arrays of an `.npz`, read in full and without unpickling.

  Raises:
    InputError: no such file, not an archive of arrays, damaged, or an entry
      holds Python objects.
  """
  expected = "an .npz archive of plain arrays"
  if not os.path.isfile(path):
    raise errors.InputError(path, "file", found="no file", expected=expected)
  if not zipfile.is_zipfile(path):
    raise errors.InputError(
      path, "file", found="a file that is not an .npz", expected=expected
    )
  arrays = {}
  name = "file"
  try:
    with np.load(path, allow_pickle=False) as archive:
      for name in archive.files:
        arrays[name] = np.asarray(archive[name])
  except _READ_ERRORS as error:
    pickled = "pickle" in str(error).lower()
    raise errors.InputError(
      path,
      name,
      found="Python objects" if pickled else f"damaged data ({error})",
      expected=expected,
      hint="Save arrays of numbers, never of objects." if pickled else "",
    ) from error
  return arrays
