# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""PDI on the ray-cast world: built-in generators and dose-response table."""

from __future__ import annotations

import functools
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from protocols.calibration import clips, doses, generators, scenes
from protocols.calibration.clips import Recording
from protocols.calibration.defects import DEFECTS
from protocols.common import outputs
from protocols.common.progress import Progress
from protocols.pdi import figures, measure
from protocols.pdi.constants import PdiConstants
from protocols.pdi.normalise import COMPONENTS
from protocols.pdi.observe import Observed
from protocols.pdi.score import clip_arrays

LOST = "lost_mask_fraction"

_COLUMNS = (
  "defect",
  "strength",
  "expected",
  *COMPONENTS,
  "pdi",
  LOST,
  "noise_floor",
  "seen",
  "blind",
)
_DOSE_SIZE = (120, 160)
_DOSE_FRAMES = 96
_DOSE_FPS = 24.0


def write_generators(root: pathlib.Path, *, clips_per_category: int) -> None:
  """Writes the clips and observations of the five built-in generators.

  Args:
    root: folder to write below; clips that are already there are kept.
    clips_per_category: clips for each generator and category.

  Raises:
    InputError: if the disk refuses.
  """
  total = (
    len(generators.GENERATORS) * len(scenes.CATEGORIES) * clips_per_category
  )
  with Progress(total, label="calibration clips") as bar:
    for _ in generators.write_generators(
      root, clips_per_category=clips_per_category
    ):
      bar.advance()


def dose_table(constants: PdiConstants) -> list[dict[str, Any]]:
  """Components at every strength of every defect.

  The noise floor of a component is the largest value that any pristine scene
  gets: a dose is seen when the mean over scenes lies above it.

  Args:
    constants: constants of the variant.

  Returns:
    Rows with the columns of `doses.csv`.
  """
  chosen = [
    scenes.make_scene(
      category, seed=0, frames=_DOSE_FRAMES, size=_DOSE_SIZE, fps=_DOSE_FPS
    )
    for category in scenes.CATEGORIES
  ]
  pristine = [
    score_recording(clips.record(scene, color=False), constants)
    for scene in chosen
  ]
  total = sum(len(defect.doses) for defect in DEFECTS.values())
  with Progress(total, label="doses") as bar:
    rows = doses.run(
      functools.partial(score_recording, constants=constants),
      chosen,
      progress=lambda _: bar.advance(),
    )
  return [_row(row, pristine) for row in rows]


def score_recording(
  recording: Recording, constants: PdiConstants
) -> dict[str, float | None]:
  """Components of one recording with its exact observations."""
  found = Observed(
    frames=None,
    fps=recording.fps,
    source_sha256="",
    masks=recording.masks,
    tracks=recording.tracks,
    geometry=recording.geometry,
    absent={},
  )
  arrays = clip_arrays(found, name="calibration")
  measured = measure.measure_clip(arrays, constants, dtype=np.float64)
  return {
    "scale": measured.scale,
    "traj": measured.traj,
    "rigid": measured.rigid,
    "pdi": measured.pdi,
    LOST: measured.lost_mask_fraction,
  }


def _row(
  row: doses.Dose, pristine: Sequence[Mapping[str, float | None]]
) -> dict[str, Any]:
  component = row.expected if row.expected in COMPONENTS else LOST
  floor = noise_floor(pristine, component)
  value = row.values[component]
  return {
    "defect": row.defect,
    "strength": row.strength,
    "expected": row.expected,
    **row.values,
    "noise_floor": floor,
    "seen": value is not None and floor is not None and value > floor,
    "blind": DEFECTS[row.defect].blind,
  }


def noise_floor(
  pristine: Sequence[Mapping[str, float | None]], component: str
) -> float | None:
  """Largest value of a component over pristine scenes; None for none."""
  values = [v for row in pristine if (v := row[component]) is not None]
  return max(values, default=None)


def write_doses(
  output: pathlib.Path, rows: Sequence[Mapping[str, Any]]
) -> None:
  """Writes `doses.csv`, `doses.json` and `doses.png`.

  Raises:
    InputError: if the disk refuses.
  """
  outputs.write_csv(output / "doses.csv", _COLUMNS, rows)
  outputs.write_json(output / "doses.json", {"rows": list(rows)})
  figures.dose_response(output / "doses.png", rows)


def describe_doses(rows: Sequence[Mapping[str, Any]]) -> str:
  """The table as text, each defect with what PDI cannot see of it."""
  lines = [
    "dose-response (means over the pristine scenes of five categories)",
    f"{'defect':<20} {'dose':>5} {'scale':>8} {'traj':>8} {'rigid':>8}"
    f" {'lost':>6}  moves",
  ]
  for row in rows:
    numbers = " ".join(_cell(row[name]) for name in COMPONENTS)
    verdict = "" if row["strength"] == 0 else _verdict(row)
    lines.append(
      f"{row['defect']:<20} {row['strength']:5.2f} {numbers}"
      f" {row[LOST]:6.2f}  {verdict}"
    )
  lines.append("what PDI cannot see:")
  for name in dict.fromkeys(row["defect"] for row in rows):
    lines.append(f"  {name}: {DEFECTS[name].blind}")
  return "\n".join(lines)


def _verdict(row: Mapping[str, Any]) -> str:
  mark = "above" if row["seen"] else "within"
  return f"{row['expected']}, {mark} the noise floor"


def _cell(value: float | None) -> str:
  return f"{value:8.4f}" if value is not None else f"{'-':>8}"
