# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Relative depth errors of two depth maps on one grid.

Depth is camera-axis Z; a value counts where it is finite and positive, so both
NaN and 0 mean invalid. Errors are relative to the first map; lower is better,
0 is perfect, no upper bound.
"""

from __future__ import annotations

from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
from jax import Array

from kernels import numerics


class AlignedDepthError(NamedTuple):
  """Scene and region errors after one scale.

  Attributes:
    scale: a = median of D / G over the support; 0 with no support.
    scene: `Stat`, mean of |a G - D| / D over the support.
    regions: `Stat` of [R] values and counts, same over each region.
    expected: [R] int32 region pixels with a reference depth, whether or not
      the generated depth is there.
  """

  scale: Array
  scene: numerics.Stat
  regions: numerics.Stat
  expected: Array


def colocated_error(depth_a: Array, depth_b: Array) -> numerics.Stat:
  """Mean of |b - a| / a over the pixels where both are finite and positive.

  Args:
    depth_a: [h, w] reference.
    depth_b: [h, w], same shape.

  Returns:
    `Stat(value, pixels)`; no scale is fitted.

  Source: Orbia specification, section 6.2.
  """
  chex.assert_rank([depth_a, depth_b], 2)
  chex.assert_equal_shape([depth_a, depth_b])
  a, b = depth_a.reshape(-1), depth_b.reshape(-1)
  valid = _positive(a) & _positive(b)
  safe_a, safe_b = jnp.where(valid, a, 1), jnp.where(valid, b, 1)
  return numerics.masked_mean(jnp.abs(safe_b - safe_a) / safe_a, valid)


def aligned_depth_error(
  reference: Array, generated: Array, scene: Array, regions: Array
) -> AlignedDepthError:
  """Depth error of a scene and of regions in it, after one common scale.

  Args:
    reference: [N] reference depth D (a flattened map or sensor points).
    generated: [N] generated depth G.
    scene: [N] bool, the scene region.
    regions: [R, N] bool; each is intersected with the scene's support.

  Returns:
    `AlignedDepthError`. Support: scene region with D and G finite and
    positive. A region with count 0 has no value; `expected` tells whether it
    should have had one. Gradients reach G through errors and scale.

  Source: Orbia specification, section 5.5.
  """
  chex.assert_rank([reference, generated, scene, regions], [1, 1, 1, 2])
  chex.assert_equal_shape([reference, generated, scene])
  chex.assert_type([scene, regions], bool)
  has_reference = _positive(reference)
  support = scene & has_reference & _positive(generated)
  d = jnp.where(support, reference, 1)
  g = jnp.where(support, generated, 1)
  scale = numerics.masked_median(d / g, support).value
  error = jnp.abs(scale * g - d) / d
  of_regions = jax.vmap(lambda region: numerics.masked_mean(error, region))
  return AlignedDepthError(
    scale=scale,
    scene=numerics.masked_mean(error, support),
    regions=of_regions(regions & support),
    expected=jnp.sum(regions & has_reference, axis=1, dtype=jnp.int32),
  )


def _positive(depth: Array) -> Array:
  return jnp.isfinite(depth) & (depth > 0)
