# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Rigidity residual of a clip: which strategy applies, and its value (5)."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from kernels import rigidity as kernel
from protocols.pdi import anchors as anchoring
from protocols.pdi import clip as clips
from protocols.pdi import lifting
from protocols.pdi.anchors import Anchors
from protocols.pdi.clip import ClipArrays
from protocols.pdi.constants import PdiConstants
from protocols.pdi.lifting import Dtype, PointSource

_SMALLEST_FRAMES = 64
_SMALLEST_ANCHORS = 128

TOO_FEW_ANCHORS = "too_few_anchors"
TOO_FEW_PAIRS = "too_few_pairs"


@dataclasses.dataclass(frozen=True)
class Rigidity:
  """Rigidity of a clip.

  Attributes:
    strategy: 1 (3D pairs), 2 (3D height), 3 (2D pairs), 0 (none).
    value: E_rigid; None where it is missing (paper).
    series: [T] residuals; empty where nothing was measured.
    rigid_2d: value of strategy 3; None unless that strategy applied.
    sentinel: `TOO_FEW_ANCHORS`, `TOO_FEW_PAIRS` or empty.
    reason: why `value` is missing; empty if it is not.
    seed_values: E_rigid of every anchor seed that could be measured (8.5).
    n_anchors: anchors after the track filter.
    n_candidates: anchors that may form pairs; None unless strategy 1.
    n_pairs: pairs used; None unless pairs were formed.
    gradient_threshold: of strategy 1.
    outside_fraction: share of track positions outside the map.
    detail: arrays of strategy 1 for inspection, by name.
  """

  strategy: int
  value: float | None
  series: np.ndarray
  rigid_2d: float | None = None
  sentinel: str = ""
  reason: str = ""
  seed_values: tuple[float, ...] = ()
  n_anchors: int = 0
  n_candidates: int | None = None
  n_pairs: int | None = None
  gradient_threshold: float | None = None
  outside_fraction: float | None = None
  detail: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)


class _PairResult(NamedTuple):
  pairs: kernel.PairSelection
  series: kernel.RigiditySeries
  seed_mean: Any
  seed_pairs: Any
  seed_candidates: Any


def measure_rigidity(
  clip: ClipArrays,
  *,
  source: PointSource | None,
  heights: np.ndarray | None,
  constants: PdiConstants,
  dtype: Dtype,
  edge_mask: np.ndarray | None = None,
) -> Rigidity:
  """Dispatches to the first strategy that applies (section 5.1).

  Args:
    clip: aligned arrays.
    source: the reconstruction, or None where it is absent or fails the
      validity test of section 2.7.
    heights: [T] object heights for the conditions; None if unknown.
    constants: variant.
    dtype: floating type of the computation.
    edge_mask: [h, w] bool, the object at frame 0 for the edge distance; None
      takes the clip's mask.

  Returns:
    `Rigidity`.
  """
  anchors = anchoring.select_anchors(clip, constants)
  if source is not None and anchors is not None:
    if edge_mask is None:
      edge_mask = clips.masks_on_map(clip, slice(0, 1), constants)[0]
    return _spatial_pairs(clip, anchors, source, edge_mask, constants, dtype)
  if source is not None and _mean(heights) > constants.min_mean_height:
    return _spatial_heights(clip, source, constants)
  if anchors is not None and heights is not None:
    return _image_pairs(anchors, constants, dtype)
  reason = "no tracks and no reconstruction"
  value = 0.0 if constants.failures_score else None
  series = np.zeros(clip.num_frames)
  return Rigidity(0, value, series, reason="" if value == 0.0 else reason)


