# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Poses of a recording that agree with both its features and its surfaces.

Gauss-Newton with Cauchy weights over the colour poses of all frames. Features
give pixels, surfaces give metres; each kind is divided by its own robust
spread, so that neither unit is favoured. A weak prior on the starting poses
fixes the frame of reference. A pose moves by C <- C Exp(w, v), small rotation
w and translation v in its own axes. The focal length is estimated apart.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, sparse
from scipy.sparse import linalg as sparse_linalg
from scipy.spatial import transform

from protocols.egogeneval import recording_terms, registration
from protocols.egogeneval.recording_terms import Floats

_FOCAL_SCALE_PX = 2.0
_FINEST_PX, _FINEST_M = 0.1, 5e-4  # No recording is measured more finely.
_CAUCHY = 2.385  # Spreads; 95 % efficient for normal errors.
_MAD = 1.4826  # Spread of a normal distribution over its median deviation.
_PRIOR_DEG, _PRIOR_M = 0.4, 0.006
_LENS_SPREAD = 0.1  # of the coefficients and of the logarithm of the focal
_LENS_LIMIT = 1.0
_LENS_FEATURES = 10_000


@dataclasses.dataclass(frozen=True, eq=False)
class Cameras:
  """Colour cameras of a recording.

  Attributes:
    poses: [n, 4, 4] colour camera-to-world.
    focal: pixels.
    center: [2] principal point.
    lens: [2] radial coefficients, see `registration.distort`.
  """

  poses: Floats
  focal: float
  center: Floats
  lens: Floats = dataclasses.field(default_factory=lambda: np.zeros(2))

  @property
  def intrinsics(self) -> Floats:
    """[3, 3]."""
    return np.array(
      [
        [self.focal, 0.0, self.center[0]],
        [0.0, self.focal, self.center[1]],
        [0.0, 0.0, 1.0],
      ]
    )


def feature_residual(
  cameras: Cameras, matches: recording_terms.Matches, depth: Floats
) -> Floats:
  """[n, 2] pixels between predicted and matched target features."""
  return _predict(cameras, matches, depth).residual


def plane_residual(
  poses_depth: Floats, planes: recording_terms.Planes
) -> Floats:
  """[n] metres of each point from its plane."""
  moved, _ = _moved(poses_depth, planes.source, planes.target, planes.points)
  return np.asarray(np.sum((moved - planes.anchors) * planes.normals, axis=1))


