# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Patch descriptors without a neural network: gradient orientations.

Each patch is divided into 2x2 cells; each cell holds a histogram of gradient
directions (8 bins, linear sharing between neighbours) weighted by magnitude.
One more channel holds a constant, so that a patch without structure has the
unit vector of that channel instead of no direction. Descriptors have unit norm;
the pooled one is the normalised mean over the patches.
"""

from __future__ import annotations

import cv2
import numpy as np

from perception import errors, observation, registry, roles

VERSION = "1"
_CELLS = 2
_BINS = 8
# Mean gradient magnitude per pixel (grey levels in [0, 1] per pixel) that
# weighs as much as the constant channel.
_FLOOR = 0.01


class GradientOrientationFeatures:
  """The `features` role on a CPU; see the module docstring."""

  def __init__(self, *, patch: int = 16) -> None:
    """Fixes the options.

    Args:
      patch: side of a patch in pixels, even and at least 4.

    Raises:
      InputError: another patch size.
    """
    if patch < 4 or patch % _CELLS:
      raise errors.InputError(
        "gradient_orientation", "patch", found=patch, expected="even and >= 4"
      )
    self._patch = patch
    entry = registry.spec("features", "gradient_orientation")
    self._info = registry.info(entry, VERSION, settings={"patch": patch})

  @property
  def info(self) -> roles.BackendInfo:
    """Identity and settings."""
    return self._info

  def extract(self, frames: roles.FrameSource) -> observation.Features:
    """See `roles.FeaturesBackend.extract`.

    Rows and columns beyond the last whole patch are left out; `image_size`
    says what is covered.

    Raises:
      InputError: frames smaller than one patch.
    """
    height, width = frames.size
    grid = height // self._patch, width // self._patch
    if not min(grid):
      raise errors.InputError(
        frames.name,
        "size",
        found=frames.size,
        expected=f"at least one patch of {self._patch} pixels",
      )
    patches = np.stack([self._describe(frame, grid) for frame in frames])
    pooled = patches.mean(axis=(1, 2))
    pooled /= np.linalg.norm(pooled, axis=1, keepdims=True)
    return observation.Features(
      patches=patches,
      pooled=pooled,
      patch_size=(self._patch, self._patch),
      image_size=(grid[0] * self._patch, grid[1] * self._patch),
      provenance=self._info.provenance(frames.sha256),
      frame_indices=np.asarray(frames.frame_indices),
    )

  def _describe(self, frame: np.ndarray, grid: tuple[int, int]) -> np.ndarray:
    """[ph, pw, C] float32 descriptors of one frame."""
    gray = cv2.cvtColor(frame, cv2.COLOR_RGB2GRAY).astype(np.float32) / 255
    size = grid[0] * self._patch, grid[1] * self._patch
    gradient_x = cv2.Sobel(gray, cv2.CV_32F, 1, 0, scale=0.125)
    gradient_y = cv2.Sobel(gray, cv2.CV_32F, 0, 1, scale=0.125)
    gradient_x = np.asarray(gradient_x)[: size[0], : size[1]]
    gradient_y = np.asarray(gradient_y)[: size[0], : size[1]]
    magnitude = np.hypot(gradient_x, gradient_y)
    turn = np.arctan2(gradient_y, gradient_x) / (2 * np.pi) % 1 * _BINS
    lower = np.floor(turn)
    share = turn - lower
    cell = self._patch // _CELLS
    channels = []
    for number in range(_BINS):
      weight = np.where(lower % _BINS == number, 1 - share, 0)
      weight += np.where((lower + 1) % _BINS == number, share, 0)
      rows = (weight * magnitude).reshape(
        grid[0] * _CELLS, cell, grid[1] * _CELLS, cell
      )
      channels.append(rows.mean(axis=(1, 3)))
    histogram = np.stack(channels, axis=-1).reshape(
      grid[0], _CELLS, grid[1], _CELLS, _BINS
    )
    flat = histogram.transpose(0, 2, 1, 3, 4).reshape(*grid, -1)
    constant = np.full((*grid, 1), _FLOOR, np.float32)
    descriptor = np.concatenate([flat, constant], axis=-1)
    norm = np.linalg.norm(descriptor, axis=-1, keepdims=True)
    return (descriptor / norm).astype(np.float32)
