# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""The two checkpoints of T3 on the grid of a generated video.

Return compares the last frame with the input image, Query the query frame with
the registered query view; only the registered frames are used. References are
warped to the video, the video is never resized. Section numbers are those of
the project's Orbia specification.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from protocols.orbia import preservation, reference
from protocols.orbia.constants import Constants
from protocols.orbia.dataset import (
  SENSOR_SOURCE,
  PublicCase,
  Reference,
  ReferenceFrame,
)
from protocols.orbia.perceive import Perception
from protocols.orbia.preservation import Appearance

Mask = NDArray[np.bool_]
Image = NDArray[np.uint8]


@dataclasses.dataclass(frozen=True, eq=False)
class Target:
  """A reference view on the video's grid.

  Attributes:
    image: [H, W, 3] uint8.
    scene: [H, W] bool scene region.
    anchors: [R, H, W] bool anchor regions inside it.
    depth: [H, W] reference depth, 0 = none.
    view: the native view.
    native_to_video: 3x3.
    native_anchors: native anchor masks that decide membership of points.
    native_scene: native scene region of points, or None.
  """

  image: Image
  scene: Mask
  anchors: Mask
  depth: NDArray[np.floating[Any]]
  view: ReferenceFrame
  native_to_video: NDArray[np.float64]
  native_anchors: tuple[Mask, ...]
  native_scene: Mask | None


def return_target(
  case: PublicCase,
  found: Reference,
  *,
  size: tuple[int, int],
  c: Constants,
) -> Target:
  """The input view as target of the last frame (5.1, 5.2)."""
  transform = reference.input_to_video(
    found.native_to_input, input_size=case.image_size, video_size=size
  )
  identity = reference.input_to_video(
    np.eye(3), input_size=case.image_size, video_size=size
  )
  depth = _depth_on_video(found.q0, transform, size, c)
  scene = depth > 0
  masks = [
    reference.warp_nearest(anchor.q0, transform, size=size)
    for anchor in found.anchors
  ]
  return Target(
    image=reference.warp_image(case.image(), identity, size=size),
    scene=scene,
    anchors=np.stack(masks) & scene,
    depth=depth,
    view=found.q0,
    native_to_video=transform,
    native_anchors=tuple(anchor.q0 for anchor in found.anchors),
    native_scene=None,
  )


def query_target(
  case: PublicCase,
  found: Reference,
  *,
  size: tuple[int, int],
  c: Constants,
) -> Target:
  """The registered query view as target of the query frame (5.1, 5.2)."""
  transform = reference.input_to_video(
    found.native_to_input, input_size=case.image_size, video_size=size
  )
  scene = reference.warp_nearest(found.scene, transform, size=size)
  masks = [
    reference.warp_nearest(anchor.region, transform, size=size)
    for anchor in found.anchors
  ]
  return Target(
    image=reference.warp_image(found.qe.rgb, transform, size=size),
    scene=scene,
    anchors=np.stack(masks) & scene,
    depth=_depth_on_video(found.qe, transform, size, c),
    view=found.qe,
    native_to_video=transform,
    native_anchors=tuple(anchor.region for anchor in found.anchors),
    native_scene=found.scene,
  )


def measure(
  target: Target,
  image: Image,
  depth: NDArray[np.floating[Any]] | None,
  perception: Perception,
  *,
  prefix: str,
  source: str,
  c: Constants,
) -> dict[str, float | None]:
  """Raw T3 leaves of one checkpoint.

  Args:
    target: reference on the video's grid.
    image: [H, W, 3] generated frame.
    depth: [h, w] generated depth on the estimator's grid, NaN = invalid; None
      if there is none.
    perception: backends.
    prefix: `return` or `qe`; Return compares crops, Query neighbourhoods.
    source: source name; native sensor points are used for `ScanNet++`.
    c: constants.

  Returns:
    Raw value or None by leaf name.
  """
  patches = None
  if prefix == "qe":
    patches = [d.patches for d in perception.describe([target.image, image])]

  def similarity(mask: Mask) -> float | None:
    if patches is not None:
      first, second = patches
      return preservation.local_dino(first, second, mask, c=c)
    crops = preservation.lpips_crops(target.image, image, mask)
    if crops is None:
      return None
    a, b = perception.describe(list(crops))
    return preservation.colocated_dino(a.patches, b.patches, c=c)

  regions = [
    preservation.region_appearance(
      target.image,
      image,
      mask,
      distance=perception.distance,
      similarity=similarity,
      c=c,
    )
    for mask in (target.scene, *target.anchors)
  ]
  scene = regions[0] or Appearance(None, None, None, None)
  anchors = preservation.anchor_means(regions[1:])
  leaves: dict[str, float | None] = {}
  for part, name in ((scene, ""), (anchors, "anchor_")):
    for metric, value in dataclasses.asdict(part).items():
      leaves[f"{prefix}_{name}{metric}"] = value
  errors = None
  if depth is not None:
    errors = _depth_errors(target, depth, source=source, c=c)
  from_points = c.sensor_points and source == SENSOR_SOURCE
  leaves[f"{prefix}_depth"] = None if errors is None else errors.scene
  leaves[f"{prefix}_anchor_depth"] = (
    None
    if errors is None
    else preservation.anchor_depth(errors, from_points=from_points, c=c)
  )
  return leaves


def _depth_errors(
  target: Target,
  depth: NDArray[np.floating[Any]],
  *,
  source: str,
  c: Constants,
) -> preservation.DepthErrors:
  generated = reference.resize_nearest(depth, size=target.image.shape[:2])
  if not (c.sensor_points and source == SENSOR_SOURCE):
    return preservation.depth_errors(
      target.depth.astype(np.float32),
      generated,
      target.scene,
      target.anchors,
    )
  view = target.view
  rgb_xy = reference.depth_pixels_in_rgb(
    view.k_depth,
    view.k_rgb,
    depth_size=view.depth.shape,
    distortion=view.distortion,
  )
  valid = view.valid
  if target.native_scene is not None:
    valid = reference.valid_within(valid, rgb_xy, target.native_scene)
  points = reference.sensor_points(
    view.depth, valid, rgb_xy, target.native_to_video, generated
  )
  anchors = [
    reference.mask_at_points(mask, points.native_xy)
    for mask in target.native_anchors
  ]
  return preservation.depth_errors(
    points.reference.astype(np.float32),
    points.generated.astype(np.float32),
    np.ones(len(points.reference), bool),
    np.stack(anchors),
  )


def _depth_on_video(
  view: ReferenceFrame,
  transform: NDArray[np.float64],
  size: tuple[int, int],
  c: Constants,
) -> NDArray[np.floating[Any]]:
  """Reference depth on the video's grid, 0 = none (2.6, 15.14)."""
  if c.sparse_return_region or view.distortion:
    rgb_xy = reference.depth_pixels_in_rgb(
      view.k_depth,
      view.k_rgb,
      depth_size=view.depth.shape,
      distortion=view.distortion,
    )
    moved, _ = reference.depth_on_rgb_grid(
      view.depth, view.valid, rgb_xy, rgb_size=view.rgb.shape[:2]
    )
  else:
    moved, _ = reference.depth_looked_up_on_rgb(
      view.depth,
      view.valid,
      view.k_depth,
      view.k_rgb,
      rgb_size=view.rgb.shape[:2],
    )
  return reference.warp_nearest(moved, transform, size=size)
