# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Bundle adjustment: Levenberg-Marquardt with the Schur complement, NumPy.

Minimises sum rho(|K pi(R X + t) - x|^2) over world-to-camera poses, points and
optionally one focal length for all pictures, rho being Huber's. Pose 0 stays
fixed; the scale is left to the damping. The points are eliminated block by
block, so the dense system has six rows a camera.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np
from scipy.spatial import transform

HUBER_PX = 1.0
_ITERATIONS = 25
_RELATIVE_STOP = 1e-5


@dataclasses.dataclass(frozen=True, eq=False)
class Observations:
  """M image points.

  Attributes:
    camera: [M] int, row of the pose.
    point: [M] int, row of the point.
    xy: [M, 2] pixels.
  """

  camera: np.ndarray
  point: np.ndarray
  xy: np.ndarray


class Solution(NamedTuple):
  """What `adjust` found.

  Attributes:
    w2c: [C, 3, 4].
    points: [P, 3].
    intrinsics: [3, 3].
    error_px: [M] distances of the observations from the projections.
  """

  w2c: np.ndarray
  points: np.ndarray
  intrinsics: np.ndarray
  error_px: np.ndarray


def project(
  w2c: np.ndarray,
  points: np.ndarray,
  intrinsics: np.ndarray,
  seen: Observations,
) -> tuple[np.ndarray, np.ndarray]:
  """Camera points [M, 3] and residuals [M, 2] in pixels."""
  pose = w2c[seen.camera]
  camera = np.einsum("mij,mj->mi", pose[:, :, :3], points[seen.point])
  camera += pose[:, :, 3]
  z = np.where(np.abs(camera[:, 2]) > 1e-9, camera[:, 2], 1e-9)
  focal = intrinsics[[0, 1], [0, 1]]
  xy = camera[:, :2] / z[:, None] * focal + intrinsics[:2, 2]
  return camera, xy - seen.xy


def adjust(
  w2c: np.ndarray,
  points: np.ndarray,
  intrinsics: np.ndarray,
  seen: Observations,
  *,
  refine_focal: bool,
) -> Solution:
  """Refines poses, points and, if asked, the focal length.

  Args:
    w2c: [C, 3, 4], at least two.
    points: [P, 3].
    intrinsics: [3, 3] of all pictures; no skew.
    seen: every point in at least two pictures.
    refine_focal: one factor on fx and fy.
  """
  damping = 1e-3
  state = (np.array(w2c), np.array(points), np.array(intrinsics, np.float64))
  camera, residual = project(*state, seen)
  cost = _cost(residual)
  for _ in range(_ITERATIONS):
    system = _System(state, camera, residual, seen, refine_focal)
    improved = False
    for _ in range(6):
      trial = system.step(damping)
      trial_camera, trial_residual = project(*trial, seen)
      trial_cost = _cost(trial_residual)
      if trial_cost < cost:
        improved = True
        break
      damping *= 8.0
    if not improved:
      break
    gain = (cost - trial_cost) / max(cost, 1e-300)
    state, camera, residual = trial, trial_camera, trial_residual
    cost, damping = trial_cost, max(damping / 5.0, 1e-9)
    if gain < _RELATIVE_STOP:
      break
  error = np.linalg.norm(residual, axis=1)
  return Solution(state[0], state[1], state[2], error)


def _cost(residual: np.ndarray) -> float:
  norm = np.linalg.norm(residual, axis=1)
  quadratic = np.minimum(norm, HUBER_PX)
  return float(np.sum(quadratic * (2.0 * norm - quadratic)))


