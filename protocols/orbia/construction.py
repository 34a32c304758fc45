# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Which frame pairs can be cases: pose gates and evidence of a revisit.

Poses are camera-to-world with OpenCV axes. Construction geometry has pixel
centres at (c + 0.5, r + 0.5), unlike the evaluator's. All of it is float64 on
the host: it runs once for a data set. Section numbers are those of the
project's Orbia specification.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from protocols.orbia.persistence import pose_difference

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_FLOOR = 1e-12
_LATTICE_NUDGE = 5e-5
_GRADES = (("strong", 0.40), ("moderate", 0.10), ("weak", 0.0))

# Inclusive bounds by measure (11.2); a measure that is absent is free.
# Components are signed; `abs_` ratios and components are magnitudes.
Bounds = dict[str, tuple[float, float]]
_INF = math.inf
GATES: dict[str, Bounds] = {
  "forward_backward": {
    "translation": (0.75, 3.0),
    "rotation_deg": (0.0, 12.0),
    "forward": (0.5, _INF),
    "forward_ratio": (0.85, _INF),
    "abs_right_ratio": (0.0, 0.35),
    "abs_vertical_ratio": (0.0, 0.05),
    "direction_deg": (0.0, 25.0),
  },
  "lateral_out_and_back": {
    "translation": (0.75, 3.0),
    "rotation_deg": (0.0, 15.0),
    "abs_right": (0.5, _INF),
    "abs_forward_ratio": (0.0, 0.42),
    "abs_right_ratio": (0.80, _INF),
    "abs_vertical_ratio": (0.0, 0.20),
    "direction_deg": (65.0, 115.0),
  },
  "yaw_return": {
    "translation": (0.01, 0.08),
    "rotation_deg": (30.0, 60.0),
    "abs_forward": (0.0, 0.08),
    "abs_right": (0.0, 0.08),
    "abs_vertical": (0.0, 0.05),
  },
  "arc_return": {
    "translation": (0.75, 3.0),
    "rotation_deg": (10.0, 75.0),
    "forward_ratio": (0.30, _INF),
    "abs_right_ratio": (0.25, _INF),
    "abs_vertical_ratio": (0.0, 0.20),
    "direction_deg": (20.0, 70.0),
  },
  "orbit_around_anchor": {
    "translation": (0.75, 3.0),
    "rotation_deg": (20.0, 75.0),
    "abs_right_ratio": (0.55, _INF),
    "abs_vertical_ratio": (0.0, 0.20),
    "direction_deg": (55.0, 125.0),
  },
  "peek_occlude_retract": {
    "translation": (0.75, 3.0),
    "rotation_deg": (10.0, 75.0),
    "forward": (0.25, _INF),
    "forward_ratio": (0.45, _INF),
    "abs_right_ratio": (0.20, _INF),
    "abs_vertical_ratio": (0.0, 0.25),
    "direction_deg": (15.0, 75.0),
  },
}


class PairMotion(NamedTuple):
  """Motion from the input pose to the query pose, in the input's axes."""

  translation: float
  rotation_deg: float
  right: float
  down: float
  forward: float
  direction_deg: float
  forward_ratio: float
  abs_right_ratio: float
  abs_vertical_ratio: float


class UnseenCells(NamedTuple):
  """Surface of one view that the input view does not show (11.7).

  Attributes:
    pixels: pixels by unseen cell.
    num_valid: valid pixels of the view.
    num_cells: distinct cells of the view, seen ones too.
  """

  pixels: dict[tuple[int, int, int], int]
  num_valid: int
  num_cells: int

  def count(self, cells: Iterable[tuple[int, int, int]]) -> int:
    """Pixels in some of the unseen cells."""
    return sum(self.pixels[cell] for cell in cells)

  def share(self, cells: Iterable[tuple[int, int, int]]) -> float:
    """Share of the valid pixels in some of the unseen cells."""
    return self.count(cells) / max(self.num_valid, 1)

  @property
  def novelty(self) -> float:
    """Share of the valid pixels on surface that the input does not show."""
    return self.share(self.pixels)


class Evidence(NamedTuple):
  """Shared surface of two visits that the input view does not show (11.7).

  Attributes:
    valid_pixels: valid pixels of each visit.
    shared_pixels: of them those in shared unseen cells.
    fractions: shared over valid, each visit.
    novelty: unseen over valid, each visit.
    shared_cells: shared unseen cells.
    visible_cells: distinct cells of each visit.
    grade: `strong`, `moderate` or `weak`.
  """

  valid_pixels: tuple[int, int]
  shared_pixels: tuple[int, int]
  fractions: tuple[float, float]
  novelty: tuple[float, float]
  shared_cells: int
  visible_cells: tuple[int, int]
  grade: str


def pair_motion(q0_c2w: Floats, qe_c2w: Floats) -> PairMotion:
  """Measures of an input-query pair (11.2)."""
  translation, rotation = pose_difference(q0_c2w, qe_c2w)
  offset = np.asarray(qe_c2w)[:3, 3] - np.asarray(q0_c2w)[:3, 3]
  right, down, forward = (
    float(v) for v in np.asarray(q0_c2w)[:3, :3].T @ offset
  )
  length = max(translation, _FLOOR)
  flat = math.hypot(right, forward)
  direction = math.degrees(math.atan2(abs(right), forward))
  return PairMotion(
    translation=translation,
    rotation_deg=rotation,
    right=right,
    down=down,
    forward=forward,
    direction_deg=90.0 if flat < _FLOOR else direction,
    forward_ratio=forward / length,
    abs_right_ratio=abs(right) / length,
    abs_vertical_ratio=abs(down) / length,
  )


