# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""The perception stage alone: cases to folders of ready observations.

Writes `<output>/<system>/<case>/{geometry,masks,tracks}.npz` and the frames
that they describe as `clip.mp4` (lossless), which `bin.evaluate
--observations` scores, here or in another environment.
"""

from __future__ import annotations

import dataclasses
import functools
import pathlib

import numpy as np

from perception import video
from protocols.common import runner
from protocols.common.records import MISSING, OK, Record
from protocols.pdi import run
from protocols.pdi.cases import OBSERVATION_NAMES, PdiCase
from protocols.pdi.constants import PdiConstants, for_variant
from protocols.pdi.observe import Observed, PerceptionConfig, observe

PROTOCOL = "pdi-perception"
FOLDER = "observations"


def perceive(
  config: run.PdiConfig, options: runner.RunOptions
) -> runner.Outcome:
  """Runs perception on every case of the inputs.

  Args:
    config: inputs and backends.
    options: output folder, workers, resume.

  Returns:
    Counts, and whether every role of every case was filled.

  Raises:
    InputError: for unusable input or an output folder that cannot be used.
  """
  constants = for_variant(config.variant)
  root = options.output / FOLDER
  records = runner.run_cases(
    run.load_cases(config, options),
    functools.partial(
      _perceive_case, root=root, config=config.perception, constants=constants
    ),
    protocol=PROTOCOL,
    variant=config.variant,
    settings=run.result_settings(config, constants),
    options=options,
  )
  lacking = [r for r in records.values() if r.status != OK]
  lines = [f"{r.system}/{r.case_id}: {r.status}: {r.reason}" for r in lacking]
  lines.append(
    f"{len(records) - len(lacking)} of {len(records)} cases complete in {root}"
  )
  return runner.Outcome("\n".join(lines), complete=not lacking)


def _perceive_case(
  case: PdiCase,
  *,
  root: pathlib.Path,
  config: PerceptionConfig,
  constants: PdiConstants,
) -> Record:
  found = observe(case, config, constants)
  folder = root / case.system / case.case_id
  if not folder.resolve().is_relative_to(root.resolve()):
    raise ValueError(f"case {case.case_id!r} leaves the output folder")
  _write(folder, found)
  absent = "; ".join(f"{role}: {why}" for role, why in found.absent.items())
  return Record(
    protocol=PROTOCOL,
    variant=constants.variant,
    system=case.system,
    case_id=case.case_id,
    status=MISSING if absent else OK,
    reason=absent,
    groups=case.groups,
    provenance={"source_sha256": found.source_sha256},
  )


def _write(folder: pathlib.Path, found: Observed) -> None:
  """Saves what was found; rows are numbered as in the clip beside them."""
  folder.mkdir(parents=True, exist_ok=True)
  for name in OBSERVATION_NAMES:
    record = getattr(found, name)
    if record is not None:
      rows = np.arange(len(record.frame_indices), dtype=np.int32)
      dataclasses.replace(record, frame_indices=rows).save(
        folder / f"{name}.npz"
      )
  if found.frames is not None and found.frames.fps:
    video.write_video(
      folder / "clip.mp4", found.frames, found.frames.fps, lossless=True
    )
