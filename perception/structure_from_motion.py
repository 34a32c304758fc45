# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Cameras and sparse points of a static scene from a short clip.

Incremental: an initial pair by essential matrix, further pictures by PnP, new
points by triangulation, bundle adjustment in between. Every way to fail that
can be told from the data is a `DegenerateError`: too few matches, a camera
that does not translate, a scene that moves, pictures that do not connect.

World-to-camera [T, 3, 4] in the first picture's frame; the scale is arbitrary
(median depth of the initial pair = 1). Pixel centres at integers.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence

import cv2
import numpy as np

from perception import bundle_adjustment as ba
from perception import two_view
from perception.degenerate import DegenerateError

MIN_PARALLAX_DEG = 1.0
MIN_RESIDUAL_PX = 1.5
MIN_STATIC_FRACTION = 0.5
_GOOD_RESIDUAL_DEG = 5.0
_MIN_ANGLE_DEG = 1.0
_OUTLIER_PX = 3.0
_PNP_PX = 4.0
_MIN_PNP = 20
_MIN_PNP_SHARE = 0.3
_ADJUST_EVERY = 5
_EXPECTED_STATIC = "a static scene seen from different places"

# `bundle_adjustment.adjust` or another solver of the same problem.
Adjust = Callable[..., ba.Solution]


@dataclasses.dataclass(frozen=True, eq=False)
class Tracks:
  """The same scene point in several pictures.

  Attributes:
    camera: [M] int, picture of each observation.
    track: [M] int, its track, 0..N-1.
    xy: [M, 2] pixels.
    count: N.
  """

  camera: np.ndarray
  track: np.ndarray
  xy: np.ndarray
  count: int


@dataclasses.dataclass(frozen=True, eq=False)
class Reconstruction:
  """Sparse result.

  Attributes:
    w2c: [T, 3, 4].
    intrinsics: [3, 3].
    points: [P, 3] world.
    seen: observations of the points.
    error_px: median reprojection error.
  """

  w2c: np.ndarray
  intrinsics: np.ndarray
  points: np.ndarray
  seen: ba.Observations
  error_px: float


def check_parallax(
  pairs: Mapping[tuple[int, int], two_view.Pair],
  intrinsics: np.ndarray,
  source: str,
) -> None:
  """Raises DegenerateError unless some pair shows depth, and most are static.

  Args:
    pairs: verified pairs.
    intrinsics: [3, 3].
    source: name for the message.
  """
  if not pairs:
    raise DegenerateError(
      source,
      "matches",
      found=f"no pair of frames with {two_view.MIN_INLIERS} matches",
      expected=_EXPECTED_STATIC,
    )
  static = float(
    np.median([len(pair.matches) / pair.proposed for pair in pairs.values()])
  )
  if static < MIN_STATIC_FRACTION:
    raise DegenerateError(
      source,
      "motion",
      found=f"only {static:.0%} of the matches move like a static scene",
      expected=_EXPECTED_STATIC,
    )
  focal = float(intrinsics[0, 0])
  residual = max(pair.residual_deg for pair in pairs.values())
  residual *= np.deg2rad(focal)
  angle = max(pair.parallax_deg for pair in pairs.values())
  if residual < MIN_RESIDUAL_PX or angle < MIN_PARALLAX_DEG:
    raise DegenerateError(
      source,
      "parallax",
      found=f"{residual:.2f} px of motion beyond a rotation"
      f" (rays meet at {angle:.2f} degrees)",
      expected=f"at least {MIN_RESIDUAL_PX} px and {MIN_PARALLAX_DEG} degrees:"
      " a camera that moves",
    )


