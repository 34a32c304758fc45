# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Results of perception in a run's cache folder, found by their provenance.

A record names source, backend, version, weights and settings of each of its
arrays; so does each entry of the cache. Only these texts of an entry are read
to find it, never its arrays.
"""

from __future__ import annotations

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
_Key = tuple[str, ...]


def find(
  folder: pathlib.Path, role: str, provenance: Mapping[str, Any]
) -> tuple[pathlib.Path | None, str]:
  """The entry of a cache that a record was made from.

  Args:
    folder: the cache.
    role: `masks`, `tracks` or `geometry`.
    provenance: what the record says of the role's backend.

  Returns:
    (file, empty), or (None, why not): nothing fits, or several entries do
    (one clip with several prompts), and showing any of them would be a guess.
  """
  found = _index(folder).get(_key(role, provenance), ())
  if len(found) == 1:
    return found[0], ""
  if not found:
    return None, f"no {role} in the cache"
  return None, f"{len(found)} {role} of this clip in the cache, unclear which"


@functools.lru_cache(maxsize=4)
def _index(folder: pathlib.Path) -> Mapping[_Key, tuple[pathlib.Path, ...]]:
  """Entries by role and provenance."""
  found: dict[_Key, tuple[pathlib.Path, ...]] = {}
  for path in sorted(folder.glob("??/*.npz")):
    key = _read_key(path)
    if key is not None:
      found[key] = (*found.get(key, ()), path)
  return found


def _read_key(path: pathlib.Path) -> _Key | None:
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
  return _key(role, texts)


def _key(role: str, provenance: Mapping[str, Any]) -> _Key:
  texts = [str(provenance.get(name) or "") for name in _TEXTS[:-1]]
  settings = json.dumps(provenance.get("settings") or {}, sort_keys=True)
  return (role, *texts, settings)
