# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Ray-cast cases of all six templates, with exact depth and poses.

Two generators alter the world out of sight: `forgetting` takes a body away and
`repaint` changes its texture, both while the camera looks elsewhere between
the two visits. A landmark stands where that can happen on every path.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from protocols.calibration import render, sets
from protocols.calibration import world as world_lib
from protocols.orbia.baselines import Shot, turned
from protocols.orbia.constants import TEMPLATES
from protocols.orbia.dataset import ReferenceFrame
from protocols.orbia.dataset_writer import CaseContent
from protocols.orbia.raycast_paths import landmark_place, path_of
from protocols.orbia.shared_surface import reference_of

SIZE = (108, 192)
_FOCAL = 150.0
_COARSE = (27, 48)
_BATCH = 64
_ANCHOR_AREA = (0.003, 0.5)
_SHORT = {"w1": 40, "qe1": 83, "qc_first": 105, "w2": 178}
_LONG = {
  "qe1": 120,
  "qc_first": 200,
  "qa_first": 290,
  "qb_first": 380,
  "w": 480,
}


@dataclasses.dataclass(frozen=True, eq=False)
class RaycastWorld:
  """A ray-cast world along a path; see `baselines.ShownWorld`.

  Attributes:
    world: what exists.
    template: trajectory template.
    path: [N, 4, 4] requested world poses.
    turnaround: frame of the far end.
    change: (`forgetting` or `repaint`, body, frame), or None.
  """

  world: world_lib.World
  template: str
  path: NDArray[np.float64]
  turnaround: int
  change: tuple[str, int, int] | None = None

  @property
  def frame_count(self) -> int:
    """Frames of the request."""
    return len(self.path)

  @property
  def intrinsics(self) -> NDArray[np.float64]:
    """3x3 at `SIZE`."""
    return pinhole(SIZE)

  @functools.cached_property
  def _cache(self) -> dict[tuple[float, ...], Shot]:
    return {}

  @functools.cached_property
  def _wanted(self) -> list[tuple[NDArray[np.float64], int]]:
    return []

  @functools.cached_property
  def _state(self) -> dict[str, bool]:
    return {"collecting": False}

  def shot(self, frame: int) -> Shot:
    """The world at a requested frame."""
    return self._render(self.path[frame], frame)

  def drifted(self, frame: int, *, share: float, turn_deg: float) -> Shot:
    """A camera at a share of the displacement, turned to the right."""
    pose = self.path[frame].copy()
    pose[:3, 3] = self.path[0][:3, 3] * (1 - share) + pose[:3, 3] * share
    return self._render(turned(pose, turn_deg), frame)

  def elsewhere(self, frame: int) -> Shot:
    """The view of a camera carried to another place of the world."""
    away = self.path[frame].copy()
    away[:3, 3] += np.array([14.0, 0.0, 4.0])
    there = self._render(turned(away, 70.0), frame)
    return there._replace(pose=self._relative(self.path[frame]))

  def prepare(
    self,
    generator: Callable[[RaycastWorld, int], Shot],
    frames: Sequence[int],
  ) -> None:
    """Renders in one pass what a generator will ask for, frame by frame.

    The generator runs once on an empty shot to learn which views it wants.
    """
    self._wanted.clear()
    self._state["collecting"] = True
    try:
      for frame in frames:
        generator(self, frame)
    finally:
      self._state["collecting"] = False
    wanted = list(self._wanted)
    for start in range(0, len(wanted), _BATCH):
      part = wanted[start : start + _BATCH]
      self._fill([pose for pose, _ in part], [frame for _, frame in part])

  def body_pixels(
    self, frames: Sequence[int], size: tuple[int, int] = _COARSE
  ) -> NDArray[np.int64]:
    """[F, B] pixels of every body in some frames of the unchanged world."""
    shown = render.render_sequence(
      self.world,
      self.path[list(frames)],
      pinhole(size),
      size,
      color=False,
    )
    owner = np.append(self.world.part_body, -1)[shown.part]
    bodies = len(self.world.bodies)
    return np.stack([np.bincount(o[o >= 0], minlength=bodies) for o in owner])

  def reference_frame(
    self, frame: int
  ) -> tuple[ReferenceFrame, NDArray[np.int64]]:
    """The unchanged view at a frame, and the body of each pixel (-1: sky)."""
    shown = render.render_sequence(
      self.world, self.path[[frame]], self.intrinsics, SIZE
    )
    assert shown.rgb is not None
    depth = np.nan_to_num(shown.depth[0], nan=0.0)
    k = self.intrinsics
    view = ReferenceFrame(
      rgb=shown.rgb[0],
      depth=depth,
      valid=depth > 0,
      pose=self._relative(self.path[frame]),
      k_rgb=k,
      k_depth=k,
    )
    owner = np.append(self.world.part_body, -1)[shown.part[0]]
    return view, owner.astype(np.int64)

  def poses(self) -> NDArray[np.float64]:
    """Requested poses relative to the input view."""
    return np.stack([self._relative(pose) for pose in self.path])

  def _relative(self, pose: NDArray[np.float64]) -> NDArray[np.float64]:
    first = self.path[0]
    inverse = np.eye(4)
    inverse[:3, :3] = first[:3, :3].T
    inverse[:3, 3] = -first[:3, :3].T @ first[:3, 3]
    return inverse @ pose

  def _render(self, pose: NDArray[np.float64], frame: int) -> Shot:
    key = self._key(pose, frame)
    if key in self._cache:
      return self._cache[key]
    if self._state["collecting"]:
      self._wanted.append((pose, frame))
      blank = np.zeros((*SIZE, 3), np.uint8)
      return Shot(blank, np.ones(SIZE, np.float32), self._relative(pose))
    self._fill([pose], [frame])
    return self._cache[key]

  def _fill(
    self, poses: Sequence[NDArray[np.float64]], frames: Sequence[int]
  ) -> None:
    new = {self._key(p, f): (p, f) for p, f in zip(poses, frames, strict=True)}
    todo = {k: v for k, v in new.items() if k not in self._cache}
    if not todo:
      return
    chosen = np.stack([pose for pose, _ in todo.values()])
    shown = render.render_sequence(
      self.world,
      chosen,
      self.intrinsics,
      SIZE,
      motion=self._motion([frame for _, frame in todo.values()]),
    )
    assert shown.rgb is not None
    for row, key in enumerate(todo):
      self._cache[key] = Shot(
        shown.rgb[row], shown.depth[row], self._relative(chosen[row])
      )

  def _key(self, pose: NDArray[np.float64], frame: int) -> tuple[float, ...]:
    changed = self.change is not None and frame >= self.change[2]
    return (float(changed), *np.round(pose[:3].ravel(), 12).tolist())

  def _motion(self, frames: list[int]) -> world_lib.Motion:
    motion = self.world.rest(len(frames))
    if self.change is None:
      return motion
    kind, body, start = self.change
    late = np.array(frames) >= start
    if kind == "forgetting":
      present = motion.present.copy()
      present[late, body] = False
      return dataclasses.replace(motion, present=present)
    ids = motion.texture_ids.copy()
    for part in np.flatnonzero(self.world.part_body == body):
      # The next texture of the list is never the part's own.
      other = (ids[0, part] + 4) % len(self.world.textures)
      ids[late, part] = other
    return dataclasses.replace(motion, texture_ids=ids)


