# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Geometry of static scenes without weights: the `opencv` backend.

SIFT (or XFeat), essential matrix, PnP and bundle adjustment (pycolmap's where
it is installed) give cameras (`structure_from_motion`); a plane sweep with
semi-global aggregation gives depth (`plane_sweep`). At most 40 keyframes are
solved together; the frames between them are placed by PnP against the
keyframes' points.

It knows only what parallax shows. Without parallax, in a scene that mostly
moves, or when frames do not connect, it raises `DegenerateError`; pixels that
no second depth map confirms are NaN. The scale is arbitrary (median depth of
the first reconstruction = 1) unless cameras are given. The focal length is
taken from `focal_px`, from given cameras, or estimated from a start of 1.2
times the longer side; the principal point is the middle of the picture.

Confidence is the share of other views with a depth there that confirm it, in
[0, 1].
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import cv2
import numpy as np

from perception import (
  bundle_adjustment,
  errors,
  observation,
  plane_sweep,
  pycolmap_adjustment,
  registry,
  roles,
  two_view,
)
from perception import structure_from_motion as sfm
from perception.degenerate import DegenerateError

_VERSION = "1"
_MAX_KEYFRAMES = 40
_FOCAL_PRIOR = 1.2
_PARTNERS = 4
_MIN_POINTS = 10
_NEIGHBOURS = 6
_DEPTH_MARGIN = 1.6
_MIN_COVERAGE = 0.01
KEYPOINTS = ("sift", "xfeat")
ADJUSTMENTS = ("auto", "numpy", "pycolmap")


@dataclasses.dataclass(eq=False)
class _Frames:
  """Grey pictures and keypoints of a clip, and its camera."""

  gray: list[np.ndarray]
  keypoints: list[two_view.Keypoints]
  size: tuple[int, int]


