# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Which backends a measurement uses, how they are made, what they are.

Backends are made once per process and settings; with a cache folder their
results are kept by content, so that the physical pair of a step runs once for
all systems. A record names each role's
backend with its version, the digest of its weights and its settings.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import pathlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perception import cached, video
from perception.errors import InputError
from protocols.egogeneval import measure_ssp, pair_pose

NONE = "none"
BESIDE = "beside"
PNP = "pnp"
VISION_LANGUAGE = "vision_language"


@dataclasses.dataclass(frozen=True)
class PerceptionConfig:
  """Backends of a measurement, by registered name.

  Attributes:
    pose: `pnp` (offline) or a geometry backend.
    detector: detections backend, or `none` to leave SSP out.
    features: features backend, or `none`.
    vision_language: vision-language backend, or `none`.
    depth: `beside` (a .depth.npy beside each output), a geometry backend, or
      `none`.
    matcher: `vision_language` or `similarity`.
    settings: settings by backend name.
    cache: folder of kept results, or None.
  """

  pose: str = PNP
  detector: str = NONE
  features: str = "gradient_orientation"
  vision_language: str = NONE
  depth: str = NONE
  matcher: str = VISION_LANGUAGE
  settings: Mapping[str, Mapping[str, Any]] = dataclasses.field(
    default_factory=dict
  )
  cache: pathlib.Path | None = None

  @property
  def scene_roles(self) -> dict[str, tuple[str, str]]:
    """(role, backend name) of each part of SSP, `none` included."""
    return {
      "detections": ("detections", self.detector),
      "features": ("features", self.features),
      "vision_language": ("vision_language", self.vision_language),
      "depth": ("geometry", self.depth),
    }


def pose_backend(config: PerceptionConfig) -> pair_pose.PairPose:
  """The pair pose backend of CMG."""
  return _pose_backend(config.pose, _key(config, config.pose), config.cache)


def ssp_backends(
  config: PerceptionConfig, output: pathlib.Path
) -> measure_ssp.SspBackends:
  """The backends of SSP for one output."""
  depth: measure_ssp.GeneratedDepth | None = None
  if config.depth == BESIDE:
    depth = _DepthBeside(output)
  elif config.depth != NONE:
    depth = _GeometryDepth(_optional(config, "geometry", config.depth))
  return measure_ssp.SspBackends(
    _optional(config, "detections", config.detector),
    _optional(config, "features", config.features),
    _optional(config, "vision_language", config.vision_language),
    depth,
    config.matcher,
  )


def provenance(config: PerceptionConfig) -> dict[str, dict[str, Any]]:
  """By role: the backend, its version, weights and settings.

  Backends that a run leaves out are absent.
  """
  pose = pose_backend(config)
  found = {"pose": {"backend": pose.info.name, **_identity(pose)}}
  if config.detector == NONE:
    return found
  for part, (role, name) in config.scene_roles.items():
    if name == BESIDE:
      found[part] = {"backend": BESIDE}
    elif name != NONE:
      found[part] = {
        "backend": name,
        **_identity(_optional(config, role, name)),
      }
  return found


def comparable(config: PerceptionConfig) -> bool:
  """Whether CMG and SSP rest on published backends alone, none left out."""
  parts = list(config.scene_roles.values())
  if config.matcher != VISION_LANGUAGE or any(
    name in (NONE, BESIDE) for _, name in parts
  ):
    return False
  return pose_backend(config).info.comparable_to_published and all(
    _optional(config, role, name).info.comparable_to_published
    for role, name in parts
  )


class _DepthBeside:
  """Depth that a generator wrote beside its output."""

  def __init__(self, output: pathlib.Path) -> None:
    self._path = output.with_suffix(".depth.npy")

  def depth(self, image: NDArray[np.uint8]) -> NDArray[np.float32] | None:
    """See `measure_ssp.GeneratedDepth`."""
    try:
      depth = np.asarray(np.load(self._path, allow_pickle=False), np.float32)
      if depth.ndim != 2:
        raise ValueError(f"an array of shape {depth.shape}")
    except (OSError, ValueError) as error:
      raise InputError(
        self._path,
        "depth",
        found=error,
        expected="a float32 .npy file beside the output",
      ) from error
    return depth


class _GeometryDepth:
  """Single-image depth from a geometry backend."""

  def __init__(self, backend: Any) -> None:
    self._backend = backend

  def depth(self, image: NDArray[np.uint8]) -> NDArray[np.float32] | None:
    """See `measure_ssp.GeneratedDepth`."""
    clip = video.clip_from_frames(image[None], fps=0, name="generated")
    return np.asarray(self._backend.reconstruct(clip).depth[0], np.float32)


def _identity(backend: Any) -> dict[str, Any]:
  """What a backend says of itself; see `roles.BackendInfo`."""
  info = backend.info
  return {
    "backend_version": info.version,
    "weights_sha256": info.weights_sha256,
    "settings": dict(info.settings),
  }


def _key(config: PerceptionConfig, name: str) -> str:
  """Settings of a backend as text, so that they can key a cache."""
  return json.dumps(config.settings.get(name, {}), sort_keys=True)


def _optional(config: PerceptionConfig, role: str, name: str) -> Any:
  if name == NONE:
    return None
  return _backend(role, name, _key(config, name), config.cache)


@functools.cache
def _backend(
  role: str, name: str, settings: str, folder: pathlib.Path | None
) -> Any:
  own = json.loads(settings)
  # One name can stand in several roles: settings may be given by role.
  if role in own and isinstance(own[role], Mapping):
    own = dict(own[role])
  return cached.get(role, name, folder=folder, **own)


@functools.cache
def _pose_backend(
  name: str, settings: str, folder: pathlib.Path | None
) -> pair_pose.PairPose:
  if name == PNP:
    return pair_pose.PnpPairPose(**json.loads(settings))
  backend = _backend("geometry", name, settings, folder)
  return pair_pose.GeometryPairPose(backend)
