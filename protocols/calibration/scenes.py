# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Short honest scenes in the five categories of PDI-Bench.

A scene is a world, its motion, a camera path, and what the perception stage
will be told about them. All are pristine: the subject is rigid and moves
smoothly at constant speed, depth and poses are exact. `defects` spoils them.

Source of the categories: PDI specification 10.1. Distance to the camera
changes in every scene, since a subject at constant distance would hide every
error of size from the scale component.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping

import numpy as np

from protocols.calibration import sets
from protocols.calibration import world as world_lib

CATEGORIES = (
  "longitudinal_convergence",
  "dynamic_tracking",
  "biological_motion",
  "curved_motion",
  "partial_occlusion",
)


@dataclasses.dataclass(frozen=True, eq=False)
class Scene:
  """One clip before it is rendered.

  Attributes:
    category: key of the PDI category.
    world: what exists.
    motion: what it does, T frames.
    c2w: true camera-to-world poses, float64 [T, 4, 4].
    intrinsics: [3, 3] in pixels of `size`.
    size: (height, width).
    fps: frames per second.
    subject: index of the body that is scored.
    depth_gain: recorded depth over true depth, float64 [T]; ones if honest.
    recorded_c2w: poses as recorded; `c2w` if honest.
  """

  category: str
  world: world_lib.World
  motion: world_lib.Motion
  c2w: np.ndarray
  intrinsics: np.ndarray
  size: tuple[int, int]
  fps: float
  subject: int
  depth_gain: np.ndarray
  recorded_c2w: np.ndarray

  @property
  def frames(self) -> int:
    """Number of frames T."""
    return len(self.c2w)

  def subject_depth(self) -> np.ndarray:
    """Camera-axis depth of the subject's origin, metres, [T]."""
    offset = self.subject_poses()[:, :3, 3] - self.c2w[:, :3, 3]
    return np.einsum("ti,ti->t", offset, self.c2w[:, :3, 2])

  def subject_poses(self) -> np.ndarray:
    """Matrices of the subject, [T, 4, 4]."""
    return self.motion.body_to_world[:, self.subject]


def make_scene(
  category: str,
  *,
  seed: int,
  frames: int,
  size: tuple[int, int],
  fps: float,
) -> Scene:
  """A pristine scene.

  Args:
    category: one of `CATEGORIES`.
    seed: draws colours, the subject, its speed and the camera's sway.
    frames: number of frames T; the same path is walked in T frames.
    size: (height, width) in pixels.
    fps: frames per second.

  Returns:
    The scene.

  Raises:
    ValueError: an unknown category, or fewer than one frame.
  """
  if category not in _PATHS:
    raise ValueError(f"category: found {category!r}; known: {CATEGORIES}")
  if frames < 1:
    raise ValueError(f"frames: found {frames}, expected at least 1")
  rng = np.random.default_rng([CATEGORIES.index(category), seed])
  kit = sets.materials(rng)
  bodies = sets.backdrop(kit, rng)
  time = np.linspace(0.0, 1.0, frames)
  setup = _PATHS[category](kit, rng, time)
  world = sets.assemble(kit, (setup.subject, *setup.props, *bodies))
  poses = np.stack(
    [
      world_lib.yaw_pose(position, yaw)
      for position, yaw in zip(setup.position, setup.yaw_deg, strict=True)
    ]
  )
  eyes = setup.eye + _sway(rng, time, 0.03)
  targets = setup.target + _sway(rng, time, 0.02)
  c2w = np.stack(
    [
      world_lib.look_at(eye, target)
      for eye, target in zip(eyes, targets, strict=True)
    ]
  )
  return Scene(
    category=category,
    world=world,
    motion=world.rest(frames).with_body(0, poses),
    c2w=c2w,
    intrinsics=pinhole(size, focal=0.95),
    size=size,
    fps=fps,
    subject=0,
    depth_gain=np.ones(frames),
    recorded_c2w=c2w,
  )


def pinhole(size: tuple[int, int], *, focal: float) -> np.ndarray:
  """Intrinsics [3, 3] with the focal length in image widths, centred."""
  height, width = size
  f = focal * width
  return np.array(
    [[f, 0.0, (width - 1) / 2], [0.0, f, (height - 1) / 2], [0.0, 0.0, 1.0]]
  )


@dataclasses.dataclass(frozen=True, eq=False)
class _Setup:
  """A subject with its path, props, and the camera's path; arrays [T, ..]."""

  subject: world_lib.Body
  props: tuple[world_lib.Body, ...]
  position: np.ndarray
  yaw_deg: np.ndarray
  eye: np.ndarray
  target: np.ndarray


_Path = Callable[[sets.Materials, np.random.Generator, np.ndarray], _Setup]


def _sway(
  rng: np.random.Generator, time: np.ndarray, size: float
) -> np.ndarray:
  """A smooth hand-held wobble, [T, 3], zero at the first frame."""
  phase = rng.uniform(0, 2 * np.pi, (2, 3))
  speed = rng.uniform(4.0, 8.0, (2, 3))
  waves = np.sin(speed * time[:, None, None] + phase) - np.sin(phase)
  return size * waves.sum(axis=1)


