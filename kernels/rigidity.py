# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Rigidity of tracked points: distance ratios that should not spread.

Conventions: `visible` is boolean per frame and anchor; frame 0 is the
reference. Uniform scaling and rigid motion of the points give 0. Series have a
padded length T and a traced number of frames. Lower is better.
"""

from __future__ import annotations

from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
from jax import Array

from kernels import numerics


class PairSelection(NamedTuple):
  """Anchor pairs chosen on frame 0, best score first.

  Attributes:
    first: [k] int32 lower anchor index of each pair.
    second: [k] int32 higher anchor index.
    length: [k] distance at frame 0.
    score: [k] length times the smaller edge distance.
    kept: [k] bool; the pair exists and is longer than the minimum.
    candidate: [N] bool, anchors that may form pairs.
    gradient_threshold: scalar.
    num_candidates: int32.
    num_pairs: int32, pairs kept.
  """

  first: Array
  second: Array
  length: Array
  score: Array
  kept: Array
  candidate: Array
  gradient_threshold: Array
  num_candidates: Array
  num_pairs: Array


class RigiditySeries(NamedTuple):
  """Spread of distance ratios per frame.

  Attributes:
    error: [T]; 0 at frame 0 and in the padding.
    mean: mean over frames 1 .. num_frames - 1.
    num_frames: int32, frames behind `mean`.
    num_measured: int32, frames with enough visible pairs of their own; the
      others repeat their predecessor.
  """

  error: Array
  mean: Array
  num_frames: Array
  num_measured: Array


def select_pairs(
  points: Array,
  gradient: Array,
  edge_distance: Array,
  visible: Array,
  *,
  num_pairs: int,
  gradient_quantile: float,
  min_anchors: int,
  min_length: float,
) -> PairSelection:
  """Long pairs of anchors that lie deep inside the object on smooth depth.

  Candidates are the visible anchors whose depth gradient lies strictly below
  the quantile over the visible ones; all visible ones if that leaves fewer
  than `min_anchors` (no threshold applies to fewer than `min_anchors`).
  Pairs are ranked by |q_i - q_j| min(D_i, D_j); of equal scores the later pair
  (i, j) comes first, as in a stable ascending sort read backwards.

  Args:
    points: [N, 3] anchors at frame 0.
    gradient: [N] depth gradient magnitude at the anchors.
    edge_distance: [N] distance to the object's boundary, pixels.
    visible: [N] bool at frame 0; padding is invisible.
    num_pairs: pairs to keep at most, static.
    gradient_quantile: quantile of the gradient, in [0, 1].
    min_anchors: see above.
    min_length: pairs not longer than this are dropped after the ranking.

  Returns:
    `PairSelection`. Pairs with a NaN score rank first and are then dropped by
    the length test, which a NaN fails.

  Source: PDI-Bench, rigidity strategy 1 (specification section 5.2).
  """
  chex.assert_rank([points, gradient, edge_distance, visible], [2, 1, 1, 1])
  chex.assert_type([points, gradient, edge_distance], float)
  chex.assert_type(visible, bool)
  chex.assert_equal_shape([gradient, edge_distance, visible])
  anchors = points.shape[0]
  quantile = numerics.masked_quantile(gradient, visible, q=gradient_quantile)
  threshold = jnp.where(quantile.count >= min_anchors, quantile.value, jnp.inf)
  smooth = visible & (gradient < threshold)
  enough = jnp.sum(smooth) >= min_anchors
  candidate = jnp.where(enough, smooth, visible)

  index = jnp.arange(anchors)
  offset = points[:, None, :] - points[None, :, :]
  length = numerics.safe_norm(offset, axis=-1)
  depth = jnp.minimum(edge_distance[:, None], edge_distance[None, :])
  score = length * depth
  exists = candidate[:, None] & candidate[None, :]
  exists &= index[:, None] < index[None, :]
  rank_by = jnp.where(jnp.isnan(score), jnp.inf, score)
  rank_by = jnp.where(exists, rank_by, -jnp.inf).ravel()
  size = min(num_pairs, anchors * anchors)
  # top_k takes the lower index first; the reversed list turns that round.
  _, reverse = jax.lax.top_k(jax.lax.stop_gradient(rank_by[::-1]), size)
  chosen = anchors * anchors - 1 - reverse
  first = (chosen // anchors).astype(jnp.int32)
  second = (chosen % anchors).astype(jnp.int32)
  pair_length = length[first, second]
  kept = exists[first, second] & (pair_length > min_length)
  return PairSelection(
    first,
    second,
    pair_length,
    score[first, second],
    kept,
    candidate,
    threshold,
    jnp.sum(candidate, dtype=jnp.int32),
    jnp.sum(kept, dtype=jnp.int32),
  )


def pair_ratio_series(
  points: Array,
  visible: Array,
  pairs: PairSelection,
  num_frames: Array,
  *,
  min_pairs: int,
  epsilon: float,
) -> RigiditySeries:
  """MAD over median of the pairs' length ratios to frame 0.

  r_ij = |q_t^i - q_t^j| / |q_0^i - q_0^j| over the pairs visible at t,
  e_t = MAD(r) / (median(r) + epsilon); fewer than `min_pairs`: e_t = e_(t-1).

  Args:
    points: [T, N, 3] lifted anchors.
    visible: [T, N] bool.
    pairs: the selection on frame 0.
    num_frames: int32 scalar, frames in use.
    min_pairs: smallest number of pairs for a measurement.
    epsilon: added to the median.

  Returns:
    `RigiditySeries`. A NaN point in a visible pair makes its frame NaN.

  Source: PDI-Bench, rigidity strategy 1 (specification section 5.2).
  """
  chex.assert_rank([points, visible], [3, 2])
  chex.assert_type([points, visible], [float, bool])
  kept_length = jnp.where(pairs.kept, pairs.length, 1)
  seen = pairs.kept & visible[:, pairs.first] & visible[:, pairs.second]
  offset = points[:, pairs.first] - points[:, pairs.second]
  offset = jnp.where(seen[..., None], offset, 0)
  ratio = numerics.safe_norm(offset, axis=-1) / kept_length
  spread, middle = jax.vmap(_mad_and_median)(ratio, seen)
  score = spread / (middle.value + epsilon)
  index = jnp.arange(points.shape[0])
  counted = (index >= 1) & (index < num_frames)
  measured = counted & (middle.count >= min_pairs)
  filled = _hold(score, measured)
  error = jnp.where(counted, filled, 0)
  mean = numerics.masked_mean(error, counted)
  return RigiditySeries(
    error, mean.value, mean.count, jnp.sum(measured, dtype=jnp.int32)
  )


def image_ratio_series(
  tracks: Array,
  first: Array,
  second: Array,
  kept: Array,
  num_frames: Array,
  *,
  epsilon: float,
) -> RigiditySeries:
  """Standard deviation over mean of image-distance ratios (2D fallback).

  d_0 = |p_0^i - p_0^j| + epsilon, r = d_t / d_0,
  e_t = std(r) / (mean(r) + epsilon) for t >= 1, population form.

  Args:
    tracks: [T, N, 2] pixels; visibility is not used.
    first: [k] int32 anchor index.
    second: [k] int32 anchor index.
    kept: [k] bool, False for padding.
    num_frames: int32 scalar, frames in use.
    epsilon: see above.

  Returns:
    `RigiditySeries`; measures perspective and turning too, not rigidity alone.

  Source: PDI-Bench, rigidity strategy 3 (specification section 5.4).
  """
  chex.assert_rank([tracks, first, second, kept], [3, 1, 1, 1])
  chex.assert_type([tracks, kept], [float, bool])
  distance = numerics.safe_norm(tracks[:, first] - tracks[:, second], axis=-1)
  ratio = distance / (distance[0] + epsilon)

  def spread(row: Array) -> Array:
    mean = numerics.masked_mean(row, kept).value
    return numerics.masked_std(row, kept).value / (mean + epsilon)

  index = jnp.arange(tracks.shape[0])
  counted = (index >= 1) & (index < num_frames)
  error = jnp.where(counted, jax.vmap(spread)(ratio), 0)
  mean = numerics.masked_mean(error, counted)
  return RigiditySeries(error, mean.value, mean.count, mean.count)


def extent_between(
  values: Array, valid: Array, *, low: float, high: float
) -> numerics.Stat:
  """Distance between two quantiles of the valid values of a [N] array.

  Source: PDI-Bench, rigidity strategy 2 (specification section 5.3).
  """
  upper = numerics.masked_quantile(values, valid, q=high)
  lower = numerics.masked_quantile(values, valid, q=low)
  return numerics.Stat(upper.value - lower.value, upper.count)


def relative_spread(values: Array, valid: Array) -> numerics.Stat:
  """Population standard deviation over mean; 0 where the mean is 0."""
  mean = numerics.masked_mean(values, valid)
  deviation = numerics.masked_std(values, valid).value
  return numerics.Stat(
    numerics.safe_divide(deviation, mean.value, fill=0.0), mean.count
  )


def _mad_and_median(values: Array, valid: Array) -> tuple[Array, numerics.Stat]:
  middle = numerics.masked_median(values, valid)
  deviation = jnp.abs(jnp.where(valid, values - middle.value, 0))
  return numerics.masked_median(deviation, valid).value, middle


def _hold(series: Array, measured: Array) -> Array:
  """Last measured value of a [T] series; 0 before the first."""
  index = jnp.arange(series.shape[0], dtype=jnp.int32)
  last = jax.lax.cummax(jnp.where(measured, index, -1))
  return jnp.where(last >= 0, series[jnp.maximum(last, 0)], 0)
