# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""The calibration world: bodies made of analytic parts, and their motion.

World frame: x right, y down, z forward, metres; the ground lies in y = 0 and
heights are negative y. A camera with the identity pose looks along +z.

A `World` is what exists; a `Motion` is what it does, frame by frame. The
motion of a body is an affine matrix per frame: rigid for an honest world,
with a scale or a shear for a defective one. Affine maps keep straight rays
straight, so every picture, depth and track stays exact under any defect.
"""

from __future__ import annotations

import dataclasses
from typing import Literal

import numpy as np
from scipy.spatial import transform as spatial

from protocols.calibration import textures as textures_lib

Vec3 = tuple[float, float, float]
Shape = Literal["plane", "box", "sphere"]
SHAPES: tuple[Shape, ...] = ("plane", "box", "sphere")


@dataclasses.dataclass(frozen=True)
class Part:
  """One analytic surface in its body's frame.

  Attributes:
    shape: `plane` (local y = 0, both sides), `box` or `sphere` (ellipsoid).
    half: half extents in metres; the y extent of a plane is not used.
    texture: index into the world's textures.
    center: position in the body's frame.
    rotation_deg: rotation vector in the body's frame, degrees.
  """

  shape: Shape
  half: Vec3
  texture: int
  center: Vec3 = (0.0, 0.0, 0.0)
  rotation_deg: Vec3 = (0.0, 0.0, 0.0)


@dataclasses.dataclass(frozen=True)
class Body:
  """Parts that move together, with their position at rest.

  Attributes:
    name: unique in the world.
    parts: the surfaces.
    position: world position of the body's origin at rest; by convention the
      origin lies at the middle of the footprint, on the ground.
    yaw_deg: heading at rest, from +z towards +x.
  """

  name: str
  parts: tuple[Part, ...]
  position: Vec3 = (0.0, 0.0, 0.0)
  yaw_deg: float = 0.0


@dataclasses.dataclass(frozen=True)
class Light:
  """Sun, sky and haze. Colours are sRGB.

  Attributes:
    to_sun: direction towards the sun, world frame, any length.
    zenith: colour of the sky overhead.
    horizon: colour of the sky at eye level and of the haze.
    ambient: share of the light that comes from the sky.
    haze_m: distance at which haze hides 63 % of a surface.
    shadows: whether boxes and spheres cast shadows.
  """

  to_sun: Vec3 = (-0.45, -0.8, -0.4)
  zenith: textures_lib.Color = (0.50, 0.68, 0.86)
  horizon: textures_lib.Color = (0.95, 0.91, 0.85)
  ambient: float = 0.48
  haze_m: float = 45.0
  shadows: bool = True


@dataclasses.dataclass(frozen=True)
class World:
  """Everything that exists, at rest."""

  textures: tuple[textures_lib.Texture, ...]
  bodies: tuple[Body, ...]
  light: Light = dataclasses.field(default_factory=Light)

  def __post_init__(self) -> None:
    names = [body.name for body in self.bodies]
    if len(set(names)) != len(names):
      raise ValueError(f"body names are not unique: {names}")
    for body in self.bodies:
      for part in body.parts:
        if not 0 <= part.texture < len(self.textures):
          raise ValueError(f"{body.name}: no texture {part.texture}")

  @property
  def parts(self) -> tuple[Part, ...]:
    """All parts, body after body."""
    return tuple(part for body in self.bodies for part in body.parts)

  @property
  def part_body(self) -> np.ndarray:
    """Index of the body of each part, int32 [P]."""
    counts = [len(body.parts) for body in self.bodies]
    return np.repeat(np.arange(len(counts), dtype=np.int32), counts)

  def body_index(self, name: str) -> int:
    """Index of the body called `name`; KeyError names the known ones."""
    for index, body in enumerate(self.bodies):
      if body.name == name:
        return index
    raise KeyError(f"no body {name!r}; known: {[b.name for b in self.bodies]}")

  def part_to_body(self) -> np.ndarray:
    """Rigid pose of each part in its body's frame, float64 [P, 4, 4]."""
    poses = np.tile(np.eye(4), (len(self.parts), 1, 1))
    for pose, part in zip(poses, self.parts, strict=True):
      vector = np.deg2rad(part.rotation_deg)
      pose[:3, :3] = spatial.Rotation.from_rotvec(vector).as_matrix()
      pose[:3, 3] = part.center
    return poses

  def rest(self, frames: int) -> Motion:
    """The motion in which nothing moves."""
    poses = np.stack([yaw_pose(b.position, b.yaw_deg) for b in self.bodies])
    ids = np.array([part.texture for part in self.parts], np.int32)
    return Motion(
      body_to_world=np.tile(poses, (frames, 1, 1, 1)),
      present=np.ones((frames, len(self.bodies)), bool),
      texture_ids=np.tile(ids, (frames, 1)),
    )


@dataclasses.dataclass(frozen=True, eq=False)
class Motion:
  """State of every body and part in every frame.

  Attributes:
    body_to_world: affine matrices, float64 [T, B, 4, 4].
    present: whether a body exists, bool [T, B].
    texture_ids: texture of each part, int32 [T, P].
  """

  body_to_world: np.ndarray
  present: np.ndarray
  texture_ids: np.ndarray

  @property
  def frames(self) -> int:
    """Number of frames T."""
    return len(self.body_to_world)

  def with_body(self, body: int, poses: np.ndarray) -> Motion:
    """The same motion with other matrices [T, 4, 4] for one body."""
    matrices = self.body_to_world.copy()
    matrices[:, body] = poses
    return dataclasses.replace(self, body_to_world=matrices)

  def without_body_from(self, body: int, frame: int) -> Motion:
    """The body exists no more from `frame` on."""
    present = self.present.copy()
    present[frame:, body] = False
    return dataclasses.replace(self, present=present)

  def with_texture_from(self, part: int, texture: int, frame: int) -> Motion:
    """The part wears another texture from `frame` on."""
    ids = self.texture_ids.copy()
    ids[frame:, part] = texture
    return dataclasses.replace(self, texture_ids=ids)


def yaw_pose(position: Vec3 | np.ndarray, yaw_deg: float) -> np.ndarray:
  """Pose [4, 4] of a body standing at `position`, heading `yaw_deg`.

  The body's +z axis points along the heading: 0 is world +z, 90 world +x.
  """
  yaw = np.deg2rad(yaw_deg)
  pose = np.eye(4)
  pose[0, 0] = pose[2, 2] = np.cos(yaw)
  pose[0, 2], pose[2, 0] = np.sin(yaw), -np.sin(yaw)
  pose[:3, 3] = position
  return pose


def look_at(
  position: Vec3 | np.ndarray, target: Vec3 | np.ndarray
) -> np.ndarray:
  """Camera-to-world pose [4, 4] at `position`, looking at `target`, level.

  Raises:
    ValueError: the viewing direction is vertical or has no length.
  """
  eye = np.asarray(position, np.float64)
  forward = np.asarray(target, np.float64) - eye
  right = np.cross((0.0, 1.0, 0.0), forward)
  if np.linalg.norm(right) < 1e-9:
    raise ValueError(f"no level camera looks from {position} to {target}")
  forward = forward / np.linalg.norm(forward)
  right = right / np.linalg.norm(right)
  pose = np.eye(4)
  pose[:3, 0] = right
  pose[:3, 1] = np.cross(forward, right)
  pose[:3, 2] = forward
  pose[:3, 3] = eye
  return pose
