# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Point tracks without a neural network: pyramidal Lucas-Kanade.

A point is followed from frame to frame and back again. It stays visible while
it returns to within `round_trip` pixels of where it began, inside the picture;
after the first failure it keeps its last position, is invisible, and is not
looked for again. Confidence is 1 / (1 + (miss / round_trip)^2) of the worst
step so far, so it is at least 0.5 exactly while the point is visible. A slow
slide along an edge passes the round trip and is not noticed.
"""

from __future__ import annotations

import cv2
import numpy as np

from perception import errors, observation, registry, roles, seeding

VERSION = "1"


class LucasKanadeTracks:
  """The `tracks` role on a CPU; see the module docstring."""

  def __init__(
    self, *, window: int = 21, levels: int = 4, round_trip: float = 1.0
  ) -> None:
    """Fixes the options.

    Args:
      window: side of the compared patch, pixels of the working frame.
      levels: pyramid levels above the full one.
      round_trip: largest miss after going one frame forth and back, pixels of
        the working frame (frames with a side above 880 are worked on smaller).
    """
    self._window = window
    self._levels = levels
    self._round_trip = round_trip
    settings = {
      "window": window,
      "levels": levels,
      "round_trip": round_trip,
      "opencv": cv2.__version__,
    }
    entry = registry.spec("tracks", "lucas_kanade")
    self._info = registry.info(entry, VERSION, settings=settings)

  @property
  def info(self) -> roles.BackendInfo:
    """Identity and settings."""
    return self._info

  def track(
    self, frames: roles.FrameSource, queries: roles.Queries
  ) -> observation.Tracks:
    """See `roles.TracksBackend.track`.

    Before its query frame a point has the query's position and is invisible.

    Raises:
      InputError: queries outside the clip or picture.
    """
    size, count = frames.size, len(frames)
    _check_queries(queries, size=size, frames=count)
    work = seeding.tracker_size(size)
    scale = np.array([work[1] / size[1], work[0] / size[0]])
    number = len(queries.xy)
    position = (queries.xy + 0.5) * scale - 0.5
    confidence = np.zeros(number)
    xy = np.empty((count, number, 2))
    scores = np.zeros((count, number), np.float32)
    previous: np.ndarray = np.zeros(work, np.uint8)
    for row, frame in enumerate(frames):
      small = frame
      if size != work:
        small = cv2.resize(frame, work[::-1], interpolation=cv2.INTER_AREA)
      current = cv2.cvtColor(small, cv2.COLOR_RGB2GRAY)
      alive = np.flatnonzero(confidence >= 0.5)
      if alive.size:
        moved, miss = self._step(previous, current, position[alive], work)
        score = 1 / (1 + (miss / self._round_trip) ** 2)
        confidence[alive] = np.minimum(confidence[alive], score)
        kept = confidence[alive] >= 0.5
        position[alive[kept]] = moved[kept]
        confidence[alive[~kept]] = 0.0
      confidence[queries.frame_row == row] = 1.0
      xy[row] = position
      scores[row] = confidence
      previous = current
    return observation.Tracks(
      xy=((xy + 0.5) / scale - 0.5).astype(np.float32),
      visible=scores >= 0.5,
      confidence=scores,
      query_frame=queries.frame_row,
      provenance=self._info.provenance(frames.sha256),
      frame_indices=np.asarray(frames.frame_indices),
      object_ids=queries.object_ids,
      video_size=size,
    )

  def _step(
    self,
    previous: np.ndarray,
    current: np.ndarray,
    position: np.ndarray,
    work: tuple[int, int],
  ) -> tuple[np.ndarray, np.ndarray]:
    """(positions, round-trip miss) in the next frame; miss inf = not found."""
    start = position.astype(np.float32).reshape(-1, 1, 2)
    moved, found = self._follow(previous, current, start)
    returned, found_back = self._follow(current, previous, moved)
    miss = np.linalg.norm((returned - start).reshape(-1, 2), axis=1)
    moved = moved.reshape(-1, 2)
    limit = np.array([work[1], work[0]]) - 0.5
    inside = np.all((moved >= -0.5) & (moved <= limit), axis=1)
    return moved, np.where(found & found_back & inside, miss, np.inf)

  def _follow(
    self, source: np.ndarray, target: np.ndarray, xy: np.ndarray
  ) -> tuple[np.ndarray, np.ndarray]:
    moved, status, _ = cv2.calcOpticalFlowPyrLK(
      source,
      target,
      xy,
      np.empty_like(xy),
      winSize=(self._window, self._window),
      maxLevel=self._levels,
    )
    return np.asarray(moved), np.asarray(status).reshape(-1) > 0


def _check_queries(
  queries: roles.Queries, *, size: tuple[int, int], frames: int
) -> None:
  """Raises InputError unless every query lies in the clip."""
  xy = np.asarray(queries.xy)
  count = len(xy)
  limit = np.array([size[1], size[0]]) - 0.5
  shapes = xy.shape == (count, 2) and all(
    np.shape(value) == (count,)
    for value in (queries.frame_row, queries.object_ids)
  )
  if not (
    shapes
    and np.all((xy >= -0.5) & (xy <= limit))
    and np.all((queries.frame_row >= 0) & (queries.frame_row < frames))
  ):
    raise errors.InputError(
      "queries",
      "xy, frame_row",
      found=f"shape {xy.shape}, some point outside the clip",
      expected=f"points inside {size[1]}x{size[0]}, rows in 0..{frames - 1}",
    )
