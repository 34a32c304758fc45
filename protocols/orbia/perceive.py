# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""The perception that Orbia needs, from backends by name.

Descriptors and distances see pictures resized to 224 x 224 with area
interpolation, aspect not preserved (specification, 5.3). Where no perceptual
distance is installed, `descriptor` stands in for it: one minus the mean cosine
of co-located patch descriptors. It is not LPIPS, and scores that rest on it
say that they are not comparable.
"""

from __future__ import annotations

import dataclasses
import functools
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from perception import cached, geometry_pass, roles, video
from perception.errors import InputError
from protocols.orbia import novel_view
from protocols.orbia.constants import Constants

NONE = "none"
DESCRIPTOR = "descriptor"
_OFFLINE_FEATURES = "gradient_orientation"
Image = NDArray[np.uint8]
Floats = NDArray[np.floating[Any]]


@dataclasses.dataclass(frozen=True)
class PerceptionConfig:
  """Which backend fills which role.

  Attributes:
    geometry: `auto` takes what was recorded beside the video, else missing.
    features: descriptors.
    distance: perceptual distance; `descriptor` = from the features, `none`.
    masks: tracker of the anchors; `none` leaves identity out.
    novel_view: `point_splats` (offline), a registered backend, or `none`.
    quality: backend by component (`aesthetic`, `imaging`, `smoothness`,
      `hps`); absent components are reported as missing.
    settings: settings by backend name.
    geometry_pass: what a geometry backend sees of a video, one of
      `perception.geometry_pass.PASSES`.
    cache: folder of kept results, or None.
  """

  geometry: str = "auto"
  features: str = _OFFLINE_FEATURES
  distance: str = DESCRIPTOR
  masks: str = NONE
  novel_view: str = novel_view.NAME
  quality: Mapping[str, str] = dataclasses.field(default_factory=dict)
  settings: Mapping[str, Mapping[str, Any]] = dataclasses.field(
    default_factory=dict
  )
  geometry_pass: str = geometry_pass.OWN
  cache: pathlib.Path | None = None


@dataclasses.dataclass(frozen=True)
class Descriptor:
  """Descriptors of one picture.

  Attributes:
    patches: [256, C] of unit norm.
    pooled: [C'] of the whole.
    tokens: [256, C] patches as the backend gave them; the unit ones if it did
      not say how long they were.
  """

  patches: Floats
  pooled: Floats
  tokens: Floats


class Perception:
  """Backends of one run, made when first used."""

  def __init__(self, config: PerceptionConfig, *, c: Constants) -> None:
    """Keeps the configuration; loads nothing."""
    self._config = config
    self._c = c

  @property
  def comparable(self) -> bool:
    """Whether every role that was filled is the published one."""
    filled = [self._features, self._distance, self._tracker, self._renderer]
    return all(
      backend is not None and backend.info.comparable_to_published
      for backend in filled
    )

  def provenance(self) -> dict[str, Any]:
    """By role: the backend, its version, the digest of its weights."""
    config = self._config
    made = {
      "features": (config.features, self._features),
      "distance": (config.distance, self._distance),
      "masks": (config.masks, self._tracker),
      "novel_view": (config.novel_view, self._renderer),
    }
    found: dict[str, Any] = {
      role: {"backend": name, **_identity(backend)}
      for role, (name, backend) in made.items()
    }
    found["quality"] = dict(config.quality)
    found["geometry"] = {"backend": config.geometry}
    return found

  def describe(self, pictures: Sequence[Image]) -> list[Descriptor]:
    """Descriptors of pictures of any size."""
    if not pictures:
      return []
    side = self._c.descriptor_size
    stack = np.stack([resize_area(p, (side, side)) for p in pictures])
    clip = video.clip_from_frames(stack, fps=self._c.fps)
    found = self._features.extract(clip)
    grid = self._c.patch_grid
    if found.patches.shape[1:3] != (grid, grid):
      raise InputError(
        self._config.features,
        "patches",
        found=found.patches.shape[1:3],
        expected=f"a {grid} x {grid} grid on {side} x {side} pictures",
      )
    units = found.patches.reshape(len(pictures), grid * grid, -1)
    tokens = units
    if found.patch_norms is not None:
      tokens = units * found.patch_norms.reshape(len(pictures), -1, 1)
    rows = zip(units, found.pooled, tokens, strict=True)
    return [Descriptor(*row) for row in rows]

  def distance(self, first: Image, second: Image) -> float | None:
    """Perceptual distance of two pictures; None if no backend gives it."""
    if self._config.distance == NONE:
      return None
    if self._config.distance == DESCRIPTOR:
      a, b = self.describe([first, second])
      product = np.sum(a.patches * b.patches, axis=1)
      # Unit descriptors of equal pictures may miss a product of 1 by rounding.
      return max(0.0, 1.0 - float(np.mean(product)))
    side = self._c.descriptor_size
    stacks = [resize_area(p, (side, side))[None] for p in (first, second)]
    return float(self._distance.distance(*stacks)[0])

  def track(
    self, reference: Image, frames: Sequence[Image], masks: NDArray[np.bool_]
  ) -> NDArray[np.bool_] | None:
    """Masks of the anchors in frames that follow a reference picture.

    Args:
      reference: [H, W, 3], the seeds' picture.
      frames: pictures of the same size, in order.
      masks: [R, H, W] seeds.

    Returns:
      [F, R, H, W] bool, or None without a tracker.
    """
    if self._tracker is None:
      return None
    clip = video.clip_from_frames(
      np.stack([reference, *frames]), fps=self._c.fps
    )
    seeded = [k for k, mask in enumerate(masks) if mask.any()]
    out = np.zeros((len(frames), *masks.shape), bool)
    if not seeded:
      return out
    prompts = [roles.ObjectPrompt(k, mask=masks[k]) for k in seeded]
    found = self._tracker.segment(clip, prompts)
    for k in seeded:
      out[:, k] = found.of(k)[1:]
    return out

  def judges(self, component: str) -> bool:
    """Whether a quality component has a backend."""
    return self._config.quality.get(component, NONE) != NONE

  def quality(
    self, component: str, pictures: Sequence[Image]
  ) -> NDArray[np.float64] | None:
    """Native values of pictures, or None if the component has no backend."""
    if not self.judges(component) or not pictures:
      return None
    name = self._config.quality[component]
    scores = self._backend("quality", name).score(np.stack(pictures))
    return np.asarray(scores, np.float64)

  @property
  def renderer(self) -> Any:
    """Novel-view backend, or None."""
    return self._renderer

  @functools.cached_property
  def _features(self) -> Any:
    name = self._config.features
    if name == _OFFLINE_FEATURES:
      patch = self._c.descriptor_size // self._c.patch_grid
      folder = self._config.cache
      return cached.get("features", name, folder=folder, patch=patch)
    return self._backend("features", name)

  @functools.cached_property
  def _distance(self) -> Any:
    if self._config.distance in (NONE, DESCRIPTOR):
      return None
    return self._backend("perceptual_distance", self._config.distance)

  @functools.cached_property
  def _tracker(self) -> Any:
    name = self._config.masks
    return None if name == NONE else self._backend("masks", name)

  @functools.cached_property
  def _renderer(self) -> Any:
    name = self._config.novel_view
    if name == novel_view.NAME:
      return novel_view.PointSplats()
    return None if name == NONE else self._backend("novel_view", name)

  def _backend(self, role: str, name: str) -> Any:
    config = self._config
    settings = config.settings.get(name, {})
    return cached.get(role, name, folder=config.cache, **settings)


def resize_area(picture: Image, size: tuple[int, int]) -> Image:
  """Area interpolation to (h, w), aspect not preserved."""
  if picture.shape[:2] == size:
    return picture
  resized = cv2.resize(
    picture, (size[1], size[0]), interpolation=cv2.INTER_AREA
  )
  return np.asarray(resized, np.uint8)


def _identity(backend: Any) -> dict[str, Any]:
  """What a registered backend says of itself; empty for our own stand-ins."""
  info = getattr(backend, "info", None)
  if info is None:
    return {}
  return {
    "backend_version": info.version,
    "weights_sha256": info.weights_sha256,
    "settings": dict(info.settings),
  }
