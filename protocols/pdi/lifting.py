# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""World points of chosen pixels, and their medians per frame.

Only the pixels that a score needs are gathered and lifted: those under the
object's mask and the anchors. Gathering runs on the host, where a boolean mask
becomes a short list; lifting and selection run compiled, on arrays padded to
few sizes, a fixed number of frames at a time, so that neither the length of a
clip nor the size of its map compiles anything anew.

Conventions: a flat index is row * width + column in the map. Lifted points are
rounded to float32, the storage type of the published point maps (section 0).
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from kernels import camera, numerics, rigidity, trajectory
from protocols.pdi import clip as clips
from protocols.pdi.clip import ClipArrays
from protocols.pdi.constants import PdiConstants

CHUNK_FRAMES = 8
_SMALLEST_CHUNK = 4096

Dtype = type[np.float32] | type[np.float64]


class DepthSamples(NamedTuple):
  """Pixels of depth maps: flat `index` [F, M] int32 and `depth` [F, M]."""

  index: Any
  depth: Any


class PointSamples(NamedTuple):
  """Pixels of ready point maps: `points` [F, M, 3]."""

  points: Any


class Views(NamedTuple):
  """Cameras of F frames, and the map's width (scalar int32).

  Attributes:
    c2w: [F, 4, 4].
    intrinsics: [F, 3, 3].
    width: int32 scalar.
  """

  c2w: Any
  intrinsics: Any
  width: Any


class FramePoints(NamedTuple):
  """Statistics of the points under the mask, per frame.

  Attributes:
    median: [F, 3] coordinate-wise median in world units; 0 without points.
    depth: [F] median camera-axis depth; 0 without points or from point maps.
    count: [F] int32 points behind the median.
    num_nonzero: [F] int32 usable points that are not the zero vector.
  """

  median: Any
  depth: Any
  count: Any
  num_nonzero: Any


@dataclasses.dataclass(frozen=True)
class PointSource:
  """Pixels of one clip's reconstruction, as samples.

  Attributes:
    clip: arrays with point maps, or with depth and cameras.
    constants: variant.
    dtype: floating type of the computation.
  """

  clip: ClipArrays
  constants: PdiConstants
  dtype: Dtype

  @property
  def width(self) -> int:
    """Columns of the map."""
    size = self.clip.map_size
    assert size is not None
    return size[1]

  def samples(
    self, frames: Sequence[int], indices: Sequence[np.ndarray], size: int
  ) -> DepthSamples | PointSamples:
    """Gathers pixels, padded to `size` per frame.

    Args:
      frames: F frame numbers.
      indices: F arrays of flat pixel indices.
      size: padded length M; padding is zero.

    Returns:
      Samples with arrays of leading shape [F, M].
    """
    shape = (len(frames), size)
    if self.clip.pointmaps is not None:
      storage = np.result_type(self.clip.pointmaps.dtype, np.float32)
      storage = min(storage, np.dtype(self.dtype), key=lambda d: d.itemsize)
      points = np.zeros((*shape, 3), storage)
      for row, (t, index) in enumerate(zip(frames, indices, strict=True)):
        flat = self.clip.pointmaps[t].reshape(-1, 3)
        points[row, : len(index)] = flat[index]
      return PointSamples(points)
    assert self.clip.depth is not None
    depth = np.zeros(shape, self.dtype)
    padded = np.zeros(shape, np.int32)
    for row, (t, index) in enumerate(zip(frames, indices, strict=True)):
      padded[row, : len(index)] = index
      depth[row, : len(index)] = self.clip.depth[t].reshape(-1)[index]
    if not self.constants.drop_nonfinite:
      # Section 2.7 [C] knows no missing depth; recorded data writes 0 for it,
      # and the point then is the zero vector. Paper (2.8) keeps NaN: missing.
      depth[np.isnan(depth)] = 0
    return DepthSamples(padded, depth)

  def views(self, frames: Sequence[int]) -> Views:
    """Cameras of some frames; identities for ready point maps."""
    width = np.int32(self.width)
    c2w = np.broadcast_to(np.eye(4, dtype=self.dtype), (len(frames), 4, 4))
    matrices = np.broadcast_to(np.eye(3, dtype=self.dtype), (len(frames), 3, 3))
    if self.clip.pointmaps is not None:
      return Views(c2w, matrices, width)
    assert self.clip.c2w is not None
    c2w = self.clip.c2w[list(frames)].astype(self.dtype)
    stacked = [self.intrinsics(t) for t in frames]
    return Views(c2w, np.asarray(stacked, self.dtype), width)

  def intrinsics(self, t: int) -> np.ndarray:
    """[3, 3] float64 intrinsics of a frame."""
    matrix = self.clip.intrinsics
    assert matrix is not None
    if np.ndim(matrix) == 3:
      matrix = matrix[t]
    fx, fy, cx, cy = clips.read_intrinsics(matrix, self.constants)
    return np.array([[fx, 0, cx], [0, fy, cy], [0, 0, 1]], np.float64)

  def window(self, t: int, rows: slice, columns: slice) -> np.ndarray:
    """World points [h, w, 3] float32 of a part of a frame's map, on the host.

    Zero and missing depth follow the rules of `samples`.
    """
    if self.clip.pointmaps is not None:
      return self.clip.pointmaps[t, rows, columns]
    assert self.clip.depth is not None
    assert self.clip.c2w is not None
    depth = self.clip.depth[t, rows, columns].astype(np.float64)
    if not self.constants.drop_nonfinite:
      depth = np.where(np.isnan(depth), 0, depth)
    matrix = self.intrinsics(t)
    pose = self.clip.c2w[t].astype(np.float64)
    x = (np.arange(columns.start, columns.stop) - matrix[0, 2]) / matrix[0, 0]
    y = (np.arange(rows.start, rows.stop) - matrix[1, 2]) / matrix[1, 1]
    local = np.stack([x[None, :] * depth, y[:, None] * depth, depth], axis=-1)
    world = local @ pose[:3, :3].T + pose[:3, 3]
    return np.where((depth == 0)[..., None], 0, world).astype(np.float32)


