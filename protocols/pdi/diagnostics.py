# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Diagnostics of section 9, never part of the index.

Lines come from tracks and from line segments of frame 0; the vanishing points
of object and scene give the coupling that reports call the VP component.
"""

from __future__ import annotations

import dataclasses
import functools

import cv2
import jax
import numpy as np
from jax import Array

from kernels import homogeneity, vanishing_point
from protocols.pdi import clip as clips
from protocols.pdi.constants import PdiConstants
from protocols.pdi.lifting import Dtype

_SMALLEST = 32


@dataclasses.dataclass(frozen=True)
class Diagnostics:
  """Vanishing points of a clip.

  Attributes:
    foreground_vp: [2] pixels, of the object's track lines.
    background_vp: [2] pixels, of background track and scene lines.
    global_vp: [2] pixels, of all lines.
    coupling: e_vp in [0, 1]; 0 where undefined.
    num_foreground: object lines; fewer than 2 give the image centre.
    num_background: scene lines.
  """

  foreground_vp: np.ndarray
  background_vp: np.ndarray
  global_vp: np.ndarray
  coupling: float
  num_foreground: int
  num_background: int


def diagnose(
  tracks: np.ndarray,
  background_tracks: np.ndarray,
  gray: np.ndarray | None,
  mask: np.ndarray | None,
  *,
  image_size: tuple[int, int],
  constants: PdiConstants,
  dtype: Dtype,
) -> Diagnostics:
  """Vanishing points and their coupling.

  Args:
    tracks: [T, N, 2] tracks of the object, video pixels.
    background_tracks: [T, M, 2] tracks of the scene.
    gray: [H, W] uint8 frame 0 for line segments, or None.
    mask: [H, W] bool object in frame 0, or None.
    image_size: (H, W).
    constants: variant.
    dtype: floating type of the computation.

  Returns:
    `Diagnostics`.
  """
  own = track_lines(tracks, constants, lowest_only=True, dtype=dtype)
  scene = [
    track_lines(background_tracks, constants, lowest_only=False, dtype=dtype)
  ]
  if gray is not None and mask is not None:
    scene.append(scene_lines(gray, mask, constants, dtype=dtype))
  other = np.concatenate(scene)
  centre = np.array([image_size[1] / 2, image_size[0] / 2])
  points = []
  for lines in (own, other, np.concatenate([own, other])):
    found = intersect(lines, constants)
    points.append(centre if found is None else found)
  return Diagnostics(
    points[0],
    points[1],
    points[2],
    coupling(points[0], points[1], centre, constants, dtype=dtype),
    len(own),
    len(other),
  )


def track_lines(
  tracks: np.ndarray,
  constants: PdiConstants,
  *,
  lowest_only: bool,
  dtype: Dtype,
) -> np.ndarray:
  """[L, 3] lines of moving tracks (section 9.2).

  Args:
    tracks: [T, N, 2].
    constants: thresholds.
    lowest_only: keep the tracks whose mean y reaches the 60th percentile, if
      at least four of them move.
    dtype: type of the result.
  """
  frames, count = tracks.shape[:2]
  if frames == 0 or count == 0:
    return np.zeros((0, 3), dtype)
  ends = max(1, frames // constants.line_end_fraction)
  positions = tracks.astype(dtype)
  start, end = positions[:ends].mean(axis=0), positions[-ends:].mean(axis=0)
  moving = np.linalg.norm(end - start, axis=-1) >= constants.min_line_motion
  if lowest_only:
    mean_y = positions[..., 1].mean(axis=0)
    low = mean_y >= np.quantile(mean_y, constants.low_track_quantile)
    if np.count_nonzero(moving & low) >= constants.min_low_tracks:
      moving &= low
  return _lines(start[moving], end[moving], constants)


def scene_lines(
  gray: np.ndarray, mask: np.ndarray, constants: PdiConstants, *, dtype: Dtype
) -> np.ndarray:
  """[L, 3] lines of segments of a frame, the object blackened (9.2 [C]).

  Segments near the horizontal are dropped, near-vertical ones stay.
  """
  picture = np.where(mask, np.uint8(0), gray)
  segments = cv2.createLineSegmentDetector(0).detect(picture)[0]
  if segments is None:
    return np.zeros((0, 3), dtype)
  ends: np.ndarray = segments.reshape(-1, 2, 2).astype(dtype)
  step = ends[:, 1] - ends[:, 0]
  angle = np.abs(np.degrees(np.arctan2(step[:, 1], step[:, 0]))) % 180
  low, high = constants.horizontal_band
  keep = (
    (np.linalg.norm(step, axis=-1) >= constants.min_scene_line)
    & (angle >= low)
    & (angle <= high)
  )
  return _lines(ends[keep, 0], ends[keep, 1], constants)


def intersect(lines: np.ndarray, constants: PdiConstants) -> np.ndarray | None:
  """[2] vanishing point of [L, 3] lines; None if there is none (9.2)."""
  count = len(lines)
  if count < 2:
    return None
  pairs = _hypotheses(
    count,
    number=constants.vanishing_hypotheses,
    seed=constants.vanishing_seed,
  )
  size = clips.bucket(count, smallest=_SMALLEST)
  padded = np.zeros((size, 3), lines.dtype)
  padded[:count] = lines
  with jax.enable_x64(lines.dtype == np.float64):
    found = _intersect_stage(
      padded, np.arange(size) < count, pairs, constants=constants
    )
  return np.asarray(found.xy) if int(found.num_inliers) >= 2 else None


def coupling(
  foreground: np.ndarray,
  background: np.ndarray,
  centre: np.ndarray,
  constants: PdiConstants,
  *,
  dtype: Dtype,
) -> float:
  """e_vp of two vanishing points (section 9.3)."""
  with jax.enable_x64(dtype is np.float64):
    value = homogeneity.direction_coupling(
      *(jax.numpy.asarray(p, dtype) for p in (foreground, background, centre)),
      min_offset=constants.min_coupling_offset,
    )
  return float(value)


def _lines(
  start: np.ndarray, end: np.ndarray, constants: PdiConstants
) -> np.ndarray:
  with jax.enable_x64(start.dtype == np.float64):
    lines = vanishing_point.lines_through(
      jax.numpy.asarray(start),
      jax.numpy.asarray(end),
      epsilon=constants.line_epsilon,
    )
  return np.asarray(lines)


@functools.lru_cache(maxsize=256)
def _hypotheses(count: int, *, number: int, seed: int) -> np.ndarray:
  """[M, 2] int32 random line pairs."""
  generator = np.random.default_rng(seed)
  pairs = [generator.choice(count, 2, replace=False) for _ in range(number)]
  return np.array(pairs, np.int32)


@functools.partial(jax.jit, static_argnames="constants")
def _intersect_stage(
  lines: Array, valid: Array, pairs: Array, *, constants: PdiConstants
) -> vanishing_point.VanishingPoint:
  return vanishing_point.intersect_lines(
    lines,
    valid,
    pairs[:, 0],
    pairs[:, 1],
    tolerance=constants.vanishing_tolerance,
    divide_by_norm=constants.vanishing_divides_by_norm,
    min_w=constants.vanishing_min_w,
    epsilon=constants.line_epsilon,
  )
