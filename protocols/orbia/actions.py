# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Requested cameras to discrete actions, for models that take keys.

Poses are camera-to-world with OpenCV axes at 16 per second. Keys are W A S D
(forward, left, backward, right) and I J K L (look up, left, down, right), in
this order in every row. Yaw is positive to the right, pitch is positive
upwards, degrees. Source: the project's Orbia specification, section 12.3.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse
import scipy.sparse.linalg
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

KEYS = "WASDIJKL"
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclasses.dataclass(frozen=True)
class ActionConstants:
  """Constants of the conversion."""

  fps: float = 16.0
  cutoff_hz: float = 0.2
  min_quaternion: float = 0.25
  static_share: float = 0.001  # of the largest speed
  static_floor: float = 1e-12
  move_threshold: float = 0.5
  min_increment_deg: float = 0.05
  first_block: int = 9
  block: int = 12
  yaw_step_deg: float = 20.0
  pitch_step_deg: float = 17.0
  min_hold_s: float = 0.1
  release_s: float = 2.0  # at the end of a timed plan


ACTIONS = ActionConstants()


class LocalMotion(NamedTuple):
  """Motion of every step in the axes of its first camera.

  Attributes:
    translation: [N-1, 3]; 0 below the static limit.
    angle_deg: [N-1, 2] yaw and pitch.
  """

  translation: Floats
  angle_deg: Floats


class BlockPlan(NamedTuple):
  """Keys of every generation block.

  Attributes:
    actions: [B, 8] 0 or 1.
    frames: [B, 2] first and last frame, cut at N.
    target_deg: [B, 2] requested yaw and pitch up to the block's end.
    emitted_deg: [B, 2] emitted yaw and pitch after the block.
    generated_frames: frames that the plan generates.
  """

  actions: Ints
  frames: Ints
  target_deg: Floats
  emitted_deg: Floats
  generated_frames: int


class TimedPlan(NamedTuple):
  """Keys held over intervals of time.

  Attributes:
    times_s: [I, 2] start and end.
    keys: [I, 8] 0 or 1.
    debt_deg: [2] yaw and pitch left over.
    saturated: windows whose request exceeds the rate.
  """

  times_s: Floats
  keys: Ints
  debt_deg: Floats
  saturated: int


def smooth_poses(poses_c2w: Floats, fixed_frames: Iterable[int]) -> Floats:
  """Low-passed poses that keep events and both ends exactly.

  Positions and sign-continuous quaternions minimise |x - y|^2 + k |D2 x|^2
  with k = 1 / (2 - 2 cos(2 pi f0 / fps))^2, fixed frames held.

  Args:
    poses_c2w: [N, 4, 4].
    fixed_frames: frames of all events.

  Returns:
    [N, 4, 4]; unchanged below four poses or when every frame is fixed.

  Raises:
    ValueError: a smoothed quaternion is shorter than 0.25.
  """
  count = len(poses_c2w)
  fixed = np.zeros(count, bool)
  fixed[[0, count - 1, *(int(f) for f in fixed_frames)]] = True
  if count < 4 or fixed.all():
    return poses_c2w.copy()
  quaternion = Rotation.from_matrix(poses_c2w[:, :3, :3]).as_quat()
  flips = np.sum(quaternion[1:] * quaternion[:-1], axis=1) < 0
  signs = np.concatenate([[1.0], np.where(flips, -1.0, 1.0)]).cumprod()
  channels = np.concatenate(
    [poses_c2w[:, :3, 3], quaternion * signs[:, None]], axis=1
  )
  angle = 2.0 * math.pi * ACTIONS.cutoff_hz / ACTIONS.fps
  weight = 1.0 / (2.0 - 2.0 * math.cos(angle)) ** 2
  second = scipy.sparse.diags(
    [1.0, -2.0, 1.0], [0, 1, 2], shape=(count - 2, count), format="csc"
  )
  system = scipy.sparse.eye(count, format="csc") + weight * second.T @ second
  free = ~fixed
  right = channels[free] - system[free][:, fixed] @ channels[fixed]
  solve = scipy.sparse.linalg.splu(system[free][:, free].tocsc()).solve
  channels[free] = solve(right)
  length = np.linalg.norm(channels[:, 3:], axis=1)
  if np.any(length < ACTIONS.min_quaternion):
    raise ValueError(
      f"smoothed quaternion of length {length.min():.3g}: rotations too far"
      " apart to be smoothed"
    )
  out = poses_c2w.copy()
  unit = channels[free, 3:] / length[free, None]
  out[free, :3, :3] = Rotation.from_quat(unit).as_matrix()
  out[free, :3, 3] = channels[free, :3]
  return out