def _line(
  start: world_lib.Vec3, stop: world_lib.Vec3, time: np.ndarray
) -> np.ndarray:
  """A straight path at constant speed, [T, 3]."""
  a, b = np.asarray(start, np.float64), np.asarray(stop, np.float64)
  return a + (b - a) * time[:, None]


def _heading(path: np.ndarray) -> np.ndarray:
  """Yaw along a path in degrees, [T]; a single point heads along +z."""
  if len(path) < 2:
    return np.zeros(len(path))
  step = np.gradient(path, axis=0)
  return np.rad2deg(np.unwrap(np.arctan2(step[:, 0], step[:, 2])))


def _still(point: world_lib.Vec3, time: np.ndarray) -> np.ndarray:
  return np.tile(np.asarray(point, np.float64), (len(time), 1))


def _longitudinal(
  kit: sets.Materials, rng: np.random.Generator, time: np.ndarray
) -> _Setup:
  """The subject drives away; the camera follows slowly."""
  side = rng.uniform(-0.5, 0.5)
  far = rng.uniform(10.5, 12.0)
  path = _line((side, 0, 4.6), (side + 0.3, 0, far), time)
  subject = (sets.van, sets.ball, sets.robot)[rng.integers(3)]
  return _Setup(
    subject(kit),
    (),
    path,
    _heading(path),
    _line((-0.9, -1.55, 0), (-0.7, -1.55, 1.2), time),
    _line((side - 0.2, -0.75, 5.5), (side, -0.75, 9.0), time),
  )


def _tracking(
  kit: sets.Materials, rng: np.random.Generator, time: np.ndarray
) -> _Setup:
  """The subject crosses the view; the camera runs along and falls back."""
  span = rng.uniform(4.6, 5.6)
  sign = rng.choice((-1.0, 1.0))
  path = _line((-sign * span / 2, 0, 4.8), (sign * span / 2, 0, 7.4), time)
  eye = _line(
    (-sign * span * 0.42, -1.4, 0), (sign * span * 0.42, -1.4, 0), time
  )
  subject = (sets.van, sets.ball, sets.robot)[rng.integers(3)]
  props = tuple(
    sets.pillar(f"post_{k}", (-4.5 + 3 * k, 0, 10.5), kit, half=0.13)
    for k in range(4)
  )
  return _Setup(
    subject(kit),
    props,
    path,
    _heading(path),
    eye,
    path + np.array([0, -0.7, 1.0]),
  )


def _biological(
  kit: sets.Materials, rng: np.random.Generator, time: np.ndarray
) -> _Setup:
  """A rabbit hops across, away from the camera; it is rigid."""
  sign = rng.choice((-1.0, 1.0))
  path = _line((-sign * 1.5, 0, 4.4), (sign * 1.7, 0, 7.6), time)
  hops = rng.uniform(3.0, 4.0)
  path[:, 1] -= 0.12 * (1.0 - np.cos(2 * np.pi * hops * time))
  return _Setup(
    sets.rabbit(kit),
    (),
    path,
    np.full(len(time), sign * 45.0),
    _line((-0.3 * sign, -1.35, 0), (0.3 * sign, -1.35, 0.4), time),
    _line((-0.9 * sign, -0.75, 5), (0.9 * sign, -0.75, 7), time),
  )


def _curved(
  kit: sets.Materials, rng: np.random.Generator, time: np.ndarray
) -> _Setup:
  """The subject drives away along an arc; what it shows stays in view."""
  sign = rng.choice((-1.0, 1.0))
  angle = np.deg2rad(rng.uniform(46, 54) * time)
  path = np.stack(
    [
      sign * (4.0 - 5.0 * np.cos(angle)),
      np.zeros_like(angle),
      5.0 + 5.0 * np.sin(angle),
    ],
    axis=1,
  )
  subject = (sets.van, sets.robot)[rng.integers(2)]
  return _Setup(
    subject(kit),
    (),
    path,
    _heading(path),
    _line((-0.4, -1.5, 0), (0.4, -1.5, 0), time),
    _still((sign * 0.2, -0.7, 7), time),
  )


def _occlusion(
  kit: sets.Materials, rng: np.random.Generator, time: np.ndarray
) -> _Setup:
  """The subject passes behind two pillars narrower than itself."""
  sign = rng.choice((-1.0, 1.0))
  path = _line((-sign * 1.35, 0, 5.4), (sign * 1.9, 0, 8.2), time)
  props = (
    sets.pillar("pillar_a", (-0.55 * sign, 0, 4.7), kit, half=0.09),
    sets.pillar("pillar_b", (0.65 * sign, 0, 5.6), kit, half=0.11),
  )
  subject = (sets.van, sets.robot)[rng.integers(2)]
  return _Setup(
    subject(kit),
    props,
    path,
    _heading(path),
    _line((-0.15, -1.45, 0), (0.15, -1.45, 0), time),
    _still((0.1 * sign, -0.8, 6.5), time),
  )


_PATHS: Mapping[str, _Path] = {
  "longitudinal_convergence": _longitudinal,
  "dynamic_tracking": _tracking,
  "biological_motion": _biological,
  "curved_motion": _curved,
  "partial_occlusion": _occlusion,
}
