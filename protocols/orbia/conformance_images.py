# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Golden vectors of input preservation: appearance, depth, warps, identity."""

from __future__ import annotations

from collections.abc import Iterator

import jax.numpy as jnp
import numpy as np

from kernels import patches
from protocols.common.conformance import Check
from protocols.common.totals import mean
from protocols.orbia import preservation, reference
from protocols.orbia.conformance_case import Case
from protocols.orbia.constants import PAPER, RELEASED

_INPUT_SIZE = (RELEASED.image_height, RELEASED.image_width)


def appearance(case: Case) -> Iterator[Check]:
  """PSNR, single-window SSIM and crop box on a mask (5.3)."""
  mask = case.read("mask")
  psnr, ssim = preservation.pixel_appearance(
    case.read("reference"), case.read("generated"), mask, c=RELEASED
  )
  yield from case.check("psnr", psnr)
  yield from case.check("ssim", ssim)
  yield from case.check("box", preservation.bounding_box(mask), host=True)


def patch_similarity(case: Case) -> Iterator[Check]:
  """Local and co-located patch similarity (5.3)."""
  mask = case.read("mask")
  first, second = case.real("reference_patches"), case.real("generated_patches")
  grid = RELEASED.patch_grid
  used = np.asarray(patches.used_patches(jnp.asarray(mask), grid=grid))
  yield from case.check("used_patches", used.reshape(grid, grid))
  local = preservation.local_dino(first, second, mask, c=RELEASED)
  yield from case.check("local_similarity", local)
  colocated = preservation.colocated_dino(first, second, c=RELEASED)
  yield from case.check("colocated_similarity", colocated)


def checkpoint(case: Case) -> Iterator[Check]:
  """One checkpoint with anchors: appearance and depth (5.2 to 5.5)."""
  image, generated = case.read("reference"), case.read("generated")
  scene, anchors = case.read("scene_region"), case.read("anchor_masks")
  first, second = case.real("reference_patches"), case.real("generated_patches")
  regions = [scene, *(mask & scene for mask in anchors)]
  rows = []
  for region in regions:
    psnr, ssim = preservation.pixel_appearance(
      image, generated, region, c=RELEASED
    )
    dino = preservation.local_dino(first, second, region, c=RELEASED)
    rows.append({"psnr": psnr, "ssim": ssim, "local_dino": dino})
  for metric in ("psnr", "ssim", "local_dino"):
    values = [row[metric] for row in rows]
    present = [value for value in values[1:] if value is not None]
    yield from case.check(f"scene_{metric}", values[0])
    yield from case.check(
      f"anchor_{metric}", [np.nan if v is None else v for v in values[1:]]
    )
    yield from case.check(f"anchor_macro_{metric}", mean(present))
  found = preservation.depth_errors(
    case.real("reference_depth"), case.real("generated_depth"), scene, anchors
  )
  yield from case.check("scale", found.scale)
  yield from case.check("scene_abs_rel", found.scene)
  yield from case.check("scene_pixels", found.num_scene)
  yield from case.check("anchor_abs_rel", found.anchors)
  yield from case.check("anchor_expected", found.expected)
  yield from case.check("anchor_evaluated", found.evaluated)
  for c, suffix in ((RELEASED, ""), (PAPER, "_paper")):
    value = preservation.anchor_depth(found, from_points=False, c=c)
    yield from case.check(f"anchor_case_value{suffix}", value)


def sensor_points(case: Case) -> Iterator[Check]:
  """Native sensor points against the generated depth (5.6)."""
  depth, valid = case.read("reference_depth"), case.read("valid")
  generated = case.read("generated_depth")
  rgb_xy = reference.depth_pixels_in_rgb(
    case.read("K_depth"),
    case.read("K_rgb"),
    depth_size=depth.shape,
    distortion=case.params.get("distortion_k1k2p1p2", ()),
  )
  transform = reference.input_to_video(
    case.read("native_to_input"),
    input_size=_INPUT_SIZE,
    video_size=generated.shape,
  )
  if case.has("scene_region"):
    valid = reference.valid_within(valid, rgb_xy, case.read("scene_region"))
  points = reference.sensor_points(depth, valid, rgb_xy, transform, generated)
  scene = np.ones(len(points.reference), bool)
  anchors = np.stack(
    [
      reference.mask_at_points(mask, points.native_xy)
      for mask in case.read("anchor_masks")
    ]
  )
  found = preservation.depth_errors(
    points.reference.astype(case.dtype),
    points.generated.astype(case.dtype),
    scene,
    anchors,
  )
  counts = [points.num_valid, len(points.reference), found.num_scene]
  yield from case.check("scene_counts", counts, host=True)
  yield from case.check("scale", found.scale)
  yield from case.check("scene_abs_rel", found.scene)
  yield from case.check("anchor_abs_rel", found.anchors)
  yield from case.check("anchor_points", found.evaluated)
  value = preservation.anchor_depth(found, from_points=True, c=RELEASED)
  yield from case.check("anchor_case_value", value)


