# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""One video from disk to one record.

The video is decoded once, in a stream; only the frames that some measurement
looks at are kept. A record holds raw leaves, components and the status of each
tier, so that tiers measured later can be added to it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perception import (
  cache,
  cached,
  geometry_pass,
  observation,
  registry,
  video,
)
from perception.errors import InputError
from protocols.common import manifest
from protocols.common.records import DEGENERATE, FAILED, MISSING, OK, Record
from protocols.common.totals import mean
from protocols.orbia import generated as generated_lib
from protocols.orbia import measure, normalisation, quality, tiers
from protocols.orbia.constants import Constants
from protocols.orbia.dataset import Reference, read_reference
from protocols.orbia.generated import Generated, OrbiaCase
from protocols.orbia.perceive import Perception, PerceptionConfig

PROTOCOL = "orbia"
AUTO = "auto"


def score_case(
  case: OrbiaCase,
  *,
  config: PerceptionConfig,
  constants: Constants,
  known: Mapping[tuple[str, str], Record],
) -> Record:
  """Measures the tiers of a case that its record does not hold yet.

  Args:
    case: the video, with all tiers that its record must hold in the end.
    config: perception backends.
    constants: constants of the variant.
    known: records of earlier runs in the same folder.

  Returns:
    The record. Its status is `failed` or `missing` if that of any tier is,
    and `degenerate` if that of all tiers is. A tier that is degenerate has no
    values, and a note says why; the others still count.

  Raises:
    InputError: for an unreadable video, a wrong frame count or a bad
      reference; the runner makes a `failed` record of it.
  """
  before = _reusable(case, known.get((case.system, case.case_id)))
  todo = [tier for tier in case.tiers if tier not in before]
  perception = Perception(config, c=constants)
  video_ = load_generated(case, config, perception, c=constants)
  reference: Reference | None = None
  if "T3" in todo:
    reference = _reference(case)
  found = measure.measure(
    case.public,
    case.public.poses(),
    reference,
    video_,
    perception,
    tiers=todo,
    group=case.group,
    profile=case.profile,
    c=constants,
  )
  content = {**before, **{k: _plain(result) for k, result in found.items()}}
  return _record(case, content, video_, perception, constants)


def load_generated(
  case: OrbiaCase,
  config: PerceptionConfig,
  perception: Perception,
  *,
  c: Constants,
) -> Generated:
  """Decodes a video and finds its geometry.

  Raises:
    InputError: if the video cannot be read, or the geometry is inconsistent.
  """
  opened = video.open_video(case.video)
  generated_lib.check_frame_count(str(case.video), len(opened), case.public)
  wanted = set(
    generated_lib.wanted_frames(
      case.public,
      quality=bool(config.quality),
      geometry=False,  # a backend reads the plan's frames itself
      c=c,
    ).tolist()
  )
  kept: dict[int, NDArray[np.uint8]] = {}
  errors: list[float] = []
  last: NDArray[np.uint8] | None = None
  for number, image in enumerate(opened):
    if number in wanted:
      kept[number] = image
    if number % c.frame_stride == 0:
      if last is not None:
        errors.append(quality.frame_difference(last, image))
      last = image
  geometry, reason = _geometry(case, config, opened, c=c)
  return Generated(
    frame_count=len(opened),
    # A folder of pictures states no rate: it is the request's by definition.
    fps=float(opened.fps) or c.fps,
    size=opened.size,
    frames=kept,
    geometry=geometry,
    sha256=opened.sha256,
    name=str(case.video),
    reason=reason,
    flicker=quality.flicker_score(mean(errors)),
  )


def case_scores(record: Record) -> tiers.CaseScores:
  """Scores of a record for the aggregation (9.4)."""
  values = record.values
  return tiers.CaseScores(
    leaves=normalisation.leaf_scores(
      {name: values.get(name) for name in normalisation.LEAVES}
    ),
    control={n: values.get(f"control_{n}") for n in normalisation.CONTROL},
    quality={n: values.get(f"quality_{n}") for n in normalisation.QUALITY},
    temporal=values.get("temporal"),
    is_long=record.groups.get("horizon") == "long",
    same_pairs=int(values.get("same_pairs") or 0),
    different_pairs=int(values.get("different_pairs") or 0),
  )


