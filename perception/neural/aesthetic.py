# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""LAION aesthetic score: CLIP ViT-L/14 image feature and a linear head.

score = w . f / |f| + b with the head `sa_0_4_vit_l_14_linear`, about 0 to 10,
higher is better. Pictures go through CLIP's own preprocessing (224, bicubic,
centre crop). Source: specs/orbia.md section 4.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from perception import errors, roles
from perception.neural import checkpoints, handoff, identity, runtime
from perception.neural import weights as weight_files

_WIDTH = 768


class LaionAesthetic:
  """One score per picture."""

  higher_is_better = True
  value_range = (-np.inf, np.inf)
  scores_clip = False

  def __init__(
    self,
    *,
    weights: str = "",
    head_weights: str = "",
    device: str = "auto",
    batch_size: int = 16,
  ) -> None:
    """Loads CLIP and the head.

    Args:
      weights: CLIP's, see `perception.neural.weights`; `random` is a tiny
        model with a random head.
      head_weights: the head's file; goes with `weights`.
      device: torch device or `auto`.
      batch_size: pictures a pass.

    Raises:
      InputError: a bad setting, or the weights are not here.
    """
    import transformers

    if batch_size < 1:
      raise errors.InputError(
        "settings", "batch_size", found=batch_size, expected="at least 1"
      )
    self._batch = batch_size
    self._device = runtime.resolve_device(device)
    found = weight_files.find(checkpoints.CLIP_L14, weights)
    head_source = weight_files.RANDOM if found.random else head_weights
    head = weight_files.find(checkpoints.LAION_HEAD, head_source)
    if found.random:
      net = runtime.random_model(_tiny_clip)
    else:
      net = transformers.CLIPModel.from_pretrained(
        found.require_folder(), local_files_only=True
      )
    self._net = net.float().eval().to(self._device).requires_grad_(False)
    self._processor = transformers.CLIPImageProcessor()
    self._head = runtime.random_model(lambda: _head(head)).to(self._device)
    self._info = identity.describe(
      "quality",
      "laion_aesthetic",
      runtime.package_version("transformers", "torch"),
      found,
      settings={"head_sha256": head.sha256},
      published={},
    )

  @property
  def info(self) -> roles.BackendInfo:
    """Identity, licence and settings."""
    return self._info

  def score(self, images: np.ndarray, *, text: str | None = None) -> np.ndarray:
    """[B] float32 from RGB uint8 [B, H, W, 3]; the text is not used.

    Raises:
      InputError: other arrays.
    """
    del text
    check_images(images)
    values = [np.zeros(0, np.float32)]
    for start in range(0, len(images), self._batch):
      part = list(images[start : start + self._batch])
      inputs = self._processor(images=part, return_tensors="pt")
      with runtime.inference(self._device, "float32"):
        out = self._net.get_image_features(
          pixel_values=inputs["pixel_values"].to(self._device)
        )
        feature = getattr(out, "pooler_output", out)
        feature = feature / feature.norm(dim=-1, keepdim=True)
        values.append(handoff.to_numpy(self._head(feature)[:, 0]))
    return np.concatenate(values)


def check_images(images: np.ndarray) -> None:
  """Raises InputError unless `images` are RGB uint8 [B, H, W, 3]."""
  if images.dtype != np.uint8 or images.ndim != 4 or images.shape[3] != 3:
    raise errors.InputError(
      "quality",
      "images",
      found=f"{images.dtype} {images.shape}",
      expected="uint8 [B, H, W, 3]",
    )


def _head(found: weight_files.Found) -> Any:
  import torch

  head = torch.nn.Linear(_WIDTH, 1)
  if not found.random:
    try:
      state = torch.load(
        found.require_file(), map_location="cpu", weights_only=True
      )
      head.load_state_dict(state)
    except Exception as error:  # Any failure of unpickling means one thing.
      raise errors.InputError(
        found.require_file(),
        "weights",
        found=error,
        expected="a linear layer of 768 inputs",
      ) from error
  return head.requires_grad_(False)


def _tiny_clip() -> Any:
  import transformers

  small = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "projection_dim": _WIDTH,
  }
  config = transformers.CLIPConfig(
    vision_config={**small, "image_size": 224, "patch_size": 32},
    text_config=small,
    projection_dim=_WIDTH,
  )
  return transformers.CLIPModel(config)
