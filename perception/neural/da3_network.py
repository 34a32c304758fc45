# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""The Depth Anything 3 network, called without its API module.

The lean route: the package's own configuration and modules, our preprocessing.
It needs torch, addict, einops, omegaconf (and e3nn for Gaussians, evo for
known cameras) instead of some twenty packages.

Output conventions here are still the network's: world-to-camera, intrinsics at
processed resolution with a corner-origin principal point, confidence 1 + exp.
"""

from __future__ import annotations

import dataclasses
import os
from typing import TYPE_CHECKING, Any

import numpy as np

from perception import errors
from perception.neural import checkpoints, runtime, weights

if TYPE_CHECKING:
  import torch

REF_VIEW_STRATEGIES = (
  "first",
  "middle",
  "saddle_balanced",
  "saddle_sim_range",
)
METRIC_MODEL = "da3metric-large"
_MODELS_WITHOUT_POSES = (METRIC_MODEL, "da3mono-large")


@dataclasses.dataclass(frozen=True, eq=False)
class RawOutput:
  """What the network says about N views, as torch tensors on its device.

  Attributes:
    depth: [N, h, w] float32.
    confidence: [N, h, w] in [1, inf), or None.
    w2c: [N, 3, 4], or None for models without cameras.
    intrinsics: [N, 3, 3], corner origin, or None.
    gaussians: the package's object, or None.
    metric: depth and translations are in metres.
  """

  depth: torch.Tensor
  confidence: torch.Tensor | None
  w2c: torch.Tensor | None
  intrinsics: torch.Tensor | None
  gaussians: Any
  metric: bool


class Network:
  """A loaded network."""

  def __init__(self, model: str, weight_source: str, device: str) -> None:
    """Builds and loads.

    Args:
      model: registered name, or the path of a configuration (.yaml).
      weight_source: see `weights.find`.
      device: torch device.

    Raises:
      InputError: unknown model, or its weights are not here.
    """
    os.environ.setdefault("DA3_LOG_LEVEL", "ERROR")  # It logs to stdout.
    from depth_anything_3.cfg import create_object, load_config
    from depth_anything_3.registry import MODEL_REGISTRY

    custom = model.endswith(".yaml") and os.path.isfile(model)
    if model not in checkpoints.DA3 and not custom:
      raise errors.InputError(
        "settings",
        "model",
        found=model,
        expected=f"one of {sorted(checkpoints.DA3)} or a .yaml configuration",
      )
    path = model if custom else MODEL_REGISTRY[model]
    checkpoint = checkpoints.DA3.get(
      model, weights.Checkpoint(model, "model.safetensors", "unknown")
    )
    self.model = model
    self.device = device
    self.found = weights.find(checkpoint, weight_source)
    self.weight_licence = checkpoint.licence
    self.has_poses = model not in _MODELS_WITHOUT_POSES
    net = runtime.random_model(lambda: create_object(load_config(path)))
    if not self.found.random:
      _load(net, self.found)
    branch = getattr(net, "da3", net)
    self.has_gaussians = getattr(branch, "gs_head", None) is not None
    self.net = net.to(device).eval().requires_grad_(False)

  def __call__(
    self,
    images: np.ndarray,
    *,
    w2c: np.ndarray | None = None,
    intrinsics: np.ndarray | None = None,
    gaussians: bool = False,
    ref_view_strategy: str,
    use_ray_pose: bool,
    precision: str,
    seed: int,
  ) -> RawOutput:
    """One joint pass over N views.

    Args:
      images: [N, 3, h, w] float32, normalised.
      w2c: [N, 4, 4] in the network's normalised frame, or None.
      intrinsics: [N, 3, 3] corner origin at (h, w), with `w2c` only.
      gaussians: also the Gaussian branch.
      ref_view_strategy: one of `REF_VIEW_STRATEGIES`; without effect below
        three views or with known cameras.
      use_ray_pose: cameras from the ray head.
      precision: `float32`, or the autocast type.
      seed: of the draws inside (ray poses, sky and scale sampling).

    Raises:
      InputError: Gaussians asked of a model without that branch.
    """
    import torch

    if gaussians and not self.has_gaussians:
      raise errors.InputError(
        f"model {self.model}",
        "Gaussians",
        found="a model without a Gaussian branch",
        expected="da3-giant or da3nested-giant-large",
      )

    def batch(array: np.ndarray | None) -> torch.Tensor | None:
      if array is None:
        return None
      tensor = torch.from_numpy(np.ascontiguousarray(array, np.float32))
      return tensor[None].to(self.device)

    inputs = batch(images), batch(w2c), batch(intrinsics)
    with runtime.seeded(seed), runtime.inference(self.device, precision):
      out = self.net(*inputs, [], gaussians, use_ray_pose, ref_view_strategy)
    n, height, width = len(images), images.shape[2], images.shape[3]
    confidence = out.get("depth_conf")
    if confidence is not None:
      confidence = confidence[0].float().reshape(n, height, width)
    found_w2c, found_k = out.get("extrinsics"), out.get("intrinsics")
    return RawOutput(
      depth=out["depth"][0].float().reshape(n, height, width),
      confidence=confidence,
      w2c=found_w2c[0, :, :3].float() if self.has_poses else None,
      intrinsics=found_k[0].float() if self.has_poses else None,
      gaussians=out.get("gaussians") if gaussians else None,
      metric=bool(out.get("is_metric")),
    )


def _load(net: Any, found: weights.Found) -> None:
  """Loads a file saved by the package's API class into the bare network.

  Its keys carry the prefix `model.`, and heads that share one LayerNorm are
  stored once; `safetensors.torch.load_model` knows both when the network sits
  in a module as `model`.
  """
  import safetensors.torch
  import torch

  wrapper = torch.nn.Module()
  wrapper.model = net
  try:
    safetensors.torch.load_model(wrapper, str(found.file), strict=True)
  except (RuntimeError, OSError, safetensors.SafetensorError) as error:
    raise errors.InputError(
      found.require_file(),
      "weights",
      found=error,
      expected="every tensor of this model",
    ) from error