def link(
  keypoints: Sequence[two_view.Keypoints],
  pairs: Mapping[tuple[int, int], two_view.Pair],
) -> Tracks:
  """Joins pairwise matches; a track that meets itself in a picture is cut."""
  offset = np.cumsum([0, *(len(item.xy) for item in keypoints)])
  parent = np.arange(offset[-1])

  def root(node: int) -> int:
    while parent[node] != node:
      parent[node] = parent[parent[node]]
      node = parent[node]
    return node

  for (a, b), pair in pairs.items():
    for row_a, row_b in pair.matches:
      root_a, root_b = root(offset[a] + row_a), root(offset[b] + row_b)
      parent[max(root_a, root_b)] = min(root_a, root_b)
  roots = np.array([root(node) for node in range(len(parent))], np.int64)
  camera = np.repeat(
    np.arange(len(keypoints)), [len(item.xy) for item in keypoints]
  )
  xy = np.concatenate([item.xy for item in keypoints])
  key = roots * len(keypoints) + camera
  _, inverse, times = np.unique(key, return_inverse=True, return_counts=True)
  clash = np.zeros(len(parent), bool)
  clash[roots[times[inverse] > 1]] = True
  size = np.bincount(roots, minlength=len(parent))
  keep = (size[roots] >= 2) & ~clash[roots]
  labels, track = np.unique(roots[keep], return_inverse=True)
  return Tracks(camera[keep], track, xy[keep], len(labels))


def reconstruct(
  keypoints: Sequence[two_view.Keypoints],
  pairs: Mapping[tuple[int, int], two_view.Pair],
  intrinsics: np.ndarray,
  *,
  refine_focal: bool,
  source: str,
  adjust: Adjust = ba.adjust,
) -> Reconstruction:
  """All cameras and the points that survive.

  Args:
    keypoints: of every picture.
    pairs: verified pairs.
    intrinsics: [3, 3] of all pictures.
    refine_focal: whether the focal length is a start or known.
    source: name for messages.
    adjust: bundle adjustment.

  Raises:
    DegenerateError: see the module docstring.
  """
  check_parallax(pairs, intrinsics, source)
  tracks = link(keypoints, pairs)
  builder = _Builder(
    tracks, len(keypoints), intrinsics, refine_focal, source, adjust
  )
  order = sorted(pairs, key=lambda key: -_score(pairs[key]))
  if not any(builder.start(key, pairs[key]) for key in order):
    raise DegenerateError(
      source,
      "parallax",
      found="no pair of frames whose points can be placed",
      expected=_EXPECTED_STATIC,
    )
  while builder.grow():
    pass
  return builder.finish()


def with_known_cameras(
  keypoints: Sequence[two_view.Keypoints],
  pairs: Mapping[tuple[int, int], two_view.Pair],
  intrinsics: np.ndarray,
  w2c: np.ndarray,
  source: str,
) -> Reconstruction:
  """Points only: the cameras are given and stay."""
  builder = _Builder(
    link(keypoints, pairs), len(keypoints), intrinsics, False, source, ba.adjust
  )
  builder.w2c[:] = w2c
  builder.registered[:] = True
  builder.triangulate()
  builder.prune()
  return builder.result()


