# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""From a PDI case to its record: observe, measure, guard, audit, judge."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np

from perception import cached, roles, seeding
from protocols.common.records import DEGENERATE, MISSING, OK, Record
from protocols.pdi import audits, diagnostics, entry, guard, measure
from protocols.pdi.cases import PdiCase
from protocols.pdi.clip import ClipArrays
from protocols.pdi.constants import PdiConstants
from protocols.pdi.measure import PdiMeasurement
from protocols.pdi.observe import NONE, Observed, PerceptionConfig, observe


def score_case(
  case: PdiCase, *, config: PerceptionConfig, constants: PdiConstants
) -> Record:
  """Scores one clip.

  Args:
    case: the clip.
    config: which backends fill the roles.
    constants: constants of the variant.

  Returns:
    Its record. `missing` where an input is absent, `degenerate` where the
    formula has no meaning or the clip is not valid (section 6).

  Raises:
    InputError: for input that cannot be read.
  """
  found = observe(case, config, constants)
  if found.masks is None:
    reason = f"masks: {found.absent['masks']}"
    return entry.build(case, found, constants, MISSING, reason)
  arrays = clip_arrays(found, name=f"{case.system}/{case.case_id}")
  measured = measure.measure_clip(arrays, constants, dtype=np.float64)
  verdict = None
  if found.geometry is not None:
    verdict = guard.audit_clip(
      arrays,
      measured,
      constants,
      images=None if found.frames is None else found.frames.read().frames,
      dtype=np.float64,
    )
  views = _vanishing_points(found, constants)
  pictures = _picture_audits(case, found, config)
  status, reason = _judge(case, found, measured, verdict, constants, config)
  return entry.build(
    case,
    found,
    constants,
    status,
    reason,
    measured=measured,
    verdict=verdict,
    views=views,
    pictures=pictures,
  )


def clip_arrays(found: Observed, *, name: str) -> ClipArrays:
  """The metric stage's input from what perception found.

  Args:
    found: observed clip with masks.
    name: names the clip in errors.

  Returns:
    Arrays; without geometry they carry none.
  """
  assert found.masks is not None
  depth: dict[str, Any] = {}
  if found.geometry is not None:
    geometry = found.geometry
    height, width = geometry.full_size
    depth = {
      "depth": geometry.depth,
      "intrinsics": geometry.intrinsics,
      "c2w": geometry.c2w,
      "resized_size": (width, height),
    }
  tracks = found.tracks
  if tracks is not None and tracks.object_ids is not None:
    tracks = tracks.of(int(found.masks.object_ids[0]))
  return ClipArrays(
    masks=found.masks.masks[0],
    tracks=None if tracks is None else tracks.xy,
    visibility=None if tracks is None else tracks.visible,
    fps=found.fps,
    name=name,
    **depth,
  )


def _judge(
  case: PdiCase,
  found: Observed,
  measured: PdiMeasurement,
  verdict: guard.GuardResult | None,
  constants: PdiConstants,
  config: PerceptionConfig,
) -> tuple[str, str]:
  """Status and reason of a measured clip (sections 1.3, 3, 5.1, 6)."""
  raw = case.video is not None and not case.observations
  if (
    raw
    and config.sampling != "native"
    and measured.frames < constants.min_frames
  ):
    return DEGENERATE, (
      f"the clip has {measured.frames} frames at {found.fps:g} fps; this"
      f" variant needs {constants.min_frames} (--sampling=native scores it as"
      " it is)"
    )
  # Also in `released`, whose code scores a clip without reconstruction as if
  # its trajectory were perfect (section 4.5): that is not an input to score.
  for role in ("geometry", "tracks"):
    if role in found.absent:
      return MISSING, f"{role}: {found.absent[role]}"
  if measured.pdi is None:
    return DEGENERATE, "; ".join(measured.reasons.values())
  if not np.isfinite(measured.pdi):
    return DEGENERATE, "PDI is not finite: non-finite points under the mask"
  if constants.failures_score:  # released: no clip is ever invalid
    return OK, ""
  if measured.lost_mask_fraction > constants.max_lost_fraction:
    return DEGENERATE, (
      f"{measured.lost_mask_fraction:.0%} of the masks are lost; at most"
      f" {constants.max_lost_fraction:.0%} may be"
    )
  if verdict is not None and verdict.math_pass is False:
    return (
      DEGENERATE,
      f"reconstruction check failed: {entry.failed_checks(verdict, constants)}",
    )
  return OK, ""


def _vanishing_points(
  found: Observed, constants: PdiConstants
) -> diagnostics.Diagnostics | None:
  """Section 9.2, 9.3: needs pictures and tracks of the background."""
  tracks, masks, frames = found.tracks, found.masks, found.frames
  if tracks is None or tracks.object_ids is None or frames is None:
    return None
  assert masks is not None
  background = tracks.of(seeding.BACKGROUND_ID)
  if not background.xy.shape[1]:
    return None
  return diagnostics.diagnose(
    tracks.of(int(masks.object_ids[0])).xy,
    background.xy,
    cv2.cvtColor(next(iter(frames)), cv2.COLOR_RGB2GRAY),
    masks.masks[0, 0],
    image_size=frames.size,
    constants=constants,
    dtype=np.float64,
  )


def _picture_audits(
  case: PdiCase, found: Observed, config: PerceptionConfig
) -> dict[str, audits.Verdict]:
  """The two vision-language audits; `not run` unless a backend is chosen."""
  verdicts = {
    "mask_audit": audits.Verdict(audits.NOT_RUN),
    "track_audit": audits.Verdict(audits.NOT_RUN),
  }
  if config.vision_language == NONE or found.frames is None:
    return verdicts
  assert found.masks is not None
  name = config.vision_language
  backend: roles.VisionLanguageBackend = cached.get(
    "vision_language",
    name,
    folder=config.cache,
    **config.settings.get(name, {}),
  )
  frames = list(found.frames)
  query = case.object_query or "the marked object"
  request = audits.mask_request(frames, found.masks.masks[0], query)
  verdicts["mask_audit"] = audits.parse(backend.answer(request).text)
  if found.tracks is not None:
    request = audits.track_request(
      frames, found.tracks.xy, found.tracks.visible, query
    )
    verdicts["track_audit"] = audits.parse(backend.answer(request).text)
  return verdicts
