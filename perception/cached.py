# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Backends whose results are kept by content: `registry.get` with a folder.

What a result is kept under: the bytes and rows of its frames (or its pixels),
the backend with version, weights and settings, and everything else that was
given (prompts, queries, cameras, phrases, the question). A second run, another
protocol or another process with the same folder takes the result from there;
the backend is made, but does not run.

The folder also keeps what each backend said of itself. Where a backend cannot
be made - its package or its weights are elsewhere - its kept results are still
given out, and a result that was not kept is an error: perception may run on one
machine (`bin.perceive`) and scoring on another.

Not kept: Gaussians, which are larger than what they are made from, and
whatever a backend offers beyond its role.

That a clip has no geometry (`DegenerateError`) is a result and is kept too; any
other failure is not.

A question may be asked again because its answer was of no use; the second time
counts as another question, or the same useless answer would come back.
"""

from __future__ import annotations

import collections
import dataclasses
import json
import os
import pathlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from absl import logging

from perception import cache, errors, observation, registry, roles, storage
from perception.degenerate import DegenerateError


def get(
  role: str,
  name: str,
  *,
  folder: str | os.PathLike[str] | None,
  **settings: Any,
) -> Any:
  """`registry.get`, with results kept in a folder.

  Args:
    role: one of `roles.ROLES`; the result satisfies its Protocol.
    name: a registered name.
    folder: where results are kept; None keeps nothing.
    **settings: the backend's own options.

  Raises:
    InputError: see `registry.get`; not where the folder knows this backend.
  """
  if folder is None:
    return registry.get(role, name, **settings)
  wanted = json.dumps([role, name, settings], sort_keys=True, default=os.fspath)
  path = pathlib.Path(folder, "backends", f"{cache.digest(wanted)}.json")
  try:
    backend = registry.get(role, name, **settings)
  except errors.InputError as error:
    if not path.is_file():
      raise
    logging.info("only kept results of %s %s: %s", role, name, error)
    backend = _Elsewhere(_read_info(path), error)
  else:
    text = json.dumps(dataclasses.asdict(backend.info), sort_keys=True)
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
      storage.write_atomic(path, lambda stream: stream.write(text.encode()))
  return wrap(backend, folder)


class _Elsewhere:
  """A backend that ran somewhere else: an identity, and nothing that runs."""

  def __init__(self, info: roles.BackendInfo, error: errors.InputError) -> None:
    self.info = info
    self._error = error

  def __getattr__(self, name: str) -> Any:
    if name.startswith("_"):
      raise AttributeError(name)
    raise errors.InputError(
      f"{self.info.role} backend {self.info.name!r}",
      name,
      found=f"no kept result for this input, and {self._error}",
      expected="a result kept by bin.perceive, or a backend that can run",
    )


def _read_info(path: pathlib.Path) -> roles.BackendInfo:
  try:
    return roles.BackendInfo(**json.loads(path.read_text(encoding="utf-8")))
  except (OSError, ValueError, TypeError) as error:
    raise errors.InputError(
      path, "backend", found=error, expected="what a backend said of itself"
    ) from error


def wrap(backend: Any, folder: str | os.PathLike[str]) -> Any:
  """A backend of any role with its results kept in a folder."""
  return _WRAPPERS[backend.info.role](backend, cache.Cache(folder))


class _Cached:
  """A backend beside its cache; other attributes are the backend's own."""

  def __init__(self, backend: Any, kept: cache.Cache) -> None:
    self._backend = backend
    self._cache = kept

  def __getattr__(self, name: str) -> Any:
    if name.startswith("_"):  # not yet set: copies and pickles ask early
      raise AttributeError(name)
    return getattr(self._backend, name)

  @property
  def info(self) -> roles.BackendInfo:
    """The backend's."""
    info: roles.BackendInfo = self._backend.info
    return info

  def _key(self, source: str, **inputs: Any) -> str:
    return cache.result_key(source, self.info, **inputs)

  def _floats(self, key: str, compute: Callable[[], np.ndarray]) -> np.ndarray:
    """float32 numbers as JSON, which keeps every digit."""
    values = self._cache.value(key, lambda: compute().tolist())
    return np.asarray(values, np.float32)


