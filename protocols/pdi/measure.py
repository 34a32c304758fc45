# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""One clip's arrays to its three residuals and PDI, in either variant.

`measure_clip` aligns the arrays, gathers what the scores need, runs three
compiled stages (frame points, series, anchor pairs) on padded buckets, and
says what is missing and which traps it met. Missing is None, never a number;
`released` alone turns failures into scores, because the published code does.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import Array

from kernels import scale_depth, trajectory
from perception.errors import InputError
from protocols.pdi import clip as clips
from protocols.pdi import index, lifting, rigidity
from protocols.pdi.clip import ClipArrays, MaskStatistics
from protocols.pdi.constants import PdiConstants
from protocols.pdi.lifting import Dtype, FramePoints, PointSource

_SMALLEST = 64


@dataclasses.dataclass(frozen=True)
class PdiMeasurement:
  """Scores of one clip, what they rest on, and what was met on the way.

  Attributes:
    scale: E_scale; None: missing.
    traj: E_traj; None: missing.
    rigid: E_rigid; None: missing.
    pdi: weighted sum, unrounded; None if a component is missing.
    grade: letter of `pdi`; empty without one.
    valid: PDI present and not too many lost masks. The fidelity guard is not
      part of it.
    strategy: rigidity strategy 1, 2 or 3; 0: none.
    frames: T, frames in use.
    h: [T] pixel heights.
    object_depth: [T] depth series; None without one.
    lost_mask_fraction: frames with at most 10 mask pixels.
    truncated_fraction: frames whose mask touches the upper or lower border,
      lost ones included.
    n_tracks: tracks before the filter.
    n_anchors: tracks after it.
    n_candidates: None unless strategy 1.
    n_pairs: None unless pairs were formed.
    v_ref: reference speed, world units per second; None without a trajectory.
    grad_threshold: of the anchor choice; None unless strategy 1.
    rigid_2d: 2D fallback, only where it applied.
    rigid_seeds: E_rigid per anchor seed (section 8.5).
    clipped_track_fraction: share of track positions outside the map.
    sentinels: traps met, by name (`describe_sentinels` explains them).
    reasons: component to the reason why it is missing.
    series: `scale` (T-1), `traj` (T-1 released, T-2 paper), `rigid` (T).
    points: statistics of the points under the mask per frame; None without
      a reconstruction.
    intermediates: arrays by name, for inspection and conformance.
  """

  scale: float | None
  traj: float | None
  rigid: float | None
  pdi: float | None
  grade: str
  valid: bool
  strategy: int
  frames: int
  h: np.ndarray
  object_depth: np.ndarray | None
  lost_mask_fraction: float
  truncated_fraction: float
  n_tracks: int
  n_anchors: int
  n_candidates: int | None
  n_pairs: int | None
  v_ref: float | None
  grad_threshold: float | None
  rigid_2d: float | None
  rigid_seeds: tuple[float, ...]
  clipped_track_fraction: float | None
  sentinels: tuple[str, ...]
  reasons: dict[str, str]
  series: dict[str, np.ndarray]
  points: FramePoints | None
  intermediates: dict[str, np.ndarray]


@dataclasses.dataclass(frozen=True)
class Component:
  """One residual of a clip.

  Attributes:
    value: its score; None: missing.
    series: its residual per frame.
    reason: why it is missing; empty if it is not.
    reference: its reference value (v_ref for the trajectory).
    detail: arrays for inspection.
  """

  value: float | None
  series: np.ndarray
  reason: str = ""
  reference: float | None = None
  detail: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)


class Reconstruction(NamedTuple):
  """What the frame-0 validity test found (section 2.7).

  Attributes:
    points: per-frame statistics; None without point maps for all frames.
    supports_trajectory: mask 0 is not empty and at least half of its points
      are non-zero.
    supports_pairs: the same with more than half.
    is_zero: no point under any mask is non-zero.
    is_nonfinite: the test fails for want of finite points alone (paper).
  """

  points: FramePoints | None
  supports_trajectory: bool
  supports_pairs: bool
  is_zero: bool
  is_nonfinite: bool


