# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""The benchmark's data and baselines measure the same statistic."""

from __future__ import annotations

import numpy as np
from absl.testing import absltest

from protocols.statistics import benchmark, plan
from protocols.statistics.config import Resampling


class BenchmarkTest(absltest.TestCase):
  def test_baselines_agree_with_the_point(self) -> None:
    table = benchmark.case_table()
    self.assertEqual(table.values.shape, (2, 18, 1400))
    planned = plan.build(
      table, Resampling("scene", "source"), keep_protocols=False
    )
    self.assertEqual(planned.streams[0].num_units, 771)
    point = plan.point(planned)[:, 0].mean(axis=0)
    for baseline in (
      benchmark.numpy_matmul(planned, 600),
      benchmark.numpy_loop(table, 600),
    ):
      error = baseline.std(axis=0) / np.sqrt(600)
      np.testing.assert_array_less(
        np.abs(baseline.mean(axis=0) - point), 5 * error
      )


if __name__ == "__main__":
  absltest.main()