def pinhole(size: tuple[int, int]) -> NDArray[np.float64]:
  """Intrinsics of the ray-cast camera at another size, index convention."""
  scale = np.array([size[1] / SIZE[1], size[0] / SIZE[0]])
  return np.array(
    [
      [_FOCAL * scale[0], 0.0, (SIZE[1] - 1) / 2 * scale[0]],
      [0.0, _FOCAL * scale[1], (SIZE[0] - 1) / 2 * scale[1]],
      [0.0, 0.0, 1.0],
    ]
  )


def make_world(template: str, *, frame_count: int, seed: int) -> RaycastWorld:
  """A furnished world and a path of a template.

  Args:
    template: one of `TEMPLATES`.
    frame_count: 357 or 961.
    seed: draws colours and places.

  Raises:
    ValueError: for an unknown template or frame count.
  """
  if template not in TEMPLATES:
    raise ValueError(f"unknown template {template!r}")
  if frame_count not in (357, 961):
    raise ValueError(f"{frame_count} frames: neither a short nor a long case")
  far = _SHORT if frame_count == 357 else _LONG
  turnaround = far["w2" if frame_count == 357 else "w"]
  path = path_of(template, frame_count=frame_count, turnaround=turnaround)
  rng = np.random.default_rng(seed)
  kit = sets.materials(rng)
  bodies = [*sets.backdrop(kit, rng)]
  # A ring of bodies, so that every path looks at something new.
  for number, angle in enumerate(np.arange(-150.0, 151.0, 30.0)):
    radius = 6.0 + 1.5 * (number % 3)
    place = radius * np.array(
      [np.sin(np.radians(angle)), 0.0, np.cos(np.radians(angle))]
    )
    make = sets.SUBJECTS[number % len(sets.SUBJECTS)]
    body = dataclasses.replace(
      make(kit),
      name=f"object_{number}",
      position=(float(place[0]), 0.0, float(place[2])),
      yaw_deg=float(angle),
    )
    bodies.append(body)
  for side in (-1.0, 1.0):
    for number, x in enumerate((9.0, 13.0)):
      name = f"pillar_{side:g}_{number}"
      foot = (side * x, 0.0, 9.0 - number)
      bodies.append(sets.pillar(name, foot, kit, half=0.4))
  visit = far["qc_first"]
  mark = landmark_place(path, first=visit, revisit=frame_count - 1 - visit)
  foot = (float(mark[0]), 0.0, float(mark[2]))
  bodies.append(sets.pillar("pillar_landmark", foot, kit, half=0.4))
  return RaycastWorld(
    world=sets.assemble(kit, tuple(bodies)),
    template=template,
    path=path,
    turnaround=turnaround,
  )