class OpenCvGeometry:
  """Structure from motion and stereo on a CPU."""

  def __init__(
    self,
    *,
    focal_px: float = 0.0,
    feature_side: int = 640,
    depth_side: int = 320,
    features: int = 1500,
    window: int = 5,
    camera_unit: str = "arbitrary",
    adjustment: str = "auto",
    keypoints: str = "sift",
  ) -> None:
    """Nothing is computed yet.

    Args:
      focal_px: focal length in pixels of the video, square pixels; 0 =
        estimate it.
      feature_side: longer side at which keypoints are found.
      depth_side: longer side of the depth maps.
      features: keypoints a frame.
      window: each keyframe is matched with this many following ones.
      camera_unit: unit of known cameras, `metre` or `arbitrary`.
      adjustment: solver of the bundle adjustment, one of `ADJUSTMENTS`; `auto`
        is pycolmap (4 or newer) where it is installed. `info` names which.
      keypoints: one of `KEYPOINTS`; `xfeat` needs its package, see
        `perception.neural.xfeat_keypoints`.

    Raises:
      InputError: a setting out of range, or pycolmap or XFeat is not here.
    """
    if (
      focal_px < 0
      or min(feature_side, depth_side) < 64
      or features < 100
      or window < 1
    ):
      raise errors.InputError(
        "settings",
        "focal_px, feature_side, depth_side, features, window",
        found=f"{focal_px}, {feature_side}, {depth_side}, {features}, {window}",
        expected=">= 0, >= 64, >= 64, >= 100, >= 1",
      )
    self._focal, self._window = focal_px, window
    self._feature_side, self._depth_side = feature_side, depth_side
    self._camera_unit = camera_unit
    self._adjust, solver = _solver(adjustment)
    found = _keypoints(keypoints, features)
    self._detect, self._match = found.detect, found.match
    self._info = registry.info(
      registry.spec("geometry", "opencv"),
      f"{_VERSION}, opencv {cv2.__version__}",
      settings={
        "focal_px": focal_px,
        "feature_side": feature_side,
        "depth_side": depth_side,
        "features": features,
        "window": window,
        "camera_unit": camera_unit,
        "adjustment": solver,
        "keypoints": found.name,
      },
      weights_sha256=found.weights_sha256,
    )

  @property
  def info(self) -> roles.BackendInfo:
    """Identity, licence and settings."""
    return self._info

  def reconstruct(
    self, frames: roles.FrameSource, *, cameras: roles.Cameras | None = None
  ) -> observation.Geometry:
    """Cameras and depth of every frame.

    Args:
      frames: two or more frames of a static scene.
      cameras: known cameras of one focal length, or None.

    Raises:
      InputError: cameras that do not fit or differ in their intrinsics.
      DegenerateError: see the module docstring.
    """
    if len(frames) < 2:
      raise DegenerateError(
        frames.name, "frames", found="one frame", expected="two or more"
      )
    loaded = self._load(frames)
    keys = keyframes(len(frames))
    if cameras is None:
      intrinsics = self._start(frames.size, loaded.size)
      solved = self._solve(loaded, keys, intrinsics, None, frames.name)
      w2c = self._place(loaded, keys, solved, frames.name)
      unit = "arbitrary"
    else:
      intrinsics = _one_camera(cameras, frames, loaded.size)
      w2c = np.linalg.inv(np.asarray(cameras.c2w, np.float64))[:, :3]
      solved = self._solve(loaded, keys, intrinsics, w2c, frames.name)
      unit = self._camera_unit
    return self._dense(frames, loaded, keys, solved, w2c, unit)

  def _load(self, frames: roles.FrameSource) -> _Frames:
    gray, keypoints = [], []
    size = _fit(frames.size, self._feature_side)
    for frame in frames:
      picture = cv2.cvtColor(frame, cv2.COLOR_RGB2GRAY)
      if size != frames.size:
        picture = cv2.resize(picture, size[::-1], interpolation=cv2.INTER_AREA)
      gray.append(picture)
      keypoints.append(self._detect(picture))
    return _Frames(gray, keypoints, size)

  def _start(
    self, video_size: tuple[int, int], size: tuple[int, int]
  ) -> np.ndarray:
    """Intrinsics at working size before any refinement."""
    height, width = video_size
    focal = self._focal or _FOCAL_PRIOR * max(video_size)
    intrinsics = np.array(
      [[focal, 0, (width - 1) / 2], [0, focal, (height - 1) / 2], [0, 0, 1]]
    )
    return observation.rescale_intrinsics(
      intrinsics, from_size=video_size, to_size=size
    )

  def _solve(
    self,
    loaded: _Frames,
    keys: np.ndarray,
    intrinsics: np.ndarray,
    w2c: np.ndarray | None,
    source: str,
  ) -> sfm.Reconstruction:
    """Points and, unless given, cameras of the keyframes."""
    keypoints = [loaded.keypoints[row] for row in keys]
    pairs = {}
    for a in range(len(keys)):
      for b in range(a + 1, min(len(keys), a + 1 + self._window)):
        matches = self._match(keypoints[a], keypoints[b])
        pair = two_view.verify(keypoints[a], keypoints[b], matches, intrinsics)
        if pair is not None:
          pairs[a, b] = pair
    if w2c is not None:
      return sfm.with_known_cameras(
        keypoints, pairs, intrinsics, w2c[keys], source
      )
    return sfm.reconstruct(
      keypoints,
      pairs,
      intrinsics,
      refine_focal=self._focal == 0,
      source=source,
      adjust=self._adjust,
    )

  def _place(
    self,
    loaded: _Frames,
    keys: np.ndarray,
    solved: sfm.Reconstruction,
    source: str,
  ) -> np.ndarray:
    """[T, 3, 4]: the keyframes' cameras and, by PnP, those between."""
    w2c = np.tile(np.eye(4)[:3], (len(loaded.gray), 1, 1))
    w2c[keys] = solved.w2c
    between = np.setdiff1d(np.arange(len(loaded.gray)), keys)
    if not len(between):
      return w2c
    banks = [
      _bank(loaded.keypoints[row], solved, k) for k, row in enumerate(keys)
    ]
    for row in between:
      after = int(np.searchsorted(keys, row))
      world, xy = [], []
      for bank in (banks[after - 1], banks[after]):
        matches = self._match(loaded.keypoints[row], bank[0])
        world.append(bank[1][matches[:, 1]])
        xy.append(loaded.keypoints[row].xy[matches[:, 0]])
      pose = sfm.resect(
        np.concatenate(world), np.concatenate(xy), solved.intrinsics
      )
      if pose is None:
        raise DegenerateError(
          source,
          "cameras",
          found=f"frame row {row} that connects to no keyframe",
          expected="a static scene seen throughout",
        )
      w2c[row] = pose
    return w2c

  def _dense(
    self,
    frames: roles.FrameSource,
    loaded: _Frames,
    keys: np.ndarray,
    solved: sfm.Reconstruction,
    w2c: np.ndarray,
    unit: str,
  ) -> observation.Geometry:
    """Depth maps, their agreement, and the record."""
    size = _fit(frames.size, self._depth_side)
    small = [
      cv2.resize(gray, size[::-1], interpolation=cv2.INTER_AREA)
      for gray in loaded.gray
    ]
    intrinsics = observation.rescale_intrinsics(
      solved.intrinsics, from_size=loaded.size, to_size=size
    )
    raw = [
      self._depth_of(row, small, keys, solved, w2c, intrinsics)
      for row in range(len(small))
    ]
    depth = np.stack(raw)
    confidence = np.zeros(depth.shape, np.float32)
    for row in range(len(small)):
      agree, compared = plane_sweep.agreement(
        raw[row],
        w2c[row],
        intrinsics,
        [(raw[other], w2c[other]) for other in _nearest(row, len(small))],
      )
      confirmed = (agree >= 1) & (2 * agree >= compared)
      depth[row][~confirmed] = np.nan
      share = agree / np.maximum(compared, 1)
      confidence[row] = np.where(confirmed, share, 0.0)
    coverage = float(np.isfinite(depth).mean())
    if coverage < _MIN_COVERAGE:
      raise DegenerateError(
        frames.name,
        "depth",
        found=f"{coverage:.1%} of the pixels",
        expected=f"at least {_MIN_COVERAGE:.0%} confirmed by a second view",
      )
    c2w = np.tile(np.eye(4), (len(w2c), 1, 1))
    c2w[:, :3] = w2c
    return observation.Geometry(
      depth=depth,
      intrinsics=np.tile(intrinsics.astype(np.float32), (len(w2c), 1, 1)),
      c2w=np.linalg.inv(c2w),
      confidence=np.clip(confidence, 0, 1),
      frame_indices=frames.frame_indices,
      video_size=frames.size,
      unit=unit,
      provenance=self._info.provenance(frames.sha256),
    )

  def _depth_of(
    self,
    row: int,
    small: Sequence[np.ndarray],
    keys: np.ndarray,
    solved: sfm.Reconstruction,
    w2c: np.ndarray,
    intrinsics: np.ndarray,
  ) -> np.ndarray:
    """One frame's depth before it is confirmed by others."""
    nearest = int(np.argmin(np.abs(keys - row)))
    seen = solved.seen.point[solved.seen.camera == nearest]
    z = solved.points[seen] @ w2c[row, 2, :3] + w2c[row, 2, 3]
    z = z[z > 0]
    if len(z) < _MIN_POINTS:
      return np.full(small[row].shape, np.nan, np.float32)
    low, middle, high = np.quantile(z, [0.02, 0.5, 0.98])
    order = np.argsort(np.abs(keys - row), kind="stable")
    partners = plane_sweep.choose_partners(
      row,
      keys[order][: 2 * self._window + 1].tolist(),
      w2c,
      middle,
      most=_PARTNERS,
    )
    if not partners:
      return np.full(small[row].shape, np.nan, np.float32)
    return plane_sweep.sweep(
      plane_sweep.View(small[row], w2c[row]),
      [plane_sweep.View(small[other], w2c[other]) for other in partners],
      intrinsics,
      (low / _DEPTH_MARGIN, high * _DEPTH_MARGIN),
    )


