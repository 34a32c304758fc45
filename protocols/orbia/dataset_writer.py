# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Writes cases in the published layout; `dataset.read_dataset` reads them.

See `protocols.orbia.dataset` for conventions. A case is written reference
first and the manifest last, so a cut run leaves no manifest that promises
missing files.
"""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from protocols.common import outputs
from protocols.orbia.constants import RELEASED
from protocols.orbia.dataset import (
  MANIFEST,
  PUBLIC,
  REFERENCES,
  Reference,
  ReferenceFrame,
)


@dataclasses.dataclass(frozen=True, eq=False)
class CaseContent:
  """A case to be written.

  Attributes:
    case_id, parent_case_id, source, template, pose_unit: as in `case.json`.
    image: [h, w, 3] uint8 input image.
    prompt: caption.
    intrinsics: 3x3 of the input image.
    poses: [N, 4, 4] relative to the input view.
    events: frame by event name.
    pairs: (first event, revisit event) by pair name.
    reference: held-back data.
  """

  case_id: str
  parent_case_id: str | None
  source: str
  template: str
  pose_unit: str
  image: NDArray[np.uint8]
  prompt: str
  intrinsics: NDArray[np.float64]
  poses: NDArray[np.float64]
  events: Mapping[str, int]
  pairs: Mapping[str, tuple[str, str]]
  reference: Reference


def write_dataset(root: pathlib.Path, cases: Sequence[CaseContent]) -> None:
  """Writes all cases and then the manifest."""
  entries = []
  for case in sorted(cases, key=lambda item: item.case_id):
    write_reference(root / REFERENCES / case.case_id, case)
    write_public(root / PUBLIC / case.case_id, case)
    entries.append(
      {
        "case_id": case.case_id,
        "parent_case_id": case.parent_case_id,
        "source": case.source,
        "template": case.template,
        "frame_count": len(case.poses),
        "anchors": len(case.reference.anchors),
      }
    )
  outputs.write_json(root / MANIFEST, {"cases": entries})


def write_public(folder: pathlib.Path, case: CaseContent) -> None:
  """Writes what a generator may see."""
  folder.mkdir(parents=True, exist_ok=True)
  write_rgb(folder / "q0.png", case.image)
  outputs.write_atomic(folder / "prompt.txt", case.prompt + "\n")
  times = np.arange(len(case.poses)) / RELEASED.fps
  np.savez(folder / "camera.npz", poses_c2w=case.poses, timestamps_s=times)
  height, width = case.image.shape[:2]
  content = {
    "case_id": case.case_id,
    "parent_case_id": case.parent_case_id,
    "source": case.source,
    "template": case.template,
    "frame_count": len(case.poses),
    "fps": int(RELEASED.fps),
    "pose_unit": case.pose_unit,
    "intrinsics": {
      "K": case.intrinsics.tolist(),
      "width": width,
      "height": height,
    },
    "events": {
      name: {"frame_index": frame, "timestamp_s": frame / RELEASED.fps}
      for name, frame in case.events.items()
    },
    "revisit_pairs": {
      name: {
        "first_event": first,
        "revisit_event": revisit,
        "first_frame_index": case.events[first],
        "revisit_frame_index": case.events[revisit],
      }
      for name, (first, revisit) in case.pairs.items()
    },
  }
  outputs.write_json(folder / "case.json", content)


def write_reference(folder: pathlib.Path, case: CaseContent) -> None:
  """Writes what is held back for evaluation."""
  reference = case.reference
  frames = {
    name: _write_view(folder, name, view, reference.depth_unit)
    for name, view in (("q0", reference.q0), ("qe", reference.qe))
  }
  anchors = []
  for anchor in reference.anchors:
    place = f"anchors/{anchor.anchor_id}"
    region = f"evaluation_regions/{anchor.anchor_id}.png"
    _write_mask(folder / place / "q0.png", anchor.q0)
    _write_mask(folder / place / "qe.png", anchor.qe)
    _write_mask(folder / region, anchor.region)
    anchors.append(
      {
        "anchor_id": anchor.anchor_id,
        "q0_mask": f"{place}/q0.png",
        "qe_mask": f"{place}/qe.png",
        "qe_region": region,
      }
    )
  scene = "evaluation_regions/scene.png"
  _write_mask(folder / scene, reference.scene)
  observability = {}
  for name in ("input_supported", "invalid"):
    observability[name] = f"observability/{name}.png"
    _write_mask(folder / observability[name], getattr(reference, name))
  outputs.write_json(
    folder / "reference.json",
    {
      "case_id": case.case_id,
      "source": reference.source,
      "native_to_input": reference.native_to_input.tolist(),
      "exact_revisit": True,
      "frames": frames,
      "anchors": anchors,
      "qe_scene_region": scene,
      "observability": observability,
    },
  )


def _write_view(
  folder: pathlib.Path, name: str, view: ReferenceFrame, unit: str
) -> dict[str, Any]:
  place = folder / name
  place.mkdir(parents=True, exist_ok=True)
  write_rgb(place / "rgb.png", view.rgb)
  np.save(place / "depth.npy", view.depth.astype(np.float32))
  _write_mask(place / "valid.png", view.valid)
  rgb_camera: dict[str, Any] = _camera(view.k_rgb, view.rgb.shape[:2])
  if view.distortion:
    rgb_camera |= {"model": "OPENCV", "distortion": list(view.distortion)}
  return {
    "rgb": f"{name}/rgb.png",
    "depth": f"{name}/depth.npy",
    "valid": f"{name}/valid.png",
    "depth_unit": unit,
    "T_world_camera": view.pose.tolist(),
    "rgb_camera": rgb_camera,
    "depth_camera": _camera(view.k_depth, view.depth.shape),
  }


def _camera(
  matrix: NDArray[np.float64], size: tuple[int, ...]
) -> dict[str, Any]:
  return {"K": matrix.tolist(), "width": size[1], "height": size[0]}


def write_rgb(path: pathlib.Path, image: NDArray[np.uint8]) -> None:
  """Writes a picture [H, W, 3]."""
  cv2.imwrite(str(path), cv2.cvtColor(image, cv2.COLOR_RGB2BGR))


def _write_mask(path: pathlib.Path, mask: NDArray[np.bool_]) -> None:
  path.parent.mkdir(parents=True, exist_ok=True)
  cv2.imwrite(str(path), mask.astype(np.uint8) * 255)
