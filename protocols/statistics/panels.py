# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""How a panel of scores reacts: weights, rank correlations, subsamples.

Conventions: scores are [s] over systems, higher is better, float64. A rank
correlation is NaN where a vector is constant. Source: specs/egogeneval.md
sections 6.5 and 7.7.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from kernels import ranks


def correlations(
  panels: np.ndarray, reference: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
  """Spearman and Kendall of each panel with a reference.

  Args:
    panels: [r, s].
    reference: [s], or [r, s] for a reference of each panel's own.

  Returns:
    [r] rho and [r] tau-b.
  """
  with jax.enable_x64(True):
    others = np.broadcast_to(reference, np.shape(panels))
    rho, tau = _correlations(
      jnp.asarray(panels, jnp.float64), jnp.asarray(others, jnp.float64)
    )
    return np.asarray(rho), np.asarray(tau)


@jax.jit
def _correlations(panels: Array, references: Array) -> tuple[Array, Array]:
  def one(pair: tuple[Array, Array]) -> tuple[Array, Array]:
    x, y = pair
    ones = jnp.ones_like(x)
    rho = ranks.spearman(x, y, ones)
    tau = ranks.kendall_tau_b(x, y, ones)
    return (
      jnp.where(rho.defined, rho.value, jnp.nan),
      jnp.where(tau.defined, tau.value, jnp.nan),
    )

  return jax.lax.map(one, (panels, references), batch_size=1024)


def replicate_correlations(
  panels: np.ndarray, reference: np.ndarray
) -> dict[str, list[float]]:
  """Median and 95 % range of the rank correlations of many panels."""
  rho, tau = correlations(panels, reference)
  return {
    "spearman": spread(rho),
    "kendall_tau_b": spread(tau),
  }


def spread(values: np.ndarray) -> list[float]:
  """[2.5 %, median, 97.5 %] of the values that are numbers."""
  some = values[np.isfinite(values)]
  if not some.size:
    return [float("nan")] * 3
  return [float(v) for v in np.quantile(some, [0.025, 0.5, 0.975])]


def lambda_sweep(
  first: np.ndarray, second: np.ndarray, grid: Sequence[float]
) -> list[dict[str, float]]:
  """Rankings by `lambda * first + (1 - lambda) * second`.

  Args:
    first: [s] scores.
    second: [s] scores.
    grid: values of lambda.

  Returns:
    For each lambda: `lambda`, `spearman` and `kendall_tau_b` with
    lambda = 0.5, and `top`, the number of the first system.
  """
  mixes = np.array([w * first + (1 - w) * second for w in grid])
  rho, tau = correlations(mixes, (first + second) / 2.0)
  return [
    {
      "lambda": float(w),
      "spearman": float(r),
      "kendall_tau_b": float(t),
      "top": int(np.argmax(mix)),
    }
    for w, r, t, mix in zip(grid, rho, tau, mixes, strict=True)
  ]


def drop_one(parts: Mapping[str, np.ndarray]) -> list[dict[str, object]]:
  """Rankings by the mean of all parts but one.

  Args:
    parts: [s] scores by name.

  Returns:
    For each part: `dropped`, `spearman` and `kendall_tau_b` with the mean of
    all, `top`.
  """
  names = list(parts)
  scores = np.array([parts[name] for name in names])
  without = (scores.sum(axis=0) - scores) / (len(names) - 1)
  rho, tau = correlations(without, scores.mean(axis=0))
  return [
    {
      "dropped": name,
      "spearman": float(r),
      "kendall_tau_b": float(t),
      "top": int(np.argmax(row)),
    }
    for name, r, t, row in zip(names, rho, tau, without, strict=True)
  ]


def dirichlet_weights(*, seed: int, draws: int, parts: int) -> np.ndarray:
  """[draws, parts] weights, uniform on the simplex: Dirichlet(1, ..., 1).

  Draw `i` depends on the seed and `i` only.
  """
  with jax.enable_x64(True):
    key = jax.random.key(seed, impl="threefry2x32")

    def one(number: Array) -> Array:
      own = jax.random.fold_in(key, number)
      gaps = jax.random.exponential(own, (parts,), jnp.float64)
      return gaps / jnp.sum(gaps)

    numbers = jnp.arange(draws, dtype=jnp.uint32)
    return np.asarray(jax.jit(jax.vmap(one))(numbers))
