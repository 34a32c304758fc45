# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Draws replicates: over all devices and hosts, in batches, resumable.

Work is cut into blocks of `block_size()` consecutive replicates. A block is
always computed at the same shape, whatever the batch, the number of devices
or the point of resumption, and its draws depend on the seed and the replicate
number only; so all of these give the same bits. Devices take blocks side by
side (`jax.sharding`), over hosts as well once `jax.distributed` is
initialised: every process then runs the same study and holds all replicates
at the end.

XLA counts draws on one core of a CPU, hence one batch in flight for each
core, computed by that core alone. Batches come from as many threads: XLA runs
what one thread asks of a CPU in turn, what several ask side by side.

The random words are Threefry in counter mode (`kernels.bootstrap_bits`), 1 ns
each on one core of a 2026 server CPU when they are drawn in pairs;
`jax.random.bits` took 4 ns, and `rbg` and `unsafe_rbg` 8.6 ns on two cores,
changing under `vmap` besides.
"""

from __future__ import annotations

import collections
import concurrent.futures
import functools
import itertools
import os
from collections.abc import Callable, Iterator

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from kernels import bootstrap, bootstrap_blocks
from protocols.statistics.checkpoint import ReplicateStore
from protocols.statistics.plan import Plan
from protocols.statistics.streams import Stream

# Replicates per dispatch and device; bounds the memory together with the
# number of batches in flight.
DEFAULT_BATCH = 1024
_CPU_BLOCK = 128
_ACCELERATOR_BLOCK = 2048
_ACCELERATOR_IN_FLIGHT = 4
_AXIS = "replicates"


def block_size() -> int:
  """Replicates of a block: on CPUs those whose counts a core's cache holds."""
  return _CPU_BLOCK if _on_cpu() else _ACCELERATOR_BLOCK


