# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Run folders for tests of the report, written as `bin.evaluate` would."""

from __future__ import annotations

import dataclasses
import fractions
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from perception import observation, video
from protocols.common import outputs
from protocols.common.records import Record
from protocols.pdi import aggregate
from protocols.pdi.constants import for_variant

FRAMES = 12
HOSTILE = (
  '<script>document.title="hacked"</script>',
  "مولد الفيديو \u202e العربي",
  "very-long-" + "x" * 300,
  'O\'Brien & "Sons" </script> $\\alpha$ {{ 7 * 7 }}',
)
CATEGORIES = ("curved_motion", "partial_occlusion")
FAILED_TEXT = 'clip.mp4: found 0 </td><script>document.title="hacked"</script>'


def pdi_record(
  system: str,
  case_id: str,
  *,
  pdi: float | None,
  status: str = "ok",
  reason: str = "",
  category: str = CATEGORIES[0],
  source: str = "",
  frames: int = FRAMES,
  fps: float = 0.0,
  backends: Mapping[str, Any] | None = None,
) -> Record:
  """A PDI record with series whose peaks lie at known frames."""
  # The trajectory residual needs three frames, so its series is shorter.
  series = {
    name: [0.1] * (length - 1) + [0.1 + 0.1 * k]
    for k, (name, length) in enumerate(
      (("scale", FRAMES), ("traj", FRAMES - 2), ("rigid", FRAMES))
    )
  }
  peaks = [
    {"component": "scale", "share": 0.4, "worst_frame": FRAMES - 1},
    {"component": "traj", "share": 0.4, "worst_frame": FRAMES - 2},
  ]
  scored = pdi is not None
  return Record(
    protocol="pdi",
    variant="paper",
    system=system,
    case_id=case_id,
    status=status,
    reason=reason,
    values={"pdi": pdi, "scale": pdi, "traj": pdi, "rigid": pdi},
    groups={"category": category},
    coverage={"frames": frames},
    details={"series": series, "peaks": peaks} if scored else {},
    provenance={
      "source": source,
      "fps": fps,
      "backends": backends or {"masks": {"backend": "grabcut_flow"}},
    },
  )


def write_pdi_run(
  folder: pathlib.Path,
  records: Sequence[Record],
  *,
  allow_partial: bool = True,
  flags: Mapping[str, Any] | None = None,
  window: Sequence[int] | None = None,
) -> None:
  """Writes `records.jsonl`, `scores.json` and `run.json`."""
  # A few hundred resamples are enough for a picture.
  constants = dataclasses.replace(
    for_variant("paper"), bootstrap_replicates=200
  )
  folder.mkdir(parents=True, exist_ok=True)
  lines = "".join(record.to_json() + "\n" for record in records)
  (folder / "records.jsonl").write_text(lines, encoding="utf-8")
  expected: dict[str, dict[str, str]] = {}
  for record in records:
    cases = expected.setdefault(record.system, {})
    cases[record.case_id] = record.groups["category"]
  totals = aggregate.leaderboard(
    expected,
    records,
    constants,
    anchors=None,
    allow_partial=allow_partial,
    source=str(folder),
  )
  outputs.write_json(
    folder / "scores.json",
    {
      "protocol": "pdi",
      "variant": "paper",
      "systems": totals["systems"],
      "ranking": totals["ranking"],
    },
  )
  outputs.write_json(
    folder / "run.json",
    {
      "protocol": "pdi",
      "variant": "paper",
      "settings": {
        "constants": dataclasses.asdict(constants),
        "perception": {"window": window},
      },
      "flags": flags or {},
      "environment": {"git_commit": "abc1234"},
    },
  )


def hostile_run(folder: pathlib.Path, *, cases: int = 40) -> list[Record]:
  """Four systems with hostile names and every status; returns the records."""
  rng = np.random.default_rng(0)
  records = []
  for number, system in enumerate(HOSTILE):
    for i in range(cases):
      category = CATEGORIES[i % 2]
      name = f"{category}/{i:03d}"
      kind = {3: "failed", 5: "degenerate", 7: "missing"}.get(i, "ok")
      if i == 9:
        name = "<img src=x onerror='document.title=\"hacked\"'>"
      reason = {
        "failed": FAILED_TEXT,
        "degenerate": "the object does not move",
        "missing": "no masks were given",
      }.get(kind, "")
      value = 0.1 * (number + 1) + 0.02 * float(rng.random())
      records.append(
        pdi_record(
          system,
          name,
          pdi=value if kind == "ok" else None,
          status=kind,
          reason=reason,
          category=category,
        )
      )
  write_pdi_run(folder, records)
  return records


def write_study(
  folder: pathlib.Path, kind: str, rows: list[dict], **extra: object
) -> None:
  """Writes `study.json` as `bin.bootstrap` would."""
  outputs.write_json(
    folder / "study.json",
    {
      "study": {"study": kind, "options": {}, "resampling": {"unit": "case"}},
      "notes": [],
      "replicates": 1000,
      "rows": rows,
      **extra,
    },
  )


def write_clip(folder: pathlib.Path) -> None:
  """A clip, masks and geometry: a square that moves right, a camera forward."""
  folder.mkdir(parents=True)
  frames = np.full((FRAMES, 48, 64, 3), 128, np.uint8)
  masks = np.zeros((1, FRAMES, 48, 64), bool)
  for t in range(FRAMES):
    masks[0, t, 20:30, 2 + 4 * t : 12 + 4 * t] = True
  video.write_video(folder / "clip.mp4", frames, fps=fractions.Fraction(24))
  source = observation.Provenance("", "exact", "1")
  rows = np.arange(FRAMES, dtype=np.int32)
  observation.Masks(masks, np.array([1], np.int32), rows, source).save(
    folder / "masks.npz"
  )
  poses = np.tile(np.eye(4), (FRAMES, 1, 1))
  poses[:, 2, 3] = 0.1 * rows
  depth = np.full((FRAMES, 24, 32), 2.0, np.float32)
  depth[:, :4] = np.nan
  intrinsics = np.array([[30, 0, 16], [0, 30, 12], [0, 0, 1]], np.float32)
  observation.Geometry(
    depth,
    np.tile(intrinsics, (FRAMES, 1, 1)),
    poses,
    rows,
    (48, 64),
    "metre",
    source,
  ).save(folder / "geometry.npz")
