# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Draws, counts and resampled sums."""

from __future__ import annotations

import chex
import jax
import jax.numpy as jnp
import numpy as np
import scipy.stats
from absl.testing import absltest, parameterized
from jax.extend.random import threefry_2x32

from kernels import bootstrap, bootstrap_bits

SIZES = (3, 1, 6)


def key(seed: int = 0) -> jax.Array:
  return jax.random.key(seed, impl="threefry2x32")


def strata() -> tuple[jax.Array, jax.Array]:
  start = np.repeat(np.cumsum([0, *SIZES[:-1]]), SIZES)
  return jnp.asarray(start, jnp.int32), jnp.asarray(
    np.repeat(SIZES, SIZES), jnp.int32
  )


def counts(k: jax.Array) -> jax.Array:
  return bootstrap.draw_counts(
    k, *strata(), num_units=sum(SIZES), dtype=jnp.float32
  )


_COUNTS = jax.jit(counts)
_UNITS = jax.jit(lambda k: bootstrap.draw_units(k, *strata()))


class BitsTest(parameterized.TestCase):
  @parameterized.parameters(1, 7, 64)
  def test_equals_the_cipher_of_jax(self, number: int) -> None:
    words = jax.random.key_data(key(11))
    count = jnp.arange(number + number % 2, dtype=jnp.uint32)
    np.testing.assert_array_equal(
      bootstrap_bits.random_bits(key(11), number=number),
      threefry_2x32(words, count)[:number],
    )


class DrawTest(parameterized.TestCase):
  def test_strata_keep_their_sizes(self) -> None:
    found = jax.jit(jax.vmap(lambda r: counts(jax.random.fold_in(key(), r))))(
      jnp.arange(200)
    )
    np.testing.assert_array_equal(found[:, :3].sum(1), 3)
    np.testing.assert_array_equal(found[:, 3], 1)
    np.testing.assert_array_equal(found[:, 4:].sum(1), 6)

  def test_counts_are_multinomial(self) -> None:
    number = 4000
    found = np.asarray(
      jax.jit(jax.vmap(lambda r: counts(jax.random.fold_in(key(1), r))))(
        jnp.arange(number)
      )
    )[:, 4:]
    # Binomial(6, 1/6) for each unit; chi-square of its observed counts.
    expected = scipy.stats.binom.pmf(np.arange(7), 6, 1 / 6)
    for unit in found.T:
      seen = np.bincount(unit.astype(int), minlength=7)
      small = [seen[:3], [seen[3:].sum()]]
      probability = np.append(expected[:3], expected[3:].sum())
      chi = scipy.stats.chisquare(np.concatenate(small), number * probability)
      self.assertGreater(chi.pvalue, 1e-4)
    self.assertAlmostEqual(
      np.corrcoef(found[:, 0], found[:, 1])[0, 1], -1 / 5, delta=0.06
    )

  def test_counts_of_the_draws(self) -> None:
    units = _UNITS(key(3))
    self.assertEqual(units.dtype, jnp.int32)
    np.testing.assert_array_equal(
      _COUNTS(key(3)), np.bincount(units, minlength=sum(SIZES))
    )
    np.testing.assert_array_equal(
      _COUNTS(key(3)),
      bootstrap.counts_of_draws(units, num_units=sum(SIZES), dtype=jnp.float32),
    )

  def test_draws_are_the_upper_half_of_a_product(self) -> None:
    # Python integers as the oracle for the product without 64 bits.
    start, size = jnp.zeros(64, jnp.int32), jnp.full(64, 2**31 - 7, jnp.int32)
    bits = np.asarray(bootstrap_bits.random_bits(key(5), number=64))
    np.testing.assert_array_equal(
      bootstrap.draw_units(key(5), start, size),
      [(int(b) * (2**31 - 7)) >> 32 for b in bits],
    )

  def test_batch_does_not_matter(self) -> None:
    def draw(r: jax.Array) -> jax.Array:
      return counts(jax.random.fold_in(key(7), r))

    alone = np.stack([_COUNTS(jax.random.fold_in(key(7), r)) for r in range(6)])
    np.testing.assert_array_equal(alone, jax.jit(jax.vmap(draw))(jnp.arange(6)))
    np.testing.assert_array_equal(
      alone[3:], jax.jit(jax.vmap(draw))(jnp.arange(3, 6))
    )

  @parameterized.parameters("rbg", "unsafe_rbg")
  def test_generators_that_depend_on_the_batch_are_refused(
    self, kind: str
  ) -> None:
    with self.assertRaisesRegex(ValueError, "batch size"):
      counts(jax.random.key(0, impl=kind))

  def test_float64_has_the_same_draws(self) -> None:
    base = np.asarray(_COUNTS(key(2)))
    with jax.enable_x64(True):
      wide = bootstrap.draw_counts(
        key(2), *strata(), num_units=sum(SIZES), dtype=jnp.float64
      )
      self.assertEqual(wide.dtype, jnp.float64)
    np.testing.assert_array_equal(base, wide)

  def test_draws_out_of_range_are_ignored(self) -> None:
    found = bootstrap.counts_of_draws(
      jnp.array([-1, 0, 2, 2, 3]), num_units=3, dtype=jnp.float32
    )
    np.testing.assert_array_equal(found, [1, 0, 2])

  def test_one_trace_for_all_replicates(self) -> None:
    chex.clear_trace_counter()
    traced = jax.jit(chex.assert_max_traces(counts, n=1))
    for seed in range(3):
      traced(key(seed))


