# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Calibrates an RGB-D recording whose colour and depth are not registered.

Hand-held depth cameras often come with one focal length for two cameras, with
depth that is not registered to colour, and with poses of a depth tracker. All
three are measured here from the recording itself, in order:

1. a first colour focal length and radial lens distortion, from features under
   the recorded poses;
2. focal length and offset of the colour camera, by laying depth outlines on
   colour edges; no pose takes part in this. The offset is a shift in the image
   plane and a roll: the other rotations cannot be told from a shift, nor the
   third shift from the focal length, and the principal point stays as recorded;
3. the poses, which must explain the matched features as well as the recorded
   surfaces, and in turn the lens that the features ask for.

Pictures are then those of a pinhole camera: undistorted.

Nothing is taken from a table of known cameras. The report holds residuals
before and after on frame pairs that the estimate did not use; the surfaces
there are a check by depth alone.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize
from scipy.spatial import transform

from perception import observation
from perception.errors import InputError
from protocols.egogeneval import (
  local_features,
  recording_bundle,
  recording_terms,
  registration,
  scenes,
)
from protocols.egogeneval.recording_terms import Floats

_GAPS = (1, 2, 3, 5, 7, 10)
_HELD_OUT = (4, 9)
_PLANE_GAPS = (1, 3, 6, 10)
_TYPICAL_FRAMES = 60
_FEATURES = 3000
_PER_PAIR = 100
_PLANES_PER_PAIR = 200
_OUTLINE_FRAMES = 30
_OUTLINE_SCALE_PX = 2.0
# Unknowns of the outlines: roll in radians, x and y in metres, log focal.
_OUTLINE_SPREAD = np.array([0.05, 0.05, 0.05, 0.1])
_OUTLINE_STEP = np.array([0.002, 0.002, 0.002, 0.002])  # wider than jitter
_FOCAL_ROUNDS, _ROUNDS, _STEPS = 2, 4, 4
_MIN_MATCHES = 500


@dataclasses.dataclass(frozen=True, eq=False)
class Calibration:
  """The colour cameras of a recording.

  Attributes:
    intrinsics: [3, 3] of the colour camera.
    lens: [2] its radial distortion, see `registration.distort`.
    depth_intrinsics: [3, 3] of the depth camera, as recorded.
    depth_to_colour: [4, 4] rigid.
    poses_c2w: [n, 4, 4] of the colour camera.
    report: estimates and residuals before and after, for `mining.json`.
  """

  intrinsics: Floats
  lens: Floats
  depth_intrinsics: Floats
  depth_to_colour: Floats
  poses_c2w: Floats
  report: dict[str, Any]


def calibrated(scene: scenes.Scene) -> tuple[scenes.Scene, dict[str, Any]]:
  """A scene whose depth, poses and intrinsics are those of its colour camera.

  Args:
    scene: as its reader gives it; intrinsics and poses are taken to be those
      of the depth camera.

  Returns:
    (the scene, report).

  Raises:
    InputError: if too few features with depth match between its frames.
  """
  found = calibrate(scene)
  height, width = scene.frames[0].image().shape[:2]

  def registered(frame: scenes.SceneFrame) -> NDArray[np.float32]:
    return registration.register_depth(
      frame.read_depth(),
      found.depth_intrinsics,
      found.intrinsics,
      found.depth_to_colour,
      (height, width),
    )

  pinhole = functools.partial(
    registration.undistort_image, intrinsics=found.intrinsics, lens=found.lens
  )
  frames = tuple(
    dataclasses.replace(
      frame,
      correct=pinhole,
      pose_c2w=pose,
      intrinsics=found.intrinsics,
      read_depth=functools.partial(registered, frame),
    )
    for frame, pose in zip(scene.frames, found.poses_c2w, strict=True)
  )
  text = f"{scene.calibration}; colour camera and poses estimated"
  return dataclasses.replace(
    scene, frames=frames, calibration=text
  ), found.report


def summary(report: Mapping[str, Any]) -> str:
  """A report as one line."""
  stages = report["residuals"].values()

  def of(name: str, scale: float) -> str:
    return " -> ".join(f"{stage[name] * scale:.2f}" for stage in stages)

  x, y, _ = (1000.0 * value for value in report["depth_to_colour_m"])
  return (
    f"  calibrated: focal {report['focal_px']['recorded']:.1f} ->"
    f" {report['focal_px']['outlines']:.1f} px, offset {x:.1f}, {y:.1f} mm;"
    f" held-out medians as recorded -> registered -> refined: features"
    f" {of('feature_px', 1.0)} px, surfaces {of('surface_m', 1000.0)} mm,"
    f" outlines {of('outline_px', 1.0)} px; estimated poses turn"
    f" {report['pose_change']['rotation_share']:.3f} times as far"
  )


