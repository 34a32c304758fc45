# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""The `recorded` backend of every role: results that were made elsewhere.

Array results are read from the `.npz` of their record, which keeps its own
provenance; a record that names a source (`source_sha256` not empty) is given
out for that source only. Answers, distances and scores are read from JSONL
files, one object a line, found by digests of what was asked. What was not
recorded is an `InputError`, never a default.
"""

from __future__ import annotations

import json
import os
import pathlib
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from perception import (
  cache,
  errors,
  observation,
  recorded,
  registry,
  roles,
  storage,
)

VERSION = "1"
_Framed = TypeVar(
  "_Framed",
  observation.Geometry,
  observation.Masks,
  observation.Tracks,
  observation.Features,
)


class _Recorded:
  """A file and the identity that it gives."""

  role = ""

  def __init__(self, *, path: str | os.PathLike[str], digest: str) -> None:
    self._path = os.fspath(path)
    self._info = registry.info(
      registry.spec(self.role, "recorded"),
      VERSION,
      settings={"record_sha256": digest},
    )

  @property
  def info(self) -> roles.BackendInfo:
    """Identity; the settings hold the file's digest."""
    return self._info


class RecordedGeometry(_Recorded):
  """The `geometry` role from an `.npz` or an RGB-D folder."""

  role = "geometry"

  def __init__(
    self,
    *,
    path: str | os.PathLike[str],
    intrinsics: np.ndarray | None = None,
  ) -> None:
    """Opens the recording.

    Args:
      path: `Geometry` record, or folder in 7-Scenes or TUM layout.
      intrinsics: [3, 3] of a folder that has no intrinsics file.

    Raises:
      InputError: unreadable or wrong.
    """
    self._folder: recorded.RgbdFolder | None = None
    if os.path.isdir(path):
      self._folder = recorded.open_rgbd(path, intrinsics=intrinsics)
      digest = self._folder.sha256
    else:
      self._record = observation.Geometry.load(path)
      digest = storage.sha256_file(path)
    super().__init__(path=path, digest=digest)

  def reconstruct(
    self, frames: roles.FrameSource, *, cameras: roles.Cameras | None = None
  ) -> observation.Geometry:
    """The recorded rows of the given frames.

    Raises:
      InputError: another source, frames that were not recorded, or known
        cameras (a recording cannot be conditioned).
    """
    if cameras is not None:
      raise errors.InputError(
        self._path,
        "cameras",
        found="known cameras",
        expected="none: a recording has its own",
      )
    if self._folder is not None:
      count = len(self._folder)
      rows = np.asarray(frames.frame_indices)
      known = frames.sha256 == self._folder.sha256 and rows[-1] < count
      if not known or frames.size != self._folder.size:
        raise _mismatch(self._path, frames, "the colour frames of the folder")
      return self._folder.geometry(rows)
    if self._record.video_size != frames.size:
      raise _mismatch(self._path, frames, f"size {self._record.video_size}")
    return _select(self._record, frames, self._path)


class RecordedMasks(_Recorded):
  """The `masks` role from an `.npz`."""

  role = "masks"

  def __init__(self, *, path: str | os.PathLike[str]) -> None:
    """Loads the record; InputError when it is wrong."""
    self._record = observation.Masks.load(path)
    super().__init__(path=path, digest=storage.sha256_file(path))

  def segment(
    self, frames: roles.FrameSource, prompts: Sequence[roles.ObjectPrompt] = ()
  ) -> observation.Masks:
    """The recorded rows of the given frames.

    Args:
      frames: the source; masks of another size are refused.
      prompts: only object ids are used: objects not recorded are an error;
        without prompts all recorded objects are given.
    """
    size = (self._record.masks.shape[2], self._record.masks.shape[3])
    if size != frames.size:
      raise _mismatch(self._path, frames, f"frames of size {size}")
    result = _select(self._record, frames, self._path)
    ids = list(dict.fromkeys(prompt.object_id for prompt in prompts))
    if not ids:
      return result
    masks = np.stack([result.of(object_id) for object_id in ids])
    return observation.Masks(
      masks=masks,
      object_ids=np.array(ids, np.int32),
      frame_indices=result.frame_indices,
      provenance=result.provenance,
    )


