# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Perceptual distance by LPIPS v0.1 with AlexNet.

The package ships the linear heads; the AlexNet backbone is torchvision's file.
Pictures go in at the size given, scaled to [-1, 1]; resizing and masking are
the protocol's. Lower is more alike.

Source: specs/perception.md section 8, specs/orbia.md section 5.3.
"""

from __future__ import annotations

import contextlib
import io
import warnings
from typing import Any

import numpy as np

from perception import errors, roles
from perception.neural import checkpoints, handoff, identity, runtime
from perception.neural import weights as weight_files

_MIN_SIDE = 17  # AlexNet pools more than 16 pixels down to one.


class LpipsDistance:
  """LPIPS of image pairs."""

  def __init__(
    self, *, weights: str = "", device: str = "auto", batch_size: int = 16
  ) -> None:
    """Loads heads and backbone.

    Args:
      weights: the backbone, see `perception.neural.weights`; `random` keeps
        the real heads on a random backbone.
      device: torch device or `auto`.
      batch_size: pairs a pass.

    Raises:
      InputError: a bad setting, or the weights are not here.
    """
    if batch_size < 1:
      raise errors.InputError(
        "settings", "batch_size", found=batch_size, expected="at least 1"
      )
    self._device = runtime.resolve_device(device)
    self._batch = batch_size
    found = weight_files.find(checkpoints.ALEXNET, weights)
    self._net = runtime.random_model(lambda: _build(found)).to(self._device)
    self._net.requires_grad_(False)
    self._info = identity.describe(
      "perceptual_distance",
      "lpips",
      runtime.package_version("lpips", "torch"),
      found,
      settings={"net": "alex", "version": "0.1"},
      published={},
    )

  @property
  def info(self) -> roles.BackendInfo:
    """Identity, licence and settings."""
    return self._info

  def distance(self, images_a: np.ndarray, images_b: np.ndarray) -> np.ndarray:
    """[B] float32 from two RGB uint8 [B, H, W, 3] stacks.

    Raises:
      InputError: other arrays, different shapes, or sides below 17 pixels.
    """
    import torch

    for images in (images_a, images_b):
      if (
        images.dtype != np.uint8
        or images.ndim != 4
        or images.shape[3] != 3
        or images.shape != images_a.shape
        or min(images.shape[1:3]) < _MIN_SIDE
      ):
        raise errors.InputError(
          "perceptual distance",
          "images",
          found=f"{images.dtype} {images.shape}",
          expected=f"two uint8 [B, H, W, 3] with sides >= {_MIN_SIDE}",
        )
    values = [np.zeros(0, np.float32)]
    for start in range(0, len(images_a), self._batch):
      pair = [
        torch.from_numpy(
          np.ascontiguousarray(stack[start : start + self._batch])
        )
        .to(self._device)
        .permute(0, 3, 1, 2)
        .float()
        for stack in (images_a, images_b)
      ]
      with runtime.inference(self._device, "float32"):
        out = self._net(*(pixels / 127.5 - 1.0 for pixels in pair))
      values.append(handoff.to_numpy(out).reshape(-1))
    return np.concatenate(values).astype(np.float32)


def _build(found: weight_files.Found) -> Any:
  """The network; the package prints and calls deprecated torchvision names."""
  import lpips
  import torch
  import torchvision

  with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
    warnings.simplefilter("ignore")
    net = lpips.LPIPS(net="alex", version="0.1", pnet_rand=True, verbose=False)
  if found.random:
    return net
  try:
    state = torch.load(
      found.require_file(), map_location="cpu", weights_only=True
    )
    alexnet = torchvision.models.alexnet()
    alexnet.load_state_dict(state)
  except Exception as error:  # Any failure of unpickling means one thing.
    raise errors.InputError(
      found.require_file(),
      "weights",
      found=error,
      expected="torchvision's AlexNet",
    ) from error
  convolutions = iter(alexnet.features)
  # The package keeps torchvision's layers, under their old numbers, in slices.
  for part in (
    net.net.slice1,
    net.net.slice2,
    net.net.slice3,
    net.net.slice4,
    net.net.slice5,
  ):
    for layer in part:
      layer.load_state_dict(next(convolutions).state_dict())
  return net
