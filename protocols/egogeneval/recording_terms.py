# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""What ties the cameras of a recording: features, surfaces, outlines.

Three kinds of measurement over an RGB-D recording:

- features: a colour feature with depth, seen again in another colour image;
- planes: a depth pixel of one frame against the tangent plane of the surface
  that another frame recorded there;
- outlines: depth discontinuities against the nearest strong colour edge.

Poses are camera-to-world [n, 4, 4]; pixel centres are integers.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Protocol

import cv2
import numpy as np
from numpy.typing import NDArray

from protocols.egogeneval import local_features, registration

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_MIN_DEPTH, _MAX_DEPTH = 0.3, 5.0  # Where structured light is good.
_SMOOTH_WINDOW = 7
_PLANE_STEP = 8
_PLANE_REACH = 0.08
_PLANE_JUMP = 0.05
_JUMP_M = 0.06
_CANNY = (60, 150)
_FAR_PX = 25.0


class View(Protocol):
  """One frame of a recording; `scenes.SceneFrame` is one."""

  def image(self) -> NDArray[np.uint8]:
    """RGB uint8 [h, w, 3]."""

  @property
  def read_depth(self) -> Callable[[], NDArray[np.float32]]:
    """Reads float32 [h', w'] of the depth camera, NaN = unknown."""


@dataclasses.dataclass(frozen=True, eq=False)
class Matches:
  """Feature matches, without depth yet.

  Attributes:
    source, target: [n] frames.
    xy_source, xy_target: [n, 2] colour pixels, as the lens drew them.
  """

  source: Ints
  target: Ints
  xy_source: Floats
  xy_target: Floats

  def take(self, index: NDArray[np.generic]) -> Matches:
    """Chosen rows."""
    return Matches(
      self.source[index],
      self.target[index],
      self.xy_source[index],
      self.xy_target[index],
    )


@dataclasses.dataclass(frozen=True, eq=False)
class Planes:
  """Points of one frame on surfaces of another, in depth camera axes.

  Attributes:
    source, target: [n] frames.
    points: [n, 3] in the source's depth camera.
    anchors, normals: [n, 3] in the target's depth camera.
  """

  source: Ints
  target: Ints
  points: Floats
  anchors: Floats
  normals: Floats


def match(
  views: Sequence[View],
  pairs: Sequence[tuple[int, int]],
  *,
  features: local_features.LocalFeatures,
  limit: int,
) -> Matches:
  """Matches of frame pairs, both directions, at most `limit` per pair."""
  rng = np.random.default_rng(0)
  parts: list[tuple[Ints, Ints, Floats, Floats]] = []
  for first, second in pairs:
    a, b = features.matches(views[first].image(), views[second].image())
    if len(a) > limit:
      chosen = rng.choice(len(a), limit, replace=False)
      a, b = a[chosen], b[chosen]
    ones = np.ones(len(a), np.int64)
    parts.append((first * ones, second * ones, a, b))
    parts.append((second * ones, first * ones, b, a))
  if not parts:
    none = np.zeros(0, np.int64)
    return Matches(none, none, np.zeros((0, 2)), np.zeros((0, 2)))
  columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
  return Matches(*columns)


def depth_of(
  source: Ints,
  xy_source: Floats,
  registered: Callable[[int], NDArray[np.float32]],
) -> Floats:
  """[n] depth of the source features, NaN where unknown or near an edge.

  Args:
    source: [n] frames.
    xy_source: [n, 2] pinhole pixels.
    registered: depth of a frame in its colour image.
  """
  depth = np.full(len(source), np.nan)
  for frame in np.unique(source).tolist():
    rows = np.flatnonzero(source == frame)
    registered_depth = registered(frame)
    smooth = registration.is_smooth(registered_depth, window=_SMOOTH_WINDOW)
    height, width = registered_depth.shape
    xy = np.rint(xy_source[rows]).astype(int)
    column = np.clip(xy[:, 0], 0, width - 1)
    row = np.clip(xy[:, 1], 0, height - 1)
    z = registered_depth[row, column]
    good = smooth[row, column] & (z > _MIN_DEPTH) & (z < _MAX_DEPTH)
    depth[rows] = np.where(good, z, np.nan)
  return depth


