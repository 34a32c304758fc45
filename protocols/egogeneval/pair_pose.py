# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Relative pose of an image pair: the backends behind CMG.

- `GeometryPairPose`: any geometry backend of perception on the two images in
  order, as the benchmark does with Depth Anything 3. Scale is arbitrary.
- `PnpPairPose`: matched SIFT features and the recorded depth of the source;
  PnP with RANSAC. Metric, needs no weights, CPU.

A pair that cannot be localised gives no pose and a reason, never a guess.
Source: EgoGenEval specification 3.1.
"""

from __future__ import annotations

import dataclasses
from typing import Protocol, runtime_checkable

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy import optimize
from scipy.spatial import transform

from perception import roles, video
from perception.degenerate import DegenerateError
from protocols.egogeneval import local_features, registration

_REPROJECTION_PX = 3.0
_REFINE_PX = 1.0
_SMOOTH_WINDOW = 3
_ITERATIONS = 2000
_MIN_INLIERS = 20
_MIN_DEPTH, _MAX_DEPTH = 0.05, 20.0
_MAX_FEATURES = 8000


@dataclasses.dataclass(frozen=True, eq=False)
class View:
  """An image with what is recorded about it.

  Attributes:
    image: RGB uint8 [h, w, 3].
    intrinsics: [3, 3] at (h, w), or None.
    depth: float32 metres at any size, 0 or NaN = unknown; None for generated
      images.
  """

  image: NDArray[np.uint8]
  intrinsics: NDArray[np.float64] | None = None
  depth: NDArray[np.float32] | None = None


@dataclasses.dataclass(frozen=True, eq=False)
class PairEstimate:
  """Outcome of one pair.

  Attributes:
    pose: [4, 4] target camera in the source camera's frame; None on failure.
    reason: why there is none; empty otherwise.
    support: number of inliers, 0 where the backend has none.
  """

  pose: NDArray[np.float64] | None
  reason: str = ""
  support: int = 0


class PairPose(Protocol):
  """Estimates the relative pose of ordered pairs."""

  @property
  def info(self) -> roles.BackendInfo:
    """Identity, weights and settings."""

  @property
  def needs_source_depth(self) -> bool:
    """Whether a source without recorded depth cannot be localised from."""

  def estimate(self, source: View, target: View) -> PairEstimate:
    """Pose of the target camera in the source camera's frame."""


@runtime_checkable
class PairBackend(Protocol):
  """A geometry backend with a mode for two images of any sizes."""

  def pair_poses(
    self, source: NDArray[np.uint8], target: NDArray[np.uint8]
  ) -> NDArray[np.float64]:
    """Camera-to-world [2, 4, 4] of two RGB uint8 images."""


class GeometryPairPose:
  """Pair poses from a geometry backend."""

  needs_source_depth = False

  def __init__(self, backend: roles.GeometryBackend) -> None:
    """Args:
    backend: called with the two images in order [source, target].
    """
    self._backend = backend

  @property
  def info(self) -> roles.BackendInfo:
    """As the backend says."""
    return self._backend.info

  def estimate(self, source: View, target: View) -> PairEstimate:
    """See `PairPose`.

    Both images go in at their own size and aspect (3.1). A backend without a
    pair mode takes frames of one size only, so that images of two sizes are
    not localised by it.
    """
    try:
      if isinstance(self._backend, PairBackend):
        poses = self._backend.pair_poses(source.image, target.image)
      elif source.image.shape != target.image.shape:
        return PairEstimate(
          None,
          f"{self.info.name} takes no images of two sizes:"
          f" {source.image.shape[:2]}, {target.image.shape[:2]}",
        )
      else:
        clip = video.clip_from_frames(
          np.stack([source.image, target.image]), fps=0, name="pair"
        )
        poses = self._backend.reconstruct(clip).c2w
    except DegenerateError as error:
      return PairEstimate(None, str(error))
    first, second = np.asarray(poses, np.float64)
    return PairEstimate(np.linalg.inv(first) @ second)


