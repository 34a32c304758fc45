# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Writes what a model needs to make the videos of an Orbia data set.

    python -m bin.conditions --dataset=ORBIA --output=CONDITIONS \
        [--height=480 --width=832] [--window=81 --overlap=1] [--native_fps=24]

For every case: the input picture at the model's size, cameras, keys by block
and over time, a prompt in words, and the windows of a model that generates a
part at a time. What is held back for evaluation is not read. Score the videos
with `bin.evaluate --protocol=orbia`.
"""

from __future__ import annotations

import pathlib
from collections.abc import Sequence

from absl import flags

from bin import cli

_DATASET = flags.DEFINE_string(
  "dataset", None, "Orbia data set, a folder with manifest.json.", required=True
)
_OUTPUT = flags.DEFINE_string(
  "output", None, "Folder with one folder per case.", required=True
)
_HEIGHT = flags.DEFINE_integer(
  "height", 720, "Height of the model's pictures.", lower_bound=1
)
_WIDTH = flags.DEFINE_integer(
  "width", 1280, "Width of the model's pictures.", lower_bound=1
)
_WINDOW = flags.DEFINE_integer(
  "window",
  0,
  "Frames that the model generates in one go; 0 = all.",
  lower_bound=0,
)
_OVERLAP = flags.DEFINE_integer(
  "overlap",
  1,
  "Frames that a window shares with the one before.",
  lower_bound=0,
)
_NATIVE_FPS = flags.DEFINE_float(
  "native_fps",
  16.0,
  "Rate at which the model plays its frames, for times in the prompt.",
  lower_bound=1e-3,
)
_YAW_RATE = flags.DEFINE_float(
  "yaw_rate",
  70.0,
  "Degrees per second of a model steered in real time.",
  lower_bound=1e-3,
)
_PITCH_RATE = flags.DEFINE_float(
  "pitch_rate",
  40.0,
  "Degrees per second of a model steered in real time.",
  lower_bound=1e-3,
)


def main(argv: Sequence[str]) -> int:
  """Writes the folders; returns the exit code."""
  del argv
  from protocols.orbia import conditions

  config = conditions.ConditionsConfig(
    dataset=pathlib.Path(_DATASET.value),
    output=pathlib.Path(_OUTPUT.value),
    size=(_HEIGHT.value, _WIDTH.value),
    window=_WINDOW.value,
    overlap=_OVERLAP.value,
    native_fps=_NATIVE_FPS.value,
    rates_deg_per_s=(_YAW_RATE.value, _PITCH_RATE.value),
  )
  count = conditions.write(config)
  print(f"conditions of {count} cases in {config.output}")
  return cli.OK


if __name__ == "__main__":
  cli.run(main)
