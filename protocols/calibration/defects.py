# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Defects with a strength, and what PDI can see of each.

A defect turns a scene into a worse one: most edit the world (the picture, the
depth, the masks and the tracks then agree with the edit), two edit only what
perception reports. Strength 0 changes no bit of any output; the range of
useful strengths is stated for each. `component` is the part of PDI that
should rise; `blind` says what the published formula cannot see of it (PDI
specification sections 3 to 5 and 4.6).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping

import numpy as np

from protocols.calibration.scenes import Scene

# Height of the subjects; lengths below are multiples of it.
_BODY_M = 1.3


@dataclasses.dataclass(frozen=True)
class Defect:
  """One way to break a world.

  Attributes:
    name: key.
    edits: `world` or `observation`.
    component: `scale`, `traj`, `rigid`, or `coverage` where the only honest
      reaction is a lost mask.
    doses: strengths of the dose-response table, first 0.
    meaning: what strength 1 does.
    blind: what PDI cannot see of it.
    apply: (scene, strength) -> scene.
  """

  name: str
  edits: str
  component: str
  doses: tuple[float, ...]
  meaning: str
  blind: str
  apply: Callable[[Scene, float], Scene]


def inject(scene: Scene, name: str, *, strength: float) -> Scene:
  """The scene with one defect.

  Args:
    scene: any scene.
    name: key of `DEFECTS`.
    strength: at least 0; 0 returns an equal scene.

  Raises:
    ValueError: unknown name, negative or non-finite strength.
  """
  if name not in DEFECTS:
    raise ValueError(f"defect: found {name!r}; known: {', '.join(DEFECTS)}")
  if not 0.0 <= strength < np.inf:
    raise ValueError(f"strength: found {strength}, expected a number >= 0")
  return DEFECTS[name].apply(scene, float(strength))


def _phase(scene: Scene) -> np.ndarray:
  """Time from 0 to 1 over the clip, [T]."""
  return np.linspace(0.0, 1.0, scene.frames)


def _with_subject(scene: Scene, poses: np.ndarray) -> Scene:
  motion = scene.motion.with_body(scene.subject, poses)
  return dataclasses.replace(scene, motion=motion)


def _scaled(scene: Scene, factor: np.ndarray) -> Scene:
  """The subject scaled about the point where it stands, factor [T]."""
  poses = scene.subject_poses().copy()
  poses[:, :3, :3] *= factor[:, None, None]
  return _with_subject(scene, poses)


def _moved(scene: Scene, offset: np.ndarray) -> Scene:
  """The subject displaced by offset [T, 3] in the world."""
  poses = scene.subject_poses().copy()
  poses[:, :3, 3] += offset
  return _with_subject(scene, poses)


def _volume_breathing(scene: Scene, strength: float) -> Scene:
  """Size 1 + 0.5 s sin(4 pi t): the subject swells and shrinks twice."""
  return _scaled(
    scene, 1.0 + 0.5 * strength * np.sin(4 * np.pi * _phase(scene))
  )


def _skating(scene: Scene, strength: float) -> Scene:
  """Size (Z / Z_0)^s: at s = 1 it recedes without looking smaller."""
  depth = scene.subject_depth()
  return _scaled(scene, (depth / depth[0]) ** strength)


def _teleport(scene: Scene, strength: float) -> Scene:
  """Four sudden sideways jumps of s body heights, to and fro."""
  jumps = np.floor(_phase(scene) * 5.0 - 1e-9) % 2 > 0.5
  right = scene.c2w[0, :3, 0]
  offset = scene.subject_poses()[:, :3, 3] - scene.c2w[:, :3, 3]
  inwards = -1.0 if np.mean(offset @ right) > 0.0 else 1.0
  step = inwards * strength * _BODY_M * right * (1.0, 0.0, 1.0)
  return _moved(scene, jumps[:, None] * step)


def _direction_reversal(scene: Scene, strength: float) -> Scene:
  """Four times the subject runs back along its path for a moment.

  Time on the path becomes t plus a triangle wave: at s = 1 the subject runs
  forward at four times and backward at twice its honest speed; below a third
  it only slows down.
  """
  time = _phase(scene)
  waves = 4.0
  cycle = time * waves - 0.25
  wave = 4.0 * np.abs(cycle - np.floor(cycle) - 0.5) - 1.0
  walked = np.clip(time + strength * 0.75 / waves * wave, 0.0, 1.0)
  poses = scene.subject_poses()
  return _with_subject(scene, _resampled(poses, time, walked))


def _resampled(
  poses: np.ndarray, time: np.ndarray, walked: np.ndarray
) -> np.ndarray:
  """Poses at other times: entries interpolated, rotations made orthogonal.

  Times that coincide with a frame return that frame's matrix unchanged.
  """
  position = np.interp(walked, time, np.arange(len(time)))
  low = np.floor(position).astype(int)
  high = np.minimum(low + 1, len(time) - 1)
  share = (position - low)[:, None, None]
  mixed = poses[low] + share * (poses[high] - poses[low])
  u, _, vt = np.linalg.svd(mixed[:, :3, :3])
  turned = np.where(share > 0.0, u @ vt, mixed[:, :3, :3])
  mixed[:, :3, :3] = turned
  return mixed


