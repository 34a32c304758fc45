# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Results of perception, kept by content.

The key is a digest of everything that a result depends on: the input's bytes,
the backend with its version, weights and settings, and prompts or queries.
File names and dates play no part. An entry carries its key and a digest of its
content; one that does not match is reported in the log and computed again.
"""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np
from absl import logging

from perception import errors, observation, roles, storage

_KEY = f"{observation.CACHE_PREFIX}key"
_DIGEST = f"{observation.CACHE_PREFIX}sha256"

RecordT = TypeVar("RecordT", bound=observation.Record)


def source_digest(frames: roles.FrameSource) -> str:
  """Digest of which frames of which bytes, at which size."""
  content = {
    "sha256": frames.sha256,
    "frame_indices": np.asarray(frames.frame_indices),
    "size": list(frames.size),
  }
  return digest(content)


def result_key(source: str, info: roles.BackendInfo, **inputs: Any) -> str:
  """Key of one result.

  Args:
    source: digest of the input, for example `source_digest(frames)`.
    info: the backend.
    **inputs: whatever else the result depends on: prompts, queries, cameras.
      JSON values, arrays, and dataclasses of them.
  """
  content = {
    "source": source,
    "role": info.role,
    "backend": info.name,
    "version": info.version,
    "weights": info.weights_sha256,
    "settings": info.settings,
    "inputs": inputs,
  }
  return digest(content)


def digest(value: Any) -> str:
  """SHA-256 of a value as canonical JSON; arrays enter by type and bytes."""
  text = json.dumps(
    _plain(value), sort_keys=True, separators=(",", ":"), allow_nan=False
  )
  return hashlib.sha256(text.encode()).hexdigest()


class Cache:
  """A folder of results; several processes may share it."""

  def __init__(self, folder: str | os.PathLike[str] | None) -> None:
    """Uses `folder`, which is made when needed; None keeps nothing."""
    self._folder = None if folder is None else pathlib.Path(folder)

  def record(
    self, kind: type[RecordT], key: str, compute: Callable[[], RecordT]
  ) -> RecordT:
    """The record under a key, computed and kept if it is not there.

    Raises:
      InputError: the folder cannot be written, or what `compute` raises.
    """
    if self._folder is None:
      return compute()
    path = self._path(key, ".npz")
    if path.exists():
      try:
        arrays = storage.read_npz(path)
        _verify(path, key, arrays)
        return kind.from_arrays(arrays, source=path)
      except errors.InputError as error:
        logging.warning("cache entry not used, computing again: %s", error)
    result = compute()
    arrays = result.to_arrays()
    arrays[_DIGEST] = np.asarray(_content_digest(key, arrays))
    arrays[_KEY] = np.asarray(key)
    storage.write_npz(path, arrays, compress=kind.compress)
    return result

  def value(self, key: str, compute: Callable[[], Any]) -> Any:
    """Like `record` for a JSON value (answers, scores)."""
    if self._folder is None:
      return compute()
    path = self._path(key, ".json")
    if path.exists():
      try:
        return _read_value(path, key)
      except errors.InputError as error:
        logging.warning("cache entry not used, computing again: %s", error)
    result = compute()
    entry = {_KEY: key, _DIGEST: digest([key, result]), "value": result}
    text = json.dumps(entry, sort_keys=True, allow_nan=False)
    storage.write_atomic(path, lambda stream: stream.write(text.encode()))
    return result

  def _path(self, key: str, suffix: str) -> pathlib.Path:
    assert self._folder is not None
    return self._folder / key[:2] / f"{key}{suffix}"


def _read_value(path: pathlib.Path, key: str) -> Any:
  try:
    entry = json.loads(path.read_text(encoding="utf-8"))
    value = entry["value"]
    stated = (entry[_KEY], entry[_DIGEST])
  except (OSError, ValueError, KeyError, TypeError) as error:
    raise errors.InputError(
      path, "entry", found=repr(error), expected="a cached value"
    ) from error
  _compare(path, stated, (key, digest([key, value])))
  return value


def _verify(
  path: pathlib.Path, key: str, arrays: Mapping[str, np.ndarray]
) -> None:
  stated = (str(arrays.get(_KEY)), str(arrays.get(_DIGEST)))
  _compare(path, stated, (key, _content_digest(key, arrays)))


def _compare(path: pathlib.Path, stated: object, wanted: object) -> None:
  if stated != wanted:
    raise errors.InputError(
      path, "key and digest", found=stated, expected=wanted
    )


def _content_digest(key: str, arrays: Mapping[str, np.ndarray]) -> str:
  content = {
    name: array
    for name, array in arrays.items()
    if not name.startswith(observation.CACHE_PREFIX)
  }
  return digest([key, content])


def _plain(value: Any) -> Any:
  """JSON form of a value; raises TypeError for what has none."""
  if isinstance(value, np.ndarray):
    if value.dtype.hasobject:
      raise TypeError("an array of Python objects has no stable digest")
    pixels = np.ascontiguousarray(value)
    return {
      "dtype": pixels.dtype.str,
      "shape": list(value.shape),
      "sha256": hashlib.sha256(pixels.tobytes()).hexdigest(),
    }
  if isinstance(value, np.generic):
    return value.item()
  if isinstance(value, Mapping):
    return {str(name): _plain(item) for name, item in value.items()}
  if isinstance(value, (list, tuple)):
    return [_plain(item) for item in value]
  if hasattr(value, "__dataclass_fields__"):
    fields = value.__dataclass_fields__
    return {name: _plain(getattr(value, name)) for name in fields}
  if value is None or isinstance(value, (bool, int, float, str)):
    return value
  raise TypeError(f"{type(value).__name__} has no stable digest")