def _spatial_pairs(
  clip: ClipArrays,
  anchors: Anchors,
  source: PointSource,
  edge_mask: np.ndarray,
  constants: PdiConstants,
  dtype: Dtype,
) -> Rigidity:
  """Strategy 1 (section 5.2)."""
  located = anchoring.locate(clip, anchors, source, edge_mask, constants)
  frames, count = located.index.shape
  result = _run_pairs(source, located, constants, dtype)
  candidates = int(result.pairs.num_candidates)
  kept = int(result.pairs.num_pairs)
  sentinel = ""
  if candidates < constants.min_anchors:
    sentinel = TOO_FEW_ANCHORS
  elif kept < constants.min_pairs:
    sentinel = TOO_FEW_PAIRS
  series = np.asarray(result.series.error, np.float64)[:frames]
  value: float | None = float(result.series.mean)
  reason = ""
  seed_values: tuple[float, ...] = ()
  if constants.failures_score:
    # Released: the sentinel is the score, and one frame scores 0 (5.2).
    if sentinel:
      value = constants.rigidity_sentinel
      series = np.full(frames, constants.rigidity_sentinel)
  elif sentinel or frames < 2:
    # Paper, section 5.1 [R]: a sentinel is missing, and so is one frame.
    value, series = None, np.zeros(0)
    reason = f"rigidity: {sentinel or 'fewer than two frames'}"
  elif constants.anchor_seeds:
    seed_values = _usable_seeds(result, constants)
    value = float(np.mean(seed_values)) if seed_values else None
    reason = "" if seed_values else "rigidity: too few pairs for every seed"
  used = np.asarray(result.pairs.kept) & (sentinel == "")
  first = np.asarray(result.pairs.first, np.int64)[used]
  second = np.asarray(result.pairs.second, np.int64)[used]
  length = np.asarray(result.pairs.length, np.float64)[used]
  edge = located.edge_distance.astype(np.float64)
  detail = {
    "candidates": np.flatnonzero(result.pairs.candidate),
    "grad_at_anchor": located.gradient,
    "edge_dist_at_anchor": located.edge_distance,
    "pair_i": first,
    "pair_j": second,
    "pair_d0": length,
    "pair_score": length * np.minimum(edge[first], edge[second]),
  }
  return Rigidity(
    strategy=1,
    value=value,
    series=series,
    sentinel=sentinel,
    reason=reason,
    seed_values=seed_values,
    n_anchors=count,
    n_candidates=candidates,
    n_pairs=None if sentinel == TOO_FEW_ANCHORS else kept,
    gradient_threshold=float(result.pairs.gradient_threshold),
    outside_fraction=located.outside_fraction,
    detail=detail,
  )


def _usable_seeds(
  result: _PairResult, constants: PdiConstants
) -> tuple[float, ...]:
  """E_rigid of the anchor seeds with enough anchors and pairs (8.5 [R])."""
  usable = (np.asarray(result.seed_pairs) >= constants.min_pairs) & (
    np.asarray(result.seed_candidates) >= constants.min_anchors
  )
  return tuple(np.asarray(result.seed_mean, np.float64)[usable].tolist())


def _spatial_heights(
  clip: ClipArrays, source: PointSource, constants: PdiConstants
) -> Rigidity:
  """Strategy 2 (section 5.3)."""
  frames = clip.num_frames
  masks = clips.masks_on_map(clip, slice(0, frames), constants)
  extents = lifting.frame_extents(source, masks)
  spread = kernel.relative_spread(jnp.asarray(extents), jnp.ones(frames, bool))
  return Rigidity(2, float(spread.value), np.asarray(extents, np.float64))


def _image_pairs(
  anchors: Anchors, constants: PdiConstants, dtype: Dtype
) -> Rigidity:
  """Strategy 3 (section 5.4)."""
  frames, count = anchors.tracks.shape[:2]
  pairs = anchoring.random_pairs(
    count, limit=constants.num_pairs, seed=constants.pair_seed
  )
  released = constants.failures_score
  if count < 2 or frames < 2:
    reason = "rigidity: no reconstruction; too few tracks or frames for 2D"
    value = 0.0 if released else None
    return Rigidity(
      3,
      value,
      np.zeros(frames),
      rigid_2d=value,
      reason="" if released else reason,
      n_anchors=count,
    )
  padded = np.zeros((constants.num_pairs, 2), np.int32)
  padded[: len(pairs)] = pairs
  tracks = _pad_anchors(_pad_frames(anchors.tracks.astype(dtype)), axis=1)
  result = _image_stage(
    tracks,
    padded,
    np.arange(constants.num_pairs) < len(pairs),
    np.int32(frames),
    epsilon=constants.ratio_epsilon,
  )
  series = np.array(result.error, np.float64)[:frames]
  value_2d = float(result.mean)
  if constants.first_ratio_is_one:
    # Released, section 5.4 [C]: a score of 1 at frame 0 enters the mean.
    series[0] = 1.0
    value_2d = float(series.mean())
  return Rigidity(
    strategy=3,
    value=value_2d if released else None,
    series=series,
    rigid_2d=value_2d,
    reason="" if released else "rigidity: no reconstruction (2D reported)",
    n_anchors=count,
    detail={"pairs_2d": pairs},
  )


