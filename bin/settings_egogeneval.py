# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Flags of the EgoGenEval protocol: evidence, or inputs and backends."""

from __future__ import annotations

import pathlib
from typing import TYPE_CHECKING

from absl import flags

from bin import settings

if TYPE_CHECKING:
  from protocols.egogeneval.run import EgoGenEvalConfig

_EVIDENCE = flags.DEFINE_string(
  "evidence",
  None,
  "Folder of frozen per-step evidence: SYSTEM/cmg.jsonl, SYSTEM/ssp.jsonl.",
)
_MANIFEST = flags.DEFINE_string(
  "manifest", None, "EgoGenEval manifest (JSONL)."
)
_PREDICTIONS = flags.DEFINE_list(
  "predictions",
  [],
  "Prediction files or generation folders, one per system.",
)
_LABELS = flags.DEFINE_string("labels", None, "Frozen label bank (JSONL).")
_EVAL_FRAMES = flags.DEFINE_string(
  "eval_frames", None, "Evaluation frame rows of the physical views (JSONL)."
)
_POSE = flags.DEFINE_string(
  "ego_pose", "pnp", "Pair poses: pnp (offline) or a geometry backend."
)
_DETECTOR = flags.DEFINE_string(
  "ego_detector", "none", "Detections backend; none leaves SSP out."
)
_FEATURES = flags.DEFINE_string(
  "ego_features", "gradient_orientation", "Features backend, or none."
)
_VISION = flags.DEFINE_string(
  "ego_vision", "none", "Vision-language backend, or none."
)
_DEPTH = flags.DEFINE_string(
  "ego_depth",
  "none",
  "Depth of generated images: beside (OUTPUT.depth.npy), a geometry backend,"
  " or none.",
)
_MATCHER = flags.DEFINE_enum(
  "ego_matcher",
  "vision_language",
  ["vision_language", "similarity"],
  "Correspondence: the benchmark's, or the appearance ablation.",
)
_BACKENDS = flags.DEFINE_string(
  "ego_backend_settings",
  "{}",
  "JSON object of settings by backend name; settings of one name in several"
  ' roles go under the role: {"recorded": {"detections": {"path": "DIR"}}}.',
)

_AUXILIARY = flags.DEFINE_string(
  "ego_auxiliary",
  None,
  "JSON of system -> psnr, lpips, niqe, musiq, clip_iqa over the panel, for"
  " RefSim and VisQual.",
)


def config() -> EgoGenEvalConfig:
  """The EgoGenEval configuration from the flags.

  Raises:
    InputError: if a value is malformed.
  """
  from protocols.egogeneval.measure_backends import PerceptionConfig
  from protocols.egogeneval.run import EgoGenEvalConfig

  return EgoGenEvalConfig(
    variant=settings.variant(),
    evidence=settings.optional_path(_EVIDENCE.value),
    manifest=settings.optional_path(_MANIFEST.value),
    predictions=tuple(pathlib.Path(p) for p in _PREDICTIONS.value),
    labels=settings.optional_path(_LABELS.value),
    eval_frames=settings.optional_path(_EVAL_FRAMES.value),
    perception=PerceptionConfig(
      pose=_POSE.value,
      detector=_DETECTOR.value,
      features=_FEATURES.value,
      vision_language=_VISION.value,
      depth=_DEPTH.value,
      matcher=_MATCHER.value,
      settings=settings.backend_settings(
        _BACKENDS.value, flag="--ego_backend_settings"
      ),
      cache=settings.cache(),
    ),
    auxiliary=settings.optional_path(_AUXILIARY.value),
  )
