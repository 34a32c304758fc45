# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Recorded detections and answers from 3D regions of a posed RGB-D scene.

Regions are patches of surface with a unique label each. A view's detections
are the boxes around the region points that are visible in it; two boxes match
if they show one region. With them SSP runs on real images without a model,
and its answers are known: a calibration of the evaluator, not of models.
"""

from __future__ import annotations

import dataclasses
import json
import pathlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perception import observation, replay, roles
from protocols.common import outputs
from protocols.egogeneval import (
  constants,
  formats,
  frame_files,
  frames,
  manifest,
  measure,
  measure_backends,
  predictions,
  references,
)

_WORDS = ("cabinet", "monitor", "chair", "desk", "picture", "plant")
_ROWS, _COLUMNS = 3, 4
_DEPTH_SPREAD = 0.15
_POINTS = 400
_MIN_VISIBLE = 0.5
_OCCLUSION = 0.08
_BACKEND = "regions"
_LINE = re.compile(r"^([GP]\d+): (.+) \[")


@dataclasses.dataclass(frozen=True, eq=False)
class Region:
  """A labelled patch of surface.

  Attributes:
    label: unique text, for example `cabinet 3`.
    points: [n, 3] world points, metres.
  """

  label: str
  points: NDArray[np.float64]


@dataclasses.dataclass(frozen=True, eq=False)
class _Shown:
  """A view whose detections are wanted."""

  image: NDArray[np.uint8]
  depth: NDArray[np.float32]
  intrinsics: NDArray[np.float64]
  pose_c2w: NDArray[np.float64]


def from_frames(
  views: Sequence[references.ReferenceView],
) -> list[Region]:
  """Regions from a grid of patches in some views.

  Args:
    views: physical views, spread over the scene.

  Returns:
    One region per patch whose depth is known and coherent.
  """
  rng = np.random.default_rng(0)
  found: list[Region] = []
  for view in views:
    height, width = view.depth.shape
    for i in range(_ROWS):
      for j in range(_COLUMNS):
        top, left = height * i // _ROWS, width * j // _COLUMNS
        bottom = height * (i + 1) // _ROWS
        right = width * (j + 1) // _COLUMNS
        patch = view.depth[top:bottom, left:right]
        known = np.isfinite(patch) & (patch > 0)
        if known.mean() < 0.5:
          continue
        middle = float(np.median(patch[known]))
        rows, columns = np.nonzero(
          known & (np.abs(patch - middle) < _DEPTH_SPREAD * middle)
        )
        if len(rows) < _POINTS:
          continue
        chosen = rng.choice(len(rows), _POINTS, replace=False)
        points = _unprojected(columns[chosen] + left, rows[chosen] + top, view)
        word = _WORDS[len(found) % len(_WORDS)]
        found.append(Region(f"{word} {len(found)}", points))
  return found


def boxes_in(
  regions: Sequence[Region],
  pose_c2w: NDArray[np.float64],
  intrinsics: NDArray[np.float64],
  depth: NDArray[np.float32],
) -> tuple[list[list[float]], list[str]]:
  """Boxes of the regions that are mostly visible from a pose.

  Args:
    regions: the regions.
    pose_c2w: pose of the view.
    intrinsics: at the size of `depth`.
    depth: depth of the view, for occlusion; 0 = unknown.

  Returns:
    (boxes in pixels of `depth`, labels).
  """
  height, width = depth.shape
  world_to_camera = np.linalg.inv(pose_c2w)
  boxes, labels = [], []
  for region in regions:
    points = region.points @ world_to_camera[:3, :3].T + world_to_camera[:3, 3]
    z = points[:, 2]
    front = z > 0.05
    safe = np.where(front, z, 1.0)
    u = intrinsics[0, 0] * points[:, 0] / safe + intrinsics[0, 2]
    v = intrinsics[1, 1] * points[:, 1] / safe + intrinsics[1, 2]
    inside = front & (u >= 0) & (u <= width - 1) & (v >= 0) & (v <= height - 1)
    column = np.clip(np.rint(u), 0, width - 1).astype(int)
    row = np.clip(np.rint(v), 0, height - 1).astype(int)
    seen = depth[row, column]
    visible = inside & (seen > 0) & (np.abs(seen - z) <= _OCCLUSION * z)
    if visible.mean() < _MIN_VISIBLE:
      continue
    box = [
      *np.quantile(u[visible], (0.02, 0.98)),
      *np.quantile(v[visible], (0.02, 0.98)),
    ]
    boxes.append([float(box[0]), float(box[2]), float(box[1]), float(box[3])])
    labels.append(region.label)
  return boxes, labels


class RegionAnswers:
  """A vision-language backend that matches equal labels, and remembers.

  Proposals pair boxes with one label; audits find no defect; the pair judge,
  which is not told labels, says no.
  """

  def __init__(self) -> None:
    self.transcript: dict[str, dict[str, Any]] = {}
    self.info = roles.BackendInfo(
      role="vision_language",
      name=_BACKEND,
      version="1",
      licence="Apache-2.0",
      comparable_to_published=False,
    )

  def answer(self, request: roles.ChatRequest) -> roles.ChatAnswer:
    """See `roles.VisionLanguageBackend`."""
    text = next(
      part
      for message in request.messages
      for part in message.parts
      if isinstance(part, str)
    )
    reply = json.dumps(self._reply(text), sort_keys=True)
    digest = request.sha256()
    self.transcript[digest] = {
      "request_sha256": digest,
      "text": reply,
      "finish_reason": "stop",
      "backend": self.info.name,
      "backend_version": self.info.version,
    }
    return roles.ChatAnswer(reply, "stop", self.info.provenance(digest))

  def _reply(self, text: str) -> dict[str, Any]:
    if text.startswith("Target objects"):
      labels: dict[str, str] = {}
      for line in text.splitlines():
        found = _LINE.match(line)
        if found:
          labels[found[1]] = found[2]
      return {
        "matches": [
          {"gt_id": g, "pred_id": p, "same_object_confidence": 0.95}
          for g, label in labels.items()
          for p, other in labels.items()
          if g[0] == "G" and p[0] == "P" and label == other
        ]
      }
    if text.startswith("Pairs in reading order"):
      ids = re.findall(r"^id (\d+):", text, re.MULTILINE)
      return {
        "objects": [
          {"id": int(i), "well_formed": True, "defects": []} for i in ids
        ]
      }
    return {"same_object": False, "same_object_confidence": 0.9}


def record(
  folder: pathlib.Path,
  content: manifest.Manifest,
  stored: Mapping[str, frame_files.StoredFrame],
  systems: Mapping[str, pathlib.Path],
  *,
  variant: str,
  region_views: int = 4,
) -> int:
  """Writes detections, labels and answers for the outputs of references.

  Args:
    folder: where `detections/`, `labels.jsonl`, `answers.jsonl` go.
    content: the manifest.
    stored: evaluation frames.
    systems: system -> its `predictions.jsonl`, from `bin.rollout` with a
      built-in reference (poses and depth of the outputs are recorded there).
    variant: variant that the answers are for.
    region_views: physical views that regions are taken from.

  Returns:
    The number of regions.
  """
  frames_in_order = [stored[key] for key in sorted(stored)]
  step = max(1, len(frames_in_order) // region_views)
  views = [references.physical_view(f) for f in frames_in_order[::step]]
  # A step's prompts hold a limited number of labels: more would go unseen.
  regions = _spread(
    from_frames(views[:region_views]), constants.for_variant(variant).max_labels
  )
  formats.write_rows(folder / "labels.jsonl", _labels(content, regions))
  shown = [_of_frame(frame) for frame in frames_in_order]
  units: list[measure.MeasuredCase] = []
  for name, path in systems.items():
    _, made = predictions.read(path, content)
    shown += list(_of_predictions(path, content, stored))
    units += measure.cases_of(name, made, content, None, stored)
  _write_detections(folder / "detections", regions, shown)
  answers = RegionAnswers()
  config = measure_backends.PerceptionConfig(
    detector="recorded",
    depth=measure_backends.BESIDE,
    settings={"recorded": {"detections": {"path": str(folder / "detections")}}},
  )
  labels = {
    row["sample_id"]: row["target_labels"] for row in _labels(content, regions)
  }
  for unit in units:
    measure.measure_scene(
      dataclasses.replace(unit, labels=tuple(labels[unit.case_id])),
      config,
      variant,
      vision_language=answers,
    )
  outputs.write_atomic(
    folder / "answers.jsonl",
    "".join(
      json.dumps(answers.transcript[key], sort_keys=True) + "\n"
      for key in sorted(answers.transcript)
    ),
  )
  return len(regions)


def _spread(regions: Sequence[Region], limit: int) -> list[Region]:
  """At most `limit` regions, evenly spread over the list."""
  chosen = np.linspace(0, len(regions) - 1, min(limit, len(regions)))
  return [regions[int(i)] for i in chosen]


def _labels(
  content: manifest.Manifest, regions: Sequence[Region]
) -> list[dict[str, Any]]:
  names = [region.label for region in regions]
  return [
    {
      "sample_id": case.case_id,
      "target_labels": [
        {"detector_prompt_labels": names, "object_labels": names}
        for _ in case.steps
      ],
    }
    for case in content.cases
  ]


def _of_frame(stored: frame_files.StoredFrame) -> _Shown:
  view = references.physical_view(stored)
  return _Shown(view.image, view.depth, view.intrinsics, view.pose_c2w)


def _of_predictions(
  path: pathlib.Path,
  content: manifest.Manifest,
  stored: Mapping[str, frame_files.StoredFrame],
) -> Iterable[_Shown]:
  cases = {case.case_id: case for case in content.cases}
  for _, row in formats.read_rows(path, formats.PREDICTION):
    step = cases[row["case_id"]].steps[row["step_id"] - 1]
    target = references.physical_view(frame_files.of_case(stored, step.target))
    output = path.parent / row["output_path"]
    image = frames.stretch_to(
      predictions.load_image(output), target.image.shape[:2]
    )
    depth = np.load(output.with_suffix(".depth.npy"), allow_pickle=False)
    pose = np.asarray(row["generation"]["executed_pose_c2w"], np.float64)
    yield _Shown(image, depth, target.intrinsics, pose)


def _write_detections(
  folder: pathlib.Path, regions: Sequence[Region], shown: Iterable[_Shown]
) -> None:
  folder.mkdir(parents=True, exist_ok=True)
  for view in shown:
    boxes, labels = boxes_in(
      regions, view.pose_c2w, view.intrinsics, view.depth
    )
    digest = replay.image_digest(view.image)
    observation.Detections(
      boxes=np.asarray(boxes, np.float32).reshape(-1, 4),
      scores=np.full(len(boxes), 0.9, np.float32),
      labels=np.asarray(labels, np.str_),
      provenance=observation.Provenance(
        source_sha256=digest,
        backend=_BACKEND,
        backend_version="1",
        weights_sha256="",
        settings={},
      ),
    ).save(folder / f"{digest[:24]}.npz")


def _unprojected(
  columns: NDArray[Any], rows: NDArray[Any], view: references.ReferenceView
) -> NDArray[np.float64]:
  z = view.depth[rows, columns].astype(np.float64)
  k = view.intrinsics
  points = np.stack(
    [
      (columns - k[0, 2]) * z / k[0, 0],
      (rows - k[1, 2]) * z / k[1, 1],
      z,
    ],
    axis=1,
  )
  return points @ view.pose_c2w[:3, :3].T + view.pose_c2w[:3, 3]