class RecordedTracks(_Recorded):
  """The `tracks` role from an `.npz`."""

  role = "tracks"

  def __init__(self, *, path: str | os.PathLike[str]) -> None:
    """Loads the record; InputError when it is wrong."""
    self._record = observation.Tracks.load(path)
    super().__init__(path=path, digest=storage.sha256_file(path))

  def track(
    self, frames: roles.FrameSource, queries: roles.Queries | None = None
  ) -> observation.Tracks:
    """The recorded rows of the given frames; queries are not used."""
    size = self._record.video_size
    if size is not None and size != frames.size:
      raise _mismatch(self._path, frames, f"frames of size {size}")
    return _select(self._record, frames, self._path)


class RecordedFeatures(_Recorded):
  """The `features` role from an `.npz`."""

  role = "features"

  def __init__(self, *, path: str | os.PathLike[str]) -> None:
    """Loads the record; InputError when it is wrong."""
    self._record = observation.Features.load(path)
    super().__init__(path=path, digest=storage.sha256_file(path))

  def extract(self, frames: roles.FrameSource) -> observation.Features:
    """The recorded rows of the given frames."""
    return _select(self._record, frames, self._path)


class RecordedDetections(_Recorded):
  """The `detections` role from one or more `.npz` files.

  A record's `source_sha256` is `image_digest` of its picture.
  """

  role = "detections"

  def __init__(self, *, path: str | os.PathLike[str]) -> None:
    """Loads a record, or all `.npz` of a folder.

    Raises:
      InputError: a record is wrong, names no picture, or there is none.
    """
    folder = pathlib.Path(path)
    files = sorted(folder.glob("*.npz")) if folder.is_dir() else [folder]
    self._records = {}
    for file in files:
      record = observation.Detections.load(file)
      self._records[record.provenance.source_sha256] = record
    if not self._records or "" in self._records:
      raise errors.InputError(
        path,
        "records",
        found="none" if not self._records else "a record without source_sha256",
        expected=".npz records that name their picture's digest",
      )
    super().__init__(path=path, digest=cache.digest(sorted(self._records)))

  def detect(
    self, image: np.ndarray, phrases: Sequence[str]
  ) -> observation.Detections:
    """The boxes recorded for a picture whose labels are among the phrases."""
    record = self._records.get(image_digest(image))
    if record is None:
      raise errors.InputError(
        self._path,
        "picture",
        found=f"no boxes for {image_digest(image)}",
        expected=f"one of {len(self._records)} recorded pictures",
      )
    keep = np.isin(record.labels, np.array(phrases, np.str_))
    return observation.Detections(
      boxes=record.boxes[keep],
      scores=record.scores[keep],
      labels=record.labels[keep],
      provenance=record.provenance,
      video_size=record.video_size,
      frame_index=record.frame_index,
    )


class RecordedAnswers(_Recorded):
  """The `vision_language` role from a transcript.

  Lines: {"request_sha256", "text", "finish_reason", "backend",
  "backend_version"} and optionally "weights_sha256" and "settings".
  """

  role = "vision_language"

  def __init__(self, *, path: str | os.PathLike[str]) -> None:
    """Reads the transcript; InputError names the line that is wrong."""
    keys = ("text", "finish_reason", "backend", "backend_version")
    self._answers = _read_lines(path, "request_sha256", keys)
    super().__init__(path=path, digest=storage.sha256_file(path))

  def answer(self, request: roles.ChatRequest) -> roles.ChatAnswer:
    """The recorded reply to exactly this request."""
    digest = request.sha256()
    line = _find(self._answers, digest, self._path)
    return roles.ChatAnswer(
      text=line["text"],
      finish_reason=line["finish_reason"],
      provenance=observation.Provenance(
        source_sha256=digest,
        backend=line["backend"],
        backend_version=line["backend_version"],
        weights_sha256=line.get("weights_sha256", ""),
        settings=line.get("settings", {}),
      ),
    )


class RecordedDistances(_Recorded):
  """The `perceptual_distance` role from a file.

  Lines: {"pair_sha256": cache.digest([image_digest(a), image_digest(b)]),
  "value"}.
  """

  role = "perceptual_distance"

  def __init__(self, *, path: str | os.PathLike[str]) -> None:
    """Reads the file; InputError names the line that is wrong."""
    self._values = _read_lines(path, "pair_sha256", ("value",))
    super().__init__(path=path, digest=storage.sha256_file(path))

  def distance(self, images_a: np.ndarray, images_b: np.ndarray) -> np.ndarray:
    """[B] float32 distances recorded for the pairs."""
    keys = [
      cache.digest([image_digest(a), image_digest(b)])
      for a, b in zip(images_a, images_b, strict=True)
    ]
    return _values(self._values, keys, self._path)


