# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Comparisons of patch descriptors on a g x g grid over a whole frame.

Descriptors are [g*g, C], row-major from the top left, of any length (they are
normalised here); similarities are cosines in [-1, 1], higher is better. A
cosine whose product of norms does not exceed `norm_floor` counts as 0. The
patch of a pixel is `grid_cells.cell_index`, row r g // H; `used_patches` has
the rule of whole-pixel rectangles [i H // g, (i+1) H // g) instead, which is
another one where g does not divide H.
"""

from __future__ import annotations

from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
from jax import Array

from kernels import numerics

_HIGHEST = jax.lax.Precision.HIGHEST


class PairSimilarity(NamedTuple):
  """Mean cosine over distinct patch pairs.

  Attributes:
    value: mean cosine; 0 with no pair.
    num_pairs: int32 distinct (source patch, target patch) pairs.
    present: [P, P] bool, the pairs.
  """

  value: Array
  num_pairs: Array
  present: Array


class PooledDescriptor(NamedTuple):
  """Descriptor of a masked region.

  Attributes:
    descriptor: [C] of unit norm; 0 where not `valid`.
    valid: bool, all three conditions hold.
    num_pixels: int32 pixels of the mask.
    weight: sum of the cell weights, in cells.
  """

  descriptor: Array
  valid: Array
  num_pixels: Array
  weight: Array


def unique_pair_similarity(
  source_patch: Array,
  target_patch: Array,
  valid: Array,
  source_descriptors: Array,
  target_descriptors: Array,
  *,
  norm_floor: float,
) -> PairSimilarity:
  """Mean cosine over the distinct patch pairs of some correspondences.

  Args:
    source_patch: [N] int32 patch of each correspondence in the source.
    target_patch: [N] int32 patch in the target.
    valid: [N] bool.
    source_descriptors: [P, C].
    target_descriptors: [P, C].
    norm_floor: see the module docstring.

  Returns:
    `PairSimilarity`; every pair counts once, however many pixels support it.

  Source: Orbia specification, section 7.5.
  """
  chex.assert_equal_shape([source_patch, target_patch, valid])
  chex.assert_equal_shape([source_descriptors, target_descriptors])
  patches = source_descriptors.shape[0]
  pair = jnp.where(
    valid, source_patch * patches + target_patch, patches * patches
  )
  flags = jnp.zeros((patches * patches + 1,), bool).at[pair].set(True)
  present = flags[:-1].reshape(patches, patches)
  cosine = _cosine_table(source_descriptors, target_descriptors, norm_floor)
  stat = numerics.masked_mean(cosine.reshape(-1), present.reshape(-1))
  return PairSimilarity(stat.value, stat.count, present)


def colocated_similarity(
  reference: Array, generated: Array, *, norm_floor: float
) -> Array:
  """Mean cosine of descriptors at equal places.

  Args:
    reference: [P, C]; P = 1 compares two whole-image descriptors.
    generated: [P, C].
    norm_floor: see the module docstring.

  Returns:
    Scalar in [-1, 1].

  Source: Orbia specification, sections 5.3 and 6.2.
  """
  chex.assert_rank([reference, generated], 2)
  chex.assert_equal_shape([reference, generated])
  product = jnp.sum(reference * generated, axis=-1)
  norms = numerics.safe_norm(reference, axis=-1)
  norms = norms * numerics.safe_norm(generated, axis=-1)
  return jnp.mean(_ratio(product, norms, norm_floor))


def used_patches(mask: Array, *, grid: int) -> Array:
  """Patches whose rectangle [i H // g, (i+1) H // g) holds a masked pixel.

  Args:
    mask: [H, W] bool.
    grid: patches on each side, static.

  Returns:
    [grid * grid] bool; an empty rectangle (H < g) holds none.
  """
  chex.assert_rank(mask, 2)
  chex.assert_type(mask, bool)
  height, width = mask.shape
  bound = jnp.arange(grid + 1)
  rows, columns = bound * height // grid, bound * width // grid
  sums = jnp.cumsum(jnp.cumsum(mask, axis=0), axis=1)
  sums = jnp.pad(sums, ((1, 0), (1, 0)))[rows][:, columns]
  held = sums[1:, 1:] - sums[1:, :-1] - sums[:-1, 1:] + sums[:-1, :-1]
  return (held > 0).reshape(-1)


def local_similarity(
  reference: Array, generated: Array, used: Array, *, norm_floor: float
) -> numerics.Stat:
  """Mean over the used patches of the best cosine in the 3x3 neighbourhood.

  Args:
    reference: [g*g, C].
    generated: [g*g, C]; the neighbourhood is clipped at the border.
    used: [g*g] bool reference patches.
    norm_floor: see the module docstring.

  Returns:
    `Stat(value, count of used patches)`.

  Source: Orbia specification, section 5.3.
  """
  chex.assert_equal_shape([reference, generated])
  grid = _grid_side(reference.shape[0])
  place = jnp.arange(grid * grid)
  row, column = place // grid, place % grid
  near = (jnp.abs(row[:, None] - row) <= 1) & (
    jnp.abs(column[:, None] - column) <= 1
  )
  cosine = _cosine_table(reference, generated, norm_floor)
  best = jnp.max(jnp.where(near, cosine, -jnp.inf), axis=1)
  return numerics.masked_mean(best, used)


def pooled_descriptor(
  descriptors: Array,
  mask: Array,
  *,
  min_pixels: int,
  min_weight: float,
  norm_floor: float,
) -> PooledDescriptor:
  """Unit-norm mean of descriptors, weighted by the mask's share of each cell.

  Args:
    descriptors: [g*g, C].
    mask: [h, w] bool of any size; the g x g cells divide it exactly, with
      fractional pixels shared by area.
    min_pixels: smallest mask, inclusive.
    min_weight: smallest sum of cell shares, inclusive.
    norm_floor: the mean's norm must exceed it.

  Returns:
    `PooledDescriptor`.

  Source: Orbia specification, section 5.7.
  """
  chex.assert_rank([descriptors, mask], 2)
  chex.assert_type([descriptors, mask], [float, bool])
  grid = _grid_side(descriptors.shape[0])
  dtype = descriptors.dtype
  rows = _area_share(mask.shape[0], grid, dtype)
  columns = _area_share(mask.shape[1], grid, dtype)
  area = mask.astype(dtype)
  share = jnp.matmul(rows, area, precision=_HIGHEST)
  weights = jnp.matmul(share, columns.T, precision=_HIGHEST).reshape(-1)
  total = jnp.sum(weights)
  mean = jnp.matmul(weights, descriptors, precision=_HIGHEST)
  mean = mean / jnp.where(total > 0, total, 1)
  norm = numerics.safe_norm(mean, axis=0)
  pixels = jnp.sum(mask, dtype=jnp.int32)
  valid = (pixels >= min_pixels) & (total >= min_weight)
  valid &= jnp.isfinite(norm) & (norm > norm_floor)
  unit = jnp.where(valid, mean / jnp.where(valid, norm, 1), 0)
  return PooledDescriptor(unit, valid, pixels, total)


def _cosine_table(a: Array, b: Array, norm_floor: float) -> Array:
  chex.assert_rank([a, b], 2)
  product = jnp.matmul(a, b.T, precision=_HIGHEST)
  norms = numerics.safe_norm(a, axis=-1)[:, None]
  norms = norms * numerics.safe_norm(b, axis=-1)[None, :]
  return _ratio(product, norms, norm_floor)


def _ratio(product: Array, norms: Array, norm_floor: float) -> Array:
  tiny = norms <= norm_floor
  return jnp.where(tiny, 0, product / jnp.where(tiny, 1, norms))


def _area_share(size: int, grid: int, dtype: jnp.dtype) -> Array:
  """[grid, size] share of each pixel in each of `grid` equal cells."""
  low = jnp.arange(grid, dtype=dtype)[:, None] * (size / grid)
  pixel = jnp.arange(size, dtype=dtype)[None, :]
  overlap = jnp.minimum(pixel + 1, low + size / grid) - jnp.maximum(pixel, low)
  return jnp.maximum(overlap, 0) * (grid / size)


def _grid_side(patches: int) -> int:
  side = round(patches**0.5)
  if side * side != patches:
    raise ValueError(f"{patches} descriptors do not fill a square grid")
  return side
