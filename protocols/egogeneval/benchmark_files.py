# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Writes a mined benchmark or training set to a folder."""

from __future__ import annotations

import collections
import dataclasses
import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from perception.errors import InputError
from protocols.common import manifest as common_manifest
from protocols.common import outputs
from protocols.egogeneval import (
  assembly,
  constants,
  formats,
  frame_files,
  frames,
  manifest,
  mining,
  predictions,
  recording_calibration,
  scenes,
  training,
)


@dataclasses.dataclass(frozen=True)
class MineConfig:
  """Everything that decides a mining run.

  Attributes:
    scenes: folders of posed RGB-D.
    layout: their layout.
    scene_ids: ids in the manifest, one per folder; empty takes folder names.
    dataset: dataset name; empty takes the layout's.
    output: folder to write.
    mining: gates and procedure.
    quotas: how many cases.
    blocklist: manifest or JSONL of `dataset` and `scene_id` that may not be
      used.
    training: also write the training set, and exclude these cases' scenes.
    train_trajectories: trajectories kept per subtype of the training set.
    seed: of the stratified draw of trajectories.
    calibrate: estimate colour camera and poses of each recording first.
  """

  scenes: tuple[pathlib.Path, ...]
  layout: str
  output: pathlib.Path
  scene_ids: tuple[str, ...] = ()
  dataset: str = ""
  mining: mining.MiningConfig = dataclasses.field(
    default_factory=mining.MiningConfig
  )
  quotas: assembly.Quotas = dataclasses.field(default_factory=assembly.Quotas)
  blocklist: pathlib.Path | None = None
  training: bool = False
  train_trajectories: int = 0
  seed: int = 0
  calibrate: bool = False


def mine(config: MineConfig) -> str:
  """Mines scenes and writes a benchmark or a training set.

  Args:
    config: what to mine and how.

  Returns:
    Text for the terminal: cases by subtype and K, and what the gates refused.

  Raises:
    InputError: for an unusable folder, a blocked scene, or no case at all.
  """
  opened = [
    scenes.open_scene(
      path,
      layout=config.layout,
      scene_id=config.scene_ids[i] if config.scene_ids else "",
      dataset=config.dataset,
    )
    for i, path in enumerate(config.scenes)
  ]
  if config.blocklist is not None:
    assembly.refuse_blocked(
      [(scene.dataset, scene.scene_id) for scene in opened],
      read_blocklist(config.blocklist),
      source=str(config.blocklist),
    )
  reports: list[dict[str, Any]] = [{} for _ in opened]
  if config.calibrate:
    found = [recording_calibration.calibrated(scene) for scene in opened]
    opened = [scene for scene, _ in found]
    reports = [report for _, report in found]
  mined = []
  for scene in opened:
    miner = mining.SceneMiner(scene, config.mining)
    mined.append((miner, miner.mine()))
  rows = (
    training.trajectories(mined, config.train_trajectories, config.seed)
    if config.training
    else assembly.select(mined, config.quotas)
  )
  for number, row in enumerate(rows, start=1):
    manifest.parse(row, source="mined rows", field=f"row {number}")
  config.output.mkdir(parents=True, exist_ok=True)
  name = "trajectories.jsonl" if config.training else "manifest.jsonl"
  formats.write_rows(config.output / name, rows)
  if config.training:
    pairs = [pair for row in rows for pair in training.pairs(row)]
    formats.write_rows(config.output / "pairs.jsonl", pairs)
  by_reference = {
    frame.reference: (scene, frame)
    for scene in opened
    for frame in scene.frames
  }
  write_frames(config.output, rows, by_reference)
  gates = [
    {
      "dataset": miner.scene.dataset,
      "scene_id": miner.scene.scene_id,
      "frames": len(miner.scene.frames),
      "skipped": miner.scene.skipped,
      "calibration": miner.scene.calibration,
      "calibration_report": report,
      "counts": done.counts,
    }
    for (miner, done), report in zip(mined, reports, strict=True)
  ]
  outputs.write_json(
    config.output / "mining.json",
    {
      "thresholds": config.mining.gates.thresholds(),
      "mining": dataclasses.asdict(config.mining),
      "quotas": dataclasses.asdict(config.quotas),
      "scenes": gates,
      "cases": case_counts(rows),
      "environment": outputs.environment(),
    },
  )
  if not rows:
    raise InputError(
      config.output / "mining.json",
      "cases",
      found="no transition that passes all gates",
      expected="at least one",
      hint="It counts what each gate refused; see --stride, --min_trans,"
      " --require_layers.",
    )
  return summary(rows, gates)


