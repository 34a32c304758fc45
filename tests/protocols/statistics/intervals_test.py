# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Intervals against SciPy, flips and tie groups by hand."""

from __future__ import annotations

import numpy as np
import scipy.stats
from absl.testing import absltest, parameterized

from protocols.statistics import intervals


class IntervalTest(parameterized.TestCase):
  @parameterized.parameters("percentile", "basic", "bca")
  def test_equals_scipy_on_its_own_replicates(self, method: str) -> None:
    sample = np.random.default_rng(0).gamma(2.0, size=25)
    theirs = scipy.stats.bootstrap(
      (sample,),
      np.mean,
      n_resamples=999,
      method={"bca": "BCa"}.get(method, method),
      rng=np.random.default_rng(1),
    )
    without = np.array([np.delete(sample, i).mean() for i in range(25)])
    found = intervals.interval(
      theirs.bootstrap_distribution,
      sample.mean(),
      method=method,
      level=0.95,
      jackknife=[without],
    )
    np.testing.assert_allclose(
      found, tuple(theirs.confidence_interval), rtol=1e-12
    )

  def test_bca_of_two_strata_equals_scipy(self) -> None:
    rng = np.random.default_rng(2)
    a, b = rng.gamma(1.0, size=14), rng.gamma(3.0, size=9)

    def difference(x, y, axis=-1):
      return np.mean(x, axis=axis) - np.mean(y, axis=axis)

    theirs = scipy.stats.bootstrap(
      (a, b), difference, n_resamples=800, rng=np.random.default_rng(3)
    )
    jackknife = [
      np.array([difference(np.delete(a, i), b) for i in range(14)]),
      np.array([difference(a, np.delete(b, i)) for i in range(9)]),
    ]
    found = intervals.interval(
      theirs.bootstrap_distribution,
      difference(a, b),
      method="bca",
      level=0.95,
      jackknife=jackknife,
    )
    np.testing.assert_allclose(
      found, tuple(theirs.confidence_interval), rtol=1e-10
    )

  def test_bca_without_spread_is_not_a_number(self) -> None:
    found = intervals.interval(
      np.ones(50), 1.0, method="bca", level=0.9, jackknife=[np.ones(5)]
    )
    self.assertTrue(np.isnan(found).all())

  def test_unknown_method(self) -> None:
    with self.assertRaisesRegex(ValueError, "percentile"):
      intervals.interval(np.ones(3), 1.0, method="normal", level=0.9)

  def test_p_flip_counts_equality(self) -> None:
    x = np.array([1.0, 2.0, 3.0, 4.0])
    self.assertEqual(intervals.p_flip(x, x), 1.0)
    self.assertEqual(intervals.p_flip(x, x - [0, 1, -1, 1]), 0.5)

  @parameterized.parameters(
    ([0.0, 0.0], [[0], [1], [2]]),
    ([0.05, 0.049, 0.5], [[0, 1], [2, 3]]),
    ([], [[0]]),
  )
  def test_tie_groups(self, flips, expected) -> None:
    self.assertEqual(intervals.tie_groups(flips, threshold=0.05), expected)


class SampleIntervalTest(parameterized.TestCase):
  @parameterized.parameters("mean", "median")
  def test_agrees_with_scipy(self, statistic: str) -> None:
    sample = np.random.default_rng(4).normal(size=31)
    low, high = intervals.percentile_interval(
      sample, statistic=statistic, level=0.9, replicates=4000, seed=5
    )
    theirs = scipy.stats.bootstrap(
      (sample,),
      getattr(np, statistic),
      n_resamples=4000,
      confidence_level=0.9,
      method="percentile",
      rng=np.random.default_rng(6),
    )
    # Four standard errors of an end: about 2 sd / sqrt(4000) each.
    limit = 4 * 2.8 * theirs.standard_error / np.sqrt(4000)
    np.testing.assert_allclose(
      (low, high), tuple(theirs.confidence_interval), rtol=0, atol=limit
    )

  def test_edges(self) -> None:
    def run(values: list[float], statistic: str = "mean"):
      return intervals.percentile_interval(
        values, statistic=statistic, level=0.95, replicates=100, seed=0
      )

    self.assertEqual(run([]), (None, None))
    self.assertEqual(run([2.5]), (2.5, 2.5))
    self.assertEqual(run([2.5, 1.0]), run([2.5, 1.0]))
    with self.assertRaisesRegex(ValueError, "mode"):
      run([1.0], "mode")


if __name__ == "__main__":
  absltest.main()
