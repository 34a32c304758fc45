# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Torch as the adapters need it: device, precision, seeds, versions.

Torch is imported inside these functions. Results that depend on a random draw
inside a network are made reproducible by `seeded`, which also restores the
caller's generator.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
from collections.abc import Iterator
from typing import Any

from perception import errors

PRECISIONS = ("auto", "float32", "float16", "bfloat16")


def package_version(*names: str) -> str:
  """`name version` of installed distributions, joined by commas."""
  versions = []
  for name in names:
    try:
      versions.append(f"{name} {importlib.metadata.version(name)}")
    except importlib.metadata.PackageNotFoundError:
      versions.append(f"{name} unknown")
  return ", ".join(versions)


def resolve_device(device: str) -> str:
  """A torch device: `auto` means the first GPU if there is one.

  Raises:
    InputError: a GPU is asked for where torch sees none, or the name is not
      one of torch's.
  """
  import torch

  if device == "auto":
    return "cuda" if torch.cuda.is_available() else "cpu"
  try:
    wanted = torch.device(device)
  except RuntimeError as error:
    raise errors.InputError(
      "settings",
      "device",
      found=repr(device),
      expected="auto, cpu, cuda or cuda:N",
    ) from error
  count = torch.cuda.device_count()
  if wanted.type == "cuda" and (wanted.index or 0) >= count:
    raise errors.InputError(
      "settings",
      "device",
      found=f"{device!r}, but torch sees {count} GPUs",
      expected="a device that exists",
      hint="Use --device=cpu, or install a torch build for this GPU.",
    )
  return str(wanted)


def resolve_precision(precision: str, device: str) -> str:
  """`auto` -> float32 on a CPU, half precision on a GPU (bfloat16 if it can).

  Raises:
    InputError: unknown name.
  """
  if precision not in PRECISIONS:
    raise errors.InputError(
      "settings", "precision", found=precision, expected=f"one of {PRECISIONS}"
    )
  if precision != "auto":
    return precision
  if not device.startswith("cuda"):
    return "float32"
  import torch

  return "bfloat16" if torch.cuda.is_bf16_supported() else "float16"


@contextlib.contextmanager
def inference(device: str, precision: str) -> Iterator[None]:
  """No gradients, and autocast unless the precision is float32."""
  import torch

  enabled = precision != "float32"
  kind = torch.device(device).type
  dtype = getattr(torch, precision) if enabled else None
  with torch.no_grad(), torch.autocast(kind, dtype=dtype, enabled=enabled):
    yield


@contextlib.contextmanager
def seeded(seed: int) -> Iterator[None]:
  """Runs with torch seeded on every device and restores the state after."""
  import torch

  devices = list(range(torch.cuda.device_count()))
  with torch.random.fork_rng(devices=devices):
    torch.manual_seed(seed)
    yield


def random_model(build: Any, seed: int = 0) -> Any:
  """What `build()` makes, with reproducible random weights, in eval mode."""
  with seeded(seed):
    return build().eval()
