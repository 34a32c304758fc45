# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Rays against planes, boxes and ellipsoids, in JAX.

A ray is a camera ray (x, y, 1), so its parameter is camera-axis depth. Parts
come packed: their affine maps `matrix` [P, 3, 4] from camera axes to part
coordinates, `inverse_half` [P, 3], `present` [P], sorted by shape with
`counts` [3] of planes, boxes and spheres; rows beyond the sum are padding.
Loops run over parts, so one compiled program serves every world.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

NEAR_M = 0.02
_TINY = 1e-12
Triple = tuple[jax.Array, jax.Array, jax.Array]


class Parts(NamedTuple):
  """Packed parts of one frame; see the module docstring."""

  matrix: jax.Array
  inverse_half: jax.Array
  present: jax.Array
  counts: jax.Array


class Hit(NamedTuple):
  """Nearest surface: camera-axis depth (inf for none) and part (-1)."""

  depth: jax.Array
  part: jax.Array


def nearest(parts: Parts, x: jax.Array, y: jax.Array) -> Hit:
  """Nearest surface along camera rays (x, y, 1).

  Args:
    parts: packed parts.
    x: horizontal slopes, any shape.
    y: vertical slopes, same shape.

  Returns:
    Hit of that shape, int32 part index into the packed order.
  """

  def visit(test: Callable[..., jax.Array]) -> Callable[[int, Hit], Hit]:
    def body(j: int, best: Hit) -> Hit:
      m, scale = parts.matrix[j], parts.inverse_half[j]
      origin = [m[k, 3] * scale[k] for k in range(3)]
      ray = [(m[k, 0] * x + m[k, 1] * y + m[k, 2]) * scale[k] for k in range(3)]
      depth = test(origin, ray)
      closer = parts.present[j] & (depth < best.depth)
      return Hit(
        jnp.where(closer, depth, best.depth),
        jnp.where(closer, jnp.int32(j), best.part),
      )

    return body

  hit = Hit(jnp.full_like(x, jnp.inf), jnp.full(x.shape, -1, jnp.int32))
  start = jnp.int32(0)
  for shape, test in enumerate((_plane, _box, _sphere)):
    stop = start + parts.counts[shape]
    hit = jax.lax.fori_loop(start, stop, visit(test), hit)
    start = stop
  return hit


def in_shadow(
  parts: Parts,
  point: Triple,
  own: jax.Array,
  to_sun: jax.Array,
  casting: jax.Array,
) -> jax.Array:
  """Whether a box or sphere other than the point's own hides the sun.

  Args:
    parts: packed parts.
    point: camera-frame coordinates, three arrays of one shape.
    own: packed part index of each point (convex: it never shades itself
      where it faces the sun).
    to_sun: direction towards the sun in camera axes, [3].
    casting: int32 scalar, 1 if parts cast shadows, 0 if none does.

  Returns:
    bool of that shape.
  """

  def visit(test: Callable[..., jax.Array]) -> Callable[..., jax.Array]:
    def body(j: int, dark: jax.Array) -> jax.Array:
      m, scale = parts.matrix[j], parts.inverse_half[j]
      origin = [
        (m[k, 0] * point[0] + m[k, 1] * point[1] + m[k, 2] * point[2] + m[k, 3])
        * scale[k]
        for k in range(3)
      ]
      ray = [
        (m[k, 0] * to_sun[0] + m[k, 1] * to_sun[1] + m[k, 2] * to_sun[2])
        * scale[k]
        for k in range(3)
      ]
      hit = jnp.isfinite(test(origin, ray))
      return dark | (parts.present[j] & hit & (own != j))

    return body

  dark = jnp.zeros(own.shape, bool)
  start = parts.counts[0]
  for shape, test in enumerate((_box, _sphere), start=1):
    stop = start + parts.counts[shape]
    dark = jax.lax.fori_loop(
      start, start + casting * parts.counts[shape], visit(test), dark
    )
    start = stop
  return dark


def _away_from_zero(value: jax.Array) -> jax.Array:
  """A divisor: zero becomes a tiny positive number."""
  return jnp.where(jnp.abs(value) < _TINY, _TINY, value)


def _dot(a: list[jax.Array], b: list[jax.Array]) -> jax.Array:
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def _plane(origin: list[jax.Array], ray: list[jax.Array]) -> jax.Array:
  """Depth of the rectangle y = 0, |x| <= 1, |z| <= 1; inf if missed."""
  depth = -origin[1] / _away_from_zero(ray[1])
  inside = (jnp.abs(origin[0] + depth * ray[0]) <= 1.0) & (
    jnp.abs(origin[2] + depth * ray[2]) <= 1.0
  )
  return jnp.where(inside & (depth > NEAR_M), depth, jnp.inf)


def _box(origin: list[jax.Array], ray: list[jax.Array]) -> jax.Array:
  """Depth of the cube [-1, 1]^3, from outside or inside; inf if missed."""
  enter = jnp.full_like(ray[0], -jnp.inf)
  leave = jnp.full_like(ray[0], jnp.inf)
  for o, d in zip(origin, ray, strict=True):
    inverse = 1.0 / _away_from_zero(d)
    a, b = (-1.0 - o) * inverse, (1.0 - o) * inverse
    low, high = jnp.minimum(a, b), jnp.maximum(a, b)
    enter, leave = jnp.maximum(enter, low), jnp.minimum(leave, high)
  depth = jnp.where(enter > NEAR_M, enter, leave)
  return jnp.where((enter <= leave) & (depth > NEAR_M), depth, jnp.inf)


def _sphere(origin: list[jax.Array], ray: list[jax.Array]) -> jax.Array:
  """Depth of the unit sphere, from outside or inside; inf if missed.

  Measured from the ray's closest approach, where nothing cancels.
  """
  square = jnp.maximum(_dot(ray, ray), _TINY)
  middle = -_dot(origin, ray) / square
  closest = [o + middle * d for o, d in zip(origin, ray, strict=True)]
  gap = 1.0 - _dot(closest, closest)
  reach = jnp.sqrt(jnp.maximum(gap, 0.0) / square)
  depth = jnp.where(middle - reach > NEAR_M, middle - reach, middle + reach)
  return jnp.where((gap >= 0.0) & (depth > NEAR_M), depth, jnp.inf)
