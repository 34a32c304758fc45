# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Evidence rows to step scores, vectorized over steps and systems.

All arithmetic runs in one jitted batch, in float64 unless asked otherwise;
batches are padded to powers of two so that few shapes are compiled.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from kernels import camera_grounding, scene_preservation, topology
from perception.errors import InputError
from protocols.egogeneval import constants, evidence

Array = NDArray[np.float64]
_MIN_OBJECTS = 4
_MIN_ROWS = 16


@dataclasses.dataclass(frozen=True)
class CmgScores:
  """Camera scores, one entry per row.

  Attributes:
    direction: d in [0, 1].
    gated: d * q.
    score: g = d (1 + q) / 2.
    valid: false where the step is undefined.
  """

  direction: Array
  gated: Array
  score: Array
  valid: NDArray[np.bool_]

  def take(self, indices: Sequence[int] | NDArray[np.int_]) -> CmgScores:
    """The scores of some rows."""
    rows = np.asarray(indices, int)
    return CmgScores(
      self.direction[rows], self.gated[rows], self.score[rows], self.valid[rows]
    )


@dataclasses.dataclass(frozen=True)
class SspScores:
  """Scene scores, one entry per row.

  Attributes:
    presence: F1.
    spatial: spatial pillar.
    integrity: integrity pillar.
    score: mean of the three.
    position: position part of the spatial pillar.
    topology: pair arrangement, as `kernels.topology.Topology` of arrays.
  """

  presence: Array
  spatial: Array
  integrity: Array
  score: Array
  position: Array
  topology: topology.Topology

  def take(self, indices: Sequence[int] | NDArray[np.int_]) -> SspScores:
    """The scores of some rows."""
    rows = np.asarray(indices, int)
    return SspScores(
      self.presence[rows],
      self.spatial[rows],
      self.integrity[rows],
      self.score[rows],
      self.position[rows],
      jax.tree.map(lambda column: column[rows], self.topology),
    )


def score_cmg(
  rows: Sequence[evidence.CmgEvidence],
  limits: constants.Constants,
  *,
  dtype: type[np.floating] = np.float64,
) -> CmgScores:
  """Scores camera rows.

  Released: the recorded direction flag decides. Paper: sign equality of the
  recorded estimate and expected value, only an exact zero being without sign
  (spec 13 item 2); rows without an estimate keep their flag.

  Args:
    rows: checked rows.
    limits: constants of the variant.
    dtype: precision of the arithmetic.

  Returns:
    The scores. A row whose expected value has no sign is not valid.
  """
  expected = np.array([row.expected for row in rows], np.float64)
  estimate = np.array([row.estimate for row in rows], np.float64)
  error = np.array([row.absolute_error for row in rows], np.float64)
  direction = np.array([row.direction for row in rows], np.float64)
  floor = np.array([limits.floor(row.unit) for row in rows], np.float64)
  valid = np.ones(len(rows), bool)
  if limits.variant == "paper":
    known = np.isfinite(estimate) & np.isfinite(expected)
    same = np.sign(estimate) == np.sign(expected)
    direction = np.where(known, same & (expected != 0), direction)
    valid = ~(known & (expected == 0))
  empty = direction == 0
  expected = np.where(empty & ~np.isfinite(expected), 1.0, expected)
  error = np.where(empty & ~np.isfinite(error), 0.0, error)
  columns = _padded([expected, error, direction, floor], len(rows), dtype)
  with _precision(dtype):
    _, magnitude, score = _cmg_batch(*columns)
  count = len(rows)
  magnitude = np.asarray(magnitude, np.float64)[:count]
  return CmgScores(
    direction.astype(np.float64),
    direction * magnitude,
    np.asarray(score, np.float64)[:count],
    valid,
  )


def score_ssp(
  rows: Sequence[evidence.SspEvidence],
  limits: constants.Constants,
  *,
  dtype: type[np.floating] = np.float64,
) -> SspScores:
  """Scores scene rows with at least one target object.

  Args:
    rows: checked rows.
    limits: constants of the variant.
    dtype: precision of the arithmetic.

  Returns:
    The scores.

  Raises:
    InputError: if two target objects have one centre, so that their offset
      has no direction (released: only where both are matched).
  """
  count = len(rows)
  packed = _pack(rows, limits)
  batch = _padded(packed, count, dtype)
  with _precision(dtype):
    pairs, pillars = _ssp_batch(*batch, settings=_topology_settings(limits))
  found = jax.tree.map(lambda value: np.asarray(value)[:count], pairs)
  refused = np.flatnonzero(np.asarray(found.coincident_pairs) > 0)
  if refused.size:
    raise InputError(
      "ssp evidence",
      rows[int(refused[0])].key.record_id,
      found="two target objects with the same centre",
      expected="a non-zero offset between target objects",
    )
  rounded = jax.tree.map(
    lambda value: np.asarray(value, np.float64)[:count], pillars
  )
  return SspScores(
    rounded.presence,
    rounded.spatial,
    rounded.integrity,
    rounded.score,
    rounded.position,
    found,
  )


