# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Cells of a g x g grid laid over a frame with real-valued bounds.

Cell i of an axis of length n holds the pixels in [i n/g, (i+1) n/g), whether
or not g divides n: pixel p belongs to floor(p g / n).
"""

from __future__ import annotations

import chex
import jax.numpy as jnp
from jax import Array

# Quotients of integers below 2^24 are floored correctly in float32: the gap
# below the next integer exceeds the rounding error.
_EXACT = 1 << 24


def cell_index(row: Array, column: Array, size: Array, *, grid: int) -> Array:
  """Cell of each pixel, row-major; the last cell for pixels beyond the frame.

  Args:
    row: [N] int32, not negative.
    column: [N] int32, not negative.
    size: [2] int32 (h, w) of the frame that the pixels are counted on; pixel
      numbers and sizes times `grid` stay below 2^24.
    grid: g, static.

  Returns:
    [N] int32 in 0..g*g-1.
  """
  chex.assert_rank([row, column], 1)
  chex.assert_shape(size, (2,))
  chex.assert_type([row, column, size], int)
  down = _along(row, size[0], grid)
  return down * grid + _along(column, size[1], grid)


def _along(pixel: Array, length: Array, grid: int) -> Array:
  # Integer division is not vectorised on a CPU; this is ten times faster.
  scaled = jnp.minimum(pixel * grid, _EXACT - 1).astype(jnp.float32)
  cell = jnp.floor(scaled / length.astype(jnp.float32)).astype(jnp.int32)
  return jnp.minimum(cell, grid - 1)
