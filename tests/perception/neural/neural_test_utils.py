# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Frames and helpers for tests of the neural adapters."""

from __future__ import annotations

import fractions
import hashlib

import numpy as np

from perception import video


def clip(frames: np.ndarray, name: str = "synthetic") -> video.Clip:
  """A clip in memory; its digest is that of the pixels."""
  return video.Clip(
    frames=frames,
    fps=fractions.Fraction(10),
    timestamps=np.arange(len(frames)) / 10.0,
    sha256=hashlib.sha256(np.ascontiguousarray(frames).tobytes()).hexdigest(),
    frame_indices=np.arange(len(frames), dtype=np.int32),
    name=name,
  )


def moving_square(
  count: int, *, height: int = 48, width: int = 80, seed: int = 0
) -> np.ndarray:
  """uint8 [T, H, W, 3]: a bright square right of the centre, on texture."""
  rng = np.random.default_rng(seed)
  background = rng.integers(0, 90, (height, width, 3), dtype=np.uint8)
  frames = np.repeat(background[None], count, axis=0)
  for row in range(count):
    x = width // 2 + 2 * row
    frames[row, 10:24, x : x + 16] = (230, 200, 40)
  return frames
