# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Flags of the PDI protocol: inputs and perception backends."""

from __future__ import annotations

import pathlib
from typing import TYPE_CHECKING

from absl import flags

from bin import settings
from perception.errors import InputError

if TYPE_CHECKING:
  from protocols.pdi.run import PdiConfig

_CLIPS = flags.DEFINE_string(
  "clips",
  None,
  "Folder of clips: model/category/index/clip, model/category/clip,"
  " model/clip, or clips.",
)
_LIST = flags.DEFINE_string("list", None, "JSONL list of clips; see README.md.")
_RGBD = flags.DEFINE_list(
  "rgbd", [], "Recorded RGB-D folders (7-Scenes or TUM layout)."
)
_OBSERVATIONS = flags.DEFINE_string(
  "observations",
  None,
  "Folder of ready arrays: model/[category/]case/{geometry,masks,tracks}.npz.",
)
_CALIBRATION = flags.DEFINE_bool(
  "calibration",
  False,
  "Score the built-in ray-cast generators instead of an input.",
)
_DOSES = flags.DEFINE_bool(
  "doses", True, "With --calibration: also the dose-response table."
)
_CALIBRATION_CLIPS = flags.DEFINE_integer(
  "calibration_clips",
  1,
  "With --calibration: clips for each generator and category.",
  lower_bound=1,
)
_OBJECT_BOX = flags.DEFINE_list(
  "object_box", [], "x0,y0,x1,y1 of the object in frame 0, pixels."
)
_MASKS = flags.DEFINE_string(
  "masks", "auto", "Mask backend; auto: the case's own, or else offline."
)
_TRACKS = flags.DEFINE_string(
  "tracks", "auto", "Track backend; auto: the case's own, or else offline."
)
_GEOMETRY = flags.DEFINE_string(
  "geometry", "auto", "Geometry backend; auto: the case's own, or else none."
)
_AUDIT = flags.DEFINE_string(
  "audit", "none", "Vision-language backend of the two picture audits."
)
_BACKEND_SETTINGS = flags.DEFINE_string(
  "backend_settings",
  "{}",
  'JSON object of settings by backend name: {"sam2": {"device": "cuda"}}.',
)
_SAMPLING = flags.DEFINE_enum(
  "sampling",
  "variant",
  ["variant", "native"],
  "Frames of raw clips: as the variant says (paper: 24 fps, at most 288, at"
  " least 96 frames) or all as they are.",
)
_FPS = flags.DEFINE_float(
  "fps", 0.0, "Rate of sequences that state none; 0 = unknown.", lower_bound=0
)
_FRAMES = flags.DEFINE_string(
  "frames", None, "START:STOP, rows of each clip to use; all without it."
)
_REFERENCE_SYSTEM = flags.DEFINE_string(
  "reference_system",
  None,
  "System of real clips that anchors the 0-100 score; without it the score"
  " needs published-grade backends.",
)


def config() -> PdiConfig:
  """The PDI configuration from the flags.

  Raises:
    InputError: unless exactly one input is given, or a value is malformed.
  """
  from protocols.pdi import cases
  from protocols.pdi.observe import PerceptionConfig
  from protocols.pdi.run import PdiConfig, PdiInputs

  settings.require_one(
    {
      "--clips": _CLIPS.value,
      "--list": _LIST.value,
      "--rgbd": _RGBD.value,
      "--observations": _OBSERVATIONS.value,
      "--calibration": _CALIBRATION.value,
    }
  )
  box = cases.parse_box(
    _OBJECT_BOX.value or None, source="flags", field="--object_box"
  )
  return PdiConfig(
    variant=settings.variant(),
    inputs=PdiInputs(
      clips=settings.optional_path(_CLIPS.value),
      list_file=settings.optional_path(_LIST.value),
      rgbd=tuple(pathlib.Path(path) for path in _RGBD.value),
      observations=settings.optional_path(_OBSERVATIONS.value),
      calibration_clips=_CALIBRATION_CLIPS.value if _CALIBRATION.value else 0,
      doses=_DOSES.value and _CALIBRATION.value,
      object_box=box,
    ),
    perception=PerceptionConfig(
      masks=_MASKS.value,
      tracks=_TRACKS.value,
      geometry=_GEOMETRY.value,
      vision_language=_AUDIT.value,
      settings=settings.backend_settings(
        _BACKEND_SETTINGS.value, flag="--backend_settings"
      ),
      geometry_pass=settings.geometry_pass(),
      sampling=_SAMPLING.value,
      fps=_FPS.value,
      window=_window(_FRAMES.value),
      cache=settings.cache(),
    ),
    reference_system=_REFERENCE_SYSTEM.value or "",
  )


def _window(text: str | None) -> tuple[int, int] | None:
  if not text:
    return None
  parts = text.split(":")
  if len(parts) == 2 and all(part.isdigit() for part in parts):
    start, stop = int(parts[0]), int(parts[1])
    if start < stop:
      return start, stop
  raise InputError(
    "flags",
    "--frames",
    found=text,
    expected="START:STOP with 0 <= START < STOP",
  )
