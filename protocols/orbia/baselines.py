# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Generators with a known behaviour, over recorded or ray-cast worlds.

A world shows, for every requested frame, what a perfect generator would show:
picture, depth and pose on the video's grid. The baselines alter that:

- `perfect`: the world itself.
- `freeze`: the input picture, for ever; a camera that never moves.
- `depth_warp`: the input's RGB-D moved to every requested pose; what the
  input does not show is filled with its nearest neighbour.
- `drift`: a camera that goes too far and turns away slowly; what it shows is
  real.
- `swap`: after the turnaround another place stands where the first was.

What an estimator would recover is taken as exact: it sees the pictures, so
`drift` is recovered where it really went. `swap` keeps the requested poses,
since its picture moves as requested.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import cv2
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from kernels import camera, zbuffer
from perception import observation
from protocols.orbia import quality
from protocols.orbia.constants import PAPER, RELEASED
from protocols.orbia.dataset import PublicCase
from protocols.orbia.generated import Generated, case_plan, wanted_frames

DRIFT_SHARE = 1.1  # of the requested path
DRIFT_TURN_DEG = 25.0  # at the last frame
_NEAR = 1e-3  # no splat nearer to the camera than this
_SHOW_THROUGH = 1.05  # relative depth
Floats = NDArray[np.floating[Any]]


class Shot(NamedTuple):
  """One frame: uint8 [H, W, 3], depth [H, W] (NaN = none), pose 4x4."""

  image: NDArray[np.uint8]
  depth: NDArray[np.float32]
  pose: NDArray[np.float64]


class ShownWorld(Protocol):
  """What a perfect generator would show."""

  @property
  def frame_count(self) -> int:
    """Frames of the request."""

  @property
  def turnaround(self) -> int:
    """Frame of the far end of the path."""

  @property
  def intrinsics(self) -> NDArray[np.float64]:
    """3x3 on the video's grid, index convention."""

  def prepare(
    self, generator: Callable[[Any, int], Shot], frames: Sequence[int]
  ) -> None:
    """Gets ready for a generator's frames; may do nothing."""

  def shot(self, frame: int) -> Shot:
    """The world at a requested frame."""

  def drifted(self, frame: int, *, share: float, turn_deg: float) -> Shot:
    """The world from a camera at `share` of the way, turned to the right."""

  def elsewhere(self, frame: int) -> Shot:
    """Another place, with the pose of this frame."""


def freeze(world: ShownWorld, frame: int) -> Shot:
  """See the module docstring."""
  del frame
  return world.shot(0)


def depth_warp(world: ShownWorld, frame: int) -> Shot:
  """See the module docstring."""
  first, pose = world.shot(0), world.shot(frame).pose
  image, depth, filled = _warped(
    jnp.asarray(first.image, jnp.float32),
    jnp.asarray(first.depth),
    jnp.asarray(world.intrinsics, jnp.float32),
    jnp.asarray(np.linalg.inv(pose) @ first.pose, jnp.float32),
  )
  rows, columns = _nearest_filled(np.asarray(filled))
  picture = np.asarray(image)[rows, columns].astype(np.uint8)
  known = np.asarray(depth)[rows, columns]
  # Nothing of the input in sight: a black picture without depth.
  return Shot(picture, np.where(known > 0, known, np.nan), pose)


def drift(world: ShownWorld, frame: int) -> Shot:
  """See the module docstring."""
  turn = DRIFT_TURN_DEG * frame / max(world.frame_count - 1, 1)
  return world.drifted(frame, share=DRIFT_SHARE, turn_deg=turn)


def swap(world: ShownWorld, frame: int) -> Shot:
  """See the module docstring."""
  if frame <= world.turnaround:
    return world.shot(frame)
  return world.elsewhere(frame)


def perfect(world: ShownWorld, frame: int) -> Shot:
  """See the module docstring."""
  return world.shot(frame)


BASELINES: Mapping[str, Callable[[ShownWorld, int], Shot]] = {
  "perfect": perfect,
  "freeze": freeze,
  "depth_warp": depth_warp,
  "drift": drift,
  "swap": swap,
}


def generate(
  world: ShownWorld,
  case: PublicCase,
  generator: Callable[[ShownWorld, int], Shot],
  *,
  name: str,
) -> Generated:
  """A generated video with its recovered geometry, measured frames only.

  Args:
    world: what would be right to show.
    case: the case that it belongs to.
    generator: one of `BASELINES`, or another function of that form.
    name: for messages.

  Returns:
    `Generated` without a file behind it.
  """
  plan = case_plan(case, c=RELEASED)
  frames = shown_frames(case)
  world.prepare(generator, frames.tolist())
  shots = {int(f): generator(world, int(f)) for f in frames}
  kept = [shots[int(f)] for f in plan]
  size = kept[0].image.shape[:2]
  geometry = observation.Geometry(
    depth=np.stack([shot.depth for shot in kept]),
    intrinsics=np.tile(world.intrinsics.astype(np.float32), (len(plan), 1, 1)),
    c2w=np.stack([shot.pose for shot in kept]),
    frame_indices=plan.astype(np.int32),
    video_size=(size[0], size[1]),
    unit="arbitrary",
    provenance=observation.Provenance("", "exact", "1"),
  )
  pictures = {f: shot.image for f, shot in shots.items()}
  steps = range(0, case.frame_count, RELEASED.frame_stride)
  return Generated(
    frame_count=case.frame_count,
    fps=RELEASED.fps,
    size=(size[0], size[1]),
    frames=pictures,
    geometry=geometry,
    sha256="",
    name=name,
    flicker=quality.flicker([pictures[f] for f in steps]),
  )


