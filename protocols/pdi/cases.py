# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""PDI cases: one clip (or recorded sequence) of one generator.

Cases come from a folder of clips, a JSONL list, RGB-D folders or folders of
ready observations. Nothing is decoded here.
"""

from __future__ import annotations

import dataclasses
import math
import pathlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from perception.errors import InputError
from protocols.common import manifest
from protocols.pdi.categories import category_key, object_query

OBSERVATION_NAMES = ("geometry", "masks", "tracks")
_LIST_FIELDS = (
  "system",
  "case_id",
  "category",
  "video",
  "rgbd",
  "geometry",
  "masks",
  "tracks",
  "object_box",
  "object_query",
)

Box = tuple[float, float, float, float]


@dataclasses.dataclass(frozen=True)
class PdiCase:
  """One clip to score.

  Attributes:
    system: generator; `case_id`: unique within it.
    category: key of section 10.1, or the folder's own name, or empty.
    video: clip file, or None.
    rgbd: folder of a recorded RGB-D sequence, or None.
    observations: ready `.npz` files by role (`geometry`, `masks`, `tracks`).
    object_box: (x0, y0, x1, y1) of the object in frame 0, video pixels.
    object_query: phrase that names the object; empty if unknown.
  """

  system: str
  case_id: str
  category: str = ""
  video: pathlib.Path | None = None
  rgbd: pathlib.Path | None = None
  observations: Mapping[str, pathlib.Path] = dataclasses.field(
    default_factory=dict
  )
  object_box: Box | None = None
  object_query: str = ""

  @property
  def groups(self) -> dict[str, str]:
    """The category, where there is one."""
    return {"category": self.category} if self.category else {}

  @property
  def inputs(self) -> tuple[pathlib.Path, ...]:
    """Files and folders that the score depends on."""
    own = [path for path in (self.video, self.rgbd) if path is not None]
    return (*own, *(self.observations[k] for k in sorted(self.observations)))


def from_clips(root: pathlib.Path, *, object_box: Box | None) -> list[PdiCase]:
  """Cases from a folder of clips (specification section 10.2).

  Layouts: `<system>/<category>/<index>/<any video>` (first file by name),
  `<system>/<category>/<name>.mp4`, `<system>/<name>.mp4`, or videos directly
  in the folder, which is then the only system.

  Args:
    root: the folder.
    object_box: box of the object in frame 0 of every clip, or None.

  Returns:
    Cases sorted by (system, case id).

  Raises:
    InputError: for an unreadable folder or one without clips.
  """
  found: dict[tuple[str, ...], PdiCase] = {}
  for path in manifest.videos_below(root):
    parts = path.relative_to(root).parts
    if len(parts) > 4:
      raise InputError(
        root,
        "layout",
        found="/".join(parts),
        expected="system/category/index/clip at the deepest",
        hint="Give a --list instead.",
      )
    system = parts[0] if len(parts) > 1 else root.resolve().name
    category = category_key(parts[1]) if len(parts) > 2 else ""
    inner = parts[2] if len(parts) == 4 else path.stem
    key = (system, category, inner)
    if len(parts) == 4 and key in found:
      continue
    if key in found:
      raise InputError(
        root,
        "clips",
        found=f"two files for case {inner!r} of system {system!r}",
        expected="one video for each name",
        hint="Remove one of them.",
      )
    found[key] = PdiCase(
      system=system,
      case_id=f"{category}/{inner}" if category else inner,
      category=category,
      video=path,
      object_box=object_box,
      object_query=object_query(category, inner),
    )
  return manifest.unique(found.values(), source=str(root))


def from_list(path: pathlib.Path) -> list[PdiCase]:
  """Cases from a JSONL list; paths are relative to the list's folder.

  Fields: `system`, one of `video`, `rgbd`, `geometry`, and optionally
  `case_id`, `category`, `geometry`, `masks`, `tracks` (observations as
  `.npz`), `object_box` [x0, y0, x1, y1], `object_query`.

  Args:
    path: the list.

  Returns:
    Cases sorted by (system, case id).

  Raises:
    InputError: naming the line and field that is wrong.
  """
  cases = [
    _case_of_row(row, path=path, line=line)
    for line, row in manifest.read_jsonl(path)
  ]
  return manifest.unique(cases, source=str(path))


def from_rgbd(
  folders: Sequence[pathlib.Path], *, object_box: Box | None
) -> list[PdiCase]:
  """One case for each recorded RGB-D folder; the system is `recorded`.

  Raises:
    InputError: if a folder does not exist, or two have the same name.
  """
  for folder in folders:
    _require(folder, folder, "folder", is_folder=True)
  cases = [
    PdiCase(
      system="recorded",
      case_id=folder.resolve().name,
      rgbd=folder,
      object_box=object_box,
    )
    for folder in folders
  ]
  return manifest.unique(cases, source="--rgbd")


def from_observations(root: pathlib.Path) -> list[PdiCase]:
  """Cases from `<system>/[<category>/]<case>/{geometry,masks,tracks}.npz`.

  Args:
    root: folder of observations, for example written by `bin.perceive`; a
      video beside the arrays is used for the pictures.

  Returns:
    Cases sorted by (system, case id).

  Raises:
    InputError: if no folder holds observations.
  """
  _require(root, root, "folder", is_folder=True)
  cases = []
  for folder in sorted(path for path in root.rglob("*") if path.is_dir()):
    files = {
      name: folder / f"{name}.npz"
      for name in OBSERVATION_NAMES
      if (folder / f"{name}.npz").exists()
    }
    if files:
      cases.append(_case_of_folder(root, folder, files))
  return manifest.unique(cases, source=str(root))


def _case_of_folder(
  root: pathlib.Path,
  folder: pathlib.Path,
  files: Mapping[str, pathlib.Path],
) -> PdiCase:
  parts = folder.relative_to(root).parts
  videos = sorted(
    path
    for path in folder.iterdir()
    if path.suffix.lower() in manifest.VIDEO_SUFFIXES
  )
  category = category_key(parts[1]) if len(parts) > 2 else ""
  inner = "/".join(parts[2:] if len(parts) > 2 else parts[1:]) or parts[0]
  return PdiCase(
    system=parts[0],
    case_id=f"{category}/{inner}" if category else inner,
    category=category,
    video=videos[0] if videos else None,
    observations=files,
  )


def _case_of_row(
  row: Mapping[str, Any], *, path: pathlib.Path, line: str
) -> PdiCase:
  unknown = sorted(set(row) - set(_LIST_FIELDS))
  if unknown:
    raise InputError(
      path,
      f"{line}: {unknown[0]}",
      found="a field that no version knows",
      expected=f"fields among {', '.join(_LIST_FIELDS)}",
      hint="Correct its name or remove it.",
    )
  texts = {}
  for name in _LIST_FIELDS:
    value = row.get(name, "")
    if name != "object_box" and not isinstance(value, str):
      raise InputError(
        path, f"{line}: {name}", found=repr(value), expected="a text"
      )
    texts[name] = value
  if not texts["system"]:
    raise InputError(
      path, f"{line}: system", found="nothing", expected="the model's name"
    )
  files = dict(_files_of_row(texts, path=path, line=line))
  sources = [files[k] for k in ("video", "rgbd", "geometry") if k in files]
  if not sources:
    raise InputError(
      path,
      line,
      found="none of video, rgbd, geometry",
      expected="at least one of them",
      hint="Name the clip to score.",
    )
  category = category_key(texts["category"])
  return PdiCase(
    system=texts["system"],
    case_id=texts["case_id"] or sources[0].stem,
    category=category,
    video=files.get("video"),
    rgbd=files.get("rgbd"),
    observations={k: files[k] for k in OBSERVATION_NAMES if k in files},
    object_box=parse_box(
      row.get("object_box"), source=str(path), field=f"{line}: object_box"
    ),
    object_query=texts["object_query"],
  )


def _files_of_row(
  texts: Mapping[str, str], *, path: pathlib.Path, line: str
) -> Iterator[tuple[str, pathlib.Path]]:
  for name in ("video", "rgbd", *OBSERVATION_NAMES):
    if texts[name]:
      target = path.parent / texts[name]
      _require(target, path, f"{line}: {name}", is_folder=name == "rgbd")
      yield name, target


def parse_box(value: Any, *, source: str, field: str) -> Box | None:
  """Checks a box [x0, y0, x1, y1] in pixels; None stays None.

  Raises:
    InputError: unless it is four finite numbers with x0 < x1 and y0 < y1.
  """
  if value is None:
    return None
  try:
    box = tuple(float(entry) for entry in value)
  except (TypeError, ValueError):
    box = ()
  good = (
    len(box) == 4
    and all(math.isfinite(entry) for entry in box)
    and box[0] < box[2]
    and box[1] < box[3]
  )
  if not good:
    raise InputError(
      source,
      field,
      found=value,
      expected="x0, y0, x1, y1 in pixels with x0 < x1 and y0 < y1",
    )
  return (box[0], box[1], box[2], box[3])


def _require(
  target: pathlib.Path,
  source: str | pathlib.Path,
  field: str,
  *,
  is_folder: bool,
) -> None:
  exists = target.is_dir() if is_folder else target.is_file()
  if not exists:
    raise InputError(
      source,
      field,
      found=f"no {'folder' if is_folder else 'file'} {target}",
      expected="an existing one",
      hint="Check the path.",
    )
