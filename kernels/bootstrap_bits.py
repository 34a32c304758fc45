# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Random words for resampling: Threefry-2x32 with 20 rounds, counter mode.

The words of a replicate are the cipher of the counters (i, h + i) under the
replicate's key, h being half of the number of words; both halves of every
block are used. The result equals `jax.extend.random.threefry_2x32` on
`arange(2 h)`. It is written out here because the draws are the larger part of
a bootstrap: on CPUs `jax.random.bits` takes twice as long, for it discards
half of each block and runs the rounds in a loop. Integer arithmetic only:
every device gives the same words, in a batch as alone.

Source: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011).
"""

from __future__ import annotations

import chex
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = np.uint32(0x1BD11BDA)


def random_bits(key: Array, *, number: int) -> Array:
  """Random words of one replicate.

  Args:
    key: typed threefry key.
    number: number of words, below 2**32.

  Returns:
    [number] uint32.

  Raises:
    ValueError: the key is of another kind than threefry.
  """
  return jnp.concatenate(random_pairs(key, number=number))[:number]


def random_pairs(key: Array, *, number: int) -> tuple[Array, Array]:
  """The same words before they are put behind each other.

  Args:
    key: typed threefry key.
    number: number of words, below 2**32.

  Returns:
    [h] uint32 words 0 to h - 1, and [h] words h to 2 h - 1, one more than
    asked for where `number` is odd.

  Raises:
    ValueError: the key is of another kind than threefry.
  """
  kind = str(jax.random.key_impl(key))
  if kind != "threefry2x32":
    raise ValueError(
      f"key of kind {kind!r}: replicates would depend on the batch size; use"
      " jax.random.key(seed, impl='threefry2x32')"
    )
  chex.assert_rank(key, 0)
  words = jax.random.key_data(key)
  half = (number + 1) // 2
  counter = jnp.arange(half, dtype=jnp.uint32)
  return _encrypt(words[0], words[1], counter, counter + np.uint32(half))


def _encrypt(
  key_0: Array, key_1: Array, x: Array, y: Array
) -> tuple[Array, Array]:
  schedule = (key_0, key_1, key_0 ^ key_1 ^ _PARITY)
  x, y = x + schedule[0], y + schedule[1]
  for group in range(5):
    for distance in _ROTATIONS[group % 2]:
      x = x + y
      y = (y << np.uint32(distance)) | (y >> np.uint32(32 - distance))
      y = x ^ y
    x = x + schedule[(group + 1) % 3]
    y = y + schedule[(group + 2) % 3] + np.uint32(group + 1)
  return x, y
