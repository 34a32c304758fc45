# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Which rows a resampled clip takes."""

import hypothesis
import numpy as np
from absl.testing import absltest, parameterized
from hypothesis import strategies

from perception import errors, resampling


class NearestRowsTest(parameterized.TestCase):
  """Nearest timestamps on a regular grid."""

  @parameterized.named_parameters(
    # Times 0, 1/24, ... up to 4/30 = 0.1333: 0, .0417, .0833, .125.
    ("30_to_24", np.arange(5) / 30, 24, [0, 1, 2, 4]),
    # 0, .1, .2 against 0, .0417, ..., .1667 (k = 4): ties go to the earlier.
    ("10_to_24", np.arange(3) / 10, 24, [0, 0, 1, 1, 2]),
    ("same_rate", np.arange(6) / 24, 24, [0, 1, 2, 3, 4, 5]),
    ("halved", np.arange(6) / 24, 12, [0, 2, 4]),
    ("tie_takes_earlier", np.array([0.0, 1.0]), 2, [0, 0, 1]),
    ("one_frame", np.array([7.5]), 24, [0]),
    ("offset_is_removed", 100 + np.arange(4) / 24, 24, [0, 1, 2, 3]),
    ("variable", np.array([0.0, 0.02, 0.30, 0.31]), 10, [0, 1, 2, 2]),
  )
  def test_by_hand(self, timestamps, fps, expected):
    rows = resampling.nearest_rows(timestamps, fps=fps)
    np.testing.assert_array_equal(rows, expected)

  def test_rounded_milliseconds_keep_every_frame(self):
    """WebM stores 0.042 for 1/24; no frame is dropped or doubled for it."""
    timestamps = np.round(np.arange(288) / 24, 3)
    rows = resampling.nearest_rows(timestamps, fps=24)
    np.testing.assert_array_equal(rows[:287], np.arange(287))

  @hypothesis.settings(max_examples=60, deadline=None)
  @hypothesis.given(
    steps=strategies.lists(
      strategies.floats(0.005, 0.5), min_size=0, max_size=30
    ),
    fps=strategies.sampled_from([7, 24, 29.97, 60]),
  )
  def test_equals_a_plain_search(self, steps, fps):
    timestamps = np.concatenate([[0.0], np.cumsum(steps)])
    rows = resampling.nearest_rows(timestamps, fps=fps)
    wanted = np.arange(len(rows)) / fps
    self.assertLessEqual(wanted[-1], timestamps[-1] + 1e-6)
    self.assertGreater(wanted[-1] + 1 / fps, timestamps[-1])
    distance = np.abs(timestamps[None] - wanted[:, None])
    taken = distance[np.arange(len(rows)), rows]
    np.testing.assert_allclose(taken, distance.min(axis=1), atol=2e-6)
    self.assertTrue(np.all(np.diff(rows) >= 0))

  @parameterized.named_parameters(
    ("none", np.array([]), 24),
    ("equal", np.array([0.0, 0.0]), 24),
    ("backward", np.array([0.0, -1.0]), 24),
    ("rate", np.array([0.0, 1.0]), 0),
    ("nan", np.array([0.0, np.nan]), 24),
  )
  def test_refused(self, timestamps, fps):
    with self.assertRaises(errors.InputError):
      resampling.nearest_rows(timestamps, fps=fps)

  @parameterized.parameters(
    (300, 288, 6, 288),
    (289, 288, 0, 288),
    (291, 288, 1, 288),
    (288, 288, 0, 288),
    (10, 288, 0, 10),
    (0, 288, 0, 0),
  )
  def test_central_window(self, count, limit, start, length):
    self.assertEqual(
      resampling.central_window(count, limit=limit), (start, length)
    )


if __name__ == "__main__":
  absltest.main()