def keyframes(count: int) -> np.ndarray:
  """Rows of at most 40 frames, evenly spread, the first and last included."""
  number = min(count, _MAX_KEYFRAMES)
  return np.unique(np.rint(np.linspace(0, count - 1, number)).astype(int))


class _Matching(NamedTuple):
  """How keypoints are found and matched, and what identifies that."""

  detect: Callable[[np.ndarray], two_view.Keypoints]
  match: Callable[[two_view.Keypoints, two_view.Keypoints], np.ndarray]
  name: str
  weights_sha256: str = ""


def _keypoints(name: str, limit: int) -> _Matching:
  """The features of a name."""
  if name == "sift":
    detect = functools.partial(two_view.detect, limit=limit)
    return _Matching(detect, two_view.match, name)
  if name != "xfeat":
    raise errors.InputError(
      "settings", "keypoints", found=name, expected=f"one of {KEYPOINTS}"
    )
  from perception.neural import xfeat_keypoints  # needs torch

  found = xfeat_keypoints.XFeatKeypoints(limit=limit)
  match = functools.partial(
    two_view.match, ratio=None, min_cosine=xfeat_keypoints.MIN_COSINE
  )
  return _Matching(found.detect, match, found.version, found.weights_sha256)


def _solver(name: str) -> tuple[sfm.Adjust, str]:
  """A bundle adjustment and what identifies it."""
  version = pycolmap_adjustment.version()
  if name not in ADJUSTMENTS or (name == "pycolmap" and not version):
    raise errors.InputError(
      "settings",
      "adjustment",
      found=name,
      expected=f"one of {ADJUSTMENTS}, and pycolmap 4 where it is asked for",
      hint="pip install pycolmap",
    )
  if name == "numpy" or not version:
    return bundle_adjustment.adjust, "numpy"
  return pycolmap_adjustment.adjust, f"pycolmap {version}"


