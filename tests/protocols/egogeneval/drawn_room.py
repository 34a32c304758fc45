# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""A small textured room, ray-cast exactly, seen by two cameras of one rig."""

import cv2
import numpy as np
from scipy.spatial import transform

from protocols.egogeneval import scenes

SIZE = (144, 192)
DEPTH_FOCAL, COLOUR_FOCAL = 175.0, 158.0
OFFSET_M, OFFSET_ROLL_DEG = (-0.03, 0.01), 0.5
_CENTER = (95.5, 71.5)


def intrinsics(focal):
  """[3, 3] at `SIZE`."""
  return np.array([[focal, 0, _CENTER[0]], [0, focal, _CENTER[1]], [0, 0, 1.0]])


def offset():
  """Depth camera to colour camera."""
  found = np.eye(4)
  roll = transform.Rotation.from_euler("z", OFFSET_ROLL_DEG, degrees=True)
  found[:3, :3] = roll.as_matrix()
  found[:2, 3] = OFFSET_M
  return found


def _texture(seed):
  rng = np.random.default_rng(seed)
  layers = [
    cv2.resize(rng.random((n, n, 3)), (256, 256), interpolation=cv2.INTER_CUBIC)
    for n in (6, 20, 60)
  ]
  tone = 50 + 40 * (seed % 4)  # Surfaces differ, so outlines are edges.
  return np.clip(tone + 60 * (sum(layers) - 1.5), 0, 255).astype(np.float32)


def _surfaces():
  """(corner, edge, edge) of the walls and of boards before them."""
  boards = [(-0.9, -0.5, 1.6), (0.25, -0.2, 1.3), (-0.35, 0.3, 1.1)]
  return [
    ((-4, -3, 3.0), (8, 0, 0), (0, 6, 0)),
    ((-2.2, -3, 0), (0, 0, 4), (0, 6, 0)),
    ((2.4, -3, 0), (0, 0, 4), (0, 6, 0)),
    ((-4, 1.1, 0), (8, 0, 0), (0, 0, 4)),
    *(((x, y, z), (0.5, 0, 0.1), (0, 0.45, 0.05)) for x, y, z in boards),
  ]


_ROOM = [
  (np.array(surface, float), _texture(seed))
  for seed, surface in enumerate(_surfaces())
]


def render(focal, pose_c2w):
  """(RGB uint8 [h, w, 3], depth float32 [h, w])."""
  height, width = SIZE
  row, column = np.indices(SIZE)
  rays = np.stack(
    [
      (column - _CENTER[0]) / focal,
      (row - _CENTER[1]) / focal,
      np.ones(SIZE),
    ],
    axis=-1,
  )
  rays = rays @ pose_c2w[:3, :3].T
  depth = np.full(SIZE, np.inf)
  image = np.zeros((height, width, 3), np.float32)
  for (corner, across, down), texture in _ROOM:
    normal = np.cross(across, down)
    facing = rays @ normal
    distance = normal @ (corner - pose_c2w[:3, 3]) / facing
    place = pose_c2w[:3, 3] + distance[..., None] * rays - corner
    u = place @ across / (across @ across)
    v = place @ down / (down @ down)
    hit = (distance > 0.05) & (distance < depth)
    hit &= (u >= 0) & (u <= 1) & (v >= 0) & (v <= 1)
    depth[hit] = distance[hit]
    scale = 255.0 / 4.0
    size = np.linalg.norm([across, down], axis=1)
    colour = cv2.remap(
      texture,
      (u * size[0] * scale).astype(np.float32),
      (v * size[1] * scale).astype(np.float32),
      cv2.INTER_LINEAR,
      borderMode=cv2.BORDER_REFLECT,
    )
    image[hit] = colour[hit]
  depth[~np.isfinite(depth)] = np.nan
  return np.rint(image).astype(np.uint8), depth.astype(np.float32)


def depth_poses(count):
  """[count, 4, 4] true poses of the depth camera on an arc."""
  poses = np.tile(np.eye(4), (count, 1, 1))
  for i, t in enumerate(np.linspace(-1, 1, count)):
    turn = transform.Rotation.from_euler(
      "yx", [12.0 * t, 3.0 * np.sin(3 * t)], degrees=True
    )
    poses[i, :3, :3] = turn.as_matrix()
    poses[i, :3, 3] = (-0.1 * t, 0.04 * np.cos(2 * t), 0.05 * t)
  return poses


def recording(folder, count, *, turn_share):
  """A scene as a careless recorder leaves it.

  Depth and colour are not registered, one focal length is stated for both,
  and the stated poses turn `turn_share` times as far as the cameras did.
  """
  frames = []
  for i, pose in enumerate(depth_poses(count)):
    image, _ = render(COLOUR_FOCAL, pose @ np.linalg.inv(offset()))
    _, depth = render(DEPTH_FOCAL, pose)
    path = folder / f"{i:03d}.png"
    cv2.imwrite(str(path), image[..., ::-1])
    turn = transform.Rotation.from_matrix(pose[:3, :3]).as_rotvec()
    stated = pose.copy()
    stated[:3, :3] = transform.Rotation.from_rotvec(
      turn_share * turn
    ).as_matrix()
    frames.append(
      scenes.SceneFrame(
        str(i), path, f"${{SYNTHETIC_ROOT}}/room/{i:03d}.png", stated,
        intrinsics(DEPTH_FOCAL), lambda depth=depth: depth,
      )
    )  # fmt: skip
  return scenes.Scene("synthetic", "room", tuple(frames), "drawn")


def write_seven_scenes(folder, scene):
  """Writes a scene in 7-Scenes layout."""
  for i, frame in enumerate(scene.frames):
    stem = folder / f"frame-{i:06d}"
    cv2.imwrite(f"{stem}.color.png", frame.image()[..., ::-1])
    counts = np.nan_to_num(1000.0 * frame.read_depth(), nan=0.0)
    cv2.imwrite(f"{stem}.depth.png", np.rint(counts).astype(np.uint16))
    np.savetxt(f"{stem}.pose.txt", frame.pose_c2w)
  np.savetxt(folder / "camera-intrinsics.txt", scene.frames[0].intrinsics)
