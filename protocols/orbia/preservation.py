# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""T3, input preservation: the input view at return, the query view, identity.

A checkpoint compares one generated frame with a registered reference on the
video's grid. Scene and anchors are measured alike; an anchor with an empty
region is skipped and never scores. Section numbers are those of the project's
Orbia specification.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from kernels import depth_agreement, masked_image, patches
from protocols.common.totals import mean
from protocols.orbia.constants import Constants

_PEAK = 255.0
Mask = NDArray[np.bool_]
Descriptors = NDArray[np.floating[Any]]


@dataclasses.dataclass(frozen=True)
class Appearance:
  """Appearance of one region; None = no value."""

  psnr: float | None
  ssim: float | None
  lpips: float | None
  dino: float | None


class DepthErrors(NamedTuple):
  """Depth errors of one checkpoint; None or NaN = no value.

  Attributes:
    scale: a*, None without support.
    scene: scene error.
    num_scene: pixels (points) of the support.
    anchors: [R] error of each anchor.
    expected: [R] anchor pixels with a reference depth.
    evaluated: [R] of them with a generated depth.
  """

  scale: float | None
  scene: float | None
  num_scene: int
  anchors: NDArray[np.float64]
  expected: NDArray[np.int64]
  evaluated: NDArray[np.int64]


class Identity(NamedTuple):
  """Identity of the anchors over the scoring frames.

  Attributes:
    similarity: [R, F], NaN = not measurable.
    anchor_means: [R], NaN = no measurable frame.
    value: equal mean over anchors with a value, or None.
    num_measured: samples that were measured.
    reasons: [R][F] why a sample is not measurable; '' otherwise.
    covered: whether every sample was measured.
  """

  similarity: NDArray[np.float64]
  anchor_means: NDArray[np.float64]
  value: float | None
  num_measured: int
  reasons: list[list[str]]
  covered: bool


def bounding_box(mask: Mask) -> tuple[int, int, int, int] | None:
  """(first row, end row, first column, end column) of a mask; None if empty."""
  rows = np.flatnonzero(mask.any(axis=1))
  columns = np.flatnonzero(mask.any(axis=0))
  if not rows.size:
    return None
  return (
    int(rows[0]),
    int(rows[-1]) + 1,
    int(columns[0]),
    int(columns[-1]) + 1,
  )


def pixel_appearance(
  reference: NDArray[np.uint8],
  generated: NDArray[np.uint8],
  mask: Mask,
  *,
  c: Constants,
) -> tuple[float | None, float | None]:
  """PSNR and single-window SSIM on a mask (5.3).

  Args:
    reference: [H, W, 3] uint8.
    generated: [H, W, 3] uint8, same size.
    mask: [H, W] bool.
    c: constants.

  Returns:
    (PSNR in dB or None for an empty mask, SSIM or None below two pixels).
  """
  psnr, ssim, count = _appearance_kernel(
    jnp.asarray(reference),
    jnp.asarray(generated),
    jnp.asarray(mask),
    mse_floor=c.psnr_mse_floor,
    cap_db=c.psnr_cap_db,
  )
  pixels = int(count)
  return (
    float(psnr) if pixels > 0 else None,
    float(ssim) if pixels > 1 else None,
  )


def local_dino(
  reference: Descriptors, generated: Descriptors, mask: Mask, *, c: Constants
) -> float | None:
  """Best cosine in the 3x3 neighbourhood, over patches with a masked pixel.

  Args:
    reference: [P, C] patches of the whole reference.
    generated: [P, C] patches of the whole generated frame.
    mask: [H, W] bool region of the reference.
    c: constants.

  Returns:
    Mean over used patches, None if none is used.
  """
  used = patches.used_patches(jnp.asarray(mask), grid=c.patch_grid)
  found = patches.local_similarity(
    jnp.asarray(reference),
    jnp.asarray(generated),
    used,
    norm_floor=c.cosine_floor,
  )
  return float(found.value) if int(found.count) else None


def colocated_dino(
  reference: Descriptors, generated: Descriptors, *, c: Constants
) -> float:
  """Mean cosine of all patches at equal places of two crops (5.3)."""
  found = patches.colocated_similarity(
    jnp.asarray(reference), jnp.asarray(generated), norm_floor=c.cosine_floor
  )
  return float(found)


def anchor_means(regions: Sequence[Appearance | None]) -> Appearance:
  """Equal mean of each metric over the anchors that have it (5.4)."""
  present = [region for region in regions if region is not None]

  def over(metric: str) -> float | None:
    values = [getattr(region, metric) for region in present]
    finite = [v for v in values if v is not None and math.isfinite(v)]
    return mean(finite)

  return Appearance(over("psnr"), over("ssim"), over("lpips"), over("dino"))


def depth_errors(
  reference: NDArray[np.floating[Any]],
  generated: NDArray[np.floating[Any]],
  scene: Mask,
  anchors: Mask,
) -> DepthErrors:
  """Scale-aligned depth errors of one checkpoint (5.5, 5.6).

  Args:
    reference: reference depth, any shape (map or points).
    generated: generated depth, same shape.
    scene: bool, same shape, scene region.
    anchors: [R, ...] bool anchor regions; intersected with the scene here.

  Returns:
    `DepthErrors`.
  """
  # Padded by one empty region, since a kernel of no regions has no shape.
  regions = np.concatenate([anchors & scene, np.zeros((1, *scene.shape), bool)])
  found = _depth_kernel(
    jnp.asarray(reference).reshape(-1),
    jnp.asarray(generated).reshape(-1),
    jnp.asarray(scene).reshape(-1),
    jnp.asarray(regions).reshape(len(regions), -1),
  )
  pixels = int(found.scene.count)
  evaluated = np.asarray(found.regions.count, np.int64)[:-1]
  values = np.asarray(found.regions.value, np.float64)[:-1]
  return DepthErrors(
    scale=float(found.scale) if pixels else None,
    scene=float(found.scene.value) if pixels else None,
    num_scene=pixels,
    anchors=np.where(evaluated > 0, values, np.nan),
    expected=np.asarray(found.expected, np.int64)[:-1],
    evaluated=evaluated,
  )


