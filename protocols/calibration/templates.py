# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Camera paths through the courtyard: Orbia's six templates, short and long.

Key poses follow Orbia specification 11.5 and 11.11 with this garden's
distances; between two events positions and rotations move by a quintic
smoothstep. Revisit poses equal their first visits exactly, except in the
short arc, whose return runs beside the outbound path (a different-pose pair).
The last pose equals the first.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping

import numpy as np
from scipy.spatial import transform as spatial

from protocols.calibration import world as world_lib

TEMPLATES = (
  "forward_backward",
  "lateral_out_and_back",
  "yaw_return",
  "arc_return",
  "orbit_around_anchor",
  "peek_occlude_retract",
)
FPS = 16
SHORT_EVENTS: Mapping[str, int] = {
  "q0": 0,
  "w1": 40,
  "qe1": 82,
  "qc_first": 132,
  "w2": 190,
  "qc_revisit": 268,
  "q0_return": 356,
}
LONG_EVENTS: Mapping[str, int] = {
  "q0": 0,
  "qe1": 82,
  "qc_first": 180,
  "qa_first": 290,
  "qb_first": 400,
  "w": 520,
  "qb_revisit": 640,
  "qa_revisit": 750,
  "qc_revisit": 860,
  "q0_return": 960,
}
_EYE_M = -1.5


@dataclasses.dataclass(frozen=True, eq=False)
class TemplatePath:
  """A requested camera path.

  Attributes:
    template: name of the template.
    c2w: poses in the courtyard's frame, float64 [N, 4, 4]; N = 357 or 961.
    events: frame of each event, in order.
    anchor: body that the path is about.
  """

  template: str
  c2w: np.ndarray
  events: Mapping[str, int]
  anchor: str

  def relative(self) -> np.ndarray:
    """Poses relative to the first, which is then the exact identity."""
    poses = np.linalg.inv(self.c2w[0]) @ self.c2w
    for row in np.flatnonzero((self.c2w == self.c2w[0]).all(axis=(1, 2))):
      poses[row] = np.eye(4)
    return poses

  def revisit_pairs(self) -> dict[str, tuple[int, int]]:
    """(first, revisit) frames by the pair's name."""
    return {
      name: (
        self.events[f"q{name.lower()}_first"],
        self.events[f"q{name.lower()}_revisit"],
      )
      for name in ("C", "A", "B")
      if f"q{name.lower()}_first" in self.events
    }


def template_path(template: str, *, long: bool) -> TemplatePath:
  """The path of a template.

  Args:
    template: one of `TEMPLATES`.
    long: 961 frames with three revisit pairs, or 357 frames with one.

  Raises:
    ValueError: an unknown template.
  """
  if template not in _KEYS:
    raise ValueError(f"template: found {template!r}; known: {TEMPLATES}")
  keys, anchor = _KEYS[template]
  events = LONG_EVENTS if long else SHORT_EVENTS
  poses = _interpolated(keys(long), list(events.values()))
  return TemplatePath(template, poses, events, anchor)


def _interpolated(keys: list[np.ndarray], frames: list[int]) -> np.ndarray:
  """Poses of all frames; key poses are written back exactly."""
  out = np.tile(np.eye(4), (frames[-1] + 1, 1, 1))
  for a, b, start, stop in zip(
    keys[:-1], keys[1:], frames[:-1], frames[1:], strict=True
  ):
    u = np.linspace(0.0, 1.0, stop - start + 1)
    u = u**3 * (10.0 + u * (6.0 * u - 15.0))
    turn = spatial.Rotation.from_matrix(a[:3, :3].T @ b[:3, :3]).as_rotvec()
    steps = spatial.Rotation.from_rotvec(u[:, None] * turn).as_matrix()
    out[start : stop + 1, :3, :3] = a[:3, :3] @ steps
    out[start : stop + 1, :3, 3] = a[:3, 3] + u[:, None] * (b - a)[:3, 3]
  for key, frame in zip(keys, frames, strict=True):
    out[frame] = key
  return out


def _pose(x: float, z: float, yaw_deg: float) -> np.ndarray:
  """A level camera at eye height."""
  return world_lib.yaw_pose((x, _EYE_M, z), yaw_deg)


