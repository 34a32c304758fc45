# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Which query pixels show surfaces that the input view shows too.

Construction geometry: pixel centres at (c + 0.5, r + 0.5), depth is
camera-axis Z, poses are camera-to-world with OpenCV axes. Two directions are
known (section 15.16 of the project's Orbia specification; 11.3):

- `query_to_input`, the released code: a query pixel is supported if its point,
  moved into the input camera, lies in front, inside the input depth grid, and
  within max(0.02, 0.10 d) of the input depth d there.
- `input_to_query`, the paper: input pixels are moved into the query camera and
  the nearest of those that fall on a query pixel is what it shows of them. A
  pixel on which none falls is not supported, so that an input coarser than
  the query gives a sparse region.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from protocols.orbia.dataset import Anchor, Reference, ReferenceFrame

_ABSOLUTE, _RELATIVE = 0.02, 0.10
Direction = Literal["query_to_input", "input_to_query"]


class Support(NamedTuple):
  """Shared surface on the query's depth grid.

  Attributes:
    supported: [h, w] bool.
    input_row, input_column: [h, w] int64 pixel of the input depth grid; -1
      where the point does not project into it.
  """

  supported: NDArray[np.bool_]
  input_row: NDArray[np.int64]
  input_column: NDArray[np.int64]


class _Moved(NamedTuple):
  """Where the pixels of one view lie in another one, [h, w] each."""

  row: NDArray[np.int64]
  column: NDArray[np.int64]
  depth: NDArray[np.float64]
  inside: NDArray[np.bool_]


def shared_surface(
  query: ReferenceFrame,
  first: ReferenceFrame,
  *,
  direction: Direction = "query_to_input",
) -> Support:
  """Support of the query's depth pixels by the input view.

  Args:
    query: query view.
    first: input view.
    direction: see the module docstring.

  Returns:
    `Support`.
  """
  if direction == "input_to_query":
    return _nearest_samples(query, first)
  moved = _moved(query, first)
  input_row = np.where(moved.inside, moved.row, -1)
  input_column = np.where(moved.inside, moved.column, -1)
  seen = moved.inside & first.valid[input_row, input_column]
  known = np.where(seen, first.depth[input_row, input_column], 1.0)
  limit = np.maximum(_ABSOLUTE, _RELATIVE * known)
  near = np.abs(moved.depth - known) <= limit
  return Support(seen & near, input_row, input_column)


def _nearest_samples(query: ReferenceFrame, first: ReferenceFrame) -> Support:
  moved = _moved(first, query)
  row, column = np.nonzero(moved.inside)
  # Farthest first: of those on one pixel, the nearest is written last.
  order = np.argsort(-moved.depth[row, column], kind="stable")
  row, column = row[order], column[order]
  target = moved.row[row, column], moved.column[row, column]
  input_row = np.full(query.depth.shape, -1, np.int64)
  input_column = np.full(query.depth.shape, -1, np.int64)
  input_row[target], input_column[target] = row, column
  return Support(input_row >= 0, input_row, input_column)


def _moved(source: ReferenceFrame, target: ReferenceFrame) -> _Moved:
  """Pixels of `source` in the depth grid of `target`."""
  height, width = source.depth.shape
  column, row = np.meshgrid(np.arange(width) + 0.5, np.arange(height) + 0.5)
  z = np.where(source.valid, source.depth, 1.0).astype(np.float64)
  k: NDArray[np.floating[Any]] = source.k_depth
  points = np.stack(
    [(column - k[0, 2]) * z / k[0, 0], (row - k[1, 2]) * z / k[1, 1], z], -1
  )
  motion = np.linalg.inv(target.pose) @ source.pose
  points = points @ motion[:3, :3].T + motion[:3, 3]
  front = source.valid & (points[..., 2] > 0)
  depth = np.where(front, points[..., 2], 1.0)
  k = target.k_depth
  x = np.floor(k[0, 0] * points[..., 0] / depth + k[0, 2])
  y = np.floor(k[1, 1] * points[..., 1] / depth + k[1, 2])
  inside = front & (x >= 0) & (x < target.depth.shape[1])
  inside &= (y >= 0) & (y < target.depth.shape[0])
  return _Moved(
    np.where(inside, y, 0).astype(np.int64),
    np.where(inside, x, 0).astype(np.int64),
    depth,
    inside,
  )


def reference_of(
  first: ReferenceFrame,
  query: ReferenceFrame,
  anchor_masks: dict[str, tuple[NDArray[np.bool_], NDArray[np.bool_]]],
  *,
  source: str,
  native_to_input: NDArray[np.float64],
  depth_unit: str,
  direction: Direction = "query_to_input",
) -> Reference:
  """Held-back data of a case whose depth and RGB share one grid.

  Args:
    first: input view.
    query: query view.
    anchor_masks: (input mask, query mask) by anchor id.
    source: source name.
    native_to_input: 3x3.
    depth_unit: unit of the depth.
    direction: how shared surface is found, see the module docstring.

  Returns:
    `Reference`; an anchor's region is its query mask where it is supported
    and the supporting input pixel lies in its input mask.

  Raises:
    ValueError: depth and RGB differ in size.
  """
  for view in (first, query):
    if view.depth.shape != view.rgb.shape[:2]:
      raise ValueError(
        f"depth {view.depth.shape} and RGB {view.rgb.shape[:2]} differ in size"
      )
  support = shared_surface(query, first, direction=direction)
  anchors = []
  for name, (q0, qe) in anchor_masks.items():
    lands = q0[support.input_row, support.input_column]
    anchors.append(Anchor(name, q0, qe, qe & support.supported & lands))
  return Reference(
    source=source,
    native_to_input=native_to_input,
    q0=first,
    qe=query,
    anchors=tuple(anchors),
    scene=support.supported,
    input_supported=support.supported,
    invalid=~query.valid,
    depth_unit=depth_unit,
  )
