# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Posed RGB-D scenes to mine from: one form for six folder layouts.

A scene lists its frames by loader index. Poses are camera-to-world in metres
with OpenCV axes, depth is camera-axis Z in metres with NaN = unknown at the
depth camera's own size, intrinsics belong to the colour image; the depth map
is taken to cover the same field of view. Image references are written
`${ROOT}/relative`. Source: EgoGenEval specification 2.1, 4.2, 12.1 and the
datasets' public formats.
"""

from __future__ import annotations

import csv
import dataclasses
import importlib
import json
import pathlib
from collections.abc import Callable, Sequence
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from perception import images, recorded
from perception.errors import InputError
from protocols.egogeneval import frames

# OpenGL camera axes (y up, z backward) to OpenCV's.
_OPENGL_TO_OPENCV = np.diag([1.0, -1.0, -1.0, 1.0])


@dataclasses.dataclass(frozen=True, eq=False)
class SceneFrame:
  """One posed view.

  Attributes:
    frame_id: loader index as text.
    path: colour image.
    reference: `${ROOT}/relative`.
    pose_c2w: float64 [4, 4].
    intrinsics: float64 [3, 3] at the colour image's size.
    read_depth: reads float32 [h, w] metres, NaN = unknown.
    correct: what makes the file's picture that of a pinhole camera; None
      where it is one already.
  """

  frame_id: str
  path: pathlib.Path
  reference: str
  pose_c2w: NDArray[np.float64]
  intrinsics: NDArray[np.float64]
  read_depth: Callable[[], NDArray[np.float32]]
  correct: Callable[[NDArray[np.uint8]], NDArray[np.uint8]] | None = None

  def image(self) -> NDArray[np.uint8]:
    """The colour image, RGB uint8."""
    image = np.asarray(images.read_rgb(self.path), np.uint8)
    return image if self.correct is None else self.correct(image)


@dataclasses.dataclass(frozen=True, eq=False)
class Scene:
  """A scene of one dataset.

  Attributes:
    dataset: name in the manifest.
    scene_id: id in the manifest.
    frames: views with finite poses, in loader order.
    calibration: where pose and intrinsics come from.
    skipped: frames left out for want of a finite pose.
  """

  dataset: str
  scene_id: str
  frames: tuple[SceneFrame, ...]
  calibration: str
  skipped: int = 0


def open_scene(
  path: pathlib.Path, *, layout: str, scene_id: str = "", dataset: str = ""
) -> Scene:
  """Opens a scene folder.

  Args:
    path: the folder.
    layout: one of `LAYOUTS`.
    scene_id: id in the manifest; by default the folder's name.
    dataset: name in the manifest; by default the layout's. Layouts that the
      benchmark does not have count as `synthetic`, the schema's only other
      value.

  Raises:
    InputError: for an unknown layout or a folder that is not of it.
  """
  if layout not in _READERS:
    raise InputError(
      path, "layout", found=layout, expected=f"one of {', '.join(LAYOUTS)}"
    )
  name = scene_id or path.resolve().name.replace("__", "_")
  scene = _READERS[layout](path, name)
  if len(scene.frames) < 2:
    raise InputError(
      path,
      "frames",
      found=f"{len(scene.frames)} posed frames",
      expected="at least two",
    )
  return dataclasses.replace(scene, dataset=dataset or scene.dataset)


def _recorded(path: pathlib.Path, scene_id: str) -> Scene:
  """7-Scenes and TUM RGB-D folders, through perception's readers."""
  source = recorded.open_rgbd(path)
  found = [
    SceneFrame(
      str(row),
      source.colour_files[row],
      _reference("SYNTHETIC_ROOT", path, source.colour_files[row], scene_id),
      np.asarray(source.c2w[row], np.float64),
      np.asarray(source.intrinsics[row], np.float64),
      _bound(source.depth, row),
    )
    for row in range(len(source))
  ]
  return _scene("synthetic", scene_id, found, "recorded", source.skipped)


def _scannet(path: pathlib.Path, scene_id: str) -> Scene:
  """`color/N.jpg`, `depth/N.png`, `pose/N.txt`, `intrinsic/`, alignment."""
  matrix = _matrix(path / "intrinsic" / "intrinsic_color.txt")[:3, :3]
  alignment = _axis_alignment(path / f"{path.name}.txt")
  colour = sorted(
    [*(path / "color").glob("*.jpg"), *(path / "color").glob("*.png")],
    key=images.natural_key,
  )
  found = []
  for index, file in enumerate(colour):
    pose = _matrix(path / "pose" / f"{file.stem}.txt")
    # Frames that were not tracked hold infinities.
    if np.all(np.isfinite(pose)):
      pose = alignment @ pose
    found.append(
      SceneFrame(
        str(index),
        file,
        _reference("SCANNET_ROOT", path, file, path.name),
        pose,
        matrix,
        _png_depth(path / "depth" / f"{file.stem}.png", 1000),
      )
    )
  return _scene("scannet", scene_id, found, "scannet intrinsic/, pose/")


