# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Colour of a frame: textures, sun, sky, shadows, haze, smooth edges.

Lambert shading in linear light: sky light by the normal's elevation plus the
sun where no box or sphere hides it. All directions are in camera axes. Edges
are smoothed by exact coverage at the four corners of each pixel; a corner
that shows another surface than the pixel's centre takes the colour of the
neighbouring pixel that shows that surface.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from protocols.calibration import intersect
from protocols.calibration import textures as textures_lib

_MIN_SLOPE = 0.02


class View(NamedTuple):
  """One frame's camera and light.

  Attributes:
    camera: [4] fx, fy, cx, cy.
    to_sun: unit vector towards the sun, camera axes.
    up: unit vector upwards, camera axes.
    sky: [8] zenith and horizon colours (linear), ambient share, 1 / haze_m.
    casting: int32 scalar, 1 if boxes and spheres cast shadows, else 0.
  """

  camera: jax.Array
  to_sun: jax.Array
  up: jax.Array
  sky: jax.Array
  casting: jax.Array


def slopes(
  camera: jax.Array, size: tuple[int, int], *, dx: float, dy: float
) -> tuple[jax.Array, jax.Array]:
  """Ray slopes of all pixels of (height, width), moved by (dx, dy) pixels."""
  rows = jnp.arange(size[0], dtype=camera.dtype)[:, None] + dy
  columns = jnp.arange(size[1], dtype=camera.dtype)[None] + dx
  shape = (size[0], size[1])
  x = jnp.broadcast_to((columns - camera[2]) / camera[0], shape)
  y = jnp.broadcast_to((rows - camera[3]) / camera[1], shape)
  return x, y


def colors(
  parts: intersect.Parts,
  texture: jax.Array,
  table: jax.Array,
  view: View,
  hit: intersect.Hit,
) -> tuple[jax.Array, jax.Array, jax.Array]:
  """Red, green and blue of a frame.

  Args:
    parts: packed parts.
    texture: [P] texture of each part.
    table: [K, columns] packed textures.
    view: camera and light.
    hit: nearest surfaces at the pixel centres, [H, W].

  Returns:
    Three uint8 [H, W]; interleaving them here would cost more than shading.
  """
  size = (hit.part.shape[0], hit.part.shape[1])
  x, y = slopes(view.camera, size, dx=0.0, dy=0.0)
  linear, key = _shade(parts, texture, table, view, hit, x, y)
  # Without the barrier the compiler shades again for every use of a colour.
  shown, key = jax.lax.optimization_barrier(
    ([jnp.sqrt(c) for c in linear], key)
  )
  shown = _smooth_edges(parts, view, shown, key, size)
  red, green, blue = (
    jnp.clip(c * 255.0 + 0.5, 0.0, 255.0).astype(jnp.uint8) for c in shown
  )
  return red, green, blue


def _shade(
  parts: intersect.Parts,
  texture: jax.Array,
  table: jax.Array,
  view: View,
  hit: intersect.Hit,
  x: jax.Array,
  y: jax.Array,
) -> tuple[list[jax.Array], jax.Array]:
  """Linear colour of each pixel, and the key of the surface it shows."""
  depth = jnp.where(hit.part < 0, 1.0, hit.depth)
  m, point, axis = _material(parts, hit.part, depth, x, y)
  normal = _normal(parts, hit.part, point, axis)
  foot = _footprint(m, depth, x, y, normal, view.camera)
  row = texture[jnp.maximum(hit.part, 0)]
  albedo = textures_lib.evaluate(table, row, point, foot, axis)
  facing = _camera_normal(m, normal, x, y)
  up = sum(n * u for n, u in zip(facing, view.up, strict=True))
  sun = sum(n * s for n, s in zip(facing, view.to_sun, strict=True))
  sun = jnp.maximum(sun, 0.0)
  where = (x * depth, y * depth, depth)
  dark = intersect.in_shadow(parts, where, hit.part, view.to_sun, view.casting)
  sun = jnp.where(dark, 0.0, sun)
  ambient = view.sky[6]
  light = ambient * (0.8 + 0.2 * up) + (1.25 - ambient) * sun
  sky = _sky(view, x, y)
  clear = jnp.exp(-jnp.square(depth * view.sky[7]))
  clear = jnp.where(hit.part < 0, 0.0, clear)
  mixed = [
    s + (c * light - s) * clear for c, s in zip(albedo, sky, strict=True)
  ]
  return mixed, _key(hit.part, axis, dark)


def _material(
  parts: intersect.Parts,
  index: jax.Array,
  depth: jax.Array,
  x: jax.Array,
  y: jax.Array,
) -> tuple[list[list[jax.Array]], intersect.Triple, jax.Array]:
  """Map into the part seen, material point, and axis of a flat face."""
  part = jnp.maximum(index, 0)
  m = [[parts.matrix[part, r, c] for c in range(4)] for r in range(3)]
  px, py, pz = ((r[0] * x + r[1] * y + r[2]) * depth + r[3] for r in m)
  size = [
    jnp.abs(p * parts.inverse_half[part, k]) for k, p in enumerate((px, py, pz))
  ]
  return m, (px, py, pz), _flat_axis(parts, index, size)


