# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""What two pictures of a static scene say about each other.

SIFT keypoints, mutual nearest neighbours that pass the ratio test, and an
essential matrix by RANSAC. Pixel centres at integers; cameras are OpenCV's;
`relative` takes points of the first camera to the second, x_b = R x_a + t with
|t| = 1. Angles in degrees. NumPy and OpenCV, deterministic.
"""

from __future__ import annotations

from typing import NamedTuple

import cv2
import numpy as np

RATIO = 0.8
EPIPOLAR_PX = 1.5
MIN_INLIERS = 25
_CONFIDENCE = 0.9999
_ITERATIONS = 2000


class Keypoints(NamedTuple):
  """Positions [n, 2] float64 and unit descriptors [n, C] float32."""

  xy: np.ndarray
  descriptors: np.ndarray


class Pair(NamedTuple):
  """A verified pair.

  Attributes:
    matches: [m, 2] int, rows of the keypoints of both pictures, inliers only.
    proposed: matches before the essential matrix.
    rotation: [3, 3].
    translation: [3], unit length.
    parallax_deg: median angle between the two rays of a match once `rotation`
      is undone; misleading where the essential matrix is badly conditioned.
    residual_deg: what the best pure rotation leaves: `rotation_residual_deg`.
  """

  matches: np.ndarray
  proposed: int
  rotation: np.ndarray
  translation: np.ndarray
  parallax_deg: float
  residual_deg: float


def detect(gray: np.ndarray, *, limit: int) -> Keypoints:
  """The strongest SIFT keypoints of a grey picture, one per position.

  Args:
    gray: uint8 [H, W].
    limit: most keypoints.
  """
  found, descriptors = cv2.SIFT.create(nfeatures=limit).detectAndCompute(
    gray, None
  )
  if descriptors is None:
    return Keypoints(np.zeros((0, 2)), np.zeros((0, 128), np.float32))
  xy = np.array([point.pt for point in found], np.float64).reshape(-1, 2)
  _, first = np.unique(xy, axis=0, return_index=True)
  first = np.sort(first)
  # Hellinger distance: square roots of L1-normalised histograms.
  norm = np.maximum(descriptors.sum(axis=1, keepdims=True), 1e-12)
  return Keypoints(xy[first], np.sqrt(descriptors / norm)[first])


def match(
  a: Keypoints,
  b: Keypoints,
  *,
  ratio: float | None = RATIO,
  min_cosine: float = -1.0,
) -> np.ndarray:
  """[m, 2] rows of mutual nearest neighbours that pass the ratio test.

  Args:
    a: keypoints of the first picture.
    b: keypoints of the second.
    ratio: the distance is below this share of that to the second nearest;
      None: no such test.
    min_cosine: smallest product of the two descriptors.
  """
  if len(a.xy) < 2 or len(b.xy) < 2:
    return np.zeros((0, 2), np.int64)
  similarity = a.descriptors @ b.descriptors.T
  best = np.argmax(similarity, axis=1)
  rows = np.arange(len(best))
  top = similarity[rows, best]
  similarity[rows, best] = -1.0
  second = similarity.max(axis=1)
  similarity[rows, best] = top
  back = np.argmax(similarity, axis=0)
  keep = (back[best] == rows) & (top >= min_cosine)
  if ratio is not None:
    distance, other = 2.0 - 2.0 * top, 2.0 - 2.0 * second
    keep &= distance < ratio**2 * other
  return np.stack([rows[keep], best[keep]], axis=1)


def rays(xy: np.ndarray, intrinsics: np.ndarray) -> np.ndarray:
  """[n, 3] directions (x, y, 1) of pixels [n, 2]."""
  ones = np.ones((len(xy), 1))
  return np.concatenate([xy, ones], axis=1) @ np.linalg.inv(intrinsics).T


def verify(
  a: Keypoints, b: Keypoints, matches: np.ndarray, intrinsics: np.ndarray
) -> Pair | None:
  """The relative camera that most matches agree on, or None below 25.

  Args:
    a: keypoints of the first picture.
    b: keypoints of the second.
    matches: [m, 2], from `match`.
    intrinsics: [3, 3] of both.
  """
  if len(matches) < MIN_INLIERS:
    return None
  xy_a, xy_b = a.xy[matches[:, 0]], b.xy[matches[:, 1]]
  cv2.setRNGSeed(0)
  essential, inlier = cv2.findEssentialMat(
    xy_a,
    xy_b,
    intrinsics,
    method=cv2.RANSAC,
    prob=_CONFIDENCE,
    threshold=EPIPOLAR_PX,
    maxIters=_ITERATIONS,
  )
  if essential is None or essential.shape != (3, 3):
    return None
  inlier = inlier.ravel().astype(bool)
  if np.count_nonzero(inlier) < MIN_INLIERS:
    return None
  _, rotation, translation, _ = cv2.recoverPose(
    essential, xy_a[inlier], xy_b[inlier], intrinsics
  )
  angle = ray_angles(
    rays(xy_a[inlier], intrinsics) @ rotation.T, rays(xy_b[inlier], intrinsics)
  )
  return Pair(
    matches[inlier],
    len(matches),
    rotation,
    translation.ravel(),
    float(np.median(angle)),
    rotation_residual_deg(xy_a[inlier], xy_b[inlier], intrinsics),
  )


def ray_angles(a: np.ndarray, b: np.ndarray) -> np.ndarray:
  """[n] angles in degrees between directions [n, 3]."""
  cross = np.linalg.norm(np.cross(a, b), axis=1)
  return np.rad2deg(np.arctan2(cross, np.einsum("ij,ij->i", a, b)))


def rotation_residual_deg(
  xy_a: np.ndarray, xy_b: np.ndarray, intrinsics: np.ndarray
) -> float:
  """Upper quartile of the angles that the best pure rotation leaves.

  The rotation is fitted to all matches (Kabsch on rays, twice, the second time
  without the worst quarter). A camera that only turns leaves noise, below a
  pixel; translation in front of a scene with depth leaves more. Unlike the
  essential matrix, this is well conditioned without parallax.
  """
  ray_a, ray_b = rays(xy_a, intrinsics), rays(xy_b, intrinsics)
  ray_a /= np.linalg.norm(ray_a, axis=1, keepdims=True)
  ray_b /= np.linalg.norm(ray_b, axis=1, keepdims=True)
  keep = np.ones(len(ray_a), bool)
  angle = np.zeros(len(ray_a))
  for _ in range(2):
    u, _, vt = np.linalg.svd(ray_b[keep].T @ ray_a[keep])
    sign = np.array([1.0, 1.0, np.sign(np.linalg.det(u @ vt))])
    angle = ray_angles(ray_a @ ((u * sign) @ vt).T, ray_b)
    keep = angle <= np.quantile(angle, 0.75)
  return float(np.quantile(angle, 0.75))


def triangulate(
  rays_a: np.ndarray,
  rays_b: np.ndarray,
  w2c_a: np.ndarray,
  w2c_b: np.ndarray,
) -> np.ndarray:
  """[n, 3] world points by the linear method, one camera pair per row.

  Args:
    rays_a: [n, 3] directions (x, y, 1) in the first camera.
    rays_b: [n, 3] in the second.
    w2c_a: [n, 3, 4].
    w2c_b: [n, 3, 4].

  Returns:
    Points; at infinity they are huge, and the caller tests them.
  """
  rows = []
  for direction, w2c in ((rays_a, w2c_a), (rays_b, w2c_b)):
    for axis in (0, 1):
      rows.append(direction[:, axis, None] * w2c[:, 2] - w2c[:, axis])
  _, _, vt = np.linalg.svd(np.stack(rows, axis=1))
  solution = vt[:, 3]
  weight = solution[:, 3:]
  safe = np.where(np.abs(weight) > 1e-12, weight, 1e-12)
  return solution[:, :3] / safe
