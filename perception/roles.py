# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""The perception roles: what a backend must offer to stand in a role.

A backend is made by `registry.get(role, name, **settings)`; its settings are
its constructor's keyword arguments, and `info` repeats those that change a
result together with the version and the digest of the weights. Making a
backend may load weights; importing this module loads nothing.

Pixels are RGB uint8 [H, W, 3]. Coordinates, boxes and cameras follow
`perception.observation`; an adapter converts at its own edge. A backend that
cannot give an answer says so in the result (empty mask, invisible point, NaN
depth) or raises `InputError`; it never invents one.
"""

from __future__ import annotations

import dataclasses
import fractions
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np

from perception import errors, observation

ROLES = (
  "geometry",
  "masks",
  "tracks",
  "features",
  "detections",
  "vision_language",
  "perceptual_distance",
  "quality",
  "novel_view",
)


@dataclasses.dataclass(frozen=True)
class BackendInfo:
  """What identifies a result beside its input; part of the cache key.

  Attributes:
    role: one of `ROLES`.
    name: registered name.
    version: of the implementation or of the model's package.
    licence: of the code and, after a slash, of the weights.
    comparable_to_published: whether scores that rest on this backend may be
      set beside the published tables.
    weights_sha256: digest of the weights; empty where there are none.
    settings: options that change the result, JSON values only.
  """

  role: str
  name: str
  version: str
  licence: str
  comparable_to_published: bool
  weights_sha256: str = ""
  settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)

  def provenance(self, source_sha256: str) -> observation.Provenance:
    """The provenance of a record that this backend makes from a source."""
    return observation.Provenance(
      source_sha256=source_sha256,
      backend=self.name,
      backend_version=self.version,
      weights_sha256=self.weights_sha256,
      settings=self.settings,
    )


class FrameSource(Protocol):
  """Frames that can be read again from the start, in memory or streamed.

  `perception.video.Clip` and `perception.video.Video` are both of this form.
  """

  @property
  def name(self) -> str:
    """Path or label for messages; never part of a cache key."""

  @property
  def sha256(self) -> str:
    """Digest of the input's bytes."""

  @property
  def fps(self) -> fractions.Fraction:
    """Frames per second, 0 = unknown."""

  @property
  def size(self) -> tuple[int, int]:
    """(H, W)."""

  @property
  def timestamps(self) -> np.ndarray:
    """[T] float64 seconds, strictly increasing."""

  @property
  def frame_indices(self) -> np.ndarray:
    """[T] int32 indices of the frames in their file."""

  def __len__(self) -> int:
    """T."""

  def __iter__(self) -> Iterator[np.ndarray]:
    """Yields T uint8 [H, W, 3] RGB frames from the first on."""


@dataclasses.dataclass(frozen=True, eq=False)
class ObjectPrompt:
  """One object pointed at in one frame; at least one hint is given.

  Attributes:
    object_id: the caller's number for the object.
    frame_row: row of the frame source (0..T-1) that the hints refer to.
    box: (x_min, y_min, x_max, y_max) in pixels, or None.
    points: [P, 2] float32 (x, y), or None.
    labels: [P] bool, True = on the object; with `points` only.
    mask: [H, W] bool, or None.
  """

  object_id: int
  frame_row: int = 0
  box: tuple[float, float, float, float] | None = None
  points: np.ndarray | None = None
  labels: np.ndarray | None = None
  mask: np.ndarray | None = None

  def validate(self, *, size: tuple[int, int], frames: int) -> None:
    """Raises InputError unless every hint fits frames of this size."""
    where = f"prompt of object {self.object_id}"
    height, width = size
    if not 0 <= self.frame_row < frames:
      raise errors.InputError(
        where,
        "frame_row",
        found=self.frame_row,
        expected=f"a row in 0..{frames - 1}",
      )
    if self.box is None and self.points is None and self.mask is None:
      raise errors.InputError(
        where, "prompt", found="no hint", expected="a box, points or a mask"
      )
    if self.box is not None:
      check_box(self.box, size=size, source=where)
    if self.points is not None:
      points = np.asarray(self.points)
      count = len(points) if points.ndim else 0
      labels = np.asarray([] if self.labels is None else self.labels)
      limit = np.array([width - 0.5, height - 0.5])
      fits = points.shape == (count, 2) and labels.shape == (count,)
      if not (fits and count and np.all((points >= -0.5) & (points <= limit))):
        raise errors.InputError(
          where,
          "points",
          found=f"points {points.tolist()} with labels {labels.tolist()}",
          expected=f"(x, y) inside {width}x{height} with one label each",
        )
    if self.mask is not None:
      mask = np.asarray(self.mask)
      if mask.shape != size or mask.dtype != np.bool_ or not mask.any():
        raise errors.InputError(
          where,
          "mask",
          found=f"{mask.dtype} {mask.shape}, {np.count_nonzero(mask)} set",
          expected=f"bool {size} with at least one pixel set",
        )


