# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Joins reconstructions of overlapping chunks of a clip into one.

Every chunk comes in a frame and scale of its own. Shared frames, unprojected
in both chunks, give a similarity from each chunk to the one before; chained,
they take all chunks to the first. Nothing here knows which network made the
chunks, so a recorded sequence can be replayed through the same code.

A similarity takes p to s R p + t. Camera-to-world poses, OpenCV axes, depth
along the camera axis with NaN = invalid, pixel centres at integers. float64
throughout. Source: specs/orbia.md section 10.2.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from perception import errors
from perception.degenerate import DegenerateError
from perception.neural.conventions import orthonormalise

HUBER_DELTA = 0.1
MAX_ITERATIONS = 5
TOLERANCE = 1e-9
CONFIDENCE_FRACTION = 0.1
_MIN_PAIRS = 16


class Similarity(NamedTuple):
  """p -> scale * rotation @ p + translation."""

  scale: float
  rotation: np.ndarray
  translation: np.ndarray

  @classmethod
  def identity(cls) -> Similarity:
    """Leaves everything where it is."""
    return cls(1.0, np.eye(3), np.zeros(3))

  def points(self, points: np.ndarray) -> np.ndarray:
    """[..., 3] points moved."""
    return self.scale * points @ self.rotation.T + self.translation

  def poses(self, c2w: np.ndarray) -> np.ndarray:
    """[N, 4, 4] cameras moved; their rotations stay rotations."""
    moved = np.array(c2w, np.float64)
    moved[:, :3, :3] = self.rotation @ moved[:, :3, :3]
    moved[:, :3, 3] = self.points(moved[:, :3, 3])
    return moved

  def after(self, first: Similarity) -> Similarity:
    """The similarity that applies `first` and then this one."""
    return Similarity(
      self.scale * first.scale,
      orthonormalise(self.rotation @ first.rotation),
      self.points(first.translation),
    )


@dataclasses.dataclass(frozen=True, eq=False)
class Chunk:
  """A reconstruction of consecutive frames.

  Attributes:
    depth: [n, h, w], NaN = invalid.
    intrinsics: [n, 3, 3] at (h, w).
    c2w: [n, 4, 4].
    confidence: [n, h, w] >= 0, or None.
  """

  depth: np.ndarray
  intrinsics: np.ndarray
  c2w: np.ndarray
  confidence: np.ndarray | None = None

  def __len__(self) -> int:
    """Frames."""
    return len(self.depth)

  def rows(self, start: int, stop: int) -> Chunk:
    """Frames start..stop-1."""
    confidence = self.confidence
    return Chunk(
      self.depth[start:stop],
      self.intrinsics[start:stop],
      self.c2w[start:stop],
      None if confidence is None else confidence[start:stop],
    )

  def moved(self, similarity: Similarity) -> Chunk:
    """The chunk in another frame and scale."""
    depth = (self.depth * similarity.scale).astype(self.depth.dtype)
    return dataclasses.replace(
      self, depth=depth, c2w=similarity.poses(self.c2w)
    )


