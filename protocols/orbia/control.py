# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""T1, control alignment: does the recovered camera follow the request?

Poses are camera-to-world with OpenCV axes. Both paths are made relative to
the input view in float64 before kernels see them, so a recovered track far
from its origin loses nothing in float32. Arrays are padded to `BUCKETS`.
Section numbers are those of the project's Orbia specification.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation, Slerp

from kernels import action_labels, trajectory_alignment
from protocols.orbia import normalisation, schedules
from protocols.orbia.constants import Constants

OK = "ok"
NOT_AVAILABLE = "not_available"
FAILED = "evaluator_failed"

BUCKETS = (64, 192, 512, 1024)
_PURE_YAW = "yaw_return"
_NO_TI2V_ACTIONS = ("arc_return", "orbit_around_anchor")
_COINCIDENT_S = 1e-6

Poses = NDArray[np.float64]


class Actions(NamedTuple):
  """Move or Look of one video.

  Attributes:
    frames: frames on the action grid.
    accepted: [M-1] bool, consecutive frames exactly one step apart.
    requested, recovered: [M-1, 4] bool labels.
    active: [M-1] bool, request-active intervals.
    scores: [A] 0 or 100 of the active intervals.
    times_s: [A] their midpoints.
    accuracy: mean score, None without an active interval.
  """

  frames: NDArray[np.int64]
  accepted: NDArray[np.bool_]
  requested: NDArray[np.bool_]
  recovered: NDArray[np.bool_]
  active: NDArray[np.bool_]
  scores: NDArray[np.float64]
  times_s: NDArray[np.float64]
  accuracy: float | None


@dataclasses.dataclass(frozen=True, eq=False)
class Control:
  """Control of one video.

  Attributes:
    status: `ok`, `not_available` or `evaluator_failed`.
    reason: why it is not `ok`.
    scale: s*.
    path_length: L, floored.
    primary: frames that enter the pose scores.
    translation: [P] errors, fractions of L.
    rotation_deg: [P] errors.
    positions: [P, 3] aligned recovered positions.
    move, look: actions.
    components: scores of the case by `normalisation.CONTROL`, None = omitted.
    fps: clock of the video.
  """

  status: str
  reason: str = ""
  scale: float = math.nan
  path_length: float = math.nan
  primary: NDArray[np.int64] = dataclasses.field(
    default_factory=lambda: np.zeros(0, np.int64)
  )
  translation: NDArray[np.float64] = dataclasses.field(
    default_factory=lambda: np.zeros(0)
  )
  rotation_deg: NDArray[np.float64] = dataclasses.field(
    default_factory=lambda: np.zeros(0)
  )
  positions: NDArray[np.float64] = dataclasses.field(
    default_factory=lambda: np.zeros((0, 3))
  )
  move: Actions | None = None
  look: Actions | None = None
  components: dict[str, float | None] = dataclasses.field(
    default_factory=lambda: dict.fromkeys(normalisation.CONTROL)
  )
  fps: float = 16.0


def pose_problem(poses_c2w: NDArray[Any], *, c: Constants) -> str:
  """Why a pose set is rejected (2.1); '' if it is accepted.

  Args:
    poses_c2w: [N, 4, 4].
    c: constants.
  """
  poses = np.asarray(poses_c2w, np.float64)
  if poses.ndim != 3 or poses.shape[1:] != (4, 4):
    return f"poses have shape {poses.shape}, not [N, 4, 4]"
  if not np.all(np.isfinite(poses)):
    return "poses must be finite"
  row = np.abs(poses[:, 3] - np.array([0.0, 0.0, 0.0, 1.0]))
  if np.any(row > c.last_row_tolerance):
    return "the last row of a pose is not (0, 0, 0, 1)"
  rotation = poses[:, :3, :3]
  gram = np.swapaxes(rotation, 1, 2) @ rotation
  if np.any(np.abs(gram - np.eye(3)) > c.rotation_tolerance):
    return "rotations must be orthonormal"
  if np.any(np.abs(np.linalg.det(rotation) - 1.0) > c.rotation_tolerance):
    return "rotations must be proper (determinant +1)"
  return ""


def poses_at(
  poses_c2w: Poses, times_s: NDArray[np.float64], *, fps: float
) -> Poses:
  """Requested poses at video times: linear position, slerp rotation (3.1).

  Args:
    poses_c2w: [N, 4, 4], one for each 1/fps seconds.
    times_s: [M] seconds, within the requested span.
    fps: clock of the request.

  Returns:
    [M, 4, 4]; a time that coincides with a request returns it unchanged.
  """
  place = np.clip(times_s * fps, 0, len(poses_c2w) - 1)
  nearest = np.rint(place).astype(np.int64)
  out = poses_c2w[nearest].copy()
  between = np.abs(place - nearest) > _COINCIDENT_S * fps
  if np.any(between) and len(poses_c2w) > 1:
    steps = np.arange(len(poses_c2w))
    turn = Slerp(steps, Rotation.from_matrix(poses_c2w[:, :3, :3]))
    out[between, :3, :3] = turn(place[between]).as_matrix()
    for axis in range(3):
      line = np.interp(place[between], steps, poses_c2w[:, axis, 3])
      out[between, axis, 3] = line
  return out


