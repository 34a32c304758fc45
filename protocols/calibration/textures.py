# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Procedural textures of the calibration world.

A texture is a function of the material coordinates of a surface point, in
metres, so it sticks to its body whatever the body does. It mixes two colours
by a value in [-1, 1] that adds up

* a cell pattern (checker parity, or one random tint per brick or tile),
* value noise with four octaves, the strongest contribution to trackability,

and draws joints between the cells. Every term is faded by the size of the
pixel's footprint before it would alias. Colours are sRGB in [0, 1].
Everything is a deterministic function of the fields below.
"""

from __future__ import annotations

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np

Color = tuple[float, float, float]
Cell = tuple[float, float, float]

OCTAVES = 4
_PRIMES = (0x8DA6B343, 0xD8163841, 0xCB1AB31F)
# Columns of the packed table, in this order.
_WIDTH = 20


@dataclasses.dataclass(frozen=True)
class Texture:
  """One material.

  Attributes:
    color_a: colour at value -1, sRGB.
    color_b: colour at value +1, sRGB.
    joint_color: colour of the joints between cells, sRGB.
    cell: size of a pattern cell along x, y, z in metres; infinite along an
      axis that the pattern ignores.
    parity: weight of the alternating checker sign of the cells.
    tint: weight of one random value per cell.
    joint: width of the joints as a fraction of the cell; 0 for none.
    shift: 1 to shift every other row by half a cell (bricks), else 0.
    noise: weight of the value noise.
    noise_period: lattice period of its coarsest octave in metres.
    seed: seed of tint and noise.
  """

  color_a: Color
  color_b: Color
  joint_color: Color = (0.5, 0.5, 0.5)
  cell: Cell = (math.inf, math.inf, math.inf)
  parity: float = 0.0
  tint: float = 0.0
  joint: float = 0.0
  shift: float = 0.0
  noise: float = 0.6
  noise_period: float = 0.5
  seed: int = 0

  def row(self) -> np.ndarray:
    """The texture as one row of the packed table, float32 [20]."""
    frequency = [1.0 / size for size in self.cell]
    row = np.zeros(_WIDTH, np.float32)
    row[0:3] = [to_linear(c) for c in self.color_a]
    row[3:6] = [to_linear(c) for c in self.color_b]
    row[6:9] = [to_linear(c) for c in self.joint_color]
    row[9:12] = frequency
    row[12:17] = self.parity, self.tint, self.joint, self.shift, self.noise
    row[17] = 1.0 / self.noise_period
    row[18] = self.seed % 65536
    return row


def to_linear(value: float) -> float:
  """sRGB value to linear light by the power 2 (both in [0, 1])."""
  return value**2


def checker(
  color_a: Color, color_b: Color, *, cell: float, seed: int = 0
) -> Texture:
  """A soft checkerboard with grain."""
  return Texture(
    color_a,
    color_b,
    cell=(cell, cell, cell),
    parity=0.5,
    noise=0.75,
    noise_period=cell,
    seed=seed,
  )


def bricks(
  color_a: Color, color_b: Color, *, width: float, seed: int = 0
) -> Texture:
  """Rows of bricks twice as wide as high, each with its own tint."""
  return Texture(
    color_a,
    color_b,
    joint_color=(0.87, 0.84, 0.79),
    cell=(width, width / 2, width),
    tint=0.7,
    joint=0.07,
    shift=1.0,
    noise=0.55,
    noise_period=width / 2,
    seed=seed,
  )


def tiles(
  color_a: Color, color_b: Color, *, cell: float, seed: int = 0
) -> Texture:
  """Square slabs with narrow joints, each with its own tint."""
  return Texture(
    color_a,
    color_b,
    joint_color=(0.62, 0.60, 0.57),
    cell=(cell, cell, cell),
    tint=0.55,
    joint=0.035,
    noise=0.7,
    noise_period=cell / 2,
    seed=seed,
  )


def speckle(
  color_a: Color, color_b: Color, *, period: float, seed: int = 0
) -> Texture:
  """Irregular blobs only: the best surface for SIFT and optical flow."""
  return Texture(color_a, color_b, noise=1.7, noise_period=period, seed=seed)


def evaluate(
  table: jax.Array,
  index: jax.Array,
  point: tuple[jax.Array, jax.Array, jax.Array],
  footprint: tuple[jax.Array, jax.Array, jax.Array],
  flat_axis: jax.Array,
) -> tuple[jax.Array, jax.Array, jax.Array]:
  """Linear-light colour of surface points.

  Args:
    table: [K, 20] rows of `Texture.row`.
    index: [n] int32 texture of each point.
    point: x, y, z material coordinates in metres, each [n].
    footprint: extent of the pixel along each axis in metres, each [n].
    flat_axis: [n] int32 axis of a flat face's normal, whose coordinate the
      cells ignore; -1 on curved surfaces.

  Returns:
    Red, green and blue, each [n] in [0, 1].
  """
  column = [table[index, k] for k in range(_WIDTH - 1)]
  seed = column[18].astype(jnp.uint32)
  cells, joint = _cell_pattern(column, seed, point, footprint, flat_axis)
  grain = column[16] * _noise(column[17], seed, point, footprint)
  mix = jnp.clip(0.5 + 0.5 * (cells + grain), 0.0, 1.0)
  red, green, blue = (
    (a + (b - a) * mix) * (1 - joint) + c * joint
    for a, b, c in zip(column[0:3], column[3:6], column[6:9], strict=True)
  )
  return red, green, blue


def _cell_pattern(
  column: list[jax.Array],
  seed: jax.Array,
  point: tuple[jax.Array, ...],
  footprint: tuple[jax.Array, ...],
  flat_axis: jax.Array,
) -> tuple[jax.Array, jax.Array]:
  """Value of the cells in [-1, 1] and the share of joint in the pixel."""
  q = [
    jnp.where(flat_axis == k, 0.25, point[k] * column[9 + k]) for k in range(3)
  ]
  # Averages over less than a thousandth of a cell drown in rounding.
  width = [
    jnp.maximum(
      jnp.where(flat_axis == k, 0.0, footprint[k] * column[9 + k]), 1e-3
    )
    for k in range(3)
  ]
  odd_row = jnp.floor(q[1]) - 2.0 * jnp.floor(0.5 * jnp.floor(q[1]))
  q[0] = q[0] + 0.5 * column[15] * odd_row
  q[2] = q[2] + 0.5 * column[15] * odd_row
  parity = jnp.ones_like(q[0])
  clear = jnp.ones_like(q[0])
  for k in range(3):
    parity = parity * _square_wave(q[k], width[k])
    used = (flat_axis != k) & (column[9 + k] > 0.0)
    gap = 1.0 - _joint_share(q[k], width[k], column[14])
    clear = clear * jnp.where(used, gap, 1.0)
  index = [jnp.floor(v).astype(jnp.int32) for v in q]
  random = 2.0 * _lattice_value(index[0], index[1], index[2], seed) - 1.0
  widest = jnp.maximum(jnp.maximum(width[0], width[1]), width[2])
  tint = random * jnp.clip(2.0 - 2.5 * widest, 0.0, 1.0)
  joint = jnp.where(column[14] > 0.0, 1.0 - clear, 0.0)
  return column[12] * parity + column[13] * tint, joint


def _square_wave(x: jax.Array, width: jax.Array) -> jax.Array:
  """Box-filtered square wave of period 2 (+1 on [0, 1), -1 on [1, 2))."""

  def integral(v: jax.Array) -> jax.Array:
    half = 0.5 * v
    return 1.0 - jnp.abs(2.0 * (half - jnp.floor(half)) - 1.0)

  wave = (integral(x + 0.5 * width) - integral(x - 0.5 * width)) / width
  return wave * jnp.clip(3.0 - 2.0 * width, 0.0, 1.0)


def _joint_share(x: jax.Array, width: jax.Array, joint: jax.Array) -> jax.Array:
  """Box-filtered pulse train: share of [x +- width/2] inside the joints."""

  def integral(v: jax.Array) -> jax.Array:
    whole = jnp.floor(v)
    return joint * whole + jnp.minimum(v - whole, joint)

  share = integral(x + 0.5 * width) - integral(x - 0.5 * width)
  return jnp.clip(share / width, 0.0, 1.0)


def _noise(
  frequency: jax.Array,
  seed: jax.Array,
  point: tuple[jax.Array, ...],
  footprint: tuple[jax.Array, ...],
) -> jax.Array:
  """Value noise in about [-1, 1]; octaves below two pixels are left out."""
  widest = jnp.maximum(jnp.maximum(footprint[0], footprint[1]), footprint[2])

  def add(octave: jax.Array, total: jax.Array) -> jax.Array:
    level = octave.astype(frequency.dtype)
    scale = frequency * jnp.exp2(level)
    fade = jnp.clip(0.5 / (widest * scale + 1e-9) - 1.0, 0.0, 1.0)
    coordinates = [p * scale + 17.31 * level for p in point]
    value = _smooth_lattice(coordinates, seed + octave.astype(jnp.uint32))
    return total + 0.62 * 0.85**level * fade * value

  # One loop body compiles faster than four copies of it, and runs as fast.
  return jax.lax.fori_loop(0, OCTAVES, add, jnp.zeros_like(frequency))


def _smooth_lattice(q: list[jax.Array], seed: jax.Array) -> jax.Array:
  """Smoothly interpolated lattice of random values in [-1, 1]."""
  base = [jnp.floor(v) for v in q]
  t = [v - b for v, b in zip(q, base, strict=True)]
  t = [v * v * (3.0 - 2.0 * v) for v in t]
  i, j, k = (b.astype(jnp.int32) for b in base)
  planes = []
  for dk in (0, 1):
    rows = []
    for dj in (0, 1):
      low = _lattice_value(i, j + dj, k + dk, seed)
      high = _lattice_value(i + 1, j + dj, k + dk, seed)
      rows.append(low + (high - low) * t[0])
    planes.append(rows[0] + (rows[1] - rows[0]) * t[1])
  return 2.0 * (planes[0] + (planes[1] - planes[0]) * t[2]) - 1.0


def _lattice_value(
  i: jax.Array, j: jax.Array, k: jax.Array, seed: jax.Array
) -> jax.Array:
  """Hash of an integer lattice point to [0, 1)."""
  h = seed * jnp.uint32(0x9E3779B9)
  for v, prime in zip((i, j, k), _PRIMES, strict=True):
    h = h ^ (v.astype(jnp.uint32) * jnp.uint32(prime))
  h = (h ^ (h >> 15)) * jnp.uint32(0x2C1B3C6D)
  h = (h ^ (h >> 12)) * jnp.uint32(0x297A2D39)
  return ((h ^ (h >> 15)) >> 8).astype(jnp.float32) * jnp.float32(2.0**-24)
