# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""A walled garden to explore: the static world of the Orbia calibration.

24 m by 24 m around a fountain at the world's origin, with something to see in
every direction. Bodies named in `ANCHORS` are distinct objects that a case
may register. `vanished` and `repainted` change a body while nobody looks;
`unseen_from` finds when that is.
"""

from __future__ import annotations

import numpy as np

from protocols.calibration import sets
from protocols.calibration import world as world_lib
from protocols.calibration.world import Body, Part

ANCHORS = (
  "fountain",
  "van",
  "robot",
  "rabbit",
  "ball",
  "planter",
  "urn",
  "crate",
)
_HALF_M = 12.0


def courtyard(*, seed: int) -> world_lib.World:
  """The garden; the seed draws colours and textures, not the layout."""
  rng = np.random.default_rng([17, seed])
  kit = sets.materials(rng)
  bodies = (
    Body("ground", (Part("plane", (60, 0, 60), kit.ground),)),
    *_walls(kit),
    *_anchors(kit),
    *_greenery(kit),
    *(
      sets.pillar(f"pillar_{k}", (-9.0 + 4.5 * k, 0, 9.5), kit, half=0.22)
      for k in range(5)
    ),
  )
  return sets.assemble(kit, bodies, haze_m=70.0)


def unseen_from(
  part: np.ndarray,
  world: world_lib.World,
  body: int,
  *,
  first: int,
  revisit: int,
  least_share: float,
) -> int | None:
  """The frame in which a body, seen before and after, leaves the view.

  Args:
    part: part indices of a rendered sequence, [T, H, W].
    world: what was rendered.
    body: its index.
    first: frame of the first visit.
    revisit: frame of the later visit.
    least_share: share of the picture that counts as seen in both visits.

  Returns:
    First frame of the longest stretch between the visits in which no pixel
    shows the body; None if it is not seen in both or never leaves.
  """
  parts = np.flatnonzero(world.part_body == body)
  own = (part[first : revisit + 1] >= parts[0]) & (
    part[first : revisit + 1] <= parts[-1]
  )
  share = own.mean(axis=(1, 2))
  if min(share[0], share[-1]) < least_share or (share > 0).all():
    return None
  edges = np.flatnonzero(np.diff(np.r_[False, share == 0, False]))
  starts, stops = edges[::2], edges[1::2]
  return first + int(starts[np.argmax(stops - starts)])


def vanished(
  world: world_lib.World, frames: int, body: int, *, frame: int
) -> world_lib.Motion:
  """Nothing moves; one body is gone from `frame` on."""
  return world.rest(frames).without_body_from(body, frame)


def repainted(
  world: world_lib.World, frames: int, body: int, *, frame: int
) -> world_lib.Motion:
  """Nothing moves; one body wears other textures from `frame` on.

  Every part takes the material three places further in the world's list.
  """
  motion = world.rest(frames)
  for part in np.flatnonzero(world.part_body == body):
    texture = (world.parts[part].texture + 3) % len(world.textures)
    motion = motion.with_texture_from(int(part), texture, frame)
  return motion


def _walls(kit: sets.Materials) -> tuple[Body, ...]:
  """Four brick walls with copings, each a body."""
  sides = (
    ("wall_north", (0.0, 0.0, _HALF_M), 0.0),
    ("wall_east", (_HALF_M, 0.0, 0.0), 90.0),
    ("wall_south", (0.0, 0.0, -_HALF_M), 180.0),
    ("wall_west", (-_HALF_M, 0.0, 0.0), -90.0),
  )
  return tuple(
    Body(
      name,
      (
        Part("box", (_HALF_M, 1.3, 0.15), kit.wall, (0, -1.3, 0)),
        Part("box", (_HALF_M + 0.1, 0.08, 0.24), kit.hill, (0, -2.68, 0)),
      ),
      position,
      yaw,
    )
    for name, position, yaw in sides
  )


def _anchors(kit: sets.Materials) -> tuple[Body, ...]:
  """The objects that a case may register, in the order of `ANCHORS`."""
  fountain = Body(
    "fountain",
    (
      Part("box", (0.9, 0.22, 0.9), kit.wall, (0, -0.22, 0)),
      Part("box", (0.2, 0.55, 0.2), kit.paint, (0, -0.95, 0)),
      Part("sphere", (0.62, 0.18, 0.62), kit.accent, (0, -1.5, 0)),
      Part("sphere", (0.27, 0.27, 0.27), kit.spare, (0, -1.8, 0)),
    ),
  )
  planter = Body(
    "planter",
    (
      Part("box", (0.32, 0.3, 0.32), kit.spare, (0, -0.3, 0)),
      Part("sphere", (0.42, 0.38, 0.42), kit.leaves, (0, -0.9, 0)),
    ),
    (-1.7, 0.0, -3.0),
  )
  urn = Body(
    "urn",
    (
      Part("box", (0.36, 0.45, 0.36), kit.wall, (0, -0.45, 0)),
      Part("sphere", (0.33, 0.4, 0.33), kit.paint, (0, -1.2, 0)),
    ),
    (8.9, 0.0, 1.6),
  )
  # Hidden behind the urn from where the peek template starts.
  crate = Body(
    "crate",
    (Part("box", (0.28, 0.28, 0.28), kit.accent, (0, -0.28, 0)),),
    (8.14, 0.0, 4.1),
    -17.0,
  )
  return (
    fountain,
    _placed(sets.van(kit), "van", (-6.0, 0.0, 4.5), 120.0),
    _placed(sets.robot(kit), "robot", (5.6, 0.0, 5.8), 200.0),
    _placed(sets.rabbit(kit), "rabbit", (7.0, 0.0, -4.2), -60.0),
    _placed(sets.ball(kit), "ball", (-6.2, 0.0, -5.0), 0.0),
    planter,
    urn,
    crate,
  )


def _placed(
  body: Body, name: str, position: world_lib.Vec3, yaw_deg: float
) -> Body:
  return Body(name, body.parts, position, yaw_deg)


def _greenery(kit: sets.Materials) -> tuple[Body, ...]:
  """Trees inside the walls and hills beyond them."""
  places = (
    ("tree_nw", (-8.5, 0.0, 8.0), 4.2),
    ("tree_ne", (9.0, 0.0, 8.4), 3.6),
    ("tree_se", (9.2, 0.0, -8.8), 4.4),
    ("tree_sw", (-9.0, 0.0, -9.2), 3.8),
    ("tree_n", (1.8, 0.0, 7.2), 3.0),
  )
  hills = tuple(
    Part(
      "sphere",
      (24, 8 + 2 * (k % 3), 14),
      kit.hill,
      (42 * np.sin(angle), 1.0, 42 * np.cos(angle)),
      (0.0, float(np.rad2deg(angle)), 0.0),
    )
    for k, angle in enumerate(np.arange(0.3, 2 * np.pi, np.pi / 3))
  )
  trees = tuple(
    sets.tree(name, position, kit, height=height)
    for name, position, height in places
  )
  return (*trees, Body("hills", hills))
