# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Boxes of phrases in one image by Grounding DINO.

Phrases become the query "a . b ." in lower case. Boxes come back in pixels
with a corner origin and leave as pixel centres (-0.5), clipped to the image;
add 0.5 to have the detector's own numbers again. `labels` are the phrases that
the model returns, which may merge two of the query's.

Source: specs/perception.md section 7, specs/egogeneval.md sections 4.3-4.4.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from perception import errors, observation, replay, roles
from perception.neural import (
  checkpoints,
  conventions,
  handoff,
  identity,
  runtime,
)
from perception.neural import weights as weight_files


class GroundingDinoDetections:
  """Open-vocabulary detections."""

  def __init__(
    self,
    *,
    model: str = "base",
    weights: str = "",
    device: str = "auto",
    precision: str = "float32",
    box_threshold: float = 0.25,
    text_threshold: float = 0.25,
  ) -> None:
    """Loads the model.

    Args:
      model: see `checkpoints.GROUNDING_DINO`.
      weights: see `perception.neural.weights`; `random` is a tiny model with
        a vocabulary of letters.
      device: torch device or `auto`.
      precision: `float32`, or an autocast type.
      box_threshold: boxes score above it.
      text_threshold: words of a label score above it.

    Raises:
      InputError: a bad setting, or the weights are not here.
    """
    if model not in checkpoints.GROUNDING_DINO:
      raise errors.InputError(
        "settings",
        "model",
        found=model,
        expected=f"one of {sorted(checkpoints.GROUNDING_DINO)}",
      )
    self._device = runtime.resolve_device(device)
    self._precision = runtime.resolve_precision(precision, self._device)
    self._thresholds = float(box_threshold), float(text_threshold)
    net, self._processor, found = _load(
      checkpoints.GROUNDING_DINO[model], weights
    )
    self._net = net.to(self._device).requires_grad_(False)
    self._info = identity.describe(
      "detections",
      "grounding_dino",
      runtime.package_version("transformers", "torch"),
      found,
      settings={
        "model": model,
        "precision": self._precision,
        "box_threshold": box_threshold,
        "text_threshold": text_threshold,
      },
      published={
        "model": "base",
        "box_threshold": 0.25,
        "text_threshold": 0.25,
      },
    )

  @property
  def info(self) -> roles.BackendInfo:
    """Identity, licence and settings."""
    return self._info

  def detect(
    self, image: np.ndarray, phrases: Sequence[str]
  ) -> observation.Detections:
    """Boxes in the detector's order.

    Raises:
      InputError: not an RGB uint8 image, or no phrase, or an empty one.
    """
    query = query_text(phrases)
    size = image_size(image)
    inputs = self._processor(images=image, text=query, return_tensors="pt")
    inputs = inputs.to(self._device)
    with runtime.inference(self._device, self._precision):
      outputs = self._net(**inputs)
    found = self._processor.post_process_grounded_object_detection(
      outputs,
      inputs["input_ids"],
      threshold=self._thresholds[0],
      text_threshold=self._thresholds[1],
      target_sizes=[size],
    )[0]
    boxes, keep = conventions.boxes_from_corner(
      handoff.to_numpy(found["boxes"].float()), size=size
    )
    labels = np.array(found["text_labels"], dtype=np.str_)
    return observation.Detections(
      boxes=boxes,
      scores=handoff.to_numpy(found["scores"].float())[keep],
      labels=labels.reshape(len(keep))[keep],
      video_size=size,
      provenance=self._info.provenance(replay.image_digest(image)),
    )


def query_text(phrases: Sequence[str]) -> str:
  """`["A cat", "dog."]` -> `"a cat . dog ."`.

  Raises:
    InputError: no phrase, an empty one, or one with a period inside, which
      would be read as two.
  """
  words = [
    str(phrase).strip().rstrip(".").strip().lower() for phrase in phrases
  ]
  if not words or any(not word or "." in word for word in words):
    raise errors.InputError(
      "detections",
      "phrases",
      found=list(phrases),
      expected="one or more phrases without periods inside",
    )
  return " . ".join(words) + " ."


def image_size(image: np.ndarray) -> tuple[int, int]:
  """(H, W) of an RGB uint8 image.

  Raises:
    InputError: something else.
  """
  if image.ndim != 3 or image.shape[2] != 3 or image.dtype != np.uint8:
    raise errors.InputError(
      "detections",
      "image",
      found=f"{image.dtype} {image.shape}",
      expected="uint8 [H, W, 3]",
    )
  return image.shape[0], image.shape[1]


def _load(
  checkpoint: weight_files.Checkpoint, source: str
) -> tuple[Any, Any, weight_files.Found]:
  import transformers

  found = weight_files.find(checkpoint, source)
  if found.random:
    net = runtime.random_model(_tiny_model)
    processor = transformers.GroundingDinoProcessor(
      transformers.GroundingDinoImageProcessor(
        size={"shortest_edge": 96, "longest_edge": 160}
      ),
      transformers.BertTokenizer(vocab=_letters()),
    )
    return net, processor, found
  folder = found.require_folder()
  net = transformers.GroundingDinoForObjectDetection.from_pretrained(
    folder, local_files_only=True
  )
  processor = transformers.AutoProcessor.from_pretrained(
    folder, local_files_only=True
  )
  return net.eval(), processor, found


def _letters() -> dict[str, int]:
  """A word-piece vocabulary that can spell anything."""
  letters = "abcdefghijklmnopqrstuvwxyz0123456789"
  tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", "?"]
  tokens += [*letters, *(f"##{letter}" for letter in letters)]
  return {token: row for row, token in enumerate(tokens)}


def _tiny_model() -> Any:
  """Grounding DINO with two small layers of everything."""
  import transformers

  config = transformers.GroundingDinoConfig(
    backbone_config=transformers.SwinConfig(
      embed_dim=16,
      depths=[1, 1, 1, 1],
      num_heads=[1, 1, 2, 2],
      window_size=4,
      out_features=["stage2", "stage3", "stage4"],
    ),
    text_config={
      "model_type": "bert",
      "hidden_size": 32,
      "num_hidden_layers": 2,
      "num_attention_heads": 2,
      "intermediate_size": 64,
      "vocab_size": len(_letters()),
    },
    d_model=64,
    encoder_layers=2,
    decoder_layers=2,
    encoder_attention_heads=2,
    decoder_attention_heads=2,
    encoder_ffn_dim=64,
    decoder_ffn_dim=64,
    num_queries=30,
  )
  return transformers.GroundingDinoForObjectDetection(config)
