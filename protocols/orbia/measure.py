# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""All tiers of one generated video, in memory.

`measure` takes the public case, its reference and a `Generated` video and
returns raw leaves, components and statuses by tier. Tiers share what they have
in common (control, directional items, descriptors), each computed once and
only when asked for. Nothing here reads a file.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from perception import observation, video
from protocols.common.records import DEGENERATE, FAILED, MISSING, OK
from protocols.orbia import (
  checkpoints,
  control,
  geometry,
  normalisation,
  persistence,
  preservation,
  quality,
  schedules,
  stability,
)
from protocols.orbia import reference as reference_grid
from protocols.orbia.constants import Constants
from protocols.orbia.dataset import (
  INPUT_EVENT,
  QUERY_EVENT,
  RETURN_EVENT,
  PublicCase,
  Reference,
)
from protocols.orbia.generated import Generated, case_plan, views_of
from protocols.orbia.perceive import Perception
from protocols.orbia.views import Views

Floats = NDArray[np.float64]
Values = dict[str, float | None]


@dataclasses.dataclass(frozen=True)
class TierResult:
  """One tier of one case.

  Attributes:
    values: raw leaves and components by name.
    status: `ok`, `degenerate` (the formula has no meaning for this video),
      `missing` (an input is absent) or `failed`.
    reason: why it is not `ok`.
    details: series for reports.
  """

  values: Values
  status: str = OK
  reason: str = ""
  details: dict[str, Any] = dataclasses.field(default_factory=dict)


def measure(
  case: PublicCase,
  requested: Floats,
  reference: Reference | None,
  generated: Generated,
  perception: Perception,
  *,
  tiers: Iterable[str],
  group: str,
  profile: str,
  c: Constants,
) -> dict[str, TierResult]:
  """Measures the asked tiers of one video.

  Args:
    case: public case.
    requested: [N, 4, 4] requested poses.
    reference: held-back data; needed by T3 only.
    generated: the video.
    perception: backends.
    tiers: tiers to measure.
    group: `world` or `ti2v`.
    profile: `pose_and_action` or `action_only`.
    c: constants.

  Returns:
    Result by tier. A failure of one tier does not stop the others.
  """
  work = _Case(
    case, requested, reference, generated, perception, group, profile, c
  )
  steps: dict[str, Callable[[], TierResult]] = {
    "T1": work.t1,
    "T2": work.t2,
    "T3": work.t3,
    "T4": work.t4,
    "T5": work.t5,
    "T6": work.t6,
  }
  return {tier: steps[tier]() for tier in tiers}


