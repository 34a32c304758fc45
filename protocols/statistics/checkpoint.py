# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Finished replicates on disk, in orbax checkpoints.

Each checkpoint holds the replicates since the one before, numbered by its
first replicate. orbax makes a checkpoint visible by one rename, so a kill at
any moment leaves whole checkpoints only, and a study that resumes continues
behind the last one. What a replicate is depends on its number alone, hence
the resumed study ends with the same bits.
"""

from __future__ import annotations

import hashlib
import logging
import pathlib
from typing import Any

import jax
import numpy as np
from absl import logging as absl_logging

from perception.errors import InputError
from protocols.statistics.plan import Plan


def _without_orbax(record: logging.LogRecord) -> bool:
  """Drops orbax' lines on every file: they hide those of the study."""
  return record.levelno >= logging.WARNING or "orbax" not in record.pathname


def fingerprint(plan: Plan, *, seed: int, dtype: str) -> str:
  """Hash of everything that a replicate depends on, its number excepted."""
  digest = hashlib.sha256(f"{seed};{dtype};{plan.protocols}".encode())
  for stream in plan.streams:
    for array in (stream.start, stream.size, stream.unit_of_case):
      digest.update(array.tobytes())
  for leaf in jax.tree.leaves(plan.tables):
    digest.update(np.ascontiguousarray(leaf).tobytes())
  return digest.hexdigest()[:32]


class ReplicateStore:
  """Replicates of one study in one folder; may be opened again and again."""

  def __init__(
    self, folder: pathlib.Path, *, identity: str, every: int
  ) -> None:
    """Opens or makes the folder.

    Args:
      folder: folder of the checkpoints.
      identity: `fingerprint` of the study.
      every: replicates between checkpoints.
    """
    import orbax.checkpoint as ocp

    absl_logging.get_absl_logger().addFilter(_without_orbax)
    self._ocp = ocp
    self._folder = folder
    self._identity = identity
    self._every = every
    self._pending: list[np.ndarray] = []
    self._first = 0
    self._manager: Any = ocp.CheckpointManager(
      folder.resolve(),
      options=ocp.CheckpointManagerOptions(
        max_to_keep=None,
        enable_async_checkpointing=False,
        cleanup_tmp_directories=True,
      ),
    )

  def load(self, result: np.ndarray) -> int:
    """Fills in what is on disk.

    Args:
      result: [r, ...] array of the study; its head is overwritten.

    Returns:
      Number of replicates found, from the first on without a gap.

    Raises:
      InputError: if the folder belongs to another study.
    """
    done = 0
    for step in sorted(self._manager.all_steps()):
      if step != done or done >= len(result):
        break
      found = self._manager.restore(
        step,
        args=self._ocp.args.Composite(
          study=self._ocp.args.JsonRestore(),
          replicates=self._ocp.args.StandardRestore(),
        ),
      )
      if found["study"]["identity"] != self._identity:
        raise InputError(
          self._folder,
          "checkpoint",
          found="replicates of another table, study, seed or precision",
          expected="the study that this folder was begun with",
          hint="Choose another --checkpoint.",
        )
      values = np.asarray(found["replicates"]["values"])
      stop = min(done + len(values), len(result))
      result[done:stop] = values[: stop - done]
      done = stop
    return done

  def add(self, start: int, values: np.ndarray) -> None:
    """Takes the next replicates; writes a checkpoint when enough are there.

    Args:
      start: number of the first replicate.
      values: [k, ...] replicates from `start` on.
    """
    if not self._pending:
      self._first = start
    self._pending.append(values)
    if sum(map(len, self._pending)) >= self._every:
      self._write()

  def close(self) -> None:
    """Writes what is left and closes the folder."""
    if self._pending:
      self._write()
    self._manager.close()

  def _write(self) -> None:
    values = np.concatenate(self._pending)
    self._pending = []
    if self._first in self._manager.all_steps():
      # An earlier run wanted fewer replicates and ended inside this one.
      self._manager.delete(self._first)
    self._manager.save(
      self._first,
      args=self._ocp.args.Composite(
        study=self._ocp.args.JsonSave({"identity": self._identity}),
        replicates=self._ocp.args.StandardSave({"values": values}),
      ),
    )