def local_motion(poses_c2w: Floats) -> LocalMotion:
  """Steps inv(P_t) P_(t+1) of a path.

  Args:
    poses_c2w: [N, 4, 4].

  Returns:
    `LocalMotion`.
  """
  rotation = poses_c2w[:-1, :3, :3]
  delta = poses_c2w[1:, :3, 3] - poses_c2w[:-1, :3, 3]
  step = np.einsum("nji,nj->ni", rotation, delta)
  turn = np.swapaxes(rotation, 1, 2) @ poses_c2w[1:, :3, :3]
  vector = np.degrees(Rotation.from_matrix(turn).as_rotvec())
  speed = np.linalg.norm(step, axis=1)
  limit = max(
    ACTIONS.static_share * np.max(speed, initial=0.0), ACTIONS.static_floor
  )
  step[speed <= limit] = 0.0
  return LocalMotion(step, vector[:, [1, 0]])


def without_translation(motion: LocalMotion) -> LocalMotion:
  """The motion of the yaw template, whose translations count as 0."""
  return motion._replace(translation=np.zeros_like(motion.translation))


def move_vote(translation: Floats) -> list[bool]:
  """W A S D of a window by majority; zero steps count in its length.

  Args:
    translation: [n, 3] camera-frame steps.

  Returns:
    Four flags; both axes may fire.
  """
  speed = np.linalg.norm(translation, axis=1, keepdims=True)
  unit = translation / np.where(speed > 0, speed, 1.0)
  limit = ACTIONS.move_threshold

  def votes(axis: int) -> int:
    side = unit[:, axis]
    return int(np.sum(side > limit)) - int(np.sum(side < -limit))

  forward, right, half = votes(2), votes(0), len(translation) / 2
  return [forward > half, right < -half, forward < -half, right > half]


def block_plan(motion: LocalMotion, *, frame_count: int) -> BlockPlan:
  """Keys for models that generate a block of frames at a time.

  Args:
    motion: steps of the request.
    frame_count: frames wanted.

  Returns:
    `BlockPlan`: a first block of 9 frames, then blocks of 12.
  """
  total = _cumulative(motion.angle_deg)
  emitted = np.zeros(2)
  steps = (ACTIONS.yaw_step_deg, ACTIONS.pitch_step_deg)
  actions, frames, targets, sums = [], [], [], []
  start, stop = 0, ACTIONS.first_block
  while True:
    cut = min(stop, frame_count)
    low, high = max(start - 1, 0), cut - 1
    row = [*move_vote(motion.translation[low:high]), *[False] * 4]
    increment, target = total[high] - total[low], total[high]
    for axis, step in enumerate(steps):
      side = math.copysign(1.0, increment[axis])
      owed = side * (target[axis] - emitted[axis])
      asked = side * increment[axis] > ACTIONS.min_increment_deg
      if asked and owed >= step / 2:
        row[4 + KEYS[4:].index(_LOOK[axis, side])] = True
        emitted[axis] += side * step
    actions.append(row)
    frames.append([start, cut - 1])
    targets.append(target)
    sums.append(emitted.copy())
    if stop >= frame_count:
      break
    start, stop = stop, stop + ACTIONS.block
  return BlockPlan(
    np.array(actions, np.int64),
    np.array(frames, np.int64),
    np.array(targets),
    np.array(sums),
    stop,
  )


