# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""A recording whose depth is the mean of what several of its frames measured.

One frame of a depth sensor is off by a percent or two of the distance, from
frame to frame; a surface is known better than that, since its neighbours saw
it too. Their depth maps are moved into the frame with the recorded poses, and
those that agree with its own measurement are averaged. Pixels without a
measurement of their own stay without one.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from kernels import camera, zbuffer

_NEAR = 1e-3  # no surface nearer to the camera than this


class PosedDepthSource(Protocol):
  """What a walk needs of a recording; see `perception.recorded`."""

  @property
  def size(self) -> tuple[int, int]:
    """(H, W) of all pictures."""

  @property
  def intrinsics(self) -> NDArray[np.floating[Any]]:
    """[T, 3, 3], pixels at `size`."""

  @property
  def c2w(self) -> NDArray[np.floating[Any]]:
    """[T, 4, 4], camera-to-world."""

  def __len__(self) -> int:
    """T."""

  def rgb(self, row: int) -> NDArray[np.uint8]:
    """[H, W, 3]."""

  def depth(self, row: int) -> NDArray[np.floating[Any]]:
    """[H, W], NaN = invalid."""


@dataclasses.dataclass(frozen=True, eq=False)
class FusedDepth:
  """A recording with fused depth.

  Attributes:
    source: the recording.
    reach: rows on either side that may contribute.
    tolerance: largest relative difference to the frame's own depth.
  """

  source: PosedDepthSource
  reach: int = 4
  tolerance: float = 0.03

  @property
  def size(self) -> tuple[int, int]:
    """(H, W) of all pictures."""
    return self.source.size

  @property
  def intrinsics(self) -> NDArray[np.floating[Any]]:
    """[T, 3, 3], pixels at `size`."""
    return self.source.intrinsics

  @property
  def c2w(self) -> NDArray[np.floating[Any]]:
    """[T, 4, 4], camera-to-world."""
    return self.source.c2w

  def __len__(self) -> int:
    """T."""
    return len(self.source)

  def rgb(self, row: int) -> NDArray[np.uint8]:
    """[H, W, 3]."""
    return self.source.rgb(row)

  @functools.lru_cache(maxsize=256)  # noqa: B019 - lives as long as the source
  def depth(self, row: int) -> NDArray[np.float32]:
    """Fused depth [h, w] of a row; NaN where the sensor has none."""
    own = np.asarray(self.source.depth(row), np.float32)
    known = np.isfinite(own) & (own > 0)
    total, count = np.where(known, own, 0.0), known.astype(np.float32)
    to_row = np.linalg.inv(self.source.c2w[row])
    first = max(row - self.reach, 0)
    for other in range(first, min(row + self.reach + 1, len(self))):
      if other == row:
        continue
      moved = _moved(
        jnp.asarray(self.source.depth(other), jnp.float32),
        jnp.asarray(self.source.intrinsics[other], jnp.float32),
        jnp.asarray(self.source.intrinsics[row], jnp.float32),
        jnp.asarray(to_row @ self.source.c2w[other], jnp.float32),
      )
      seen = np.asarray(moved)
      agrees = known & (np.abs(seen - own) <= self.tolerance * own)
      total += np.where(agrees, seen, 0.0)
      count += agrees
    return np.where(known, total / np.maximum(count, 1.0), np.nan)


@jax.jit
def _moved(
  depth: jax.Array, k_source: jax.Array, k_target: jax.Array, motion: jax.Array
) -> jax.Array:
  """Depth seen by another camera; 0 where it sees nothing of this one."""
  known = jnp.isfinite(depth) & (depth > 0)
  points = camera.unproject(jnp.where(known, depth, 1), k_source)
  points = camera.transform_points(motion, points).reshape(-1, 3)
  xy, z = camera.project(points, k_target)
  return zbuffer.splat_points(
    xy,
    z,
    known.reshape(-1) & (z > _NEAR),
    height=depth.shape[0],
    width=depth.shape[1],
    radius=0,
  ).depth
