# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""T6, temporal stability: level and retention over five-second windows.

An indicator is a list of samples with times and a map from a window's mean to
a score. The mean is mapped, not the mapped samples averaged. All of it is
float64 on a handful of numbers. Section numbers are those of the project's
Orbia specification.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from kernels import window_stability
from protocols.common.totals import mean
from protocols.orbia import normalisation, schedules
from protocols.orbia.constants import Constants
from protocols.orbia.control import OK, Control, omitted
from protocols.orbia.tiers import control_names

Floats = NDArray[np.float64]
Score = Callable[[float | None], float | None]

# Indicators that are averaged before they enter the geometry dimension (8.4).
_POOLED = {
  "depth": ("depth_short", "depth_medium"),
  "feature": ("reproj_short", "reproj_medium"),
  "scale": ("scale",),
}
_QUALITY = ("hps", "imaging", "aesthetic")


@dataclasses.dataclass(frozen=True, eq=False)
class Samples:
  """Samples of one indicator.

  Attributes:
    times_s: [N].
    values: [N], NaN = no value.
    score: map of a window's raw mean.
  """

  times_s: Floats
  values: Floats
  score: Score


class LevelRetention(NamedTuple):
  """Level A and retention R, 0-100."""

  level: float
  retention: float


@dataclasses.dataclass(frozen=True)
class Stability:
  """Temporal stability of one video.

  Attributes:
    score: the video's score, None if a dimension is missing.
    dimensions: level and retention of quality, control, geometry.
    indicators: level and retention by indicator.
    curves: window values by indicator, None = no value.
    bounds: window bounds in seconds.
  """

  score: float | None
  dimensions: dict[str, LevelRetention | None]
  indicators: dict[str, LevelRetention | None]
  curves: dict[str, list[float | None]]
  bounds: list[tuple[float, float]]


def measure_stability(
  indicators: Mapping[str, Samples],
  *,
  profile: str,
  frame_count: int,
  fps: float,
  c: Constants,
) -> Stability:
  """Level, retention and score of one video (8).

  Args:
    indicators: samples by indicator name; absent ones are missing.
    profile: `pose_and_action` or `action_only`.
    frame_count: frames in the video.
    fps: clock of the video.
    c: constants.

  Returns:
    `Stability`.
  """
  bounds = schedules.windows(frame_count, fps=fps, c=c)
  curves = {k: window_curve(s, bounds, c=c) for k, s in indicators.items()}
  found = {name: level_and_retention(curve) for name, curve in curves.items()}
  geometry = [
    _average([found.get(name) for name in names]) for names in _POOLED.values()
  ]
  dimensions = {
    "quality": _average([found.get(name) for name in _QUALITY]),
    "control": _average([found.get(n) for n in control_names(profile)]),
    "geometry": _average(geometry),
  }
  scores = [
    None
    if pair is None
    else c.level_weight * pair.level + c.retention_weight * pair.retention
    for pair in dimensions.values()
  ]
  present = [score for score in scores if score is not None]
  return Stability(
    score=mean(present) if len(present) == len(scores) else None,
    dimensions=dimensions,
    indicators=found,
    curves=curves,
    bounds=[(float(a), float(b)) for a, b in bounds],
  )


def control_samples(
  control: Control, *, template: str, group: str, pure_yaw: bool, c: Constants
) -> dict[str, Samples]:
  """Indicators of the control dimension (8.2), exclusions applied."""
  if control.status != OK or control.move is None or control.look is None:
    return {}
  times = control.primary / control.fps
  samples = {
    "translation": Samples(
      times, control.translation, normalisation.TRANSLATION.score
    ),
    "rotation": Samples(
      times, control.rotation_deg, normalisation.ROTATION.score
    ),
    "move": Samples(control.move.times_s, control.move.scores, _same),
    "look": Samples(control.look.times_s, control.look.scores, _same),
  }
  for name in omitted(template, group, pure_yaw=pure_yaw, c=c):
    samples.pop(name)
  return samples


