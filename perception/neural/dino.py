# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Patch and class-token features by DINOv2 and DINOv3.

Patch tokens after the final norm on a row-major grid, unit length; `pooled` is
the class token as the model gives it, not normalised. Patch and register
counts are read from the model. The picture is stretched to `image_size`, so
the grid spans all of it: patch (i, j) covers rows [i H / ph, (i+1) H / ph) of
the frame, and columns likewise. A size that the patch does not divide is
refused, because the model would drop the rest without a word.

| class | model | picture |
|---|---|---|
| `Dinov2Features` | ViT-S/14 | 224x224 by area interpolation (specs/orbia.md section 5.3) |
| `Dinov3Features` | ViT-L/16 | 224x224 by the model's own processor (specs/egogeneval.md section 4.11) |

Source: specs/perception.md section 7.
"""  # noqa: E501

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import cv2
import numpy as np

from perception import errors, observation, roles
from perception.neural import checkpoints, handoff, identity, runtime
from perception.neural import weights as weight_files

_MEAN = np.array([0.485, 0.456, 0.406], np.float32)
_STD = np.array([0.229, 0.224, 0.225], np.float32)
_RESIZERS = ("area", "processor")
_TINY = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}


class _DinoFeatures:
  """Common to both families."""

  _name: ClassVar[str]
  _random_class: ClassVar[tuple[str, str]]
  _random_extra: ClassVar[dict[str, int]]
  _published: ClassVar[dict[str, Any]]

  def __init__(
    self,
    *,
    model: str,
    weights: str,
    device: str,
    precision: str,
    resize: str,
    image_size: tuple[int, int],
    batch_size: int,
  ) -> None:
    """Loads the model; see the subclasses for the defaults.

    Args:
      model: see `checkpoints.DINO`.
      weights: see `perception.neural.weights`; `random` is a 2-layer model.
      device: torch device or `auto`.
      precision: `float32`, or an autocast type.
      resize: `area` (OpenCV) or `processor` (antialiased bilinear).
      image_size: (H, W) to stretch pictures to.
      batch_size: frames a pass.

    Raises:
      InputError: a bad setting, or the weights are not here.
    """
    if model not in checkpoints.DINO or not model.startswith(self._name):
      known = [name for name in checkpoints.DINO if name[:6] == self._name]
      raise errors.InputError(
        "settings", "model", found=model, expected=f"one of {known}"
      )
    if resize not in _RESIZERS or batch_size < 1:
      raise errors.InputError(
        "settings",
        "resize, batch_size",
        found=f"{resize}, {batch_size}",
        expected=f"one of {_RESIZERS}, at least 1",
      )
    self._device = runtime.resolve_device(device)
    self._precision = runtime.resolve_precision(precision, self._device)
    self._resize, self._batch = resize, batch_size
    net, found = self._load(checkpoints.DINO[model], weights)
    self._net = net.to(self._device).requires_grad_(False)
    self._patch = int(net.config.patch_size)
    registers = getattr(net.config, "num_register_tokens", 0)
    self._prefix = 1 + int(registers or 0)
    height, width = (int(side) for side in image_size)
    if min(height, width) < 1 or height % self._patch or width % self._patch:
      raise errors.InputError(
        "settings",
        "image_size",
        found=f"{height}x{width}",
        expected=f"multiples of the patch, {self._patch}",
      )
    self._size = height, width
    self._info = identity.describe(
      "features",
      self._name,
      runtime.package_version("transformers", "torch"),
      found,
      settings={
        "model": model,
        "precision": self._precision,
        "resize": resize,
        "image_size": list(self._size),
      },
      published=self._published,
      licence=f"Apache-2.0 / {checkpoints.DINO[model].licence}",
    )

  @property
  def info(self) -> roles.BackendInfo:
    """Identity, licence and settings."""
    return self._info

  def extract(self, frames: roles.FrameSource) -> observation.Features:
    """Unit patch descriptors and class tokens, one row per frame."""
    patches, pooled = self.tokens(frames)
    norm = np.linalg.norm(patches, axis=-1, keepdims=True)
    return observation.Features(
      patches=patches / np.maximum(norm, np.finfo(np.float32).tiny),
      pooled=pooled,
      patch_size=(self._patch, self._patch),
      image_size=self._size,
      frame_indices=frames.frame_indices,
      provenance=self._info.provenance(frames.sha256),
      patch_norms=norm[..., 0],
    )

  def tokens(self, frames: roles.FrameSource) -> tuple[np.ndarray, np.ndarray]:
    """The model's own tokens: patches [T, ph, pw, C] and class [T, C]."""
    grid = self._size[0] // self._patch, self._size[1] // self._patch
    patches, pooled = [], []
    for batch in self._batches(frames):
      with runtime.inference(self._device, self._precision):
        out = self._net(pixel_values=batch)
      tokens = handoff.to_numpy(out.last_hidden_state.float())
      patches.append(tokens[:, self._prefix :].reshape(len(tokens), *grid, -1))
      pooled.append(handoff.to_numpy(out.pooler_output.float()))
    return np.concatenate(patches), np.concatenate(pooled)

  def _batches(self, frames: roles.FrameSource) -> Iterator[Any]:
    """Normalised float32 [B, 3, h, w] on the device."""
    import torch

    prepared: list[Any] = []
    for frame in frames:
      prepared.append(self._prepare(np.asarray(frame)))
      if len(prepared) == self._batch:
        yield torch.stack(prepared).to(self._device)
        prepared = []
    if prepared:
      yield torch.stack(prepared).to(self._device)

  def _prepare(self, frame: np.ndarray) -> Any:
    """uint8 [H, W, 3] -> float32 [3, h, w]."""
    import torch

    if self._resize == "processor":
      import transformers

      height, width = self._size
      processor = transformers.DINOv3ViTImageProcessor(
        size={"height": height, "width": width}
      )
      batch = processor(images=[frame], return_tensors="pt")
      return batch["pixel_values"][0]
    resized = cv2.resize(frame, self._size[::-1], interpolation=cv2.INTER_AREA)
    scaled = (resized.astype(np.float32) / np.float32(255.0) - _MEAN) / _STD
    return torch.from_numpy(np.ascontiguousarray(np.moveaxis(scaled, 2, 0)))

  def _load(
    self, checkpoint: weight_files.Checkpoint, source: str
  ) -> tuple[Any, weight_files.Found]:
    import transformers

    found = weight_files.find(checkpoint, source)
    if found.random:
      model_class, config_class = (
        getattr(transformers, name) for name in self._random_class
      )
      config = config_class(**_TINY, **self._random_extra)
      return runtime.random_model(lambda: model_class(config)), found
    net = transformers.AutoModel.from_pretrained(
      found.require_folder(), local_files_only=True
    )
    return net.float().eval(), found


