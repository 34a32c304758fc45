# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Seconds per frame of every perception backend that can run here.

Offline backends run as they are; neural ones with random weights, since time
does not depend on their values, at the size given in the note, on a GPU where
torch sees one. A backend that cannot run is listed with the reason. Peak
memory of torch's device is stated where there is one.

The hand-over of a depth stack to JAX is timed by DLPack against a copy through
the host.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import cv2
import numpy as np

from perception import errors, registry, roles, video
from protocols.common import timing

_SIZE = (240, 320)
_BOX = (120.0, 80.0, 200.0, 160.0)
_RANDOM = {"weights": "random"}


@dataclasses.dataclass(frozen=True)
class _Work:
  """One backend's task.

  Attributes:
    role: of the backend.
    name: of the backend.
    run: takes the backend and a clip.
    settings: of the backend.
    quick: settings to use instead with `quick`.
    frames: at most this many frames of the clip.
  """

  role: str
  name: str
  run: Callable[[Any, video.Clip], object]
  settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
  quick: Mapping[str, Any] = dataclasses.field(default_factory=dict)
  frames: int = 8


def run(*, quick: bool) -> list[timing.Row]:
  """One row per backend.

  Args:
    quick: small inputs to neural backends; figures then mean little.
  """
  clip = _clip()
  rows = [row for work in _works() for row in _rows(work, clip, quick)]
  return rows + list(_handoff_rows(quick))


def _clip() -> video.Clip:
  """Eight frames of two textured layers with parallax."""
  rng = np.random.default_rng(0)
  height, width = _SIZE
  noise = rng.normal(size=(height, 2 * width)).astype(np.float32)
  rough = cv2.GaussianBlur(noise, (0, 0), 2.0)
  shade = np.clip(rough / rough.std() * 40.0 + 120.0, 0, 255)
  tints = ((0.6, 0.8, 1.0), (1.0, 0.5, 0.2))
  far, near = (
    (shade[:, ::step, None] * np.array(tint)).astype(np.uint8)
    for tint, step in zip(tints, (1, -1), strict=True)
  )
  x_min, y_min, x_max, y_max = (int(value) for value in _BOX)
  frames = []
  for row in range(8):
    frame = far[:, 3 * row : 3 * row + width].copy()
    inside = slice(x_min + 9 * row, x_max + 9 * row)
    frame[y_min:y_max, x_min:x_max] = near[y_min:y_max, inside]
    frames.append(frame)
  return video.clip_from_frames(np.stack(frames), fps=10)


def _works() -> list[_Work]:
  def reconstruct(backend: Any, clip: video.Clip) -> object:
    return backend.reconstruct(clip).depth

  def segment(backend: Any, clip: video.Clip) -> object:
    return backend.segment(clip, [roles.ObjectPrompt(1, box=_BOX)]).masks

  def track(backend: Any, clip: video.Clip) -> object:
    x, y = np.meshgrid(np.arange(20, 300, 40), np.arange(20, 220, 40))
    xy = np.stack([x, y], -1).reshape(-1, 2).astype(np.float32)
    zero = np.zeros(len(xy), np.int32)
    return backend.track(clip, roles.Queries(xy, zero, zero)).xy

  def extract(backend: Any, clip: video.Clip) -> object:
    return backend.extract(clip).patches

  def detect(backend: Any, clip: video.Clip) -> object:
    return [backend.detect(frame, ["a box"]).boxes for frame in clip.frames]

  def distance(backend: Any, clip: video.Clip) -> object:
    return backend.distance(clip.frames, clip.frames[::-1].copy())

  def score(backend: Any, clip: video.Clip) -> object:
    return backend.score(clip.frames)

  small = {"model": "da3-small", "process_res": 56, **_RANDOM}
  return [
    _Work("geometry", "opencv", reconstruct, {"focal_px": 300.0}),
    _Work(
      "geometry",
      "depth_anything3",
      reconstruct,
      {"model": "da3-small", **_RANDOM},
      small,
      frames=4,
    ),
    _Work("masks", "grabcut_flow", segment),
    _Work("masks", "sam2", segment, _RANDOM, {**_RANDOM, "image_size": 128}),
    _Work("tracks", "lucas_kanade", track),
    _Work(
      "tracks",
      "cotracker3",
      track,
      _RANDOM,
      {**_RANDOM, "resolution": (96, 128)},
    ),
    _Work("features", "gradient_orientation", extract),
    _Work("features", "dinov2", extract, _RANDOM),
    _Work("features", "dinov3", extract, _RANDOM),
    _Work("detections", "grounding_dino", detect, _RANDOM, frames=2),
    _Work("perceptual_distance", "lpips", distance, _RANDOM),
    _Work("quality", "laion_aesthetic", score, _RANDOM),
    _Work("quality", "amt_s", score, _RANDOM),
  ]


def _rows(work: _Work, clip: video.Clip, quick: bool) -> Iterator[timing.Row]:
  """The backend's row, or one that says why there is none."""
  name = f"{work.role} {work.name}"
  settings = (work.quick or work.settings) if quick else work.settings
  state = registry.availability(work.role, work.name)
  if not state.available:
    yield timing.Row(name, None, math.nan, note=f"not run: {state.reason}")
    return
  frames = min(work.frames, len(clip))
  part = video.clip_from_frames(clip.frames[:frames], fps=10)
  try:
    backend = registry.get(work.role, work.name, **settings)
    start = time.perf_counter()
    work.run(backend, part)
    cold = time.perf_counter() - start
    start = time.perf_counter()
    work.run(backend, part)
    warm = time.perf_counter() - start
  except errors.InputError as error:
    yield timing.Row(name, None, math.nan, note=f"not run: {error}")
    return
  text = ", ".join(f"{key}={value}" for key, value in settings.items())
  yield timing.Row(
    f"{name}, seconds a frame",
    cold / frames,
    warm / frames,
    note=f"{frames} frames of {_SIZE[1]}x{_SIZE[0]}; {text or 'defaults'}",
  )


def _handoff_rows(quick: bool) -> Iterator[timing.Row]:
  """A depth stack from torch to JAX, shared against copied by the host."""
  if not registry.availability("features", "dinov2").available:
    return
  import jax.numpy as jnp
  import torch

  from perception.neural import handoff, runtime

  device = runtime.resolve_device("auto")
  shape = (2, 60, 80) if quick else (120, 280, 504)
  stack = torch.rand(shape, device=device)
  _, shared = timing.measure(lambda: handoff.to_jax(stack), repeats=5)
  _, copied = timing.measure(
    lambda: jnp.array(stack.cpu().numpy(), copy=True), repeats=5
  )
  yield timing.Row(
    "hand-over of a depth stack to JAX",
    None,
    shared,
    copied,
    "copy through the host",
    note=f"float32 {shape} on {device}",
  )
