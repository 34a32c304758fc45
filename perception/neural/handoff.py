# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Tensors from torch to JAX and back without a copy, with the traps closed.

`to_jax` uses DLPack, so torch and JAX share one buffer wherever they can; on a
GPU no byte visits the host. What DLPack would do silently or refuse is handled
here: int64 and float64 are cast in the open (JAX without x64 would wrap or
round them), strided views are packed, gradients are cut, conjugate and sparse
tensors resolved or refused, and a caller who will write to the tensor again
asks for a copy of his own. Half precision may be upcast once, at this edge.

Order on a GPU: JAX hands its stream to torch's exporter, which makes it wait
for torch's current stream, so a tensor produced on the current stream needs no
synchronisation. The JAX array keeps the torch storage alive; torch's cache
cannot reuse it before the array is gone.

Call outside `jit`: tracers have no buffer. Source: specs/perception.md
section 10.
"""

from __future__ import annotations

import os
import sys
from collections.abc import MutableMapping
from typing import TYPE_CHECKING, Any

import numpy as np

from perception import errors

if TYPE_CHECKING:
  import jax
  import torch

_MEMORY_KEY = "XLA_PYTHON_CLIENT_MEM_FRACTION"
_PREALLOCATE_KEY = "XLA_PYTHON_CLIENT_PREALLOCATE"


def share_device_memory(
  jax_fraction: float = 0.3,
  environment: MutableMapping[str, str] | None = None,
) -> None:
  """Makes room for torch on JAX's device; call before JAX is imported.

  JAX takes 75 % of a GPU at once by default, which starves torch. This asks
  it to grow on demand up to a fraction. Values that the user has set stay.

  Args:
    jax_fraction: of the device memory, in (0, 1).
    environment: defaults to the process's.

  Raises:
    InputError: JAX has been imported and nothing was set before, or the
      fraction is not in (0, 1).
  """
  target = os.environ if environment is None else environment
  if not 0.0 < jax_fraction < 1.0:
    raise errors.InputError(
      "settings", "jax_fraction", found=jax_fraction, expected="in (0, 1)"
    )
  if _PREALLOCATE_KEY in target or _MEMORY_KEY in target:
    return
  if environment is None and "jax" in sys.modules:
    raise errors.InputError(
      "process",
      "order of imports",
      found="JAX imported before its memory was limited",
      expected="share_device_memory() first",
      hint=f"Set {_PREALLOCATE_KEY}=false in the environment.",
    )
  target[_PREALLOCATE_KEY] = "false"
  target[_MEMORY_KEY] = f"{jax_fraction:g}"


def to_jax(
  tensor: torch.Tensor, *, own: bool = False, upcast: bool = False
) -> jax.Array:
  """A JAX array with the tensor's values on the tensor's device.

  Args:
    tensor: dense, any dtype and strides, with or without gradient.
    own: True for an array that later writes to the tensor cannot change.
      False shares the buffer where possible: do not write to it again.
    upcast: float16 and bfloat16 become float32.

  Returns:
    Array of the same shape. int64 becomes int32 and float64 float32 unless
    JAX runs with x64.

  Raises:
    InputError: int64 values that int32 cannot hold, sparse or meta tensors, a
      tensor on a GPU that JAX cannot use.
  """
  import jax
  import jax.numpy as jnp
  import torch

  if tensor.layout != torch.strided or tensor.device.type == "meta":
    raise errors.InputError(
      "tensor",
      "storage",
      found=f"{tensor.layout} on {tensor.device}",
      expected="a dense tensor with data",
    )
  require_platform(tensor.device.type)
  tensor = tensor.detach()
  if not jax.config.read("jax_enable_x64"):
    tensor = _narrow(tensor)
  if upcast and tensor.dtype in (torch.float16, torch.bfloat16):
    tensor = tensor.float()
  tensor = tensor.resolve_conj().resolve_neg().contiguous()
  array = jnp.from_dlpack(tensor)
  # copy=True of from_dlpack and device_put still alias in jax 0.10.
  return jnp.array(array, copy=True) if own else array


def require_platform(kind: str) -> None:
  """Raises InputError when JAX has no device of torch's kind (`cuda`, `cpu`).

  A silent detour through the host would hide what `to_jax` is for.
  """
  import jax

  if kind == "cuda" and all(one.platform != "gpu" for one in jax.devices()):
    raise errors.InputError(
      "tensor",
      "device",
      found="a GPU tensor, and JAX without a GPU",
      expected="both on one device",
      hint="pip install 'jax[cuda13]', or move the tensor with .cpu().",
    )


def _narrow(tensor: torch.Tensor) -> torch.Tensor:
  """Casts 64-bit types to the 32-bit ones that JAX would use."""
  import torch

  if tensor.dtype == torch.float64:
    return tensor.float()
  if tensor.dtype == torch.complex128:
    return tensor.to(torch.complex64)
  if tensor.dtype != torch.int64:
    return tensor
  limits = torch.iinfo(torch.int32)
  if tensor.numel():
    low, high = (int(value) for value in torch.aminmax(tensor))
    if low < limits.min or high > limits.max:
      raise errors.InputError(
        "tensor",
        "values",
        found=f"int64 in [{low}, {high}]",
        expected="values that int32 holds",
        hint="Enable x64 in JAX.",
      )
  return tensor.to(torch.int32)


def to_torch(array: jax.Array, *, own: bool = True) -> torch.Tensor:
  """A tensor with a JAX array's values on the array's device.

  Args:
    array: committed to one device, outside `jit`.
    own: True copies on the device. False shares the buffer, which torch could
      write through to an array that JAX takes for constant: read only.
  """
  import torch

  tensor = torch.from_dlpack(array)
  return tensor.clone() if own else tensor


def to_numpy(tensor: torch.Tensor) -> np.ndarray:
  """A NumPy array of its own on the host; bfloat16 becomes float32."""
  import torch

  tensor = tensor.detach()
  if tensor.dtype == torch.bfloat16:
    tensor = tensor.float()
  host: Any = tensor.resolve_conj().resolve_neg().cpu().numpy()
  return np.array(host, copy=True)