def timed_plan(
  motion: LocalMotion, *, seconds: float, rates_deg_per_s: Sequence[float]
) -> TimedPlan:
  """Keys held over intervals, for models that run in real time.

  Args:
    motion: steps of the request.
    seconds: control time that the whole request is scaled to.
    rates_deg_per_s: yaw and pitch rate of the model.

  Returns:
    `TimedPlan`; neighbouring intervals with equal keys are joined.
  """
  total = _cumulative(motion.angle_deg)
  step_count = len(motion.translation)
  step_s = seconds / step_count
  debt, last_sign = np.zeros(2), np.zeros(2)
  saturated = 0
  pieces: list[tuple[float, float, tuple[int, ...]]] = []
  for low in range(0, step_count, ACTIONS.block):
    high = min(low + ACTIONS.block, step_count)
    start, end = low * step_s, high * step_s
    moves = move_vote(motion.translation[low:high])
    increment = total[high] - total[low]
    holds, full = _holds(
      increment, debt, last_sign, end - start, rates_deg_per_s
    )
    saturated += full
    pieces += _pieces(start, end, moves, holds)
  times, keys = _joined(pieces)
  # The release is an interval of its own, even after one without keys.
  times = np.append(times, [[seconds, seconds + ACTIONS.release_s]], axis=0)
  keys = np.append(keys, np.zeros((1, len(KEYS)), np.int64), axis=0)
  return TimedPlan(times, keys, debt, saturated)


_LOOK = {(0, -1.0): "J", (0, 1.0): "L", (1, -1.0): "K", (1, 1.0): "I"}


def _holds(
  increment: Floats,
  debt: Floats,
  last_sign: Floats,
  window_s: float,
  rates: Sequence[float],
) -> tuple[dict[str, float], int]:
  """Hold time by look key; updates debt and sign. Second: saturated or not."""
  holds: dict[str, float] = {}
  full = False
  for axis, rate in enumerate(rates):
    sign = 0.0
    if abs(increment[axis]) > ACTIONS.min_increment_deg:
      sign = math.copysign(1.0, increment[axis])
    if sign and last_sign[axis] and sign != last_sign[axis]:
      debt[axis] = 0.0
    wanted = debt[axis] + increment[axis]
    hold = 0.0
    if sign:
      last_sign[axis] = sign
      full |= abs(wanted) / rate > window_s
      hold = min(abs(wanted) / rate, window_s)
      if hold < ACTIONS.min_hold_s:
        hold = 0.0
    if hold:
      holds[_LOOK[axis, sign]] = hold
    debt[axis] = wanted - sign * hold * rate
  return holds, int(full)


def _pieces(
  start: float, end: float, moves: list[bool], holds: dict[str, float]
) -> list[tuple[float, float, tuple[int, ...]]]:
  cuts = sorted({start, end, *(start + hold for hold in holds.values())})
  out = []
  for low, high in itertools.pairwise(cuts):
    looks = [key in holds and low < start + holds[key] for key in KEYS[4:]]
    out.append((low, high, tuple(int(flag) for flag in [*moves, *looks])))
  return out


def _joined(
  pieces: list[tuple[float, float, tuple[int, ...]]],
) -> tuple[Floats, Ints]:
  times: list[list[float]] = []
  keys: list[tuple[int, ...]] = []
  for start, end, held in pieces:
    if keys and keys[-1] == held:
      times[-1][1] = end
    else:
      times.append([start, end])
      keys.append(held)
  return np.array(times), np.array(keys, np.int64)


def _cumulative(angle_deg: Floats) -> Floats:
  return np.concatenate([np.zeros((1, 2)), np.cumsum(angle_deg, axis=0)])
