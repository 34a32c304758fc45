# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Draws and counts of a block of replicates, at the speed of the words.

The same draws as `bootstrap.draw_units`, in another form: both words of a
Threefry block make one drawn pair, packed into 32 bits. XLA computes the
cipher once for every output, so a pair in one word costs half of a pair in
two. Counts are unit-major, `[n, b]`: the rows of some units are then
contiguous, and products and statistics run along the replicates.

Conventions: position `i` of `d` lies in the lower half of word `i`, position
`h + i` in the upper half, with `h = (d + 1) // 2`.
"""

from __future__ import annotations

import chex
import jax.numpy as jnp
import numpy as np
from jax import Array

from kernels import bootstrap_bits

MAX_UNITS = 2**16


def draw_pairs(
  key: Array, start: Array, size: Array, *, num_units: int
) -> Array:
  """Draws one replicate.

  Args:
    key: typed threefry key of the replicate.
    start: [d] int32, first unit of the position's stratum.
    size: [d] int32, number of units in the position's stratum, at least 1.
    num_units: n, number of units; start + size may not exceed it.

  Returns:
    [h] uint32 pairs of unit numbers; equal to `bootstrap.draw_units`.

  Raises:
    ValueError: there are more than `MAX_UNITS` units, or the key is of
      another kind than threefry.
  """
  chex.assert_rank([start, size], 1)
  chex.assert_equal_shape([start, size])
  chex.assert_type([start, size], jnp.int32)
  if num_units > MAX_UNITS:
    raise ValueError(f"{num_units} units; a pair holds {MAX_UNITS} at most")
  d = start.shape[0]
  first, second = bootstrap_bits.random_pairs(key, number=d)
  h = first.shape[0]
  start, size = start.astype(jnp.uint32), size.astype(jnp.uint32)
  # An odd number of positions leaves the last upper half empty.
  padding = (0, 2 * h - d)
  upper = jnp.pad(start[h:], padding) + _scaled(
    second, jnp.pad(size[h:], padding)
  )
  return (start[:h] + _scaled(first, size[:h])) | (upper << 16)


def count_pairs(
  pairs: Array,
  *,
  number: int,
  num_units: int,
  counter: jnp.dtype,
  dtype: jnp.dtype,
) -> Array:
  """Counts the units of a block of replicates.

  Args:
    pairs: [b, h] uint32, of `draw_pairs`.
    number: d, positions of a replicate.
    num_units: n.
    counter: integer dtype to count in; holds `number`. Narrow counters keep
      the block in the cache of a core: 128 replicates of 771 units take 197
      kB as uint16, and half of the time that they take as float32.
    dtype: floating dtype of the result.

  Returns:
    [n, b] counts; each column sums to d.

  Raises:
    ValueError: the counter is too narrow.
  """
  chex.assert_rank(pairs, 2)
  chex.assert_type(pairs, jnp.uint32)
  if number > jnp.iinfo(counter).max:
    raise ValueError(f"{number} draws do not fit into {jnp.dtype(counter)}")
  b, h = pairs.shape
  replicate = jnp.arange(b, dtype=jnp.uint32)[:, None]
  counts = jnp.zeros(num_units * b, counter)
  for units in (pairs & 0xFFFF, pairs[:, : number - h] >> 16):
    # Flat indices, in range by construction: XLA's fastest scatter.
    places = (units * np.uint32(b) + replicate).reshape(-1)
    counts = counts.at[places].add(
      jnp.ones((), counter), mode="promise_in_bounds"
    )
  return counts.reshape(num_units, b).astype(dtype)


def _scaled(word: Array, size: Array) -> Array:
  """Upper half of the product of a word and a size up to 2**16."""
  low = jnp.uint32(0xFFFF)
  return ((word >> 16) * size + (((word & low) * size) >> 16)) >> 16