def measure_clip(
  arrays: ClipArrays, constants: PdiConstants, *, dtype: Dtype
) -> PdiMeasurement:
  """Scores one clip.

  Args:
    arrays: the clip.
    constants: `RELEASED` or `PAPER` of `protocols.pdi.constants`.
    dtype: np.float32 or np.float64, the type of the computation.

  Returns:
    `PdiMeasurement`.

  Raises:
    InputError: the clip has no frame.
  """
  if arrays.num_frames == 0:
    raise InputError(
      arrays.name, "masks", found="no frame", expected="at least one frame"
    )
  with jax.enable_x64(dtype is np.float64):
    return _measure(arrays, constants, dtype)


def _measure(
  arrays: ClipArrays, constants: PdiConstants, dtype: Dtype
) -> PdiMeasurement:
  frames = arrays.num_frames
  statistics = clips.mask_statistics(arrays.masks[:frames], constants)
  source = PointSource(arrays, constants, dtype) if arrays.has_points else None
  found = examine(source, constants)
  depth = object_depth(arrays, found.points, constants)
  scale = measure_scale(
    statistics.height, depth, statistics.count, constants, dtype=dtype
  )
  path = measure_trajectory(
    found,
    clips.frame_rate(arrays.fps, constants),
    frames,
    constants,
    dtype=dtype,
  )
  if found.is_nonfinite:
    # There is a reconstruction, so the 2D fallback does not speak for it.
    reason = "rigidity: too few finite points under mask 0"
    rigid = rigidity.Rigidity(0, None, np.zeros(0), reason=reason)
  else:
    rigid = rigidity.measure_rigidity(
      arrays,
      source=source if found.supports_pairs else None,
      heights=statistics.height,
      constants=constants,
      dtype=dtype,
    )
  reasons = {
    name: reason
    for name, reason in (
      ("scale", scale.reason),
      ("traj", path.reason),
      ("rigid", rigid.reason),
    )
    if reason
  }
  components = (scale.value, path.value, rigid.value)
  present = [value for value in components if value is not None]
  pdi = index.combine(present, constants.weights) if len(present) == 3 else None
  lost = lost_fraction(statistics.count, constants)
  return PdiMeasurement(
    scale=scale.value,
    traj=path.value,
    rigid=rigid.value,
    pdi=pdi,
    grade="" if pdi is None else index.grade(pdi, constants.grade_bounds),
    valid=pdi is not None
    and bool(np.isfinite(pdi))
    and lost <= constants.max_lost_fraction,
    strategy=rigid.strategy,
    frames=frames,
    h=statistics.height,
    object_depth=depth,
    lost_mask_fraction=lost,
    truncated_fraction=float(np.mean(statistics.truncated)),
    n_tracks=0 if arrays.tracks is None else arrays.tracks.shape[1],
    n_anchors=rigid.n_anchors,
    n_candidates=rigid.n_candidates,
    n_pairs=rigid.n_pairs,
    v_ref=path.reference,
    grad_threshold=rigid.gradient_threshold,
    rigid_2d=rigid.rigid_2d,
    rigid_seeds=rigid.seed_values,
    clipped_track_fraction=rigid.outside_fraction,
    sentinels=_sentinels(statistics, found, rigid, components, constants),
    reasons=reasons,
    series={
      "scale": scale.series,
      "traj": path.series,
      "rigid": rigid.series,
    },
    points=found.points,
    intermediates={
      "x_center": statistics.x_center,
      "truncated": statistics.truncated,
      **path.detail,
      **rigid.detail,
    },
  )


def examine(
  source: PointSource | None, constants: PdiConstants
) -> Reconstruction:
  """Medians of the points under the mask and the validity test (2.7)."""
  if source is None:
    return Reconstruction(None, False, False, False, False)
  frames = source.clip.num_frames
  masks = clips.masks_on_map(source.clip, slice(0, frames), constants)
  points = lifting.frame_points(source, masks)
  pixels = int(np.count_nonzero(masks[0]))
  nonzero = int(points.num_nonzero[0])
  fraction = nonzero / pixels if pixels else -1.0
  # Paper, section 2.8 [R]: non-finite points count as zero in the test.
  dropped = (pixels - int(points.count[0])) / pixels if pixels else 0.0
  limit = constants.min_valid_fraction
  return Reconstruction(
    points,
    fraction >= limit,
    fraction > limit,
    not np.any(points.num_nonzero),
    fraction <= limit < fraction + dropped,
  )


