# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""What the perception stage saw, as validated arrays: the array contract.

Conventions of every record: integer pixel coordinate = pixel centre, x right,
y down; boxes are [x_min, y_min, x_max, y_max] in the same coordinates; sizes
are (height, width); cameras have OpenCV axes (x right, y down, z forward) and
camera-to-world poses; depth is Z along the camera axis and NaN where it is
unknown. Each record names the resolution that its arrays belong to.

A record is checked when it is made, so code that receives one need not check
again; a violation is an `InputError` that names the field. Floating arrays of
another precision are converted; arrays of another kind (integer depth, mask of
0 and 255) are refused, because guessing their meaning would hide mistakes.

On disk a record is one `.npz` whose keys are the field names below plus
`schema_version`, `source_sha256`, `backend`, `backend_version` and, optionally,
`weights_sha256` and `settings` (JSON). Anyone can write one by hand.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from perception import errors, storage
from perception import observation_checks as checks

SCHEMA_VERSION = 1
CACHE_PREFIX = "cache_"
UNITS = ("metre", "arbitrary")
_PROVENANCE_KEYS = ("source_sha256", "backend", "backend_version")
_EXTRA_KEYS = ("weights_sha256", "settings")


@dataclasses.dataclass(frozen=True)
class Provenance:
  """Where a record comes from.

  Attributes:
    source_sha256: hex digest of the input that was perceived.
    backend: registered name of the implementation, for example `grabcut_flow`.
    backend_version: version of the implementation or of the model's package.
    weights_sha256: digest of the weights; empty where there are none.
    settings: options that change the result, JSON values only.
  """

  source_sha256: str
  backend: str
  backend_version: str
  weights_sha256: str = ""
  settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)


class Record:
  """Saving, loading and selecting rows; the fields belong to subclasses."""

  provenance: Provenance
  _optional: ClassVar[tuple[str, ...]] = ()
  compress: ClassVar[bool] = False

  @classmethod
  def _field_names(cls) -> list[str]:
    fields = dataclasses.fields(cls)  # type: ignore[arg-type]
    return [field.name for field in fields if field.name != "provenance"]

  def to_arrays(self) -> dict[str, np.ndarray]:
    """The record as named arrays, as they stand in its file."""
    arrays: dict[str, np.ndarray] = {}
    for name in self._field_names():
      value = getattr(self, name)
      if value is not None:
        arrays[name] = np.asarray(value)
    source = self.provenance
    texts = {key: getattr(source, key) for key in _PROVENANCE_KEYS}
    texts["weights_sha256"] = source.weights_sha256
    texts["settings"] = json.dumps(dict(source.settings), sort_keys=True)
    arrays |= {key: np.asarray(text) for key, text in texts.items()}
    arrays["schema_version"] = np.asarray(SCHEMA_VERSION)
    return arrays

  @classmethod
  def from_arrays(
    cls, arrays: Mapping[str, np.ndarray], *, source: str | os.PathLike[str]
  ) -> Self:
    """Validates named arrays; keys that begin with `cache_` are ignored.

    Args:
      arrays: as `to_arrays` gives them.
      source: file or other origin, for the message.

    Raises:
      InputError: names the source, the field, what was found and expected.
    """
    values = {
      key: value
      for key, value in arrays.items()
      if not key.startswith(CACHE_PREFIX)
    }
    version = values.pop("schema_version", None)
    if version is None or version.shape or version != SCHEMA_VERSION:
      raise errors.InputError(
        source, "schema_version", found=version, expected=SCHEMA_VERSION
      )
    try:
      provenance = _pop_provenance(values)
      names = cls._field_names()
      checks.require_keys(values, names, optional=cls._optional)
      fields: dict[str, Any] = {**values, "provenance": provenance}
      return cls(**fields)
    except errors.InputError as error:
      raise checks.attribute(error, source) from error

  def save(self, path: str | os.PathLike[str]) -> None:
    """Writes the record as one `.npz`, atomically.

    Raises:
      InputError: the file cannot be written.
    """
    storage.write_npz(path, self.to_arrays(), compress=self.compress)

  @classmethod
  def load(cls, path: str | os.PathLike[str]) -> Self:
    """Reads and validates a record.

    Raises:
      InputError: names the file, the field, what was found and expected.
    """
    return cls.from_arrays(storage.read_npz(path), source=path)

  def _set(self, name: str, value: object) -> None:
    object.__setattr__(self, name, value)


