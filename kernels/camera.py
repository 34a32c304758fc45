# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Pinhole cameras and rigid poses.

Conventions: integer coordinates are pixel centres, x right, y down. Camera
axes are OpenCV's (x right, y down, z forward). A pose is a 4x4 camera-to-world
matrix [R | c] with a rotation R. Depth is the camera-axis Z, not the ray
length. Intrinsics are [[fx, 0, cx], [0, fy, cy], [0, 0, 1]]; an entry for skew
is ignored. Products run at `HIGHEST` precision, since the default of an
accelerator would round coordinates to about three digits.
"""

from __future__ import annotations

import chex
import jax
import jax.numpy as jnp
from jax import Array

from kernels import numerics

_HIGHEST = jax.lax.Precision.HIGHEST


def invert_rigid(pose: Array) -> Array:
  """Inverse of a rigid 4x4 transform: [R^T | -R^T c].

  Args:
    pose: [4, 4] with an orthonormal rotation part, which is not checked.

  Returns:
    [4, 4].
  """
  _check_pose(pose)
  rotation_t = pose[:3, :3].T
  offset = -jnp.matmul(rotation_t, pose[:3, 3], precision=_HIGHEST)
  return pose.at[:3, :3].set(rotation_t).at[:3, 3].set(offset)


def transform_points(pose: Array, points: Array) -> Array:
  """R p + c for every point.

  Args:
    pose: [4, 4].
    points: [..., 3].

  Returns:
    [..., 3].
  """
  _check_pose(pose)
  _check_points(points)
  return jnp.stack(
    transform_coordinates(pose, *jnp.moveaxis(points, -1, 0)), axis=-1
  )


def transform_coordinates(
  pose: Array, x: Array, y: Array, z: Array
) -> tuple[Array, Array, Array]:
  """`transform_points` on coordinates that are kept apart.

  Millions of points are lifted faster this way, since interleaved coordinates
  keep a CPU's vector registers from being used. Written out, the product also
  runs in full precision on every device.

  Args:
    pose: [4, 4].
    x: array of any shape.
    y: array of the same shape.
    z: array of the same shape.

  Returns:
    Transformed x, y, z.
  """
  _check_pose(pose)
  row_x, row_y, row_z = (
    pose[i, 0] * x + pose[i, 1] * y + pose[i, 2] * z + pose[i, 3]
    for i in range(3)
  )
  return row_x, row_y, row_z


def relative_pose(pose_a_c2w: Array, pose_b_c2w: Array) -> Array:
  """Camera b in the frame of camera a: inv(a) b.

  Args:
    pose_a_c2w: [4, 4] camera-to-world.
    pose_b_c2w: [4, 4] camera-to-world.

  Returns:
    [4, 4]; maps b's camera coordinates to a's.
  """
  _check_pose(pose_b_c2w)
  return jnp.matmul(invert_rigid(pose_a_c2w), pose_b_c2w, precision=_HIGHEST)


def rotation_angle(rotation: Array) -> Array:
  """Angle of a rotation matrix in [0, pi] radians.

  atan2(|vee(R - R^T)| / 2, (trace R - 1) / 2), accurate near 0 and pi.

  Args:
    rotation: [3, 3] rotation matrix.

  Returns:
    Scalar. The gradient is 0 at the identity and at half turns.
  """
  chex.assert_shape(rotation, (3, 3))
  chex.assert_type(rotation, float)
  axis = jnp.stack(
    [
      rotation[2, 1] - rotation[1, 2],
      rotation[0, 2] - rotation[2, 0],
      rotation[1, 0] - rotation[0, 1],
    ]
  )
  sine = numerics.safe_norm(axis, axis=0) / 2
  cosine = (jnp.trace(rotation) - 1) / 2
  return jnp.arctan2(sine, cosine)


def unproject(depth: Array, intrinsics: Array) -> Array:
  """Camera points of a depth map.

  Args:
    depth: [h, w] camera-axis depth.
    intrinsics: [3, 3] at the size of `depth`.

  Returns:
    [h, w, 3] points (x, y, z) in the camera frame; a NaN depth gives NaN.
  """
  chex.assert_rank(depth, 2)
  height, width = depth.shape
  x, y = jnp.meshgrid(
    jnp.arange(width, dtype=depth.dtype), jnp.arange(height, dtype=depth.dtype)
  )
  return unproject_pixels(jnp.stack([x, y], axis=-1), depth, intrinsics)


def unproject_pixels(xy: Array, depth: Array, intrinsics: Array) -> Array:
  """Camera points of pixels with given depths.

  Args:
    xy: [..., 2] pixel coordinates.
    depth: [...] camera-axis depth.
    intrinsics: [3, 3] at the resolution of `xy`.

  Returns:
    [..., 3]: ((x - cx) d / fx, (y - cy) d / fy, d).
  """
  _check_intrinsics(intrinsics)
  chex.assert_type([xy, depth], float)
  chex.assert_shape(xy, (*depth.shape, 2))
  x, y = unproject_coordinates(xy[..., 0], xy[..., 1], depth, intrinsics)
  return jnp.stack([x, y, depth], axis=-1)


def unproject_coordinates(
  x: Array, y: Array, depth: Array, intrinsics: Array
) -> tuple[Array, Array]:
  """Camera-frame x and y of pixels (x, y) with depths; z is the depth.

  Args:
    x: pixel columns, any shape.
    y: pixel rows, same shape.
    depth: camera-axis depths, same shape.
    intrinsics: [3, 3].

  Returns:
    Camera x and y.
  """
  _check_intrinsics(intrinsics)
  camera_x = (x - intrinsics[0, 2]) * depth / intrinsics[0, 0]
  camera_y = (y - intrinsics[1, 2]) * depth / intrinsics[1, 1]
  return camera_x, camera_y


def project(points_camera: Array, intrinsics: Array) -> tuple[Array, Array]:
  """Pixel coordinates and depths of camera points.

  Args:
    points_camera: [..., 3].
    intrinsics: [3, 3].

  Returns:
    xy [..., 2] and z [...]. Points with z <= 0 lie behind the camera: the
    caller masks them by z. At z == 0 exactly xy is the principal point.
  """
  _check_intrinsics(intrinsics)
  _check_points(points_camera)
  z = points_camera[..., 2]
  x_ratio = numerics.safe_divide(points_camera[..., 0], z, fill=0.0)
  y_ratio = numerics.safe_divide(points_camera[..., 1], z, fill=0.0)
  x = intrinsics[0, 0] * x_ratio + intrinsics[0, 2]
  y = intrinsics[1, 1] * y_ratio + intrinsics[1, 2]
  return jnp.stack([x, y], axis=-1), z


def _check_pose(pose: Array) -> None:
  chex.assert_shape(pose, (4, 4))
  chex.assert_type(pose, float)


def _check_points(points: Array) -> None:
  chex.assert_axis_dimension(points, -1, 3)
  chex.assert_type(points, float)


def _check_intrinsics(intrinsics: Array) -> None:
  chex.assert_shape(intrinsics, (3, 3))
  chex.assert_type(intrinsics, float)