class SumsTest(parameterized.TestCase):
  def test_sums_by_hand(self) -> None:
    found = bootstrap.resample_sums(
      jnp.array([2.0, 0.0, 1.0]), jnp.array([[1.0, 10.0], [5.0, 5.0], [3, 1]])
    )
    np.testing.assert_array_equal(found, [5.0, 21.0])

  def test_clusters_of_unequal_size(self) -> None:
    # Reducing to cluster sums first equals repeating every case.
    rng = np.random.default_rng(0)
    cluster = np.array([0, 0, 0, 1, 2, 2])
    values = rng.normal(size=6)
    drawn = np.array([2, 0, 0])
    sums = np.zeros((3, 2))
    np.add.at(sums, cluster, np.stack([values, np.ones(6)], axis=1))
    count = bootstrap.counts_of_draws(
      jnp.asarray(drawn), num_units=3, dtype=jnp.float32
    )
    total, number = bootstrap.resample_sums(
      count, jnp.asarray(sums, jnp.float32)
    )
    repeated = np.concatenate([values[cluster == c] for c in drawn])
    self.assertEqual(number, len(repeated))
    np.testing.assert_allclose(total, repeated.sum(), rtol=1e-6)

  def test_gradient_is_the_counts(self) -> None:
    count = jnp.array([2.0, 0.0, 1.0])
    grad = jax.grad(lambda s: bootstrap.resample_sums(count, s)[0])(
      jnp.ones((3, 1))
    )
    np.testing.assert_array_equal(grad[:, 0], count)

  def test_mixed_dtypes_are_refused(self) -> None:
    with self.assertRaises(AssertionError):
      bootstrap.resample_sums(jnp.ones(2), jnp.ones((2, 1), jnp.float16))


class SubsampleTest(absltest.TestCase):
  def test_quota_without_replacement(self) -> None:
    stratum = jnp.asarray(np.repeat([0, 1, 2], SIZES), jnp.int32)
    quota = jnp.asarray(np.repeat([2, 1, 4], SIZES), jnp.int32)

    def draw(r: jax.Array) -> jax.Array:
      return bootstrap.subsample(
        jax.random.fold_in(key(), r), stratum, quota, dtype=jnp.float32
      )

    found = np.asarray(jax.jit(jax.vmap(draw))(jnp.arange(3000)))
    self.assertEqual(set(np.unique(found)), {0.0, 1.0})
    np.testing.assert_array_equal(found[:, :3].sum(1), 2)
    np.testing.assert_array_equal(found[:, 3], 1)
    np.testing.assert_array_equal(found[:, 4:].sum(1), 4)
    # Every unit of a stratum is as likely: 4 standard errors.
    np.testing.assert_allclose(found[:, 4:].mean(0), 4 / 6, atol=0.035)
    np.testing.assert_array_equal(found[7], jax.jit(draw)(7))


if __name__ == "__main__":
  absltest.main()