def passes_gate(motion: PairMotion, template: str) -> bool:
  """Whether a pair fits a template; bounds inclusive (11.2)."""
  measures = {
    **motion._asdict(),
    "abs_right": abs(motion.right),
    "abs_forward": abs(motion.forward),
    "abs_vertical": abs(motion.down),
    "abs_forward_ratio": abs(motion.forward_ratio),
  }
  return all(
    low <= measures[name] <= high
    for name, (low, high) in GATES[template].items()
  )


def world_points(
  depth: NDArray[np.floating[Any]],
  intrinsics: Floats,
  pose_c2w: Floats,
  *,
  pixel_stride: int,
) -> Floats:
  """World points of the valid pixels, pixel centres at +0.5.

  Args:
    depth: [h, w], valid where finite and positive.
    intrinsics: 3x3.
    pose_c2w: 4x4.
    pixel_stride: sampling step.

  Returns:
    [n, 3].
  """
  sampled = np.asarray(depth, np.float64)[::pixel_stride, ::pixel_stride]
  valid = np.isfinite(sampled) & (sampled > 0)
  z = sampled[valid]
  rows, columns = (place * pixel_stride for place in np.nonzero(valid))
  x = (columns + 0.5 - intrinsics[0, 2]) * z / intrinsics[0, 0]
  y = (rows + 0.5 - intrinsics[1, 2]) * z / intrinsics[1, 1]
  points = np.stack([x, y, z], axis=1)
  return points @ pose_c2w[:3, :3].T + pose_c2w[:3, 3]


def cells_of(points_world: Floats, voxel: float) -> Ints:
  """Lattice cells floor(x / v + 0.5 + 5e-5) of points (11.7)."""
  return np.floor(points_world / voxel + 0.5 + _LATTICE_NUDGE).astype(np.int64)


def away_from(
  candidates: Ints, seen: Ints, *, voxel: float, radius: float
) -> NDArray[np.bool_]:
  """Cells whose cube is farther than `radius` from every seen cube.

  Args:
    candidates: [n, 3] cells.
    seen: [m, 3] cells of the input view.
    voxel: cell size.
    radius: exclusion radius; a gap equal to it excludes.

  Returns:
    [n] bool.
  """
  reach = math.floor(radius / voxel + 1 + 1e-9)
  span = np.arange(-reach, reach + 1)
  offsets = np.stack(np.meshgrid(span, span, span), axis=-1).reshape(-1, 3)
  gap = np.maximum(np.abs(offsets) * voxel - voxel, 0.0)
  # The limit is inclusive: a rounding error must not let a cell through.
  near = offsets[np.linalg.norm(gap, axis=1) <= radius + 1e-9]
  around = (seen[:, None] + near[None]).reshape(-1, 3)
  both = np.concatenate([candidates, around])
  keys = _keys(both, both)
  return ~np.isin(keys[: len(candidates)], keys[len(candidates) :])


def _keys(cells: Ints, domain: Ints) -> Ints:
  """One number for each cell, unique within the box of `domain`."""
  if not len(domain):
    return np.zeros(len(cells), np.int64)
  low = domain.min(axis=0)
  span = domain.max(axis=0) - low + 1
  x, y, z = (cells - low).T
  return (x * span[1] + y) * span[2] + z


def unseen_cells(
  points_world: Floats, seen: Ints, *, voxel: float, radius: float
) -> UnseenCells:
  """Cells of a view that lie away from those of the input view (11.7).

  Args:
    points_world: [n, 3] of the view's valid pixels.
    seen: [m, 3] cells of the input view.
    voxel: cell size.
    radius: exclusion radius.
  """
  cells = cells_of(points_world, voxel)
  distinct, pixels = np.unique(cells, axis=0, return_counts=True)
  keep = away_from(distinct, seen, voxel=voxel, radius=radius)
  chosen = zip(distinct[keep].tolist(), pixels[keep].tolist(), strict=True)
  return UnseenCells(
    {(x, y, z): count for (x, y, z), count in chosen}, len(cells), len(distinct)
  )


def revisit_evidence(
  input_points: Floats,
  first_points: Floats,
  revisit_points: Floats,
  *,
  voxel: float,
  radius: float,
) -> Evidence:
  """Shared unseen surface of two visits (11.7).

  Args:
    input_points: [n, 3] world points that the input view sees.
    first_points: [n, 3] world points of the first visit's valid pixels.
    revisit_points: [n, 3] of the revisit's.
    voxel: cell size: 0.05 for real sources, 0.10 for rendered ones.
    radius: exclusion radius, 0.075.

  Returns:
    `Evidence`; the grade does not yet know whether the poses agree.
  """
  seen = cells_of(input_points, voxel)
  first, second = (
    unseen_cells(points, seen, voxel=voxel, radius=radius)
    for points in (first_points, revisit_points)
  )
  shared = first.pixels.keys() & second.pixels.keys()
  fractions = first.share(shared), second.share(shared)
  smaller = min(fractions)
  return Evidence(
    valid_pixels=(first.num_valid, second.num_valid),
    shared_pixels=(first.count(shared), second.count(shared)),
    fractions=fractions,
    novelty=(first.novelty, second.novelty),
    shared_cells=len(shared),
    visible_cells=(first.num_cells, second.num_cells),
    grade=next(name for name, least in _GRADES if smaller >= least),
  )