def build_case(
  world: RaycastWorld, *, case_id: str, source: str = "Unreal Engine"
) -> CaseContent:
  """A case of the published layout.

  Raises:
    ValueError: fewer than one body is seen at both input and query.
  """
  last = world.frame_count - 1
  named = dict(_SHORT if world.frame_count == 357 else _LONG)
  events = {"q0": 0, **named, "q0_return": last}
  pairs = {}
  for name in [n for n in named if n.endswith("_first")]:
    letter = name[1].upper()
    revisit = name.replace("first", "revisit")
    events[revisit] = last - named[name]
    pairs[letter] = (name, revisit)
  first, owner_first = world.reference_frame(0)
  query, owner_query = world.reference_frame(events["qe1"])
  anchors = _body_anchors(owner_first, owner_query)
  if not anchors:
    raise ValueError(f"{case_id}: no body is seen at both input and query")
  return CaseContent(
    case_id=case_id,
    parent_case_id=None,
    source=source,
    template=world.template,
    pose_unit="metre",
    image=first.rgb,
    prompt="A garden with toys, pillars and a brick wall.",
    intrinsics=world.intrinsics,
    poses=world.poses(),
    events=dict(sorted(events.items(), key=lambda entry: entry[1])),
    pairs=pairs,
    reference=reference_of(
      first,
      query,
      anchors,
      source=source,
      native_to_input=np.eye(3),
      depth_unit="metre",
    ),
  )


def changed_world(world: RaycastWorld, kind: str) -> RaycastWorld:
  """The same world, but one body changes while it is out of sight.

  Args:
    world: unchanged world.
    kind: `forgetting` or `repaint`.

  Returns:
    A world in which the body that fills most of the first visit, of those
    that leave the picture before the revisit, changes while no pixel shows it.

  Raises:
    ValueError: no such body.
  """
  first = (_SHORT if world.frame_count == 357 else _LONG)["qc_first"]
  between = np.arange(first, world.frame_count - 1 - first, 4)
  pixels = world.body_pixels(between.tolist())
  names = [body.name for body in world.world.bodies]
  movable = np.array([name.startswith(("object", "pillar")) for name in names])
  at_visit = pixels[0] * movable * (pixels.min(axis=0) == 0)
  best = int(np.argmax(at_visit))
  if not at_visit[best]:
    raise ValueError(f"{world.template}: no body of the first visit leaves")
  start = int(between[np.flatnonzero(pixels[:, best] == 0)[0]])
  return dataclasses.replace(world, change=(kind, best, start))


def _body_anchors(
  first: NDArray[np.int64], query: NDArray[np.int64]
) -> dict[str, tuple[NDArray[np.bool_], NDArray[np.bool_]]]:
  """Bodies seen at both ends, largest smaller area first, at most three."""
  low, high = _ANCHOR_AREA
  found = []
  for body in np.intersect1d(first[first >= 0], query[query >= 0]):
    masks = (first == body, query == body)
    areas = [float(mask.mean()) for mask in masks]
    if low <= min(areas) and max(areas) <= high:
      found.append((min(areas), masks))
  found.sort(key=lambda entry: -entry[0])
  return {f"A{k}": masks for k, (_, masks) in enumerate(found[:3], start=1)}
