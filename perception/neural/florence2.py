# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Boxes of phrases in one image by Florence-2.

Task `<CAPTION_TO_PHRASE_GROUNDING>` with the phrase right after the tag, three
beams, no sampling, at most 1024 new tokens: the settings of PDI-Bench, which
takes the first box. Each phrase is asked alone, so every box bears the phrase
that it was found for. Florence-2 gives no scores; all are 1. Its replies name
bins, a thousand a side; a box is made of bin centres in pixels with a corner
origin and leaves as pixel centres (-0.5), clipped. The reply is parsed here:
transformers' own parser cuts the coordinates to whole pixels.

Source: specs/pdi_bench.md section 2.1, specs/perception.md section 7.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from perception import errors, observation, replay, roles
from perception.neural import checkpoints, conventions, identity, runtime
from perception.neural import weights as weight_files
from perception.neural.grounding_dino import image_size

_TASK = "<CAPTION_TO_PHRASE_GROUNDING>"
_BEAMS = 3
_MAX_TOKENS = 1024
_BINS = 1000.0


def parse(text: str, size: tuple[int, int]) -> np.ndarray:
  """[N, 4] float64 corner-origin boxes of a reply, in its order.

  Args:
    text: words, each followed by location tokens in fours; a group that is
      not complete, or that no words precede, is no box.
    size: (H, W) of the image.
  """
  height, width = size
  plain = re.sub("<s>|</s>|<pad>", "", text)
  boxes = []
  for found in re.finditer(r"[^<>]+((?:<loc_\d+>){4,})", plain):
    bins = [int(number) for number in re.findall(r"\d+", found.group(1))]
    whole = len(bins) // 4 * 4
    boxes += np.array(bins[:whole], np.float64).reshape(-1, 4).tolist()
  scale = np.array([width, height, width, height]) / _BINS
  return (np.array(boxes, np.float64).reshape(-1, 4) + 0.5) * scale


class Florence2Detections:
  """Phrase grounding."""

  def __init__(
    self,
    *,
    model: str = "base",
    weights: str = "",
    device: str = "auto",
    precision: str = "auto",
  ) -> None:
    """Loads the model.

    Args:
      model: see `checkpoints.FLORENCE2`.
      weights: see `perception.neural.weights`; not `random`: a language model
        without weights finds nothing.
      device: torch device or `auto`.
      precision: type of the weights; `auto` is float16 on a GPU.

    Raises:
      InputError: a bad setting, or the weights are not here.
    """
    if model not in checkpoints.FLORENCE2 or weights == weight_files.RANDOM:
      raise errors.InputError(
        "settings",
        "model, weights",
        found=f"{model}, {weights}",
        expected=f"one of {sorted(checkpoints.FLORENCE2)} with real weights",
      )
    import torch
    import transformers

    self._device = runtime.resolve_device(device)
    if precision == "auto":
      precision = "float16" if self._device.startswith("cuda") else "float32"
    self._dtype = getattr(
      torch, runtime.resolve_precision(precision, self._device)
    )
    found = weight_files.find(checkpoints.FLORENCE2[model], weights)
    folder = found.require_folder()
    net = transformers.Florence2ForConditionalGeneration.from_pretrained(
      folder, local_files_only=True, dtype=self._dtype
    )
    self._net = net.eval().to(self._device).requires_grad_(False)
    self._processor = transformers.Florence2Processor.from_pretrained(
      folder, local_files_only=True
    )
    self._info = identity.describe(
      "detections",
      "florence2",
      runtime.package_version("transformers", "torch"),
      found,
      settings={
        "model": model,
        "precision": precision,
        "task": _TASK,
        "beams": _BEAMS,
        "max_tokens": _MAX_TOKENS,
      },
      published={"model": "base"},
      licence=f"Apache-2.0 / {checkpoints.FLORENCE2[model].licence}",
    )

  @property
  def info(self) -> roles.BackendInfo:
    """Identity, licence and settings."""
    return self._info

  def detect(
    self, image: np.ndarray, phrases: Sequence[str]
  ) -> observation.Detections:
    """Boxes in the order of the phrases, then of the model.

    Raises:
      InputError: not an RGB uint8 image, no phrase, or an empty one.
    """
    size = image_size(image)
    if not phrases or any(not str(phrase).strip() for phrase in phrases):
      raise errors.InputError(
        "detections",
        "phrases",
        found=list(phrases),
        expected="one or more phrases",
      )
    boxes, labels = [np.zeros((0, 4), np.float32)], []
    for phrase in phrases:
      text = self._generate(image, _TASK + str(phrase))
      found, _ = conventions.boxes_from_corner(parse(text, size), size=size)
      boxes.append(found)
      labels += [str(phrase)] * len(found)
    return observation.Detections(
      boxes=np.concatenate(boxes),
      scores=np.ones(len(labels), np.float32),
      labels=np.array(labels, dtype=np.str_),
      video_size=size,
      provenance=self._info.provenance(replay.image_digest(image)),
    )

  def _generate(self, image: np.ndarray, prompt: str) -> str:
    """The model's answer with its location tokens."""
    import torch

    inputs: Any = self._processor(
      text=prompt, images=[image], return_tensors="pt"
    ).to(self._device)
    inputs["pixel_values"] = inputs["pixel_values"].to(self._dtype)
    with torch.no_grad():
      tokens = self._net.generate(
        **inputs,
        max_new_tokens=_MAX_TOKENS,
        num_beams=_BEAMS,
        do_sample=False,
      )
    text: str = self._processor.batch_decode(tokens, skip_special_tokens=False)[
      0
    ]
    return text
