# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Writes what a model needs to make the videos of a data set.

For every case a folder `<output>/<case_id>/` with

- `image.png`: the input picture, resized to cover the model's size and cut;
- `cameras.npz`: `poses_c2w` (OpenCV), `poses_opengl`, `increments`,
  `intrinsics` of the picture (corner origin), `timestamps_s`;
- `actions.json`: keys by generation block and keys held over time;
- `prompt.txt`: caption and script; `windows.json`: the windows of a model that
  generates a part at a time, each with its own prompt.

Nothing that the data set holds back for evaluation is read. Source: the
project's Orbia specification, section 12.
"""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Sequence
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from protocols.common import outputs
from protocols.common.progress import Progress
from protocols.orbia import actions, camera_conditions, motion_script
from protocols.orbia.constants import RELEASED
from protocols.orbia.dataset import PublicCase, read_dataset
from protocols.orbia.dataset_writer import write_rgb


@dataclasses.dataclass(frozen=True)
class ConditionsConfig:
  """What to write.

  Attributes:
    dataset: data set in the published layout.
    output: folder, made if absent; what exists is written anew.
    size: (h, w) of the model's pictures.
    window: frames that the model generates in one go; 0 = all of them.
    overlap: frames that a window shares with the one before.
    native_fps: rate at which the model plays its frames.
    rates_deg_per_s: yaw and pitch rate of a model that is steered in real
      time.
    control_s: control time of a short and of a long case for such a model.
  """

  dataset: pathlib.Path
  output: pathlib.Path
  size: tuple[int, int] = (RELEASED.image_height, RELEASED.image_width)
  window: int = 0
  overlap: int = 1
  native_fps: float = RELEASED.fps
  rates_deg_per_s: tuple[float, float] = (70.0, 40.0)
  control_s: tuple[float, float] = (20.0, 54.0)


def write(config: ConditionsConfig) -> int:
  """Writes all cases; returns their number.

  Raises:
    InputError: for an unreadable data set.
  """
  cases = read_dataset(config.dataset)
  with Progress(len(cases), label="conditions") as progress:
    for case in cases:
      write_case(case, config)
      progress.advance()
  return len(cases)


def write_case(case: PublicCase, config: ConditionsConfig) -> None:
  """Writes one case."""
  folder = config.output / case.case_id
  folder.mkdir(parents=True, exist_ok=True)
  poses = case.poses()
  crop = camera_conditions.cover_crop(
    case.k, size=case.image_size, target=config.size
  )
  write_rgb(folder / "image.png", _cropped(case.image(), crop, config.size))
  np.savez(
    folder / "cameras.npz",
    poses_c2w=poses,
    poses_opengl=camera_conditions.to_opengl(poses),
    increments=camera_conditions.increments(poses),
    intrinsics=crop.intrinsics,
    timestamps_s=np.arange(case.frame_count) / RELEASED.fps,
  )
  outputs.write_json(folder / "actions.json", _actions(case, poses, config))
  script = motion_script.motion_script(poses, template=case.template)
  caption = (case.folder / "prompt.txt").read_text(encoding="utf-8")
  fps = config.native_fps
  text = motion_script.prompt(caption, script.text(fps=fps))
  outputs.write_atomic(folder / "prompt.txt", text + "\n")
  parts = camera_conditions.windows(
    case.frame_count,
    size=config.window or case.frame_count,
    overlap=config.overlap if config.window else 0,
  )
  outputs.write_json(
    folder / "windows.json",
    {
      "windows": [
        {
          "first_frame": part.start,
          "frames": part.frames.tolist(),
          "repeated_frames": part.skip,
          "new_frames": part.keep,
          "prompt": motion_script.prompt(
            caption,
            script.window(
              part.start,
              min(part.start + len(part.frames), case.frame_count),
              fps=fps,
            ),
          ),
        }
        for part in parts
      ]
    },
  )


def _actions(
  case: PublicCase, poses: NDArray[np.float64], config: ConditionsConfig
) -> dict[str, Any]:
  smooth = actions.smooth_poses(poses, case.events.values())
  motion = actions.local_motion(smooth)
  if case.template == "yaw_return":
    motion = actions.without_translation(motion)
  blocks = actions.block_plan(motion, frame_count=case.frame_count)
  seconds = config.control_s[case.horizon == "long"]
  timed = actions.timed_plan(
    motion, seconds=seconds, rates_deg_per_s=config.rates_deg_per_s
  )
  return {
    "keys": actions.KEYS,
    "blocks": [
      {"first_frame": first, "last_frame": last, "keys": _pressed(row)}
      for (first, last), row in zip(
        blocks.frames.tolist(), blocks.actions.tolist(), strict=True
      )
    ],
    "generated_frames": blocks.generated_frames,
    "held": [
      {"start_s": start, "end_s": end, "keys": _pressed(row)}
      for (start, end), row in zip(
        timed.times_s.tolist(), timed.keys.tolist(), strict=True
      )
    ],
    "rates_deg_per_s": list(config.rates_deg_per_s),
    "saturated_windows": timed.saturated,
  }


def _pressed(row: Sequence[int]) -> str:
  return "".join(key for key, on in zip(actions.KEYS, row, strict=True) if on)


def _cropped(
  image: NDArray[np.uint8],
  crop: camera_conditions.Crop,
  size: tuple[int, int],
) -> NDArray[np.uint8]:
  height, width = crop.resized
  shrinks = height < image.shape[0]
  how = cv2.INTER_AREA if shrinks else cv2.INTER_LANCZOS4
  resized = np.asarray(cv2.resize(image, (width, height), interpolation=how))
  cut = resized[crop.top : crop.top + size[0], crop.left : crop.left + size[1]]
  return cut.astype(np.uint8)
