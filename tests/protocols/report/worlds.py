# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Run folders of Orbia and EgoGenEval whose pictures can be reached."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping
from typing import Any

import cv2

from protocols.common import outputs
from protocols.common.records import Record
from protocols.egogeneval import evidence_files, formats, frame_files
from protocols.orbia import baselines, builtin, dataset, dataset_writer
from tests.protocols.egogeneval import rollout_test as drawn
from tests.protocols.egogeneval import sample_rows
from tests.protocols.orbia import tiny_world

CURVES = {
  "depth_short": [90.0, 40.0],
  "move": [100.0, None],
  "look": [80.0, 79.5],
}
# 41 frames at 16 per second.
BOUNDS = [[0.0, 1.25], [1.25, 2.5]]


def write_orbia_data(root: pathlib.Path) -> pathlib.Path:
  """A data set of one case with one video; returns the video."""
  world = tiny_world.Wall()
  dataset_writer.write_dataset(root, [tiny_world.case_content(world)])
  (case,) = dataset.read_dataset(root)
  builtin.write_video(root, case, world, baselines.perfect, "perfect")
  return root / builtin.VIDEOS / "perfect" / "tiny.mp4"


def orbia_record(video: object, **changes: Any) -> Record:
  """A record of the tiny case whose scores fall in the second window."""
  values = {"T1": 100.0, "T4": 50.0, "pose_scale": 2.0, "temporal": 60.0}
  tiers = {
    "T6": {
      "status": "ok",
      "reason": "",
      "values": {"temporal": 60.0},
      "details": {"curves": CURVES, "bounds": BOUNDS},
    }
  }
  given: dict[str, Any] = {
    "protocol": "orbia",
    "variant": "paper",
    "system": "perfect",
    "case_id": "tiny",
    "status": "ok",
    "values": values,
    "details": {"tiers": tiers},
    "provenance": {"source": str(video)},
    **changes,
  }
  return Record(**given)


def write_run(
  folder: pathlib.Path,
  record: Record,
  *,
  flags: Mapping[str, Any] | None = None,
) -> pathlib.Path:
  """A run folder of one record; returns it."""
  folder.mkdir(parents=True)
  name = "cases" if record.protocol == "egogeneval" else "records"
  (folder / f"{name}.jsonl").write_text(record.to_json() + "\n")
  outputs.write_json(
    folder / "run.json",
    {
      "protocol": record.protocol,
      "variant": record.variant,
      "settings": {},
      "flags": flags or {},
    },
  )
  return folder


def write_egogeneval(root: pathlib.Path) -> tuple[pathlib.Path, Record]:
  """A scene, predictions, evidence and a run; returns (run folder, record)."""
  row = sample_rows.manifest_row("cycle")
  drawn.write_scene(root, [row])
  stored = frame_files.read(root / "eval_frames.jsonl")
  source = stored[row["input_images"][0]["image_path"]].image_path
  images, before = [], source
  for step, target in enumerate(row["target_images"], start=1):
    path = stored[target["image_path"]].image_path
    prediction = root / f"out{step}.png"
    # A generator that answers with an image of its own size.
    cv2.imwrite(str(prediction), cv2.resize(cv2.imread(str(path)), (40, 40)))
    images.append(
      {
        "step": step,
        "source": str(before),
        "target": str(path),
        "prediction": str(prediction),
        "sha256": formats.sha256_of_file(prediction),
      }
    )
    before = prediction
  case_id = row["sample_id"]
  ids = [f"{case_id}__step{number}" for number in (1, 2)]
  record = Record(
    protocol="egogeneval",
    variant="paper",
    system="demo",
    case_id=case_id,
    status="ok",
    values={"cmg": 0.5, "ssp": 0.4},
    groups={"dataset": "synthetic", "protocol": "cycle"},
    provenance={"images": images},
  )
  run = write_run(root / "run", record)
  evidence_files.write_system(
    run / "evidence" / "demo",
    [sample_rows.cmg_row(i) for i in ids],
    [sample_rows.ssp_row(i, targets=2) for i in ids],
    [],
  )
  return run, record