class RecordedQuality(_Recorded):
  """The `quality` role from a file.

  Lines: {"image_sha256": image_digest(image), "value"}. Scores of a whole clip
  are stored under cache.digest of the list of its pictures' digests. Texts are
  part of neither: record one file per text.
  """

  role = "quality"

  def __init__(
    self,
    *,
    path: str | os.PathLike[str],
    higher_is_better: bool,
    value_range: tuple[float, float] = (-np.inf, np.inf),
    scores_clip: bool = False,
  ) -> None:
    """Reads the file; InputError names the line that is wrong."""
    self._values = _read_lines(path, "image_sha256", ("value",))
    self.higher_is_better = higher_is_better
    self.value_range = value_range
    self.scores_clip = scores_clip
    super().__init__(path=path, digest=storage.sha256_file(path))

  def score(self, images: np.ndarray, *, text: str | None = None) -> np.ndarray:
    """[B] float32 scores recorded for the pictures ([1] for a clip)."""
    keys = [image_digest(image) for image in images]
    if self.scores_clip:
      keys = [cache.digest(keys)]
    return _values(self._values, keys, self._path)


def image_digest(image: np.ndarray) -> str:
  """Digest of a picture's shape, dtype and pixels."""
  return cache.digest(np.asarray(image))


def _mismatch(
  path: str, frames: roles.FrameSource, expected: object
) -> errors.InputError:
  return errors.InputError(
    path,
    "source",
    found=f"{frames.name} of size {frames.size}, sha256 {frames.sha256[:12]}",
    expected=expected,
  )


def _select(record: _Framed, frames: roles.FrameSource, path: str) -> _Framed:
  """The rows of a record that belong to the given frames."""
  digest = record.provenance.source_sha256
  if digest and digest != frames.sha256:
    raise _mismatch(path, frames, f"the source {digest[:12]} of the record")
  indices = record.frame_indices
  wanted = np.asarray(frames.frame_indices)
  rows = np.searchsorted(indices, wanted)
  inside = rows < len(indices)
  found = inside & (indices[np.where(inside, rows, 0)] == wanted)
  if not np.all(found):
    missing = wanted[~found]
    raise errors.InputError(
      path,
      "frame_indices",
      found=f"no rows for {len(missing)} frames, first {missing[0]}",
      expected=f"rows for all {len(wanted)} frames of {frames.name}",
    )
  if len(rows) == len(indices):
    return record
  return record.select(rows)


def _read_lines(
  path: str | os.PathLike[str], key: str, others: Sequence[str]
) -> dict[str, dict[str, Any]]:
  """Objects of a JSONL file by one of their keys."""
  try:
    lines = pathlib.Path(path).read_text(encoding="utf-8").splitlines()
  except (OSError, UnicodeDecodeError) as error:
    raise errors.InputError(
      path, "file", found=error, expected="a JSONL file"
    ) from error
  result: dict[str, dict[str, Any]] = {}
  for number, line in enumerate(lines, start=1):
    if not line.strip():
      continue
    try:
      entry = json.loads(line)
    except json.JSONDecodeError as error:
      raise errors.InputError(
        path, f"line {number}", found=error, expected="a JSON object"
      ) from error
    needed = (key, *others)
    if not isinstance(entry, dict) or any(name not in entry for name in needed):
      raise errors.InputError(
        path, f"line {number}", found=line, expected=f"the keys {needed}"
      )
    if result.get(entry[key], entry) != entry:
      raise errors.InputError(
        path,
        f"line {number}",
        found=f"a second entry for {entry[key]}",
        expected="one entry each",
      )
    result[entry[key]] = entry
  return result


def _find(
  entries: dict[str, dict[str, Any]], key: str, path: str
) -> dict[str, Any]:
  if key not in entries:
    raise errors.InputError(
      path,
      "entry",
      found=f"none for {key}",
      expected=f"one of {len(entries)} recorded entries",
    )
  return entries[key]


def _values(
  entries: dict[str, dict[str, Any]], keys: Sequence[str], path: str
) -> np.ndarray:
  values = [_find(entries, key, path)["value"] for key in keys]
  for value in values:
    if not isinstance(value, (int, float)) or not np.isfinite(value):
      raise errors.InputError(
        path, "value", found=value, expected="a finite number"
      )
  return np.array(values, np.float32)
