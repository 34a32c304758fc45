# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Speed of the metric stage against plain NumPy, in one run."""

from __future__ import annotations

import dataclasses

import numpy as np

from protocols.common import timing
from protocols.pdi import guard, measure, reference
from protocols.pdi.clip import ClipArrays
from protocols.pdi.constants import RELEASED

_BASELINE = (
  "NumPy float64, same formulas, whole maps, thin SVD for the ground plane"
)


def run(*, quick: bool) -> list[timing.Row]:
  """Times one clip of 120 frames, 512 x 512, 200 tracks; smaller if quick."""
  frames, side, tracks = (24, 128, 60) if quick else (120, 512, 200)
  clip = synthetic_clip(frames=frames, side=side, tracks=tracks)
  rows = [_row("metric stage from depth and cameras", clip)]
  ready = dataclasses.replace(
    clip, pointmaps=reference.point_maps(clip), depth=None, c2w=None
  )
  ready = dataclasses.replace(
    ready, object_depth=np.linspace(1.0, 1.5, frames, dtype=np.float32)
  )
  rows.append(_row("metric stage from ready point maps", ready))
  return rows


def synthetic_clip(*, frames: int, side: int, tracks: int) -> ClipArrays:
  """An ellipse that recedes over a flat ground, seen by a moving camera.

  Args:
    frames: T.
    side: rows and columns of video and map.
    tracks: anchors on the object.

  Returns:
    A clip with masks that cover about a sixth of the picture.
  """
  rng = np.random.default_rng(0)
  y, x = np.mgrid[0:side, 0:side].astype(np.float32)
  focal = float(side)
  time = np.linspace(0, 1, frames, dtype=np.float32)
  centre_x = side * (0.4 + 0.2 * time)
  distance = 3.0 * (1 + 0.5 * time)
  radius = side * 0.75 / distance
  ground = 1.6 * focal / np.maximum(y - 0.45 * side, 0.02 * side)
  masks = np.empty((frames, side, side), bool)
  depth = np.empty((frames, side, side), np.float32)
  poses = np.tile(np.eye(4), (frames, 1, 1))
  poses[:, 0, 3] = 0.3 * time
  spots = rng.uniform(-0.6, 0.6, (tracks, 2))
  xy = np.empty((frames, tracks, 2), np.float32)
  for t in range(frames):
    dx = (x - centre_x[t]) / radius[t]
    dy = (y - 0.5 * side) / (1.2 * radius[t])
    inside = dx * dx + dy * dy
    masks[t] = inside < 1
    bulge = 0.4 * np.sqrt(np.maximum(1 - inside, 0))
    depth[t] = np.where(masks[t], distance[t] - bulge, ground)
    xy[t, :, 0] = centre_x[t] + spots[:, 0] * radius[t]
    xy[t, :, 1] = 0.5 * side + spots[:, 1] * 1.2 * radius[t]
  depth *= 1 + 0.002 * rng.standard_normal(depth.shape, np.float32)
  return ClipArrays(
    masks=masks,
    tracks=xy,
    visibility=rng.random((frames, tracks)) > 0.1,
    fps=24.0,
    depth=depth,
    intrinsics=np.array(
      [[focal, 0, side / 2], [0, focal, side / 2], [0, 0, 1]]
    ),
    c2w=poses,
  )


def _row(name: str, clip: ClipArrays) -> timing.Row:
  def ours() -> float:
    measured = measure.measure_clip(clip, RELEASED, dtype=np.float32)
    guard.audit_clip(clip, measured, RELEASED, images=None, dtype=np.float32)
    return measured.pdi or 0.0

  cold, warm = timing.measure(ours, repeats=3)
  own_peak = timing.peak_memory_bytes()
  _, baseline = timing.measure(
    lambda: sum(reference.reference_scores(clip).values()), repeats=2
  )
  frames, rows, columns = clip.masks.shape
  tracks = 0 if clip.tracks is None else clip.tracks.shape[1]
  share = float(clip.masks.mean())
  bound = (
    "bounded by the exact medians of every pixel under the mask"
    if clip.pointmaps is None
    else "nothing to lift, so both sides spend their time on the medians of"
    " every pixel under the mask"
  )
  note = (
    f"{bound}; T={frames}, {columns}x{rows}, {tracks} tracks, object"
    f" {share:.0%} of the picture, float32; peak memory so far"
    f" {own_peak / 2**20:.0f} MiB, with the baseline"
    f" {timing.peak_memory_bytes() / 2**20:.0f} MiB"
  )
  return timing.Row(name, cold, warm, baseline, _BASELINE, note)
