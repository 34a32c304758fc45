# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""The text files of RGB-D recordings: matrices, poses, lists by timestamp.

Every reader names the file, and the line where there is one, in its
`InputError`.
"""

from __future__ import annotations

import os
import pathlib
from collections.abc import Sequence

import numpy as np

from perception import errors
from perception import observation_checks as checks

INTRINSICS_FILE = "camera-intrinsics.txt"


def entries(folder: pathlib.Path) -> set[str]:
  """Names in a folder."""
  try:
    return set(os.listdir(folder))
  except OSError as error:
    raise errors.InputError(
      folder,
      "folder",
      found=error.strerror or error,
      expected="a folder that can be read",
    ) from error


def require_file(path: pathlib.Path) -> None:
  """Raises unless the path is a file."""
  if not path.is_file():
    raise errors.InputError(path, "file", found="no file", expected="a file")


def _read_text(path: pathlib.Path) -> str:
  try:
    return path.read_text(encoding="utf-8")
  except (OSError, UnicodeDecodeError) as error:
    raise errors.InputError(
      path,
      "file",
      found=getattr(error, "strerror", None) or "bytes that are not text",
      expected="a text file",
    ) from error


def read_matrix(path: pathlib.Path, shape: tuple[int, int]) -> np.ndarray:
  """float64 matrix of white-space separated numbers."""
  words = _read_text(path).split()
  try:
    values = np.array([float(word) for word in words])
  except ValueError as error:
    raise errors.InputError(
      path, "numbers", found=error, expected=f"a {shape} matrix"
    ) from error
  if values.size != shape[0] * shape[1]:
    raise errors.InputError(
      path,
      "numbers",
      found=f"{values.size} values",
      expected=f"a {shape[0]}x{shape[1]} matrix",
    )
  return values.reshape(shape)


def read_pose(path: pathlib.Path) -> np.ndarray:
  """[4, 4] float64 rigid camera-to-world."""
  matrix = read_matrix(path, (4, 4))
  try:
    return checks.as_poses(matrix[None], 1)[0]
  except errors.InputError as error:
    raise checks.attribute(error, path) from error


def read_intrinsics(
  folder: pathlib.Path, given: np.ndarray | None
) -> np.ndarray:
  """[3, 3] float64 from the argument or the folder's file."""
  path = folder / INTRINSICS_FILE
  if given is None:
    if not path.is_file():
      raise errors.InputError(
        path,
        "intrinsics",
        found="no file",
        expected="a 3x3 matrix",
        hint="Write the file or give the intrinsics; they are never guessed.",
      )
    given = read_matrix(path, (3, 3))
  matrix = np.asarray(given, np.float64)
  try:
    checks.as_intrinsics(matrix[None], 1)
  except errors.InputError as error:
    raise checks.attribute(error, path) from error
  return matrix


def read_table(
  path: pathlib.Path, *, columns: int
) -> tuple[np.ndarray, list[list[str]]]:
  """Timestamps [N] and the other columns of a TUM list, sorted by time."""
  rows: list[tuple[float, list[str]]] = []
  for number, line in enumerate(_read_text(path).splitlines(), start=1):
    words = line.split()
    if not words or words[0].startswith("#"):
      continue
    try:
      time = float(words[0]) if len(words) == columns else np.nan
    except ValueError:
      time = np.nan
    if not np.isfinite(time):
      raise errors.InputError(
        path,
        f"line {number}",
        found=repr(line),
        expected=f"a timestamp and {columns - 1} more columns",
      )
    rows.append((time, words[1:]))
  rows.sort(key=lambda row: row[0])
  times = np.array([time for time, _ in rows])
  if not rows or np.any(np.diff(times) <= 0):
    raise errors.InputError(
      path,
      "timestamps",
      found=f"{len(rows)} rows, {len(np.unique(times))} distinct",
      expected="at least one row, distinct timestamps",
    )
  return times, [words for _, words in rows]


def nearest(
  times: np.ndarray, wanted: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
  """For each wanted time the row of the nearest time and the gap to it."""
  middle = (times[1:] + times[:-1]) / 2
  rows = np.searchsorted(middle, wanted, side="left")
  return rows, np.abs(times[rows] - wanted)


def tum_pose(path: pathlib.Path, words: Sequence[str]) -> np.ndarray:
  """4x4 camera-to-world from `tx ty tz qx qy qz qw`."""
  try:
    values = np.array([float(word) for word in words])
  except ValueError as error:
    raise errors.InputError(
      path, "pose", found=words, expected="seven numbers"
    ) from error
  x, y, z, w = values[3:]
  norm = float(np.sqrt(x * x + y * y + z * z + w * w))
  if not (np.all(np.isfinite(values)) and abs(norm - 1) <= 1e-2):
    raise errors.InputError(
      path,
      "pose",
      found=f"{values.tolist()}, quaternion norm {norm:.4g}",
      expected="finite numbers and a unit quaternion (x, y, z, w)",
    )
  x, y, z, w = values[3:] / norm
  pose = np.eye(4)
  pose[:3, :3] = [
    [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
    [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
    [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
  ]
  pose[:3, 3] = values[:3]
  return pose
