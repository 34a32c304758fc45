# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Human preference reward by HPSv3, where the user has installed it.

The reward is the first of the model's two outputs (mean, spread), higher is
better, open range; Orbia uses it with an empty prompt (specs/orbia.md section
4). The package pins old versions of transformers: give it an environment of
its own and hand the scores over by the `recorded` backend.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from perception import errors, registry, roles
from perception.neural import checkpoints, handoff, runtime
from perception.neural import weights as weight_files
from perception.neural.aesthetic import check_images


class Hpsv3Quality:
  """One reward per picture."""

  higher_is_better = True
  value_range = (-np.inf, np.inf)
  scores_clip = False

  def __init__(
    self, *, weights: str = "", device: str = "auto", batch_size: int = 4
  ) -> None:
    """Loads the model.

    Args:
      weights: see `perception.neural.weights`.
      device: torch device or `auto`.
      batch_size: pictures a pass.

    Raises:
      InputError: a bad setting, or the weights are not here.
    """
    if batch_size < 1 or weights == weight_files.RANDOM:
      raise errors.InputError(
        "settings",
        "batch_size, weights",
        found=f"{batch_size}, {weights!r}",
        expected="at least 1, and real weights: the model has 7 G parameters",
      )
    self._batch = batch_size
    found = weight_files.find(checkpoints.HPSV3, weights)
    package: Any = importlib.import_module("hpsv3")
    self._model = package.HPSv3RewardInferencer(
      checkpoint_path=str(found.require_file()),
      device=runtime.resolve_device(device),
    )
    self._info = registry.info(
      registry.spec("quality", "hpsv3"),
      runtime.package_version("hpsv3", "torch"),
      weights_sha256=found.sha256,
    )

  @property
  def info(self) -> roles.BackendInfo:
    """Identity, licence and settings."""
    return self._info

  def score(self, images: np.ndarray, *, text: str | None = None) -> np.ndarray:
    """[B] float32 from RGB uint8 [B, H, W, 3]; no text = an empty prompt.

    Raises:
      InputError: other arrays.
    """
    from PIL import Image

    check_images(images)
    values = [np.zeros(0, np.float32)]
    for start in range(0, len(images), self._batch):
      part = [Image.fromarray(one) for one in images[start:][: self._batch]]
      # By name: releases differ in the order of these two.
      found = self._model.reward(
        prompts=[text or ""] * len(part), image_paths=part
      )
      values.append(handoff.to_numpy(found)[:, 0].astype(np.float32))
    return np.concatenate(values)
