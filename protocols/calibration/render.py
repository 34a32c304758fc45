# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Ray casting of the calibration world: exact RGB, depth and part indices.

Pixel centres lie at integer coordinates, x right, y down. A pixel's ray is
(x, y, 1) in camera axes with x = (u - cx) / fx, y = (v - cy) / fy; carried
into a part's frame by an affine map its parameter stays the camera-axis
depth, so no conversion follows. The maps are composed in float64 on the host
and cast to float32, which keeps depth within a few parts in 10^6.

Depth and part index belong to the pixel centre. Colour is shaded once per
pixel with band-limited textures; edges (of parts, faces and shadows) are
smoothed by their exact coverage at the pixel's corners (see `shading`).
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator
from concurrent import futures
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from protocols.calibration import intersect, shading
from protocols.calibration import textures as textures_lib
from protocols.calibration import world as world_lib

_PAD = 8
_CHUNK = 16
# Colour planes, depth, part index.
_Images = tuple[tuple[jax.Array, ...], jax.Array, jax.Array]


class _Frame(NamedTuple):
  """Everything that one frame needs, in camera axes (leading T when many)."""

  matrix: jax.Array  # [P, 3, 4] part coordinates from camera
  present: jax.Array  # [P]
  texture: jax.Array  # [P]
  camera: jax.Array  # [4] fx, fy, cx, cy
  to_sun: jax.Array  # [3]
  up: jax.Array  # [3]


class _Stage(NamedTuple):
  """Everything that no frame changes."""

  inverse_half: jax.Array  # [P, 3]
  counts: jax.Array  # [3] planes, boxes, spheres, in this order
  table: jax.Array  # [K, columns]
  sky: jax.Array  # [8] zenith, horizon (linear), ambient, haze
  casting: jax.Array  # 1 if boxes and spheres cast shadows, else 0


@dataclasses.dataclass(frozen=True, eq=False)
class Frames:
  """Rendered frames.

  Attributes:
    rgb: uint8 [T, H, W, 3], or None where colour was not asked for.
    depth: camera-axis depth in metres, float32 [T, H, W]; NaN for the sky.
    part: index of the part at the pixel centre, int16 [T, H, W]; -1 for sky.
  """

  rgb: np.ndarray | None
  depth: np.ndarray
  part: np.ndarray

  def mask(self, world: world_lib.World, body: int) -> np.ndarray:
    """Where the pixel centre shows the body, bool [T, H, W]."""
    parts = np.flatnonzero(world.part_body == body)
    return (self.part >= parts[0]) & (self.part <= parts[-1])


def render_sequence(
  world: world_lib.World,
  poses_c2w: np.ndarray,
  intrinsics: np.ndarray,
  size: tuple[int, int],
  *,
  motion: world_lib.Motion | None = None,
  color: bool = True,
) -> Frames:
  """Renders one frame per camera pose.

  Args:
    world: what exists.
    poses_c2w: camera-to-world poses, [T, 4, 4].
    intrinsics: [3, 3] or [T, 3, 3], pixels of `size`.
    size: (height, width).
    motion: what the bodies do, T frames; None leaves them at rest.
    color: False skips the colours, which is several times faster.

  Returns:
    Frames, in the machine's main memory.

  Raises:
    ValueError: shapes that do not fit.
  """
  count = len(poses_c2w)
  height, width = size
  rgb = np.empty((count, height, width, 3), np.uint8) if color else None
  depth = np.empty((count, height, width), np.float32)
  part = np.empty((count, height, width), np.int16)
  start = 0
  for chunk in render_chunks(
    world, poses_c2w, intrinsics, size, motion=motion, color=color
  ):
    stop = start + len(chunk.depth)
    depth[start:stop], part[start:stop] = chunk.depth, chunk.part
    if rgb is not None and chunk.rgb is not None:
      rgb[start:stop] = chunk.rgb
    start = stop
  return Frames(rgb, depth, part)


def render_chunks(
  world: world_lib.World,
  poses_c2w: np.ndarray,
  intrinsics: np.ndarray,
  size: tuple[int, int],
  *,
  motion: world_lib.Motion | None = None,
  color: bool = True,
) -> Iterator[Frames]:
  """As `render_sequence`, a few frames at a time, in order.

  Two chunks are rendered at once; memory does not grow with T.
  """
  poses_c2w = np.asarray(poses_c2w, np.float64)
  if poses_c2w.ndim != 3 or poses_c2w.shape[1:] != (4, 4):
    raise ValueError(f"poses_c2w: found {poses_c2w.shape}, expected [T, 4, 4]")
  motion = world.rest(len(poses_c2w)) if motion is None else motion
  if motion.frames != len(poses_c2w):
    raise ValueError(
      f"motion has {motion.frames} frames, poses_c2w {len(poses_c2w)}"
    )
  order, stage = _pack_stage(world)
  frames = _pack_frames(world, order, poses_c2w, intrinsics, motion)
  run = functools.partial(_render_chunk, size=size, color=color)
  lookup = np.append(order, np.full(_PAD, -1)).astype(np.int16)

  def work(start: int) -> Frames:
    stop = min(start + _CHUNK, len(poses_c2w))
    rows = np.minimum(np.arange(start, start + _CHUNK), stop - 1)
    count = jnp.int32(stop - start)
    chunk = _Frame(**{k: jnp.asarray(v[rows]) for k, v in frames.items()})
    planes, depth, index = jax.device_get(run(stage, chunk, count))
    keep = slice(0, stop - start)
    rgb = np.stack(planes, axis=-1)[keep] if color else None
    return Frames(rgb, depth[keep], lookup[index[keep]])

  with futures.ThreadPoolExecutor(max_workers=2) as pool:
    pending: list[futures.Future[Frames]] = []
    for start in range(0, len(poses_c2w), _CHUNK):
      pending.append(pool.submit(work, start))
      if len(pending) > 2:
        yield pending.pop(0).result()
    for future in pending:
      yield future.result()


