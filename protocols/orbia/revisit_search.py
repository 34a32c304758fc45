# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Which two frames of a walk see the same place that the input does not show.

Candidates are pairs of a frame on the way out and one on the way back, far
enough apart in time and close enough in pose, that share surface which the
input does not show. Two orders are known:

- `novelty`: by the smaller share of pixels on surface that the input does not
  show, then by the cells that both see; the order for self-recorded clips.
- `viewpoint`: by how far the two poses differ within the limits. A generator
  whose picture depends on the pose alone repeats itself where the poses agree;
  only another viewpoint tells whether what it showed is a place.

Source: the project's Orbia specification, sections 11.7 (cells, grades) and
11.8 (limits, `novelty`); `viewpoint` is ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from protocols.orbia import construction
from protocols.orbia.persistence import pose_difference

MIN_GAP_FRAMES = 129  # more than eight seconds
MAX_DISTANCE = 1.0
MAX_ROTATION_DEG = 15.0
VOXEL = 0.05
EXCLUSION_RADIUS = 0.075
MIN_SHARE = 0.10  # of each view, on surface that both and not the input see
_VIEW_STRIDE, _INPUT_STRIDE = 8, 2


Order = Literal["novelty", "viewpoint"]


class View(NamedTuple):
  """A posed depth map: [h, w], 3x3, 4x4 camera-to-world."""

  depth: NDArray[np.floating[Any]]
  intrinsics: NDArray[np.float64]
  pose: NDArray[np.float64]


class Visit(NamedTuple):
  """A view on the walk and its video frame."""

  frame: int
  view: View


class Revisit(NamedTuple):
  """The chosen pair.

  Attributes:
    first: position in the list of first visits.
    revisit: position in the list of revisits.
    novelty: smaller share of pixels on surface that the input does not show.
    shared_cells: cells that both visits see and the input does not.
    share: smaller share of pixels in such cells.
    distance: between the poses.
    rotation_deg: between the poses.
  """

  first: int
  revisit: int
  novelty: float
  shared_cells: int
  share: float
  distance: float
  rotation_deg: float


def best_revisit(
  input_view: View,
  firsts: Sequence[Visit],
  revisits: Sequence[Visit],
  *,
  order: Order,
) -> Revisit:
  """The pair of visits to register.

  Args:
    input_view: what the model is given.
    firsts: visits on the way out.
    revisits: visits on the way back.
    order: which pair is best, see the module docstring.

  Returns:
    `Revisit`.

  Raises:
    ValueError: no pair keeps the limits and shares unseen surface.
  """
  seen = construction.cells_of(_points(input_view, _INPUT_STRIDE), VOXEL)
  seen = np.unique(seen, axis=0)
  first_cells, revisit_cells = (
    [
      construction.unseen_cells(
        _points(visit.view, _VIEW_STRIDE),
        seen,
        voxel=VOXEL,
        radius=EXCLUSION_RADIUS,
      )
      for visit in visits
    ]
    for visits in (firsts, revisits)
  )
  best: tuple[tuple[float, ...], Revisit] | None = None
  for i, first in enumerate(firsts):
    for j, revisit in enumerate(revisits):
      distance, turn = pose_difference(first.view.pose, revisit.view.pose)
      gap = revisit.frame - first.frame
      if (
        gap < MIN_GAP_FRAMES
        or distance > MAX_DISTANCE
        or turn > MAX_ROTATION_DEG
      ):
        continue
      a, b = first_cells[i], revisit_cells[j]
      shared = a.pixels.keys() & b.pixels.keys()
      share = min(a.share(shared), b.share(shared))
      if share < MIN_SHARE:
        continue
      novelty = min(a.novelty, b.novelty)
      found = Revisit(i, j, novelty, len(shared), share, distance, turn)
      newest = (novelty, float(len(shared)), float(gap), -distance, -turn)
      change = distance / MAX_DISTANCE + turn / MAX_ROTATION_DEG
      rank = newest if order == "novelty" else (change, *newest)
      if best is None or rank > best[0]:
        best = rank, found
  if best is None:
    raise ValueError(
      f"no two frames {MIN_GAP_FRAMES} apart, within {MAX_DISTANCE} and"
      f" {MAX_ROTATION_DEG} degrees, share {MIN_SHARE:.0%} of surface that the"
      " input view does not show"
    )
  return best[1]


def _points(view: View, stride: int) -> NDArray[np.float64]:
  return construction.world_points(
    view.depth, view.intrinsics, view.pose, pixel_stride=stride
  )