class PnpPairPose:
  """Metric pair poses from local features and recorded source depth."""

  needs_source_depth = True

  def __init__(self, *, min_inliers: int = _MIN_INLIERS) -> None:
    """Args:
    min_inliers: fewer inliers mean that the pair is not localised.
    """
    self._min_inliers = min_inliers
    self.info = roles.BackendInfo(
      role="pair_pose",
      name="pnp_sift",
      version="2",
      licence="Apache-2.0",
      comparable_to_published=False,
      settings={"min_inliers": min_inliers},
    )
    self._features = local_features.LocalFeatures(_MAX_FEATURES)

  def estimate(self, source: View, target: View) -> PairEstimate:
    """See `PairPose`; the source needs depth, both need intrinsics."""
    if source.depth is None or source.intrinsics is None:
      return PairEstimate(None, "source without recorded depth")
    if target.intrinsics is None:
      return PairEstimate(None, "target without intrinsics")
    if np.array_equal(source.image, target.image):
      # The same pixels: no motion, exactly. Feature noise would give a sign.
      return PairEstimate(np.eye(4), "", int(source.image.size))
    xy_source, xy_target = self._features.matches(source.image, target.image)
    points, keep = _lifted(
      xy_source, source.image.shape, source.depth, source.intrinsics
    )
    pixels = xy_target[keep]
    if len(points) < self._min_inliers:
      return PairEstimate(
        None, f"{len(points)} matches with depth", len(points)
      )
    cv2.setRNGSeed(0)  # RANSAC draws must not depend on what ran before.
    intrinsics = np.asarray(target.intrinsics, np.float64)
    found, rotation, translation, inliers = cv2.solvePnPRansac(
      points,
      pixels,
      intrinsics,
      None,
      iterationsCount=_ITERATIONS,
      reprojectionError=_REPROJECTION_PX,
      confidence=0.9999,
      flags=cv2.SOLVEPNP_SQPNP,
    )
    count = 0 if inliers is None else len(inliers)
    if not found or count < self._min_inliers:
      return PairEstimate(None, f"{count} inliers", count)
    start = np.concatenate([np.ravel(rotation), np.ravel(translation)])
    pose = _refined(start, points, pixels, intrinsics)
    if not np.all(np.isfinite(pose)):
      return PairEstimate(None, "non-finite pose", count)
    return PairEstimate(pose, "", count)


def _refined(
  start: NDArray[np.float64],
  points: NDArray[np.float64],
  pixels: NDArray[np.float64],
  intrinsics: NDArray[np.float64],
) -> NDArray[np.float64]:
  """[4, 4] pose of the target from all matches, outliers weighted down.

  Least squares over the inliers alone would lean to the pose that chose them.
  """

  def residual(unknown: NDArray[np.float64]) -> NDArray[np.float64]:
    turned = transform.Rotation.from_rotvec(unknown[:3]).apply(points)
    moved = turned + unknown[3:]
    moved[:, 2] = np.maximum(moved[:, 2], _MIN_DEPTH)
    return (registration.project(moved, intrinsics) - pixels).ravel()

  found = optimize.least_squares(
    residual, start, loss="cauchy", f_scale=_REFINE_PX, max_nfev=50
  ).x
  target_from_source = np.eye(4)
  target_from_source[:3, :3] = transform.Rotation.from_rotvec(
    found[:3]
  ).as_matrix()
  target_from_source[:3, 3] = found[3:]
  return np.asarray(np.linalg.inv(target_from_source), np.float64)


def _lifted(
  xy: NDArray[np.float64],
  image_shape: tuple[int, ...],
  depth: NDArray[np.float32],
  intrinsics: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
  """Source camera points of pixels with known depth, and which those are.

  Pixels at an outline are left out: which surface they show is uncertain.
  """
  if not len(xy):
    return np.zeros((0, 3)), np.zeros(0, bool)
  height, width = depth.shape
  # Pixel centres are integers: the depth cell under a pixel of a larger image.
  cell_x = (xy[:, 0] + 0.5) * (width / image_shape[1]) - 0.5
  cell_y = (xy[:, 1] + 0.5) * (height / image_shape[0]) - 0.5
  column = np.clip(np.rint(cell_x).astype(int), 0, width - 1)
  row = np.clip(np.rint(cell_y).astype(int), 0, height - 1)
  z = depth[row, column].astype(np.float64)
  smooth = registration.is_smooth(depth, window=_SMOOTH_WINDOW)[row, column]
  keep = smooth & (z > _MIN_DEPTH) & (z < _MAX_DEPTH)
  z, xy = z[keep], xy[keep]
  k = intrinsics
  points = np.stack(
    [(xy[:, 0] - k[0, 2]) * z / k[0, 0], (xy[:, 1] - k[1, 2]) * z / k[1, 1], z],
    axis=1,
  )
  return points, keep


def relative_through(
  backend: PairPose, references: list[View], source: View, target: View
) -> PairEstimate:
  """Pair pose through physical references with recorded depth.

  A source with depth is the only reference that is needed. A generated source
  has none: both images are then localised against one physical reference, the
  first that localises both.

  Args:
    backend: the pair backend.
    references: physical views with depth, best first.
    source: source of the pair.
    target: target of the pair.

  Returns:
    Pose of the target in the source camera's frame.
  """
  if source.depth is not None or not backend.needs_source_depth:
    return backend.estimate(source, target)
  if np.array_equal(source.image, target.image):
    return PairEstimate(np.eye(4), "", int(source.image.size))
  reasons = []
  for reference in references:
    first = backend.estimate(reference, source)
    second = backend.estimate(reference, target)
    if first.pose is None or second.pose is None:
      reasons.append(first.reason or second.reason)
      continue
    pose = np.linalg.inv(first.pose) @ second.pose
    return PairEstimate(pose, "", min(first.support, second.support))
  reason = "; ".join(reasons) or "no physical reference"
  return PairEstimate(None, f"not localised: {reason}")
