# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Level and retention of one indicator over the time windows of a video.

Window values are scores on 0-100, higher is better. Declines are measured
against the first window; an improvement counts as no decline.
"""

from __future__ import annotations

from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
from jax import Array

from kernels import numerics


class Stability(NamedTuple):
  """Level and retention.

  Attributes:
    level: mean over the first and the later valid windows; 0 if not `valid`.
    retention: 100 minus the mean decline; 0 if not `valid`.
    valid: bool, the first window and at least one later window have a value.
    num_later: int32 later windows with a value.
  """

  level: Array
  retention: Array
  valid: Array
  num_later: Array


def window_means(values: Array, valid: Array, members: Array) -> numerics.Stat:
  """Mean of the valid samples of every window.

  Args:
    values: [N] samples.
    valid: [N] bool.
    members: [W, N] bool; windows may share samples.

  Returns:
    `Stat` of [W] means and counts.
  """
  chex.assert_equal_shape([values, valid])
  chex.assert_shape(members, (None, values.shape[0]))
  of_window = jax.vmap(numerics.masked_mean, in_axes=(None, 0))
  return of_window(values, members & valid)


def level_and_retention(windows: Array, valid: Array) -> Stability:
  """Level A and retention R of one indicator.

  A = mean of s_0 and all later s_b; R = 100 - mean_b max(0, s_0 - s_b).

  Args:
    windows: [W] window values in time order, W >= 1.
    valid: [W] bool; padding windows are not valid.

  Returns:
    `Stability`.

  Source: Orbia specification, section 8.3.
  """
  chex.assert_rank([windows, valid], 1)
  chex.assert_equal_shape([windows, valid])
  chex.assert_type([windows, valid], [float, bool])
  first = jnp.where(valid[0], windows[0], 0)
  decline = numerics.masked_mean(jnp.maximum(first - windows[1:], 0), valid[1:])
  enough = valid[0] & (decline.count > 0)
  level = numerics.masked_mean(windows, valid).value
  return Stability(
    level=jnp.where(enough, level, 0),
    retention=jnp.where(enough, 100 - decline.value, 0),
    valid=enough,
    num_later=decline.count,
  )