def _pack(
  rows: Sequence[evidence.SspEvidence], limits: constants.Constants
) -> list[NDArray[np.generic]]:
  """Rows as padded arrays in the argument order of the batch."""
  count = len(rows)
  sizes = np.array([row.targets for row in rows], int)
  width = max(_MIN_OBJECTS, 4 * math.ceil(int(sizes.max(initial=0)) / 4))
  # One flat array of all objects, scattered into (row, slot) at once.
  owner = np.repeat(np.arange(count), sizes)
  slot = np.arange(len(owner)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
  present = np.zeros((count, width), bool)
  present[owner, slot] = True

  def spread(values: list[Any], fill: float, tail: tuple[int, ...]) -> Array:
    padded = np.full((count, width, *tail), fill)
    padded[owner, slot] = np.array(values, np.float64).reshape(-1, *tail)
    return padded

  none = (math.nan,) * 4
  found = [box for row in rows for box in row.generated_boxes]
  boxes = spread([b for row in rows for b in row.target_boxes], 0.0, (4,))
  generated = spread([none if b is None else b for b in found], 0.0, (4,))
  matched = present & np.isfinite(generated[..., 0])
  generated = np.where(matched[..., None], generated, 0.0)
  depths = spread([d for row in rows for d in row.target_depths], math.nan, ())
  depths_generated = spread(
    [d for row in rows for d in row.generated_depths], math.nan, ()
  )
  # Spec 13 item 1: the paper's P leaves out candidates that the
  # correspondence excludes, which are those without an extra record.
  counted = limits.count_all_candidates
  trusts = limits.variant == "released"
  scalars = np.array(
    [
      (
        row.targets,
        row.candidates if counted else row.matches + row.extras,
        row.matches,
        row.position_error,
        row.object_quality,
        row.recorded_topology
        if trusts and row.recorded_topology is not None
        else math.nan,
      )
      for row in rows
    ]
  ).reshape(count, 6)
  return [
    boxes,
    generated,
    depths,
    depths_generated,
    present,
    matched,
    scalars,
  ]


@functools.partial(jax.jit)
@jax.vmap
def _cmg_batch(
  expected: jax.Array, error: jax.Array, direction: jax.Array, floor: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
  return camera_grounding.recorded_step_score(
    expected, error, direction, floor=floor
  )


@functools.partial(jax.jit, static_argnames=("settings",))
def _ssp_batch(
  *columns: jax.Array, settings: tuple[tuple[str, float | bool], ...]
) -> tuple[topology.Topology, scene_preservation.StepPillars]:
  options = dict(settings)

  def one(
    boxes: jax.Array,
    generated: jax.Array,
    depths: jax.Array,
    depths_generated: jax.Array,
    present: jax.Array,
    matched: jax.Array,
    scalars: jax.Array,
  ) -> tuple[topology.Topology, scene_preservation.StepPillars]:
    pairs = topology.pair_topology(
      boxes,
      generated,
      depths,
      depths_generated,
      present,
      matched,
      **options,  # type: ignore[arg-type]
    )
    score = jax.numpy.where(
      jax.numpy.isnan(scalars[5]), pairs.score, scalars[5]
    )
    pillars = scene_preservation.step_pillars(
      scalars[0], scalars[1], scalars[2], scalars[3], scalars[4], score
    )
    return pairs, pillars

  return jax.vmap(one)(*columns)


def _topology_settings(
  limits: constants.Constants,
) -> tuple[tuple[str, float | bool], ...]:
  return (
    ("tie_ratio", limits.tie_ratio),
    ("min_offset", limits.min_offset),
    ("ratio_floor", limits.ratio_floor),
    ("floor_is_added", limits.ratio_floor_added),
    ("coincident_needs_match", limits.coincident_needs_match),
  )


def _padded(
  columns: Sequence[NDArray[np.generic]], count: int, dtype: type[np.floating]
) -> list[NDArray[np.generic]]:
  size = max(_MIN_ROWS, 1 << max(count - 1, 0).bit_length())
  padded = []
  for column in columns:
    values = column if column.dtype == np.bool_ else column.astype(dtype)
    fill = [(0, size - count)] + [(0, 0)] * (values.ndim - 1)
    padded.append(np.pad(values, fill))
  return padded


@contextlib.contextmanager
def _precision(dtype: type[np.floating]) -> Iterator[None]:
  with jax.enable_x64(dtype is np.float64):
    yield
