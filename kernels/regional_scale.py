# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Dispersion of the local depth scale between two views.

The target frame is cut into grid x grid cells with real-valued bounds: cell i
holds rows in [i h/grid, (i+1) h/grid), columns likewise. A cell with enough
correspondences has the median of observed over projected depth as its scale.
The result is the median absolute deviation of the logarithms of these scales:
0 for a frame that is wrong by one factor only; lower is better.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from kernels import grid_cells, grouped_median, numerics
from kernels.correspondence import Correspondences


class RegionalScale(NamedTuple):
  """Dispersion and what it rests on.

  Attributes:
    value: median |log rho - median log rho|; 0 where not `valid`.
    valid: bool, enough cells had enough correspondences.
    num_cells: int32, cells with enough correspondences.
    support: [grid, grid] int32 correspondences for each cell.
    ratio: [grid, grid] median of o / z; 1 in cells without enough of them.
  """

  value: Array
  valid: Array
  num_cells: Array
  support: Array
  ratio: Array


def regional_scale(
  found: Correspondences,
  target_size: Array,
  *,
  grid: int,
  min_support: int,
  min_cells: int,
  depth_floor: float,
) -> RegionalScale:
  """Regional scale of one directional item.

  Args:
    found: correspondences into the target frame.
    target_size: [2] int32 (h, w) of the target frame without padding.
    grid: cells on each side, static.
    min_support: correspondences that a cell needs, inclusive.
    min_cells: cells that a value needs, inclusive.
    depth_floor: floor of z and of the medians, for example 1e-8.

  Returns:
    `RegionalScale`. With an even number of cells (or of ratios in a cell) the
    median is the mean of the two middle values. The gradient flows through
    the selected ratios.

  Source: Orbia specification, section 7.4.
  """
  cell = grid_cells.cell_index(
    found.target_row, found.target_column, target_size, grid=grid
  )
  cell = jnp.where(found.valid, cell, -1)
  ratio = found.observed / jnp.maximum(found.projected, depth_floor)

  medians = grouped_median.grouped_median(ratio, cell, num_groups=grid * grid)
  used = medians.count >= min_support
  scale = jnp.where(used, medians.value, 1)
  log_scale = jnp.log(jnp.maximum(scale, depth_floor))
  spread = numerics.masked_mad(log_scale, used)
  valid = spread.count >= min_cells
  return RegionalScale(
    value=jnp.where(valid, spread.value, 0),
    valid=valid,
    num_cells=spread.count,
    support=medians.count.reshape(grid, grid),
    ratio=scale.reshape(grid, grid),
  )
