# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Several processes as one: `jax.distributed` around a study."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import jax

from perception.errors import InputError


@contextlib.contextmanager
def joined(
  coordinator: str | None, *, num_processes: int, process_id: int
) -> Iterator[None]:
  """Joins the other processes; does nothing for a single one.

  Args:
    coordinator: HOST:PORT of process 0, reachable from all.
    num_processes: number of processes, each with its own devices.
    process_id: number of this process.

  Raises:
    InputError: if the numbers do not fit together.
  """
  if num_processes == 1:
    yield
    return
  if not coordinator or process_id >= num_processes:
    raise InputError(
      "flags",
      "--coordinator, --process_id",
      found=f"{coordinator}, {process_id}",
      expected=f"HOST:PORT, and a number from 0 to {num_processes - 1}",
    )
  jax.distributed.initialize(
    coordinator, num_processes=num_processes, process_id=process_id
  )
  try:
    yield
  finally:
    jax.distributed.shutdown()