def calibrate(scene: scenes.Scene) -> Calibration:
  """Estimates the colour cameras of a scene; see the module docstring."""
  work = _Work(scene)
  before = work.quality(work.start, np.eye(4))
  cameras = work.start
  for _ in range(_FOCAL_ROUNDS):
    found = work.features(cameras, np.eye(4))
    cameras = recording_bundle.fitted_lens(cameras, *found, move_focal=True)
  features_focal = cameras.focal
  cameras, offset = work.outlined(cameras)
  registered = work.quality(cameras, offset)
  cameras = work.refined(cameras, offset)
  check = recording_bundle.fitted_lens(
    cameras, *work.features(cameras, offset), move_focal=True
  )
  report = {
    "focal_px": {
      "recorded": work.start.focal,
      "features_and_recorded_poses": features_focal,
      "outlines": cameras.focal,
      "features_and_refined_poses": check.focal,
    },
    "lens": cameras.lens.tolist(),
    "depth_to_colour_m": offset[:3, 3].tolist(),
    "depth_to_colour_deg": _degrees(offset[:3, :3]).tolist(),
    "residuals": {
      "recorded": before,
      "registered": registered,
      "refined": work.quality(cameras, offset),
    },
    "pose_change": _changes(work.recorded, cameras.poses @ offset),
  }
  return Calibration(
    cameras.intrinsics,
    cameras.lens,
    work.depth_intrinsics,
    offset,
    cameras.poses,
    report,
  )


