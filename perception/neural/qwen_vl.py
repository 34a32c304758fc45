# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Vision-language answers by Qwen3-VL in this process.

The chat template is the model's own; temperature 0 is greedy decoding, another
temperature samples under the request's seed. A response schema cannot be
enforced here: it is put after the last turn as text, and `settings` says so.

Source: specs/egogeneval.md section 1 (30B-A3B-Instruct, bfloat16, greedy),
specs/perception.md section 7.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from perception import errors, roles
from perception.neural import checkpoints, identity, runtime
from perception.neural import weights as weight_files


class Qwen3Vl:
  """A local vision-language model."""

  def __init__(
    self,
    *,
    model: str = "30b-a3b-instruct",
    weights: str = "",
    device: str = "auto",
    precision: str = "auto",
  ) -> None:
    """Loads the model.

    Args:
      model: see `checkpoints.QWEN3_VL`.
      weights: see `perception.neural.weights`; not `random`.
      device: torch device or `auto`.
      precision: type of the weights; `auto` is bfloat16 on a GPU.

    Raises:
      InputError: a bad setting, or the weights are not here.
    """
    if model not in checkpoints.QWEN3_VL or weights == weight_files.RANDOM:
      raise errors.InputError(
        "settings",
        "model, weights",
        found=f"{model}, {weights}",
        expected=f"one of {sorted(checkpoints.QWEN3_VL)} with real weights",
      )
    import torch
    import transformers

    self._device = runtime.resolve_device(device)
    precision = runtime.resolve_precision(precision, self._device)
    checkpoint = checkpoints.QWEN3_VL[model]
    found = weight_files.find(checkpoint, weights)
    folder = found.require_folder()
    net = transformers.AutoModelForImageTextToText.from_pretrained(
      folder, local_files_only=True, dtype=getattr(torch, precision)
    )
    self._net = net.eval().to(self._device).requires_grad_(False)
    self._processor = transformers.AutoProcessor.from_pretrained(
      folder, local_files_only=True
    )
    self._info = identity.describe(
      "vision_language",
      "qwen3_vl",
      runtime.package_version("transformers", "torch"),
      found,
      settings={
        "model": model,
        "precision": precision,
        "schema": "asked for, not enforced",
      },
      published={"model": "30b-a3b-instruct"},
      licence=f"Apache-2.0 / {checkpoint.licence}",
    )

  @property
  def info(self) -> roles.BackendInfo:
    """Identity, licence and settings."""
    return self._info

  def answer(self, request: roles.ChatRequest) -> roles.ChatAnswer:
    """The model's reply; `length` where the token limit cut it off."""
    import torch

    inputs = self._processor.apply_chat_template(
      conversation(request),
      tokenize=True,
      return_dict=True,
      add_generation_prompt=True,
      return_tensors="pt",
    ).to(self._device)
    options: dict[str, Any] = {"do_sample": False}
    if request.temperature > 0:
      options = {"do_sample": True, "temperature": request.temperature}
    with torch.no_grad(), runtime.seeded(request.seed or 0):
      tokens = self._net.generate(
        **inputs, max_new_tokens=request.max_tokens, **options
      )
    new = tokens[0, inputs["input_ids"].shape[1] :]
    text: str = self._processor.batch_decode(
      new[None], skip_special_tokens=True
    )[0]
    ends = self._net.generation_config.eos_token_id
    ends = ends if isinstance(ends, list) else [ends]
    stopped = len(new) > 0 and int(new[-1]) in ends
    return roles.ChatAnswer(
      text=text.strip(),
      finish_reason="stop" if stopped else "length",
      provenance=self._info.provenance(request.sha256()),
    )


def conversation(request: roles.ChatRequest) -> list[dict[str, Any]]:
  """The request in the form that chat templates take; pictures as PIL."""
  from PIL import Image

  messages: list[dict[str, Any]] = []
  for message in request.messages:
    parts: list[dict[str, Any]] = []
    for part in message.parts:
      if isinstance(part, str):
        parts.append({"type": "text", "text": part})
      else:
        picture = Image.fromarray(np.ascontiguousarray(part))
        parts.append({"type": "image", "image": picture})
    messages.append({"role": message.role, "content": parts})
  if request.response_schema is not None and messages:
    schema = json.dumps(dict(request.response_schema), sort_keys=True)
    text = f"Answer with JSON of this schema only: {schema}"
    messages[-1]["content"].append({"type": "text", "text": text})
  return messages
