# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Motion smoothness of a clip by AMT-S, from a checkout of the user's.

AMT-S predicts frame t+1 from t and t+2 for t = 0, 8, 16, ...; the score is
100 (255 - MAE) / 255 with MAE the mean absolute difference to the real frame
over pixels and channels, averaged over triplets. Frames keep their size and
are padded to a multiple of 16 by their edges; the prediction is scaled to 255,
clipped and truncated to 8 bits. Code and weights are CC-BY-NC-4.0.

Source: specs/orbia.md section 4.
"""

from __future__ import annotations

import importlib
import os
import pathlib
import sys
from typing import Any

import numpy as np

from perception import errors, roles
from perception.neural import checkpoints, handoff, identity, runtime
from perception.neural import weights as weight_files
from perception.neural.aesthetic import check_images

_CHECKOUT = "WORLDGAUGE_AMT"
_INSTALL = (
  f"git clone https://github.com/MCG-NKU/AMT and set {_CHECKOUT} to that"
  " folder (licence CC-BY-NC-4.0: non-commercial)"
)
_NETWORK = {"corr_radius": 3, "corr_lvls": 4, "num_flows": 3}
_STRIDE = 8
_MULTIPLE = 16
_MIN_SIDE = 128  # Four halvings of an eighth, two cells left.


def why_absent() -> str:
  """The reason why AMT cannot run here, or an empty string."""
  named = os.environ.get(_CHECKOUT, "")
  if named and pathlib.Path(named, "networks", "AMT-S.py").is_file():
    return ""
  return f"AMT not found: {_INSTALL}"


class AmtSmoothness:
  """One score per clip."""

  higher_is_better = True
  value_range = (0.0, 100.0)
  scores_clip = True

  def __init__(self, *, weights: str = "", device: str = "auto") -> None:
    """Loads the network.

    Args:
      weights: see `perception.neural.weights`.
      device: torch device or `auto`.

    Raises:
      InputError: AMT or its weights are not here.
    """
    self._device = runtime.resolve_device(device)
    found = weight_files.find(checkpoints.AMT_S, weights)
    net = runtime.random_model(_network)
    if not found.random:
      _load(net, found)
    self._net = net.to(self._device).requires_grad_(False)
    self._info = identity.describe(
      "quality",
      "amt_s",
      f"AMT-S, {runtime.package_version('torch')}",
      found,
      settings={"stride": _STRIDE},
      published={},
    )

  @property
  def info(self) -> roles.BackendInfo:
    """Identity, licence and settings."""
    return self._info

  def score(self, images: np.ndarray, *, text: str | None = None) -> np.ndarray:
    """[1] float32 from the frames of a clip in order, uint8 [T, H, W, 3].

    Raises:
      InputError: other arrays, fewer than three frames, or too small ones.
    """
    del text
    check_images(images)
    starts = range(0, len(images) - 2, _STRIDE)
    if not len(starts) or min(images.shape[1:3]) <= _MIN_SIDE - _MULTIPLE:
      raise errors.InputError(
        "quality amt_s",
        "frames",
        found=f"{len(images)} of {images.shape[1]}x{images.shape[2]}",
        expected=f"three or more with sides of {_MIN_SIDE} or more, padded",
      )
    residuals = []
    for start in starts:
      predicted = self._between(images[start], images[start + 2])
      real = images[start + 1].astype(np.int16)
      residuals.append(np.abs(predicted.astype(np.int16) - real).mean())
    mean = float(np.mean(residuals))
    return np.array([100.0 * (255.0 - mean) / 255.0], np.float32)

  def _between(self, first: np.ndarray, last: np.ndarray) -> np.ndarray:
    """The frame that AMT expects in the middle, uint8 [H, W, 3]."""
    import torch

    height, width = first.shape[:2]
    down, right = -height % _MULTIPLE, -width % _MULTIPLE
    pad = [right // 2, right - right // 2, down // 2, down - down // 2]
    pair = []
    for frame in (first, last):
      pixels = torch.from_numpy(np.ascontiguousarray(frame)).to(self._device)
      pixels = pixels.permute(2, 0, 1)[None].float() / 255.0
      pair.append(torch.nn.functional.pad(pixels, pad, mode="replicate"))
    half = torch.full((1, 1, 1, 1), 0.5, device=self._device)
    with runtime.inference(self._device, "float32"):
      out = self._net(*pair, half, scale_factor=1.0, eval=True)
    middle = handoff.to_numpy(out["imgt_pred"])[0]
    middle = middle[:, pad[2] : pad[2] + height, pad[0] : pad[0] + width]
    scaled = np.clip(middle * np.float32(255.0), 0.0, 255.0)
    return np.moveaxis(scaled, 0, 2).astype(np.uint8)


def _network() -> Any:
  """AMT-S from the checkout, whose packages are called `networks`, `utils`.

  The folder is on the path only while they are imported, and they leave
  `sys.modules` after, so that they shadow nobody's packages.
  """
  reason = why_absent()
  if reason:
    raise errors.InputError(
      "quality amt_s", "package", found=reason, expected="AMT"
    )
  names = ("networks", "utils")
  kept = {
    name: sys.modules.pop(name)
    for name in list(sys.modules)
    if name.partition(".")[0] in names
  }
  sys.path.insert(0, os.environ[_CHECKOUT])
  try:
    return importlib.import_module("networks.AMT-S").Model(**_NETWORK)
  finally:
    sys.path.remove(os.environ[_CHECKOUT])
    for name in list(sys.modules):
      if name.partition(".")[0] in names:
        del sys.modules[name]
    sys.modules.update(kept)


def _load(net: Any, found: weight_files.Found) -> None:
  import torch

  try:
    state = torch.load(
      found.require_file(), map_location="cpu", weights_only=True
    )
    net.load_state_dict(state.get("state_dict", state))
  except Exception as error:  # Any failure of unpickling means one thing.
    raise errors.InputError(
      found.require_file(),
      "weights",
      found=error,
      expected="the weights of AMT-S",
    ) from error
