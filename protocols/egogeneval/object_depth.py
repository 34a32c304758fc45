# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Median depth of an object: the middle of its box in a depth map.

Arithmetic is float32 throughout, limits included, as in the released code.
Source: EgoGenEval specification 4.12, 16.1.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence

import cv2
import numpy as np
from numpy.typing import NDArray

from protocols.egogeneval import boxes as box_math
from protocols.egogeneval import constants


@dataclasses.dataclass(frozen=True)
class ObjectDepth:
  """Depths of one target object.

  Attributes:
    gt_idx: index of the object.
    pred_idx: index of its match; None where missing.
    gt_median_depth: metres; None where too few pixels are valid.
    pred_median_depth: in the unit of the generated depth, or None.
  """

  gt_idx: int
  pred_idx: int | None
  gt_median_depth: float | None
  pred_median_depth: float | None


def median_depth(
  depth: NDArray[np.float32],
  box: box_math.Box,
  image_size: tuple[int, int],
  limits: constants.Constants,
) -> float | None:
  """Median of the valid depths in the central part of a box.

  Args:
    depth: float32 [h, w] map of the image, at any size.
    box: box in pixels of `image_size`.
    image_size: (h, w) of the image that the box belongs to.
    limits: constants of the variant.

  Returns:
    The median, or None for fewer than 16 valid pixels.
  """
  values = valid_depths(depth, box, image_size, limits)
  if values.size < limits.min_depth_pixels:
    return None
  return float(np.median(values))


def valid_depths(
  depth: NDArray[np.float32],
  box: box_math.Box,
  image_size: tuple[int, int],
  limits: constants.Constants,
) -> NDArray[np.float32]:
  """Depths within the limits in the central part of a box; may be empty."""
  window = _central_window(box, image_size, depth.shape, limits)
  if window is None:
    return np.zeros(0, np.float32)
  patch = np.asarray(depth[window], np.float32).ravel()
  low, high = np.float32(limits.min_depth), np.float32(limits.max_depth)
  if limits.depth_limits_inclusive:
    valid = (patch >= low) & (patch <= high)
  else:
    valid = (patch > low) & (patch < high)
  return patch[valid & np.isfinite(patch)]


def object_depths(
  depth_target: NDArray[np.float32],
  depth_generated: NDArray[np.float32] | None,
  boxes_target: Sequence[box_math.Box],
  boxes_generated: Sequence[box_math.Box],
  matches: Mapping[int, int],
  image_size: tuple[int, int],
  limits: constants.Constants,
) -> list[ObjectDepth]:
  """Depth records of a step, one per target object.

  Args:
    depth_target: float32 map of the target frame.
    depth_generated: float32 map of the generated image; it is resized to the
      shape of the target's map. None where it was not computed.
    boxes_target: boxes of the target objects.
    boxes_generated: candidate boxes in the generated image.
    matches: target index -> candidate index.
    image_size: (h, w) of both images as the boxes see them.
    limits: constants of the variant.

  Returns:
    Records in order of the target index. Target depths need two objects,
    generated depths also two matches; else they are None.
  """
  paired = len(boxes_target) >= 2
  generated = None
  if paired and len(matches) >= 2 and depth_generated is not None:
    generated = _resized(depth_generated, depth_target.shape)
  records = []
  for index, box in enumerate(boxes_target):
    match = matches.get(index)
    records.append(
      ObjectDepth(
        index,
        match,
        median_depth(depth_target, box, image_size, limits) if paired else None,
        median_depth(generated, boxes_generated[match], image_size, limits)
        if generated is not None and match is not None
        else None,
      )
    )
  return records


def _central_window(
  box: box_math.Box,
  image_size: tuple[int, int],
  depth_shape: tuple[int, ...],
  limits: constants.Constants,
) -> tuple[slice, slice] | None:
  starts_and_ends = []
  for low, high, side, cells in (
    (box[1], box[3], image_size[0], depth_shape[0]),
    (box[0], box[2], image_size[1], depth_shape[1]),
  ):
    low, high = min(low, high), max(low, high)
    extent = high - low
    if not (math.isfinite(extent) and extent >= 1):
      return None
    margin = limits.depth_margin * extent
    if limits.depth_margin_cap is not None:
      # Spec 13 item 8: the released code caps the margin of tiny boxes.
      margin = min(margin, max(0.0, limits.depth_margin_cap * (extent - 1)))
    scale = cells / side
    start = max(0, math.floor((low + margin) * scale))
    end = min(cells, math.ceil((high - margin) * scale))
    if end <= start:
      return None
    starts_and_ends.append(slice(start, end))
  return starts_and_ends[0], starts_and_ends[1]


def _resized(
  depth: NDArray[np.float32], shape: tuple[int, ...]
) -> NDArray[np.float32]:
  if depth.shape == shape:
    return depth
  resized = cv2.resize(
    depth, (shape[1], shape[0]), interpolation=cv2.INTER_NEAREST
  )
  return np.asarray(resized, np.float32)
