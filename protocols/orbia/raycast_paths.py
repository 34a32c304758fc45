# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Paths of the six templates in closed form, and what stands beside them.

The paths follow the idea of each template (specification, 11.5): a smooth
progress out and back about the turnaround, so that registered visits of all
templates but the arc have equal poses; the arc returns on its other side.
World axes are those of the calibration world: x right, y down, z forward,
the ground at y = 0. Poses are camera-to-world.
"""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from protocols.orbia.baselines import turned

EYE = np.array([0.0, -1.5, 0.0])
# Templates: reach at the turnaround in metres or degrees.
_FORWARD, _SIDE, _YAW, _ORBIT, _ARC_BOW = 5.0, 7.0, 110.0, 120.0, 1.2
_FOCUS = np.array([0.0, -1.5, 7.0])
# Landmarks: candidate places from the first visit, and what they must keep.
_DISTANCES = np.arange(1.2, 9.1, 0.4)  # metres
_BEARINGS_DEG = np.arange(-24.0, 25.0, 4.0)
_CLEARANCE = 0.8  # metres to every camera position
_LONG_ENOUGH = 24  # frames out of sight; more are not better
_IN_SIGHT_DEG = 31.0  # at the revisit; half the picture is 32.6
_OUT_OF_SIGHT_DEG = 55.0  # off the viewing direction; its own width is 20


def path_of(
  template: str, *, frame_count: int, turnaround: int
) -> NDArray[np.float64]:
  """World poses [N, 4, 4]: out until the turnaround, then back."""
  frames = np.arange(frame_count)
  out = frames <= turnaround
  share = np.where(
    out,
    frames / turnaround,
    (frame_count - 1 - frames) / (frame_count - 1 - turnaround),
  )
  progress = share * share * (3 - 2 * share)
  poses = []
  for p, going_out in zip(progress, out, strict=True):
    position, yaw = _place(template, float(p), bool(going_out))
    pose = turned(np.eye(4), yaw)
    pose[:3, 3] = EYE + position
    poses.append(pose)
  return np.stack(poses)


def landmark_place(
  path: NDArray[np.float64], *, first: int, revisit: int
) -> NDArray[np.float64]:
  """Where something stands that is seen at a visit and unseen before the next.

  Args:
    path: [N, 4, 4] world poses.
    first: frame of the first visit.
    revisit: frame of the revisit.

  Returns:
    [3] foot point on the ground. It lies ahead of the camera at both visits,
    clear of the path, and out of sight for some time between them; of equal
    places the nearest wins.

  Raises:
    ValueError: no candidate place is ever out of sight.
  """
  pose = path[first]
  best: tuple[tuple[int, float], NDArray[np.float64]] | None = None
  for distance, bearing in itertools.product(_DISTANCES, _BEARINGS_DEG):
    ray = turned(pose, float(bearing))[:3, 2]
    foot = pose[:3, 3] + distance * ray
    foot[1] = 0.0
    away = path[:, [0, 2], 3] - foot[[0, 2]]
    if np.linalg.norm(away, axis=1).min() < _CLEARANCE:
      continue
    if _off_axis_deg(path[[revisit]], foot)[0] > _IN_SIGHT_DEG:
      continue
    hidden = int(
      np.sum(_off_axis_deg(path[first:revisit], foot) > _OUT_OF_SIGHT_DEG)
    )
    rank = (min(hidden, _LONG_ENOUGH), -float(distance))
    if best is None or rank > best[0]:
      best = rank, foot
  if best is None or not best[0][0]:
    raise ValueError("nothing beside the path is ever out of sight")
  return best[1]


def _off_axis_deg(
  poses: NDArray[np.float64], foot: NDArray[np.float64]
) -> NDArray[np.float64]:
  """Horizontal angles between viewing directions and a place, degrees."""
  offset = foot - poses[:, :3, 3]
  right = np.sum(poses[:, :3, 0] * offset, axis=1)
  ahead = np.sum(poses[:, :3, 2] * offset, axis=1)
  return np.degrees(np.abs(np.arctan2(right, ahead)))


def _place(
  template: str, p: float, going_out: bool
) -> tuple[NDArray[np.float64], float]:
  """Position and yaw (degrees, right positive) at progress p in [0, 1]."""
  side = np.sin(np.pi * p)
  if template == "forward_backward":
    return np.array([0.0, 0.0, _FORWARD * p]), 0.0
  if template == "lateral_out_and_back":
    return np.array([_SIDE * p, 0.0, 0.0]), 20.0 * p
  if template == "yaw_return":
    return np.array([0.02 * p, 0.0, 0.0]), _YAW * p
  if template == "arc_return":
    bow = _ARC_BOW * side * (1.0 if going_out else -1.0)
    return np.array([bow, 0.0, _FORWARD * p]), 45.0 * p
  if template == "orbit_around_anchor":
    angle = np.radians(_ORBIT * p)
    eye = np.array([0.0, EYE[1], 0.0])
    radius = np.linalg.norm((_FOCUS - eye)[[0, 2]])
    position = radius * np.array([-np.sin(angle), 0.0, 1.0 - np.cos(angle)])
    return position, _ORBIT * p
  out = np.array([1.5 * side, 0.0, 3.0 * np.sin(np.pi * min(p, 0.5) * 1.0)])
  return out * (1.0 - 0.8 * max(p - 0.6, 0.0)), 60.0 * side