def object_depth(
  arrays: ClipArrays, points: FramePoints | None, constants: PdiConstants
) -> np.ndarray | None:
  """[T] normalised depth of the object (section 2.3); None: missing.

  A given series is used as it is. Released without a reconstruction: 1 (2.7).
  """
  frames = arrays.num_frames
  if arrays.object_depth is not None:
    return arrays.object_depth[:frames]
  if points is None or arrays.depth is None:
    if constants.failures_score:
      return np.full(frames, constants.fallback_depth)
    return None
  return clips.normalise_depth(depth_under_mask(arrays, points), constants)


def depth_under_mask(arrays: ClipArrays, points: FramePoints) -> np.ndarray:
  """[T] median depth under the mask; of the whole map where it is empty."""
  assert arrays.depth is not None
  series = np.array(points.depth)
  for t in np.flatnonzero(points.count == 0):
    whole = arrays.depth[t]
    known = whole[np.isfinite(whole)]
    series[t] = np.median(known) if known.size else np.nan
  return series


def lost_fraction(count: np.ndarray, constants: PdiConstants) -> float:
  """Share of frames whose mask is too small (section 3); NaN for none."""
  if len(count) == 0:
    return float("nan")
  return float(np.mean(count <= constants.min_mask_pixels))


def measure_scale(
  height: np.ndarray,
  depth: np.ndarray | None,
  count: np.ndarray,
  constants: PdiConstants,
  *,
  dtype: Dtype,
) -> Component:
  """Scale residual (section 3).

  Args:
    height: [T] pixel heights.
    depth: [T] object depth, or None.
    count: [T] mask pixels at video resolution.
    constants: variant.
    dtype: floating type of the computation.

  Returns:
    Series of length T - 1, [0] where the published code gives that.
  """
  frames = len(height)
  if depth is None:
    return Component(None, np.zeros(0), "scale: no object depth")
  if frames < 2 or len(depth) != frames:
    if constants.failures_score:  # section 3 [C]: degenerate scores 0
      return Component(0.0, np.zeros(1))
    return Component(None, np.zeros(0), "scale: fewer than two frames")
  valid = np.ones(frames, bool)
  if constants.drop_lost_frames:  # section 3 [R]
    valid = count > constants.min_mask_pixels
  result = _scale_stage(
    _pad(height.astype(dtype)),
    _pad(depth.astype(dtype)),
    _pad(valid),
    constants=constants,
  )
  series = np.asarray(result.error, np.float64)[1:frames]
  if constants.drop_lost_frames and (
    result.num_reference == 0 or result.num_frames == 0
  ):
    return Component(None, series, "scale: every usable mask is lost")
  value = float(result.rms)
  if not constants.failures_score and not np.isfinite(value):
    detail = {"scale_rms": np.asarray(value)}
    return Component(None, series, "scale: depth is not finite", None, detail)
  return Component(value, series)


def measure_trajectory(
  found: Reconstruction,
  frame_rate: float,
  frames: int,
  constants: PdiConstants,
  *,
  dtype: Dtype,
) -> Component:
  """Trajectory residual (section 4) of the medians under the mask."""
  points = found.points
  reason, length = "", 0
  if points is None:
    reason, length = "traj: no reconstruction", 1
  elif frames < 3:
    reason, length = "traj: fewer than three frames", max(1, frames - 1)
  elif not found.supports_trajectory:
    reason = "traj: mask 0 is empty or has no points"
    length = frames - 1
  if points is None or reason:
    if constants.failures_score:  # section 4.5 [C]: failures score 0
      return Component(0.0, np.zeros(length))
    return Component(None, np.zeros(0), reason)
  observed = points.count > constants.min_mask_pixels
  return score_path(points.median, observed, frame_rate, constants, dtype=dtype)