def _pop_provenance(arrays: dict[str, np.ndarray]) -> Provenance:
  """Takes the provenance keys out of loaded arrays."""
  texts: dict[str, str] = {}
  for key in _PROVENANCE_KEYS + _EXTRA_KEYS:
    if key in arrays:
      texts[key] = checks.as_text(arrays.pop(key), key)
  checks.require_keys(
    texts, _PROVENANCE_KEYS + _EXTRA_KEYS, optional=_EXTRA_KEYS
  )
  settings: Any = {}
  if "settings" in texts:
    try:
      settings = json.loads(texts.pop("settings"))
    except json.JSONDecodeError as error:
      raise checks.violation("settings", error, "a JSON object") from error
    if not isinstance(settings, dict):
      raise checks.violation("settings", settings, "a JSON object")
  return Provenance(settings=settings, **texts)


def _indices_of(value: np.ndarray | None, frames: int) -> np.ndarray:
  """Frame indices of a record that may leave them out."""
  if value is None:
    return np.arange(frames, dtype=np.int32)
  indices = checks.as_frame_indices(value)
  checks.require(
    len(indices) == frames, "frame_indices", len(indices), f"{frames} entries"
  )
  return indices


@dataclasses.dataclass(frozen=True, eq=False)
class Geometry(Record):
  """Depth and cameras of T frames.

  Attributes:
    depth: [T, h, w] float32, camera-axis Z > 0, NaN = invalid.
    intrinsics: [T, 3, 3] float32, pixels at (h, w).
    c2w: [T, 4, 4] float64, rigid camera-to-world.
    frame_indices: [T] int32, strictly increasing indices of source frames.
    video_size: (H, W) of the source frames.
    unit: `metre` or `arbitrary` (one unknown scale for the whole record).
    provenance: source and backend.
    confidence: [T, h, w] float32 >= 0 in the backend's own range, or None.
    resized_size: (h1, w1) of the resized frame when the backend then cut off
      its bottom and right to reach (h, w); None when nothing was cut.
  """

  depth: np.ndarray
  intrinsics: np.ndarray
  c2w: np.ndarray
  frame_indices: np.ndarray
  video_size: tuple[int, int]
  unit: str
  provenance: Provenance
  confidence: np.ndarray | None = None
  resized_size: tuple[int, int] | None = None

  _optional: ClassVar[tuple[str, ...]] = ("confidence", "resized_size")

  def __post_init__(self) -> None:
    """Checks every field; see the module docstring."""
    frames = len(np.atleast_1d(self.frame_indices))
    self._set("frame_indices", checks.as_frame_indices(self.frame_indices))
    depth = checks.as_depth(self.depth, frames)
    self._set("depth", depth)
    self._set("intrinsics", checks.as_intrinsics(self.intrinsics, frames))
    self._set("c2w", checks.as_poses(self.c2w, frames))
    self._set("video_size", checks.as_size(self.video_size, "video_size"))
    self._set("unit", checks.as_text(self.unit, "unit", choices=UNITS))
    if self.confidence is not None:
      array = checks.as_floats(self.confidence, "confidence", depth.shape)
      checks.require(
        bool(np.all(np.isfinite(array) & (array >= 0))),
        "confidence",
        "negative or non-finite values",
        "finite values >= 0",
      )
      self._set("confidence", array)
    if self.resized_size is not None:
      size = checks.as_size(self.resized_size, "resized_size")
      checks.require(
        size[0] >= depth.shape[1] and size[1] >= depth.shape[2],
        "resized_size",
        size,
        f"at least the depth size {depth.shape[1:]}",
      )
      self._set("resized_size", size)

  @property
  def depth_size(self) -> tuple[int, int]:
    """(h, w) of depth and intrinsics."""
    return self.depth.shape[1], self.depth.shape[2]

  @property
  def full_size(self) -> tuple[int, int]:
    """(h1, w1) of the whole frame at depth resolution, before any crop."""
    return self.resized_size or self.depth_size

  def select(
    self,
    rows: Sequence[int] | np.ndarray,
    *,
    frame_indices: np.ndarray | None = None,
  ) -> Geometry:
    """The record of some of its rows.

    Args:
      rows: in increasing order; with `frame_indices` they may repeat.
      frame_indices: other frame numbers for them, None to keep their own.
    """
    index = np.asarray(rows, np.int64)
    confidence = self.confidence
    if frame_indices is None:
      frame_indices = self.frame_indices[index]
    return dataclasses.replace(
      self,
      depth=self.depth[index],
      intrinsics=self.intrinsics[index],
      c2w=self.c2w[index],
      frame_indices=np.asarray(frame_indices, np.int32),
      confidence=None if confidence is None else confidence[index],
    )