def depth_to_rgb(case: Case) -> Iterator[Check]:
  """Depth grid to RGB grid (2.6)."""
  depth = case.read("depth")
  width, height = case.params["rgb_size"]
  rgb_xy = reference.depth_pixels_in_rgb(
    case.read("K_depth"),
    case.read("K_rgb"),
    depth_size=depth.shape,
    distortion=case.params["distortion_k1k2p1p2"],
  )
  moved, filled = reference.depth_on_rgb_grid(
    depth, case.read("valid"), rgb_xy, rgb_size=(height, width)
  )
  yield from case.check("rgb_depth", moved, host=True)
  yield from case.check("rgb_valid", filled, host=True)
  mask = reference.mask_on_rgb_grid(
    case.read("depth_mask"), rgb_xy, rgb_size=(height, width)
  )
  yield from case.check("rgb_mask", mask, host=True)


def warp(case: Case) -> Iterator[Check]:
  """Warps to a video grid (2.6)."""
  size = (case.params["video_height"], case.params["video_width"])
  transform = case.read("transform")
  image = reference.warp_image(case.read("rgb"), transform, size=size)
  yield from case.check("rgb_out", image, host=True)
  for name in ("depth", "mask"):
    moved = reference.warp_nearest(case.read(name), transform, size=size)
    yield from case.check(f"{name}_out", moved, host=True)


def nearest_maps(case: Case) -> Iterator[Check]:
  """Source index of every output place, except at exact halves (2.6)."""
  for name in [n for n in case.arrays if n.startswith("sizes_")]:
    suffix = name.removeprefix("sizes_")
    source, output = (int(n) for n in case.read(name))
    index = reference.nearest_index(source, output)
    ties = case.read(f"map_{suffix}_ties")
    expected = case.arrays[f"map_{suffix}"]
    # At ties either neighbour is right; elsewhere the index must be equal.
    near = ties & (np.abs(index - expected) <= 1)
    near |= ties & ((expected < 0) | (index < 0))
    yield from case.check(
      f"map_{suffix}", np.where(near, expected, index), host=True
    )


def canonical_camera(case: Case) -> Iterator[Check]:
  """Centre crop to 16:9 and resize: calibration (2.1)."""
  crops, cameras = [], []
  sizes = case.read("sizes")
  for (width, height), k in zip(sizes, case.read("K"), strict=True):
    crops.append(reference.canonical_crop(int(width), int(height)))
    transform = reference.canonical_transform(
      int(width), int(height), input_size=_INPUT_SIZE
    )
    cameras.append(transform @ k)
  yield from case.check("crop_xyxy", crops, host=True)
  yield from case.check("K_1280x720", cameras, host=True)


def identity(case: Case) -> Iterator[Check]:
  """Mask-pooled descriptors and their aggregation (5.7)."""
  first = case.real("reference_patches")
  frames = case.real("frame_patches")
  channels = first.shape[-1]
  found = preservation.identity(
    first.reshape(-1, channels),
    frames.reshape(len(frames), -1, channels),
    case.read("reference_masks"),
    case.read("frame_masks"),
    c=RELEASED,
  )
  yield from case.check("similarity", found.similarity)
  yield from case.check("anchor_mean", found.anchor_means)
  yield from case.check("case_value", found.value)
  yield from case.check("evaluated_samples", found.num_measured)
  yield from case.check("reason", found.reasons)
  names = case.params["anchors"]
  for name in case.outputs():
    if name.startswith("descriptor_"):
      row = names.index(name.removeprefix("descriptor_"))
      pooled = patches.pooled_descriptor(
        jnp.asarray(first.reshape(-1, channels)),
        jnp.asarray(case.arrays["reference_masks"][row]),
        min_pixels=RELEASED.identity_min_pixels,
        min_weight=RELEASED.identity_min_weight,
        norm_floor=RELEASED.cosine_floor,
      )
      yield from case.check(name, pooled.descriptor)
