# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Renders held-out views from splatted points: the offline reconstruction.

Stands where the protocol has Gaussians predicted by a network and rasterised
on a GPU (specification, 7.7). Every context pixel becomes a point. Splats of
3 x 3 pixels give the nearest surface; a pixel shows the mean of the points that
it holds on that surface, or the nearest splat where it holds none. It needs no
weights, and it is not comparable with published values. Intrinsics follow the
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
_MAX_POINTS = 1 << 20
_BEHIND = 0.03  # points this far behind the nearest surface belong to it


class PointSplats:
  """The `novel_view` role on a CPU; see the module docstring."""

  @property
  def info(self) -> roles.BackendInfo:
    """Identity and settings."""
    return roles.BackendInfo(
      role="novel_view",
      name=NAME,
      version="2",
      licence="Apache-2.0",
      comparable_to_published=False,
      settings={"max_points": _MAX_POINTS, "splat": 3, "behind": _BEHIND},
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
    flat = jnp.asarray(colours.reshape(-1, 3).T, jnp.float32)
    pictures, covered = [], []
    for k, pose in zip(intrinsics, origin @ c2w, strict=True):
      buffer, cells = _project(
        points,
        valid,
        jnp.asarray(k, jnp.float32),
        jnp.asarray(pose, jnp.float32),
        size=size,
      )
      picture, filled = _paint(buffer, cells, flat)
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


# Two programs: in one, XLA computes the projection once for each scatter.
@functools.partial(jax.jit, static_argnames=("size",))
def _project(
  points: jax.Array,
  valid: jax.Array,
  intrinsics: jax.Array,
  pose: jax.Array,
  *,
  size: tuple[int, int],
) -> tuple[zbuffer.ZBuffer, jax.Array]:
  """Nearest surface of 3 x 3 splats, and the pixel of each visible point."""
  seen = camera.transform_points(camera.invert_rigid(pose), points)
  xy, z = camera.project(seen, intrinsics)
  usable = valid & (z > 0)
  buffer = zbuffer.splat_points(
    xy, z, usable, height=size[0], width=size[1], radius=1
  )
  return buffer, zbuffer.cells_in_front(
    xy, z, usable, buffer, tolerance=_BEHIND
  )


@jax.jit
def _paint(
  buffer: zbuffer.ZBuffer, cells: jax.Array, colours: jax.Array
) -> tuple[jax.Array, jax.Array]:
  """Mean colour of a pixel's visible points, else its nearest splat's."""
  height, width = buffer.filled.shape
  mean, count = zbuffer.mean_of_cells(cells, colours, num_cells=height * width)
  picture = jnp.where(
    (count > 0).reshape(height, width, 1),
    mean.reshape(height, width, -1),
    zbuffer.gather_values(buffer, colours.T),
  )
  # Clipped and truncated to 8 bits, as the protocol does with renderings.
  return jnp.clip(picture, 0, 255).astype(jnp.uint8), buffer.filled
