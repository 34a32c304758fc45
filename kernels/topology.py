# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Relative arrangement of objects: planar offsets and depth order of pairs.

Conventions: one step with up to `n` target objects in padded arrays; boxes are
[x1, y1, x2, y2] in pixels of one image size; depths are positive, in any unit
(only their order counts); 0 <= score <= 1, higher is better. A pair counts
once (a < b). Padding rows have `present` false and change nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from kernels import numerics


class Topology(NamedTuple):
  """Topology of one step.

  Attributes:
    score: mean pair score over all target pairs; 0 without a pair.
    planar: mean planar score over all target pairs.
    planar_matched: mean planar score over pairs with both ends matched.
    depth: share of eligible pairs with the right depth order.
    pairs: number of target pairs.
    matched_pairs: pairs with both ends matched.
    eligible_pairs: pairs whose target depths are known and not tied.
    matched_eligible_pairs: eligible pairs with both ends matched.
    valid_pairs: of those, pairs whose generated depths are known.
    correct_pairs: of those, pairs in the right order.
    predicted_ties: of the valid pairs, those tied in the generated image.
    coincident_pairs: pairs with both ends matched (or all pairs, see
      `coincident_needs_match`) whose target centres coincide: the planar
      score has no meaning and the step must be refused.
  """

  score: jax.Array
  planar: jax.Array
  planar_matched: jax.Array
  depth: jax.Array
  pairs: jax.Array
  matched_pairs: jax.Array
  eligible_pairs: jax.Array
  matched_eligible_pairs: jax.Array
  valid_pairs: jax.Array
  correct_pairs: jax.Array
  predicted_ties: jax.Array
  coincident_pairs: jax.Array


def box_centers(boxes: jax.Array) -> jax.Array:
  """Centres of [..., 4] boxes as [..., 2], pixels."""
  return (boxes[..., :2] + boxes[..., 2:]) / 2.0


def pair_topology(
  boxes_target: jax.Array,
  boxes_generated: jax.Array,
  depth_target: jax.Array,
  depth_generated: jax.Array,
  present: jax.Array,
  matched: jax.Array,
  *,
  tie_ratio: float,
  min_offset: float,
  ratio_floor: float,
  floor_is_added: bool,
  coincident_needs_match: bool,
) -> Topology:
  """Planar and depth topology over all unordered target pairs.

  Planar: cosine of the offsets between centres, clipped to [0, 1], 0 unless
  both ends are matched and the generated offset is at least `min_offset`.
  Depth: 1 if the order of the two depths is right, over pairs whose target
  depths differ by more than `tie_ratio` relative to their mean. A pair scores
  the mean of both where depth is eligible and the planar score elsewhere.

  Args:
    boxes_target: [n, 4] boxes of the target objects.
    boxes_generated: [n, 4] boxes matched to them; ignored where not matched.
    depth_target: [n] depths; non-finite means unknown.
    depth_generated: [n] depths of the matched boxes; non-finite = unknown.
    present: [n] bool, rows that hold an object.
    matched: [n] bool, objects that were found again.
    tie_ratio: relative depth difference up to which a pair is a tie.
    min_offset: centre offset below which an offset has no direction, pixels.
    ratio_floor: floor of the relative difference's denominator.
    floor_is_added: add `ratio_floor` to the denominator (paper) instead of
      taking the larger of the two (released code).
    coincident_needs_match: count coincident target centres only where both
      ends are matched (released code).

  Returns:
    The topology of the step.

  Source: EgoGenEval specification 4.13; 13 items 6 and 9.
  """
  count = boxes_target.shape[0]
  chex.assert_shape([boxes_target, boxes_generated], (count, 4))
  chex.assert_shape([depth_target, depth_generated, present, matched], (count,))
  chex.assert_type([boxes_target, boxes_generated], float)
  matched = matched & present
  first, second = np.triu_indices(count, 1)
  pair = present[first] & present[second]
  both = pair & matched[first] & matched[second]
  target, generated = box_centers(boxes_target), box_centers(boxes_generated)
  planar, coincident = _planar(
    target[first] - target[second],
    generated[first] - generated[second],
    both,
    min_offset,
  )

  def ratio(depth: jax.Array) -> tuple[jax.Array, jax.Array]:
    known = jnp.isfinite(depth)
    x = jnp.where(known, depth, 1.0)
    mean = (jnp.abs(x[first]) + jnp.abs(x[second])) * 0.5
    floored = (
      mean + ratio_floor if floor_is_added else jnp.maximum(mean, ratio_floor)
    )
    # Padding may hold zeros in both places; 1 keeps the division finite.
    safe = jnp.where(floored > 0, floored, 1.0)
    return (x[first] - x[second]) / safe, known[first] & known[second]

  ratio_target, known_target = ratio(depth_target)
  ratio_generated, known_generated = ratio(depth_generated)
  eligible = pair & known_target & (jnp.abs(ratio_target) > tie_ratio)
  valid = eligible & both & known_generated
  tied = jnp.abs(ratio_generated) <= tie_ratio
  right = valid & ~tied & (ratio_target * ratio_generated > 0)
  score = jnp.where(eligible, (planar + right) / 2.0, planar)
  pairs, both_count, eligible_count, correct = (
    jnp.sum(mask) for mask in (pair, both, eligible, right)
  )

  def mean(total: jax.Array, number: jax.Array) -> jax.Array:
    return total / jnp.maximum(number, 1).astype(planar.dtype)

  refused = coincident & (both if coincident_needs_match else pair)
  return Topology(
    score=mean(jnp.sum(jnp.where(pair, score, 0.0)), pairs),
    planar=mean(jnp.sum(planar), pairs),
    planar_matched=mean(jnp.sum(planar), both_count),
    depth=mean(correct.astype(planar.dtype), eligible_count),
    pairs=pairs,
    matched_pairs=both_count,
    eligible_pairs=eligible_count,
    matched_eligible_pairs=jnp.sum(eligible & both),
    valid_pairs=jnp.sum(valid),
    correct_pairs=correct,
    predicted_ties=jnp.sum(valid & tied),
    coincident_pairs=jnp.sum(refused),
  )


def _planar(
  u: jax.Array, v: jax.Array, both: jax.Array, min_offset: float
) -> tuple[jax.Array, jax.Array]:
  """Planar score of every pair (0 outside `both`) and coincident targets.

  Args:
    u: [pairs, 2] offsets between target centres.
    v: [pairs, 2] offsets between generated centres.
    both: [pairs] bool, both ends matched.
    min_offset: shortest offset with a direction.
  """
  length_u = numerics.safe_norm(u, axis=-1)
  length_v = numerics.safe_norm(v, axis=-1)
  coincident = length_u < min_offset
  usable = both & ~coincident & (length_v >= min_offset)
  product = jnp.where(usable, length_u * length_v, 1.0)
  cosine = jnp.where(usable, jnp.sum(u * v, axis=-1), 0.0) / product
  return jnp.clip(cosine, 0.0, 1.0), coincident