def measure_control(
  requested_c2w: Poses,
  recovered_frames: NDArray[np.int64],
  recovered_c2w: Poses,
  *,
  template: str,
  group: str,
  frame_count: int,
  fps: float,
  c: Constants,
  input_frame: int = 0,
) -> Control:
  """Pose errors and action accuracies of one video (3).

  Args:
    requested_c2w: [N, 4, 4], one for each 1/16 s.
    recovered_frames: [F] increasing video frames with a recovered pose.
    recovered_c2w: [F, 4, 4] in any frame and scale.
    template: trajectory template.
    group: `world` or `ti2v`.
    frame_count: frames in the video.
    fps: rate of the container, used by the container clock only (15.10).
    c: constants.
    input_frame: video frame of the input event.

  Returns:
    `Control`; its status says why there are no values.
  """
  rate = fps if c.container_clock else c.fps
  problem = pose_problem(recovered_c2w, c=c)
  if problem:
    return Control(NOT_AVAILABLE, f"recovered {problem}")
  frames = np.asarray(recovered_frames, np.int64)
  if input_frame not in frames:
    return Control(NOT_AVAILABLE, f"frame {input_frame} has no recovered pose")
  last_s = (len(requested_c2w) - 1) / c.fps
  all_primary = schedules.primary_frames(np.arange(frame_count), c=c)
  in_time = all_primary[all_primary / rate <= last_s + _COINCIDENT_S]
  absent = np.setdiff1d(in_time, frames)
  if absent.size:
    return Control(FAILED, f"frame {absent[0]} has no recovered pose")
  keep = frames / rate <= last_s + _COINCIDENT_S
  frames, recovered = frames[keep], np.asarray(recovered_c2w)[keep]
  requested = poses_at(requested_c2w, frames / rate, fps=c.fps)
  start = int(np.flatnonzero(frames == input_frame)[0])
  requested = _relative(requested[start], requested)
  recovered = _relative(recovered[start], recovered)
  length = float(
    np.linalg.norm(np.diff(requested_c2w[:, :3, 3], axis=0), axis=1).sum()
  )
  # Row 0 is the input view for the kernel.
  primary = np.setdiff1d(schedules.primary_frames(frames, c=c), [input_frame])
  rows = np.concatenate([[start], np.searchsorted(frames, primary)])
  errors = _path_errors(
    recovered[rows],
    requested[rows],
    input_frame % c.frame_stride == 0,
    length,
    c,
  )
  order = np.argsort(frames[rows][errors.used])
  move = _actions(
    frames, requested, recovered, rate, c.move_step_16fps, _move_kernel, c
  )
  look = _actions(
    frames, requested, recovered, rate, c.look_step_16fps, _look_kernel, c
  )
  control = Control(
    status=OK,
    scale=errors.scale,
    path_length=max(length, c.path_floor),
    primary=frames[rows][errors.used][order],
    translation=errors.translation[order],
    rotation_deg=errors.rotation_deg[order],
    positions=errors.positions[order],
    move=move,
    look=look,
    fps=rate,
  )
  pure_yaw = template == _PURE_YAW or length < c.path_floor
  components = _components(control, template, group, pure_yaw, c)
  return dataclasses.replace(control, components=components)


def omitted(
  template: str, group: str, *, pure_yaw: bool, c: Constants
) -> set[str]:
  """Components that a case does not have (3.2, 3.3, 15.2)."""
  out: set[str] = set()
  if pure_yaw:
    out |= {"translation", "move"}
  if c.omit_ti2v_actions and group == "ti2v" and template in _NO_TI2V_ACTIONS:
    out |= {"move", "look"}
  return out


def is_pure_yaw(requested_c2w: Poses, template: str, *, c: Constants) -> bool:
  """Whether translation means nothing for a request (3.2)."""
  steps = np.linalg.norm(np.diff(requested_c2w[:, :3, 3], axis=0), axis=1)
  return template == _PURE_YAW or float(steps.sum()) < c.path_floor


def is_static(
  poses_c2w: Poses, first_depth: NDArray[np.floating[Any]], *, c: Constants
) -> bool:
  """Whether a recovered camera stays where it is.

  Args:
    poses_c2w: [F, 4, 4] recovered poses.
    first_depth: [h, w] recovered depth of the first of them, NaN = invalid.
    c: constants.

  Returns:
    True if it neither leaves its first place by `static_distance` of the
    median depth nor turns by `static_turn_deg`. Without any depth the
    distance cannot be judged and the answer is False.
  """
  usable = first_depth[np.isfinite(first_depth) & (first_depth > 0)]
  if not usable.size:
    return False
  relative = _relative(poses_c2w[0], np.asarray(poses_c2w, np.float64))
  distance = np.linalg.norm(relative[:, :3, 3], axis=1).max()
  turn = Rotation.from_matrix(relative[:, :3, :3]).magnitude().max()
  return bool(
    distance <= c.static_distance * float(np.median(usable))
    and math.degrees(turn) <= c.static_turn_deg
  )


