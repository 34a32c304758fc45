# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""One frame's points drawn into another frame and compared with it.

Conventions: colours in [0, 1]; pixels as in `kernels.zbuffer`; poses are
camera-to-world. Higher coverage and lower errors are better.
"""

from __future__ import annotations

from typing import NamedTuple

import chex
import jax.numpy as jnp
from jax import Array

from kernels import camera, numerics, zbuffer


class Reprojection(NamedTuple):
  """Agreement of a frame with another frame's points.

  Attributes:
    coverage: filled and allowed pixels over allowed pixels; 0 if none is.
    mae: mean absolute colour difference over the compared pixels, in [0, 1].
    l2: root mean square colour difference, in [0, 1].
    num_compared: int32, compared pixels; 0 makes `mae` and `l2` void.
    num_allowed: int32.
  """

  coverage: Array
  mae: Array
  l2: Array
  num_compared: Array
  num_allowed: Array


def reprojection_error(
  points_world: Array,
  colours: Array,
  valid: Array,
  image: Array,
  allowed: Array,
  pose_c2w: Array,
  intrinsics: Array,
  *,
  min_depth: float,
  radius: int,
) -> Reprojection:
  """Splats coloured world points into a view and compares with its picture.

  Args:
    points_world: [N, 3] points of the source frame.
    colours: [N, 3] their colours.
    valid: [N] bool, points to use (static background, finite).
    image: [h, w, 3] the target frame.
    allowed: [h, w] bool, target pixels to compare.
    pose_c2w: [4, 4] of the target.
    intrinsics: [3, 3] of the target at (h, w).
    min_depth: points nearer than this to the target camera are dropped.
    radius: splat radius, pixels (1 for 3x3), static.

  Returns:
    `Reprojection`.

  Source: PDI-Bench, cross-frame reprojection (specification section 7.3).
  """
  chex.assert_rank([points_world, colours, valid], [2, 2, 1])
  chex.assert_rank([image, allowed], [3, 2])
  chex.assert_equal_shape([points_world, colours])
  chex.assert_shape(image, (*allowed.shape, 3))
  height, width = allowed.shape
  local = camera.transform_points(camera.invert_rigid(pose_c2w), points_world)
  xy, z = camera.project(local, intrinsics)
  buffer = zbuffer.splat_points(
    xy,
    z,
    valid & (z > min_depth),
    height=height,
    width=width,
    radius=radius,
  )
  drawn = zbuffer.gather_values(buffer, colours)
  compared = buffer.filled & allowed
  difference = (drawn - image).reshape(-1)
  each_channel = jnp.repeat(compared.reshape(-1), 3)
  mae = numerics.masked_mean(jnp.abs(difference), each_channel)
  l2 = numerics.masked_rms(difference, each_channel)
  num_compared = jnp.sum(compared, dtype=jnp.int32)
  num_allowed = jnp.sum(allowed, dtype=jnp.int32)
  coverage = num_compared / jnp.maximum(num_allowed, 1)
  return Reprojection(
    coverage.astype(z.dtype), mae.value, l2.value, num_compared, num_allowed
  )
