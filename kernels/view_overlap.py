# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""How much of one posed depth view lies in another one.

Conventions: OpenCV cameras, camera-to-world poses; depth is camera-axis Z,
non-finite or non-positive = unknown; integer coordinate = pixel centre. Shares
are numbers in [0, 1] over the sampled pixels with known depth.
"""

from __future__ import annotations

from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp

from kernels import camera


class ViewOverlap(NamedTuple):
  """Overlap of a source view with a target view.

  Attributes:
    projected: share of the sampled points that project into the target image
      in front of its camera.
    visible: share that, in addition, agree with the target's depth.
    points: number of sampled points with known depth; 0 makes the shares 0.
    compared: number of projected points whose target depth is known.
  """

  projected: jax.Array
  visible: jax.Array
  points: jax.Array
  compared: jax.Array


def view_overlap(
  depth_source: jax.Array,
  intrinsics_source: jax.Array,
  pose_source_c2w: jax.Array,
  depth_target: jax.Array,
  intrinsics_target: jax.Array,
  pose_target_c2w: jax.Array,
  *,
  grid: int,
  relative_tolerance: float,
) -> ViewOverlap:
  """Overlap in one direction.

  Every `grid`-th pixel in both axes is unprojected and moved to the target
  camera; its depth there is compared with the target's at the nearest pixel.

  Args:
    depth_source: [hs, ws] depth.
    intrinsics_source: [3, 3] at (hs, ws).
    pose_source_c2w: [4, 4].
    depth_target: [ht, wt] depth.
    intrinsics_target: [3, 3] at (ht, wt).
    pose_target_c2w: [4, 4].
    grid: sampling step in pixels.
    relative_tolerance: a point is visible if its depth differs from the
      target's by at most this share of the target's.

  Returns:
    The overlap.

  Source: EgoGenEval specification 9.3 (working definition).
  """
  chex.assert_rank([depth_source, depth_target], 2)
  chex.assert_type([depth_source, depth_target], float)
  if grid < 1:
    raise ValueError(f"grid must be at least 1, got {grid}")
  height, width = depth_target.shape
  row, column = jnp.meshgrid(
    jnp.arange(0, depth_source.shape[0], grid),
    jnp.arange(0, depth_source.shape[1], grid),
    indexing="ij",
  )
  z = depth_source[row, column].ravel()
  known = jnp.isfinite(z) & (z > 0)
  xy = jnp.stack([column.ravel(), row.ravel()], -1).astype(z.dtype)
  points = camera.unproject_pixels(
    xy, jnp.where(known, z, 1.0), intrinsics_source
  )
  source_to_target = camera.relative_pose(pose_target_c2w, pose_source_c2w)
  uv, z_target = camera.project(
    camera.transform_points(source_to_target, points), intrinsics_target
  )
  nearest = jnp.rint(jnp.where(jnp.isfinite(uv), uv, -1.0)).astype(jnp.int32)
  inside = (
    (nearest[:, 0] >= 0)
    & (nearest[:, 0] < width)
    & (nearest[:, 1] >= 0)
    & (nearest[:, 1] < height)
  )
  projected = known & inside & (z_target > 0)
  seen = depth_target[
    jnp.clip(nearest[:, 1], 0, height - 1),
    jnp.clip(nearest[:, 0], 0, width - 1),
  ]
  compared = projected & jnp.isfinite(seen) & (seen > 0)
  reference = jnp.where(compared, seen, 1.0)
  agrees = jnp.abs(z_target - reference) <= relative_tolerance * reference
  total = jnp.sum(known)

  def share(mask: jax.Array) -> jax.Array:
    return jnp.sum(mask).astype(z.dtype) / jnp.maximum(total, 1).astype(z.dtype)

  return ViewOverlap(
    share(projected), share(compared & agrees), total, jnp.sum(compared)
  )
