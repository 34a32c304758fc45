# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Built-in reference generators with known behaviour.

They are given what a model never sees (targets, poses, depth) and are neither
ranked nor comparable to models: they calibrate the evaluator.
Source: EgoGenEval specification 8.
"""

from __future__ import annotations

import dataclasses
import functools
import zlib
from collections.abc import Callable, Mapping

import cv2
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from kernels import camera, zbuffer
from perception.errors import InputError
from protocols.egogeneval import frame_files, frames, manifest

_UNDER_EXECUTION = 0.4
_NOISE_M, _NOISE_DEG = 0.004, 0.25
_INPAINT_RADIUS = 3
_CRACK_RATIO = 0.95


@dataclasses.dataclass(frozen=True, eq=False)
class ReferenceView:
  """A view that a reference produced or starts from.

  Attributes:
    image: RGB uint8 [h, w, 3].
    depth: float32 [h, w] metres, 0 = unknown.
    pose_c2w: the pose that the view shows.
    intrinsics: [3, 3] at (h, w).
    native: the original image of a physical view. It is what a copy hands
      out, so that a copied view has the very pixels of its source.
  """

  image: NDArray[np.uint8]
  depth: NDArray[np.float32]
  pose_c2w: NDArray[np.float64]
  intrinsics: NDArray[np.float64]
  native: NDArray[np.uint8] | None = None


@dataclasses.dataclass(frozen=True, eq=False)
class ReferenceStep:
  """What a reference is told about a step.

  Attributes:
    case: the case.
    number: 1-based step.
    current: its own last view, or the current view at step 1.
    inputs: physical input views.
    source: physical frame before the step.
    target: physical target of the step.
  """

  case: manifest.ManifestCase
  number: int
  current: ReferenceView
  inputs: tuple[ReferenceView, ...]
  source: ReferenceView
  target: ReferenceView


Reference = Callable[[ReferenceStep], ReferenceView]


def physical_view(stored: frame_files.StoredFrame) -> ReferenceView:
  """A physical view at the evaluator's reduced size, with its original."""
  frame: frames.EvaluationFrame = stored.frame
  if frame.depth is None or frame.intrinsics is None:
    raise InputError(
      stored.image_path, "geometry", found="none", expected="depth and pose"
    )
  return ReferenceView(
    frame.image,
    frame.depth,
    stored.pose_c2w,
    frame.intrinsics,
    stored.native,
  )


def oracle(step: ReferenceStep) -> ReferenceView:
  """The physical target itself."""
  return step.target


def source_copy(step: ReferenceStep) -> ReferenceView:
  """The initial view at every step."""
  return step.inputs[0]


def nearest_input_copy(step: ReferenceStep) -> ReferenceView:
  """The exposed input most similar to the target, which is never a candidate.

  Similarity is the correlation of grey images at 64 x 48; ties keep order.
  """
  wanted = _thumbnail(step.target.image)
  similarity = [
    float(np.corrcoef(wanted, _thumbnail(view.image))[0, 1])
    for view in step.inputs
  ]
  return step.inputs[int(np.argmax(similarity))]


def depth_warp(step: ReferenceStep) -> ReferenceView:
  """The current view, splatted at the target's pose; holes are inpainted."""
  return warp(step.current, step.target.pose_c2w)


def underexecuting_warp(step: ReferenceStep) -> ReferenceView:
  """A depth warp that executes 40 % of the motion, with a noisy pose."""
  relative = np.linalg.inv(step.source.pose_c2w) @ step.target.pose_c2w
  partial = fraction_of(relative, _UNDER_EXECUTION)
  # The noise depends on the step alone, so that a resumed run repeats it.
  text = f"{step.case.case_id}__step{step.number}"
  rng = np.random.default_rng(zlib.crc32(text.encode()))
  noise = np.eye(4)
  noise[:3, :3] = cv2.Rodrigues(np.radians(_NOISE_DEG) * rng.normal(size=3))[0]
  noise[:3, 3] = _NOISE_M * rng.normal(size=3)
  return warp(step.current, step.current.pose_c2w @ partial @ noise)


REFERENCES: Mapping[str, Reference] = {
  "oracle": oracle,
  "source_copy": source_copy,
  "nearest_input_copy": nearest_input_copy,
  "depth_warp": depth_warp,
  "underexecuting_warp": underexecuting_warp,
}


def fraction_of(
  relative: NDArray[np.float64], share: float
) -> NDArray[np.float64]:
  """A share of a relative motion: rotation vector and translation scaled."""
  vector, _ = cv2.Rodrigues(np.ascontiguousarray(relative[:3, :3]))
  partial = np.eye(4)
  partial[:3, :3] = cv2.Rodrigues(share * vector)[0]
  partial[:3, 3] = share * relative[:3, 3]
  return partial


def warp(view: ReferenceView, pose_c2w: NDArray[np.float64]) -> ReferenceView:
  """Renders a view from another pose by splatting its points.

  Args:
    view: source view; pixels without depth are left out.
    pose_c2w: the new pose; intrinsics and size stay.

  Returns:
    The rendered view. Holes are inpainted in the image and 0 in the depth.
  """
  relative = np.linalg.inv(pose_c2w) @ view.pose_c2w
  colours, depth, filled = _splat(
    jnp.asarray(view.image, jnp.float32),
    jnp.asarray(view.depth),
    jnp.asarray(view.intrinsics, jnp.float32),
    jnp.asarray(relative, jnp.float32),
  )
  image = np.clip(np.rint(np.asarray(colours)), 0, 255).astype(np.uint8)
  holes = (~np.asarray(filled)).astype(np.uint8)
  if holes.any() and not holes.all():
    image = np.asarray(
      cv2.inpaint(image, holes, _INPAINT_RADIUS, cv2.INPAINT_TELEA), np.uint8
    )
  return ReferenceView(
    image, np.asarray(depth, np.float32), pose_c2w, view.intrinsics
  )


@functools.partial(jax.jit)
def _splat(
  image: jax.Array, depth: jax.Array, intrinsics: jax.Array, relative: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
  height, width = depth.shape
  known = jnp.isfinite(depth) & (depth > 0)
  points = camera.unproject(jnp.where(known, depth, 1.0), intrinsics)
  moved = camera.transform_points(relative, points).reshape(-1, 3)
  xy, z = camera.project(moved, intrinsics)
  valid = known.ravel() & (z > 0)
  colours, depths, filled = [], [], []
  for radius in (0, 1):
    buffer = zbuffer.splat_points(
      xy, z, valid, height=height, width=width, radius=radius
    )
    colours.append(zbuffer.gather_values(buffer, image.reshape(-1, 3)))
    depths.append(buffer.depth)
    filled.append(buffer.filled)
  # Single pixels keep the image sharp; squares fill the cracks between them,
  # also where a farther surface shows through a crack.
  crack = filled[1] & (~filled[0] | (depths[1] < _CRACK_RATIO * depths[0]))
  return (
    jnp.where(crack[..., None], colours[1], colours[0]),
    jnp.where(crack, depths[1], jnp.where(filled[0], depths[0], 0.0)),
    filled[0] | filled[1],
  )


def _thumbnail(image: NDArray[np.uint8]) -> NDArray[np.float64]:
  grey = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)
  small = cv2.resize(grey, (64, 48), interpolation=cv2.INTER_AREA)
  return np.asarray(small, np.float64).ravel()
