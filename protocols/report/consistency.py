# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Do two frames agree on one 3D world? Pictures of depth, error, occlusion.

Each pixel of a source view is lifted by its depth, moved by the two poses and
looked up in the target view, as Orbia's correspondences are (specification,
section 7.2): behind the observed surface it is hidden, in front of it it
contradicts what the target shows. Nothing is scored here; the maps show where
the numbers of a record come from. Depth is camera-axis Z, NaN = unknown;
integer coordinate = pixel centre; poses are camera-to-world.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import cv2
import jax
import jax.numpy as jnp
import numpy as np

from kernels import camera
from perception import observation
from protocols.common import overlays
from protocols.report import pictures
from protocols.report.pictures import Legend, Section

# Relative; Orbia's occlusion tolerance (specification, section 7.2).
TOLERANCE = 0.10
_NEAR = 1e-8
AGREES, HIDDEN, CONTRADICTS, OUTSIDE, UNKNOWN, MOVING = range(6)
# Okabe-Ito colours, told apart with any colour vision; RGB.
_KINDS: dict[int, tuple[str, tuple[int, int, int]]] = {
  AGREES: ("seen again where it should be", (0, 158, 115)),
  HIDDEN: ("hidden in the target, behind what it shows", (86, 180, 233)),
  CONTRADICTS: (
    f"more than {TOLERANCE:.0%} in front of what the target shows",
    (213, 94, 0),
  ),
  OUTSIDE: ("outside the target view", (120, 120, 120)),
  UNKNOWN: ("no depth", (0, 0, 0)),
  MOVING: ("moving object, left out", (204, 121, 167)),
}
_TINT = 0.62


@dataclasses.dataclass(frozen=True, eq=False)
class View:
  """One frame with its geometry.

  Attributes:
    name: what it is called, for example `frame 12`.
    picture: uint8 [h, w, 3] on the grid of the depth.
    depth: [h, w] float32, NaN = unknown.
    intrinsics: [3, 3] at (h, w).
    pose_c2w: [4, 4].
    moving: bool [h, w], pixels of moving objects, or None.
  """

  name: str
  picture: np.ndarray
  depth: np.ndarray
  intrinsics: np.ndarray
  pose_c2w: np.ndarray
  moving: np.ndarray | None = None


def view_of(
  name: str,
  geometry: observation.Geometry,
  row: int,
  frame: np.ndarray,
  mask: np.ndarray | None = None,
) -> View:
  """A frame of a clip with the geometry of its row.

  Args:
    name: what it is called.
    geometry: recovered geometry.
    row: its row there.
    frame: uint8 [H, W, 3] of the video.
    mask: bool [H, W] of moving objects, or None.
  """
  return View(
    name=name,
    picture=_on_grid(frame, geometry, cv2.INTER_AREA),
    depth=geometry.depth[row],
    intrinsics=geometry.intrinsics[row],
    pose_c2w=geometry.c2w[row],
    moving=None
    if mask is None
    else _on_grid(mask.astype(np.uint8), geometry, cv2.INTER_NEAREST) > 0,
  )


def compare(source: View, target: View) -> tuple[np.ndarray, np.ndarray]:
  """Where each pixel of the source is found in the target.

  Args:
    source, target: views; they may differ in size.

  Returns:
    (kind [h, w] uint8, one of the constants above; error [h, w] float32:
    |z - o| / o, NaN except where a pixel agrees or contradicts).
  """
  x, y, z = (
    np.asarray(part)
    for part in _moved(
      jnp.asarray(np.nan_to_num(source.depth, nan=1.0), jnp.float32),
      jnp.asarray(source.intrinsics, jnp.float32),
      jnp.asarray(target.intrinsics, jnp.float32),
      # In double precision: poses may lie far from the origin.
      jnp.asarray(
        np.linalg.inv(target.pose_c2w) @ source.pose_c2w, jnp.float32
      ),
    )
  )
  height, width = target.depth.shape
  inside = (z > _NEAR) & (x >= 0) & (x < width) & (y >= 0) & (y < height)
  column = np.where(inside, x, 0).astype(int)
  row = np.where(inside, y, 0).astype(int)
  observed = np.where(inside, target.depth[row, column], np.nan)
  known = _known(source.depth)
  seen = _known(observed)
  ratio = np.where(seen, z / np.where(seen, observed, 1.0), np.nan)
  kind = np.full(z.shape, AGREES, np.uint8)
  kind[ratio < 1.0 - TOLERANCE] = CONTRADICTS
  kind[ratio > 1.0 + TOLERANCE] = HIDDEN
  kind[inside & ~seen] = UNKNOWN
  kind[~inside] = OUTSIDE
  kind[~known] = UNKNOWN
  for moving in (
    source.moving,
    None if target.moving is None else target.moving[row, column] & inside,
  ):
    if moving is not None:
      kind[moving & known] = MOVING
  error = np.abs(ratio - 1.0).astype(np.float32)
  error[(kind != AGREES) & (kind != CONTRADICTS)] = np.nan
  return kind, error