def lift(
  samples: DepthSamples | PointSamples,
  c2w: Array,
  intrinsics: Array,
  width: Array,
) -> Array:
  """World points [M, 3] of one frame's samples (section 2.4), traced.

  Zero depth gives the zero vector, NaN depth NaN.
  """
  return jnp.stack(coordinates(samples, c2w, intrinsics, width), axis=-1)


def coordinates(
  samples: DepthSamples | PointSamples,
  c2w: Array,
  intrinsics: Array,
  width: Array,
) -> list[Array]:
  """World x, y, z of one frame's samples, [M] each.

  Kept apart they lie contiguous in memory; interleaved, everything that
  follows takes twice as long.
  """
  if isinstance(samples, PointSamples):
    return [samples.points[:, axis] for axis in range(3)]
  row, column = _row_and_column(samples.index, width)
  dtype, depth = samples.depth.dtype, samples.depth
  x, y = camera.unproject_coordinates(
    column.astype(dtype), row.astype(dtype), depth, intrinsics
  )
  world = camera.transform_coordinates(c2w, x, y, depth)
  return [jnp.where(depth == 0, 0, axis).astype(jnp.float32) for axis in world]


@functools.partial(jax.jit, static_argnames=("drop_nonfinite", "storage_types"))
def _frame_points(
  samples: DepthSamples | PointSamples,
  count: Array,
  views: Views,
  *,
  drop_nonfinite: bool,
  storage_types: bool,
) -> FramePoints:
  """`FramePoints` of a chunk of frames; compiled once for each padded size."""

  def one(
    frame: tuple[DepthSamples | PointSamples, Array, Array, Array],
  ) -> FramePoints:
    sample, number, c2w, intrinsics = frame
    x, y, z = coordinates(sample, c2w, intrinsics, views.width)
    used = jnp.arange(x.shape[0]) < number
    if drop_nonfinite:  # section 2.8 [R]
      used &= jnp.isfinite(x) & jnp.isfinite(y) & jnp.isfinite(z)
    nonzero = used & ((x != 0) | (y != 0) | (z != 0))
    points = jnp.stack([x, y, z], axis=-1)
    if not storage_types:  # section 0 [C]: the release keeps float32 here
      points = points.astype(c2w.dtype)
    median, kept = trajectory.coordinate_median(points, used)
    depth = jnp.zeros((), c2w.dtype)
    if isinstance(sample, DepthSamples):
      depth = numerics.masked_median(sample.depth, used).value
    return FramePoints(
      median.astype(c2w.dtype),
      depth,
      kept,
      jnp.sum(nonzero, dtype=jnp.int32),
    )

  return jax.lax.map(one, (samples, count, views.c2w, views.intrinsics))