def _scannetpp(path: pathlib.Path, scene_id: str) -> Scene:
  """`dslr/`: nerfstudio transforms, undistorted images, rendered depth."""
  root = path / "dslr"
  content = _json(root / "nerfstudio" / "transforms_undistorted.json")
  entries = [*content.get("frames", []), *content.get("test_frames", [])]
  entries.sort(key=lambda entry: str(entry.get("file_path")))
  matrix = np.array(
    [
      [content["fl_x"], 0.0, content["cx"]],
      [0.0, content["fl_y"], content["cy"]],
      [0.0, 0.0, 1.0],
    ]
  )
  folder = root / "resized_undistorted_images"
  found = []
  for index, entry in enumerate(entries):
    file = folder / pathlib.PurePath(entry["file_path"]).name
    found.append(
      SceneFrame(
        str(index),
        file,
        _reference("SCANNETPP_ROOT", path, file, path.name),
        np.asarray(entry["transform_matrix"], np.float64) @ _OPENGL_TO_OPENCV,
        matrix,
        _png_depth(root / "render_depth" / f"{file.stem}.png", 1000),
      )
    )
  return _scene("scannetpp", scene_id, found, "scannetpp nerfstudio transforms")


def _hypersim(path: pathlib.Path, scene_id: str) -> Scene:
  """One camera of a Hypersim scene; `path` is `<scene>/_detail/cam_XX`.

  Stored depth is the distance to the camera centre and becomes camera-axis Z
  here. Intrinsics are the evaluator's assumption of a 60 degree view.
  """
  root, camera = path.parent.parent, path.name
  scale = _meters_per_unit(root / "_detail" / "metadata_scene.csv")
  rotations = _hdf5(path / "camera_keyframe_orientations.hdf5")
  positions = _hdf5(path / "camera_keyframe_positions.hdf5") * scale
  colour_folder = root / "images" / f"scene_{camera}_final_preview"
  depth_folder = root / "images" / f"scene_{camera}_geometry_hdf5"
  colour = sorted(
    colour_folder.glob("frame.*.color.jpg"), key=images.natural_key
  )
  found = []
  for index, file in enumerate(colour):
    keyframe = int(file.name.split(".")[1])
    if keyframe >= len(positions):
      continue
    pose = np.eye(4)
    pose[:3, :3] = rotations[keyframe]
    pose[:3, 3] = positions[keyframe]
    height, width = images.read_rgb(file).shape[:2]
    matrix = frames.hypersim_intrinsics((height, width))
    depth_file = depth_folder / f"frame.{keyframe:04d}.depth_meters.hdf5"
    found.append(
      SceneFrame(
        str(index),
        file,
        _reference("HYPERSIM_ROOT", root, file, root.name),
        pose @ _OPENGL_TO_OPENCV,
        matrix,
        _bound(_hypersim_depth, depth_file, matrix),
      )
    )
  name = scene_id if "/" in scene_id else f"{root.name}/{camera}"
  return _scene("hypersim", name, found, "hypersim keyframes, 60 degree view")


def _matterport3d(path: pathlib.Path, scene_id: str) -> Scene:
  """`undistorted_camera_parameters/*.conf` with its images and depth."""
  configurations = sorted(
    (path / "undistorted_camera_parameters").glob("*.conf")
  )
  if not configurations:
    raise InputError(
      path, "undistorted_camera_parameters", found="no .conf", expected="one"
    )
  found: list[SceneFrame] = []
  matrix = np.eye(3)
  for line in _lines(configurations[0]):
    words = line.split()
    if words and words[0] == "intrinsics_matrix":
      matrix = np.array([float(w) for w in words[1:10]]).reshape(3, 3)
    elif words and words[0] == "scan":
      file = path / "undistorted_color_images" / words[2]
      pose = np.array([float(w) for w in words[3:19]]).reshape(4, 4)
      depth_file = path / "undistorted_depth_images" / words[1]
      found.append(
        SceneFrame(
          str(len(found)),
          file,
          _reference("MATTERPORT3D_ROOT", path, file, path.name),
          pose @ _OPENGL_TO_OPENCV,
          matrix,
          _png_depth(depth_file, 4000),
        )
      )
  return _scene("matterport3d", scene_id, found, configurations[0].name)


_READERS: dict[str, Callable[[pathlib.Path, str], Scene]] = {
  "7scenes": _recorded,
  "tum": _recorded,
  "scannet": _scannet,
  "scannetpp": _scannetpp,
  "hypersim": _hypersim,
  "matterport3d": _matterport3d,
}
LAYOUTS = tuple(_READERS)