def _components(
  control: Control, template: str, group: str, pure_yaw: bool, c: Constants
) -> dict[str, float | None]:
  assert control.move is not None
  assert control.look is not None
  values = {
    "translation": normalisation.TRANSLATION.score(
      float(np.mean(control.translation))
    ),
    "rotation": normalisation.ROTATION.score(
      float(np.mean(control.rotation_deg))
    ),
    "move": control.move.accuracy,
    "look": control.look.accuracy,
  }
  gone = omitted(template, group, pure_yaw=pure_yaw, c=c)
  return {k: None if k in gone else v for k, v in values.items()}


class _Errors(NamedTuple):
  scale: float
  translation: NDArray[np.float64]
  rotation_deg: NDArray[np.float64]
  positions: NDArray[np.float64]
  used: NDArray[np.bool_]


def _path_errors(
  recovered: Poses,
  requested: Poses,
  input_is_primary: bool,
  length: float,
  c: Constants,
) -> _Errors:
  count = len(recovered)
  used = np.ones(count, bool)
  used[0] = input_is_primary
  found = _path_kernel(
    _padded(recovered),
    _padded(requested),
    jnp.asarray(np.pad(used, (0, _bucket(count) - count))),
    jnp.asarray(length, _dtype()),
    length_floor=c.path_floor,
    denominator_floor=c.scale_denominator,
  )
  translation = np.asarray(found.translation, np.float64)[:count]
  rotation = np.asarray(found.rotation_deg, np.float64)[:count]
  positions = np.asarray(found.positions, np.float64)[:count]
  return _Errors(
    float(found.scale),
    translation[used],
    rotation[used],
    positions[used],
    used,
  )


def _actions(
  frames: NDArray[np.int64],
  requested: Poses,
  recovered: Poses,
  rate: float,
  step_16fps: int,
  kernel: Any,
  c: Constants,
) -> Actions:
  step = max(1, round(rate * step_16fps / c.fps))
  kept = frames % step == 0
  grid = frames[kept]
  count = len(grid)
  accepted = np.diff(grid) == step
  valid = jnp.asarray(np.arange(_bucket(count)) < count)
  padded = np.pad(accepted, (0, _bucket(count) - 1 - len(accepted)))
  wanted, found, judged = kernel(
    _padded(requested[kept]),
    _padded(recovered[kept]),
    valid,
    jnp.asarray(padded),
    c=c,
  )
  active = np.asarray(judged.active)[: count - 1]
  scores = np.asarray(judged.scores, np.float64)[: count - 1][active]
  middle = (grid[1:] + grid[:-1]) / 2.0 / rate
  return Actions(
    frames=grid,
    accepted=accepted,
    requested=np.asarray(wanted)[: count - 1],
    recovered=np.asarray(found)[: count - 1],
    active=active,
    scores=scores,
    times_s=middle[active],
    accuracy=float(np.mean(scores)) if scores.size else None,
  )


_path_kernel = jax.jit(
  trajectory_alignment.path_errors,
  static_argnames=("length_floor", "denominator_floor"),
)


@functools.partial(jax.jit, static_argnames=("c",))
def _move_kernel(
  requested: jax.Array,
  recovered: jax.Array,
  valid: jax.Array,
  accepted: jax.Array,
  *,
  c: Constants,
) -> tuple[jax.Array, jax.Array, action_labels.LabelAgreement]:
  wanted, found = (
    action_labels.move_labels(
      poses,
      valid,
      active_fraction=c.move_active,
      threshold=c.move_threshold,
      direction_floor=c.direction_floor,
    )
    for poses in (requested, recovered)
  )
  judged = action_labels.label_agreement(
    wanted, found, accepted, dtype=requested.dtype
  )
  return wanted, found, judged


@functools.partial(jax.jit, static_argnames=("c",))
def _look_kernel(
  requested: jax.Array,
  recovered: jax.Array,
  valid: jax.Array,
  accepted: jax.Array,
  *,
  c: Constants,
) -> tuple[jax.Array, jax.Array, action_labels.LabelAgreement]:
  wanted, found = (
    action_labels.look_labels(poses, valid, threshold_deg=c.look_threshold_deg)
    for poses in (requested, recovered)
  )
  judged = action_labels.label_agreement(
    wanted, found, accepted, dtype=requested.dtype
  )
  return wanted, found, judged


def _relative(origin: Poses, poses: Poses) -> Poses:
  inverse = np.eye(4)
  inverse[:3, :3] = origin[:3, :3].T
  inverse[:3, 3] = -origin[:3, :3].T @ origin[:3, 3]
  return inverse @ poses


def _dtype() -> Any:
  return jnp.result_type(float)


def _bucket(count: int) -> int:
  for size in BUCKETS:
    if count <= size:
      return size
  return math.ceil(count / BUCKETS[-1]) * BUCKETS[-1]


def _padded(poses: Poses) -> jax.Array:
  out = np.tile(np.eye(4), (_bucket(len(poses)), 1, 1))
  out[: len(poses)] = poses
  return jnp.asarray(out, _dtype())
