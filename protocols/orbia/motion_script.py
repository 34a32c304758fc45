# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Requested cameras to words, for models that take a text.

Poses are camera-to-world with OpenCV axes, relative to the input view. A path
is cut into phases of one motion each; every phase becomes a sentence with its
times. Frames are the unit of time until a text is written, so that a model
that plays them at another rate is told its own times. Source: the project's
Orbia specification, section 12.4; the wording is ours.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter1d

from protocols.orbia.actions import local_motion
from protocols.orbia.camera_conditions import relative_to_first
from protocols.orbia.constants import TEMPLATES
from protocols.orbia.persistence import pose_difference

Floats = NDArray[np.float64]


@dataclasses.dataclass(frozen=True)
class ScriptConstants:
  """Constants of the conversion (12.4)."""

  fps: float = 16.0
  sigma_s: float = 0.6
  dead_zone: float = 0.05  # of the 95th percentile of |signal|
  min_yaw_rate: float = 0.5  # degrees per second
  min_run_s: float = 1.5
  min_run_share: float = 0.04  # of the duration
  round_s: float = 0.5
  round_deg: float = 5.0
  bend_from_deg: float = 15.0
  retrace_share: float = 0.05  # of the extent
  closed_share: float = 0.001  # of the path length
  closed_deg: float = 1.0


SCRIPT = ScriptConstants()

_CURVES = ("arc_return", "orbit_around_anchor")
_OVERVIEW = {
  "forward_backward": "The camera advances into the scene and comes back.",
  "lateral_out_and_back": "The camera moves sideways and comes back.",
  "yaw_return": "The camera stays in place, turns, and turns back.",
  "arc_return": "The camera follows a curve and comes back.",
  "orbit_around_anchor": "The camera circles an object, always facing it.",
  "peek_occlude_retract": (
    "The camera passes an object to look behind it, draws back, and looks"
    " there again."
  ),
}
# Words by axis: positive, negative.
_WORDS = {
  "yaw": ("turn right", "turn left"),
  "x": ("move right", "move left"),
  "y": ("move down", "move up"),
  "z": ("move forward", "move backward"),
  "distance": ("move away from the start", "move towards the start"),
}
_ONE_SHOT = "One continuous shot with a fixed focal length, without cuts."
_CONTINUED = "The same shot continues without a cut."
_CLOSING = "At the end, return to the opening view."
_PRESERVE = (
  "Keep the scene, its objects and their appearance as they are throughout."
)


class Phase(NamedTuple):
  """One motion.

  Attributes:
    start, stop: frames, `stop` excluded.
    label: 1, -1 or 0 (still).
    words: what the camera does, without times.
  """

  start: int
  stop: int
  label: int
  words: str


@dataclasses.dataclass(frozen=True)
class MotionScript:
  """A path in phases.

  Attributes:
    template: trajectory template.
    phases: in order, covering all frames.
    closed: whether the path ends where it began.
  """

  template: str
  phases: tuple[Phase, ...]
  closed: bool

  def text(self, *, fps: float = SCRIPT.fps) -> str:
    """The whole path.

    Args:
      fps: rate at which the model plays the frames.
    """
    last = self.phases[-1].stop
    return self.window(0, last, fps=fps)

  def window(self, start: int, stop: int, *, fps: float = SCRIPT.fps) -> str:
    """The part of the path that falls into a window, with local times.

    Args:
      start: first frame.
      stop: frame after the last.
      fps: rate at which the model plays the frames.

    Raises:
      ValueError: the window lies outside the path.
    """
    if not 0 <= start < stop <= self.phases[-1].stop:
      raise ValueError(f"frames {start} to {stop} of {self.phases[-1].stop}")
    first = _OVERVIEW[self.template] if start == 0 else _CONTINUED
    lines = [first, _ONE_SHOT]
    for phase in self.phases:
      low, high = max(phase.start, start), min(phase.stop, stop)
      if low < high:
        begin, end = (_seconds(f - start, fps) for f in (low, high))
        lines.append(f"From {begin} to {end} s: {phase.words}.")
    if self.closed and stop == self.phases[-1].stop:
      lines.append(_CLOSING)
    return "\n".join([*lines, _PRESERVE])


def prompt(caption: str, script: str) -> str:
  """Caption, blank line, script."""
  return f"{caption.strip()}\n\n{script}"


def motion_script(poses_c2w: Floats, *, template: str) -> MotionScript:
  """Cuts a requested path into phases.

  Args:
    poses_c2w: [N, 4, 4], at least two.
    template: trajectory template.

  Returns:
    `MotionScript`.

  Raises:
    ValueError: an unknown template or fewer than two poses.
  """
  if template not in TEMPLATES or len(poses_c2w) < 2:
    raise ValueError(f"template {template!r}, {len(poses_c2w)} poses")
  path = relative_to_first(poses_c2w)
  sigma = SCRIPT.sigma_s * SCRIPT.fps
  place = gaussian_filter1d(path[:, :3, 3], sigma, axis=0, mode="nearest")
  yaw_step = local_motion(path).angle_deg[:, 0]
  yaw = np.append(0.0, np.cumsum(yaw_step))
  axis, signal = _signal(template, place, yaw_step, sigma)
  runs = _merged(_labels(signal, axis))
  phases: list[Phase] = []
  turned = 0  # sign of the last motion
  for start, stop, label in runs:
    words = _words(axis, label, turned)
    words += _turn(yaw[min(stop, len(yaw) - 1)] - yaw[start], axis)
    if template in _CURVES and label:
      words += _bend(place[start : stop + 1])
    if label and turned == -label and axis != "yaw":
      words += _retrace(place, start, stop)
    turned = label or turned
    phases.append(Phase(start, stop, label, words))
  # Steps lie between frames: the last frame belongs to the last phase.
  phases[-1] = phases[-1]._replace(stop=len(path))
  return MotionScript(template, tuple(phases), _is_closed(path))


