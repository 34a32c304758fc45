# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Reads an Orbia data set in the published layout.

`manifest.json`, `public/<case_id>/{q0.png,prompt.txt,case.json,camera.npz}` and
`references/<case_id>/...` (specification, section 13). What is read is checked
at once; a violation is an `InputError` that names file, field, found value
and expectation. Poses are camera-to-world with OpenCV axes and relative to the
input view, so pose 0 is the identity. Sizes are (height, width).
"""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Mapping
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from perception import images
from perception.errors import InputError
from protocols.common import outputs
from protocols.orbia.constants import RELEASED, TEMPLATES
from protocols.orbia.control import pose_problem

MANIFEST = "manifest.json"
PUBLIC = "public"
REFERENCES = "references"
INPUT_EVENT = "q0"
QUERY_EVENT = "qe1"
RETURN_EVENT = "q0_return"
SENSOR_SOURCE = "ScanNet++"

_TIME_TOLERANCE = 1e-6
_POSE_TOLERANCE = 1e-5
_ALIASES = {"peekaboo": "peek_occlude_retract"}


@dataclasses.dataclass(frozen=True)
class PublicCase:
  """What a generator may see of a case, without its arrays.

  Attributes:
    root: folder of the data set.
    case_id, parent_case_id, source, template: as in `case.json`.
    frame_count: frames, one for each pose.
    pose_unit: unit of poses and depth.
    intrinsics: 3x3 of the input image.
    image_size: (h, w) of the input image.
    events: frame by event name.
    pairs: (first visit, revisit) frames by pair name.
  """

  root: pathlib.Path
  case_id: str
  parent_case_id: str | None
  source: str
  template: str
  frame_count: int
  pose_unit: str
  intrinsics: tuple[tuple[float, ...], ...]
  image_size: tuple[int, int]
  events: Mapping[str, int]
  pairs: Mapping[str, tuple[int, int]]

  @property
  def folder(self) -> pathlib.Path:
    """Public folder."""
    return self.root / PUBLIC / self.case_id

  @property
  def reference_folder(self) -> pathlib.Path:
    """Folder of the references."""
    return self.root / REFERENCES / self.case_id

  @property
  def horizon(self) -> str:
    """`short` or `long`."""
    return "long" if self.frame_count > RELEASED.long_above else "short"

  @property
  def k(self) -> NDArray[np.float64]:
    """3x3 intrinsics of the input image."""
    return np.array(self.intrinsics, np.float64)

  def poses(self) -> NDArray[np.float64]:
    """Requested poses [N, 4, 4]; checked against `case.json`."""
    return _read_poses(self)

  def image(self) -> NDArray[np.uint8]:
    """The input image [h, w, 3]."""
    path = self.folder / "q0.png"
    image = images.read_rgb(path)
    if image.shape[:2] != self.image_size:
      raise InputError(
        path, "size", found=image.shape[:2], expected=self.image_size
      )
    return image


@dataclasses.dataclass(frozen=True, eq=False)
class ReferenceFrame:
  """One registered view.

  Attributes:
    rgb: [H, W, 3] uint8, native size.
    depth: [h, w] float32.
    valid: [h, w] bool.
    pose: 4x4 camera-to-world.
    k_rgb, k_depth: 3x3.
    distortion: (k1, k2, p1, p2) of the RGB camera, or empty.
  """

  rgb: NDArray[np.uint8]
  depth: NDArray[np.float32]
  valid: NDArray[np.bool_]
  pose: NDArray[np.float64]
  k_rgb: NDArray[np.float64]
  k_depth: NDArray[np.float64]
  distortion: tuple[float, ...] = ()


@dataclasses.dataclass(frozen=True, eq=False)
class Anchor:
  """One anchor: masks of the native RGB size."""

  anchor_id: str
  q0: NDArray[np.bool_]
  qe: NDArray[np.bool_]
  region: NDArray[np.bool_]


@dataclasses.dataclass(frozen=True, eq=False)
class Reference:
  """Everything that is held back for evaluation.

  Attributes:
    source: source name.
    native_to_input: 3x3.
    q0, qe: registered views.
    anchors: at least one.
    scene: [H, W] bool query region.
    input_supported, invalid: [h, w] bool on the query depth grid.
    depth_unit: unit of the depth.
  """

  source: str
  native_to_input: NDArray[np.float64]
  q0: ReferenceFrame
  qe: ReferenceFrame
  anchors: tuple[Anchor, ...]
  scene: NDArray[np.bool_]
  input_supported: NDArray[np.bool_]
  invalid: NDArray[np.bool_]
  depth_unit: str


def read_dataset(root: pathlib.Path) -> list[PublicCase]:
  """All cases of a data set, sorted by case id.

  Args:
    root: folder with `manifest.json`.

  Raises:
    InputError: for an unreadable or inconsistent file.
  """
  path = root / MANIFEST
  entries = outputs.read_json(path).get("cases")
  if not isinstance(entries, list) or not entries:
    raise InputError(
      path, "cases", found=entries, expected="a list of at least one case"
    )
  cases = []
  for place, entry in enumerate(entries):
    case_id = entry.get("case_id") if isinstance(entry, dict) else None
    if not isinstance(case_id, str) or pathlib.Path(case_id).name != case_id:
      raise InputError(
        path,
        f"cases[{place}].case_id",
        found=case_id,
        expected="one path component",
      )
    case = read_case(root, case_id)
    for field in ("source", "template", "frame_count"):
      found = getattr(case, field)
      stated = _ALIASES.get(str(entry.get(field)), entry.get(field))
      if stated != found:
        raise InputError(
          path,
          f"cases[{place}].{field}",
          found=stated,
          expected=f"{found!r} as in case.json",
        )
    cases.append(case)
  return sorted(cases, key=lambda case: case.case_id)


def read_case(root: pathlib.Path, case_id: str) -> PublicCase:
  """Reads and checks one `case.json`.

  Raises:
    InputError: for a missing or inconsistent field.
  """
  path = root / PUBLIC / case_id / "case.json"
  content = outputs.read_json(path)
  field = _Fields(path, content)
  template = str(field.get("template", str))
  template = _ALIASES.get(template, template)
  if template not in TEMPLATES:
    raise InputError(
      path, "template", found=template, expected=f"one of {TEMPLATES}"
    )
  if field.get("case_id", str) != case_id:
    raise InputError(
      path, "case_id", found=content["case_id"], expected=case_id
    )
  if field.get("fps", (int, float)) != RELEASED.fps:
    raise InputError(path, "fps", found=content["fps"], expected=RELEASED.fps)
  camera = field.get("intrinsics", dict)
  matrix = np.array(camera.get("K", []), np.float64)
  if matrix.shape != (3, 3) or not np.all(np.isfinite(matrix)):
    raise InputError(
      path, "intrinsics.K", found=camera.get("K"), expected="finite 3x3"
    )
  count = field.get("frame_count", int)
  events = _events(path, field.get("events", dict), count)
  pairs = _pairs(path, field.get("revisit_pairs", dict), events)
  parent = content.get("parent_case_id")
  return PublicCase(
    root=root,
    case_id=case_id,
    parent_case_id=None if parent is None else str(parent),
    source=field.get("source", str),
    template=template,
    frame_count=count,
    pose_unit=field.get("pose_unit", str),
    intrinsics=tuple(tuple(row) for row in matrix.tolist()),
    image_size=(int(camera["height"]), int(camera["width"])),
    events=events,
    pairs=pairs,
  )


def read_reference(case: PublicCase) -> Reference:
  """Reads and checks the references of a case (13.4).

  Raises:
    InputError: for a missing file or a violation.
  """
  folder = case.reference_folder
  path = folder / "reference.json"
  content = outputs.read_json(path)
  field = _Fields(path, content)
  if field.get("case_id", str) != case.case_id:
    raise InputError(
      path, "case_id", found=content["case_id"], expected=case.case_id
    )
  frames = field.get("frames", dict)
  views = [_view(folder, path, frames, name) for name in ("q0", "qe")]
  size = views[1].rgb.shape[:2]
  scene = _mask(folder, path, content, "qe_scene_region", size)
  anchors = _anchors(folder, path, field.get("anchors", list), views, scene)
  seen = field.get("observability", dict)
  grid = views[1].depth.shape
  reference = Reference(
    source=field.get("source", str),
    native_to_input=np.array(field.get("native_to_input", list), np.float64),
    q0=views[0],
    qe=views[1],
    anchors=anchors,
    scene=scene,
    input_supported=_mask(folder, path, seen, "input_supported", grid),
    invalid=_mask(folder, path, seen, "invalid", grid),
    depth_unit=str(frames["q0"].get("depth_unit")),
  )
  relative = np.linalg.inv(views[0].pose) @ views[1].pose
  poses = case.poses()
  wanted = np.linalg.inv(poses[0]) @ poses[case.events[QUERY_EVENT]]
  error = float(np.max(np.abs(relative - wanted)))
  if not error <= _POSE_TOLERANCE:
    raise InputError(
      path,
      "frames.qe.T_world_camera",
      found=f"differs from the requested query pose by {error:.3g}",
      expected=f"at most {_POSE_TOLERANCE:g}",
    )
  return reference


@dataclasses.dataclass(frozen=True)
class _Fields:
  """Typed access to a JSON object."""

  path: pathlib.Path
  content: Mapping[str, Any]

  def get(self, name: str, kind: type | tuple[type, ...]) -> Any:
    value = self.content.get(name)
    if not isinstance(value, kind) or isinstance(value, bool):
      wanted = kind if isinstance(kind, tuple) else (kind,)
      names = " or ".join(k.__name__ for k in wanted)
      raise InputError(self.path, name, found=repr(value), expected=names)
    return value


def _events(
  path: pathlib.Path, content: Mapping[str, Any], count: int
) -> dict[str, int]:
  events = {}
  for name, entry in content.items():
    frame = entry.get("frame_index") if isinstance(entry, dict) else None
    if not isinstance(frame, int) or not 0 <= frame < count:
      raise InputError(
        path,
        f"events.{name}.frame_index",
        found=frame,
        expected=f"a frame in 0..{count - 1}",
      )
    stamp = entry.get("timestamp_s")
    wanted = frame / RELEASED.fps
    if (
      not isinstance(stamp, (int, float))
      or abs(stamp - wanted) > _TIME_TOLERANCE
    ):
      raise InputError(
        path, f"events.{name}.timestamp_s", found=stamp, expected=wanted
      )
    events[name] = frame
  for name in (INPUT_EVENT, QUERY_EVENT, RETURN_EVENT):
    if name not in events:
      raise InputError(path, f"events.{name}", found=None, expected="an event")
  if events[INPUT_EVENT] != 0 or len(set(events.values())) < len(events):
    raise InputError(
      path,
      "events",
      found=events,
      expected="distinct frames, the input event at frame 0",
    )
  return events


def _pairs(
  path: pathlib.Path, content: Mapping[str, Any], events: Mapping[str, int]
) -> dict[str, tuple[int, int]]:
  pairs = {}
  for name, entry in content.items():
    frames = []
    for visit in ("first", "revisit"):
      event = entry.get(f"{visit}_event")
      frame = entry.get(f"{visit}_frame_index")
      if event not in events or events[event] != frame:
        raise InputError(
          path,
          f"revisit_pairs.{name}.{visit}",
          found=f"event {event!r} at frame {frame}",
          expected=f"an event with its frame, one of {dict(events)}",
        )
      frames.append(int(frame))
    if frames[0] >= frames[1]:
      raise InputError(
        path,
        f"revisit_pairs.{name}",
        found=frames,
        expected="a revisit after the first visit",
      )
    pairs[name] = (frames[0], frames[1])
  if "C" not in pairs:
    raise InputError(
      path, "revisit_pairs.C", found=sorted(pairs), expected="a pair named C"
    )
  return dict(sorted(pairs.items()))


def _read_poses(case: PublicCase) -> NDArray[np.float64]:
  path = case.folder / "camera.npz"
  try:
    with np.load(path, allow_pickle=False) as stored:
      poses = np.asarray(stored["poses_c2w"], np.float64)
      times = np.asarray(stored["timestamps_s"], np.float64)
  except (OSError, ValueError, KeyError) as error:
    raise InputError(
      path,
      "file",
      found=error,
      expected="arrays poses_c2w and timestamps_s",
    ) from error
  if poses.shape != (case.frame_count, 4, 4):
    raise InputError(
      path,
      "poses_c2w",
      found=poses.shape,
      expected=(case.frame_count, 4, 4),
    )
  problem = pose_problem(poses, c=RELEASED)
  if problem:
    raise InputError(
      path, "poses_c2w", found=problem, expected="rigid, finite poses"
    )
  if not np.allclose(poses[0], np.eye(4), rtol=0, atol=_TIME_TOLERANCE):
    raise InputError(
      path,
      "poses_c2w[0]",
      found=np.round(poses[0], 6).tolist(),
      expected="the identity: poses are relative to the input view",
      hint="Left-multiply every pose by the inverse of the first.",
    )
  wanted = np.arange(case.frame_count) / RELEASED.fps
  if times.shape != wanted.shape or np.any(
    np.abs(times - wanted) > _TIME_TOLERANCE
  ):
    raise InputError(
      path,
      "timestamps_s",
      found=f"shape {times.shape}, last {times.ravel()[-1:]}",
      expected=f"{case.frame_count} times i/{RELEASED.fps:g}",
    )
  return poses


def _view(
  folder: pathlib.Path,
  path: pathlib.Path,
  frames: Mapping[str, Any],
  name: str,
) -> ReferenceFrame:
  entry = _Fields(path, _Fields(path, frames).get(name, dict))
  rgb = images.read_rgb(_inside(folder, path, entry.get("rgb", str)))
  depth_file = _inside(folder, path, entry.get("depth", str))
  try:
    depth = np.load(depth_file, allow_pickle=False)
  except (OSError, ValueError) as error:
    raise InputError(
      depth_file, "file", found=error, expected="a float32 array"
    ) from error
  cameras = {}
  for kind, size in (("rgb", rgb.shape[:2]), ("depth", depth.shape)):
    camera = entry.get(f"{kind}_camera", dict)
    stated = (camera.get("height"), camera.get("width"))
    if stated != tuple(size):
      raise InputError(
        path,
        f"frames.{name}.{kind}_camera",
        found=f"size {stated}",
        expected=f"the size {tuple(size)} of its picture",
      )
    cameras[kind] = camera
  if depth.dtype != np.float32:
    raise InputError(depth_file, "dtype", found=depth.dtype, expected="float32")
  valid = _mask(folder, path, entry.content, "valid", depth.shape)
  if not np.all(np.isfinite(depth[valid]) & (depth[valid] > 0)):
    raise InputError(
      depth_file,
      "depth",
      found="valid pixels that are not finite and positive",
      expected="a valid mask on finite positive depth only",
    )
  return ReferenceFrame(
    rgb=rgb,
    depth=depth,
    valid=valid,
    pose=np.array(entry.get("T_world_camera", list), np.float64),
    k_rgb=np.array(cameras["rgb"]["K"], np.float64),
    k_depth=np.array(cameras["depth"]["K"], np.float64),
    distortion=tuple(cameras["rgb"].get("distortion", ())),
  )


def _anchors(
  folder: pathlib.Path,
  path: pathlib.Path,
  content: list[Any],
  views: list[ReferenceFrame],
  scene: NDArray[np.bool_],
) -> tuple[Anchor, ...]:
  found = []
  for entry in content:
    anchor_id = _Fields(path, entry).get("anchor_id", str)
    masks = [
      _mask(folder, path, entry, name, view.rgb.shape[:2])
      for name, view in (
        ("q0_mask", views[0]),
        ("qe_mask", views[1]),
        ("qe_region", views[1]),
      )
    ]
    if np.any(masks[2] & ~scene):
      raise InputError(
        path,
        f"anchors.{anchor_id}.qe_region",
        found="pixels outside the scene region",
        expected="a region inside qe_scene_region",
      )
    found.append(Anchor(anchor_id, *masks))
  names = [anchor.anchor_id for anchor in found]
  if not found or len(set(names)) < len(names):
    raise InputError(
      path, "anchors", found=names, expected="at least one, distinct ids"
    )
  return tuple(found)


def _mask(
  folder: pathlib.Path,
  path: pathlib.Path,
  content: Mapping[str, Any],
  name: str,
  size: tuple[int, ...],
) -> NDArray[np.bool_]:
  file = _inside(folder, path, _Fields(path, content).get(name, str))
  raw = cv2.imread(str(file), cv2.IMREAD_UNCHANGED) if file.exists() else None
  if raw is None:
    raise InputError(
      file, "file", found="nothing readable", expected="a PNG mask"
    )
  mask = raw.any(axis=2) if raw.ndim == 3 else raw > 0
  if mask.shape != tuple(size):
    raise InputError(file, "size", found=mask.shape, expected=tuple(size))
  return np.asarray(mask, bool)


def _inside(
  folder: pathlib.Path, path: pathlib.Path, relative: str
) -> pathlib.Path:
  target = (folder / relative).resolve()
  if not target.is_relative_to(folder.resolve()):
    raise InputError(
      path, "path", found=relative, expected="a path inside the case's folder"
    )
  return target
