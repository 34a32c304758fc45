# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""The perception suite runs, and says why a backend did not."""

import math

import numpy as np
from absl.testing import absltest

from perception import registry
from protocols import perception_benchmark


class PerceptionBenchmarkTest(absltest.TestCase):
  def test_quick(self):
    works = [
      work
      for work in perception_benchmark._works()
      if work.name in ("lucas_kanade", "gradient_orientation")
      or not registry.availability(work.role, work.name).available
    ]
    with absltest.mock.patch.object(
      perception_benchmark, "_works", lambda: works
    ):
      rows = perception_benchmark.run(quick=True)
    by_name = {row.name.split(",")[0]: row for row in rows}
    self.assertGreater(by_name["tracks lucas_kanade"].warm_s, 0)
    self.assertIn("320x240", by_name["tracks lucas_kanade"].note)
    for work in works:
      row = by_name[f"{work.role} {work.name}"]
      if not registry.availability(work.role, work.name).available:
        self.assertTrue(math.isnan(row.warm_s))
        self.assertStartsWith(row.note, "not run: not")

  def test_every_name_is_registered(self):
    for work in perception_benchmark._works():
      self.assertIn(work.name, registry.names(work.role))

  def test_the_clip_moves_in_layers(self):
    frames = perception_benchmark._clip().frames
    self.assertEqual(frames.shape, (8, 240, 320, 3))
    np.testing.assert_array_equal(frames[1, :80, :-3], frames[0, :80, 3:])


if __name__ == "__main__":
  absltest.main()
