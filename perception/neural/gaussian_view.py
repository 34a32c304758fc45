# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""New views of a scene: Depth Anything 3's Gaussians drawn by gsplat.

The frames and the cameras of their geometry go through the Gaussian branch in
one joint pass; wanted cameras are brought to the network's normalised frame.
Colours are clipped and truncated to 8 bits on black; a pixel is covered where
the rendered depth is finite and positive. gsplat has no CPU rasteriser: this
needs an NVIDIA GPU. Pixel centres at integers here, at +0.5 in gsplat.

Source: specs/orbia.md section 7.7.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from perception import errors, observation, registry, roles
from perception.neural import conventions, depth_anything3, handoff, runtime

_VIEWS_A_CALL = 4


class Da3GaussianViews:
  """The `novel_view` role on a GPU."""

  def __init__(self, *, device: str = "auto", **settings: Any) -> None:
    """Loads the network.

    Args:
      device: torch device or `auto`; must be a GPU.
      **settings: of `depth_anything3.DepthAnything3`.

    Raises:
      InputError: no GPU, or see `DepthAnything3`.
    """
    self._device = runtime.resolve_device(device)
    if not self._device.startswith("cuda"):
      raise errors.InputError(
        "novel_view da3_gaussians",
        "device",
        found=self._device,
        expected="an NVIDIA GPU: gsplat has no CPU rasteriser",
      )
    self._geometry = depth_anything3.DepthAnything3(
      device=self._device, **settings
    )
    base = self._geometry.info
    info = registry.info(
      registry.spec("novel_view", "da3_gaussians"),
      runtime.package_version("depth-anything-3", "gsplat", "torch"),
      weights_sha256=base.weights_sha256,
      settings=base.settings,
    )
    self._info = dataclasses.replace(
      info,
      licence=base.licence,
      comparable_to_published=(
        info.comparable_to_published and base.comparable_to_published
      ),
    )

  @property
  def info(self) -> roles.BackendInfo:
    """Identity, licence and settings."""
    return self._info

  def render(
    self,
    frames: roles.FrameSource,
    geometry: observation.Geometry,
    *,
    intrinsics: np.ndarray,
    c2w: np.ndarray,
    size: tuple[int, int],
  ) -> tuple[np.ndarray, np.ndarray]:
    """See `roles.NovelViewBackend.render`."""
    known = observation.rescale_intrinsics(
      np.asarray(geometry.intrinsics, np.float64),
      from_size=geometry.full_size,
      to_size=frames.size,
    )
    _, splats = self._geometry.reconstruct_gaussians(
      frames, cameras=roles.Cameras(known, geometry.c2w)
    )
    _, first, scale = conventions.normalise_cameras(geometry.c2w)
    moved = conventions.to_normalised(np.asarray(c2w), first, scale)
    return rasterise(
      splats,
      w2c=conventions.w2c_from_c2w(moved),
      intrinsics=conventions.intrinsics_to_corner(np.asarray(intrinsics)),
      size=size,
      device=self._device,
    )


def rasterise(
  splats: roles.Gaussians,
  *,
  w2c: np.ndarray,
  intrinsics: np.ndarray,
  size: tuple[int, int],
  device: str,
) -> tuple[np.ndarray, np.ndarray]:
  """Draws V views.

  Args:
    splats: in the frame of the cameras.
    w2c: [V, 4, 4].
    intrinsics: [V, 3, 3], corner origin, at `size`.
    size: (H, W).
    device: torch device.

  Returns:
    RGB uint8 [V, H, W, 3] and coverage bool [V, H, W].
  """
  import gsplat
  import torch

  def tensor(array: np.ndarray) -> torch.Tensor:
    packed = np.ascontiguousarray(array, np.float32)
    return torch.from_numpy(packed).to(device)

  height, width = size
  colours = tensor(np.swapaxes(splats.harmonics, 1, 2))
  shared = {
    "means": tensor(splats.means),
    "quats": tensor(splats.rotations),
    "scales": tensor(splats.scales),
    "opacities": tensor(splats.opacities),
    "colors": colours,
    "sh_degree": math.isqrt(colours.shape[1]) - 1,
    "width": width,
    "height": height,
    "render_mode": "RGB+D",
    "packed": False,
  }
  pictures = np.zeros((len(w2c), height, width, 3), np.uint8)
  covered = np.zeros((len(w2c), height, width), np.bool_)
  for start in range(0, len(w2c), _VIEWS_A_CALL):
    rows = slice(start, start + _VIEWS_A_CALL)
    views = tensor(w2c[rows])
    with torch.no_grad():
      drawn, _, _ = gsplat.rasterization(
        **shared,
        viewmats=views,
        Ks=tensor(intrinsics[rows]),
        backgrounds=torch.zeros((len(views), 3), device=device),
      )
    drawn = handoff.to_numpy(drawn.float())
    colour = np.clip(np.nan_to_num(drawn[..., :3]), 0.0, 1.0)
    pictures[rows] = (colour * np.float32(255.0)).astype(np.uint8)
    depth = drawn[..., 3]
    covered[rows] = np.isfinite(depth) & (depth > 0)
  return pictures, covered
