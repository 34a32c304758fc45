# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Bundle adjustment by pycolmap (Ceres), where it is installed.

The same problem as `bundle_adjustment.adjust` - Huber's loss at the same bound,
pose 0 fixed, one focal length, the principal point kept - handed to COLMAP's
solver. Points that only one picture sees stay where they are. One thread, so
that the same input gives the same digits. Pixels are
made square before (y times fx / fy) and moved to the principal point, so
COLMAP's corner origin plays no part.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
from typing import Any

import numpy as np

from perception import bundle_adjustment as ba

MODULE = "pycolmap"
_MIN_MAJOR = 4  # frames and rigs; Ceres options in a group of their own
_FUNCTION_TOLERANCE = 1e-8


def version() -> str:
  """Version of a pycolmap that can be used, or an empty string."""
  if importlib.util.find_spec(MODULE) is None:
    return ""
  try:
    found = importlib.metadata.version(MODULE)
  except importlib.metadata.PackageNotFoundError:
    return ""
  return found if int(found.split(".")[0]) >= _MIN_MAJOR else ""


def adjust(
  w2c: np.ndarray,
  points: np.ndarray,
  intrinsics: np.ndarray,
  seen: ba.Observations,
  *,
  refine_focal: bool,
) -> ba.Solution:
  """See `bundle_adjustment.adjust`."""
  import pycolmap

  focal = np.asarray(intrinsics, np.float64)[[0, 1], [0, 1]]
  squared = (seen.xy - intrinsics[:2, 2]) * (1.0, focal[0] / focal[1])
  scene, ids = _scene(pycolmap, w2c, points, squared, float(focal[0]), seen)
  options = pycolmap.BundleAdjustmentOptions(
    refine_focal_length=refine_focal,
    refine_extra_params=False,
    print_summary=False,
  )
  options.ceres.loss_function_type = pycolmap.LossFunctionType.HUBER
  options.ceres.loss_function_scale = ba.HUBER_PX
  options.ceres.solver_options.num_threads = 1
  options.ceres.solver_options.function_tolerance = _FUNCTION_TOLERANCE
  config = pycolmap.BundleAdjustmentConfig()
  for camera in range(len(w2c)):
    config.add_image(camera + 1)
  config.set_constant_rig_from_world_pose(1)
  pycolmap.create_default_bundle_adjuster(options, config, scene).solve()
  new_w2c = np.stack(
    [
      scene.image(camera + 1).cam_from_world().matrix()
      for camera in range(len(w2c))
    ]
  )
  new_points = np.array(points, np.float64)
  for row, number in ids.items():
    new_points[row] = scene.point3D(number).xyz
  new_k = np.array(intrinsics, np.float64)
  new_k[[0, 1], [0, 1]] *= scene.camera(1).focal_length / focal[0]
  _, residual = ba.project(new_w2c, new_points, new_k, seen)
  error = np.linalg.norm(residual, axis=1)
  return ba.Solution(new_w2c, new_points, new_k, error)


def _scene(
  pycolmap: Any,
  w2c: np.ndarray,
  points: np.ndarray,
  xy: np.ndarray,
  focal: float,
  seen: ba.Observations,
) -> tuple[Any, dict[int, int]]:
  """A reconstruction with images 1.., and by row the ids of its points."""
  scene = pycolmap.Reconstruction()
  side = int(np.ceil(2 * np.abs(xy).max())) + 1
  scene.add_camera_with_trivial_rig(
    pycolmap.Camera(
      model="SIMPLE_PINHOLE",
      width=side,
      height=side,
      params=[focal, 0.0, 0.0],
      camera_id=1,
    )
  )
  place = np.zeros(len(xy), np.int64)
  for camera, pose in enumerate(w2c):
    rows = np.flatnonzero(seen.camera == camera)
    place[rows] = np.arange(len(rows))
    image = pycolmap.Image(
      name=str(camera), keypoints=xy[rows], camera_id=1, image_id=camera + 1
    )
    rotation = pycolmap.Rotation3d(pose[:, :3])
    scene.add_image_with_trivial_frame(
      image, pycolmap.Rigid3d(rotation, pose[:, 3])
    )
  order = np.argsort(seen.point, kind="stable")
  ends = np.cumsum(np.bincount(seen.point, minlength=len(points)))
  ids = {}
  for point, rows in enumerate(np.split(order, ends[:-1])):
    if len(rows) > 1:
      track = [
        pycolmap.TrackElement(int(seen.camera[row]) + 1, int(place[row]))
        for row in rows
      ]
      ids[point] = scene.add_point3D(points[point], pycolmap.Track(track))
  return scene, ids
