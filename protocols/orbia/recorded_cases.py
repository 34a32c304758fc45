# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Real cases from a recorded RGB-D sequence with poses.

A case is a walk over the recording (`protocols.orbia.recorded_world`): its
recorded frames are a perfect generator. The registered visits show a place
that the input does not, from two sides (`protocols.orbia.revisit_search`).
Anchors are boxes on the input picture; what of them the query shows follows
from depth (`protocols.orbia.shared_surface`).
"""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from protocols.orbia import reference, revisit_search
from protocols.orbia.dataset import ReferenceFrame
from protocols.orbia.dataset_writer import CaseContent
from protocols.orbia.fused_depth import FusedDepth, PosedDepthSource
from protocols.orbia.recorded_world import INPUT_SIZE, RecordedWorld
from protocols.orbia.revisit_search import View, Visit
from protocols.orbia.shared_surface import reference_of, shared_surface

STEPS, HOLD = 51, 7  # 357 frames
_BEYOND = 5  # rows after a walk, for a camera that goes too far
_START_STEP = 4  # rows between the starts of two walks
_QUERY_SHARE = 0.4  # of the way out
_MIN_SUPPORT = 0.2
_GRID = (3, 4)  # candidate boxes down and across
_ANCHORS = 2


def build_case(
  world: RecordedWorld, *, case_id: str, source: str = "self-recorded"
) -> CaseContent:
  """A case of the published layout over a recording.

  Args:
    world: a walk over the recording.
    case_id: its id.
    source: source name.

  Returns:
    `CaseContent`, ready to be written.

  Raises:
    ValueError: no row shares enough surface with the first, or no two visits
      share surface that it does not show.
  """
  first = world.native_view(0)
  query_step, query = _query_view(world, first)
  visit, revisit = _visits(world, query_step)
  events = {
    "q0": 0,
    "w1": world.frame_of(query_step // 2),
    "qe1": world.frame_of(query_step),
    "qc_first": world.frame_of(visit),
    "w2": world.turnaround,
    "qc_revisit": world.frame_of(revisit),
    "q0_return": world.frame_count - 1,
  }
  poses = world.poses()
  return CaseContent(
    case_id=case_id,
    parent_case_id=None,
    source=source,
    template=_template(poses),
    pose_unit="metre",
    image=reference.warp_image(
      first.rgb, world.native_to_input, size=INPUT_SIZE
    ),
    prompt="A recorded place, seen by a hand-held camera.",
    intrinsics=world.native_to_input @ first.k_rgb,
    poses=poses,
    events=events,
    pairs={"C": ("qc_first", "qc_revisit")},
    reference=reference_of(
      first,
      query,
      _box_anchors(first, query),
      source=source,
      native_to_input=world.native_to_input,
      depth_unit="metre",
    ),
  )


def short_worlds(source: PosedDepthSource) -> list[RecordedWorld]:
  """Walks of 357 frames over a recording, with time and against it.

  Args:
    source: the recording; depth is fused over its frames.

  Returns:
    Walks of 51 rows that leave a few rows for a camera that goes too far;
    none if the recording has fewer than 56.
  """
  fused = FusedDepth(source)
  need = STEPS + _BEYOND
  starts = range(0, len(source) - need + 1, _START_STEP)
  last = len(source) - 1
  return [
    RecordedWorld(fused, row, heading, STEPS, HOLD)
    for start in starts
    for row, heading in ((start, 1), (last - start, -1))
  ]


def _query_view(
  world: RecordedWorld, first: ReferenceFrame
) -> tuple[int, ReferenceFrame]:
  """The farthest step up to the wanted share that still shows enough."""
  for step in range(round(_QUERY_SHARE * world.turning_step), 1, -1):
    view = world.native_view(world.places[step])
    if shared_surface(view, first).supported.mean() >= _MIN_SUPPORT:
      return step, view
  raise ValueError("no recorded frame shares enough surface with the first")


def _visits(world: RecordedWorld, query_step: int) -> tuple[int, int]:
  """Steps of the first visit and of the revisit."""
  out = range(query_step + 1, world.turning_step)
  back = range(world.turning_step + 1, world.steps - 1)

  def visit(step: int) -> Visit:
    view = world.native_view(world.places[step])
    k = np.asarray(view.k_depth, np.float64)
    return Visit(world.frame_of(step), View(view.depth, k, view.pose))

  found = revisit_search.best_revisit(
    visit(0).view,
    [visit(step) for step in out],
    [visit(step) for step in back],
    order="viewpoint",
  )
  return out[found.first], back[found.revisit]


def _box_anchors(
  first: ReferenceFrame, query: ReferenceFrame
) -> dict[str, tuple[NDArray[np.bool_], NDArray[np.bool_]]]:
  """Boxes on the input picture with the largest region in the query."""
  support = shared_surface(query, first)
  height, width = first.depth.shape
  rows = np.linspace(0, height, _GRID[0] + 1).astype(int)
  columns = np.linspace(0, width, _GRID[1] + 1).astype(int)
  found = []
  for top, bottom in itertools.pairwise(rows):
    for left, right in itertools.pairwise(columns):
      mask = np.zeros((height, width), bool)
      mask[top:bottom, left:right] = True
      region = support.supported & mask[support.input_row, support.input_column]
      found.append((int(region.sum()), mask & first.valid, region))
  found.sort(key=lambda entry: -entry[0])
  return {
    f"A{number}": (mask, region)
    for number, (_, mask, region) in enumerate(found[:_ANCHORS], start=1)
  }


def _template(poses: NDArray[np.float64]) -> str:
  """The template that a hand-held path resembles most."""
  reach = np.max(np.abs(poses[:, :3, 3]), axis=0)
  if reach.max() < 0.15:
    return "yaw_return"
  return "forward_backward" if reach[2] > reach[0] else "lateral_out_and_back"
