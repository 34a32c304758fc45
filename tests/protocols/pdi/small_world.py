# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Small observation folders for end-to-end tests, written by hand."""

from __future__ import annotations

import pathlib

import numpy as np

from perception import observation

FRAMES = 12
SIZE = (48, 64)
SOURCE = observation.Provenance(
  source_sha256="0" * 64, backend="drawn", backend_version="1"
)


def arrays(*, seed: int) -> dict[str, np.ndarray]:
  """A textured square that moves to the right before a sloping floor.

  Returns:
    depth [T, h, w], masks [T, h, w], xy [T, N, 2], intrinsics, c2w.
  """
  rng = np.random.default_rng(seed)
  height, width = SIZE
  rows, columns = np.mgrid[:height, :width]
  depth = np.repeat((6.0 - 0.05 * rows)[None], FRAMES, axis=0)
  masks = np.zeros((FRAMES, height, width), bool)
  points = rng.uniform(1.0, 18.0, (40, 2))
  xy = np.zeros((FRAMES, 40, 2))
  for t in range(FRAMES):
    left = 8 + t
    inside = (columns >= left) & (columns < left + 20)
    inside &= (rows >= 10) & (rows < 30)
    masks[t] = inside
    ridge = 0.02 * np.maximum(columns - left, 0) ** 1.5 + 0.01 * (rows - 10)
    depth[t][inside] = (3.0 + ridge)[inside]
    xy[t] = points + np.array([left, 10.0])
  intrinsics = np.array([[60.0, 0, 31.5], [0, 60.0, 23.5], [0, 0, 1]])
  return {
    "depth": depth.astype(np.float32),
    "masks": masks,
    "xy": xy.astype(np.float32),
    "intrinsics": np.repeat(intrinsics[None], FRAMES, axis=0),
    "c2w": np.repeat(np.eye(4)[None], FRAMES, axis=0),
  }


def geometry(content: dict[str, np.ndarray]) -> observation.Geometry:
  """Its depth and cameras."""
  return observation.Geometry(
    depth=content["depth"],
    intrinsics=content["intrinsics"].astype(np.float32),
    c2w=content["c2w"],
    frame_indices=np.arange(FRAMES, dtype=np.int32),
    video_size=SIZE,
    unit="metre",
    provenance=SOURCE,
  )


def masks(content: dict[str, np.ndarray]) -> observation.Masks:
  """Its masks, one object."""
  return observation.Masks(
    masks=content["masks"][None],
    object_ids=np.array([1], np.int32),
    frame_indices=np.arange(FRAMES, dtype=np.int32),
    provenance=SOURCE,
  )


def tracks(content: dict[str, np.ndarray]) -> observation.Tracks:
  """Its tracks, all visible."""
  shape = content["xy"].shape[:2]
  return observation.Tracks(
    xy=content["xy"],
    visible=np.ones(shape, bool),
    confidence=np.ones(shape, np.float32),
    query_frame=np.zeros(shape[1], np.int32),
    provenance=SOURCE,
  )


def write_case(folder: pathlib.Path, *, seed: int) -> None:
  """Writes `geometry.npz`, `masks.npz` and `tracks.npz`."""
  content = arrays(seed=seed)
  folder.mkdir(parents=True, exist_ok=True)
  geometry(content).save(folder / "geometry.npz")
  masks(content).save(folder / "masks.npz")
  tracks(content).save(folder / "tracks.npz")


def write_run(
  root: pathlib.Path, *, systems: tuple[str, ...], cases: int
) -> None:
  """Writes `<system>/<case>/*.npz`, different for each system and case."""
  for i, system in enumerate(systems):
    for j in range(cases):
      write_case(root / system / f"clip{j}", seed=100 * i + j)
