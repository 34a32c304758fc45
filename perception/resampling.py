# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Which rows of a clip to use, from its timestamps alone."""

from __future__ import annotations

import fractions

import numpy as np

from perception import errors

# Half a microsecond: a frame meant to lie on the grid but stored rounded
# still counts as being there.
_SLACK = 5e-7


def nearest_rows(
  timestamps: np.ndarray, *, fps: float | fractions.Fraction
) -> np.ndarray:
  """Rows whose times are nearest to 0, 1/fps, 2/fps, ... up to the last frame.

  Nothing is extrapolated: the last wanted time is not later than the last
  timestamp. Of two equally near frames the earlier one is taken. When the
  source is slower than `fps` rows repeat.

  Args:
    timestamps: [T] seconds, strictly increasing; the first counts as time 0.
    fps: wanted rate, > 0.

  Returns:
    [N] int64, not decreasing, beginning with 0.

  Raises:
    InputError: no timestamp, timestamps that do not increase, or a bad rate.

  Source: specs/pdi_bench.md 1.3.
  """
  times = np.asarray(timestamps, np.float64)
  if times.ndim != 1 or not times.size or not np.all(np.diff(times) > 0):
    raise errors.InputError(
      "resampling",
      "timestamps",
      found=f"shape {times.shape}, not increasing" if times.size else "none",
      expected="strictly increasing seconds",
    )
  if not fps > 0:
    raise errors.InputError("resampling", "fps", found=fps, expected="> 0")
  times = times - times[0]
  rate = float(fps)
  count = int(np.floor((times[-1] + _SLACK) * rate)) + 1
  wanted = np.arange(count) / rate
  middle = (times[1:] + times[:-1]) / 2
  return np.searchsorted(middle, wanted - _SLACK, side="left").astype(np.int64)


def central_window(count: int, *, limit: int) -> tuple[int, int]:
  """(start, length) of the middle `limit` of `count` frames.

  start = floor((count - length) / 2), length = min(count, limit).

  Source: specs/pdi_bench.md 1.3.
  """
  length = min(count, limit)
  return (count - length) // 2, length
