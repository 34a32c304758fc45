# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Files that a run leaves: `scores.json`, `scores.csv`, `run.json`.

Scores depend on records only, so two runs over the same records give the
same bytes. Whatever changes from run to run (versions, device, time) stands
in `run.json`.
"""

from __future__ import annotations

import csv
import datetime
import importlib.metadata
import io
import json
import pathlib
import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from perception import storage
from perception.errors import InputError
from protocols.common.records import plain

_PACKAGES = (
  "worldgauge",
  "jax",
  "jaxlib",
  "numpy",
  "scipy",
  "opencv-python-headless",
  "av",
  "torch",
  "transformers",
  "sam2",
  "depth-anything-3",
)


def write_atomic(path: pathlib.Path, text: str) -> None:
  """Writes a UTF-8 text file so that readers see the old or the new one.

  Raises:
    InputError: if the disk refuses.
  """
  storage.write_atomic(path, lambda stream: stream.write(text.encode()))


def write_json(path: pathlib.Path, content: Mapping[str, Any]) -> None:
  """Writes indented JSON with sorted keys; NaN and infinities as texts."""
  text = json.dumps(
    plain(content),
    indent=2,
    sort_keys=True,
    allow_nan=False,
    ensure_ascii=False,
  )
  write_atomic(path, text + "\n")


def read_json(path: pathlib.Path) -> dict[str, Any]:
  """Reads a JSON object.

  Raises:
    InputError: if the file is unreadable or holds no JSON object.
  """
  try:
    content = json.loads(path.read_text(encoding="utf-8"))
  except (OSError, ValueError) as error:
    raise InputError(
      path,
      "file",
      found=error,
      expected="a readable JSON object",
      hint="Check the path and the file's content.",
    ) from error
  if not isinstance(content, dict):
    raise InputError(
      path,
      "content",
      found=type(content).__name__,
      expected="a JSON object",
      hint="See README.md for the format.",
    )
  return content


def write_csv(
  path: pathlib.Path,
  columns: Sequence[str],
  rows: Sequence[Mapping[str, Any]],
) -> None:
  """Writes rows as CSV; floats in full precision, None as an empty cell.

  A text that a spreadsheet would run as a formula is quoted with an
  apostrophe, since system and case names come from outside.
  """
  buffer = io.StringIO()
  writer = csv.writer(buffer, lineterminator="\n")
  writer.writerow(columns)
  for row in rows:
    writer.writerow([_cell(row.get(column)) for column in columns])
  write_atomic(path, buffer.getvalue())


def _cell(value: Any) -> str:
  if value is None:
    return ""
  if isinstance(value, float):
    return repr(value)
  text = str(value)
  risky = isinstance(value, str) and text[:1] in ("=", "+", "-", "@")
  return "'" + text if risky else text


def environment() -> dict[str, Any]:
  """Versions, device, commit and time of this run, for `run.json`."""
  import jax

  versions: dict[str, str | None] = {}
  for package in _PACKAGES:
    try:
      versions[package] = importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
      versions[package] = None
  return {
    "packages": versions,
    "python": sys.version.split()[0],
    "platform": platform.platform(),
    "devices": [f"{d.platform}: {d.device_kind}" for d in jax.devices()],
    "git_commit": _git_commit(),
    "started": datetime.datetime.now(datetime.UTC).isoformat(
      timespec="seconds"
    ),
  }


def _git_commit() -> str | None:
  """Commit of this checkout, with `-dirty` for local changes; or None."""
  root = pathlib.Path(__file__).resolve().parents[2]
  if not (root / ".git").exists():
    return None
  command = ["git", "-C", str(root), "describe", "--always", "--dirty"]
  try:
    result = subprocess.run(
      command, capture_output=True, text=True, timeout=20, check=False
    )
  except (OSError, subprocess.TimeoutExpired):
    return None
  return result.stdout.strip() or None