def _geometry(
  case: OrbiaCase,
  config: PerceptionConfig,
  opened: video.Video,
  *,
  c: Constants,
) -> tuple[observation.Geometry | None, str]:
  """Recorded geometry, or that of a backend; the reason if there is none."""
  if config.geometry != AUTO:
    backend = cached.get(
      "geometry",
      config.geometry,
      folder=config.cache,
      **config.settings.get(config.geometry, {}),
    )
    plan = opened.select(generated_lib.case_plan(case.public, c=c))
    whole = opened if config.geometry_pass == geometry_pass.VIDEO else None
    return geometry_pass.reconstruct(backend, plan, whole=whole), ""
  if case.geometry_file.exists():
    found = observation.Geometry.load(case.geometry_file)
    source: Any = case.geometry_file
  elif case.geometry_folder.is_dir():
    found = generated_lib.read_geometry_folder(
      case.geometry_folder, video_size=opened.size
    )
    source = case.geometry_folder
  else:
    return None, f"no {case.geometry_file.name} beside the video"
  if found.video_size != opened.size:
    raise InputError(
      source,
      "video_size",
      found=found.video_size,
      expected=f"{opened.size}, the size of {case.video.name}",
      hint="Recover the geometry from this video.",
    )
  digest = found.provenance.source_sha256
  if digest and digest not in (opened.sha256, cache.source_digest(opened)):
    raise InputError(
      source,
      "source_sha256",
      found=digest,
      expected=f"{opened.sha256}, the digest of {case.video.name}",
      hint="Recover the geometry from this video.",
    )
  return found, ""


def _reference(case: OrbiaCase) -> Reference | None:
  """Held-back data; None where the data set has none for this case."""
  if not (case.public.reference_folder / "reference.json").exists():
    return None
  return read_reference(case.public)


def _reusable(
  case: OrbiaCase, record: Record | None
) -> dict[str, dict[str, Any]]:
  """Tiers of an earlier record whose files have not changed since."""
  if record is None:
    return {}
  stored: dict[str, dict[str, Any]] = dict(record.details.get("tiers", {}))
  same = dataclasses.replace(case, tiers=tuple(sorted(stored)))
  if record.provenance.get("signature") != manifest.signature(same):
    return {}
  final = (OK, DEGENERATE)
  return {n: part for n, part in stored.items() if part["status"] in final}


def _plain(result: measure.TierResult) -> dict[str, Any]:
  return dataclasses.asdict(result)


def _record(
  case: OrbiaCase,
  content: Mapping[str, Mapping[str, Any]],
  video_: Generated,
  perception: Perception,
  c: Constants,
) -> Record:
  values: dict[str, float | None] = {}
  for name in sorted(content):
    values |= content[name]["values"]
  statuses = {part["status"] for part in content.values()}
  status = next((s for s in (FAILED, MISSING) if s in statuses), OK)
  if statuses == {DEGENERATE}:
    status = DEGENERATE
  reasons = [
    f"{name}: {part['reason']}"
    for name, part in sorted(content.items())
    if part["status"] != OK
  ]
  notes = [] if status != OK else [f"degenerate: {text}" for text in reasons]
  if video_.fps != c.fps:
    used = "followed" if c.container_clock else "ignored"
    notes.append(
      f"the file says {video_.fps:g} frames per second, not {c.fps:g}: {used}"
    )
  record = Record(
    protocol=PROTOCOL,
    variant=c.variant,
    system=case.system,
    case_id=case.case_id,
    status=status,
    reason="" if status == OK else "; ".join(reasons),
    values=values,
    groups=case.groups,
    coverage=_coverage(values),
    notes=tuple(notes),
    details={"tiers": dict(content)},
    provenance={
      "source": str(case.video),
      "video_sha256": video_.sha256,
      "backends": _backends(perception, video_.geometry),
      "geometry_backend": (
        video_.geometry.provenance.backend if video_.geometry else None
      ),
    },
    comparable_to_published=perception.comparable
    and _published(video_.geometry),
  )
  own = tiers.model_scores(
    [case_scores(record)], profile=case.profile, c=c
  ).tiers
  own["T6"] = values.get("temporal")  # a single video has one horizon
  scored = {tier: own[tier] for tier in content}
  return dataclasses.replace(record, values={**values, **scored})


def _backends(
  perception: Perception, geometry: observation.Geometry | None
) -> dict[str, Any]:
  """By role: what filled it; for geometry what its record says."""
  found = perception.provenance()
  if geometry is not None:
    made = dataclasses.asdict(geometry.provenance)
    del made["source_sha256"]
    found["geometry"] = made
  return found


def _published(geometry: observation.Geometry | None) -> bool:
  """Whether depth and cameras come from a backend that may be compared.

  None of ours is the published one, which closes loops between chunks by SALAD
  descriptors (10.2); see `perception.neural.depth_anything3`.
  """
  if geometry is None or geometry.provenance.weights_sha256 in ("", "random"):
    return False
  name = geometry.provenance.backend
  return name in registry.names("geometry") and (
    registry.spec("geometry", name).comparable_to_published
  )


def _coverage(values: Mapping[str, float | None]) -> dict[str, float | None]:
  """Shares of the leaves that have a value."""
  names = [n for n in values if n in normalisation.LEAVES]
  if not names:
    return {}
  present = sum(values[name] is not None for name in names)
  return {"leaves": float(present), "leaves_expected": float(len(names))}