def check_box(
  box: Sequence[float], *, size: tuple[int, int], source: str
) -> None:
  """Raises InputError unless a box has extent and lies within the image.

  Args:
    box: (x_min, y_min, x_max, y_max) in pixels.
    size: (H, W); coordinates may reach the outer pixel edges and half-open
      boxes may end at W and H.
    source: who gave the box, for the message.
  """
  height, width = size
  expected = f"x_min < x_max and y_min < y_max inside {width}x{height}"
  values = np.asarray(box)
  number = values.shape == (4,) and values.dtype.kind in "iuf"
  if number and np.all(np.isfinite(values)):
    x_min, y_min, x_max, y_max = (float(value) for value in values)
    inside = x_min >= -0.5 and y_min >= -0.5 and x_max <= width
    if inside and y_max <= height and x_min < x_max and y_min < y_max:
      return
  raise errors.InputError(source, "box", found=values, expected=expected)


@dataclasses.dataclass(frozen=True, eq=False)
class Queries:
  """Points to follow.

  Attributes:
    xy: [N, 2] float32 pixels.
    frame_row: [N] int32 rows (0..T-1) in which the points are given.
    object_ids: [N] int32, -1 = background.
  """

  xy: np.ndarray
  frame_row: np.ndarray
  object_ids: np.ndarray


@dataclasses.dataclass(frozen=True, eq=False)
class Cameras:
  """Known cameras that condition a reconstruction.

  Attributes:
    intrinsics: [T, 3, 3] in pixels of the frames given.
    c2w: [T, 4, 4].
  """

  intrinsics: np.ndarray
  c2w: np.ndarray


@dataclasses.dataclass(frozen=True, eq=False)
class Gaussians:
  """M Gaussian splats in the world frame of a `Geometry`.

  Attributes:
    means: [M, 3] float32.
    scales: [M, 3] float32, standard deviations along the own axes.
    rotations: [M, 4] float32 unit quaternions (w, x, y, z).
    opacities: [M] float32 in [0, 1].
    harmonics: [M, 3, K] float32 spherical-harmonic colour coefficients.
  """

  means: np.ndarray
  scales: np.ndarray
  rotations: np.ndarray
  opacities: np.ndarray
  harmonics: np.ndarray


@dataclasses.dataclass(frozen=True, eq=False)
class ChatMessage:
  """One turn: text and images in reading order.

  Attributes:
    role: who speaks.
    parts: text, or RGB uint8 [H, W, 3].
  """

  role: Literal["system", "user", "assistant"]
  parts: tuple[str | np.ndarray, ...]