def section(source: View, target: View, *, key: str, why: str) -> Section:
  """The pair as pictures: frames, depths, error map, occluded region.

  Args:
    source, target: the views.
    key: stem of the pictures' files, unique within a case.
    why: why this pair is shown, as the beginning of a sentence.

  Returns:
    Six pictures with captions, text alternatives and a legend.
  """
  kind, error = compare(source, target)
  shares = {k: float(np.mean(kind == k)) for k in _KINDS}
  stated = ", ".join(
    f"{shares[k]:.0%} {_KINDS[k][0]}" for k in _KINDS if shares[k] >= 0.005
  )
  depths = pictures.depth_pictures([source.depth, target.depth])
  parts = (
    ("source", f"source, {source.name}", source.picture, ""),
    ("target", f"target, {target.name}", target.picture, ""),
    ("depth", "depth of the source", depths[0], "; bright is near"),
    ("depth2", "depth of the target", depths[1], "; same scale"),
    (
      "error",
      "reprojection error",
      _error_picture(error),
      f"; dark 0, bright {TOLERANCE:.0%} and more, black not compared",
    ),
    ("regions", "what the target sees of it", _regions(source, kind), ""),
  )
  return Section(
    title=f"One world? {source.name[:1].upper()}{source.name[1:]} seen from"
    f" {target.name}",
    about=f"{why} Of the source's pixels: {stated}.",
    shots=tuple(
      pictures.shot(
        f"{key}-{name}",
        pictures.shrunk(picture),
        caption=f"{caption[:1].upper()}{caption[1:]}{note}",
        description=f"{caption[:1].upper()}{caption[1:]}{note}. {why}"
        + (f" {stated}." if name == "regions" else ""),
      )
      for name, caption, picture, note in parts
    ),
    legend=tuple(
      Legend(text, "#{:02x}{:02x}{:02x}".format(*colour))
      for k, (text, colour) in _KINDS.items()
      if k != MOVING or shares[MOVING]
    ),
  )


@functools.partial(jax.jit)
def _moved(
  depth: jax.Array, k_source: jax.Array, k_target: jax.Array, motion: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
  """Whole target pixels (x, y) and depth z of every source pixel."""
  points = camera.transform_points(motion, camera.unproject(depth, k_source))
  xy, z = camera.project(points, k_target)
  xy = jnp.rint(xy)
  return xy[..., 0], xy[..., 1], z


def _known(depth: np.ndarray) -> np.ndarray:
  return np.isfinite(depth) & (depth > 0)


def _error_picture(error: np.ndarray) -> np.ndarray:
  compared = np.isfinite(error)
  level = np.clip(np.nan_to_num(error) / TOLERANCE, 0.0, 1.0)
  # The map's darkest colours stay apart from black, which is "not compared".
  values = np.round(55 + 200 * level).astype(np.uint8)
  return pictures.coloured(values, compared)


def _regions(source: View, kind: np.ndarray) -> np.ndarray:
  picture = source.picture
  for k, (_, colour) in _KINDS.items():
    if k != UNKNOWN:
      picture = overlays.with_mask(
        picture, kind == k, colour=colour, opacity=_TINT, outline=False
      )
  return np.where((kind == UNKNOWN)[..., None], np.uint8(0), picture)


def _on_grid(
  array: np.ndarray, geometry: observation.Geometry, interpolation: int
) -> np.ndarray:
  """A picture or mask of the video on the grid of the depth."""
  full, size = geometry.full_size, geometry.depth_size
  resized: Any = cv2.resize(
    array, (full[1], full[0]), interpolation=interpolation
  )
  return np.asarray(resized)[: size[0], : size[1]]
