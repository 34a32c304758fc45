# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Flags of the Orbia protocol: inputs, tiers and perception backends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from absl import flags

from bin import settings
from perception.errors import InputError
from protocols.orbia.constants import CONTROL_PROFILES, GROUPS, TIERS

if TYPE_CHECKING:
  from protocols.orbia.run import OrbiaConfig

_QUALITY = ("aesthetic", "imaging", "smoothness", "hps")

_DATASET = flags.DEFINE_string(
  "orbia_dataset", None, "Orbia data set: a folder with manifest.json."
)
_VIDEOS = flags.DEFINE_string(
  "orbia_videos",
  None,
  "Folder of generated videos: MODEL/CASE_ID.mp4, or CASE_ID.mp4 of one model.",
)
_LIST = flags.DEFINE_string(
  "orbia_list", None, "videos.jsonl: model, case_id, video, group, profile."
)
_RGBD = flags.DEFINE_string(
  "orbia_rgbd",
  None,
  "Recorded RGB-D folder: make cases of it and score the recorded frames with"
  " five baselines.",
)
_CALIBRATE = flags.DEFINE_bool(
  "orbia_calibrate",
  False,
  "With --orbia_rgbd: estimate the colour camera, its offset to the depth"
  " camera and the poses from the recording first, for depth that is not"
  " registered to colour.",
)
_CALIBRATION = flags.DEFINE_bool(
  "orbia_calibration",
  False,
  "Make ray-cast cases of all templates and score generators with known"
  " defects.",
)
_FRAME_COUNT = flags.DEFINE_enum(
  "orbia_frame_count",
  "357",
  ["357", "961"],
  "With --orbia_calibration: frames of a case (a minute is 961).",
)
_LIMIT = flags.DEFINE_integer(
  "orbia_limit",
  0,
  "With --orbia_rgbd or --orbia_calibration: at most so many cases; 0 = all.",
  lower_bound=0,
)
_TIERS = flags.DEFINE_list(
  "tiers", list(TIERS), "Tiers to measure; a later run may add others."
)
_GROUP = flags.DEFINE_enum(
  "orbia_group", "world", list(GROUPS), "Group of the models of --orbia_videos."
)
_PROFILE = flags.DEFINE_enum(
  "orbia_profile",
  "pose_and_action",
  list(CONTROL_PROFILES),
  "Control profile of the models of --orbia_videos.",
)
_GEOMETRY = flags.DEFINE_string(
  "orbia_geometry",
  "auto",
  "Geometry backend; auto: CASE_ID.geometry.npz beside the video, else none.",
)
_FEATURES = flags.DEFINE_string(
  "orbia_features", "gradient_orientation", "Features backend."
)
_DISTANCE = flags.DEFINE_string(
  "orbia_distance",
  "descriptor",
  "Perceptual distance backend; descriptor: from the features; none.",
)
_MASKS = flags.DEFINE_string(
  "orbia_masks", "grabcut_flow", "Tracker of the anchors, or none."
)
_NOVEL_VIEW = flags.DEFINE_string(
  "orbia_novel_view",
  "point_splats",
  "Novel-view backend of the reconstruction; point_splats: offline; none.",
)
_QUALITY_BACKENDS = flags.DEFINE_list(
  "orbia_quality",
  [],
  "COMPONENT=BACKEND, of " + ", ".join(_QUALITY) + "; others are missing.",
)
_BACKENDS = flags.DEFINE_string(
  "orbia_backend_settings",
  "{}",
  "JSON object of settings by backend name.",
)


def config() -> OrbiaConfig:
  """The Orbia configuration from the flags.

  Raises:
    InputError: unless exactly one input is given, or a value is malformed.
  """
  from protocols.orbia.perceive import PerceptionConfig
  from protocols.orbia.run import OrbiaConfig, OrbiaInputs

  settings.require_one(
    {
      "--orbia_dataset": _DATASET.value,
      "--orbia_rgbd": _RGBD.value,
      "--orbia_calibration": _CALIBRATION.value,
    }
  )
  return OrbiaConfig(
    variant=settings.variant(),
    inputs=OrbiaInputs(
      dataset=settings.optional_path(_DATASET.value),
      videos=settings.optional_path(_VIDEOS.value),
      list_file=settings.optional_path(_LIST.value),
      rgbd=settings.optional_path(_RGBD.value),
      calibrate=_CALIBRATE.value,
      calibration=_CALIBRATION.value,
      frame_count=int(_FRAME_COUNT.value),
      limit=_LIMIT.value,
      group=_GROUP.value,
      profile=_PROFILE.value,
    ),
    perception=PerceptionConfig(
      geometry=_GEOMETRY.value,
      features=_FEATURES.value,
      distance=_DISTANCE.value,
      masks=_MASKS.value,
      novel_view=_NOVEL_VIEW.value,
      quality=_quality(_QUALITY_BACKENDS.value),
      settings=settings.backend_settings(
        _BACKENDS.value, flag="--orbia_backend_settings"
      ),
      geometry_pass=settings.geometry_pass(),
      cache=settings.cache(),
    ),
    tiers=_tiers(_TIERS.value),
  )


def _tiers(names: list[str]) -> tuple[str, ...]:
  strangers = sorted(set(names) - set(TIERS))
  if strangers or not names:
    raise InputError(
      "flags",
      "--tiers",
      found=", ".join(strangers) or "nothing",
      expected=f"one or more of {', '.join(TIERS)}",
    )
  return tuple(tier for tier in TIERS if tier in names)


def _quality(entries: list[str]) -> dict[str, str]:
  found = {}
  for entry in entries:
    component, _, backend = entry.partition("=")
    if component not in _QUALITY or not backend:
      raise InputError(
        "flags",
        "--orbia_quality",
        found=entry,
        expected=f"COMPONENT=BACKEND, COMPONENT one of {', '.join(_QUALITY)}",
      )
    found[component] = backend
  return found
