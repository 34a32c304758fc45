# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Which frames and frame pairs of a video are measured: integers only.

Frame numbers start at 0. None of these schedules depends on what an estimator
managed to recover, so a failed pair is never replaced by a luckier one.
"Directional items" are ordered (source, target) frame pairs; every kept pair
(i, j) contributes (i, j) and then (j, i). Sections refer to the project's
Orbia specification.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from protocols.orbia.constants import Constants

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


def spread(count: int, limit: int) -> Ints:
  """Positions trunc(linspace(0, count-1, limit)), or all when few enough.

  Args:
    count: number of entries to choose from.
    limit: largest number of positions.

  Returns:
    int64 [min(count, limit)], increasing.
  """
  if count <= limit:
    return np.arange(count)
  return np.linspace(0, count - 1, limit).astype(np.int64)


def sampling_plan(
  frame_count: int,
  event_frames: Iterable[int],
  revisit_frames: Iterable[int],
  *,
  c: Constants,
) -> Ints:
  """Frames whose geometry is recovered (2.5).

  Args:
    frame_count: number of frames of the case, at least 1.
    event_frames: frames of all events, waypoints included.
    revisit_frames: frames of the registered revisit pairs.
    c: constants.

  Returns:
    int64 [M], increasing: every second frame, both ends, events, revisits.
  """
  frames = set(range(0, frame_count, c.frame_stride)) | {0, frame_count - 1}
  frames |= {int(f) for f in event_frames} | {int(f) for f in revisit_frames}
  return np.array(sorted(frames), np.int64)


def primary_frames(frames: Ints, *, c: Constants) -> Ints:
  """The frames of `frames` that enter the pose scores (2.5)."""
  return frames[frames % c.frame_stride == 0]


def pair_items(plan: Ints, *, offset: int, limit: int) -> Ints:
  """Directional items of one group (7.1).

  Args:
    plan: sampling plan, increasing.
    offset: wanted distance in frames.
    limit: largest number of pairs kept.

  Returns:
    int64 [2 * pairs, 2] of (source, target) frames.
  """
  place = np.flatnonzero(plan[:-1] + offset <= plan[-1])
  wanted = plan[place] + offset
  above = np.searchsorted(plan, wanted)
  below = np.maximum(above - 1, place + 1)  # a partner is a later frame
  # Ties go to the smaller frame.
  nearer = wanted - plan[below] <= plan[above] - wanted
  partner = plan[np.where(nearer, below, above)]
  pairs = np.stack([plan[place], partner], axis=1).reshape(-1, 2)
  kept = pairs[spread(len(pairs), limit)]
  return np.stack([kept, kept[:, ::-1]], axis=1).reshape(-1, 2)


def feature_positions(item_count: int, *, c: Constants) -> Ints:
  """Positions of the items of a group whose features are compared (7.5).

  Args:
    item_count: number of directional items of the group.
    c: constants; `feature_pairs` keeps both directions of 16 pairs (15.3).

  Returns:
    int64 positions into the group's items, increasing.
  """
  if not c.feature_pairs:
    return spread(item_count, c.feature_items)
  pairs = spread(item_count // 2, c.feature_items)
  return np.stack([2 * pairs, 2 * pairs + 1], axis=1).reshape(-1)


def reconstruction_frames(
  plan: Ints, *, c: Constants
) -> tuple[Ints, Ints] | None:
  """Context and held-out frames of the reconstruction (7.7).

  Args:
    plan: sampling plan.
    c: constants.

  Returns:
    (context [64], held-out [16]); None with fewer than 80 sampled frames.
  """
  count = len(plan)
  if count < c.context_views + c.heldout_views:
    return None
  steps = (np.arange(c.heldout_views) + 0.5) * (count - 1) / c.heldout_views
  heldout = np.rint(steps).astype(np.int64)
  rest = np.delete(np.arange(count), heldout)
  last = c.context_views - 1
  context = np.rint(np.arange(c.context_views) * (len(rest) - 1) / last)
  return plan[rest[context.astype(np.int64)]], plan[heldout]


def identity_frames(
  start: int, end: int, *, c: Constants
) -> tuple[Ints, list[int]]:
  """Tracking and scoring frames between input and query (5.7).

  Args:
    start: video frame of `q0`.
    end: video frame of `qe1`, not before `start`.
    c: constants.

  Returns:
    (tracking frames, increasing; scoring frames in order, no repeats).
  """
  scoring: list[int] = []
  for fraction in c.identity_fractions:
    frame = int(np.floor(start + fraction * (end - start) + 0.5))
    frame = min(end, max(start + 1, frame))
    if frame not in scoring:
      scoring.append(frame)
  tracking = set(range(start, end + 1, c.tracking_stride))
  return np.array(sorted(tracking | {start, end, *scoring})), scoring


def video_frames(
  timestamps_s: Floats, *, fps: float, frame_count: int, c: Constants
) -> Ints:
  """Video frame of every requested time, -1 where the video has none (2.4).

  Args:
    timestamps_s: requested times, [N] seconds.
    fps: frame rate of the container, used by `container_clock` only (15.10).
    frame_count: frames in the video.
    c: constants.

  Returns:
    int64 [N].
  """
  rate = fps if c.container_clock else c.fps
  frame = np.rint(timestamps_s * rate).astype(np.int64)
  off = np.abs(frame / rate - timestamps_s) > c.frame_tolerance / rate
  return np.where((frame < 0) | (frame >= frame_count) | off, -1, frame)


def hps_frames(frame_count: int, *, c: Constants) -> Ints:
  """Frames judged by the preference model (4)."""
  wanted = c.hps_frames[int(frame_count > c.long_above)]
  return np.linspace(0, frame_count - 1, wanted).astype(np.int64)


def smoothness_frames(frame_count: int, *, c: Constants) -> Ints:
  """Frames of the triplets (t, t+1, t+2), t = 0, 8, 16, ... (4)."""
  starts = np.arange(0, max(frame_count - 2, 0), c.smoothness_stride)
  return (starts[:, None] + np.arange(3)).reshape(-1)


def windows(frame_count: int, *, fps: float, c: Constants) -> Floats:
  """Time windows of a video (8.1).

  Args:
    frame_count: frames in the video.
    fps: frame rate of its clock.
    c: constants.

  Returns:
    float64 [W, 2] of (start, end) seconds; all but the last are half-open.
  """
  duration = (frame_count - 1) / fps
  if duration < c.window_s:
    return np.array([[0.0, duration]])
  last = duration - c.window_s
  starts = list(np.arange(0.0, last + c.window_slack_s, c.window_s))
  if abs(starts[-1] - last) > c.window_slack_s:
    starts.append(last)
  return np.array([[s, s + c.window_s] for s in starts])


def window_members(
  times_s: Floats, bounds: Floats, *, c: Constants
) -> NDArray[np.bool_]:
  """Which samples fall into which window (8.1).

  Args:
    times_s: [n] seconds.
    bounds: [W, 2] from `windows`.
    c: constants.

  Returns:
    bool [W, n]; overlapping windows share samples.
  """
  inside = (times_s >= bounds[:, :1]) & (times_s < bounds[:, 1:])
  inside[-1] |= (times_s >= bounds[-1, 0]) & (
    times_s <= bounds[-1, 1] + c.window_slack_s
  )
  return inside


def item_groups(plan: Sequence[int] | Ints, *, c: Constants) -> dict[str, Ints]:
  """Directional items of both groups (7.1), short first."""
  pool = np.asarray(plan, np.int64)
  return {
    name: pair_items(pool, offset=offset, limit=limit)
    for name, offset, limit in c.offsets
  }
