# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""The perception stage of any protocol, apart from its scoring.

PDI asks every backend about the clip alone: its stage writes ready `.npz`
observations (`protocols.pdi.perceive`). Orbia and EgoGenEval also ask about
pictures that only their measurement makes (warped references, boards, crops):
their stage measures once and keeps each answer of every role by content.
Scoring with the same `--cache` and the same backends then runs no backend, in
this environment or in one where they are not installed.

`geometry_pass=video` shares the geometry of one video between PDI and Orbia;
see `perception.geometry_pass` for what cannot be shared.
"""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Callable
from typing import Any

from protocols.common import runner

CACHE = "cache"
MEASURED = "measured"


def keep(
  evaluate: Callable[[Any, runner.RunOptions], runner.Outcome],
  config: Any,
  options: runner.RunOptions,
) -> runner.Outcome:
  """Runs a protocol for what its backends say.

  Args:
    evaluate: the protocol's `run.evaluate`.
    config: its configuration, whose `perception` has a `cache`.
    options: output folder, workers, resume. What was measured on the way lies
      in `<output>/measured`, kept results in the configured cache or else in
      `<output>/cache`.

  Returns:
    What to do next, and whether every case was measured.

  Raises:
    InputError: for unusable input or an output folder that cannot be used.
  """
  folder = config.perception.cache or options.output / CACHE
  perception = dataclasses.replace(config.perception, cache=folder)
  found = evaluate(
    dataclasses.replace(config, perception=perception),
    dataclasses.replace(options, output=options.output / MEASURED),
  )
  lines = [
    f"{_count(folder)} kept results in {folder}",
    f"score with the same flags and --cache={folder}",
  ]
  return runner.Outcome("\n".join(lines), found.complete)


def _count(folder: pathlib.Path) -> int:
  """Kept results of all runs with this folder."""
  return sum(path.parent.name != "backends" for path in folder.glob("*/*.*"))