@dataclasses.dataclass(frozen=True, eq=False)
class Masks(Record):
  """Masks of O objects over T frames.

  An object that is absent, hidden or lost has an empty mask in that frame.

  Attributes:
    masks: [O, T, h, w] bool; (h, w) is the video size unless stated by the
      caller that resized it.
    object_ids: [O] int32, distinct.
    frame_indices: [T] int32, strictly increasing indices of source frames.
    provenance: source and backend.
  """

  masks: np.ndarray
  object_ids: np.ndarray
  frame_indices: np.ndarray
  provenance: Provenance

  compress: ClassVar[bool] = True

  def __post_init__(self) -> None:
    """Checks every field; see the module docstring."""
    frame_indices = checks.as_frame_indices(self.frame_indices)
    self._set("frame_indices", frame_indices)
    ids = checks.as_object_ids(self.object_ids)
    self._set("object_ids", ids)
    shape = (len(ids), len(frame_indices), None, None)
    self._set("masks", checks.as_bools(self.masks, "masks", shape))

  def select(self, rows: Sequence[int] | np.ndarray) -> Masks:
    """The record of some of its frames, in increasing order."""
    index = np.asarray(rows, np.int64)
    return dataclasses.replace(
      self,
      masks=self.masks[:, index],
      frame_indices=self.frame_indices[index],
    )

  def of(self, object_id: int) -> np.ndarray:
    """[T, h, w] bool mask of one object.

    Raises:
      InputError: no such object.
    """
    rows = np.flatnonzero(self.object_ids == object_id)
    if not rows.size:
      found = f"no object {object_id}"
      expected = f"one of {self.object_ids.tolist()}"
      raise checks.violation("object_ids", found, expected)
    return self.masks[rows[0]]


