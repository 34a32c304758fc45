# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Pairs of draws and their counts: the same draws as one at a time."""

from __future__ import annotations

import chex
import jax
import jax.numpy as jnp
import numpy as np
from absl.testing import absltest, parameterized

from kernels import bootstrap, bootstrap_blocks

# Odd, even, single; strata of one unit; a stratum that fills 16 bits.
LAYOUTS = ((3, 1, 6), (2, 5), (1,), (9,))


def key(seed: int = 0) -> jax.Array:
  return jax.random.key(seed, impl="threefry2x32")


def strata(sizes: tuple[int, ...]) -> tuple[jax.Array, jax.Array]:
  start = np.repeat(np.cumsum([0, *sizes[:-1]]), sizes)
  return jnp.asarray(start, jnp.int32), jnp.asarray(
    np.repeat(sizes, sizes), jnp.int32
  )


def unpacked(pairs: jax.Array, number: int) -> np.ndarray:
  words = np.asarray(pairs)
  return np.concatenate([words & 0xFFFF, words >> 16])[:number]


def pairs_of(sizes: tuple[int, ...], replicates: int) -> jax.Array:
  start, size = strata(sizes)
  return jax.jit(
    jax.vmap(
      lambda r: bootstrap_blocks.draw_pairs(
        jax.random.fold_in(key(), r), start, size, num_units=sum(sizes)
      )
    )
  )(jnp.arange(replicates))


def count(pairs: jax.Array, number: int, **options: object) -> jax.Array:
  settings = {
    "num_units": number,
    "counter": jnp.uint16,
    "dtype": jnp.float32,
    **options,
  }
  return bootstrap_blocks.count_pairs(pairs, number=number, **settings)


class DrawPairsTest(parameterized.TestCase):
  @parameterized.parameters(*LAYOUTS)
  def test_equal_to_the_draws_of_one_replicate(self, *sizes: int) -> None:
    start, size = strata(sizes)
    pairs = pairs_of(sizes, 5)
    self.assertEqual(pairs.dtype, jnp.uint32)
    for r in range(5):
      np.testing.assert_array_equal(
        unpacked(pairs[r], sum(sizes)),
        bootstrap.draw_units(jax.random.fold_in(key(), r), start, size),
      )

  def test_the_largest_stratum_fills_sixteen_bits(self) -> None:
    most = bootstrap_blocks.MAX_UNITS
    start, size = jnp.zeros(999, jnp.int32), jnp.full(999, most, jnp.int32)
    pairs = bootstrap_blocks.draw_pairs(key(4), start, size, num_units=most)
    units = unpacked(pairs, 999)
    np.testing.assert_array_equal(
      units, bootstrap.draw_units(key(4), start, size)
    )
    self.assertGreater(units.max(), 65_000)

  def test_more_units_are_refused(self) -> None:
    start, size = strata((2,))
    with self.assertRaisesRegex(ValueError, "65537 units"):
      bootstrap_blocks.draw_pairs(key(), start, size, num_units=65_537)

  def test_generators_that_depend_on_the_batch_are_refused(self) -> None:
    with self.assertRaisesRegex(ValueError, "batch size"):
      bootstrap_blocks.draw_pairs(
        jax.random.key(0, impl="rbg"), *strata((2,)), num_units=2
      )


class CountPairsTest(parameterized.TestCase):
  @parameterized.parameters(*LAYOUTS)
  def test_counts_of_the_draws(self, *sizes: int) -> None:
    number = sum(sizes)
    pairs = pairs_of(sizes, 5)
    found = jax.jit(lambda p: count(p, number))(pairs)
    self.assertEqual(found.shape, (number, 5))
    for r in range(5):
      np.testing.assert_array_equal(
        found[:, r],
        np.bincount(unpacked(pairs[r], number), minlength=number),
      )

  def test_by_hand(self) -> None:
    # Units 2, 0 | 2 and 1, 1 | 1, two replicates of three positions; the
    # upper half of the last word is no draw.
    pairs = jnp.array(
      [[2 | 2 << 16, 0 | 7 << 16], [1 | 1 << 16, 1 | 7 << 16]], jnp.uint32
    )
    np.testing.assert_array_equal(count(pairs, 3), [[1, 0], [0, 3], [2, 0]])

  @parameterized.parameters(jnp.uint16, jnp.uint32)
  def test_counters_and_dtypes_agree(self, counter: jnp.dtype) -> None:
    pairs = pairs_of((3, 1, 6), 4)
    base = np.asarray(count(pairs, 10))
    with jax.enable_x64(True):
      wide = count(pairs, 10, counter=counter, dtype=jnp.float64)
      self.assertEqual(wide.dtype, jnp.float64)
    np.testing.assert_array_equal(base, wide)

  def test_a_counter_that_could_overflow_is_refused(self) -> None:
    pairs = jnp.zeros((1, 128), jnp.uint32)
    with self.assertRaisesRegex(ValueError, "256 draws do not fit"):
      count(pairs, 256, counter=jnp.uint8)
    # At the bound: one unit takes all draws.
    found = count(pairs, 255, num_units=1, counter=jnp.uint8)
    np.testing.assert_array_equal(found, [[255]])

  def test_no_replicates(self) -> None:
    found = count(jnp.zeros((0, 2), jnp.uint32), 3)
    self.assertEqual(found.shape, (3, 0))

  def test_batch_does_not_matter(self) -> None:
    pairs = pairs_of((3, 1, 6), 7)
    together = count(pairs, 10)
    apart = [count(pairs[r : r + 1], 10)[:, 0] for r in range(7)]
    np.testing.assert_array_equal(together, np.stack(apart, axis=1))

  def test_one_trace_for_all_blocks(self) -> None:
    chex.clear_trace_counter()
    traced = jax.jit(chex.assert_max_traces(lambda p: count(p, 10), n=1))
    for replicates in (pairs_of((3, 1, 6), 3), pairs_of((4, 6), 3)):
      traced(replicates)


if __name__ == "__main__":
  absltest.main()