class Dinov2Features(_DinoFeatures):
  """DINOv2, by default as Orbia uses it."""

  _name = "dinov2"
  _random_class = ("Dinov2Model", "Dinov2Config")
  _random_extra: ClassVar[dict[str, int]] = {"patch_size": 14}
  _published: ClassVar[dict[str, Any]] = {
    "model": "dinov2-small",
    "resize": "area",
    "image_size": [224, 224],
  }

  def __init__(
    self,
    *,
    model: str = "dinov2-small",
    weights: str = "",
    device: str = "auto",
    precision: str = "float32",
    resize: str = "area",
    image_size: tuple[int, int] = (224, 224),
    batch_size: int = 16,
  ) -> None:
    """See `_DinoFeatures`."""
    super().__init__(
      model=model,
      weights=weights,
      device=device,
      precision=precision,
      resize=resize,
      image_size=image_size,
      batch_size=batch_size,
    )


class Dinov3Features(_DinoFeatures):
  """DINOv3, by default as EgoGenEval uses it on crops."""

  _name = "dinov3"
  _random_class = ("DINOv3ViTModel", "DINOv3ViTConfig")
  _random_extra: ClassVar[dict[str, int]] = {"num_register_tokens": 4}
  _published: ClassVar[dict[str, Any]] = {
    "model": "dinov3-vitl16",
    "precision": "float32",
    "resize": "processor",
    "image_size": [224, 224],
  }

  def __init__(
    self,
    *,
    model: str = "dinov3-vitl16",
    weights: str = "",
    device: str = "auto",
    precision: str = "float32",
    resize: str = "processor",
    image_size: tuple[int, int] = (224, 224),
    batch_size: int = 16,
  ) -> None:
    """See `_DinoFeatures`."""
    super().__init__(
      model=model,
      weights=weights,
      device=device,
      precision=precision,
      resize=resize,
      image_size=image_size,
      batch_size=batch_size,
    )