def resect(
  world: np.ndarray, xy: np.ndarray, intrinsics: np.ndarray
) -> np.ndarray | None:
  """World-to-camera [3, 4] of a picture that sees known points, or None.

  Args:
    world: [n, 3].
    xy: [n, 2] pixels.
    intrinsics: [3, 3].
  """
  if len(world) < _MIN_PNP:
    return None
  cv2.setRNGSeed(0)
  found, turn, shift, inlier = cv2.solvePnPRansac(
    world,
    xy,
    intrinsics,
    None,
    iterationsCount=300,
    reprojectionError=_PNP_PX,
    confidence=0.999,
    flags=cv2.SOLVEPNP_SQPNP,
  )
  if not found or inlier is None:
    return None
  inlier = inlier.ravel()
  if len(inlier) < max(_MIN_PNP // 2, _MIN_PNP_SHARE * len(world)):
    return None
  turn, shift = cv2.solvePnPRefineLM(
    world[inlier], xy[inlier], intrinsics, None, turn, shift
  )
  return np.column_stack([cv2.Rodrigues(turn)[0], shift.ravel()])


def _score(pair: two_view.Pair) -> float:
  return len(pair.matches) * min(pair.residual_deg, _GOOD_RESIDUAL_DEG)


class _Builder:
  """The growing reconstruction."""

  def __init__(
    self,
    tracks: Tracks,
    cameras: int,
    intrinsics: np.ndarray,
    refine_focal: bool,
    source: str,
    adjust: Adjust,
  ) -> None:
    self.tracks, self.source = tracks, source
    self.solve = adjust
    self.intrinsics = np.array(intrinsics, np.float64)
    self.refine_focal = refine_focal
    self.w2c = np.tile(np.eye(4)[:3], (cameras, 1, 1))
    self.registered = np.zeros(cameras, bool)
    self.points = np.full((tracks.count, 3), np.nan)
    self.valid = np.ones(len(tracks.camera), bool)
    self.since = 0
    self.tried: dict[int, int] = {}

  def start(self, key: tuple[int, int], pair: two_view.Pair) -> bool:
    """Tries an initial pair, scaled to median depth 1.

    Returns:
      False, with nothing changed, unless half of the matches become points.
    """
    first, second = key
    self.w2c[first] = np.eye(4)[:3]
    self.w2c[second] = np.column_stack([pair.rotation, pair.translation])
    self.registered[[first, second]] = True
    self.triangulate()
    placed = np.isfinite(self.points[:, 2])
    if np.count_nonzero(placed) < 0.5 * len(pair.matches):
      self.registered[:] = False
      self.points[:] = np.nan
      return False
    depth = np.median(self.points[placed, 2])
    self.points /= depth
    self.w2c[second, :, 3] /= depth
    self.adjust()
    return True

  def grow(self) -> bool:
    """Adds the picture that sees most points; False when none is left."""
    known = np.isfinite(self.points[:, 0])[self.tracks.track] & self.valid
    count = np.bincount(
      self.tracks.camera[known], minlength=len(self.registered)
    )
    for camera, size in self.tried.items():
      if count[camera] <= size:
        count[camera] = 0
    count[self.registered] = 0
    best = int(np.argmax(count))
    if count[best] < _MIN_PNP:
      return False
    if not self._resect(best, known & (self.tracks.camera == best)):
      self.tried[best] = int(count[best])
      return True
    self.triangulate()
    self.since += 1
    if self.since >= _ADJUST_EVERY:
      self.adjust()
    return True

  def _resect(self, camera: int, rows: np.ndarray) -> bool:
    pose = resect(
      self.points[self.tracks.track[rows]],
      self.tracks.xy[rows],
      self.intrinsics,
    )
    if pose is None:
      return False
    self.w2c[camera] = pose
    self.registered[camera] = True
    return True

  def triangulate(self) -> None:
    """Points of tracks that have none, from their two outermost pictures."""
    usable = self.valid & self.registered[self.tracks.camera]
    usable &= np.isnan(self.points[:, 0])[self.tracks.track]
    rows = np.flatnonzero(usable)
    if not len(rows):
      return
    order = rows[
      np.lexsort((self.tracks.camera[rows], self.tracks.track[rows]))
    ]
    track = self.tracks.track[order]
    first = np.flatnonzero(np.r_[True, track[1:] != track[:-1]])
    last = np.r_[first[1:] - 1, len(track) - 1]
    pairs = last > first
    a, b = order[first[pairs]], order[last[pairs]]
    if not len(a):
      return
    ray_a = two_view.rays(self.tracks.xy[a], self.intrinsics)
    ray_b = two_view.rays(self.tracks.xy[b], self.intrinsics)
    pose_a = self.w2c[self.tracks.camera[a]]
    pose_b = self.w2c[self.tracks.camera[b]]
    angle = two_view.ray_angles(
      np.einsum("nji,nj->ni", pose_a[:, :, :3], ray_a),
      np.einsum("nji,nj->ni", pose_b[:, :, :3], ray_b),
    )
    found = two_view.triangulate(ray_a, ray_b, pose_a, pose_b)
    good = angle > _MIN_ANGLE_DEG
    for ray, pose in ((ray_a, pose_a), (ray_b, pose_b)):
      camera = np.einsum("nij,nj->ni", pose[:, :, :3], found) + pose[:, :, 3]
      error = camera[:, :2] / camera[:, 2:] - ray[:, :2]
      error *= self.intrinsics[[0, 1], [0, 1]]
      good &= camera[:, 2] > 0
      good &= np.linalg.norm(error, axis=1) < _OUTLIER_PX
    self.points[self.tracks.track[a[good]]] = found[good]

  def adjust(self) -> None:
    """Bundle adjustment of what is registered, then outliers out."""
    self.since = 0
    seen, cameras, tracks = self._seen()
    if len(seen.camera) < 4 * _MIN_PNP:
      return
    solution = self.solve(
      self.w2c[cameras],
      self.points[tracks],
      self.intrinsics,
      seen,
      refine_focal=self.refine_focal and len(cameras) > 2,
    )
    self.w2c[cameras] = solution.w2c
    self.points[tracks] = solution.points
    self.intrinsics = solution.intrinsics
    self.prune()

  def prune(self) -> None:
    """Drops observations off by 3 px or behind, and points seen once."""
    known = np.isfinite(self.points[:, 0])[self.tracks.track]
    rows = np.flatnonzero(
      known & self.valid & self.registered[self.tracks.camera]
    )
    seen = ba.Observations(
      self.tracks.camera[rows], self.tracks.track[rows], self.tracks.xy[rows]
    )
    camera, residual = ba.project(self.w2c, self.points, self.intrinsics, seen)
    bad = np.linalg.norm(residual, axis=1) > _OUTLIER_PX
    bad |= camera[:, 2] <= 0
    self.valid[rows[bad]] = False
    left = np.bincount(
      self.tracks.track[rows[~bad]], minlength=self.tracks.count
    )
    self.points[left < 2] = np.nan
    # A camera that its points have left would drift freely.
    kept = np.bincount(
      self.tracks.camera[rows[~bad]], minlength=len(self.registered)
    )
    lost = np.flatnonzero(self.registered & (kept < _MIN_PNP // 2))
    for row in lost.tolist():
      self.registered[row] = False
      self.tried[row] = int(kept[row])

  def _seen(self) -> tuple[ba.Observations, np.ndarray, np.ndarray]:
    """Observations in compact numbering, and the two numberings."""
    known = np.isfinite(self.points[:, 0])[self.tracks.track]
    rows = known & self.valid & self.registered[self.tracks.camera]
    cameras, camera = np.unique(self.tracks.camera[rows], return_inverse=True)
    tracks, track = np.unique(self.tracks.track[rows], return_inverse=True)
    return (
      ba.Observations(camera, track, self.tracks.xy[rows]),
      cameras,
      tracks,
    )

  def finish(self) -> Reconstruction:
    """Two last adjustments; every picture must have found its place."""
    for _ in range(2):
      self.triangulate()
      self.adjust()
    lost = np.flatnonzero(~self.registered)
    if len(lost):
      raise DegenerateError(
        self.source,
        "cameras",
        found=f"{len(lost)} of {len(self.registered)} frames that connect to"
        f" no others, first row {lost[0]}",
        expected=_EXPECTED_STATIC,
      )
    return self.result()

  def result(self) -> Reconstruction:
    """The present state."""
    seen, cameras, tracks = self._seen()
    if len(tracks) < _MIN_PNP:
      raise DegenerateError(
        self.source,
        "points",
        found=f"{len(tracks)} scene points",
        expected=f"at least {_MIN_PNP} in {_EXPECTED_STATIC}",
      )
    full = ba.Observations(cameras[seen.camera], seen.point, seen.xy)
    points = self.points[tracks]
    _, residual = ba.project(self.w2c, points, self.intrinsics, full)
    error = float(np.median(np.linalg.norm(residual, axis=1)))
    return Reconstruction(self.w2c, self.intrinsics, points, full, error)