class _Geometry(_Cached):
  def reconstruct(
    self, frames: roles.FrameSource, *, cameras: roles.Cameras | None = None
  ) -> observation.Geometry:
    known = {} if cameras is None else {"cameras": cameras}
    key = self._key(cache.source_digest(frames), **known)

    def recorded() -> observation.Geometry:
      return self._cache.record(
        observation.Geometry,
        key,
        lambda: self._backend.reconstruct(frames, cameras=cameras),
      )

    found: list[observation.Geometry] = []

    def refusal() -> dict[str, str] | None:
      try:
        found.append(recorded())
      except DegenerateError as error:
        same = error.source == frames.name  # a name is not part of a result
        return {**vars(error), "source": "" if same else error.source}
      return None

    stated = self._cache.value(cache.digest([key, "refusal"]), refusal)
    if stated is not None:
      text = {**stated, "source": stated["source"] or frames.name}
      raise DegenerateError(text.pop("source"), text.pop("field"), **text)
    return found[0] if found else recorded()


class _Masks(_Cached):
  def segment(
    self, frames: roles.FrameSource, prompts: Sequence[roles.ObjectPrompt]
  ) -> observation.Masks:
    return self._cache.record(
      observation.Masks,
      self._key(cache.source_digest(frames), prompts=prompts),
      lambda: self._backend.segment(frames, prompts),
    )


class _Tracks(_Cached):
  def track(
    self, frames: roles.FrameSource, queries: roles.Queries
  ) -> observation.Tracks:
    return self._cache.record(
      observation.Tracks,
      self._key(cache.source_digest(frames), queries=queries),
      lambda: self._backend.track(frames, queries),
    )


class _Features(_Cached):
  def extract(self, frames: roles.FrameSource) -> observation.Features:
    return self._cache.record(
      observation.Features,
      self._key(cache.source_digest(frames)),
      lambda: self._backend.extract(frames),
    )


class _Detections(_Cached):
  def detect(
    self, image: np.ndarray, phrases: Sequence[str]
  ) -> observation.Detections:
    return self._cache.record(
      observation.Detections,
      self._key(cache.digest(image), phrases=list(phrases)),
      lambda: self._backend.detect(image, phrases),
    )


class _VisionLanguage(_Cached):
  def __init__(self, backend: Any, kept: cache.Cache) -> None:
    super().__init__(backend, kept)
    self._asked: collections.Counter[str] = collections.Counter()

  def answer(self, request: roles.ChatRequest) -> roles.ChatAnswer:
    source = request.sha256()
    attempt = self._asked[source]
    self._asked[source] += 1
    found = self._cache.value(
      self._key(source, attempt=attempt),
      lambda: dataclasses.asdict(self._backend.answer(request)),
    )
    provenance = observation.Provenance(**found["provenance"])
    return roles.ChatAnswer(**{**found, "provenance": provenance})


class _PerceptualDistance(_Cached):
  def distance(self, images_a: np.ndarray, images_b: np.ndarray) -> np.ndarray:
    return self._floats(
      self._key(cache.digest([images_a, images_b])),
      lambda: self._backend.distance(images_a, images_b),
    )


class _Quality(_Cached):
  def score(self, images: np.ndarray, *, text: str | None = None) -> np.ndarray:
    return self._floats(
      self._key(cache.digest(images), text=text),
      lambda: self._backend.score(images, text=text),
    )


class _NovelView(_Cached):
  def render(
    self,
    frames: roles.FrameSource,
    geometry: observation.Geometry,
    *,
    intrinsics: np.ndarray,
    c2w: np.ndarray,
    size: tuple[int, int],
  ) -> tuple[np.ndarray, np.ndarray]:
    cameras = {"intrinsics": intrinsics, "c2w": c2w, "size": list(size)}
    key = self._key(
      cache.source_digest(frames), geometry=geometry.to_arrays(), **cameras
    )

    def compute() -> dict[str, np.ndarray]:
      pictures, covered = self._backend.render(
        frames, geometry, intrinsics=intrinsics, c2w=c2w, size=size
      )
      return {"pictures": pictures, "covered": covered}

    found = self._cache.arrays(key, compute)
    return found["pictures"], found["covered"]


_WRAPPERS = {
  "geometry": _Geometry,
  "masks": _Masks,
  "tracks": _Tracks,
  "features": _Features,
  "detections": _Detections,
  "vision_language": _VisionLanguage,
  "perceptual_distance": _PerceptualDistance,
  "quality": _Quality,
  "novel_view": _NovelView,
}