@functools.partial(jax.jit, static_argnames=("low", "high"))
def _frame_extents(
  samples: DepthSamples | PointSamples,
  count: Array,
  views: Views,
  *,
  low: float,
  high: float,
) -> Array:
  """[F] distance of two quantiles of world y under the mask (5.3)."""

  def one(
    frame: tuple[DepthSamples | PointSamples, Array, Array, Array],
  ) -> Array:
    sample, number, c2w, intrinsics = frame
    y = lift(sample, c2w, intrinsics, views.width)[:, 1].astype(c2w.dtype)
    used = jnp.arange(y.shape[0]) < number
    return rigidity.extent_between(y, used, low=low, high=high).value

  return jax.lax.map(one, (samples, count, views.c2w, views.intrinsics))


def frame_points(source: PointSource, masks: np.ndarray) -> FramePoints:
  """`FramePoints` of all frames of a clip, as NumPy arrays.

  Args:
    source: the reconstruction.
    masks: [T, h, w] bool on the map's grid.

  Returns:
    Arrays of leading length T.
  """
  compiled = functools.partial(
    _frame_points,
    drop_nonfinite=source.constants.drop_nonfinite,
    storage_types=source.constants.storage_types,
  )
  return _over_chunks(source, masks, compiled)


def frame_extents(source: PointSource, masks: np.ndarray) -> np.ndarray:
  """[T] spread of world y under the mask; the last one where it is empty."""
  low, high = source.constants.height_quantiles
  compiled = functools.partial(_frame_extents, low=low, high=high)
  extents = np.array(_over_chunks(source, masks, compiled))
  previous = extents.dtype.type(0)
  for t, mask in enumerate(masks):
    if mask.any():
      previous = extents[t]
    extents[t] = previous
  return extents


def _over_chunks(source: PointSource, masks: np.ndarray, compiled: Any) -> Any:
  """Runs a compiled stage over chunks of frames; results are concatenated.

  Calls return before they finish, so gathering the next chunk overlaps with
  the computation of the last one.
  """
  total = masks.shape[0]
  results = []
  for start in range(0, total, CHUNK_FRAMES):
    frames = list(range(start, min(start + CHUNK_FRAMES, total)))
    indices = [np.flatnonzero(masks[t]) for t in frames]
    # A short last chunk repeats its last frame; the copies are cut off.
    missing = CHUNK_FRAMES - len(frames)
    frames += frames[-1:] * missing
    indices += indices[-1:] * missing
    count = np.array([len(index) for index in indices], np.int32)
    size = clips.bucket(int(count.max()), smallest=_SMALLEST_CHUNK)
    results.append(
      compiled(
        source.samples(frames, indices, size), count, source.views(frames)
      )
    )
  return jax.tree.map(
    lambda *parts: np.concatenate([np.asarray(p) for p in parts])[:total],
    *results,
  )


def _row_and_column(index: Array, width: Array) -> tuple[Array, Array]:
  """Quotient and remainder by `width`, for indices below 2^24.

  A float division, corrected by one, runs in vector registers; an integer
  division does not.
  """
  row = (index.astype(jnp.float32) / width).astype(jnp.int32)
  column = index - row * width
  row = row + (column >= width) - (column < 0)
  return row, index - row * width
