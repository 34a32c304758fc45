# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Exact medians of many groups at once, without sorting.

A radix selection on the order-preserving integer image of the floats: each
pass counts, for every group, the items by their next 8 bits, and keeps the bin
that holds the wanted rank. Four passes for float32, eight for float64, of one
scatter-add over the items each: on a CPU about twenty times faster than
sorting, and ten times faster than one masked median for each group.
"""

from __future__ import annotations

import chex
import jax
import jax.numpy as jnp
from jax import Array

from kernels import numerics

_DIGIT = 8
_BINS = 1 << _DIGIT


def grouped_median(x: Array, group: Array, *, num_groups: int) -> numerics.Stat:
  """NumPy's median of the items of every group.

  Args:
    x: [N] floating array, finite where it belongs to a group.
    group: [N] int32 group of each item; items outside 0..num_groups-1 belong
      to none.
    num_groups: G, static.

  Returns:
    `Stat` of [G] medians and counts; an empty group has value 0, count 0. For
    an even count the mean of the two middle items. The gradient flows to the
    selected items, half to each of two.
  """
  chex.assert_rank([x, group], 1)
  chex.assert_type([x, group], [float, int])
  chex.assert_equal_shape([x, group])
  member = (group >= 0) & (group < num_groups)
  slot = jnp.where(member, group, num_groups)  # one extra group for the rest
  # Without the barrier a compiler may compute the caller's expression for `x`
  # anew in each of the passes.
  key, slot = jax.lax.optimization_barrier((_ordered_key(x), slot))
  count = _count(jnp.ones_like(slot), slot, num_groups)
  low_key = _select(key, slot, jnp.maximum(count - 1, 0) // 2, num_groups)
  low_of = jnp.append(low_key, jnp.zeros((1,), key.dtype))[slot]
  up_to = _count((key <= low_of).astype(jnp.int32), slot, num_groups)
  last = jnp.iinfo(key.dtype).max
  above = jnp.full((num_groups + 1,), last, key.dtype)
  above = above.at[slot].min(jnp.where(key > low_of, key, last))[:num_groups]
  # The upper middle item equals the lower one unless the ranks end there.
  high_key = jnp.where(up_to > count // 2, low_key, above)
  low = _item_with(low_key, x, key, slot, num_groups)
  high = _item_with(high_key, x, key, slot, num_groups)
  value = jnp.where(count % 2 == 1, low, (low + high) / 2)
  return numerics.Stat(jnp.where(count > 0, value, 0), count)


def _count(weight: Array, slot: Array, groups: int) -> Array:
  return jnp.zeros((groups + 1,), jnp.int32).at[slot].add(weight)[:groups]


def _select(key: Array, slot: Array, rank: Array, groups: int) -> Array:
  """Key of a given rank (0-based) in every group; any key if empty."""
  bits = 8 * key.dtype.itemsize
  prefix = jnp.zeros((groups,), key.dtype)
  for shift in range(bits - _DIGIT, -1, -_DIGIT):
    digit = ((key >> shift) & (_BINS - 1)).astype(jnp.int32)
    own = jnp.append(prefix, jnp.zeros((1,), key.dtype))[slot]
    # Arithmetic shifts keep the sign: equal leading bits, equal shifted keys.
    alive = (key >> shift >> _DIGIT) == (own >> shift >> _DIGIT)
    if shift == bits - _DIGIT:
      digit = digit ^ (_BINS >> 1)  # the sign bit: negative keys come first
      alive = jnp.ones_like(alive)
    table = jnp.zeros(((groups + 1) * _BINS,), jnp.int32)
    table = table.at[slot * _BINS + digit].add(alive.astype(jnp.int32))
    below = jnp.cumsum(table.reshape(groups + 1, _BINS)[:groups], axis=1)
    chosen = jnp.sum(below <= rank[:, None], axis=1, dtype=jnp.int32)
    chosen = jnp.minimum(chosen, _BINS - 1)
    before = jnp.take_along_axis(
      below, jnp.maximum(chosen - 1, 0)[:, None], axis=1
    )[:, 0]
    rank = rank - jnp.where(chosen > 0, before, 0)
    if shift == bits - _DIGIT:
      chosen = chosen ^ (_BINS >> 1)
    prefix = prefix | (chosen.astype(key.dtype) << shift)
  return prefix


def _item_with(
  wanted: Array, x: Array, key: Array, slot: Array, groups: int
) -> Array:
  """The first item of each group with the wanted key, so gradients flow."""
  size = x.shape[0]
  if size == 0:
    return jnp.zeros((groups,), x.dtype)
  of_item = jnp.append(wanted, jnp.zeros((1,), key.dtype))[slot]
  place = jnp.where(key == of_item, jnp.arange(size, dtype=jnp.int32), size)
  first = jnp.full((groups + 1,), size, jnp.int32).at[slot].min(place)[:groups]
  return jnp.where(first < size, x[jnp.minimum(first, size - 1)], 0)


def _ordered_key(x: Array) -> Array:
  """Signed integers in the order of the floats (IEEE 754 bit patterns)."""
  integer = jnp.int32 if x.dtype.itemsize == 4 else jnp.int64
  bits = jax.lax.bitcast_convert_type(jax.lax.stop_gradient(x), integer)
  return jnp.where(bits >= 0, bits, bits ^ jnp.iinfo(integer).max)
