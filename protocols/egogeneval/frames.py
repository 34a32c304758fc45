# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Reduced evaluation frames: image, depth and intrinsics of one view.

Conventions: RGB uint8 [h, w, 3]; depth float32 metres, 0 = unknown (the form
in which the released code keeps it); intrinsics scale with the image by the
plain factor, without a half-pixel shift, as the released code does.
Source: EgoGenEval specification 4.2.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

_RGB_STAGES = {
  "hypersim": (0.5,),
  "scannet": (0.5, 0.5),
  "scannetpp": (0.5,),
  "matterport3d": (0.5,),
}
_DEPTH_DIVISOR = {"scannet": 1000, "scannetpp": 1000, "matterport3d": 4000}
_CLIP_PERCENTILE = 98.0


@dataclasses.dataclass(frozen=True)
class EvaluationFrame:
  """One physical view as the evaluator sees it.

  Attributes:
    image: uint8 [h, w, 3] RGB.
    depth: float32 [h, w] metres, 0 = unknown; None without geometry.
    intrinsics: float64 [3, 3] at (h, w); None without geometry.
    pose_c2w: float64 [4, 4]; None without geometry.
  """

  image: NDArray[np.uint8]
  depth: NDArray[np.float32] | None
  intrinsics: NDArray[np.float64] | None
  pose_c2w: NDArray[np.float64] | None

  @property
  def size(self) -> tuple[int, int]:
    """(h, w) of the image."""
    return self.image.shape[0], self.image.shape[1]

  @property
  def has_geometry(self) -> bool:
    """Whether depth, pose and intrinsics are all known."""
    return not any(
      part is None for part in (self.depth, self.intrinsics, self.pose_c2w)
    )


def resize_stages(dataset: str) -> tuple[float, ...]:
  """Factors of the successive image resizes of a dataset.

  A dataset that the benchmark does not know is reduced once by one half, as
  three of its four sources are.
  """
  return _RGB_STAGES.get(dataset, (0.5,))


def reduce_image(image: NDArray[np.uint8], dataset: str) -> NDArray[np.uint8]:
  """Resizes a native RGB image by the stages of its dataset."""
  reduced = image
  for factor in resize_stages(dataset):
    reduced = _bilinear(reduced, factor)
  return reduced


def reduce_intrinsics(
  intrinsics: NDArray[np.float64], dataset: str
) -> NDArray[np.float64]:
  """Scales fx, fy, cx, cy by the stages of a dataset (no half-pixel shift)."""
  reduced = np.array(intrinsics, np.float64)
  reduced[:2] *= math.prod(resize_stages(dataset))
  return reduced


def reduce_depth(
  raw: NDArray[np.generic], image_size: tuple[int, int], dataset: str
) -> NDArray[np.float32]:
  """Stored depth to the evaluator's depth map.

  Args:
    raw: [h, w] stored depth: metres (float) or the dataset's integers.
    image_size: native (h, w) of the colour image.
    dataset: name of the source. Others than the benchmark's four are metres
      or millimetres and reduced by the nearest pixel, so that unknown depth is
      not mixed into known depth.

  Returns:
    float32 metres, 0 = unknown.
  """
  depth = np.asarray(raw, np.float32)
  if np.issubdtype(np.asarray(raw).dtype, np.integer):
    depth = depth / np.float32(_DEPTH_DIVISOR.get(dataset, 1000))
  if dataset == "matterport3d":
    return _bilinear(depth, 0.5)
  depth = np.where(np.isfinite(depth), depth, np.float32(0))
  half = tuple(round(side * 0.5) for side in image_size)
  if dataset == "hypersim":
    return _nearest(_clip_far(depth), half)
  if dataset == "scannet":
    return _bilinear(_clip_far(_nearest(depth, half)), 0.5)
  if dataset == "scannetpp":
    return _bilinear(_clip_far(depth), 0.5)
  return _nearest(_clip_far(depth), half)


def hypersim_intrinsics(size: tuple[int, int]) -> NDArray[np.float64]:
  """Intrinsics that the evaluator assumes for Hypersim: 60 degrees wide."""
  height, width = size
  focal = 0.5 * width / math.tan(math.radians(30.0))
  return np.array(
    [
      [focal, 0.0, (width - 1) / 2.0],
      [0.0, focal, (height - 1) / 2.0],
      [0.0, 0.0, 1.0],
    ]
  )


def stretch_to(
  image: NDArray[np.uint8], size: tuple[int, int]
) -> NDArray[np.uint8]:
  """Resizes a generated image to the target size, aspect not preserved."""
  height, width = size
  if image.shape[:2] == (height, width):
    return image
  return np.asarray(cv2.resize(image, (width, height)), np.uint8)


def _bilinear(array: NDArray[Any], factor: float) -> NDArray[Any]:
  resized = cv2.resize(
    array, None, fx=factor, fy=factor, interpolation=cv2.INTER_LINEAR
  )
  return np.asarray(resized)


def _nearest(
  depth: NDArray[np.float32], size: tuple[int, ...]
) -> NDArray[np.float32]:
  height, width = size
  resized = cv2.resize(depth, (width, height), interpolation=cv2.INTER_NEAREST)
  return np.asarray(resized, np.float32)


def _clip_far(depth: NDArray[np.float32]) -> NDArray[np.float32]:
  """Sets depths above the 98th percentile of the positive ones to 0."""
  positive = depth[depth > 0]
  if positive.size == 0:
    return depth
  limit = np.float32(np.percentile(positive, _CLIP_PERCENTILE))
  return np.where(depth > limit, np.float32(0), depth)