def _run_pairs(
  source: PointSource,
  located: anchoring.MapAnchors,
  constants: PdiConstants,
  dtype: Dtype,
) -> _PairResult:
  """Pads, lifts and measures the anchors in one compiled call."""
  frames, count = located.index.shape
  index = _pad_anchors(_pad_frames(located.index), axis=1)
  padded_frames, padded_count = index.shape
  times = [min(t, frames - 1) for t in range(padded_frames)]
  samples = source.samples(times, list(index), padded_count)
  # Without background every distance is the largest float: pairs then rank by
  # length alone (5.2 step 2), and the product must not overflow.
  weight = located.edge_distance.astype(dtype)
  if np.all(weight == np.finfo(np.float32).max):
    weight = np.ones_like(weight)
  subsets = anchoring.random_subsets(count, constants)
  return _pair_stage(
    samples,
    source.views(times),
    _pad_anchors(located.gradient.astype(dtype), axis=0),
    _pad_anchors(weight, axis=0),
    _pad_anchors(_pad_frames(located.visible), axis=1),
    _pad_anchors(subsets, axis=1),
    np.int32(frames),
    constants=constants,
  )


@functools.partial(jax.jit, static_argnames="constants")
def _pair_stage(
  samples: lifting.DepthSamples | lifting.PointSamples,
  views: lifting.Views,
  gradient: Array,
  weight: Array,
  visible: Array,
  subsets: Array,
  num_frames: Array,
  *,
  constants: PdiConstants,
) -> _PairResult:
  """Selection and series for all anchors and for every anchor seed."""
  lift = jax.vmap(lifting.lift, in_axes=(0, 0, 0, None))
  points = lift(samples, views.c2w, views.intrinsics, views.width)
  points = points.astype(gradient.dtype)
  if constants.drop_nonfinite:  # section 2.8 [R]: invisible at that frame
    finite = jnp.all(jnp.isfinite(points), axis=-1)
    visible &= finite
    points = jnp.where(finite[..., None], points, 0)

  def run(
    subset: Array,
  ) -> tuple[kernel.PairSelection, kernel.RigiditySeries]:
    pairs = kernel.select_pairs(
      points[0],
      gradient,
      weight,
      visible[0] & subset,
      num_pairs=constants.num_pairs,
      gradient_quantile=constants.gradient_quantile,
      min_anchors=constants.min_anchors,
      min_length=constants.min_pair_length,
    )
    return pairs, kernel.pair_ratio_series(
      points,
      visible,
      pairs,
      num_frames,
      min_pairs=constants.min_pairs,
      epsilon=constants.ratio_epsilon,
    )

  pairs, series = run(jnp.ones_like(visible[0]))
  seed_pairs, seed_series = jax.vmap(run)(subsets)
  return _PairResult(
    pairs,
    series,
    seed_series.mean,
    seed_pairs.num_pairs,
    seed_pairs.num_candidates,
  )


@functools.partial(jax.jit, static_argnames="epsilon")
def _image_stage(
  tracks: Array,
  pairs: Array,
  kept: Array,
  num_frames: Array,
  *,
  epsilon: float,
) -> kernel.RigiditySeries:
  return kernel.image_ratio_series(
    tracks, pairs[:, 0], pairs[:, 1], kept, num_frames, epsilon=epsilon
  )


def _pad_frames(array: np.ndarray) -> np.ndarray:
  """Pads axis 0 with zeros to a bucket length."""
  return _pad(array, 0, _SMALLEST_FRAMES)


def _pad_anchors(array: np.ndarray, *, axis: int) -> np.ndarray:
  """Pads the anchor axis with zeros to a bucket length."""
  return _pad(array, axis, _SMALLEST_ANCHORS)


def _pad(array: np.ndarray, axis: int, smallest: int) -> np.ndarray:
  widths = [(0, 0)] * array.ndim
  length = array.shape[axis]
  widths[axis] = (0, clips.bucket(length, smallest=smallest) - length)
  return np.pad(array, widths)


def _mean(values: np.ndarray | None) -> float:
  return float(np.mean(values)) if values is not None and len(values) else 0.0
