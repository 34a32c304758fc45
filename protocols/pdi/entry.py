# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""A PDI record from what was observed, measured and audited."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from protocols.common.records import Record
from protocols.pdi import audits, diagnostics, guard, measure
from protocols.pdi.cases import PdiCase
from protocols.pdi.constants import PdiConstants
from protocols.pdi.measure import PdiMeasurement
from protocols.pdi.observe import Observed

PROTOCOL = "pdi"

# The published perception stack (sections 2.1, 2.4, 2.5).
_PUBLISHED_BACKENDS = {
  "masks": "sam2",
  "tracks": "cotracker3",
  "geometry": "megasam",
}


def build(
  case: PdiCase,
  found: Observed,
  constants: PdiConstants,
  status: str,
  reason: str,
  *,
  measured: PdiMeasurement | None = None,
  verdict: guard.GuardResult | None = None,
  views: diagnostics.Diagnostics | None = None,
  pictures: Mapping[str, audits.Verdict] | None = None,
) -> Record:
  """Collects everything that is known about a clip.

  Args:
    case: the clip.
    found: what perception saw.
    constants: constants of the variant.
    status, reason: the judgement.
    measured: scores, where the metric stage ran.
    verdict: reconstruction checks, where there is a reconstruction.
    views: vanishing points, where the background was tracked.
    pictures: picture audits by name.

  Returns:
    The record.
  """
  values: dict[str, float | None] = {"pdi": None}
  coverage: dict[str, float | None] = {"dropped_frames": found.dropped_frames}
  details: dict[str, Any] = {"object_query": case.object_query}
  notes: list[str] = []
  if measured is not None:
    values |= _values(measured, has_geometry=found.geometry is not None)
    coverage |= _coverage(measured)
    details |= _details(measured, found)
    if values["pdi"] is not None:
      details["peaks"] = _peaks(measured, constants)
    notes += _traps(measured)
    notes += list(measured.reasons.values())
  if verdict is not None:
    values |= _guard_values(verdict)
    details["audit"] = _guard_details(verdict, constants)
  if views is not None:
    values["vp"] = views.coupling
    details["vanishing_points"] = {
      "object": views.foreground_vp,
      "background": views.background_vp,
    }
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
    and _published_stack(backends),
  )


def _published_stack(backends: Mapping[str, Mapping[str, Any]]) -> bool:
  """Whether every role is filled as in the paper, with real weights."""
  names = {role: entry["backend"] for role, entry in backends.items()}
  weights = [
    backends[role]["weights_sha256"]
    for role in ("masks", "tracks")
    if role in backends
  ]
  return names == _PUBLISHED_BACKENDS and not {"", "random"} & set(weights)


def _traps(measured: PdiMeasurement) -> list[str]:
  """Every trap that the clip met, with how much of it is affected."""
  shares = {
    "lost_masks": measured.lost_mask_fraction,
    "clipped_tracks": measured.clipped_track_fraction,
  }
  lines = measure.describe_sentinels(measured.sentinels)
  for row, name in enumerate(measured.sentinels):
    if shares.get(name) is not None:
      lines[row] += f" ({shares[name]:.1%} of all)"
  return lines


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


def _guard_values(verdict: guard.GuardResult) -> dict[str, float | None]:
  ground, views = verdict.ground, verdict.reprojection
  passed = verdict.math_pass
  return {
    "math_pass": None if passed is None else float(passed),
    "ground_rmse": None if ground is None else ground.rmse,
    "ground_relative_rmse": None if ground is None else ground.relative_rmse,
    "scale_jump": verdict.scale_jump,
    "reprojection_coverage": None if views is None else views.coverage,
    "reprojection_mae": None if views is None else views.mae,
    "reprojection_l2": None if views is None else views.l2,
  }


def _guard_details(
  verdict: guard.GuardResult, constants: PdiConstants
) -> dict[str, Any]:
  """Verdicts in words; what did not run says so."""
  counted = constants.scale_jump_counts
  jump = _word(verdict.scale_jump_pass, verdict.reason)
  ground, views = verdict.ground, verdict.reprojection
  return {
    "math_pass": _word(verdict.math_pass, verdict.reason),
    "ground_plane": _word(
      None if ground is None else ground.passed, verdict.reason
    ),
    "scale_jump": jump if counted else f"{jump}, not part of this check",
    "reprojection": _word(
      None if views is None else views.passed, verdict.reprojection_reason
    ),
    "render_audit": verdict.render_audit,
  }


def _word(passed: bool | None, reason: str) -> str:
  if passed is None:
    return f"{audits.NOT_RUN} ({reason})" if reason else audits.NOT_RUN
  return audits.PASSED if passed else "failed"


def failed_checks(verdict: guard.GuardResult, constants: PdiConstants) -> str:
  """Names of the reconstruction checks that failed, joined by commas."""
  words = _guard_details(verdict, constants)
  checks = ("ground_plane", "scale_jump", "reprojection")
  failed = [
    name.replace("_", " ") for name in checks if words[name] == "failed"
  ]
  return ", ".join(failed)


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


def _peaks(
  measured: PdiMeasurement, constants: PdiConstants
) -> list[dict[str, Any]]:
  """Where PDI comes from: components by share, with their worst frame."""
  rows = []
  names = ("scale", "traj", "rigid")
  for name, weight in zip(names, constants.weights, strict=True):
    value, series = getattr(measured, name), measured.series[name]
    finite = np.nan_to_num(np.asarray(series, np.float64), nan=-1.0)
    # The last entry of every series belongs to the last frame that the
    # residual looks at, so the frame is counted from the end: the trajectory
    # residual of (v_t, v_t+1) is shown at t + 1, its middle frame.
    end = measured.frames - (1 if name == "traj" else 0)
    frame = end - len(series) + int(np.argmax(finite)) if len(series) else None
    rows.append(
      {"component": name, "share": weight * value, "worst_frame": frame}
    )
  return sorted(rows, key=lambda row: -row["share"])


def _rounded(series: Sequence[float] | np.ndarray) -> list[float]:
  """Six decimals: enough for a plot, and short lines."""
  return [round(float(value), 6) for value in series]