def _scene(
  dataset: str,
  scene_id: str,
  found: Sequence[SceneFrame],
  calibration: str,
  skipped: int = 0,
) -> Scene:
  """A scene of the frames with finite, rigid poses."""
  kept = tuple(frame for frame in found if _is_rigid(frame.pose_c2w))
  return Scene(
    dataset, scene_id, kept, calibration, skipped + len(found) - len(kept)
  )


def _is_rigid(pose: NDArray[np.float64]) -> bool:
  if pose.shape != (4, 4) or not np.all(np.isfinite(pose)):
    return False
  rotation = pose[:3, :3]
  drift = np.abs(rotation @ rotation.T - np.eye(3)).max()
  return bool(drift < 1e-2 and np.linalg.det(rotation) > 0)


def _reference(
  root: str, scene: pathlib.Path, file: pathlib.Path, name: str
) -> str:
  relative = file.relative_to(scene).as_posix()
  return f"${{{root}}}/{name}/{relative}"


def _bound(function: Callable[..., Any], *arguments: Any) -> Callable[[], Any]:
  return lambda: function(*arguments)


def _png_depth(
  file: pathlib.Path, divisor: int
) -> Callable[[], NDArray[np.float32]]:
  def read() -> NDArray[np.float32]:
    counts = images.read_depth_counts(file)
    metres = counts.astype(np.float32) / np.float32(divisor)
    metres[(counts == 0) | (counts == 65535)] = np.nan
    return metres

  return read


def _hypersim_depth(
  file: pathlib.Path, intrinsics: NDArray[np.float64]
) -> NDArray[np.float32]:
  distance = _hdf5(file).astype(np.float32)
  height, width = distance.shape
  x = (np.arange(width) - intrinsics[0, 2]) / intrinsics[0, 0]
  y = (np.arange(height) - intrinsics[1, 2]) / intrinsics[1, 1]
  length = np.sqrt(1.0 + x[None, :] ** 2 + y[:, None] ** 2)
  return (distance / length).astype(np.float32)


def _hdf5(file: pathlib.Path) -> NDArray[Any]:
  try:
    h5py = importlib.import_module("h5py")  # Only Hypersim needs it.
  except ImportError as error:
    raise InputError(
      file,
      "reader",
      found="h5py is not installed",
      expected="h5py, which Hypersim's files need",
      hint="pip install h5py",
    ) from error
  try:
    with h5py.File(file, "r") as content:
      return np.asarray(content["dataset"])
  except (OSError, KeyError) as error:
    raise InputError(
      file, "hdf5", found=error, expected="a dataset called `dataset`"
    ) from error


def _meters_per_unit(file: pathlib.Path) -> float:
  """`meters_per_asset_unit`; 1.0 when the metadata is missing (2.1)."""
  if not file.exists():
    return 1.0
  rows = dict(row[:2] for row in csv.reader(_lines(file)) if len(row) >= 2)
  return float(rows.get("meters_per_asset_unit", 1.0))


def _axis_alignment(file: pathlib.Path) -> NDArray[np.float64]:
  """Axis alignment of a ScanNet scene; identity where none is stored."""
  if not file.exists():
    return np.eye(4)
  for line in _lines(file):
    key, _, value = line.partition("=")
    if key.strip() == "axisAlignment":
      return np.array([float(v) for v in value.split()]).reshape(4, 4)
  return np.eye(4)


def _matrix(file: pathlib.Path) -> NDArray[np.float64]:
  try:
    matrix = np.array(
      [
        [float(v) for v in line.split()]
        for line in _lines(file)
        if line.strip()
      ]
    )
  except ValueError as error:
    raise InputError(
      file, "matrix", found=error, expected="rows of numbers"
    ) from error
  if matrix.shape not in ((3, 3), (4, 4)):
    raise InputError(
      file, "matrix", found=matrix.shape, expected="3x3 or 4x4 numbers"
    )
  return matrix


def _lines(file: pathlib.Path) -> list[str]:
  try:
    return file.read_text(encoding="utf-8").splitlines()
  except (OSError, UnicodeDecodeError) as error:
    raise InputError(
      file, "file", found=error, expected="a readable text file"
    ) from error


def _json(file: pathlib.Path) -> dict[str, Any]:
  try:
    content: dict[str, Any] = json.loads("\n".join(_lines(file)))
  except ValueError as error:
    raise InputError(
      file, "json", found=error, expected="a JSON object"
    ) from error
  return content


def depth_at(frame: SceneFrame, size: tuple[int, int]) -> NDArray[np.float32]:
  """A frame's depth at another size, nearest pixel, NaN = unknown."""
  depth = frame.read_depth()
  if depth.shape == size:
    return depth
  resized = cv2.resize(
    depth, (size[1], size[0]), interpolation=cv2.INTER_NEAREST
  )
  return np.asarray(resized, np.float32)