def plan(count: int, *, chunk: int, overlap: int) -> list[tuple[int, int]]:
  """Frame ranges [start, stop) of the chunks of a clip.

  Step = chunk - overlap; ceil((count - overlap) / step) chunks, at least one;
  the last may be shorter.

  Raises:
    InputError: overlap not in [1, chunk) or an empty clip.
  """
  if not (0 < overlap < chunk and count > 0):
    raise errors.InputError(
      "settings",
      "chunk, overlap",
      found=f"{count} frames in chunks of {chunk} that share {overlap}",
      expected="frames, and 0 < overlap < chunk",
    )
  step = chunk - overlap
  number = max(1, -(-(count - overlap) // step))
  return [(k * step, min(k * step + chunk, count)) for k in range(number)]


def fit(
  source: np.ndarray, target: np.ndarray, weight: np.ndarray
) -> Similarity:
  """The similarity that minimises sum w |s R source + t - target|^2.

  Args:
    source: [N, 3].
    target: [N, 3].
    weight: [N] >= 0.

  Raises:
    DegenerateError: the weighted points lie on one point or line, so that
      scale or rotation is free.
  """
  weight = weight / max(float(weight.sum()), np.finfo(np.float64).tiny)
  mean_source, mean_target = weight @ source, weight @ target
  centred = source - mean_source
  covariance = (target - mean_target).T @ (weight[:, None] * centred)
  u, singular, vt = np.linalg.svd(covariance)
  variance = float(weight @ np.einsum("ij,ij->i", centred, centred))
  if variance <= 0.0 or singular[1] <= 1e-12 * max(singular[0], 1e-300):
    raise DegenerateError(
      "chunk alignment",
      "shared points",
      found="points on one line or at one place",
      expected="points that span a plane",
    )
  sign = np.array([1.0, 1.0, np.sign(np.linalg.det(u @ vt))])
  rotation = (u * sign) @ vt
  scale = float(singular @ sign) / variance
  return Similarity(
    scale, rotation, mean_target - scale * rotation @ mean_source
  )


def fit_robust(
  source: np.ndarray, target: np.ndarray, weight: np.ndarray
) -> Similarity:
  """`fit`, reweighted against outliers by Huber's rule.

  Residuals beyond `HUBER_DELTA` (target's unit) lose weight as delta / r; at
  most `MAX_ITERATIONS` rounds, or until no entry moves by more than
  `TOLERANCE`.

  Raises:
    DegenerateError: see `fit`.
  """
  current = fit(source, target, weight)
  for _ in range(MAX_ITERATIONS):
    residual = np.linalg.norm(current.points(source) - target, axis=1)
    huber = HUBER_DELTA / np.maximum(residual, HUBER_DELTA)
    new = fit(source, target, weight * huber)
    change = max(
      abs(new.scale - current.scale),
      float(np.abs(new.rotation - current.rotation).max()),
      float(np.abs(new.translation - current.translation).max()),
    )
    current = new
    if change < TOLERANCE:
      break
  return current


def unproject(chunk: Chunk) -> np.ndarray:
  """[n, h, w, 3] world points; NaN where depth is."""
  _, height, width = chunk.depth.shape
  y, x = np.mgrid[:height, :width].astype(np.float64)
  pixels = np.stack([x, y, np.ones_like(x)], axis=-1)
  rays = pixels.reshape(-1, 3) @ np.swapaxes(
    np.linalg.inv(np.asarray(chunk.intrinsics, np.float64)), 1, 2
  )
  camera = rays * chunk.depth.reshape(len(chunk), -1, 1)
  world = camera @ np.swapaxes(chunk.c2w[:, :3, :3], 1, 2)
  world += chunk.c2w[:, None, :3, 3]
  return world.reshape(*chunk.depth.shape, 3)


def align(earlier: Chunk, later: Chunk) -> Similarity:
  """The similarity from the later to the earlier of two views of one scene.

  Args:
    earlier: the shared frames as the earlier chunk has them.
    later: the same frames as the later chunk has them.

  Raises:
    DegenerateError: fewer than 16 pixels are trusted in both, or see `fit`.
  """
  valid = np.isfinite(earlier.depth) & np.isfinite(later.depth)
  weight = np.ones(valid.shape)
  if earlier.confidence is not None and later.confidence is not None:
    a = earlier.confidence.astype(np.float64)
    b = later.confidence.astype(np.float64)
    least = CONFIDENCE_FRACTION * min(np.median(a), np.median(b))
    valid &= (a > least) & (b > least)
    weight = np.sqrt(a * b)
  if np.count_nonzero(valid) < _MIN_PAIRS:
    raise DegenerateError(
      "chunk alignment",
      "shared frames",
      found=f"{np.count_nonzero(valid)} pixels trusted in both chunks",
      expected=f"at least {_MIN_PAIRS}",
    )
  target, source = unproject(earlier)[valid], unproject(later)[valid]
  return fit_robust(source, target, weight[valid])


def chain(
  chunks: Sequence[Chunk], ranges: Sequence[tuple[int, int]]
) -> list[Similarity]:
  """From every chunk to the first, by the frames that neighbours share.

  Args:
    chunks: in the order of the clip.
    ranges: their frame ranges, as from `plan`.

  Raises:
    InputError: lengths do not fit the ranges.
    DegenerateError: two chunks cannot be aligned.
  """
  lengths = [stop - start for start, stop in ranges]
  if [len(chunk) for chunk in chunks] != lengths:
    raise errors.InputError(
      "chunk alignment",
      "chunks",
      found=f"lengths {[len(chunk) for chunk in chunks]}",
      expected=f"lengths {lengths}",
    )
  totals = [Similarity.identity()]
  for row in range(1, len(chunks)):
    shared = ranges[row - 1][1] - ranges[row][0]
    before = chunks[row - 1]
    step = align(
      before.rows(len(before) - shared, len(before)),
      chunks[row].rows(0, shared),
    )
    totals.append(totals[-1].after(step))
  return totals


def join(
  chunks: Sequence[Chunk],
  ranges: Sequence[tuple[int, int]],
  totals: Sequence[Similarity],
) -> Chunk:
  """One reconstruction in the first chunk's frame and scale.

  Where chunks overlap, the later one supplies the frame.

  Args:
    chunks: in the order of the clip.
    ranges: their frame ranges.
    totals: from every chunk to the first, as from `chain`.
  """
  ends = [start for start, _ in ranges[1:]] + [ranges[-1][1]]
  known = all(chunk.confidence is not None for chunk in chunks)
  shape = (ranges[-1][1], *chunks[0].depth.shape[1:])
  depth = np.empty(shape, chunks[0].depth.dtype)
  confidence = np.empty(shape, np.float32) if known else None
  cameras = []
  # Written in place: a minute of video takes a gigabyte once, not twice.
  for chunk, (start, _), end, total in zip(
    chunks, ranges, ends, totals, strict=True
  ):
    own = chunk.rows(0, end - start)
    np.multiply(own.depth, total.scale, out=depth[start:end], casting="unsafe")
    if confidence is not None:
      confidence[start:end] = own.confidence
    cameras.append((own.intrinsics, total.poses(own.c2w)))
  return Chunk(
    depth,
    np.concatenate([intrinsics for intrinsics, _ in cameras]),
    np.concatenate([c2w for _, c2w in cameras]),
    confidence,
  )
