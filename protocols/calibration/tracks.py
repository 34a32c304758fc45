# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Exact tracks of material points on the surfaces of the calibration world.

A point is fixed in its part's coordinates, so it follows every motion and
every deformation of its body. It is visible in a frame when it lies inside
the picture, its body is present, and the ray through its exact sub-pixel
position meets no surface in front of it. All of it is computed in float64.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from protocols.calibration import intersect, render
from protocols.calibration import world as world_lib

# Two surfaces closer than this fraction of their depth count as one.
_SAME_DEPTH = 1e-6


class SurfacePoints(NamedTuple):
  """Material points: part index int [N] and part coordinates [N, 3] (m)."""

  part: np.ndarray
  local: np.ndarray


class ExactTracks(NamedTuple):
  """Projections of points.

  Attributes:
    xy: float64 [T, N, 2] pixels; (0, 0) where the point is behind the camera.
    depth: float64 [T, N] camera-axis depth, also where hidden.
    visible: bool [T, N].
  """

  xy: np.ndarray
  depth: np.ndarray
  visible: np.ndarray


def points_at_pixels(
  world: world_lib.World,
  motion: world_lib.Motion,
  c2w: np.ndarray,
  intrinsics: np.ndarray,
  xy: np.ndarray,
  *,
  frame: int,
) -> SurfacePoints:
  """The material points that one frame shows at sub-pixel positions.

  Args:
    world: what exists.
    motion: what it does.
    c2w: camera poses [T, 4, 4].
    intrinsics: [3, 3].
    xy: [N, 2] pixel positions.
    frame: the frame.

  Returns:
    Points; part -1 where the ray hits nothing.
  """
  rows = slice(frame, frame + 1)
  slopes = _slopes(np.asarray(xy, np.float64), intrinsics)
  depth, part = _cast(world, _rows(motion, rows), c2w[rows], slopes[None])
  ray = np.concatenate([slopes, np.ones((len(slopes), 1))], axis=1)
  camera = ray * np.where(part[0] < 0, 1.0, depth[0])[:, None]
  to_part = render.part_from_world(world, _rows(motion, rows))[0]
  matrix = (to_part @ c2w[frame])[part[0]]
  local = np.einsum("nij,nj->ni", matrix[:, :3, :3], camera)
  return SurfacePoints(part[0], local + matrix[:, :3, 3])


def project_points(
  world: world_lib.World,
  motion: world_lib.Motion,
  c2w: np.ndarray,
  intrinsics: np.ndarray,
  size: tuple[int, int],
  points: SurfacePoints,
) -> ExactTracks:
  """Follows material points through all frames.

  Args:
    world: what exists.
    motion: what it does, T frames.
    c2w: camera poses [T, 4, 4].
    intrinsics: [3, 3] pixels of `size`.
    size: (height, width).
    points: N points, all on a part.

  Returns:
    Tracks of all points.
  """
  to_world = motion.body_to_world[:, world.part_body] @ world.part_to_body()
  matrix = np.linalg.inv(c2w)[:, None] @ to_world[:, points.part]
  camera = np.einsum("tnij,nj->tni", matrix[..., :3, :3], points.local)
  camera = camera + matrix[..., :3, 3]
  depth = camera[..., 2]
  front = depth > intersect.NEAR_M
  slopes = camera[..., :2] / np.where(front, depth, 1.0)[..., None]
  slopes = np.where(front[..., None], slopes, 0.0)
  focal, center = intrinsics[[0, 1], [0, 1]], intrinsics[:2, 2]
  xy = np.where(front[..., None], slopes * focal + center, 0.0)
  inside = np.all((xy >= -0.5) & (xy < np.array(size)[::-1] - 0.5), axis=-1)
  nearest, _ = _cast(world, motion, c2w, slopes)
  clear = depth <= nearest * (1.0 + _SAME_DEPTH)
  present = motion.present[:, world.part_body[points.part]]
  return ExactTracks(xy, depth, front & inside & clear & present)


def sample_pixels(mask: np.ndarray, *, count: int, seed: int) -> np.ndarray:
  """Random sub-pixel positions inside a mask, [N, 2], N <= `count`.

  At most one point falls into a pixel; pixels at the mask's outline are left
  out, unless nothing else exists.
  """
  inner = mask.copy()
  for axis in (0, 1):
    for step in (-1, 1):
      inner &= np.roll(mask, step, axis=axis)
  inner[[0, -1]] = inner[:, [0, -1]] = False
  rows, columns = np.nonzero(inner if inner.any() else mask)
  rng = np.random.default_rng(seed)
  chosen = rng.permutation(len(rows))[:count]
  xy = np.stack([columns[chosen], rows[chosen]], axis=1).astype(np.float64)
  return xy + rng.uniform(-0.45, 0.45, xy.shape)


def _rows(motion: world_lib.Motion, rows: slice) -> world_lib.Motion:
  return world_lib.Motion(
    motion.body_to_world[rows], motion.present[rows], motion.texture_ids[rows]
  )


def _slopes(xy: np.ndarray, intrinsics: np.ndarray) -> np.ndarray:
  """Ray slopes (x, y) of pixel positions [..., 2]."""
  return (xy - intrinsics[:2, 2]) / intrinsics[[0, 1], [0, 1]]


def _cast(
  world: world_lib.World,
  motion: world_lib.Motion,
  c2w: np.ndarray,
  slopes: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
  """Nearest depth and part along rays [T, N, 2], in float64."""
  order, inverse_half, counts = render.pack_parts(world)
  matrix = render.part_from_world(world, motion) @ c2w[:, None]
  with jax.enable_x64(True):
    hit = _cast_frames(
      jnp.asarray(matrix[:, order, :3]),
      jnp.asarray(inverse_half),
      jnp.asarray(motion.present[:, world.part_body][:, order]),
      jnp.asarray(counts, jnp.int32),
      jnp.asarray(slopes),
    )
    depth, part = jax.device_get(hit)
  return depth, np.append(order, -1)[part]


@jax.jit
def _cast_frames(
  matrix: jax.Array,
  inverse_half: jax.Array,
  present: jax.Array,
  counts: jax.Array,
  slopes: jax.Array,
) -> intersect.Hit:
  def one(frame: tuple[jax.Array, ...]) -> intersect.Hit:
    parts = intersect.Parts(frame[0], inverse_half, frame[1], counts)
    return intersect.nearest(parts, frame[2][:, 0], frame[2][:, 1])

  return jax.lax.map(one, (matrix, present, slopes))
