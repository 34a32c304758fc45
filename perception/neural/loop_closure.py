# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Ties distant chunks of a clip together where the camera comes back.

Frames that look alike are found by their descriptors; what a joint
reconstruction around such a pair says about the two chunks becomes a
constraint, and all chunk transforms are refined under the chain and these
constraints. NumPy and SciPy, float64; conventions of `chunk_alignment`.

The published procedure takes SALAD descriptors; here any descriptors serve,
so results with loops are not the published ones.

Source: specs/orbia.md section 10.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import optimize
from scipy.spatial import transform

from perception.neural.chunk_alignment import Similarity

THRESHOLD = 0.85
TOP = 5
SUPPRESSION = 25
HALF_WINDOW = 10
_MAX_ITERATIONS = 30


class Loop(NamedTuple):
  """A constraint: `step` takes chunk `later` to chunk `earlier`."""

  earlier: int
  later: int
  step: Similarity


def alike(
  descriptors: np.ndarray, ranges: Sequence[tuple[int, int]]
) -> list[tuple[int, int]]:
  """Pairs of frames (i < j) that look alike and share no chain link.

  For every frame the five most similar earlier ones with cosine 0.85 or more;
  best first, none within 25 frames of an accepted pair at both ends; only
  pairs whose chunks are not neighbours.

  Args:
    descriptors: [T, C], one per frame.
    ranges: frame ranges of the chunks.
  """
  norm = np.linalg.norm(descriptors, axis=1, keepdims=True)
  unit = descriptors / np.maximum(norm, 1e-12)
  similarity = np.tril(unit @ unit.T, -1)
  rank = min(TOP, len(unit))
  rows = np.repeat(np.arange(len(unit)), rank)
  columns = np.argsort(-similarity, axis=1, kind="stable")[:, :rank].ravel()
  score = similarity[rows, columns]
  keep = (score >= THRESHOLD) & (columns < rows)
  order = np.argsort(-score[keep], kind="stable")
  accepted: list[tuple[int, int]] = []
  for j, i in zip(rows[keep][order], columns[keep][order], strict=True):
    near = any(
      abs(int(i) - a) < SUPPRESSION and abs(int(j) - b) < SUPPRESSION
      for a, b in accepted
    )
    apart = chunk_of(int(j), ranges) - chunk_of(int(i), ranges) > 1
    if apart and not near:
      accepted.append((int(i), int(j)))
  return accepted


def chunk_of(frame: int, ranges: Sequence[tuple[int, int]]) -> int:
  """The last chunk that holds a frame: the one that supplies it."""
  return max(
    k for k, (start, stop) in enumerate(ranges) if start <= frame < stop
  )


def window(frame: int, span: tuple[int, int]) -> tuple[int, int]:
  """Up to 20 frames around one, inside its chunk."""
  start = max(span[0], min(frame - HALF_WINDOW, span[1] - 2 * HALF_WINDOW))
  return start, min(start + 2 * HALF_WINDOW, span[1])


def inverse(similarity: Similarity) -> Similarity:
  """Undoes a similarity."""
  rotation = similarity.rotation.T
  scale = 1.0 / similarity.scale
  return Similarity(scale, rotation, -scale * rotation @ similarity.translation)


def refine(
  totals: Sequence[Similarity], loops: Sequence[Loop]
) -> list[Similarity]:
  """Chunk transforms under the chain and the loops, least squares.

  Each constraint (chain link or loop) weighs the same: rotation vector,
  translation and log scale of its error. The first transform stays.

  Args:
    totals: chunk to first chunk, as the chain alone has them.
    loops: constraints between chunks.
  """
  if not loops:
    return list(totals)
  constraints = [
    Loop(k, k + 1, inverse(totals[k]).after(totals[k + 1]))
    for k in range(len(totals) - 1)
  ]
  constraints += loops

  def transforms(values: np.ndarray) -> list[Similarity]:
    moved = [totals[0]]
    for total, change in zip(totals[1:], values.reshape(-1, 7), strict=True):
      moved.append(total.after(_exponential(change)))
    return moved

  def errors(values: np.ndarray) -> np.ndarray:
    moved = transforms(values)
    return np.concatenate(
      [
        _logarithm(
          inverse(loop.step).after(
            inverse(moved[loop.earlier]).after(moved[loop.later])
          )
        )
        for loop in constraints
      ]
    )

  count = 7 * (len(totals) - 1)
  found = optimize.least_squares(
    errors, np.zeros(count), method="lm", max_nfev=_MAX_ITERATIONS * (count + 1)
  )
  return transforms(found.x)


def _exponential(values: np.ndarray) -> Similarity:
  rotation = transform.Rotation.from_rotvec(values[:3]).as_matrix()
  return Similarity(float(np.exp(values[6])), rotation, values[3:6])


def _logarithm(similarity: Similarity) -> np.ndarray:
  turn = transform.Rotation.from_matrix(similarity.rotation).as_rotvec()
  return np.concatenate(
    [turn, similarity.translation, [np.log(similarity.scale)]]
  )
