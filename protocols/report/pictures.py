# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Pictures of a case page: encoded, captioned, with text alternatives.

Pictures are RGB uint8 [h, w, 3] until they are encoded.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import cv2
import numpy as np

_MAX_SIDE = 640
_JPEG_QUALITY = 85


@dataclasses.dataclass(frozen=True)
class Shot:
  """One picture.

  Attributes:
    name: stem of its file, unique within a case.
    caption: what it is.
    description: text alternative.
    jpeg: encoded picture.
  """

  name: str
  caption: str
  description: str
  jpeg: bytes


@dataclasses.dataclass(frozen=True)
class Legend:
  """A colour (as CSS has it) and what it means."""

  text: str
  colour: str


@dataclasses.dataclass(frozen=True)
class Section:
  """Pictures that belong together.

  Attributes:
    title: heading.
    about: what is shown and why; may be empty.
    shots: the pictures.
    legend: meaning of their colours.
    facts: (name, text) of numbers that belong to the pictures.
  """

  title: str
  about: str
  shots: tuple[Shot, ...]
  legend: tuple[Legend, ...] = ()
  facts: tuple[tuple[str, str], ...] = ()


def shot(
  name: str, picture: np.ndarray, *, caption: str, description: str
) -> Shot:
  """Encodes a picture as it is."""
  _, data = cv2.imencode(
    ".jpg",
    cv2.cvtColor(picture, cv2.COLOR_RGB2BGR),
    [cv2.IMWRITE_JPEG_QUALITY, _JPEG_QUALITY],
  )
  return Shot(name, caption, description, bytes(data))


def shrunk(picture: np.ndarray) -> np.ndarray:
  """The picture at the size of a case page."""
  factor = _MAX_SIDE / max(picture.shape[:2])
  if factor >= 1.0:
    return picture
  height, width = (max(1, round(s * factor)) for s in picture.shape[:2])
  return cv2.resize(picture, (width, height), interpolation=cv2.INTER_AREA)


def depth_pictures(depths: Sequence[np.ndarray]) -> list[np.ndarray]:
  """Inverse depth in colour, all on one scale; black is unknown.

  Args:
    depths: [h, w] each; NaN or not positive is unknown.

  Returns:
    Pictures of the same sizes; the scale runs from the 2nd to the 98th
    percentile of all known pixels.
  """
  known = [np.isfinite(depth) & (depth > 0) for depth in depths]
  near = [1.0 / np.where(k, d, 1.0) for d, k in zip(depths, known, strict=True)]
  values = np.concatenate([n[k] for n, k in zip(near, known, strict=True)])
  low, high = np.percentile(values, [2, 98]) if values.size else (0.0, 1.0)
  # A flat wall must not be spread over all colours by its noise.
  width = max(high - low, 1e-3 * abs(high), 1e-12)
  return [
    coloured(
      np.round(255 * np.clip((n - low) / width, 0.0, 1.0)).astype(np.uint8), k
    )
    for n, k in zip(near, known, strict=True)
  ]


def coloured(level: np.ndarray, known: np.ndarray) -> np.ndarray:
  """Levels 0 to 255 in colour where they are known, black elsewhere."""
  colour = cv2.applyColorMap(level, cv2.COLORMAP_INFERNO)
  colour[~known] = 0
  return cv2.cvtColor(colour, cv2.COLOR_BGR2RGB)


def resized(picture: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
  """A map in the size of another picture, pixels kept apart."""
  return cv2.resize(
    picture, (shape[1], shape[0]), interpolation=cv2.INTER_NEAREST
  )


def enlarged(picture: np.ndarray, factor: float) -> np.ndarray:
  """A small picture made larger, so that what is drawn on it is sharp."""
  height, width = (round(side * factor) for side in picture.shape[:2])
  return cv2.resize(picture, (width, height), interpolation=cv2.INTER_CUBIC)


def ascii_text(text: str, *, limit: int = 18) -> str:
  """A text as OpenCV can draw it; other characters become a question mark."""
  return text.encode("ascii", "replace").decode()[:limit]