class _Work:
  """Measurements of one recording and the steps of the estimate."""

  def __init__(self, scene: scenes.Scene) -> None:
    self._frames = scene.frames
    image = scene.frames[0].image()
    self._size = (image.shape[0], image.shape[1])
    intrinsics = np.asarray(scene.frames[0].intrinsics, np.float64)
    depth_size = scene.frames[0].read_depth().shape
    self.depth_intrinsics = np.asarray(
      observation.rescale_intrinsics(
        intrinsics, from_size=self._size, to_size=depth_size
      ),
      np.float64,
    )
    self.recorded = np.stack([frame.pose_c2w for frame in scene.frames])
    self.start = recording_bundle.Cameras(
      self.recorded,
      float(intrinsics[0, 0] + intrinsics[1, 1]) / 2.0,
      intrinsics[:2, 2],
    )
    features = local_features.LocalFeatures(_FEATURES)
    pairs, held_out = self._pairs(_GAPS), self._pairs(_HELD_OUT)
    self._matches = recording_terms.match(
      scene.frames, [*pairs, *held_out], features=features, limit=_PER_PAIR
    )
    gap = np.abs(self._matches.target - self._matches.source)
    self._is_held_out = np.isin(gap, [b - a for a, b in held_out])
    if np.sum(~self._is_held_out) < _MIN_MATCHES:
      raise InputError(
        scene.scene_id,
        "calibration",
        found=f"{np.sum(~self._is_held_out)} matched features",
        expected=f"at least {_MIN_MATCHES}",
        hint="Mine it as it is recorded, without --calibrate.",
      )
    self._looked_up: tuple[bytes, Floats] = (b"", np.zeros(0))
    self._surfaces = recording_terms.SurfaceMaps(
      scene.frames, self.depth_intrinsics
    )
    chosen = np.linspace(
      0, len(scene.frames) - 1, min(_OUTLINE_FRAMES, len(scene.frames))
    )
    self._outlines = recording_terms.Outlines(
      [scene.frames[int(i)] for i in np.rint(chosen)], self.depth_intrinsics
    )

  def features(
    self, cameras: recording_bundle.Cameras, offset: Floats
  ) -> tuple[recording_terms.Matches, Floats]:
    """The features to estimate with, and their depth."""
    return self._with_depth(~self._is_held_out, cameras, offset)

  def outlined(
    self, cameras: recording_bundle.Cameras
  ) -> tuple[recording_bundle.Cameras, Floats]:
    """Focal length and offset that lay depth outlines on colour edges."""

    def residual(change: Floats) -> Floats:
      trial = dataclasses.replace(
        cameras, focal=cameras.focal * float(np.exp(change[3]))
      )
      return self._outlines.residual(
        trial.intrinsics, trial.lens, _planar(change)
      )

    def slope(change: Floats) -> Floats:
      return np.stack(
        [
          (residual(change + step) - residual(change - step)) / (2 * step.sum())
          for step in np.diag(_OUTLINE_STEP)
        ],
        axis=1,
      )

    found = optimize.least_squares(
      residual,
      np.zeros(4),
      slope,
      loss="soft_l1",
      f_scale=_OUTLINE_SCALE_PX,
      x_scale=_OUTLINE_SPREAD,
    )
    offset = _planar(found.x)
    return dataclasses.replace(
      cameras,
      poses=self.recorded @ np.linalg.inv(offset),
      focal=cameras.focal * float(np.exp(found.x[3])),
    ), offset

  def refined(
    self, cameras: recording_bundle.Cameras, offset: Floats
  ) -> recording_bundle.Cameras:
    """Poses that explain features and surfaces."""
    matches, depth = self.features(cameras, offset)
    prior = cameras.poses
    for _ in range(_ROUNDS):
      cameras = recording_bundle.refine(
        cameras,
        matches,
        depth,
        self._planes(cameras.poses @ offset, _PLANE_GAPS),
        offset,
        prior=prior,
        iterations=_STEPS,
      )
      cameras = recording_bundle.fitted_lens(
        cameras, matches, depth, move_focal=False
      )
    return cameras

  def quality(
    self, cameras: recording_bundle.Cameras, offset: Floats
  ) -> dict[str, float]:
    """Median residuals on pairs that no estimate uses, and of the outlines."""
    matches, depth = self._with_depth(self._is_held_out, cameras, offset)
    pixels = np.linalg.norm(
      recording_bundle.feature_residual(cameras, matches, depth), axis=1
    )
    poses = cameras.poses @ offset
    metres = np.abs(
      recording_bundle.plane_residual(poses, self._planes(poses, _HELD_OUT))
    )
    outlines = self._outlines.residual(cameras.intrinsics, cameras.lens, offset)
    return {
      "feature_px": float(np.median(pixels)),
      "features": len(pixels),
      "surface_m": float(np.median(metres)),
      "surface_points": len(metres),
      "outline_px": float(np.median(outlines)),
    }

  def _with_depth(
    self,
    chosen: NDArray[np.bool_],
    cameras: recording_bundle.Cameras,
    offset: Floats,
  ) -> tuple[recording_terms.Matches, Floats]:
    """Chosen features whose depth is known under these cameras."""

    def registered(frame: int) -> NDArray[np.float32]:
      return registration.register_depth(
        self._frames[frame].read_depth(),
        self.depth_intrinsics,
        cameras.intrinsics,
        offset,
        self._size,
      )

    key = b"".join(
      part.tobytes() for part in (cameras.intrinsics, cameras.lens, offset)
    )
    if self._looked_up[0] != key:
      pinhole = registration.undistort(
        self._matches.xy_source, cameras.intrinsics, cameras.lens
      )
      depth = recording_terms.depth_of(
        self._matches.source, pinhole, registered
      )
      self._looked_up = (key, depth)
    depth = self._looked_up[1]
    known = np.flatnonzero(chosen & np.isfinite(depth))
    return self._matches.take(known), depth[known]

  def _planes(
    self, poses: Floats, gaps: tuple[int, ...]
  ) -> recording_terms.Planes:
    return self._surfaces.planes(
      poses, self._pairs(gaps), limit=_PLANES_PER_PAIR
    )

  def _pairs(self, gaps: tuple[int, ...]) -> list[tuple[int, int]]:
    """Frame pairs at some gaps, wider ones in longer recordings."""
    count = len(self._frames)
    unit = max(1, count // _TYPICAL_FRAMES)
    wide = {gap * unit for gap in gaps} | ({1} if 1 in gaps else set())
    return [(i, i + gap) for gap in sorted(wide) for i in range(count - gap)]


def _changes(before: Floats, after: Floats) -> dict[str, float]:
  """Estimated against recorded motion over the held-out gap of four frames.

  A share is the estimated motion along the recorded one; median over pairs
  that turn by more than 5 degrees, or move by more than 5 cm.
  """
  gap = min(_HELD_OUT[0], len(before) - 1)
  old, new = (
    np.linalg.inv(poses[:-gap]) @ poses[gap:] for poses in (before, after)
  )
  turns = [_degrees(motion[:, :3, :3]) for motion in (old, new)]
  moves = [motion[:, :3, 3] for motion in (old, new)]
  return {
    "rotation_share": _share(*turns, smallest=5.0),
    "translation_share": _share(*moves, smallest=0.05),
    "rotation_deg": float(
      np.median(np.linalg.norm(turns[1] - turns[0], axis=1))
    ),
    "translation_m": float(
      np.median(np.linalg.norm(moves[1] - moves[0], axis=1))
    ),
  }


def _share(old: Floats, new: Floats, *, smallest: float) -> float:
  size = np.sum(old * old, axis=1)
  large = size > smallest**2
  if not large.any():
    return float("nan")
  return float(np.median(np.sum(old * new, axis=1)[large] / size[large]))


def _planar(change: Floats) -> Floats:
  """[4, 4] of a roll and a shift in the image plane."""
  found = np.eye(4)
  roll = transform.Rotation.from_rotvec([0.0, 0.0, change[0]])
  found[:3, :3] = roll.as_matrix()
  found[:2, 3] = change[1:3]
  return found


def _degrees(rotation: Floats) -> Floats:
  vector = transform.Rotation.from_matrix(rotation).as_rotvec(degrees=True)
  return np.asarray(vector, np.float64)