def _normal(
  parts: intersect.Parts,
  index: jax.Array,
  point: intersect.Triple,
  axis: jax.Array,
) -> intersect.Triple:
  """Outward normal in part coordinates, of any length."""
  part = jnp.maximum(index, 0)
  scale = [parts.inverse_half[part, k] for k in range(3)]
  nx, ny, nz = (
    jnp.where(
      axis < 0,
      p * s * s,
      jnp.where(axis == k, jnp.where(p > 0, 1.0, -1.0), 0.0),
    )
    for k, (p, s) in enumerate(zip(point, scale, strict=True))
  )
  return nx, ny, nz


def _flat_axis(
  parts: intersect.Parts, part: jax.Array, size: list[jax.Array]
) -> jax.Array:
  """Axis of a flat face's normal: 1 on planes, -1 on spheres."""
  face = jnp.where(size[0] >= jnp.maximum(size[1], size[2]), 0, 2)
  face = jnp.where(size[1] > jnp.maximum(size[0], size[2]), 1, face)
  face = jnp.where(part < parts.counts[0], 1, face)
  curved = part >= parts.counts[0] + parts.counts[1]
  return jnp.where(curved, -1, face).astype(jnp.int32)


def _footprint(
  m: list[list[jax.Array]],
  depth: jax.Array,
  x: jax.Array,
  y: jax.Array,
  normal: intersect.Triple,
  camera: jax.Array,
) -> intersect.Triple:
  """Extent of the pixel on the tangent plane, per part axis, in metres."""
  ray = [r[0] * x + r[1] * y + r[2] for r in m]
  slope = sum(n * d for n, d in zip(normal, ray, strict=True))
  length = jnp.sqrt(sum(n * n for n in normal) * sum(d * d for d in ray))
  least = _MIN_SLOPE * length + 1e-9
  slope = jnp.where(jnp.abs(slope) < least, least, slope)
  extent = [jnp.zeros_like(x)] * 3
  for column, focal in ((0, camera[0]), (1, camera[1])):
    step = [r[column] / focal for r in m]
    turn = sum(n * s for n, s in zip(normal, step, strict=True)) / slope
    extent = [
      e + jnp.abs(depth * (s - turn * d))
      for e, s, d in zip(extent, step, ray, strict=True)
    ]
  return extent[0], extent[1], extent[2]


def _camera_normal(
  m: list[list[jax.Array]],
  normal: intersect.Triple,
  x: jax.Array,
  y: jax.Array,
) -> list[jax.Array]:
  """Unit normal in camera axes, turned towards the camera."""
  n = [sum(m[r][c] * normal[r] for r in range(3)) for c in range(3)]
  sign = jnp.where(n[0] * x + n[1] * y + n[2] > 0.0, -1.0, 1.0)
  scale = sign / jnp.sqrt(n[0] ** 2 + n[1] ** 2 + n[2] ** 2 + 1e-12)
  return [v * scale for v in n]


def _sky(view: View, x: jax.Array, y: jax.Array) -> list[jax.Array]:
  """Sky colour of each ray, linear."""
  rise = view.up[0] * x + view.up[1] * y + view.up[2]
  rise = rise / jnp.sqrt(x * x + y * y + 1.0)
  share = jnp.clip(rise * 1.8, 0.0, 1.0)
  share = share * (2.0 - share)
  return [
    view.sky[3 + k] + (view.sky[k] - view.sky[3 + k]) * share for k in range(3)
  ]


def _key(part: jax.Array, axis: jax.Array, dark: jax.Array) -> jax.Array:
  """One number per surface that should look uniform up to its texture."""
  return part * 8 + (axis + 1) * 2 + dark.astype(jnp.int32)


def _smooth_edges(
  parts: intersect.Parts,
  view: View,
  shown: list[jax.Array],
  key: jax.Array,
  size: tuple[int, int],
) -> list[jax.Array]:
  """Blends the colours of edge pixels by coverage at the pixel's corners."""
  corners = (size[0] + 1, size[1] + 1)
  x, y = slopes(view.camera, corners, dx=-0.5, dy=-0.5)
  hit = intersect.nearest(parts, x, y)
  depth = jnp.where(hit.part < 0, 1.0, hit.depth)
  _, _, axis = _material(parts, hit.part, depth, x, y)
  where = (x * depth, y * depth, depth)
  dark = intersect.in_shadow(parts, where, hit.part, view.to_sun, view.casting)
  corner_key = jax.lax.optimization_barrier(_key(hit.part, axis, dark))
  total = [jnp.zeros_like(c) for c in shown]
  for sy, sx in ((-1, -1), (-1, 1), (1, -1), (1, 1)):
    row, column = (sy + 1) // 2, (sx + 1) // 2
    wanted = corner_key[row : row + size[0], column : column + size[1]]
    pick = shown
    for dy, dx in ((sy, sx), (sy, 0), (0, sx), (0, 0)):
      match = _shift(key, dy, dx) == wanted
      pick = [
        jnp.where(match, _shift(c, dy, dx), p)
        for c, p in zip(shown, pick, strict=True)
      ]
    total = [t + 0.25 * p for t, p in zip(total, pick, strict=True)]
  return total


def _shift(image: jax.Array, dy: int, dx: int) -> jax.Array:
  """The neighbour at (row + dy, column + dx); borders repeat."""
  if dy == 0 and dx == 0:
    return image
  padded = jnp.pad(image, 1, mode="edge")
  height, width = image.shape
  return padded[1 + dy : 1 + dy + height, 1 + dx : 1 + dx + width]