def _jello_shear(scene: Scene, strength: float) -> Scene:
  """A jelly: the tangent of its lean reaches s, its foot stays in place.

  The lean turns around the body three times in the clip (two shears in
  quadrature) and grows from zero within the first sixth. It is linear in
  height, so every ray stays straight.
  """
  time = _phase(scene)
  lean = strength * np.minimum(1.0, 6.0 * time)
  shear = np.tile(np.eye(4), (scene.frames, 1, 1))
  shear[:, 0, 1] = lean * np.sin(6 * np.pi * time)
  shear[:, 2, 1] = -lean * np.cos(6 * np.pi * time)
  return _with_subject(scene, scene.subject_poses() @ shear)


def _depth_flicker(scene: Scene, strength: float) -> Scene:
  """Recorded depth of each frame times exp(0.3 s n), n standard normal."""
  noise = np.random.default_rng(0).standard_normal(scene.frames)
  gain = scene.depth_gain * np.exp(0.3 * strength * noise)
  return dataclasses.replace(scene, depth_gain=gain)


def _forgetting(scene: Scene, strength: float) -> Scene:
  """The subject does not exist in the last share s of the clip.

  Short scenes never hide their subject wholly, so it vanishes in view; for
  an absence that starts out of view use `Motion.without_body_from`.
  """
  first = round(scene.frames * (1.0 - min(strength, 0.95)))
  motion = scene.motion.without_body_from(scene.subject, first)
  return dataclasses.replace(scene, motion=motion)


def _drifting_scale(scene: Scene, strength: float) -> Scene:
  """The reconstruction's unit changes by the factor exp(-0.5 s t).

  Recorded depth and every step of the recorded camera path shrink together,
  as in a monocular reconstruction that loses its scale.
  """
  gain = np.exp(-0.5 * strength * _phase(scene))
  steps = np.diff(scene.recorded_c2w[:, :3, 3], axis=0)
  drift = np.cumsum((gain[1:, None] - 1.0) * steps, axis=0)
  c2w = scene.recorded_c2w.copy()
  c2w[1:, :3, 3] += drift
  return dataclasses.replace(
    scene, depth_gain=scene.depth_gain * gain, recorded_c2w=c2w
  )


DEFECTS: Mapping[str, Defect] = {
  defect.name: defect
  for defect in (
    Defect(
      "volume_breathing",
      "world",
      "scale",
      (0.0, 0.25, 0.5, 1.0),
      "size of the subject swings by 50 % twice in the clip",
      "rigidity divides a uniform scale out by its median ratio",
      _volume_breathing,
    ),
    Defect(
      "skating",
      "world",
      "scale",
      (0.0, 0.25, 0.5, 1.0),
      "the subject recedes without looking smaller",
      "rigidity divides the scale out; nothing shows where the distance to"
      " the camera does not change",
      _skating,
    ),
    Defect(
      "teleport",
      "world",
      "traj",
      (0.0, 0.1, 0.3, 1.0),
      "four sudden sideways jumps of one body height",
      "the size of a jump: two frames saturate per event",
      _teleport,
    ),
    Defect(
      "direction_reversal",
      "world",
      "traj",
      (0.0, 0.3, 0.6, 1.0),
      "the subject runs back along its path at twice its speed, four times",
      "slowing without turning, and turns of a subject slower than a tenth of"
      " the reference speed",
      _direction_reversal,
    ),
    Defect(
      "jello_shear",
      "world",
      "rigid",
      (0.0, 0.25, 0.5, 1.0),
      "a lean of 45 degrees that turns around the body three times",
      "strain that all selected pairs share: they often lie along one"
      " direction, and the median divides a common ratio out",
      _jello_shear,
    ),
    Defect(
      "depth_flicker",
      "observation",
      "scale",
      (0.0, 0.25, 0.5, 1.0),
      "depth of each frame times exp of normal noise with deviation 0.3",
      "traj: its reference speed grows with the jitter; rigidity: a common"
      " factor only shifts its median",
      _depth_flicker,
    ),
    Defect(
      "forgetting",
      "world",
      "coverage",
      (0.0, 0.1, 0.3, 0.6),
      "the subject is gone for the last share of the clip",
      "paper variant: lost frames leave every component and count only in"
      " lost_mask_fraction; released variant: scale reads about 19 sqrt(share)",
      _forgetting,
    ),
    Defect(
      "drifting_scale",
      "observation",
      "scale",
      (0.0, 0.25, 0.5, 1.0),
      "the reconstruction's unit drifts by the factor exp(-0.5)",
      "traj and rigidity: a slow common factor stays smooth and uniform",
      _drifting_scale,
    ),
  )
}
