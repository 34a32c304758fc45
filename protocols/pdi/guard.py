# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Fidelity guard: can a clip's reconstruction be trusted (section 7)?

Three checks by arithmetic: the ground is flat, the object's depth does not
jump, and (paper) one frame's points reproduce another frame. The audits by a
vision-language model are run elsewhere; their fields here stay "not run".
"""

from __future__ import annotations

import dataclasses
import functools

import cv2
import jax
import numpy as np
from jax import Array

from kernels import ground_plane, reprojection, scale_depth
from protocols.pdi import clip as clips
from protocols.pdi.clip import ClipArrays
from protocols.pdi.constants import PdiConstants
from protocols.pdi.lifting import Dtype, PointSource
from protocols.pdi.measure import PdiMeasurement

NOT_RUN = "not run"
_SMALLEST = 64


@dataclasses.dataclass(frozen=True)
class GroundCheck:
  """Flatness of the lower part of the picture (section 7.4).

  Attributes:
    rmse: root mean square distance from the plane, reconstruction units; NaN
      where points are not finite (released).
    relative_rmse: `rmse` over the median depth of the same pixels, which does
      not change with the reconstruction's scale; None without depth.
    num_points: points before the random choice; 0: the check says nothing.
    passed: whether `rmse` is below the bound.
  """

  rmse: float
  relative_rmse: float | None
  num_points: int
  passed: bool


@dataclasses.dataclass(frozen=True)
class ReprojectionCheck:
  """Agreement of frames with other frames' points (section 7.3).

  Attributes:
    pairs: frame pairs (A, B).
    coverage: median share of allowed pixels that were filled.
    mae: median mean absolute colour error, in [0, 1].
    l2: median root mean square colour error, in [0, 1].
    passed: whether the medians satisfy the three bounds.
  """

  pairs: tuple[tuple[int, int], ...]
  coverage: float
  mae: float
  l2: float
  passed: bool


@dataclasses.dataclass(frozen=True)
class GuardResult:
  """Verdicts on a clip's reconstruction.

  Attributes:
    ground: None if the guard did not run.
    scale_jump: largest second difference of the scaled depth; None likewise.
    scale_jump_pass: None likewise.
    reprojection: None if it did not run.
    reprojection_reason: why it did not; empty if it did.
    math_pass: all checks that ran passed; None if none ran.
    reason: why the guard did not run; empty if it did.
    mask_audit: verdict of the vision-language model on the masks (7.1).
    track_audit: the same on the tracks (7.2).
    render_audit: the same on rendered views (7.6).
  """

  ground: GroundCheck | None
  scale_jump: float | None
  scale_jump_pass: bool | None
  reprojection: ReprojectionCheck | None
  reprojection_reason: str
  math_pass: bool | None
  reason: str = ""
  mask_audit: str = NOT_RUN
  track_audit: str = NOT_RUN
  render_audit: str = NOT_RUN


def audit_clip(
  arrays: ClipArrays,
  measurement: PdiMeasurement,
  constants: PdiConstants,
  *,
  images: np.ndarray | None,
  dtype: Dtype,
) -> GuardResult:
  """Runs the arithmetic checks.

  Args:
    arrays: the clip.
    measurement: its result of `measure_clip` with the same constants.
    constants: variant.
    images: [T, H, W, 3] uint8 RGB frames for the reprojection check, or None.
    dtype: floating type of the computation.

  Returns:
    `GuardResult`; `math_pass` None without a reconstruction or with one that
    is zero everywhere under the masks.
  """
  points = measurement.points
  if points is None or not np.any(points.num_nonzero):
    reason = "no reconstruction, or zero points only"
    return GuardResult(None, None, None, None, reason, None, reason)
  source = PointSource(arrays, constants, dtype)
  with jax.enable_x64(dtype is np.float64):
    ground = check_ground(source, constants)
    jump = scale_jump(np.asarray(points.median[:, 2]), constants, dtype=dtype)
    drawn, why = None, "not part of the released code"
    if constants.check_reprojection:
      drawn, why = check_reprojection(source, images, constants)
  jump_passed = bool(jump < constants.max_scale_jump)
  verdicts = [ground.passed]
  # Section 12, row 12: the paper's check has no scale jump, whose verdict is
  # noise for an object of almost constant depth (7.5). It is reported.
  if constants.scale_jump_counts:
    verdicts.append(jump_passed)
  if drawn is not None:
    verdicts.append(drawn.passed)
  return GuardResult(
    ground=ground,
    scale_jump=jump,
    scale_jump_pass=jump_passed,
    reprojection=drawn,
    reprojection_reason=why,
    math_pass=all(verdicts),
  )


def check_ground(source: PointSource, constants: PdiConstants) -> GroundCheck:
  """Plane through the lower part of three frames, object left out (7.4)."""
  clip = source.clip
  size = clip.map_size
  assert size is not None
  frames = clip.num_frames
  first_row = int(size[0] * constants.ground_first_row)
  chosen = [0, frames // 2, frames - 1]  # short clips repeat frames
  masks = clips.masks_on_map(clip, np.array(chosen), constants)
  rows, columns = slice(first_row, size[0]), slice(0, size[1])
  parts: list[np.ndarray] = []
  depths: list[np.ndarray] = []
  for t, mask in zip(chosen, masks[:, first_row:], strict=True):
    region = source.window(t, rows, columns)
    keep = np.any(region != 0, axis=-1) & ~mask
    if constants.drop_nonfinite:  # section 2.8 [R]
      keep &= np.all(np.isfinite(region), axis=-1)
    if np.count_nonzero(keep) > constants.ground_min_points:
      parts.append(region[keep])
      if clip.pointmaps is None and clip.depth is not None:
        depths.append(clip.depth[t, rows, columns][keep])
  points = np.concatenate(parts) if parts else np.zeros((0, 3), np.float32)
  rmse = plane_rmse(points, constants, dtype=source.dtype)
  known = np.concatenate(depths) if depths else np.zeros(0)
  relative = float(rmse / np.median(known)) if known.size else None
  passed = rmse < constants.ground_max_rms
  return GroundCheck(rmse, relative, len(points), passed)


def plane_rmse(
  points: np.ndarray, constants: PdiConstants, *, dtype: Dtype
) -> float:
  """RMSE of [N, 3] points from their plane, after the random choice (7.4).

  NaN for non-finite points: the released decomposition fails on them (2.8).
  """
  limit = constants.ground_max_points
  if not np.all(np.isfinite(points)):
    return float("nan")
  if len(points) > limit:
    points = points[ground_subset(len(points), constants)]
  if len(points) < 3:
    return 0.0
  # Section 0 [C]: the release sums the centroid in the map's float32, which
  # shifts the plane by more than its RMSE when the ground is exactly flat.
  exact = points if constants.storage_types else points.astype(np.float64)
  padded = np.zeros((limit, 3), dtype)
  padded[: len(points)] = points
  valid = np.arange(limit) < len(points)
  return float(_plane_stage(exact.mean(axis=0).astype(dtype), padded, valid))


def ground_subset(count: int, constants: PdiConstants) -> np.ndarray:
  """Indices of the points drawn from `count` (section 7.4)."""
  generator = np.random.default_rng(constants.ground_seed)
  return generator.choice(count, constants.ground_max_points, replace=False)


def scale_jump(
  median_z: np.ndarray, constants: PdiConstants, *, dtype: Dtype
) -> float:
  """Scale jump (section 7.5) of [T] medians of world Z, 0 where empty."""
  size = clips.bucket(len(median_z), smallest=_SMALLEST)
  padded = np.zeros(size, dtype)
  padded[: len(median_z)] = median_z
  return float(
    _jump_stage(padded, np.int32(len(median_z)), epsilon=constants.jump_epsilon)
  )


def frame_pairs(
  frames: int, constants: PdiConstants
) -> tuple[tuple[int, int], ...]:
  """Pairs (A, B) of the reprojection check, without repeats (7.3 [R])."""
  pairs = []
  for first in (0, frames // 2):
    for step in constants.reprojection_steps:
      second = min(first + round(frames / step), frames - 1)
      if second != first and (first, second) not in pairs:
        pairs.append((first, second))
  return tuple(pairs)


def check_reprojection(
  source: PointSource, images: np.ndarray | None, constants: PdiConstants
) -> tuple[ReprojectionCheck | None, str]:
  """Cross-frame reprojection (7.3 [R]): (result, reason if there is none)."""
  clip = source.clip
  pairs = frame_pairs(clip.num_frames, constants)
  if images is None or len(images) < clip.num_frames:
    return None, "no pictures for every frame"
  if clip.c2w is None or clip.intrinsics is None:
    return None, "point maps without cameras"
  if not pairs:
    return None, "one frame"
  found = [_reproject(source, images, a, b, constants) for a, b in pairs]
  coverage, mae, l2 = (float(m) for m in np.median(found, axis=0))
  passed = (
    coverage >= constants.min_coverage
    and mae <= constants.max_mae
    and l2 <= constants.max_l2
  )
  return ReprojectionCheck(pairs, coverage, mae, l2, passed), ""


def picture_on_map(clip: ClipArrays, image: np.ndarray) -> np.ndarray:
  """[h, w, 3] float in [0, 1]: a frame resized and cropped like the map."""
  size = clip.map_size
  assert size is not None
  width, height = clip.resized_size or (size[1], size[0])
  small = cv2.resize(image, (width, height), interpolation=cv2.INTER_AREA)
  return small[: size[0], : size[1]] / np.float64(255)


def _reproject(
  source: PointSource,
  images: np.ndarray,
  first: int,
  second: int,
  constants: PdiConstants,
) -> tuple[float, float, float]:
  clip = source.clip
  size = clip.map_size
  assert size is not None
  assert clip.c2w is not None
  points = source.window(first, slice(0, size[0]), slice(0, size[1]))
  usable = np.all(np.isfinite(points), axis=-1) & np.any(points != 0, axis=-1)
  mask_a, mask_b = clips.masks_on_map(
    clip, np.array([first, second]), constants
  )
  result = _reprojection_stage(
    np.nan_to_num(points).reshape(-1, 3).astype(source.dtype),
    picture_on_map(clip, images[first]).reshape(-1, 3).astype(source.dtype),
    (usable & ~mask_a).reshape(-1),
    picture_on_map(clip, images[second]).astype(source.dtype),
    ~mask_b,
    clip.c2w[second].astype(source.dtype),
    source.intrinsics(second).astype(source.dtype),
    min_depth=constants.reprojection_min_depth,
    radius=constants.reprojection_radius,
  )
  if not int(result.num_compared):
    return 0.0, 1.0, 1.0
  return float(result.coverage), float(result.mae), float(result.l2)


_reprojection_stage = functools.partial(
  jax.jit, static_argnames=("min_depth", "radius")
)(reprojection.reprojection_error)


@jax.jit
def _plane_stage(centroid: Array, points: Array, valid: Array) -> Array:
  return ground_plane.plane_through(centroid, points, valid).rms


@functools.partial(jax.jit, static_argnames="epsilon")
def _jump_stage(median_z: Array, num_frames: Array, *, epsilon: float) -> Array:
  return scale_depth.scale_jump(median_z, num_frames, epsilon=epsilon)
