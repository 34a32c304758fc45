# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Set pieces of the calibration scenes: materials, backdrops, subjects.

Bodies stand on the ground (y = 0) with their origin at the middle of their
footprint and head along their +z axis. Every subject carries enough texture
for SIFT and optical flow at 320 x 240.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np

from protocols.calibration import textures as tx
from protocols.calibration import world as world_lib
from protocols.calibration.world import Body, Part, Vec3

_CREAM: tx.Color = (0.96, 0.91, 0.80)
_PAINTS: tuple[tuple[tx.Color, tx.Color], ...] = (
  ((0.74, 0.27, 0.22), (0.98, 0.80, 0.62)),
  ((0.16, 0.38, 0.55), (0.80, 0.90, 0.90)),
  ((0.66, 0.38, 0.08), (0.99, 0.90, 0.62)),
  ((0.42, 0.26, 0.50), (0.92, 0.82, 0.92)),
  ((0.12, 0.45, 0.40), (0.84, 0.93, 0.78)),
)


@dataclasses.dataclass(frozen=True)
class Materials:
  """Textures of a set and their places in the world's list."""

  textures: tuple[tx.Texture, ...]
  ground: int = 0
  wall: int = 1
  leaves: int = 2
  hill: int = 3
  wood: int = 4
  paint: int = 5
  accent: int = 6
  dark: int = 7
  spare: int = 8


def materials(rng: np.random.Generator) -> Materials:
  """A soft palette; the subject's paint and all seeds are drawn."""
  seeds = rng.integers(0, 60_000, 9)
  first, second, third = rng.permutation(len(_PAINTS))[:3]
  seed = [int(s) for s in seeds]
  return Materials(
    (
      tx.tiles((0.70, 0.67, 0.62), (0.86, 0.83, 0.77), cell=0.9, seed=seed[0]),
      tx.bricks(
        (0.72, 0.50, 0.42), (0.90, 0.74, 0.62), width=0.6, seed=seed[1]
      ),
      tx.speckle(
        (0.24, 0.42, 0.28), (0.72, 0.80, 0.50), period=0.5, seed=seed[2]
      ),
      tx.speckle(
        (0.42, 0.56, 0.50), (0.72, 0.78, 0.62), period=4.0, seed=seed[3]
      ),
      tx.speckle(
        (0.42, 0.30, 0.22), (0.70, 0.54, 0.40), period=0.3, seed=seed[4]
      ),
      tx.speckle(*_PAINTS[first], period=0.2, seed=seed[5]),
      tx.checker(_PAINTS[second][0], _CREAM, cell=0.2, seed=seed[6]),
      tx.speckle(
        (0.14, 0.14, 0.17), (0.42, 0.40, 0.40), period=0.1, seed=seed[7]
      ),
      tx.checker(*_PAINTS[third], cell=0.3, seed=seed[8]),
    )
  )


def backdrop(kit: Materials, rng: np.random.Generator) -> tuple[Body, ...]:
  """Ground, a garden wall, two trees and three hills: all static."""
  shift = rng.uniform(-1.0, 1.0, 3)
  return (
    Body("ground", (Part("plane", (90, 0, 90), kit.ground),), (0, 0, 30)),
    Body(
      "wall",
      (
        Part("box", (11, 0.9, 0.2), kit.wall, (0, -0.9, 0)),
        Part("box", (11.1, 0.08, 0.28), kit.hill, (0, -1.88, 0)),
      ),
      (0, 0, 17),
    ),
    tree("tree_left", (-5.2 + shift[0], 0, 13.5), kit, height=2.6),
    tree("tree_right", (5.6 + shift[1], 0, 14.5), kit, height=3.2),
    Body(
      "hills",
      (
        Part("sphere", (26, 7, 12), kit.hill, (-22 + 3 * shift[2], 0, 0)),
        Part("sphere", (30, 9, 12), kit.hill, (18 + 3 * shift[2], 1.5, 6)),
        Part("sphere", (18, 5, 9), kit.hill, (2 - 4 * shift[2], 0, -6)),
      ),
      (0, 0, 52),
    ),
  )