def _signal(
  template: str, place: Floats, yaw_step: Floats, sigma: float
) -> tuple[str, Floats]:
  """What the phases are cut by: its name, and its rate at every step."""
  if template == "yaw_return":
    rate = gaussian_filter1d(yaw_step * SCRIPT.fps, sigma, mode="nearest")
    return "yaw", np.asarray(rate, np.float64)
  velocity = np.diff(place, axis=0) * SCRIPT.fps
  if template in _CURVES:
    distance = np.linalg.norm(place - place[0], axis=1)
    return "distance", np.diff(distance) * SCRIPT.fps
  if template == "lateral_out_and_back":
    return "x", velocity[:, 0]
  if template == "forward_backward":
    return "z", velocity[:, 2]
  widest = int(np.argmax(np.ptp(place, axis=0)))
  return "xyz"[widest], velocity[:, widest]


def _labels(signal: Floats, axis: str) -> list[int]:
  limit = SCRIPT.dead_zone * float(np.percentile(np.abs(signal), 95))
  if axis == "yaw":
    limit = max(limit, SCRIPT.min_yaw_rate)
  return (
    np.where(np.abs(signal) > limit, np.sign(signal), 0).astype(int).tolist()
  )


def _merged(labels: Sequence[int]) -> list[tuple[int, int, int]]:
  """Runs (start, stop, label); short ones join their longer neighbour."""
  runs: list[tuple[int, int, int]] = []
  for label, group in itertools.groupby(labels):
    start = runs[-1][1] if runs else 0
    runs.append((start, start + len(list(group)), label))
  shortest_allowed = max(
    SCRIPT.min_run_s * SCRIPT.fps, SCRIPT.min_run_share * len(labels)
  )
  while len(runs) > 1:
    lengths = [stop - start for start, stop, _ in runs]
    k = int(np.argmin(lengths))
    if lengths[k] >= shortest_allowed:
      break
    before = lengths[k - 1] if k else -1
    after = lengths[k + 1] if k + 1 < len(runs) else -1
    other = k - 1 if before >= after else k + 1
    low, high = min(k, other), max(k, other)
    joined = (runs[low][0], runs[high][1], runs[other][2])
    runs[low : high + 1] = [joined]
    runs = _joined(runs)
  return runs


def _joined(
  runs: Sequence[tuple[int, int, int]],
) -> list[tuple[int, int, int]]:
  """Neighbouring runs of one label as one."""
  out: list[tuple[int, int, int]] = []
  for run in runs:
    if out and out[-1][2] == run[2]:
      out[-1] = (out[-1][0], run[1], run[2])
    else:
      out.append(run)
  return out


def _words(axis: str, label: int, before: int) -> str:
  if not label:
    return "hold still"
  words = _WORDS[axis][0 if label > 0 else 1]
  return f"reverse and {words}" if before == -label else words


def _turn(degrees: float, axis: str) -> str:
  """How far the camera turns, if it does."""
  rounded = SCRIPT.round_deg * round(abs(degrees) / SCRIPT.round_deg)
  if rounded < SCRIPT.round_deg:
    return ""
  if axis == "yaw":
    return f" by {rounded:g} degrees"
  side = "right" if degrees > 0 else "left"
  return f", turning {rounded:g} degrees to the {side}"


def _bend(place: Floats) -> str:
  """To which side a path curves, seen from above."""
  step = np.diff(place[:, [0, 2]], axis=0)
  step = step[np.linalg.norm(step, axis=1) > 0]
  if len(step) < 2:
    return ""
  heading = np.unwrap(np.arctan2(step[:, 0], step[:, 1]))  # right positive
  bend = math.degrees(float(heading[-1] - heading[0]))
  if abs(bend) < SCRIPT.bend_from_deg:
    return ""
  return f", curving to the {'right' if bend > 0 else 'left'}"


def _retrace(place: Floats, start: int, stop: int) -> str:
  """Whether a way back is the way out, seen from every place on it."""
  extent = float(np.linalg.norm(np.ptp(place, axis=0)))
  out, back = place[: start + 1], place[start : stop + 1]
  gap = np.linalg.norm(back[:, None] - out[None], axis=2).min(axis=1).max()
  if gap <= SCRIPT.retrace_share * extent:
    return ", retracing the same path"
  return ", by a separate path"


def _is_closed(path: Floats) -> bool:
  length = float(np.linalg.norm(np.diff(path[:, :3, 3], axis=0), axis=1).sum())
  distance, turn = pose_difference(path[0], path[-1])
  return distance <= SCRIPT.closed_share * length and turn <= SCRIPT.closed_deg


def _seconds(frame: int, fps: float) -> str:
  return f"{SCRIPT.round_s * round(frame / fps / SCRIPT.round_s):g}"