def shown_frames(case: PublicCase) -> NDArray[np.int64]:
  """Frames that `generate` asks a world for, in either variant."""
  parts = [
    wanted_frames(case, quality=False, geometry=True, c=c)
    for c in (RELEASED, PAPER)
  ]
  return np.unique(np.concatenate(parts))


def turned(pose: NDArray[np.float64], degrees: float) -> NDArray[np.float64]:
  """A camera turned to the right about its own vertical axis."""
  angle = np.radians(degrees)
  turn = np.eye(4)
  turn[0, 0] = turn[2, 2] = np.cos(angle)
  turn[0, 2], turn[2, 0] = np.sin(angle), -np.sin(angle)
  return pose @ turn


def rotated_view(
  shot: Shot, intrinsics: NDArray[np.float64], degrees: float
) -> Shot:
  """A shot from the same place, turned to the right: exact but for borders.

  A turn about the camera's centre moves pixels by a homography whatever their
  depth; the depth along the new axis follows from the ray.
  """
  pose = turned(shot.pose, degrees)
  back = np.linalg.inv(shot.pose)[:3, :3] @ pose[:3, :3]
  homography = intrinsics @ back @ np.linalg.inv(intrinsics)
  height, width = shot.depth.shape
  column, row = np.meshgrid(np.arange(width), np.arange(height))
  source = homography @ np.stack([column, row, np.ones_like(row)]).reshape(
    3, -1
  )
  map_x = (source[0] / source[2]).reshape(height, width).astype(np.float32)
  map_y = (source[1] / source[2]).reshape(height, width).astype(np.float32)
  image = cv2.remap(
    shot.image,
    map_x,
    map_y,
    interpolation=cv2.INTER_LINEAR,
    borderMode=cv2.BORDER_REPLICATE,
  )
  old = cv2.remap(
    shot.depth,
    map_x,
    map_y,
    interpolation=cv2.INTER_NEAREST,
    borderMode=cv2.BORDER_CONSTANT,
    borderValue=float("nan"),
  )
  # A ray (x, y, 1) of the new camera is (.., .., s) of the old one, so the
  # depth along the new axis is old depth / s.
  ray = back @ np.linalg.inv(intrinsics)
  ray = ray @ np.stack([column, row, np.ones_like(row)]).reshape(3, -1)
  depth = np.asarray(old) / ray[2].reshape(height, width)
  return Shot(np.asarray(image), depth.astype(np.float32), pose)


@functools.partial(jax.jit)
def _warped(
  image: jax.Array, depth: jax.Array, k: jax.Array, motion: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
  height, width = depth.shape
  valid = jnp.isfinite(depth)
  points = camera.unproject(jnp.where(valid, depth, 1), k)
  points = camera.transform_points(motion, points).reshape(-1, 3)
  xy, z = camera.project(points, k)
  usable = valid.reshape(-1) & (z > _NEAR)
  exact, wide = (
    zbuffer.splat_points(
      xy, z, usable, height=height, width=width, radius=radius
    )
    for radius in (0, 1)
  )
  # Single pixels where they hit; 3 x 3 splats between them, and where a
  # nearer surface closes over a point that shows through its gaps.
  own = exact.filled & (exact.depth <= _SHOW_THROUGH * wide.depth)
  colours = image.reshape(-1, 3)
  picture = jnp.where(
    own[..., None],
    zbuffer.gather_values(exact, colours),
    zbuffer.gather_values(wide, colours),
  )
  return picture, jnp.where(own, exact.depth, wide.depth), wide.filled


def _nearest_filled(
  filled: NDArray[np.bool_],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
  """Pixel that each pixel takes its content from."""
  if not filled.any():
    whole = np.indices(filled.shape)
    return whole[0], whole[1]
  _, labels = cv2.distanceTransformWithLabels(
    (~filled).astype(np.uint8),
    cv2.DIST_L2,
    5,
    labelType=cv2.DIST_LABEL_PIXEL,
  )
  place = np.zeros(int(labels.max()) + 1, np.int64)
  place[labels[filled]] = np.flatnonzero(filled)
  taken = place[labels]
  return taken // filled.shape[1], taken % filled.shape[1]
