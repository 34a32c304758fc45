# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Progress of long work: a bar on a terminal, log lines elsewhere."""

from __future__ import annotations

import sys
import time
from types import TracebackType

import tqdm
from absl import logging

LOG_EVERY_S = 15.0


class Progress:
  """Counts finished items; use as a context manager."""

  def __init__(self, total: int, *, label: str, done: int = 0) -> None:
    """Args:
    total: number of items.
    label: what they are, for example `pdi cases`.
    done: items that an earlier run finished.
    """
    self._total = total
    self._label = label
    self._done = done
    self._start = self._last = time.monotonic()
    self._initial = done
    self._bar: tqdm.tqdm | None = None

  def __enter__(self) -> Progress:
    if sys.stderr.isatty():
      self._bar = tqdm.tqdm(
        total=self._total, initial=self._done, desc=self._label
      )
    elif self._total:
      logging.info("%s: %d of %d", self._label, self._done, self._total)
    return self

  def __exit__(
    self,
    kind: type[BaseException] | None,
    error: BaseException | None,
    trace: TracebackType | None,
  ) -> None:
    if self._bar is not None:
      self._bar.close()

  def advance(self, count: int = 1) -> None:
    """Marks items as finished."""
    self._done += count
    if self._bar is not None:
      self._bar.update(count)
      return
    now = time.monotonic()
    if self._done >= self._total or now - self._last >= LOG_EVERY_S:
      self._last = now
      rate = (self._done - self._initial) / max(now - self._start, 1e-9)
      logging.info(
        "%s: %d of %d, %.2f/s", self._label, self._done, self._total, rate
      )