def write_frames(
  output: pathlib.Path,
  rows: Sequence[Mapping[str, Any]],
  by_reference: Mapping[str, tuple[scenes.Scene, scenes.SceneFrame]],
) -> None:
  """Writes `eval_frames.jsonl` and depth files of all frames of the rows."""
  references = sorted(
    {
      entry["image_path"]
      for row in rows
      for name in ("input_images", "target_images")
      for entry in row[name]
    }
  )
  written = []
  for reference in references:
    scene, frame = by_reference[reference]
    written.append(_frame_row(output, scene, frame))
  formats.write_rows(output / "eval_frames.jsonl", written)


def _frame_row(
  output: pathlib.Path, scene: scenes.Scene, frame: scenes.SceneFrame
) -> dict[str, Any]:
  name = frame_files.asset_id(frame.reference)
  image = frame.image()
  reduced = frames.reduce_image(image, scene.dataset)
  depth = frames.reduce_depth(
    scenes.depth_at(frame, (image.shape[0], image.shape[1])),
    (image.shape[0], image.shape[1]),
    scene.dataset,
  )
  picture = frame.path
  if frame.correct is not None:
    picture = output / "images" / f"{name}.png"
    predictions.write_image(picture, image)
  path = output / "depth" / f"{name}.npy"
  path.parent.mkdir(parents=True, exist_ok=True)
  np.save(path, depth)
  row = {
    "asset_id": name,
    "dataset": scene.dataset,
    "scene_id": scene.scene_id,
    "image_ref": frame.reference,
    "loader_frame_idx": int(frame.frame_id),
    "image_path": os.path.relpath(picture.resolve(), output.resolve()),
    "depth_path": f"depth/{name}.npy",
    "rgb_sha256": formats.sha256_of_file(picture),
    "depth_sha256": formats.sha256_of_file(path),
    "image_height": reduced.shape[0],
    "image_width": reduced.shape[1],
    "depth_height": depth.shape[0],
    "depth_width": depth.shape[1],
    "extrinsics_c2w": frame.pose_c2w.tolist(),
    "intrinsics": frames.reduce_intrinsics(
      frame.intrinsics, scene.dataset
    ).tolist(),
    "asset_format_version": frame_files.FORMAT_VERSION,
    "preprocessing": frame_files.PREPROCESSING,
    "resize_stages": list(frames.resize_stages(scene.dataset)),
    "calibration_source": scene.calibration,
    "asset_revision": None,
  }
  formats.check(
    row, formats.EVALUATION_FRAME, source=path, field=frame.reference
  )
  return row


def read_blocklist(path: pathlib.Path) -> set[tuple[str, str]]:
  """(dataset, scene_id) of every row of a manifest or list."""
  return {
    (str(row.get("dataset")), str(row.get("scene_id")))
    for _, row in common_manifest.read_jsonl(path)
  }


def case_counts(
  rows: Sequence[Mapping[str, Any]],
) -> dict[str, dict[str, int]]:
  """Cases by subtype and K."""
  counts: collections.Counter[tuple[str, int]] = collections.Counter(
    (row["subtype"], row["num_context_images"]) for row in rows
  )
  return {
    subtype: {f"k{k}": counts[subtype, k] for k in assembly.K_SHARES}
    for subtype in constants.SUBTYPES
  }


def summary(
  rows: Sequence[Mapping[str, Any]], gates: Sequence[Mapping[str, Any]]
) -> str:
  """Cases by subtype and K, and the counts of every scene, as text."""
  lines = [f"{len(rows)} cases"]
  for subtype, counts in case_counts(rows).items():
    inner = "  ".join(f"{k} {n}" for k, n in counts.items())
    lines.append(f"  {subtype:<22} {sum(counts.values()):4d}   {inner}")
  for scene in gates:
    counted = ", ".join(f"{k} {n}" for k, n in scene["counts"].items())
    lines.append(
      f"{scene['scene_id']}: {scene['frames']} frames,"
      f" {scene['skipped']} skipped; {counted}"
    )
    if scene["calibration_report"]:
      lines.append(recording_calibration.summary(scene["calibration_report"]))
  return "\n".join(lines)
