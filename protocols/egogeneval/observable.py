# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Which detected target objects any physical context view supports.

Context frames are the physical predecessor and the auxiliaries; the generated
predecessor is never used. Source: EgoGenEval specification 4.6, 16.2.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence

import jax
import numpy as np
from numpy.typing import NDArray

from kernels import visibility
from protocols.egogeneval import boxes as box_math
from protocols.egogeneval import constants, frames

# Variants of the released search in the order in which they are tried: factor
# on both intrinsics, and whether the stored poses are read as world-to-camera.
SEARCH = tuple(
  (factor, inverted) for factor in (1.0, 2.0, 0.5) for inverted in (False, True)
)
PHYSICAL = ((1.0, False),)


@dataclasses.dataclass(frozen=True)
class Projection:
  """How one context frame was projected.

  Attributes:
    points: number of points projected.
    in_bounds: name of each variant -> points inside the target image.
    chosen: name of the variant that was painted.
  """

  points: int
  in_bounds: dict[str, int]
  chosen: str


@dataclasses.dataclass(frozen=True)
class Visibility:
  """Target pixels that the context reaches.

  Attributes:
    mask: bool [h, w].
    projections: one entry per context frame with enough usable points.
  """

  mask: NDArray[np.bool_]
  projections: tuple[Projection, ...]


def variant_name(variant: tuple[float, bool]) -> str:
  """Short name such as `K/c2w` or `Kx0.5/w2c`."""
  factor, inverted = variant
  scale = "K" if factor == 1.0 else f"Kx{factor:g}"
  return f"{scale}/{'w2c' if inverted else 'c2w'}"


def visibility_map(
  target: frames.EvaluationFrame,
  context: Sequence[frames.EvaluationFrame],
  limits: constants.Constants,
  *,
  dtype: type[np.floating] = np.float32,
) -> Visibility:
  """Union over the context frames of the target pixels that they reach.

  Args:
    target: evaluation frame of the target; its depth is not used.
    context: evaluation frames of the inputs; those without geometry are left
      out.
    limits: constants of the variant. `visibility_search` chooses between the
      released search over six readings and the physical projection.
    dtype: precision of the projection.

  Returns:
    The map; empty where nothing could be projected.
  """
  size = target.size
  mask = np.zeros(size, bool)
  projections = []
  variants = SEARCH if limits.visibility_search else PHYSICAL
  for frame in context:
    if not frame.has_geometry or not target.has_geometry:
      continue
    inverted = [flag for _, flag in variants]
    to_world = _readings(np.asarray(frame.pose_c2w, dtype), inverted)
    to_target = _readings(
      np.asarray(target.pose_c2w, dtype), [not flag for flag in inverted]
    )
    low, high = dtype(limits.min_depth), dtype(limits.max_depth)
    if dtype is not np.float32:
      # The limits are float32 numbers in the released code (16.1).
      low, high = dtype(np.float32(low)), dtype(np.float32(high))
    reached = _reach(
      np.asarray(frame.depth, dtype),
      np.asarray(frame.intrinsics, dtype),
      np.asarray(target.intrinsics, dtype),
      to_world,
      to_target,
      np.asarray([factor for factor, _ in variants], dtype),
      height=size[0],
      width=size[1],
      limit=limits.visibility_points,
      min_depth=float(low),
      max_depth=float(high),
      limits_inclusive=limits.depth_limits_inclusive,
      min_points=limits.visibility_min_points,
    )
    points = int(reached.points)
    if points < limits.visibility_min_points:
      continue
    names = [variant_name(variant) for variant in variants]
    counts = np.asarray(reached.in_bounds).tolist()
    projections.append(
      Projection(
        points,
        dict(zip(names, counts, strict=True)),
        names[int(reached.chosen)],
      )
    )
    mask |= np.asarray(_thicken(reached.mask))
  if mask.any():
    mask = np.asarray(_merge(mask))
  return Visibility(mask, tuple(projections))


def supported(
  visible: Visibility,
  boxes: Sequence[box_math.Box],
  limits: constants.Constants,
) -> tuple[list[int], NDArray[np.float32]]:
  """Boxes of which enough is reached.

  Args:
    visible: map of the target.
    boxes: integer boxes in the target; both end pixels belong to them.
    limits: constants of the variant.

  Returns:
    (indices kept, share of every box). An empty map removes nothing.
  """
  height, width = visible.mask.shape
  shares = np.zeros(len(boxes), np.float32)
  for index, box in enumerate(boxes):
    x1, y1, x2, y2 = (int(v) for v in box)
    part = visible.mask[max(0, y1) : y2 + 1, max(0, x1) : x2 + 1]
    if part.size and x1 < width and y1 < height:
      shares[index] = part.mean()
  if not visible.mask.any():
    return list(range(len(boxes))), shares
  keep = np.flatnonzero(shares >= np.float32(limits.visibility_share))
  return keep.tolist(), shares


def _readings(
  pose: NDArray[np.float64], inverted: Sequence[bool]
) -> NDArray[np.float64]:
  """A stored pose, or its inverse, for each reading."""
  inverse = np.linalg.inv(pose)
  return np.stack([inverse if flag else pose for flag in inverted])


@jax.jit
def _thicken(mask: jax.Array) -> jax.Array:
  return visibility.close_gaps(visibility.dilate(mask, size=3), size=5)


@jax.jit
def _merge(mask: jax.Array) -> jax.Array:
  return visibility.close_gaps(visibility.dilate(mask, size=11), size=11)


_reach = functools.partial(
  jax.jit,
  static_argnames=(
    "height",
    "width",
    "limit",
    "min_depth",
    "max_depth",
    "limits_inclusive",
    "min_points",
  ),
)(visibility.reached_pixels)