class SurfaceMaps:
  """Points and normals of every frame's depth, thinned."""

  def __init__(self, views: Sequence[View], intrinsics: Floats) -> None:
    """Args:
    views: the frames.
    intrinsics: [3, 3] of the depth camera.
    """
    self._step = _PLANE_STEP
    self._intrinsics = intrinsics
    self._points = [
      registration.unproject(view.read_depth(), intrinsics)[
        :: self._step, :: self._step
      ]
      for view in views
    ]
    self._normals = [_normals(points) for points in self._points]

  def planes(
    self,
    poses_depth: Floats,
    pairs: Sequence[tuple[int, int]],
    *,
    limit: int,
  ) -> Planes:
    """Correspondences under some poses of the depth camera.

    Args:
      poses_depth: [n, 4, 4] depth camera-to-world.
      pairs: frame pairs; the first is the source.
      limit: points per pair.
    """
    rng = np.random.default_rng(0)
    parts = [
      self._pair(poses_depth, first, second, limit, rng)
      for first, second in pairs
    ]
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    return Planes(*columns)

  def _pair(
    self,
    poses: Floats,
    first: int,
    second: int,
    limit: int,
    rng: np.random.Generator,
  ) -> tuple[Ints, Ints, Floats, Floats, Floats]:
    motion = np.linalg.inv(poses[second]) @ poses[first]
    points = self._points[first].reshape(-1, 3)
    points = points[np.isfinite(points[:, 2]) & (points[:, 2] < _MAX_DEPTH)]
    moved = points @ motion[:3, :3].T + motion[:3, 3]
    ahead = moved[:, 2] > _MIN_DEPTH
    points, moved = points[ahead], moved[ahead]
    pixels = registration.project(moved, self._intrinsics) / self._step
    column, row = np.rint(pixels).astype(int).T
    height, width = self._points[second].shape[:2]
    inside = (column >= 0) & (column < width) & (row >= 0) & (row < height)
    points, moved = points[inside], moved[inside]
    anchors = self._points[second][row[inside], column[inside]]
    normals = self._normals[second][row[inside], column[inside]]
    near = np.linalg.norm(moved - anchors, axis=1) < _PLANE_REACH
    usable = np.flatnonzero(near & np.isfinite(normals[:, 0]))
    if len(usable) > limit:
      usable = rng.choice(usable, limit, replace=False)
    ones = np.ones(len(usable), np.int64)
    return (
      first * ones, second * ones,
      points[usable], anchors[usable], normals[usable],
    )  # fmt: skip


def _normals(points: Floats) -> Floats:
  """Normals of a grid of points; NaN at borders, jumps and unknown depth."""
  across = points[1:-1, 2:] - points[1:-1, :-2]
  down = points[2:, 1:-1] - points[:-2, 1:-1]
  normal = np.cross(across, down)
  length = np.linalg.norm(normal, axis=-1, keepdims=True)
  limit = _PLANE_JUMP * points[1:-1, 1:-1, 2]
  flat = (np.abs(across[..., 2]) < limit) & (np.abs(down[..., 2]) < limit)
  found = np.full_like(points, np.nan)
  good = flat & (length[..., 0] > 0)
  unit = normal / np.where(length > 0, length, 1.0)
  found[1:-1, 1:-1] = np.where(good[..., None], unit, np.nan)
  return found


class Outlines:
  """Depth discontinuities and distances to colour edges of some frames."""

  def __init__(self, views: Sequence[View], intrinsics: Floats) -> None:
    """Args:
    views: the frames.
    intrinsics: [3, 3] of the depth camera.
    """
    self._points = [_outline_points(v.read_depth(), intrinsics) for v in views]
    self._distance = [_edge_distance(v.image()) for v in views]

  def residual(
    self, intrinsics_colour: Floats, lens: Floats, depth_to_colour: Floats
  ) -> Floats:
    """[n] pixels from each outline point to the nearest colour edge."""
    parts = []
    for points, distance in zip(self._points, self._distance, strict=True):
      moved = points @ depth_to_colour[:3, :3].T + depth_to_colour[:3, 3]
      pinhole = registration.project(moved, intrinsics_colour)
      xy = registration.distort(pinhole, intrinsics_colour, lens)
      xy = xy.astype(np.float32)
      found = cv2.remap(
        distance,
        xy[:, :1],
        xy[:, 1:],
        cv2.INTER_LINEAR,
        borderValue=_FAR_PX,
      )
      parts.append(np.asarray(found, np.float64).ravel())
    return np.concatenate(parts) if parts else np.zeros(0)


def _outline_points(depth: NDArray[np.float32], intrinsics: Floats) -> Floats:
  """[n, 3] points on the near side of depth jumps."""
  near = np.zeros(depth.shape, bool)
  for axis in (0, 1):
    for step in (1, -1):
      # Unknown depth compares as false.
      near |= np.roll(depth, step, axis) - depth > _JUMP_M
  near[[0, -1]] = near[:, [0, -1]] = False
  return registration.unproject(depth, intrinsics)[near]


def _edge_distance(image: NDArray[np.uint8]) -> NDArray[np.float32]:
  """Distance of every pixel to the nearest strong edge, at most 25 pixels."""
  grey = cv2.GaussianBlur(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY), (0, 0), 1.0)
  edges = cv2.Canny(grey, *_CANNY)
  distance = cv2.distanceTransform(255 - edges, cv2.DIST_L2, 5)
  return np.asarray(np.minimum(distance, _FAR_PX), np.float32)
