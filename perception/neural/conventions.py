# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Where the conventions of other systems become ours, and nowhere else.

Ours: integer coordinate = pixel centre, x right, y down; OpenCV cameras, poses
camera-to-world [4, 4]. Others count from the outer corner of the first pixel
(its centre lies at +0.5) and give world-to-camera matrices.

| system | pose | pixel origin |
|---|---|---|
| Depth Anything 3 | world-to-camera [3, 4] | corner |
| MegaSaM | camera-to-world | corner (its K is scaled plainly) |
| CoTracker, OpenCV | - | centre: nothing to convert |
| SAM 2 prompts, Grounding DINO and Florence-2 boxes | - | corner |

All functions are NumPy, in float64 unless stated. Source: specs/perception.md
section 3.
"""

from __future__ import annotations

import numpy as np

from perception import errors

_HALF = 0.5


def orthonormalise(rotation: np.ndarray) -> np.ndarray:
  """The nearest proper rotations [..., 3, 3], by SVD with determinant +1."""
  u, _, vt = np.linalg.svd(np.asarray(rotation, np.float64))
  sign = np.linalg.det(u @ vt)
  u = np.concatenate([u[..., :2], u[..., 2:] * sign[..., None, None]], axis=-1)
  return u @ vt


def homogeneous(matrices: np.ndarray) -> np.ndarray:
  """[N, 3, 4] or [N, 4, 4] -> [N, 4, 4] float64 with last row 0 0 0 1.

  Raises:
    InputError: another shape, or non-finite values.
  """
  matrices = np.asarray(matrices, np.float64)
  if matrices.ndim != 3 or matrices.shape[1:] not in ((3, 4), (4, 4)):
    raise errors.InputError(
      "camera matrices",
      "shape",
      found=matrices.shape,
      expected="[N, 3, 4] or [N, 4, 4]",
    )
  if not np.all(np.isfinite(matrices)):
    raise errors.InputError(
      "camera matrices", "values", found="NaN or inf", expected="finite values"
    )
  result = np.tile(np.eye(4), (len(matrices), 1, 1))
  result[:, :3] = matrices[:, :3]
  return result


def invert_rigid(matrices: np.ndarray) -> np.ndarray:
  """Inverse of rigid [N, 3|4, 4] matrices, rotations made exact first."""
  full = homogeneous(matrices)
  rotation = orthonormalise(full[:, :3, :3])
  inverse = np.tile(np.eye(4), (len(full), 1, 1))
  transposed = np.swapaxes(rotation, 1, 2)
  inverse[:, :3, :3] = transposed
  inverse[:, :3, 3] = -np.einsum("nij,nj->ni", transposed, full[:, :3, 3])
  return inverse


def c2w_from_w2c(w2c: np.ndarray) -> np.ndarray:
  """World-to-camera [N, 3|4, 4] -> camera-to-world [N, 4, 4] float64."""
  return invert_rigid(w2c)


def w2c_from_c2w(c2w: np.ndarray) -> np.ndarray:
  """Camera-to-world [N, 4, 4] -> world-to-camera [N, 4, 4] float64."""
  return invert_rigid(c2w)


def rebase(c2w: np.ndarray) -> np.ndarray:
  """Poses in the frame of the first: c2w_0^-1 c2w_n, the first exactly I."""
  based = invert_rigid(c2w[:1]) @ homogeneous(c2w)
  based[:, :3, :3] = orthonormalise(based[:, :3, :3])
  based[0] = np.eye(4)
  return based


def intrinsics_from_corner(intrinsics: np.ndarray) -> np.ndarray:
  """[..., 3, 3] with a corner-origin principal point -> ours (cx, cy - 0.5)."""
  shifted = np.array(intrinsics, np.float64)
  shifted[..., :2, 2] -= _HALF
  return shifted


def intrinsics_to_corner(intrinsics: np.ndarray) -> np.ndarray:
  """Ours -> a corner-origin principal point (cx, cy + 0.5)."""
  shifted = np.array(intrinsics, np.float64)
  shifted[..., :2, 2] += _HALF
  return shifted


def points_to_corner(xy: np.ndarray) -> np.ndarray:
  """Points [..., 2] or boxes [..., 4] in our pixels -> corner origin."""
  return np.asarray(xy, np.float64) + _HALF


def boxes_from_corner(
  boxes: np.ndarray, *, size: tuple[int, int]
) -> tuple[np.ndarray, np.ndarray]:
  """Corner-origin boxes -> ours, clipped to the image.

  Args:
    boxes: [N, 4] (x_min, y_min, x_max, y_max), pixels, corner origin.
    size: (H, W) of the image.

  Returns:
    [K, 4] float32 boxes with extent, and [N] bool, which of the given ones
    they are. A box outside the image or without extent is left out.
  """
  height, width = size
  boxes = np.asarray(boxes, np.float64).reshape(-1, 4)
  limit = np.array([width, height, width, height], np.float64)
  clipped = np.clip(boxes, 0.0, limit)
  shifted = (clipped - _HALF).astype(np.float32)
  keep = np.all(np.isfinite(boxes), axis=1)
  keep &= np.all(shifted[:, 2:] > shifted[:, :2], axis=1)
  return shifted[keep], keep


def normalise_cameras(
  c2w: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, float]:
  """The frame in which Depth Anything 3 takes known cameras.

  Poses are taken relative to the first camera and divided by
  m = max(0.1, lower median distance from it, itself included).

  Args:
    c2w: [N, 4, 4].

  Returns:
    World-to-camera [N, 4, 4] in that frame, the first camera's pose [4, 4],
    and m. Any other camera P goes to the same frame by P' = P_0^-1 P with its
    translation divided by m (`to_normalised`).

  Source: specs/perception.md section 5, specs/orbia.md section 7.7.
  """
  first = homogeneous(c2w)[0]
  based = invert_rigid(first[None]) @ homogeneous(c2w)
  distance = np.sort(np.linalg.norm(based[:, :3, 3], axis=1))
  scale = max(0.1, float(distance[(len(distance) - 1) // 2]))
  return w2c_from_c2w(to_normalised(c2w, first, scale)), first, scale


def to_normalised(
  c2w: np.ndarray, first: np.ndarray, scale: float
) -> np.ndarray:
  """Camera-to-world [V, 4, 4] in the frame of `normalise_cameras`."""
  based = invert_rigid(first[None]) @ homogeneous(c2w)
  based[:, :3, 3] /= scale
  return based