@dataclasses.dataclass(frozen=True, eq=False)
class Tracks(Record):
  """N points followed over T frames.

  Attributes:
    xy: [T, N, 2] float32, pixels of the video; finite everywhere. Where a
      point is not visible its position means nothing.
    visible: [T, N] bool.
    confidence: [T, N] float32 in [0, 1].
    query_frame: [N] int32, row (0..T-1) in which the point was given.
    provenance: source and backend.
    frame_indices: [T] int32 indices of source frames; None becomes 0..T-1.
    object_ids: [N] int32, the object a point was seeded on, -1 = background;
      None where all belong to one object.
    video_size: (H, W) that `xy` refers to, or None when not recorded.
  """

  xy: np.ndarray
  visible: np.ndarray
  confidence: np.ndarray
  query_frame: np.ndarray
  provenance: Provenance
  frame_indices: np.ndarray = None  # type: ignore[assignment]
  object_ids: np.ndarray | None = None
  video_size: tuple[int, int] | None = None

  _optional: ClassVar[tuple[str, ...]] = (
    "frame_indices",
    "object_ids",
    "video_size",
  )

  def __post_init__(self) -> None:
    """Checks every field; see the module docstring."""
    xy = checks.as_floats(self.xy, "xy", (None, None, 2))
    frames, count = xy.shape[:2]
    checks.require(frames > 0, "xy", xy.shape, "at least one frame")
    checks.require_finite(xy, "xy")
    self._set("xy", xy)
    visible = checks.as_bools(self.visible, "visible", (frames, count))
    self._set("visible", visible)
    score = checks.as_floats(self.confidence, "confidence", (frames, count))
    checks.require(
      bool(np.all((score >= 0) & (score <= 1))),
      "confidence",
      "values outside [0, 1] or not finite",
      "values in [0, 1]",
    )
    self._set("confidence", score)
    query = checks.as_integers(self.query_frame, "query_frame", (count,))
    checks.require(
      bool(np.all((query >= 0) & (query < frames))),
      "query_frame",
      "rows outside the clip",
      f"rows in 0..{frames - 1}",
    )
    self._set("query_frame", query)
    self._set("frame_indices", _indices_of(self.frame_indices, frames))
    if self.object_ids is not None:
      ids = checks.as_integers(self.object_ids, "object_ids", (count,))
      self._set("object_ids", ids)
    if self.video_size is not None:
      self._set("video_size", checks.as_size(self.video_size, "video_size"))

  def select(self, rows: Sequence[int] | np.ndarray) -> Tracks:
    """The record of some of its frames, in increasing order.

    Points whose query frame is left out count as given in the next frame kept
    (the last one if there is none).
    """
    index = np.asarray(rows, np.int64)
    query = np.searchsorted(index, self.query_frame)
    return dataclasses.replace(
      self,
      xy=self.xy[index],
      visible=self.visible[index],
      confidence=self.confidence[index],
      query_frame=np.minimum(query, len(index) - 1).astype(np.int32),
      frame_indices=self.frame_indices[index],
    )

  def of(self, object_id: int) -> Tracks:
    """The points seeded on one object (-1: background)."""
    if self.object_ids is None:
      expected = "tracks that say which object each point was seeded on"
      raise checks.violation("object_ids", "absent", expected)
    keep = self.object_ids == object_id
    return dataclasses.replace(
      self,
      xy=self.xy[:, keep],
      visible=self.visible[:, keep],
      confidence=self.confidence[:, keep],
      query_frame=self.query_frame[keep],
      object_ids=self.object_ids[keep],
    )


@dataclasses.dataclass(frozen=True, eq=False)
class Features(Record):
  """Descriptors of T frames on a grid of patches.

  Attributes:
    patches: [T, ph, pw, C] float32 of unit norm, row-major from the top left.
    pooled: [T, C'] float32, one descriptor per frame.
    patch_size: (height, width) of a patch in pixels at `image_size`.
    image_size: (H, W) that the patch grid divides.
    provenance: source and backend.
    frame_indices: [T] int32 indices of source frames; None becomes 0..T-1.
    patch_norms: [T, ph, pw] float32 lengths that the tokens had, or None.
  """

  patches: np.ndarray
  pooled: np.ndarray
  patch_size: tuple[int, int]
  image_size: tuple[int, int]
  provenance: Provenance
  frame_indices: np.ndarray = None  # type: ignore[assignment]
  patch_norms: np.ndarray | None = None

  _optional: ClassVar[tuple[str, ...]] = ("frame_indices", "patch_norms")

  def __post_init__(self) -> None:
    """Checks every field; see the module docstring."""
    shape = (None, None, None, None)
    patches = checks.as_floats(self.patches, "patches", shape)
    checks.require(
      min(patches.shape) > 0, "patches", patches.shape, "no empty axis"
    )
    checks.require_unit(patches, "patches")
    self._set("patches", patches)
    frames = patches.shape[0]
    if self.patch_norms is not None:
      shape = patches.shape[:3]
      norms = checks.as_floats(self.patch_norms, "patch_norms", shape)
      checks.require_finite(norms, "patch_norms")
      self._set("patch_norms", norms)
    pooled = checks.as_floats(self.pooled, "pooled", (frames, None))
    checks.require_finite(pooled, "pooled")
    self._set("pooled", pooled)
    patch = checks.as_size(self.patch_size, "patch_size")
    image = checks.as_size(self.image_size, "image_size")
    grid = patches.shape[1:3]
    checks.require(
      patch[0] * grid[0] <= image[0] and patch[1] * grid[1] <= image[1],
      "patch_size",
      f"{grid} patches of {patch}",
      f"a grid inside the image {image}",
    )
    self._set("patch_size", patch)
    self._set("image_size", image)
    self._set("frame_indices", _indices_of(self.frame_indices, frames))

  def select(self, rows: Sequence[int] | np.ndarray) -> Features:
    """The record of some of its frames, in increasing order."""
    index = np.asarray(rows, np.int64)
    norms = self.patch_norms
    return dataclasses.replace(
      self,
      patches=self.patches[index],
      pooled=self.pooled[index],
      frame_indices=self.frame_indices[index],
      patch_norms=None if norms is None else norms[index],
    )


