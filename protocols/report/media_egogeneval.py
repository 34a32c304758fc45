# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Pictures of an EgoGenEval case: each step from source to prediction.

Paths come from the record (`provenance.images`, one entry for each step), boxes
and motions from the evidence. Boxes are in pixels of the reduced target view
(specification, section 4.2), to which the prediction is stretched. Where the
evaluation frames are found, the physical views have depth and poses, and what
the target shows of the source is drawn too.
"""

from __future__ import annotations

import dataclasses
import functools
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from perception.errors import InputError
from protocols.common import overlays
from protocols.common.records import Record
from protocols.egogeneval import formats, frame_files, frames, predictions
from protocols.report import consistency, pictures, places
from protocols.report.pictures import Legend, Section, Shot
from protocols.report.sources import Run

Row = Mapping[str, Any]
Colour = tuple[int, int, int]
# Okabe-Ito, darkened for white text; RGB.
_MATCHED: Colour = (0, 114, 83)
_MISSING: Colour = (186, 60, 0)
_EXTRA: Colour = (140, 90, 0)
_NAMED = 12
_LEGEND = (
  Legend("matched object (solid)", "#007253"),
  Legend("missing object (dashed)", "#ba3c00"),
  Legend("extra object (solid)", "#8c5a00"),
)


@dataclasses.dataclass(frozen=True, eq=False)
class StepViews:
  """Pictures of one step, RGB uint8, each at its own size.

  Attributes:
    number: 1-based.
    source, target, prediction: pictures; None where they cannot be read. The
      prediction has the size of the target.
    physical: stored frames (before, after) with depth and pose, or None.
    notes: what is absent and why.
  """

  number: int
  source: np.ndarray | None
  target: np.ndarray | None
  prediction: np.ndarray | None
  physical: tuple[frame_files.StoredFrame, frame_files.StoredFrame] | None
  notes: tuple[str, ...]


def gather(
  run: Run, record: Record, cmg: Sequence[Row], ssp: Sequence[Row]
) -> tuple[list[Section], list[str]]:
  """One section for each step, and one for what its target shows again."""
  steps = load(run, record)
  if not steps:
    why = "no frames are shown: the record names no images"
    return [], [f"{why}; runs from frozen evidence have none"]
  motions, objects = by_step(cmg), by_step(ssp)
  sections: list[Section] = []
  notes: list[str] = []
  for step in steps:
    notes += step.notes
    row = objects.get(step.number, {})
    sections.append(
      Section(
        title=f"Step {step.number}: asked and generated",
        about=_counts(row),
        shots=tuple(_shots(step, row)),
        legend=_LEGEND if row.get("objects") else (),
        facts=tuple(_motion(motions.get(step.number, {}))),
      )
    )
    sections += _physical_section(step)
  return [s for s in sections if s.shots], list(dict.fromkeys(notes))


def load(run: Run, record: Record) -> list[StepViews]:
  """Reads the pictures of every step that the record names."""
  rows = record.provenance.get("images") or []
  made: list[StepViews] = []
  before = str(rows[0].get("source") or "") if rows else ""
  for row in rows:
    made.append(_step(run, record, row, before))
    before = str(row.get("target") or "")
  return made


def boxes(row: Row) -> tuple[list[tuple], list[tuple]]:
  """(box, colour, dashed, text) on the target and on the prediction.

  Args:
    row: scene evidence of a step; may be empty.
  """
  target, found = [], []
  for entry in row.get("objects") or []:
    status = str(entry.get("status"))
    text = str(entry.get("gt_idx"))
    if entry.get("gt_box"):
      lost = status == "missing"
      colour = _MISSING if lost else _MATCHED
      target.append((entry["gt_box"], colour, lost, text))
    if entry.get("pred_box"):
      extra = status == "hallucination"
      colour = _EXTRA if extra else _MATCHED
      found.append((entry["pred_box"], colour, False, "" if extra else text))
  return target, found


def by_step(rows: Sequence[Row]) -> dict[int, Row]:
  """Evidence rows by the number of their step."""
  return {
    int(number): row
    for row in rows
    if (number := str(row.get("id", "")).rpartition("__step")[2]).isdigit()
  }


def physical_views(step: StepViews) -> dict[str, consistency.View]:
  """The views `source` and `target` with depth and pose; empty without."""
  if step.physical is None:
    return {}
  views = {}
  for name, when, stored in zip(
    ("source", "target"), ("before", "after"), step.physical, strict=True
  ):
    try:
      frame = stored.frame
    except InputError:
      return {}
    if not frame.has_geometry:
      return {}
    assert frame.depth is not None
    depth = np.where(frame.depth > 0, frame.depth, np.nan).astype(np.float32)
    views[name] = consistency.View(
      f"the view {when}",
      pictures.resized(frame.image, depth.shape),
      depth,
      np.asarray(frame.intrinsics),
      np.asarray(frame.pose_c2w),
    )
  return views


def _step(run: Run, record: Record, row: Row, before: str) -> StepViews:
  notes: list[str] = []
  number = int(row["step"])
  path = {
    name: places.locate(str(row.get(name) or ""), run)
    for name in ("source", "target", "prediction")
  }
  for name, found in path.items():
    if found is None:
      stated = row.get(name) or "no path"
      notes.append(f"step {number}: the {name} is not here ({stated})")
  stored = _stored(run, path["target"])
  dataset = record.groups.get("dataset", "")
  target = _picture(path["target"], stored, dataset, notes)
  prediction = _picture(path["prediction"], {}, None, notes)
  if prediction is not None and target is not None:
    prediction = frames.stretch_to(prediction, target.shape[:2])
  scored = path["prediction"]
  stated = row.get("sha256")
  if (
    stated
    and scored is not None
    and scored.is_file()
    and formats.sha256_of_file(scored) != stated
  ):
    notes.append(f"step {number}: the prediction changed since it was scored")
  pair = [
    stored.get(found.resolve()) if found is not None else None
    for found in (places.locate(before, run), path["target"])
  ]
  return StepViews(
    number,
    # The physical view at step 1, then the system's own picture.
    _picture(path["source"], stored, dataset if number == 1 else None, notes),
    target,
    prediction,
    (pair[0], pair[1]) if pair[0] and pair[1] else None,
    tuple(notes),
  )


def _picture(
  path: pathlib.Path | None,
  stored: Mapping[pathlib.Path, frame_files.StoredFrame],
  dataset: str | None,
  notes: list[str],
) -> np.ndarray | None:
  """A picture; a physical view (with its data set) as the evaluator sees it."""
  if path is None:
    return None
  try:
    if path.resolve() in stored:
      return stored[path.resolve()].frame.image
    picture = predictions.load_image(path)
    return picture if dataset is None else frames.reduce_image(picture, dataset)
  except InputError as error:
    notes.append(str(error))
    return None


def _stored(
  run: Run, image: pathlib.Path | None
) -> Mapping[pathlib.Path, frame_files.StoredFrame]:
  file = None if image is None else places.evaluation_frames(run, image)
  return {} if file is None else _read_frames(file)


@functools.lru_cache(maxsize=2)
def _read_frames(
  file: pathlib.Path,
) -> Mapping[pathlib.Path, frame_files.StoredFrame]:
  """Stored frames by picture; empty if the file is no file of frames."""
  try:
    found = frame_files.read(file)
  except InputError:
    return {}
  return {frame.image_path.resolve(): frame for frame in found.values()}


def _shots(step: StepViews, row: Row) -> list[Shot]:
  on_target, on_prediction = boxes(row)
  made = []
  for name, caption, picture, drawn in (
    ("source", "Source", step.source, []),
    ("target", "Requested target", step.target, on_target),
    ("prediction", "Prediction", step.prediction, on_prediction),
  ):
    if picture is None:
      continue
    # Boxes are drawn last, so that their lines stay sharp.
    factor = max(1.0, 400.0 / picture.shape[1])
    shown = pictures.enlarged(picture, factor)
    for box, colour, dashed, text in drawn:
      shown = overlays.with_box(
        shown,
        [factor * float(v) for v in box],
        colour=colour,
        dashed=dashed,
        text=pictures.ascii_text(text),
      )
    made.append(
      pictures.shot(
        f"step{step.number}-{name}",
        pictures.shrunk(shown),
        caption=f"{caption}, step {step.number}",
        description=f"{caption} of step {step.number}"
        + (f" with {len(drawn)} boxes" if drawn else ""),
      )
    )
  return made


def _physical_section(step: StepViews) -> list[Section]:
  views = physical_views(step)
  if len(views) < 2:
    return []
  return [
    consistency.section(
      views["source"],
      views["target"],
      key=f"step{step.number}-world",
      why=f"The physical views of step {step.number}: what the target must"
      " show again, and what it alone can show.",
    )
  ]


def _counts(row: Row) -> str:
  """How many objects were found again, and which number is which."""
  objects = row.get("objects") or []
  states = [str(entry.get("status")) for entry in objects]
  if not states:
    return ""
  named = [
    f"{entry['gt_idx']} {entry['gt_label']}"
    for entry in objects
    if entry.get("gt_idx") is not None and entry.get("gt_label")
  ]
  numbers = f" In the pictures: {', '.join(named[:_NAMED])}." if named else ""
  return (
    f"Of {row.get('num_gt_objects')} objects {states.count('match')} are"
    f" matched, {states.count('missing')} missing;"
    f" {states.count('hallucination')} are extra.{numbers}"
  )


def _motion(row: Row) -> list[tuple[str, str]]:
  """Requested and recovered motion in words."""
  expected, found = row.get("action_expected"), row.get("action_pred")
  if expected is None:
    return []
  unit = str(row.get("action_unit") or "")
  right = row.get("action_sign_correct")
  return [
    ("component", str(row.get("action_component") or "")),
    ("requested", f"{expected:+.3g} {unit}"),
    ("recovered", "none" if found is None else f"{found:+.3g} {unit}"),
    ("direction", "right" if right else "wrong"),
  ]