def _there_and_back(
  place: Callable[[float], np.ndarray], stops: list[float], *, long: bool
) -> list[np.ndarray]:
  """Key poses from progress values.

  Args:
    place: pose at a progress value.
    stops: short: at w1, qe1, first, w2; long: at qe1, first C, A, B, w.
    long: which of the two.
  """
  out = [place(value) for value in [0.0, *stops]]
  back = out[1:-1][::-1] if long else [out[3]]
  # The query pose is not visited again on the way back.
  back = back[:-1] if long else back
  return [*out, *back, out[0]]


def _forward(long: bool) -> list[np.ndarray]:
  def place(z: float) -> np.ndarray:
    return _pose(-3.2, -9.0 + z, 1.0 if z > 1.0 else 0.0)

  query = 1.36
  reach = 6.4 if long else 5.0
  return _there_and_back(place, _stops(query, reach, long=long), long=long)


def _lateral(long: bool) -> list[np.ndarray]:
  query = 1.47
  reach = 6.0 if long else 4.2
  shift = 0.75

  def place(x: float) -> np.ndarray:
    beyond = x > query
    yaw = 20.0 if x == reach else (5.4 if x >= query else 0.0)
    return _pose(-3.0 + x, -8.0 - shift * beyond, yaw)

  return _there_and_back(place, _stops(query, reach, long=long), long=long)


def _yaw(long: bool) -> list[np.ndarray]:
  query = 31.0
  peak = 240.0 if long else 110.0

  def place(yaw: float) -> np.ndarray:
    moved = 0.02 * np.sin(np.deg2rad(yaw))
    return _pose(2.4 + moved, -6.6, -40.0 + yaw)

  return _there_and_back(place, _stops(query, peak, long=long), long=long)


def _arc(long: bool) -> list[np.ndarray]:
  query = 1.57
  reach = 7.5 if long else 6.0
  radius = 7.5

  def place(length: float) -> np.ndarray:
    angle = length / radius
    yaw = 11.6 * min(1.0, length / query)
    if length == reach and not long:
      yaw -= 25.0
    x = -6.6 + radius * (1.0 - np.cos(angle))
    return _pose(x, -9.6 + radius * np.sin(angle), yaw)

  keys = _there_and_back(place, _stops(query, reach, long=long), long=long)
  if not long:
    keys[5] = keys[3].copy()
    keys[5][0, 3] += 0.35
  return keys


def _orbit(long: bool) -> list[np.ndarray]:
  query = 47.5
  reach = 210.0 if long else 120.0

  def place(angle_deg: float) -> np.ndarray:
    angle = np.deg2rad(angle_deg)
    eye = (4.0 * np.sin(angle), _EYE_M, -4.0 * np.cos(angle))
    return world_lib.look_at(eye, (0.0, -1.0, 0.0))

  return _there_and_back(place, _stops(query, reach, long=long), long=long)


def _peek(long: bool) -> list[np.ndarray]:
  query, far, turn = 0.75, 2.6, -11.2

  def place(ahead: float, aside: float, yaw_deg: float) -> np.ndarray:
    return _pose(10.0 + aside, -2.0 + ahead, yaw_deg)

  start, at_query = place(0, 0, 0), place(query, 0, turn)
  near = place(0.15 * query, 0, 0)
  if long:
    outs = [place(s * far, 0.35, turn) for s in (0.65, 0.8, 0.95)]
    return [start, at_query, *outs, near, *outs[::-1], start]
  first = place(0.82 * far, 0.35, turn)
  between = place(query / 2, 0, 0)
  return [start, between, at_query, first, near, first, start]


def _stops(query: float, reach: float, *, long: bool) -> list[float]:
  """Progress at the outbound events (specification 11.5, 11.11)."""
  if long:
    nodes = [query + s * (reach - query) for s in (0.25, 0.5, 0.8)]
    return [query, *nodes, reach]
  return [query / 2, query, query + 0.55 * (reach - query), reach]


_KEYS: Mapping[str, tuple[Callable[[bool], list[np.ndarray]], str]] = {
  "forward_backward": (_forward, "planter"),
  "lateral_out_and_back": (_lateral, "fountain"),
  "yaw_return": (_yaw, "fountain"),
  "arc_return": (_arc, "ball"),
  "orbit_around_anchor": (_orbit, "fountain"),
  "peek_occlude_retract": (_peek, "urn"),
}