@dataclasses.dataclass(frozen=True, eq=False)
class Detections(Record):
  """Boxes found in one frame; N may be 0.

  Attributes:
    boxes: [N, 4] float32 [x_min, y_min, x_max, y_max], max > min.
    scores: [N] float32, the detector's own range, in the detector's order.
    labels: [N] text.
    provenance: source and backend.
    video_size: (H, W) that the boxes refer to, or None when not recorded.
    frame_index: source frame.
  """

  boxes: np.ndarray
  scores: np.ndarray
  labels: np.ndarray
  provenance: Provenance
  video_size: tuple[int, int] | None = None
  frame_index: int = 0

  _optional: ClassVar[tuple[str, ...]] = ("video_size", "frame_index")

  def __post_init__(self) -> None:
    """Checks every field; see the module docstring."""
    boxes = checks.as_floats(self.boxes, "boxes", (None, 4))
    checks.require_finite(boxes, "boxes")
    checks.require(
      bool(np.all(boxes[:, 2:] > boxes[:, :2])),
      "boxes",
      "a box without extent",
      "x_max > x_min and y_max > y_min",
    )
    self._set("boxes", boxes)
    scores = checks.as_floats(self.scores, "scores", (len(boxes),))
    checks.require_finite(scores, "scores")
    self._set("scores", scores)
    labels = np.asarray(self.labels, None if len(boxes) else np.str_)
    checks.require(
      labels.dtype.kind == "U" and labels.shape == (len(boxes),),
      "labels",
      f"{labels.dtype} {labels.shape}",
      f"text, shape ({len(boxes)},)",
    )
    self._set("labels", labels)
    if self.video_size is not None:
      self._set("video_size", checks.as_size(self.video_size, "video_size"))
    index = checks.as_integers(self.frame_index, "frame_index", ())
    checks.require(int(index) >= 0, "frame_index", int(index), ">= 0")
    self._set("frame_index", int(index))


def rescale_intrinsics(
  intrinsics: np.ndarray,
  *,
  from_size: tuple[int, int],
  to_size: tuple[int, int],
) -> np.ndarray:
  """Intrinsics of the same camera after its image was resized.

  fx' = fx s_x, skew' = skew s_x, cx' = (cx + 0.5) s_x - 0.5 with
  s_x = w'/w, and the same in y: pixel centres lie at integers, so the left
  edge of the image is at -0.5 and stays there.

  Args:
    intrinsics: [..., 3, 3] in pixels of an image of `from_size`.
    from_size: (h, w) that the intrinsics belong to.
    to_size: (h', w') of the resized image.

  Returns:
    [..., 3, 3] of the same dtype. A later cut of the bottom and right leaves
    it unchanged.

  Source: specs/perception.md section 3. The only place that rescales K.
  """
  from_size = checks.as_size(from_size, "from_size")
  to_size = checks.as_size(to_size, "to_size")
  scale_y = to_size[0] / from_size[0]
  scale_x = to_size[1] / from_size[1]
  scaled = np.array(intrinsics, copy=True)
  if not np.issubdtype(scaled.dtype, np.floating):
    raise checks.violation("intrinsics", scaled.dtype, "a floating dtype")
  scaled[..., 0, :] *= scale_x
  scaled[..., 1, :] *= scale_y
  scaled[..., 0, 2] += 0.5 * scale_x - 0.5
  scaled[..., 1, 2] += 0.5 * scale_y - 0.5
  return scaled
