# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Where cases run: this process, worker processes, or a Ray cluster.

Results come back in any order; nothing downstream depends on it. A worker
process owns one accelerator, chosen before JAX starts in it. This module
imports neither JAX nor Ray until they are needed.
"""

from __future__ import annotations

import concurrent.futures
import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from perception.errors import InputError

Item = TypeVar("Item")
Result = TypeVar("Result")

EXECUTORS = ("local", "ray")
# Items handed out ahead of the results, per worker: bounds memory and keeps
# hand-out dynamic.
_AHEAD = 2


def run(
  work: Callable[[Item], Result],
  items: Sequence[Item],
  *,
  executor: str,
  workers: int,
) -> Iterator[Result]:
  """Applies `work` to each item and yields results as they finish.

  Args:
    work: picklable function; its exceptions end the run.
    items: picklable work units.
    executor: `local` or `ray`.
    workers: processes; 1 runs in this process (with `local`).

  Yields:
    Results in order of arrival.

  Raises:
    InputError: if a worker process dies, or Ray is not installed.
  """
  if executor == "ray":
    yield from _run_ray(work, items, workers)
  elif workers <= 1 or len(items) <= 1:
    for item in items:
      yield work(item)
  else:
    yield from _run_processes(work, items, min(workers, len(items)))


def _run_processes(
  work: Callable[[Item], Result], items: Sequence[Item], workers: int
) -> Iterator[Result]:
  context = multiprocessing.get_context("spawn")
  with concurrent.futures.ProcessPoolExecutor(
    workers,
    mp_context=context,
    initializer=_claim_device,
    initargs=(context.Value("i", 0),),
  ) as pool:
    queue = iter(items)
    waiting: set[concurrent.futures.Future[Result]] = set()
    try:
      for item in queue:
        waiting.add(pool.submit(work, item))
        if len(waiting) >= _AHEAD * workers:
          done, waiting = concurrent.futures.wait(
            waiting, return_when=concurrent.futures.FIRST_COMPLETED
          )
          yield from (future.result() for future in done)
      for future in concurrent.futures.as_completed(waiting):
        yield future.result()
    except concurrent.futures.process.BrokenProcessPool as error:
      raise InputError(
        "--workers",
        "worker process",
        found="it died without a message, often for want of memory",
        expected="workers that live until their case is finished",
        hint="Run again with fewer --workers; finished cases are kept.",
      ) from error
    finally:
      pool.shutdown(wait=False, cancel_futures=True)


def _claim_device(counter: object) -> None:
  """Gives this worker the next visible accelerator, round robin."""
  with counter.get_lock():  # type: ignore[attr-defined]
    rank = counter.value  # type: ignore[attr-defined]
    counter.value += 1  # type: ignore[attr-defined]
  visible = os.environ.get("CUDA_VISIBLE_DEVICES", "")
  devices = [name for name in visible.split(",") if name]
  if devices:
    os.environ["CUDA_VISIBLE_DEVICES"] = devices[rank % len(devices)]
  os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")


def _run_ray(
  work: Callable[[Item], Result], items: Sequence[Item], workers: int
) -> Iterator[Result]:
  try:
    import ray
  except ImportError as error:
    raise InputError(
      "--executor",
      "ray",
      found="the package ray is not installed",
      expected="the extra `cluster`",
      hint="Install worldgauge[cluster], or use --executor=local.",
    ) from error
  started_here = not ray.is_initialized()
  if started_here:
    ray.init(log_to_driver=False)

  def call(item: Item) -> Result:
    return work(item)  # Ray takes functions only, no partial objects.

  remote = ray.remote(max_retries=0)(call)
  try:
    waiting: list[object] = []
    for item in items:
      waiting.append(remote.remote(item))
      if len(waiting) >= _AHEAD * max(workers, 1):
        done, waiting = ray.wait(waiting, num_returns=1)
        yield from ray.get(done)
    while waiting:
      done, waiting = ray.wait(waiting, num_returns=1)
      yield from ray.get(done)
  finally:
    if started_here:
      ray.shutdown()
