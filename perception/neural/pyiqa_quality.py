# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""MUSIQ, CLIP-IQA and NIQE through pyiqa, where the user has installed it.

pyiqa is PolyForm Noncommercial, so nothing here requires it; it also puts
packages named `tests` and `docs` into site-packages, so give it an environment
of its own. It fetches its weights itself: run it once with the network on.

MUSIQ follows specs/orbia.md section 4: RGB / 255, and pictures with a longer
side above 512 are reduced to 512 by bilinear resampling, corners not aligned.
"""

from __future__ import annotations

import contextlib
import importlib
import io
from typing import Any, ClassVar

import numpy as np

from perception import errors, registry, roles
from perception.neural import handoff, runtime
from perception.neural.aesthetic import check_images

_LONGER_SIDE = 512


class _PyiqaQuality:
  """One pyiqa metric."""

  scores_clip = False
  higher_is_better = True
  value_range: ClassVar[tuple[float, float]]
  _name: ClassVar[str]
  _metric: ClassVar[str]
  _longer_side = 0

  def __init__(self, *, device: str = "auto", batch_size: int = 8) -> None:
    """Creates the metric.

    Args:
      device: torch device or `auto`.
      batch_size: pictures a pass.

    Raises:
      InputError: a bad setting, or pyiqa cannot get its weights.
    """
    if batch_size < 1:
      raise errors.InputError(
        "settings", "batch_size", found=batch_size, expected="at least 1"
      )
    self._batch = batch_size
    self._device = runtime.resolve_device(device)
    pyiqa: Any = importlib.import_module("pyiqa")
    try:
      with contextlib.redirect_stdout(io.StringIO()):
        self._net = pyiqa.create_metric(self._metric, device=self._device)
    except (OSError, RuntimeError) as error:
      raise errors.InputError(
        f"quality {self._name}",
        "weights",
        found=error,
        expected=f"the weights of pyiqa's {self._metric}",
        hint=(
          'Run once with the network on: python -c "import pyiqa;'
          f" pyiqa.create_metric('{self._metric}')\""
        ),
      ) from error
    self._info = registry.info(
      registry.spec("quality", self._name),
      runtime.package_version("pyiqa", "torch"),
      settings={"metric": self._metric, "longer_side": self._longer_side},
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
    import torch

    del text
    check_images(images)
    values = [np.zeros(0, np.float32)]
    for start in range(0, len(images), self._batch):
      part = np.ascontiguousarray(images[start : start + self._batch])
      pixels = torch.from_numpy(part).to(self._device)
      pixels = pixels.permute(0, 3, 1, 2).float() / 255.0
      with runtime.inference(self._device, "float32"):
        found = self._net(_reduced(pixels, self._longer_side))
      values.append(handoff.to_numpy(found).reshape(-1).astype(np.float32))
    return np.concatenate(values)


def _reduced(pixels: Any, longer_side: int) -> Any:
  """[B, 3, H, W] with the longer side at most `longer_side`; 0 = as it is."""
  import torch

  height, width = pixels.shape[-2:]
  if not longer_side or max(height, width) <= longer_side:
    return pixels
  scale = longer_side / max(height, width)
  size = round(height * scale), round(width * scale)
  return torch.nn.functional.interpolate(
    pixels, size, mode="bilinear", align_corners=False
  )


class MusiqSpaq(_PyiqaQuality):
  """MUSIQ trained on SPAQ: 0 to 100, higher is better."""

  _name, _metric, _longer_side = "musiq_spaq", "musiq-spaq", _LONGER_SIDE
  value_range = (0.0, 100.0)


class ClipIqa(_PyiqaQuality):
  """CLIP-IQA: 0 to 1, higher is better."""

  _name, _metric = "clipiqa", "clipiqa"
  value_range = (0.0, 1.0)


class Niqe(_PyiqaQuality):
  """NIQE: from 0, lower is better."""

  _name, _metric = "niqe", "niqe"
  higher_is_better = False
  value_range = (0.0, np.inf)