class Sampler:
  """A plan, compiled for one precision and batch size on all devices."""

  def __init__(self, plan: Plan, *, dtype: str, batch: int) -> None:
    """Compiles the plan.

    Args:
      plan: what to draw and compute.
      dtype: `float32` or `float64`.
      batch: replicates per dispatch and device, rounded up to whole blocks.
    """
    devices = jax.devices()
    self._blocks = -(-batch // block_size()) * len(devices)
    self._mesh = Mesh(np.array(devices), (_AXIS,))
    with jax.enable_x64(dtype == "float64"):
      self._tables = jax.tree.map(
        lambda x: self._placed(np.asarray(x, dtype), PartitionSpec()),
        plan.tables,
      )
      # Ahead of time, so that threads do not compile it twice.
      self._step = (
        _step(plan, self._mesh, dtype)
        .lower(self._key(0), self._numbers(0), self._tables)
        .compile(compiler_options=_compiler_options())
      )

  def batches(
    self, *, seed: int, done: int, replicates: int
  ) -> Iterator[tuple[int, np.ndarray]]:
    """Draws the replicates from `done` on.

    Args:
      seed: seed of the draws, below 2**32.
      done: first replicate, a multiple of `block_size()`.
      replicates: r; the last batch may reach beyond it.

    Yields:
      (number of the first replicate, [k, a, 1 + p, u] values), in order.
    """
    size = block_size()
    blocks = range(done // size, -(-replicates // size), self._blocks)
    key = self._key(seed)

    def values(block: int) -> tuple[int, Array]:
      found = self._step(key, self._numbers(block), self._tables)
      return block * size, jax.block_until_ready(found)

    workers = _in_flight()
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
      remaining = iter(blocks)
      ahead = collections.deque(
        pool.submit(values, block)
        for block in itertools.islice(remaining, workers + 1)
      )
      while ahead:
        first, found = ahead.popleft().result()
        ahead.extend(
          pool.submit(values, block) for block in itertools.islice(remaining, 1)
        )
        # Processes exchange their parts here, in one order, and not in the
        # threads: checkpoints exchange messages as well.
        drawn = _to_host(found)
        yield first, drawn.reshape(-1, *drawn.shape[2:])

  def _key(self, seed: int) -> Array:
    key = jax.random.key(seed, impl="threefry2x32")
    return self._placed(np.asarray(jax.random.key_data(key)), PartitionSpec())

  def _numbers(self, block: int) -> Array:
    numbers = np.arange(block, block + self._blocks, dtype=np.uint32)
    return self._placed(numbers, PartitionSpec(_AXIS))

  def _placed(self, value: np.ndarray, spec: PartitionSpec) -> Array:
    return jax.make_array_from_callback(
      value.shape, NamedSharding(self._mesh, spec), value.__getitem__
    )


def run(
  plan: Plan,
  *,
  seed: int,
  replicates: int,
  dtype: str,
  batch: int,
  store: ReplicateStore | None,
  advance: Callable[[int], None] | None,
) -> np.ndarray:
  """Draws all replicates of a plan.

  Args:
    plan: what to draw and compute.
    seed: seed of the draws, below 2**32.
    replicates: r.
    dtype: `float32` or `float64`.
    batch: replicates per dispatch and device, rounded up to whole blocks.
    store: where finished replicates are kept, or None.
    advance: called with the number of replicates just finished, or None.

  Returns:
    [r, a, 1 + p, s] scores in `dtype`; NaN where a replicate holds nothing.
  """
  result = np.empty(
    (replicates, plan.num_axes, 1 + len(plan.protocols), plan.num_distinct),
    dtype,
  )
  size = block_size()
  # A checkpoint may end inside a block, when an earlier run wanted fewer.
  done = 0 if store is None else store.load(result) // size * size
  if advance is not None and done:
    advance(done)
  # A small study is divided, so that every core has a part.
  share = -(-(replicates - done) // _in_flight())
  sampler = Sampler(plan, dtype=dtype, batch=max(1, min(batch, share)))
  for start, values in sampler.batches(
    seed=seed, done=done, replicates=replicates
  ):
    stop = min(start + len(values), replicates)
    result[start:stop] = values[: stop - start]
    if store is not None:
      store.add(start, result[start:stop])
    if advance is not None:
      advance(stop - start)
  if store is not None:
    store.close()
  if np.array_equal(plan.distinct, np.arange(plan.num_distinct)):
    return result
  return result[..., plan.distinct]


def _step(plan: Plan, mesh: Mesh, dtype: str) -> jax.stages.Wrapped:
  """To compile: block numbers, sharded -> values of their replicates."""

  def blocks(key_data: Array, numbers: Array, tables: object) -> Array:
    key = jax.random.wrap_key_data(key_data, impl="threefry2x32")

    def one(block: Array) -> Array:
      counts = block_counts(plan, key, block, dtype=dtype)
      return jnp.moveaxis(plan.finish(counts, tables), -1, 0)

    return jax.lax.map(one, numbers)

  everywhere, apart = PartitionSpec(), PartitionSpec(_AXIS)
  return jax.jit(
    jax.shard_map(
      blocks,
      mesh=mesh,
      in_specs=(everywhere, apart, everywhere),
      out_specs=apart,
      check_vma=False,
    )
  )


def block_counts(
  plan: Plan, key: Array, block: Array, *, dtype: str
) -> tuple[Array, ...]:
  """Draws one block of replicates.

  Args:
    plan: what to draw.
    key: key of the study.
    block: scalar uint32 block number.
    dtype: `float32` or `float64`.

  Returns:
    [n, block_size()] counts of each stream.
  """
  size = block_size()
  numbers = block * np.uint32(size) + jnp.arange(size, dtype=jnp.uint32)
  return tuple(
    _stream_counts(
      stream, jax.random.fold_in(key, stream.number), numbers, dtype
    )
    for stream in plan.streams
  )


def _stream_counts(
  stream: Stream, key: Array, numbers: Array, dtype: str
) -> Array:
  """[n, b] counts of the replicates `numbers` of one stream."""
  start, size = jnp.asarray(stream.start), jnp.asarray(stream.size)
  n, d = stream.num_units, len(stream.start)
  if n > bootstrap_blocks.MAX_UNITS:
    one = functools.partial(
      bootstrap.draw_counts, num_units=n, dtype=jnp.dtype(dtype)
    )
    return jax.vmap(
      lambda r: one(jax.random.fold_in(key, r), start, size), out_axes=1
    )(numbers)
  draw = functools.partial(bootstrap_blocks.draw_pairs, num_units=n)
  # A loop, because XLA would repeat the cipher for each of its readers.
  pairs = jax.lax.map(
    jax.vmap(lambda r: draw(jax.random.fold_in(key, r), start, size)),
    numbers.reshape(2, -1),
  )
  # 16-bit atomics are slow on GPUs.
  narrow = _on_cpu() and d <= np.iinfo(np.uint16).max
  return bootstrap_blocks.count_pairs(
    pairs.reshape(len(numbers), -1),
    number=d,
    num_units=n,
    counter=jnp.dtype(jnp.uint16 if narrow else jnp.uint32),
    dtype=jnp.dtype(dtype),
  )


def _on_cpu() -> bool:
  return jax.default_backend() == "cpu"


def _compiler_options() -> dict[str, str | bool]:
  """Cores share batches between them, not the loops of one batch."""
  return {"xla_cpu_multi_thread_eigen": False} if _on_cpu() else {}


def _in_flight() -> int:
  """Batches to work on at a time."""
  if not _on_cpu():
    return _ACCELERATOR_IN_FLIGHT
  return (
    len(os.sched_getaffinity(0))
    if hasattr(os, "sched_getaffinity")
    else (os.cpu_count() or 1)
  )


def _to_host(values: Array) -> np.ndarray:
  if jax.process_count() == 1:
    return np.asarray(values)
  return np.asarray(multihost_utils.process_allgather(values, tiled=True))