def _fit(size: tuple[int, int], side: int) -> tuple[int, int]:
  """(h, w) with the longer side at most `side`."""
  scale = min(1.0, side / max(size))
  return max(1, round(size[0] * scale)), max(1, round(size[1] * scale))


def _nearest(row: int, count: int) -> list[int]:
  """The rows around one row."""
  rows = sorted(range(count), key=lambda other: abs(other - row))
  return rows[1 : _NEIGHBOURS + 1]


def _one_camera(
  cameras: roles.Cameras, frames: roles.FrameSource, size: tuple[int, int]
) -> np.ndarray:
  """The common [3, 3] at working size."""
  intrinsics = np.asarray(cameras.intrinsics, np.float64)
  poses = np.asarray(cameras.c2w)
  wanted = (len(frames), 3, 3), (len(frames), 4, 4)
  same = intrinsics.shape == wanted[0] and poses.shape == wanted[1]
  if not same or np.abs(intrinsics - intrinsics[:1]).max() > 1e-3:
    raise errors.InputError(
      "cameras",
      "intrinsics, c2w",
      found=f"{intrinsics.shape}, {poses.shape}",
      expected=f"{wanted} with one set of intrinsics",
    )
  return observation.rescale_intrinsics(
    intrinsics[0], from_size=frames.size, to_size=size
  )


def _bank(
  keypoints: two_view.Keypoints, solved: sfm.Reconstruction, camera: int
) -> tuple[two_view.Keypoints, np.ndarray]:
  """The keypoints of a keyframe that have a world point, and the points."""
  mine = solved.seen.camera == camera
  xy, points = solved.seen.xy[mine], solved.points[solved.seen.point[mine]]
  place = {tuple(spot): row for row, spot in enumerate(keypoints.xy.tolist())}
  rows = np.array([place[tuple(spot)] for spot in xy.tolist()], int)
  return (
    two_view.Keypoints(keypoints.xy[rows], keypoints.descriptors[rows]),
    points,
  )