class _System:
  """The normal equations at one state, ready for any damping."""

  def __init__(
    self,
    state: tuple[np.ndarray, np.ndarray, np.ndarray],
    camera: np.ndarray,
    residual: np.ndarray,
    seen: Observations,
    refine_focal: bool,
  ) -> None:
    self._state, self._refine = state, refine_focal
    w2c, points, intrinsics = state
    self._cameras, self._points = len(w2c), len(points)
    norm = np.linalg.norm(residual, axis=1)
    weight = np.sqrt(HUBER_PX / np.maximum(norm, HUBER_PX))
    z = np.where(np.abs(camera[:, 2]) > 1e-9, camera[:, 2], 1e-9)
    focal = intrinsics[[0, 1], [0, 1]]
    # d(pixel)/d(camera point), [M, 2, 3].
    slope = np.zeros((len(z), 2, 3))
    slope[:, 0, 0] = focal[0] / z
    slope[:, 1, 1] = focal[1] / z
    slope[:, :, 2] = -camera[:, :2] * focal / (z**2)[:, None]
    slope *= weight[:, None, None]
    to_pose = np.concatenate([-slope @ _cross(camera), slope], axis=2)
    to_point = slope @ w2c[seen.camera][:, :, :3]
    r = residual * weight[:, None]
    self._fixed = seen.camera == 0
    to_pose[self._fixed] = 0.0
    columns = [to_pose]
    if refine_focal:
      scaled = camera[:, :2] / z[:, None] * focal * weight[:, None]
      columns.append(scaled[:, :, None])
    self._width = 6 * self._cameras + int(refine_focal)
    self._blocks(np.concatenate(columns, axis=2), to_point, r, seen)

  def _blocks(
    self,
    to_left: np.ndarray,
    to_point: np.ndarray,
    r: np.ndarray,
    seen: Observations,
  ) -> None:
    """Sums J'J and J'r; left = cameras (and focal), right = points."""
    size = to_left.shape[2]
    left = np.zeros((self._width, self._width))
    index = 6 * seen.camera[:, None] + np.arange(6)
    if size == 7:
      last = np.full((len(index), 1), self._width - 1)
      index = np.concatenate([index, last], axis=1)
    gram = np.einsum("mki,mkj->mij", to_left, to_left)
    np.add.at(left, (index[:, :, None], index[:, None, :]), gram)
    self._left = left
    self._left_r = np.zeros(self._width)
    np.add.at(self._left_r, index, np.einsum("mki,mk->mi", to_left, r))
    self._right = np.zeros((self._points, 3, 3))
    np.add.at(
      self._right, seen.point, np.einsum("mki,mkj->mij", to_point, to_point)
    )
    self._right_r = np.zeros((self._points, 3))
    np.add.at(self._right_r, seen.point, np.einsum("mki,mk->mi", to_point, r))
    mixed = np.zeros((self._points, 3, self._width))
    np.add.at(
      mixed,
      (seen.point[:, None, None], np.arange(3)[:, None], index[:, None, :]),
      np.einsum("mki,mkj->mij", to_point, to_left),
    )
    self._mixed = mixed

  def step(self, damping: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The state after one damped step."""
    right = self._right.copy()
    diagonal = np.arange(3)
    right[:, diagonal, diagonal] *= 1.0 + damping
    right[:, diagonal, diagonal] += 1e-12
    inverse = np.linalg.inv(right)
    reduced = np.einsum("pij,pjw->piw", inverse, self._mixed)
    flat = self._mixed.reshape(-1, self._width)
    left = self._left - flat.T @ reduced.reshape(-1, self._width)
    rows = np.arange(self._width)
    # The fixed camera has empty rows; the constant makes them solvable.
    left[rows, rows] += damping * self._left[rows, rows] + 1e-9
    right_hand = self._left_r - reduced.reshape(
      -1, self._width
    ).T @ self._right_r.reshape(-1)
    delta = -np.linalg.solve(left, right_hand)
    moved = -np.einsum("pij,pj->pi", inverse, self._right_r)
    moved -= reduced @ delta
    return self._apply(delta, moved)

  def _apply(
    self, delta: np.ndarray, moved: np.ndarray
  ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    w2c, points, intrinsics = self._state
    change = delta[: 6 * self._cameras].reshape(-1, 6)
    change[0] = 0.0
    turn = transform.Rotation.from_rotvec(change[:, :3]).as_matrix()
    new = turn @ w2c
    new[:, :, 3] += change[:, 3:]
    camera = intrinsics.copy()
    if self._refine:
      camera[[0, 1], [0, 1]] *= np.exp(np.clip(delta[-1], -0.2, 0.2))
    return new, points + moved, camera


def _cross(vectors: np.ndarray) -> np.ndarray:
  """[M, 3, 3] matrices of the cross product with [M, 3] vectors."""
  matrix = np.zeros((len(vectors), 3, 3))
  x, y, z = vectors.T
  matrix[:, 0, 1], matrix[:, 0, 2] = -z, y
  matrix[:, 1, 0], matrix[:, 1, 2] = z, -x
  matrix[:, 2, 0], matrix[:, 2, 1] = -y, x
  return matrix
