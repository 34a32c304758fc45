# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Renders held-out views from splatted points: the offline reconstruction.

Stands where the protocol has Gaussians predicted by a network and rasterised
on a GPU (specification, 7.7). Every context pixel becomes a point; a view
shows the nearest point of each pixel as a 3 x 3 splat. It needs no weights,
and it is not comparable with published values. Intrinsics follow the
protocol: index coordinates, no half-pixel shift.
"""

from __future__ import annotations

import functools
from typing import Any

import cv2
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from kernels import camera, zbuffer
from perception import observation, roles

NAME = "point_splats"
_MAX_POINTS = 1 << 19


class PointSplats:
  """The `novel_view` role on a CPU; see the module docstring."""

  @property
  def info(self) -> roles.BackendInfo:
    """Identity and settings."""
    return roles.BackendInfo(
      role="novel_view",
      name=NAME,
      version="1",
      licence="Apache-2.0",
      comparable_to_published=False,
      settings={"max_points": _MAX_POINTS, "splat": 3},
    )

  def render(
    self,
    frames: roles.FrameSource,
    geometry: observation.Geometry,
    *,
    intrinsics: NDArray[np.floating[Any]],
    c2w: NDArray[np.floating[Any]],
    size: tuple[int, int],
  ) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """See `roles.NovelViewBackend.render`."""
    height, width = geometry.depth_size
    stride = 1
    while len(frames) * height * width // stride**2 > _MAX_POINTS:
      stride += 1
    colours = np.stack(
      [
        cv2.resize(frame, (width, height), interpolation=cv2.INTER_AREA)
        for frame in frames
      ]
    )[:, ::stride, ::stride]
    # Points near the origin keep their digits in float32.
    origin = np.linalg.inv(geometry.c2w[0])
    points, valid = _points(
      jnp.asarray(geometry.depth[:, ::stride, ::stride]),
      jnp.asarray(geometry.intrinsics, jnp.float32),
      jnp.asarray(origin @ geometry.c2w, jnp.float32),
      stride=stride,
    )
    flat = jnp.asarray(colours.reshape(-1, 3), jnp.float32)
    pictures, covered = [], []
    for k, pose in zip(intrinsics, origin @ c2w, strict=True):
      picture, filled = _view(
        points,
        valid,
        flat,
        jnp.asarray(k, jnp.float32),
        jnp.asarray(pose, jnp.float32),
        size=size,
      )
      pictures.append(np.asarray(picture))
      covered.append(np.asarray(filled))
    return np.stack(pictures), np.stack(covered)


@functools.partial(jax.jit, static_argnames=("stride",))
def _points(
  depth: jax.Array, intrinsics: jax.Array, poses: jax.Array, *, stride: int
) -> tuple[jax.Array, jax.Array]:
  """World points [N, 3] of all pixels of all frames, and their validity."""
  row, column = jnp.meshgrid(
    jnp.arange(depth.shape[1], dtype=depth.dtype),
    jnp.arange(depth.shape[2], dtype=depth.dtype),
    indexing="ij",
  )
  xy = jnp.stack([column, row], axis=-1) * stride
  valid = jnp.isfinite(depth) & (depth > 0)
  safe = jnp.where(valid, depth, 1)

  def one(z: jax.Array, k: jax.Array, pose: jax.Array) -> jax.Array:
    points = camera.unproject_pixels(xy, z, k)
    return camera.transform_points(pose, points)

  points = jax.vmap(one)(safe, intrinsics, poses)
  return points.reshape(-1, 3), valid.reshape(-1)


@functools.partial(jax.jit, static_argnames=("size",))
def _view(
  points: jax.Array,
  valid: jax.Array,
  colours: jax.Array,
  intrinsics: jax.Array,
  pose: jax.Array,
  *,
  size: tuple[int, int],
) -> tuple[jax.Array, jax.Array]:
  seen = camera.transform_points(camera.invert_rigid(pose), points)
  xy, z = camera.project(seen, intrinsics)
  buffer = zbuffer.splat_points(
    xy, z, valid & (z > 0), height=size[0], width=size[1], radius=1
  )
  picture = zbuffer.gather_values(buffer, colours)
  # Clipped and truncated to 8 bits, as the protocol does with renderings.
  return jnp.clip(picture, 0, 255).astype(jnp.uint8), buffer.filled