def score_path(
  median: np.ndarray,
  observed: np.ndarray,
  frame_rate: float,
  constants: PdiConstants,
  *,
  dtype: Dtype,
) -> Component:
  """Trajectory residual of a path of centroids (sections 4.1 to 4.5).

  Args:
    median: [T, 3] medians, T >= 3.
    observed: [T] bool, frames with enough points.
    frame_rate: frames per second, at least 1.
    constants: variant.
    dtype: floating type of the computation.

  Returns:
    Series of length T - 1 (released) or T - 2 (paper).
  """
  frames = len(observed)
  raw, filtered, result = _path_stage(
    _pad(median.astype(dtype)),
    _pad(observed),
    np.int32(frames),
    dtype(frame_rate),
    constants=constants,
  )
  series = np.asarray(result.error, np.float64)[: frames - 2]
  value = float(result.rms)
  if constants.repeat_first:
    # Released, section 4.5 [C]: the first value counts twice.
    series = np.concatenate([series[:1], series])
    value = index.reduce_series(series)
  detail = {
    "centroids_raw": np.asarray(raw, np.float64)[:frames],
    "centroids_filtered": np.asarray(filtered, np.float64)[:frames],
    "traj_magnitude": np.asarray(result.magnitude, np.float64)[: frames - 2],
    "traj_direction": np.asarray(result.direction, np.float64)[: frames - 2],
  }
  reference = float(result.reference_speed)
  if not constants.failures_score and not np.isfinite(value):
    reason = "traj: the path is not finite"
    return Component(None, series, reason, reference, detail)
  return Component(value, series, "", reference, detail)


@functools.partial(jax.jit, static_argnames="constants")
def _scale_stage(
  height: Array, depth: Array, valid: Array, *, constants: PdiConstants
) -> scale_depth.ScaleDepth:
  return scale_depth.scale_depth_residual(
    height,
    depth,
    valid,
    num_reference=constants.scale_reference_frames,
    floor=constants.scale_floor,
  )


@functools.partial(jax.jit, static_argnames="constants")
def _path_stage(
  median: Array,
  observed: Array,
  num_frames: Array,
  frame_rate: Array,
  *,
  constants: PdiConstants,
) -> tuple[Array, Array, trajectory.Kinematics]:
  raw = trajectory.carry_forward(median, observed)
  filtered = trajectory.median_filter3(raw, num_frames)
  result = trajectory.kinematic_residual(
    filtered,
    num_frames,
    frame_rate,
    speed_floor=constants.speed_floor,
    acceleration_weight=constants.acceleration_weight,
    tanh_scale=constants.tanh_scale,
    motion_threshold=constants.motion_threshold,
    norm_epsilon=constants.speed_epsilon,
  )
  return raw, filtered, result


SENTINEL_TEXT = {
  "lost_masks": "frames without a usable mask",
  "frame0_mask_empty": "the mask of frame 0 is empty",
  "path_starts_at_origin": "frame 0 has 1-10 mask points: the path starts at"
  " the world's origin",
  "reconstruction_unavailable": "no usable reconstruction",
  "reconstruction_not_finite": "too few finite points under mask 0",
  "clipped_tracks": "track positions outside the map",
  "too_few_anchors": "fewer than five anchors",
  "too_few_pairs": "fewer than three anchor pairs",
  "rigid_exactly_zero": "rigidity is exactly 0, which is suspicious",
  "not_finite": "a component is not finite",
}


def describe_sentinels(names: tuple[str, ...]) -> list[str]:
  """One line of text for each trap."""
  return [f"{name}: {SENTINEL_TEXT[name]}" for name in names]


def _sentinels(
  statistics: MaskStatistics,
  found: Reconstruction,
  rigid: rigidity.Rigidity,
  components: tuple[float | None, ...],
  constants: PdiConstants,
) -> tuple[str, ...]:
  """Names of the traps that the clip ran into, in the order of the table."""
  points = found.points
  few = points is not None and 0 < points.count[0] <= constants.min_mask_pixels
  met = {
    "lost_masks": bool(np.any(statistics.count <= constants.min_mask_pixels)),
    "frame0_mask_empty": statistics.count[0] == 0,
    "path_starts_at_origin": few and found.supports_trajectory,
    "reconstruction_unavailable": points is None or found.is_zero,
    "reconstruction_not_finite": found.is_nonfinite,
    "clipped_tracks": bool(rigid.outside_fraction),
    "too_few_anchors": rigid.sentinel == rigidity.TOO_FEW_ANCHORS,
    "too_few_pairs": rigid.sentinel == rigidity.TOO_FEW_PAIRS,
    "rigid_exactly_zero": rigid.strategy == 1 and rigid.value == 0.0,
    "not_finite": any(
      value is not None and not np.isfinite(value) for value in components
    ),
  }
  return tuple(name for name in SENTINEL_TEXT if met[name])


def _pad(array: np.ndarray) -> Any:
  """Pads the first axis with zeros to a bucket length."""
  size = clips.bucket(len(array), smallest=_SMALLEST)
  widths = [(0, size - len(array))] + [(0, 0)] * (array.ndim - 1)
  return np.pad(array, widths)
