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

T = TypeVar("T")
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
    stored = _stored(
      path, lambda: kind.from_arrays(_read_arrays(path, key), source=path)
    )
    if stored:
      return stored[0]
    result = compute()
    _write_arrays(path, key, result.to_arrays(), compress=kind.compress)
    return result

  def arrays(
    self, key: str, compute: Callable[[], dict[str, np.ndarray]]
  ) -> dict[str, np.ndarray]:
    """Like `record` for named arrays."""
    if self._folder is None:
      return compute()
    path = self._path(key, ".npz")
    stored = _stored(path, lambda: _read_arrays(path, key))
    if stored:
      return stored[0]
    result = compute()
    _write_arrays(path, key, result, compress=True)
    return result

  def value(self, key: str, compute: Callable[[], Any]) -> Any:
    """Like `record` for a JSON value (answers, scores)."""
    if self._folder is None:
      return compute()
    path = self._path(key, ".json")
    stored = _stored(path, lambda: _read_value(path, key))
    if stored:
      return stored[0]
    result = compute()
    entry = {_KEY: key, _DIGEST: digest([key, result]), "value": result}
    text = json.dumps(entry, sort_keys=True, allow_nan=False)
    storage.write_atomic(path, lambda stream: stream.write(text.encode()))
    return result

  def _path(self, key: str, suffix: str) -> pathlib.Path:
    assert self._folder is not None
    return self._folder / key[:2] / f"{key}{suffix}"


def _stored(path: pathlib.Path, read: Callable[[], T]) -> list[T]:
  """What `read` gives, in a list; an empty one if there is no good entry."""
  if not path.exists():
    return []
  try:
    return [read()]
  except errors.InputError as error:
    logging.warning("cache entry not used, computing again: %s", error)
    return []


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


def _read_arrays(path: pathlib.Path, key: str) -> dict[str, np.ndarray]:
  arrays = storage.read_npz(path)
  stated = (str(arrays.pop(_KEY, None)), str(arrays.pop(_DIGEST, None)))
  _compare(path, stated, (key, _content_digest(key, arrays)))
  return arrays


def _write_arrays(
  path: pathlib.Path,
  key: str,
  arrays: Mapping[str, np.ndarray],
  *,
  compress: bool,
) -> None:
  marks = {_DIGEST: _content_digest(key, arrays), _KEY: key}
  named = {name: np.asarray(mark) for name, mark in marks.items()}
  storage.write_npz(path, {**arrays, **named}, compress=compress)


def _compare(path: pathlib.Path, stated: object, wanted: object) -> None:
  if stated != wanted:
    raise errors.InputError(
      path, "key and digest", found=stated, expected=wanted
    )


def _content_digest(key: str, arrays: Mapping[str, np.ndarray]) -> str:
  return digest([key, dict(arrays)])


def _plain(value: Any) -> Any:
  """JSON form of a value; raises TypeError for what has none."""
  if isinstance(value, np.ndarray):
    if value.dtype.hasobject:
      raise TypeError("an array of Python objects has no stable digest")
    # A view of the bytes: gigabytes of depth are not copied to be hashed.
    plain = np.ascontiguousarray(value).reshape(-1).view(np.uint8)
    return {
      "dtype": value.dtype.str,
      "shape": list(value.shape),
      "sha256": hashlib.sha256(plain.data).hexdigest(),
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
