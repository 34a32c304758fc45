# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Results of perception in a run's cache folder, found by their provenance.

A record names source, backend, version, weights and settings of each of its
arrays; so does each entry of the cache. Only these texts of an entry are read
to find it, never its arrays.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import pathlib
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np

# An array that only the records of this role have.
_ROLES = {"masks": "masks", "tracks": "xy", "geometry": "depth"}
_TEXTS = (
  "source_sha256",
  "backend",
  "backend_version",
  "weights_sha256",
  "settings",
)


def find(
  folder: pathlib.Path, role: str, wanted: Mapping[str, Any]
) -> tuple[pathlib.Path | None, str]:
  """The entry of a cache that a record was made from.

  Args:
    folder: the cache.
    role: `masks`, `tracks` or `geometry`.
    wanted: what the record says of the role's backend; what it leaves out is
      not compared.

  Returns:
    (file, empty), or (None, why not): nothing fits, or several entries do
    (one clip with several prompts), and showing any of them would be a guess.
  """
  texts = _texts({k: v for k, v in wanted.items() if k in _TEXTS})
  found = [
    entry.path
    for entry in _index(folder).get(str(wanted.get("source_sha256")), ())
    if entry.role == role and texts.items() <= entry.texts.items()
  ]
  if len(found) == 1:
    return found[0], ""
  if not found:
    return None, f"no {role} in the cache"
  return None, f"{len(found)} {role} of this clip in the cache, unclear which"


@dataclasses.dataclass(frozen=True)
class _Entry:
  """An entry of a cache and what it says of its origin."""

  path: pathlib.Path
  role: str
  texts: Mapping[str, str]


@functools.lru_cache(maxsize=4)
def _index(folder: pathlib.Path) -> Mapping[str, list[_Entry]]:
  """Entries by the digest of their source."""
  found: dict[str, list[_Entry]] = {}
  for path in sorted(folder.glob("??/*.npz")):
    entry = _read(path)
    if entry is not None:
      found.setdefault(entry.texts.get("source_sha256", ""), []).append(entry)
  return found


def _read(path: pathlib.Path) -> _Entry | None:
  """Role and provenance of an entry; None for what is no entry."""
  try:
    # A broken archive would leave a file open that NumPy opened itself.
    with path.open("rb") as stream, np.load(stream) as archive:
      role = next((r for r, a in _ROLES.items() if a in archive.files), None)
      if role is None:
        return None
      texts = {k: str(archive[k]) for k in _TEXTS if k in archive.files}
      texts["settings"] = json.loads(texts.get("settings", "{}"))
  except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
    return None
  return _Entry(path, role, _texts(texts))


def _texts(provenance: Mapping[str, Any]) -> dict[str, str]:
  """Provenance as texts that can be compared."""
  return {
    name: json.dumps(value or {}, sort_keys=True)
    if name == "settings"
    else str(value or "")
    for name, value in provenance.items()
  }