def anchor_depth(
  found: DepthErrors, *, from_points: bool, c: Constants
) -> float | None:
  """Case value of the anchor depth (5.5, 5.6, 15.9).

  Released: withheld when an anchor with expected pixels has no evaluated one;
  with native sensor points, and in the paper, such an anchor is left out.
  """
  measured = found.anchors[np.isfinite(found.anchors)]
  expected = int(np.sum(found.expected > 0))
  tolerant = from_points or c.mean_of_measured_anchors
  if not tolerant and len(measured) < expected:
    return None
  return mean(measured)


def identity(
  reference_patches: Descriptors,
  frame_patches: Descriptors,
  reference_masks: Mask,
  frame_masks: Mask,
  *,
  c: Constants,
) -> Identity:
  """Similarity of every anchor between the input and the scoring frames (5.7).

  Args:
    reference_patches: [P, C] patch tokens of the reference image, of the
      length that the backend gave them.
    frame_patches: [F, P, C] patch tokens of the scoring frames.
    reference_masks: [R, H, W] bool seed masks at video size.
    frame_masks: [F, R, H, W] bool tracked masks.
    c: constants.

  Returns:
    `Identity`. Samples that cannot be measured are left out, not scored 0.
  """
  frames, anchors = frame_masks.shape[:2]
  similarity = np.full((anchors, frames), np.nan)
  reasons = [[""] * frames for _ in range(anchors)]
  for k in range(anchors):
    seed = _descriptor(reference_patches, reference_masks[k], c)
    for f in range(frames):
      sample = _descriptor(frame_patches[f], frame_masks[f, k], c)
      reasons[k][f] = seed[1] or sample[1]
      if not reasons[k][f]:
        cosine = float(np.dot(seed[0], sample[0]))
        similarity[k, f] = min(max(cosine, -1.0), 1.0)
  measured = np.isfinite(similarity)
  means = [mean(row[ok]) for row, ok in zip(similarity, measured, strict=True)]
  return Identity(
    similarity=similarity,
    anchor_means=np.array([np.nan if m is None else m for m in means]),
    value=mean([m for m in means if m is not None]),
    num_measured=int(measured.sum()),
    reasons=reasons,
    covered=bool(measured.all()) and anchors > 0,
  )


def lpips_crops(
  reference: NDArray[np.uint8], generated: NDArray[np.uint8], mask: Mask
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]] | None:
  """Crops to the bounding box of a mask; pixels off the mask are kept."""
  box = bounding_box(mask)
  if box is None:
    return None
  top, bottom, left, right = box
  return reference[top:bottom, left:right], generated[top:bottom, left:right]


def region_appearance(
  reference: NDArray[np.uint8],
  generated: NDArray[np.uint8],
  mask: Mask,
  *,
  distance: Callable[..., float | None],
  similarity: Callable[[Mask], float | None],
  c: Constants,
) -> Appearance | None:
  """All four appearance metrics of one region; None if it is empty.

  Args:
    reference: [H, W, 3] uint8.
    generated: [H, W, 3] uint8.
    mask: [H, W] bool region.
    distance: perceptual distance of two crops, None if not available.
    similarity: descriptor similarity of the region.
    c: constants.
  """
  crops = lpips_crops(reference, generated, mask)
  if crops is None:
    return None
  psnr, ssim = pixel_appearance(reference, generated, mask, c=c)
  return Appearance(psnr, ssim, distance(*crops), similarity(mask))


def _descriptor(
  table: Descriptors, mask: Mask, c: Constants
) -> tuple[NDArray[np.floating[Any]], str]:
  """(unit descriptor, why there is none)."""
  found = _descriptor_kernel(
    jnp.asarray(table),
    jnp.asarray(mask),
    min_pixels=c.identity_min_pixels,
    min_weight=c.identity_min_weight,
    norm_floor=c.cosine_floor,
  )
  reason = ""
  if int(found.num_pixels) < c.identity_min_pixels:
    reason = "empty_or_small_mask"
  elif float(found.weight) < c.identity_min_weight:
    reason = "less_than_one_feature_patch_of_support"
  elif not bool(found.valid):
    reason = "invalid_descriptor"
  return np.asarray(found.descriptor), reason


_depth_kernel = jax.jit(depth_agreement.aligned_depth_error)
_descriptor_kernel = jax.jit(
  patches.pooled_descriptor,
  static_argnames=("min_pixels", "min_weight", "norm_floor"),
)


@functools.partial(jax.jit, static_argnames=("mse_floor", "cap_db"))
def _appearance_kernel(
  reference: jax.Array,
  generated: jax.Array,
  mask: jax.Array,
  *,
  mse_floor: float,
  cap_db: float,
) -> tuple[jax.Array, jax.Array, jax.Array]:
  dtype = jnp.result_type(float)
  psnr = masked_image.masked_psnr(
    reference.astype(dtype),
    generated.astype(dtype),
    mask,
    peak=_PEAK,
    mse_floor=mse_floor,
    cap_db=cap_db,
  )
  ssim = masked_image.masked_global_ssim(
    masked_image.grey_levels(reference, dtype=dtype),
    masked_image.grey_levels(generated, dtype=dtype),
    mask,
    peak=_PEAK,
  )
  return psnr.value, ssim.value, psnr.count