def quality_samples(
  *,
  imaging: Floats | None,
  aesthetic: Floats | None,
  hps: Floats | None,
  frame_count: int,
  fps: float,
  c: Constants,
) -> dict[str, Samples]:
  """Indicators of the quality dimension (8.2); None = not measured.

  Args:
    imaging: per frame 0, 4, 8, ..., 0-100.
    aesthetic: per frame 0, 4, 8, ..., ten times the native value.
    hps: raw rewards at `schedules.hps_frames`.
    frame_count: frames in the video.
    fps: clock of the video.
    c: constants.
  """
  every = np.arange(0, frame_count, c.quality_stride) / fps
  preference = schedules.hps_frames(frame_count, c=c) / fps
  found = {}
  if imaging is not None:
    found["imaging"] = Samples(every, imaging, _same)
  if aesthetic is not None:
    found["aesthetic"] = Samples(every, aesthetic, _same)
  if hps is not None:
    found["hps"] = Samples(preference, hps, normalisation.PREFERENCE.score)
  return found


def geometry_samples(
  items: Mapping[str, NDArray[np.int64]],
  depth: Mapping[str, Floats],
  feature: Mapping[str, Floats],
  scale: Mapping[str, Floats],
  *,
  fps: float,
) -> dict[str, Samples]:
  """Indicators of the geometry dimension, at the target frame's time (8.2).

  Args:
    items: [I, 2] directional items by group (`short`, `medium`).
    depth, feature, scale: [I] values by group, NaN = no value.
    fps: clock of the video.
  """
  found = {}
  ends = normalisation.LEAVES
  for name in items:
    targets = items[name][:, 1]
    for kind, values in (("depth", depth), ("reproj", feature)):
      leaf = f"{kind}_{name}"
      times, means = _by_target(targets, values[name])
      found[leaf] = Samples(times / fps, means, ends[leaf].score)
  targets = np.concatenate([pairs[:, 1] for pairs in items.values()])
  pooled = np.concatenate([scale[name] for name in items])
  found["scale"] = Samples(targets / fps, pooled, ends["scale"].score)
  return found


def window_curve(
  samples: Samples, bounds: Floats, *, c: Constants
) -> list[float | None]:
  """Window values of one indicator: the mapped mean of each window."""
  members = schedules.window_members(samples.times_s, bounds, c=c)
  finite = np.isfinite(samples.values)
  curve = []
  for inside in members & finite:
    curve.append(samples.score(mean(samples.values[inside])))
  return curve


def level_and_retention(
  curve: list[float | None],
) -> LevelRetention | None:
  """Level A and retention R of window values; None if not valid (8.3)."""
  values = np.array([np.nan if v is None else v for v in curve], np.float64)
  valid = np.isfinite(values)
  dtype = jnp.result_type(float)
  found = _retention_kernel(
    jnp.asarray(np.where(valid, values, 0), dtype), jnp.asarray(valid)
  )
  if not bool(found.valid):
    return None
  return LevelRetention(float(found.level), float(found.retention))


_retention_kernel = jax.jit(window_stability.level_and_retention)


def _average(
  pairs: list[LevelRetention | None],
) -> LevelRetention | None:
  present = [pair for pair in pairs if pair is not None]
  level = mean([pair.level for pair in present])
  retention = mean([pair.retention for pair in present])
  if level is None or retention is None:
    return None
  return LevelRetention(level, retention)


def _by_target(
  targets: NDArray[np.int64], values: Floats
) -> tuple[Floats, Floats]:
  """Items with the same target are averaged first (8.2)."""
  finite = np.isfinite(values)
  frames = np.unique(targets[finite])
  means = [values[finite & (targets == frame)].mean() for frame in frames]
  return frames.astype(np.float64), np.array(means, np.float64)


def _same(value: float | None) -> float | None:
  return value