@dataclasses.dataclass(frozen=True, eq=False)
class ChatRequest:
  """A question to a vision-language model.

  Attributes:
    messages: the conversation so far.
    max_tokens: limit of the answer.
    temperature: 0 = greedy.
    seed: sampling seed, or None.
    response_schema: JSON schema of the answer where the backend can enforce
      one, or None.
  """

  messages: tuple[ChatMessage, ...]
  max_tokens: int = 1024
  temperature: float = 0.0
  seed: int | None = None
  response_schema: Mapping[str, Any] | None = None

  def sha256(self) -> str:
    """Digest of all that the model sees; the key of recorded answers."""
    turns = []
    for message in self.messages:
      parts: list[object] = []
      for part in message.parts:
        if isinstance(part, str):
          parts.append(part)
        else:
          pixels = np.ascontiguousarray(part)
          digest = hashlib.sha256(pixels.tobytes()).hexdigest()
          parts.append({"shape": list(pixels.shape), "sha256": digest})
      turns.append([message.role, parts])
    content = {
      "messages": turns,
      "max_tokens": self.max_tokens,
      "temperature": self.temperature,
      "seed": self.seed,
      "response_schema": self.response_schema,
    }
    text = json.dumps(content, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


@dataclasses.dataclass(frozen=True)
class ChatAnswer:
  """What the model said.

  Attributes:
    text: the answer, unparsed.
    finish_reason: `stop`, `length` (cut off) or the backend's own word.
    provenance: request digest as source, and the backend.
  """

  text: str
  finish_reason: str
  provenance: observation.Provenance


@runtime_checkable
class Backend(Protocol):
  """Common to all roles."""

  @property
  def info(self) -> BackendInfo:
    """Identity, licence and settings."""


@runtime_checkable
class GeometryBackend(Backend, Protocol):
  """Depth and cameras of a clip, of a pair (two frames) or of one image.

  Joint and chunked operation are settings of the backend.
  """

  def reconstruct(
    self, frames: FrameSource, *, cameras: Cameras | None = None
  ) -> observation.Geometry:
    """One row per frame given.

    Args:
      frames: T frames of one size.
      cameras: known cameras, or None. With them, depth comes in their unit.
    """


@runtime_checkable
class GaussianBackend(GeometryBackend, Protocol):
  """A geometry backend that also gives Gaussians in the same world frame."""

  def reconstruct_gaussians(
    self, frames: FrameSource, *, cameras: Cameras | None = None
  ) -> tuple[observation.Geometry, Gaussians]:
    """Like `reconstruct`, with splats."""


@runtime_checkable
class MasksBackend(Backend, Protocol):
  """Masks of prompted objects through a clip."""

  def segment(
    self, frames: FrameSource, prompts: Sequence[ObjectPrompt]
  ) -> observation.Masks:
    """[O, T, H, W] masks at video size, objects in the order of the prompts.

    Frames before an object's prompt are empty unless the backend tracks
    backwards. Several prompts with one object id refine each other.
    """


@runtime_checkable
class TracksBackend(Backend, Protocol):
  """Points followed through a clip."""

  def track(self, frames: FrameSource, queries: Queries) -> observation.Tracks:
    """Positions and visibility in every frame; row order of the queries."""


@runtime_checkable
class FeaturesBackend(Backend, Protocol):
  """Descriptors of frames or crops."""

  def extract(self, frames: FrameSource) -> observation.Features:
    """Patch and pooled descriptors, one row per frame."""


@runtime_checkable
class DetectionsBackend(Backend, Protocol):
  """Boxes of phrases in one image."""

  def detect(
    self, image: np.ndarray, phrases: Sequence[str]
  ) -> observation.Detections:
    """Boxes in the detector's order; `labels` are phrases as the model says.

    Args:
      image: RGB uint8 [H, W, 3].
      phrases: one or more, plain words.
    """


@runtime_checkable
class VisionLanguageBackend(Backend, Protocol):
  """Questions about pictures."""

  def answer(self, request: ChatRequest) -> ChatAnswer:
    """The model's reply; parsing it is the caller's work."""


@runtime_checkable
class PerceptualDistanceBackend(Backend, Protocol):
  """Perceptual distance of image pairs; lower is more alike."""

  def distance(self, images_a: np.ndarray, images_b: np.ndarray) -> np.ndarray:
    """[B] float32 from two RGB uint8 [B, H, W, 3] stacks."""


@runtime_checkable
class QualityBackend(Backend, Protocol):
  """Quality without a reference."""

  @property
  def higher_is_better(self) -> bool:
    """Direction of the score."""

  @property
  def value_range(self) -> tuple[float, float]:
    """Smallest and largest score; infinite where open."""

  @property
  def scores_clip(self) -> bool:
    """True when one score describes the stack, False for one per image."""

  def score(self, images: np.ndarray, *, text: str | None = None) -> np.ndarray:
    """[B] float32 ([1] if `scores_clip`) from RGB uint8 [B, H, W, 3].

    Args:
      images: pictures of one size.
      text: the prompt that made them, for backends that judge alignment.
    """


@runtime_checkable
class NovelViewBackend(Backend, Protocol):
  """Renders a reconstructed scene from other cameras."""

  def render(
    self,
    frames: FrameSource,
    geometry: observation.Geometry,
    *,
    intrinsics: np.ndarray,
    c2w: np.ndarray,
    size: tuple[int, int],
  ) -> tuple[np.ndarray, np.ndarray]:
    """Renders V views of the scene seen in `frames`.

    Args:
      frames: source frames, rows as in `geometry`.
      geometry: their depth and cameras.
      intrinsics: [V, 3, 3] of the wanted views, at `size`.
      c2w: [V, 4, 4] of the wanted views.
      size: (H, W) of the wanted views.

    Returns:
      RGB uint8 [V, H, W, 3] and coverage bool [V, H, W], False where nothing
      of the scene is known.
    """
