# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Do a step's objects survive? Presence, position, integrity and their mix.

Conventions: counts are G target objects, P candidates in the generated image
and M matches; everything else is a number in [0, 1], higher is better.
A step with G = 0 has no meaning: `valid` is false and its numbers are 0.
"""

from __future__ import annotations

from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp

from kernels import numerics


class StepPillars(NamedTuple):
  """The three pillars of one step.

  Attributes:
    presence: F1 of the matching.
    spatial: mean of position and topology, or position alone for G = 1.
    integrity: coverage times mean object quality.
    score: mean of the three.
    position: the position part of `spatial`.
    valid: G >= 1.
  """

  presence: jax.Array
  spatial: jax.Array
  integrity: jax.Array
  score: jax.Array
  position: jax.Array
  valid: jax.Array


def step_pillars(
  targets: jax.Array,
  candidates: jax.Array,
  matches: jax.Array,
  position_error: jax.Array,
  object_quality: jax.Array,
  topology: jax.Array,
) -> StepPillars:
  """Presence, spatial and integrity pillars of one step.

  `F1 = 2M / (G + P)`, `Pos = M/G clip01(1 - PE)`, `S = (Pos + T)/2` for G >= 2,
  `Int = M/G clip01(quality)`; Pos and Int are 0 for M = 0.

  Args:
    targets: scalar, G, as a float.
    candidates: scalar, P.
    matches: scalar, M.
    position_error: scalar, mean centre distance over the image diagonal;
      ignored for M = 0.
    object_quality: scalar, mean quality over matches; ignored for M = 0.
    topology: scalar, mean pair score; ignored for G < 2.

  Returns:
    The pillars.

  Source: EgoGenEval specification 4.9 to 4.14.
  """
  values = (
    targets,
    candidates,
    matches,
    position_error,
    object_quality,
    topology,
  )
  chex.assert_rank(values, 0)
  chex.assert_type(values, float)
  valid = targets >= 1
  found = matches >= 1
  coverage = numerics.safe_divide(
    matches, jnp.where(valid, targets, 1.0), fill=0.0
  )
  presence = numerics.safe_divide(
    2.0 * matches, jnp.where(valid, targets + candidates, 1.0), fill=0.0
  )

  def covered(value: jax.Array) -> jax.Array:
    # Without a match the value may be NaN: it is replaced before use so that
    # its gradient cannot poison the others.
    return coverage * jnp.clip(jnp.where(found, value, 0.0), 0.0, 1.0)

  position = covered(1.0 - jnp.where(found, position_error, 1.0))
  integrity = covered(object_quality)
  paired = targets >= 2
  spatial = jnp.where(
    paired, (position + jnp.where(paired, topology, 0.0)) / 2.0, position
  )
  mean = (presence + spatial + integrity) / 3.0
  zero = jnp.zeros_like(targets)
  presence, spatial, integrity, mean, position = (
    jnp.where(valid, value, zero)
    for value in (presence, spatial, integrity, mean, position)
  )
  return StepPillars(presence, spatial, integrity, mean, position, valid)


def weighted_quality(
  signals: jax.Array, available: jax.Array, *, weights: tuple[float, ...]
) -> numerics.Stat:
  """Weighted mean of the available appearance signals of one object.

  Args:
    signals: [k] signals in [0, 1]; ignored where not available.
    available: [k] bool.
    weights: k weights; they are renormalised over the available signals.

  Returns:
    (value, number of signals used); 0 and 0 if none is available.

  Source: EgoGenEval specification 4.11.
  """
  chex.assert_shape([signals, available], (len(weights),))
  chex.assert_type(signals, float)
  weight = jnp.where(available, jnp.asarray(weights, signals.dtype), 0.0)
  total = jnp.sum(weight * jnp.where(available, signals, 0.0))
  return numerics.Stat(
    numerics.safe_divide(total, jnp.sum(weight), fill=0.0), jnp.sum(available)
  )


def mean_plus_worst(
  values: jax.Array, valid: jax.Array, *, worst_weight: float
) -> numerics.Stat:
  """`(1 - w) mean + w min` over the valid steps of a case.

  Args:
    values: [t] step values.
    valid: [t] bool.
    worst_weight: w; 0.5 is the published aggregate, 0 the plain mean.

  Returns:
    (value, number of steps); 0 and 0 without a valid step.

  Source: EgoGenEval specification 4.15, 7.6.
  """
  chex.assert_rank([values, valid], 1)
  chex.assert_equal_shape([values, valid])
  chex.assert_type(values, float)
  mean = numerics.masked_mean(values, valid)
  worst = jnp.min(jnp.where(valid, values, jnp.inf), initial=jnp.inf)
  worst = jnp.where(mean.count > 0, worst, 0.0)
  mixed = (1.0 - worst_weight) * mean.value + worst_weight * worst
  return numerics.Stat(mixed, mean.count)
