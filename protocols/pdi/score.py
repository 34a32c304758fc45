# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""From a PDI case to its record: observe, measure, guard, audit, judge."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from perception import registry, roles
from protocols.common.records import DEGENERATE, MISSING, OK, Record
from protocols.pdi import audits, guard, measure
from protocols.pdi.cases import PdiCase
from protocols.pdi.clip import ClipArrays
from protocols.pdi.constants import PdiConstants
from protocols.pdi.measure import PdiMeasurement
from protocols.pdi.observe import NONE, Observed, PerceptionConfig, observe

PROTOCOL = "pdi"


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
    return _record(case, found, constants, MISSING, reason)
  arrays = clip_arrays(found, name=f"{case.system}/{case.case_id}")
  measured = measure.measure_clip(arrays, constants, dtype=np.float64)
  verdict = None
  if found.geometry is not None:
    verdict = guard.check(
      arrays,
      None if found.frames is None else found.frames.frames,
      constants,
      dtype=np.float64,
    )
  pictures = _picture_audits(case, found, config)
  status, reason = _judge(case, found, measured, verdict, constants, config)
  return _record(
    case,
    found,
    constants,
    status,
    reason,
    measured=measured,
    verdict=verdict,
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
  verdict: guard.GuardReport | None,
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
    return DEGENERATE, f"reconstruction check failed: {verdict.failures()}"
  return OK, ""


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
  backend: roles.VisionLanguageBackend = registry.get(
    "vision_language", name, **config.settings.get(name, {})
  )
  frames = list(found.frames.frames)
  query = case.object_query or "the marked object"
  request = audits.mask_request(frames, found.masks.masks[0], query)
  verdicts["mask_audit"] = audits.parse(backend.answer(request).text)
  if found.tracks is not None:
    request = audits.track_request(
      frames, found.tracks.xy, found.tracks.visible, query
    )
    verdicts["track_audit"] = audits.parse(backend.answer(request).text)
  return verdicts


def _record(
  case: PdiCase,
  found: Observed,
  constants: PdiConstants,
  status: str,
  reason: str,
  *,
  measured: PdiMeasurement | None = None,
  verdict: guard.GuardReport | None = None,
  pictures: dict[str, audits.Verdict] | None = None,
) -> Record:
  values: dict[str, float | None] = {"pdi": None}
  coverage: dict[str, float | None] = {"dropped_frames": found.dropped_frames}
  details: dict[str, Any] = {"object_query": case.object_query}
  notes: list[str] = []
  if measured is not None:
    values |= _values(measured, has_geometry=found.geometry is not None)
    coverage |= _coverage(measured)
    details |= _details(measured, found)
    notes += measure.describe_sentinels(measured.sentinels)
    notes += list(measured.reasons.values())
  if verdict is not None:
    values |= verdict.values()
    details["audit"] = verdict.details()
  for name, picture in (pictures or {}).items():
    details.setdefault("audit", {})[name] = picture.outcome
    if picture.reason:
      details["audit"][f"{name}_reason"] = picture.reason
  records = {
    role: getattr(found, role)
    for role in ("masks", "tracks", "geometry")
    if getattr(found, role) is not None
  }
  backends = {
    role: dataclasses.asdict(record.provenance)
    for role, record in records.items()
  }
  return Record(
    protocol=PROTOCOL,
    variant=constants.variant,
    system=case.system,
    case_id=case.case_id,
    status=status,
    reason=reason,
    values=values,
    groups=case.groups,
    coverage=coverage,
    notes=tuple(dict.fromkeys(notes)),
    details=details,
    provenance={
      "source": str(case.video or case.rgbd or ""),
      "source_sha256": found.source_sha256,
      "backends": backends,
      "fps": found.fps,
    },
    comparable_to_published=constants.variant == "released"
    and len(records) == 3
    and all(
      _comparable(role, str(entry["backend"]))
      for role, entry in backends.items()
    ),
  )


def _values(
  measured: PdiMeasurement, *, has_geometry: bool
) -> dict[str, float | None]:
  """Scalars of the record; components only where they were measured."""
  spread = measured.rigid_seeds
  values: dict[str, float | None] = {
    "rigid_2d": measured.rigid_2d,
    "rigid_seed_std": float(np.std(spread)) if spread else None,
    "scale": None,
    "traj": None,
    "rigid": None,
  }
  if has_geometry:
    values |= {
      "pdi": measured.pdi,
      "scale": measured.scale,
      "traj": measured.traj,
      "rigid": measured.rigid,
      "v_ref": measured.v_ref,
    }
  return values


def _coverage(measured: PdiMeasurement) -> dict[str, float | None]:
  return {
    "frames": measured.frames,
    "lost_mask_fraction": measured.lost_mask_fraction,
    "truncated_fraction": measured.truncated_fraction,
    "tracks": measured.n_tracks,
    "anchors": measured.n_anchors,
    "candidates": measured.n_candidates,
    "pairs": measured.n_pairs,
    "clipped_track_fraction": measured.clipped_track_fraction,
  }


def _details(measured: PdiMeasurement, found: Observed) -> dict[str, Any]:
  assert found.masks is not None
  return {
    "grade": measured.grade if found.geometry is not None else "",
    "strategy": measured.strategy,
    "sentinels": list(measured.sentinels),
    "valid": measured.valid,
    "series": {
      name: _rounded(series) for name, series in measured.series.items()
    },
    "height": _rounded(measured.h),
    "video_size": list(found.masks.masks.shape[2:]),
    "depth_size": (
      None if found.geometry is None else list(found.geometry.depth_size)
    ),
  }


def _rounded(series: Sequence[float] | np.ndarray) -> list[float]:
  """Six decimals: enough for a plot, and short lines."""
  return [round(float(value), 6) for value in series]


def _comparable(role: str, backend: str) -> bool:
  if backend not in registry.names(role):
    return False
  return registry.spec(role, backend).comparable_to_published