def fitted_lens(
  cameras: Cameras,
  matches: recording_terms.Matches,
  depth: Floats,
  *,
  move_focal: bool,
) -> Cameras:
  """Focal length and lens that features ask for under fixed poses.

  Args:
    cameras: where to start.
    matches: features.
    depth: [n] depth of their sources, all known.
    move_focal: False leaves the focal length and fits the lens alone.
  """

  # Three unknowns need no more; the stride keeps every frame pair in it.
  thin = np.arange(0, len(depth), max(1, len(depth) // _LENS_FEATURES))
  matches, depth = matches.take(thin), depth[thin]

  def changed(change: Floats) -> Cameras:
    wider = float(np.exp(change[2])) if move_focal else 1.0
    return dataclasses.replace(
      cameras, focal=cameras.focal * wider, lens=cameras.lens + change[:2]
    )

  def residual(change: Floats) -> Floats:
    return feature_residual(changed(change), matches, depth).ravel()

  unknowns = 3 if move_focal else 2
  found = optimize.least_squares(
    residual,
    np.zeros(unknowns),
    loss="cauchy",
    f_scale=_FOCAL_SCALE_PX,
    x_scale=_LENS_SPREAD,
    bounds=(-_LENS_LIMIT, _LENS_LIMIT),
  )
  return changed(found.x)


def refine(
  cameras: Cameras,
  matches: recording_terms.Matches,
  depth: Floats,
  planes: recording_terms.Planes,
  depth_to_colour: Floats,
  *,
  prior: Floats,
  iterations: int,
) -> Cameras:
  """Moves all poses towards the measurements.

  Args:
    cameras: where to start.
    matches: features.
    depth: [n] depth of their sources, all known.
    planes: surfaces.
    depth_to_colour: [4, 4] offset of the two cameras.
    prior: [n, 4, 4] poses that the prior holds on to.
    iterations: Gauss-Newton steps.

  Returns:
    The cameras after the last step.
  """
  count = len(cameras.poses)
  for _ in range(iterations):
    normal = _NormalEquations(6 * count)
    _add_features(normal, cameras, matches, depth)
    _add_planes(normal, cameras, planes, depth_to_colour)
    normal.add_diagonal(*_prior(cameras.poses, prior))
    step = normal.solve().reshape(count, 6)
    cameras = dataclasses.replace(
      cameras, poses=cameras.poses @ _exponential(step)
    )
  return cameras


@dataclasses.dataclass(frozen=True, eq=False)
class _Prediction:
  residual: Floats  # [n, 2]
  points: Floats  # [n, 3] in source axes
  moved: Floats  # [n, 3] in target axes
  rotation: Floats  # [n, 3, 3] source to target


def _moved(
  poses: Floats,
  source: NDArray[np.int64],
  target: NDArray[np.int64],
  points: Floats,
) -> tuple[Floats, Floats]:
  """Points from source axes to target axes, and the rotations between."""
  motion = np.linalg.inv(poses)[target] @ poses[source]
  rotation = motion[:, :3, :3]
  moved = np.einsum("nij,nj->ni", rotation, points) + motion[:, :3, 3]
  return moved, rotation


def _predict(
  cameras: Cameras, matches: recording_terms.Matches, depth: Floats
) -> _Prediction:
  source, target = (
    registration.undistort(xy, cameras.intrinsics, cameras.lens)
    for xy in (matches.xy_source, matches.xy_target)
  )
  ray = (source - cameras.center) / cameras.focal
  points = np.column_stack([ray, np.ones(len(ray))]) * depth[:, None]
  moved, rotation = _moved(
    cameras.poses, matches.source, matches.target, points
  )
  xy = moved[:, :2] / moved[:, 2:] * cameras.focal + cameras.center
  return _Prediction(xy - target, points, moved, rotation)


class _NormalEquations:
  """Sum of weighted J^T J and -J^T r, sparse."""

  def __init__(self, size: int) -> None:
    self._size = size
    self._matrix = sparse.csr_matrix((size, size))
    self._vector = np.zeros(size)

  def add(
    self, columns: NDArray[np.int64], jacobian: Floats, residual: Floats,
    weight: Floats,
  ) -> None:  # fmt: skip
    """Rows [m] with [m, k] derivatives in [m, k] columns."""
    rows, width = jacobian.shape
    root = np.sqrt(weight)
    full = sparse.csr_matrix(
      (
        (jacobian * root[:, None]).ravel(),
        (np.repeat(np.arange(rows), width), columns.ravel()),
      ),
      shape=(rows, self._size),
    )
    self._matrix = self._matrix + full.T @ full
    self._vector = self._vector - full.T @ (root * residual)

  def add_diagonal(self, weight: Floats, residual: Floats) -> None:
    """A prior on every unknown."""
    self._matrix = self._matrix + sparse.diags(weight)
    self._vector = self._vector - weight * residual

  def solve(self) -> Floats:
    """All unknowns."""
    found = sparse_linalg.spsolve(self._matrix.tocsc(), self._vector)
    return np.asarray(found, np.float64)


def _add_features(
  normal: _NormalEquations,
  cameras: Cameras,
  matches: recording_terms.Matches,
  depth: Floats,
) -> None:
  found = _predict(cameras, matches, depth)
  x, y, z = found.moved.T
  f, zero = cameras.focal, np.zeros(len(z))
  projection = np.stack(
    [f / z, zero, -f * x / z**2, zero, f / z, -f * y / z**2], axis=1
  ).reshape(-1, 2, 3)
  turned = projection @ found.rotation
  by_source = np.concatenate([-turned @ _cross(found.points), turned], axis=2)
  by_target = np.concatenate(
    [projection @ _cross(found.moved), -projection], axis=2
  )
  jacobian = np.concatenate([by_source, by_target], axis=2).reshape(-1, 12)
  columns = np.concatenate(
    [_columns(matches.source), _columns(matches.target)], axis=1
  )
  spread = _spread(found.residual, _FINEST_PX)
  squared = np.sum(found.residual**2, axis=1)
  weight = _weight(np.sqrt(squared), spread)
  normal.add(
    np.repeat(columns, 2, axis=0),
    jacobian,
    found.residual.ravel(),
    np.repeat(weight, 2),
  )


def _add_planes(
  normal: _NormalEquations,
  cameras: Cameras,
  planes: recording_terms.Planes,
  depth_to_colour: Floats,
) -> None:
  poses = cameras.poses @ depth_to_colour
  moved, rotation = _moved(poses, planes.source, planes.target, planes.points)
  residual = np.sum((moved - planes.anchors) * planes.normals, axis=1)
  turned = np.einsum("ni,nij->nj", planes.normals, rotation)
  by_source = np.concatenate([np.cross(planes.points, turned), turned], axis=1)
  by_target = np.concatenate(
    [-np.cross(moved, planes.normals), -planes.normals], axis=1
  )
  # A small motion of the colour camera is another one of the depth camera.
  adjoint = _adjoint(np.asarray(np.linalg.inv(depth_to_colour), np.float64))
  jacobian = np.concatenate([by_source @ adjoint, by_target @ adjoint], axis=1)
  weight = _weight(residual, _spread(residual, _FINEST_M))
  columns = np.concatenate(
    [_columns(planes.source), _columns(planes.target)], axis=1
  )
  normal.add(columns, jacobian, residual, weight)


def _spread(residual: Floats, finest: float) -> float:
  """Robust standard deviation, at least `finest`."""
  return max(_MAD * float(np.median(np.abs(residual))), finest)


def _weight(size: Floats, spread: float) -> Floats:
  """Cauchy weights of residuals in units of their spread."""
  return np.asarray(1.0 / (spread**2 + (size / _CAUCHY) ** 2), np.float64)


def _prior(poses: Floats, prior: Floats) -> tuple[Floats, Floats]:
  """Weights and residuals [6 n] of the prior on poses."""
  change = np.linalg.inv(prior) @ poses
  turned = transform.Rotation.from_matrix(change[:, :3, :3]).as_rotvec()
  residual = np.concatenate([turned, change[:, :3, 3]], axis=1)
  spread = np.repeat([np.radians(_PRIOR_DEG), _PRIOR_M], 3)
  return np.tile(1.0 / spread**2, len(poses)), residual.ravel()


def _columns(frames: NDArray[np.int64]) -> NDArray[np.int64]:
  return 6 * frames[:, None] + np.arange(6)


def _cross(vectors: Floats) -> Floats:
  """[n, 3, 3] matrices of the cross product with [n, 3] vectors."""
  x, y, z = vectors.T
  zero = np.zeros(len(x))
  return np.stack([zero, -z, y, z, zero, -x, -y, x, zero], axis=1).reshape(
    -1, 3, 3
  )


def _adjoint(pose: Floats) -> Floats:
  """[6, 6] that carries (w, v) through a rigid transform."""
  found = np.zeros((6, 6))
  found[:3, :3] = found[3:, 3:] = pose[:3, :3]
  found[3:, :3] = _cross(pose[None, :3, 3])[0] @ pose[:3, :3]
  return found


def _exponential(steps: Floats) -> Floats:
  """[n, 4, 4] small motions of [n, 6] steps."""
  found = np.tile(np.eye(4), (len(steps), 1, 1))
  found[:, :3, :3] = transform.Rotation.from_rotvec(steps[:, :3]).as_matrix()
  found[:, :3, 3] = steps[:, 3:]
  return found