def part_from_world(
  world: world_lib.World, motion: world_lib.Motion
) -> np.ndarray:
  """Affine maps to part coordinates, float64 [T, P, 4, 4]."""
  to_world = motion.body_to_world[:, world.part_body] @ world.part_to_body()
  return np.linalg.inv(to_world)


def pack_parts(
  world: world_lib.World,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
  """Order of the parts by shape, 1 / half extents [P, 3], and counts [3]."""
  parts = world.parts
  kind = np.array([world_lib.SHAPES.index(part.shape) for part in parts])
  order = np.argsort(kind, kind="stable")
  half = np.array([parts[k].half for k in order], np.float64)
  half[kind[order] == 0, 1] = 1.0
  return order, 1.0 / half, np.bincount(kind, minlength=3)


def _pack_stage(world: world_lib.World) -> tuple[np.ndarray, _Stage]:
  """Order of the parts by shape, and the arrays that frames share."""
  order, inverse_half, counts = pack_parts(world)
  light = world.light
  sky = [textures_lib.to_linear(c) for c in (*light.zenith, *light.horizon)]
  table = np.stack([texture.row() for texture in world.textures])
  padding, spare = (0, -len(order) % _PAD), (0, -len(table) % _PAD)
  stage = _Stage(
    inverse_half=jnp.asarray(
      np.pad(inverse_half, (padding, (0, 0))), jnp.float32
    ),
    counts=jnp.asarray(counts, jnp.int32),
    table=jnp.asarray(np.pad(table, (spare, (0, 0)))),
    sky=jnp.asarray([*sky, light.ambient, 1 / light.haze_m], jnp.float32),
    casting=jnp.int32(light.shadows),
  )
  return order, stage


def _pack_frames(
  world: world_lib.World,
  order: np.ndarray,
  poses_c2w: np.ndarray,
  intrinsics: np.ndarray,
  motion: world_lib.Motion,
) -> dict[str, np.ndarray]:
  """Fields of `_Frame` with a leading frame axis, padded parts."""
  count = len(poses_c2w)
  matrix = part_from_world(world, motion) @ poses_c2w[:, None]
  rotation = poses_c2w[:, :3, :3]
  sun = np.asarray(world.light.to_sun, np.float64)
  k = np.broadcast_to(np.asarray(intrinsics, np.float64), (count, 3, 3))
  camera = np.stack([k[:, 0, 0], k[:, 1, 1], k[:, 0, 2], k[:, 1, 2]], axis=1)
  padding = (0, -len(order) % _PAD)
  present = motion.present[:, world.part_body][:, order]
  return {
    "matrix": np.pad(
      matrix[:, order, :3].astype(np.float32),
      ((0, 0), padding, (0, 0), (0, 0)),
    ),
    "present": np.pad(present, ((0, 0), padding)),
    "texture": np.pad(motion.texture_ids[:, order], ((0, 0), padding)),
    "camera": camera.astype(np.float32),
    "to_sun": (sun / np.linalg.norm(sun) @ rotation).astype(np.float32),
    "up": (np.array([0.0, -1.0, 0.0]) @ rotation).astype(np.float32),
  }


@functools.partial(jax.jit, static_argnames=("size", "color"))
def _render_chunk(
  stage: _Stage,
  frames: _Frame,
  count: jax.Array,
  *,
  size: tuple[int, int],
  color: bool,
) -> _Images:
  """Colour planes, depth and packed part index of the first `count` frames.

  The other rows are zero: one program serves every length.
  """
  shape = (_CHUNK, *size)
  planes = tuple(jnp.zeros(shape, jnp.uint8) for _ in range(3 * color))
  empty = (planes, jnp.zeros(shape, jnp.float32), jnp.zeros(shape, jnp.int16))

  def body(k: int, done: _Images) -> _Images:
    frame = _Frame(*(field[k] for field in frames))
    image = _render_frame(stage, frame, size=size, color=color)
    return jax.tree.map(lambda all_, one: all_.at[k].set(one), done, image)

  return jax.lax.fori_loop(0, count, body, empty)


def _render_frame(
  stage: _Stage, frame: _Frame, *, size: tuple[int, int], color: bool
) -> _Images:
  """Colour planes (none without colour), depth and packed part index."""
  parts = intersect.Parts(
    frame.matrix, stage.inverse_half, frame.present, stage.counts
  )
  x, y = shading.slopes(frame.camera, size, dx=0.0, dy=0.0)
  hit = intersect.nearest(parts, x, y)
  depth = jnp.where(hit.part < 0, jnp.nan, hit.depth)
  index = hit.part.astype(jnp.int16)
  if not color:
    return (), depth, index
  view = shading.View(
    frame.camera, frame.to_sun, frame.up, stage.sky, stage.casting
  )
  planes = shading.colors(parts, frame.texture, stage.table, view, hit)
  return planes, depth, index