def tree(name: str, position: Vec3, kit: Materials, *, height: float) -> Body:
  """A trunk with a round crown."""
  crown = 0.36 * height
  return Body(
    name,
    (
      Part("box", (0.1, height / 4, 0.1), kit.wood, (0, -height / 4, 0)),
      Part("sphere", (crown, crown, crown), kit.leaves, (0, crown - height, 0)),
    ),
    position,
  )


def pillar(name: str, position: Vec3, kit: Materials, *, half: float) -> Body:
  """A square brick pillar, taller than every subject, with a cap."""
  return Body(
    name,
    (
      Part("box", (half, 1.3, half), kit.wall, (0, -1.3, 0)),
      Part("box", (1.5 * half, 0.07, 1.5 * half), kit.hill, (0, -2.67, 0)),
    ),
    position,
  )


def van(kit: Materials) -> Body:
  """A painted van: hull, cabin and four wheels."""
  wheels = tuple(
    Part("sphere", (0.11, 0.24, 0.24), kit.dark, (x, -0.24, z))
    for x in (-0.5, 0.5)
    for z in (-0.55, 0.55)
  )
  return Body(
    "subject",
    (
      Part("box", (0.5, 0.36, 0.95), kit.paint, (0, -0.56, 0)),
      Part("box", (0.44, 0.24, 0.62), kit.accent, (0, -1.16, -0.15)),
      *wheels,
    ),
  )


def ball(kit: Materials) -> Body:
  """A large checkered ball."""
  return Body(
    "subject", (Part("sphere", (0.62, 0.62, 0.62), kit.accent, (0, -0.62, 0)),)
  )


def rabbit(kit: Materials) -> Body:
  """A toy rabbit: ellipsoids for body, head, ears and tail."""
  return Body(
    "subject",
    (
      Part("sphere", (0.48, 0.46, 0.56), kit.paint, (0, -0.46, 0)),
      Part("sphere", (0.34, 0.33, 0.34), kit.paint, (0, -1.02, 0.30)),
      Part("sphere", (0.09, 0.30, 0.07), kit.accent, (-0.15, -1.52, 0.22)),
      Part("sphere", (0.09, 0.30, 0.07), kit.accent, (0.15, -1.52, 0.22)),
      Part("sphere", (0.17, 0.17, 0.17), kit.accent, (0, -0.45, -0.58)),
      Part("sphere", (0.06, 0.07, 0.05), kit.dark, (-0.15, -1.08, 0.59)),
      Part("sphere", (0.06, 0.07, 0.05), kit.dark, (0.15, -1.08, 0.59)),
    ),
  )


def robot(kit: Materials) -> Body:
  """A delivery robot: crate, lid, round head and two wheels."""
  return Body(
    "subject",
    (
      Part("box", (0.46, 0.42, 0.46), kit.paint, (0, -0.62, 0)),
      Part("box", (0.50, 0.06, 0.50), kit.accent, (0, -1.10, 0)),
      Part("sphere", (0.26, 0.22, 0.26), kit.spare, (0, -1.34, 0)),
      Part("sphere", (0.10, 0.24, 0.24), kit.dark, (-0.48, -0.24, 0)),
      Part("sphere", (0.10, 0.24, 0.24), kit.dark, (0.48, -0.24, 0)),
    ),
  )


SUBJECTS: tuple[Callable[[Materials], Body], ...] = (van, ball, rabbit, robot)


def assemble(
  kit: Materials, bodies: tuple[Body, ...], *, haze_m: float = 55.0
) -> world_lib.World:
  """A world of these bodies in afternoon light."""
  return world_lib.World(kit.textures, bodies, world_lib.Light(haze_m=haze_m))
