# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Which query pixels show surfaces that the input view shows too.

Construction geometry: pixel centres at (c + 0.5, r + 0.5), depth is
camera-axis Z, poses are camera-to-world with OpenCV axes. A query pixel is
supported if its point, moved into the input camera, lies in front, inside the
input depth grid, and within max(0.02, 0.10 d) of the input depth d there.
Source: the project's Orbia specification, section 11.3.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from protocols.orbia.dataset import Anchor, Reference, ReferenceFrame

_ABSOLUTE, _RELATIVE = 0.02, 0.10


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


def shared_surface(query: ReferenceFrame, first: ReferenceFrame) -> Support:
  """Support of the query's depth pixels by the input view.

  Args:
    query: query view.
    first: input view.

  Returns:
    `Support`.
  """
  height, width = query.depth.shape
  column, row = np.meshgrid(np.arange(width) + 0.5, np.arange(height) + 0.5)
  z = np.where(query.valid, query.depth, 1.0).astype(np.float64)
  k = query.k_depth
  points = np.stack(
    [(column - k[0, 2]) * z / k[0, 0], (row - k[1, 2]) * z / k[1, 1], z], -1
  )
  to_input = np.linalg.inv(first.pose) @ query.pose
  points = points @ to_input[:3, :3].T + to_input[:3, 3]
  front = query.valid & (points[..., 2] > 0)
  depth = np.where(front, points[..., 2], 1.0)
  k = first.k_depth
  x = np.floor(k[0, 0] * points[..., 0] / depth + k[0, 2])
  y = np.floor(k[1, 1] * points[..., 1] / depth + k[1, 2])
  inside = front & (x >= 0) & (x < first.depth.shape[1])
  inside &= (y >= 0) & (y < first.depth.shape[0])
  input_row = np.where(inside, y, -1).astype(np.int64)
  input_column = np.where(inside, x, -1).astype(np.int64)
  seen = inside & first.valid[input_row, input_column]
  known = np.where(seen, first.depth[input_row, input_column], 1.0)
  near = np.abs(depth - known) <= np.maximum(_ABSOLUTE, _RELATIVE * known)
  return Support(seen & near, input_row, input_column)


def reference_of(
  first: ReferenceFrame,
  query: ReferenceFrame,
  anchor_masks: dict[str, tuple[NDArray[np.bool_], NDArray[np.bool_]]],
  *,
  source: str,
  native_to_input: NDArray[np.float64],
  depth_unit: str,
) -> Reference:
  """Held-back data of a case whose depth and RGB share one grid.

  Args:
    first: input view.
    query: query view.
    anchor_masks: (input mask, query mask) by anchor id.
    source: source name.
    native_to_input: 3x3.
    depth_unit: unit of the depth.

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
  support = shared_surface(query, first)
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