@dataclasses.dataclass(frozen=True, eq=False)
class _Case:
  """Shared measurements of one case."""

  case: PublicCase
  requested: Floats
  reference: Reference | None
  generated: Generated
  perception: Perception
  group: str
  profile: str
  c: Constants
  described: dict[int, Any] = dataclasses.field(default_factory=dict)

  @property
  def fps(self) -> float:
    """The clock: the container's (released) or 16 (paper), see 15.10."""
    return self.generated.fps if self.c.container_clock else self.c.fps

  @functools.cached_property
  def control(self) -> control.Control:
    found = self.generated.geometry
    assert found is not None
    return control.measure_control(
      self.requested,
      found.frame_indices.astype(np.int64),
      found.c2w,
      template=self.case.template,
      group=self.group,
      frame_count=self.generated.frame_count,
      fps=self.generated.fps,
      c=self.c,
      input_frame=self.frame(INPUT_EVENT),
    )

  @functools.cached_property
  def pairs(self) -> NDArray[np.int64]:
    return np.array(
      [[self._at(frame) for frame in pair] for pair in self.case.pairs.values()]
    )

  @functools.cached_property
  def groups(self) -> dict[str, NDArray[np.int64]]:
    return schedules.item_groups(case_plan(self.case, c=self.c), c=self.c)

  @functools.cached_property
  def views(self) -> Views:
    found = self.generated.geometry
    assert found is not None
    frames = geometry.plan_frames(self.groups, self.pairs)
    return views_of(found, frames, c=self.c)

  @functools.cached_property
  def items(self) -> geometry.ItemMeasures:
    every = np.concatenate([*self.groups.values(), self.pairs])
    return geometry.measure_items(
      self.views, every, video_size=self.generated.size, c=self.c
    )

  @functools.cached_property
  def features(self) -> dict[str, Floats]:
    """Feature value by directional item, both groups and the pairs."""
    positions, start = [], 0
    for items in self.groups.values():
      chosen = schedules.feature_positions(len(items), c=self.c)
      positions.append(start + chosen)
      start += len(items)
    positions.append(start + np.arange(len(self.pairs)))
    frames = geometry.feature_frames(self.groups, self.pairs, c=self.c)
    table = {f: self.describe([f])[0].patches for f in frames.tolist()}
    values = geometry.measure_features(
      self.items, np.concatenate(positions), table, c=self.c
    )
    return self.split(values)

  def split(self, values: Floats) -> dict[str, Floats]:
    """Values of all items by group; the registered pairs are `pairs`."""
    found, start = {}, 0
    for name, items in self.groups.items():
      found[name] = values[start : start + len(items)]
      start += len(items)
    return {**found, "pairs": values[start:]}

  def frame(self, event: str) -> int:
    """Video frame of an event (2.4)."""
    return self._at(self.case.events[event])

  def image(self, frame: int) -> NDArray[np.uint8] | None:
    """Pixels of a frame, or None outside the video."""
    return self.generated.frames.get(frame)

  def describe(self, frames: Sequence[int]) -> list[Any]:
    """Descriptors of frames, each computed once."""
    new = [f for f in frames if f not in self.described]
    pictures = [self.generated.frames[f] for f in new]
    described = self.perception.describe(pictures)
    self.described.update(zip(new, described, strict=True))
    return [self.described[f] for f in frames]

  def depth(self, frame: int) -> NDArray[np.floating[Any]] | None:
    """Recovered depth of a frame on the estimator's grid."""
    found = self.generated.geometry
    if found is None:
      return None
    rows = np.flatnonzero(found.frame_indices == frame)
    return found.depth[rows[0]] if rows.size else None

  def t1(self) -> TierResult:
    if self.generated.geometry is None:
      return self._no_geometry(normalisation.CONTROL, "control_")
    found = self.control
    values: Values = {
      f"control_{name}": score for name, score in found.components.items()
    }
    if found.status != control.OK:
      return TierResult(values, FAILED, f"control: {found.reason}")
    values["translation_error"] = float(np.mean(found.translation))
    values["rotation_error_deg"] = float(np.mean(found.rotation_deg))
    values["pose_scale"] = found.scale
    return TierResult(values)

  def t2(self) -> TierResult:
    series = self._quality
    parts = quality.components(
      flicker=self.generated.flicker,
      imaging=series["imaging"],
      aesthetic=_tenfold(series["aesthetic"]),
      smoothness=_mean(series["smoothness"]),
      hps=series["hps"],
    )
    absent = [name for name, value in parts.items() if value is None]
    values: Values = {f"quality_{name}": v for name, v in parts.items()}
    return TierResult(values, details={"missing_components": absent})

  def t3(self) -> TierResult:
    if self.reference is None:
      names = [
        n for n in normalisation.LEAVES if n.startswith(("return", "qe"))
      ]
      values: Values = dict.fromkeys([*names, "identity_mean"])
      return TierResult(values, MISSING, "no reference for this case")
    values = {}
    targets = {
      "return": (checkpoints.return_target, RETURN_EVENT),
      "qe": (checkpoints.query_target, QUERY_EVENT),
    }
    built = {}
    for prefix, (build, event) in targets.items():
      target = build(
        self.case, self.reference, size=self.generated.size, c=self.c
      )
      built[prefix] = target
      frame = self.frame(event)
      image = self.image(frame)
      if image is None:
        reason = f"the video has no frame for event {event}"
        return TierResult(values, FAILED, reason)
      values |= checkpoints.measure(
        target,
        image,
        self.depth(frame),
        self.perception,
        prefix=prefix,
        source=self.case.source,
        c=self.c,
      )
    identity = self._identity(built["return"])
    values["identity_mean"] = None if identity is None else identity.value
    empty = [
      anchor.anchor_id
      for anchor, mask in zip(
        self.reference.anchors, built["qe"].anchors, strict=True
      )
      if not mask.any()
    ]
    details = {
      "empty_query_anchors": empty,
      "identity_covered": identity is not None and identity.covered,
    }
    return TierResult(values, details=details)

  @functools.cached_property
  def static(self) -> str:
    """Why tiers without meaning for a camera that stays are degenerate."""
    found = self.generated.geometry
    if not self.c.refuse_static or found is None:
      return ""
    if not control.is_static(found.c2w, found.depth[0], c=self.c):
      return ""
    return "the recovered camera stays where it is"

  def t4(self) -> TierResult:
    c = self.c
    same = [
      persistence.is_same_pose(
        *persistence.pose_difference(self.requested[i], self.requested[j]), c=c
      )
      for i, j in self.case.pairs.values()
    ]
    direct = [
      self._direct(int(i), int(j), is_same)
      for (i, j), is_same in zip(self.pairs, same, strict=True)
    ]
    geometric = None
    failed = ""
    if self.generated.geometry is not None:
      failed = self._lookup_failure()
      if not failed:
        geometric = self._geometric()
    values = persistence.leaves(direct, geometric, c=c)
    values["same_pairs"] = float(sum(same))
    values["different_pairs"] = float(len(same) - sum(same))
    if failed:
      return TierResult(dict.fromkeys(values), FAILED, failed)
    if self.static:
      return TierResult(dict.fromkeys(values), DEGENERATE, self.static)
    if self.generated.geometry is None:
      return TierResult(values, MISSING, self._geometry_reason())
    return TierResult(values)

  def t5(self) -> TierResult:
    names = [
      *("depth_short", "depth_medium", "reproj_short", "reproj_medium"),
      *("scale", "gs_psnr", "gs_ssim", "gs_lpips"),
    ]
    if self.generated.geometry is None:
      return self._no_geometry(names, "")
    failed = self._lookup_failure()
    if failed:
      return TierResult(dict.fromkeys(names), FAILED, failed)
    if self.static:
      return TierResult(dict.fromkeys(names), DEGENERATE, self.static)
    depth, scale = self.split(self.items.abs_rel), self.split(self.items.scale)
    values: Values = {}
    for name in self.groups:
      values[f"depth_{name}"] = geometry.group_mean(
        depth[name], by_pair=self.c.depth_pairs
      )
      values[f"reproj_{name}"] = geometry.feature_group(
        self.features[name], c=self.c
      )
    pooled = np.concatenate([scale[name] for name in self.groups])
    values["scale"] = geometry.group_mean(pooled, by_pair=False)
    values |= self._reconstruction()
    seen = {n: int(np.isfinite(depth[n]).sum()) for n in self.groups}
    return TierResult(values, details={"items_with_depth": seen})

  def t6(self) -> TierResult:
    samples: dict[str, stability.Samples] = {}
    c, fps = self.c, self.fps
    if self.generated.geometry is not None and not self._lookup_failure():
      pure_yaw = control.is_pure_yaw(self.requested, self.case.template, c=c)
      samples |= stability.control_samples(
        self.control,
        template=self.case.template,
        group=self.group,
        pure_yaw=pure_yaw,
        c=c,
      )
      samples |= stability.geometry_samples(
        self.groups,
        self.split(self.items.abs_rel),
        self.features,
        self.split(self.items.scale),
        fps=fps,
      )
    series = self._quality
    samples |= stability.quality_samples(
      imaging=series["imaging"],
      aesthetic=_tenfold(series["aesthetic"]),
      hps=series["hps"],
      frame_count=self.generated.frame_count,
      fps=fps,
      c=c,
    )
    found = stability.measure_stability(
      samples,
      profile=self.profile,
      frame_count=self.generated.frame_count,
      fps=fps,
      c=c,
    )
    values: Values = {"temporal": found.score}
    for name, pair in found.dimensions.items():
      values[f"{name}_level"] = None if pair is None else pair.level
      values[f"{name}_retention"] = None if pair is None else pair.retention
    details = {"curves": found.curves, "bounds": found.bounds}
    if self.generated.geometry is None:
      reason = self._geometry_reason()
      return TierResult(values, MISSING, reason, details)
    if self.control.status != control.OK:
      reason = f"control: {self.control.reason}"
      return TierResult(values, FAILED, reason, details)
    if self.static:
      return TierResult(dict.fromkeys(values), DEGENERATE, self.static, details)
    return TierResult(values, details=details)

  @functools.cached_property
  def _quality(self) -> dict[str, Floats | None]:
    """Native values of the components that networks judge (4)."""
    count, c = self.generated.frame_count, self.c
    every = range(0, count, c.quality_stride)
    frames = {
      "imaging": every,
      "aesthetic": every,
      "hps": schedules.hps_frames(count, c=c).tolist(),
      # Triplets one after another: the backend predicts the middle ones.
      "smoothness": schedules.smoothness_frames(count, c=c).tolist(),
    }
    found = {
      name: self.perception.quality(
        name, [self.generated.frames[f] for f in chosen]
      )
      if self.perception.judges(name)
      else None
      for name, chosen in frames.items()
    }
    return found

  def _identity(
    self, target: checkpoints.Target
  ) -> preservation.Identity | None:
    assert self.reference is not None
    start, end = self.frame(INPUT_EVENT), self.frame(QUERY_EVENT)
    tracking, scoring = schedules.identity_frames(start, end, c=self.c)
    # Seeds are the input masks on the video's grid, without the depth's holes.
    seeds = np.stack(
      [
        reference_grid.warp_nearest(
          anchor.q0, target.native_to_video, size=self.generated.size
        )
        for anchor in self.reference.anchors
      ]
    )
    pictures = [self.generated.frames[f] for f in tracking.tolist()]
    masks = self.perception.track(target.image, pictures, seeds)
    if masks is None:
      return None
    rows = [int(np.flatnonzero(tracking == frame)[0]) for frame in scoring]
    frames = np.stack([d.tokens for d in self.describe(scoring)])
    seed = self.perception.describe([target.image])[0].tokens
    return preservation.identity(seed, frames, seeds, masks[rows], c=self.c)

  def _direct(self, i: int, j: int, same: bool) -> persistence.Direct:
    first, second = self.image(i), self.image(j)
    if first is None or second is None:
      return persistence.unavailable(same)
    a, b = self.describe([i, j])
    lpips = self.perception.distance(first, second) if same else None
    return persistence.compare_direct(
      persistence.Visit(first, self.depth(i), a.patches, a.pooled),
      persistence.Visit(second, self.depth(j), b.patches, b.pooled),
      same_pose=same,
      lpips=lpips,
      c=self.c,
    )

  def _geometric(self) -> geometry.RevisitMeasures:
    abs_rel = self.split(self.items.abs_rel)["pairs"]
    seen = np.isfinite(abs_rel)
    fscore = np.full(len(self.pairs), np.nan)
    if seen.any():
      fscore[seen] = geometry.measure_clouds(
        self.views, self.pairs[seen], c=self.c
      ).fscore
    return geometry.RevisitMeasures(self.features["pairs"], abs_rel, fscore)

  def _reconstruction(self) -> Values:
    """Held-out views of the reconstruction (7.7); None where not covered."""
    empty: Values = {"gs_psnr": None, "gs_ssim": None, "gs_lpips": None}
    chosen = schedules.reconstruction_frames(
      case_plan(self.case, c=self.c), c=self.c
    )
    found = self.generated.geometry
    renderer = self.perception.renderer
    if chosen is None or renderer is None or found is None:
      return empty
    rows = [
      np.searchsorted(found.frame_indices, frames).tolist() for frames in chosen
    ]
    known = set(found.frame_indices.tolist())
    if not known.issuperset(chosen[0].tolist() + chosen[1].tolist()):
      return empty
    side = self.c.reconstruction_size
    square = {
      frame: _resize(self.generated.frames[frame], side)
      for frames in chosen
      for frame in frames.tolist()
    }
    context = found.select(np.asarray(rows[0]))
    clip = video.clip_from_frames(
      np.stack([square[f] for f in chosen[0].tolist()]), fps=self.c.fps
    )
    pictures, covered = renderer.render(
      clip,
      context,
      intrinsics=observation.rescale_intrinsics(
        found.intrinsics[rows[1]],
        from_size=found.full_size,
        to_size=(side, side),
      ),
      c2w=found.c2w[rows[1]],
      size=(side, side),
    )
    scores: dict[str, list[float | None]] = {k: [] for k in empty}
    for frame, picture, mask in zip(
      chosen[1].tolist(), pictures, covered, strict=True
    ):
      psnr, ssim = preservation.pixel_appearance(
        square[frame], picture, mask, c=self.c
      )
      crops = preservation.lpips_crops(square[frame], picture, mask)
      lpips = None if crops is None else self.perception.distance(*crops)
      for name, value in zip(scores, (psnr, ssim, lpips), strict=True):
        scores[name].append(value)
    return {
      name: None if None in values else float(np.mean(np.array(values, float)))
      for name, values in scores.items()
    }

  def _at(self, request: int) -> int:
    """Video frame of a requested frame; -1 if the video has none."""
    times = np.array([request / self.c.fps])
    return int(
      schedules.video_frames(
        times,
        fps=self.generated.fps,
        frame_count=self.generated.frame_count,
        c=self.c,
      )[0]
    )

  def _lookup_failure(self) -> str:
    """The released patch lookup fails for small videos (15.4)."""
    if self.c.patch_on_depth_grid or self.generated.geometry is None:
      return ""
    size = self.generated.geometry.depth_size
    if size[0] <= self.generated.size[0] and size[1] <= self.generated.size[1]:
      return ""
    return (
      f"video {self.generated.size} is smaller than the depth grid {size}:"
      " the released patch lookup fails (15.4); use --variant=paper"
    )

  def _geometry_reason(self) -> str:
    return self.generated.reason or "no recovered geometry"

  def _no_geometry(self, names: Iterable[str], prefix: str) -> TierResult:
    values: Values = dict.fromkeys(f"{prefix}{name}" for name in names)
    return TierResult(values, MISSING, self._geometry_reason())


def _resize(picture: NDArray[np.uint8], side: int) -> NDArray[np.uint8]:
  resized = cv2.resize(picture, (side, side), interpolation=cv2.INTER_LINEAR)
  return np.asarray(resized, np.uint8)


def _tenfold(values: Floats | None) -> Floats | None:
  return None if values is None else 10.0 * values


def _mean(values: Floats | None) -> float | None:
  return None if values is None or not len(values) else float(np.mean(values))
