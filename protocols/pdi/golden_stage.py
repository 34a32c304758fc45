# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Checks of the stage vectors: the whole metric stage on one clip."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from protocols.common.conformance import Check, compare
from protocols.pdi import clip as clips
from protocols.pdi import guard, measure
from protocols.pdi.clip import ClipArrays
from protocols.pdi.constants import PAPER, RELEASED
from protocols.pdi.golden import Comparer, Entries, plain

# The golden paper values rest on all anchors; seeds are checked by tests.
PAPER_ALL_ANCHORS = dataclasses.replace(PAPER, anchor_seeds=())

# Pairs of almost equal score may change places in float32.
_FLIPS = {"float64": 0.0, "float32": 2.0}


def checks(
  vector: Entries, arrays: Entries, *, precision: str
) -> Iterator[Check]:
  """All checks of one stage vector.

  Args:
    vector: its entry in the index.
    arrays: its file.
    precision: `float64` or `float32`.
  """
  clip = _clip(arrays)
  yield from _sizes(vector, arrays, clip, precision)
  many = "variants" in vector
  results = vector.take("variants") if many else [vector.take("result")]
  for number, fields in enumerate(results):
    name = f"{vector.name}[{number}]" if many else vector.name
    result = Entries(fields, name)
    suffix = f"_fps{number}" if many else ""
    yield from _result(result, arrays, clip, suffix, precision)
    yield from result.leftovers(precision=precision)


def _clip(arrays: Entries) -> ClipArrays:
  depth = arrays.take("in_depth")
  if "in_depth_mm" in arrays:
    depth = arrays.take("in_depth_mm").astype(np.float32) / np.float32(1000)
  size = arrays.take("in_w1h1")
  return ClipArrays(
    masks=arrays.take("in_masks"),
    tracks=arrays.take("in_tracks"),
    visibility=arrays.take("in_visibility"),
    fps=float(arrays.take("in_fps")),
    object_depth=arrays.take("in_Z"),
    pointmaps=arrays.take("in_pointmaps"),
    depth=depth,
    intrinsics=arrays.take("in_K"),
    c2w=arrays.take("in_c2w"),
    resized_size=None if size is None else (int(size[0]), int(size[1])),
    tracks_filtered=True,
    name=arrays.name,
  )


def _sizes(
  vector: Entries, arrays: Entries, clip: ClipArrays, precision: str
) -> Iterator[Check]:
  """The index describes the arrays that are there."""
  comparer = Comparer("-", precision, {})
  assert clip.tracks is not None
  found = {
    "T": clip.masks.shape[0],
    "video_hw": list(clip.masks.shape[1:]),
    "map_hw": None if clip.map_size is None else list(clip.map_size),
    "n_anchors": clip.tracks.shape[1],
  }
  for key, value in found.items():
    if key in vector:
      yield comparer.same(f"{vector.name}/{key}", value, vector.take(key))
  if "in_fps_list" in arrays:
    listed = [entry["fps"] for entry in vector.take("variants")]
    yield comparer.same(
      f"{vector.name}/in_fps_list", arrays.take("in_fps_list"), listed
    )
  elif "result" in vector:
    fps = vector.take("result")["fps"]
    yield comparer.same(f"{vector.name}/in_fps", clip.fps, fps)


def _result(
  result: Entries,
  arrays: Entries,
  clip: ClipArrays,
  suffix: str,
  precision: str,
) -> Iterator[Check]:
  """One frame rate of one vector in both variants."""
  clip = dataclasses.replace(clip, fps=float(result.take("fps")))
  tolerances = result.take("tolerance")
  ties = result.take("tie_sensitive")
  for variant, key, constants in (
    ("released", "official", RELEASED),
    ("paper", "paper", PAPER_ALL_ANCHORS),
  ):
    comparer = Comparer(variant, precision, tolerances)
    ours = measure.measure_clip(clip, constants, dtype=comparer.dtype)
    fields = Entries(result.take(key), f"{result.name}/{key}")
    if variant == "released":
      yield from _released(fields, ours, comparer, ties)
      yield from _guard(fields, clip, ours, comparer)
      yield from _mask_figures(arrays, clip, comparer)
      yield from _intermediates(arrays, ours, comparer, suffix, ties)
    else:
      yield from _paper(fields, ours, comparer, ties)
      yield from _paper_series(arrays, ours, comparer, suffix)
    yield from fields.leftovers(precision=precision)


def _released(
  fields: Entries,
  ours: measure.PdiMeasurement,
  comparer: Comparer,
  ties: Mapping[str, Any] | None,
) -> Iterator[Check]:
  """Scalars of the released variant."""
  name = fields.name
  for key in ("scale", "traj"):
    found = getattr(ours, key)
    yield comparer.number(f"{name}/{key}", found, fields.take(key), key)
  rigid, pdi = fields.take("rigid"), fields.take("pdi")
  rounded = plain(fields.take("pdi_rounded"))
  letter, pairs = fields.take("grade"), fields.take("n_pairs")
  if ties is None:
    yield comparer.number(f"{name}/rigid", ours.rigid, rigid, "rigid")
    yield comparer.number(f"{name}/pdi", ours.pdi, pdi, "pdi")
    yield compare(
      f"{name}/pdi_rounded",
      None if ours.pdi is None else round(ours.pdi, 4),
      rounded,
      variant=comparer.variant,
      precision=comparer.precision,
      # A value next to a rounding step may fall on its other side.
      tolerance=1.01e-4 if comparer.precision == "float32" else 1e-9,
    )
    yield comparer.same(f"{name}/grade", ours.grade, letter)
    yield comparer.same(f"{name}/n_pairs", ours.n_pairs, pairs)
  else:
    yield _within_ties(f"{name}/rigid", ours.rigid, ties, comparer)
  yield comparer.same(
    f"{name}/strategy", ours.strategy, fields.take("strategy")
  )
  yield comparer.same(f"{name}/T_used", ours.frames, fields.take("T_used"))
  yield comparer.same(
    f"{name}/n_candidates", ours.n_candidates, fields.take("n_candidates")
  )
  for key in ("v_ref", "grad_threshold"):
    found, expected = getattr(ours, key), fields.take(key)
    if key == "grad_threshold" and ours.strategy != 1:
      found = None
    yield comparer.number(
      f"{name}/{key}", found, expected, "position", relative=True
    )


def _within_ties(
  name: str,
  found: float | None,
  ties: Mapping[str, Any],
  comparer: Comparer,
) -> Check:
  """Equal pair scores: any value in the range widened by its own width."""
  low, high = ties["rigid_range"]
  middle = (low + high) / 2
  return compare(
    name,
    found,
    middle,
    variant=comparer.variant,
    precision=comparer.precision,
    tolerance=1.5 * (high - low) + comparer.tolerance("position"),
  )


def _guard(
  fields: Entries,
  clip: ClipArrays,
  ours: measure.PdiMeasurement,
  comparer: Comparer,
) -> Iterator[Check]:
  """The released reconstruction audit."""
  expected = fields.take("reconstruction")
  name = f"{fields.name}/reconstruction"
  found = guard.audit_clip(
    clip, ours, RELEASED, images=None, dtype=comparer.dtype
  )
  if not isinstance(expected, Mapping):
    # Absent, or a text that tells how the released decomposition failed.
    ran = found.math_pass is True if expected else found.math_pass is not None
    yield comparer.same(name, ran, False)
    return
  inner = Entries(expected, name)
  ground = found.ground
  yield comparer.number(
    f"{name}/ground_rmse",
    None if ground is None else ground.rmse,
    inner.take("ground_rmse"),
    "ground",
  )
  yield comparer.number(
    f"{name}/scale_jump",
    found.scale_jump,
    inner.take("scale_jump"),
    "scale_jump",
  )
  verdicts = {
    "ground_pass": None if ground is None else ground.passed,
    "scale_jump_pass": found.scale_jump_pass,
    "math_pass": found.math_pass,
  }
  for key, verdict in verdicts.items():
    yield comparer.same(f"{name}/{key}", verdict, inner.take(key))
  yield from inner.leftovers(precision=comparer.precision)


def _mask_figures(
  arrays: Entries, clip: ClipArrays, comparer: Comparer
) -> Iterator[Check]:
  """Section 2.2 for every mask, also for frames beyond the ones in use."""
  found = clips.mask_statistics(clip.masks, RELEASED)
  for key, value, kind in (
    ("h", found.height, "exact"),
    ("x_center", found.x_center, "position"),
    ("truncated", found.truncated, "exact"),
  ):
    if f"out_{key}" in arrays:
      name, expected = f"{arrays.name}/out_{key}", arrays.take(f"out_{key}")
      yield comparer.number(name, value, expected, kind)


def _intermediates(
  arrays: Entries,
  ours: measure.PdiMeasurement,
  comparer: Comparer,
  suffix: str,
  ties: Mapping[str, Any] | None,
) -> Iterator[Check]:
  """Arrays of the released run, where the vector stores them."""
  inside = ours.intermediates
  kinds = {
    "scale_series": (ours.series["scale"], "scale_series"),
    "traj_series": (ours.series["traj"], "traj_series"),
    "centroids_raw": (inside.get("centroids_raw"), "position"),
    "centroids_filtered": (inside.get("centroids_filtered"), "position"),
    "traj_magnitude": (inside.get("traj_magnitude"), "traj_series"),
    "traj_direction": (inside.get("traj_direction"), "traj_series"),
    "candidates": (inside.get("candidates"), "exact"),
    "grad_at_anchor": (inside.get("grad_at_anchor"), "position"),
    "edge_dist_at_anchor": (inside.get("edge_dist_at_anchor"), "position"),
    "pairs_2d": (inside.get("pairs_2d"), "exact"),
  }
  if ties is None:
    kinds["rigid_series"] = (ours.series["rigid"], "rigid_series")
  for key, (found, kind) in kinds.items():
    # Arrays that depend on the rate are stored once for each rate.
    stored = f"out_{key}{suffix}"
    stored = stored if stored in arrays else f"out_{key}"
    if stored in arrays:
      name = f"{arrays.name}/{stored}"
      expected = arrays.take(stored)
      yield comparer.number(
        name, found, expected, kind, relative=kind != "exact"
      )
  yield from pair_checks(
    arrays, inside, comparer, prefix="out_", compare_values=ties is None
  )
  if ties is not None:
    arrays.take("out_rigid_series")


def pair_checks(
  arrays: Entries,
  inside: Mapping[str, np.ndarray],
  comparer: Comparer,
  *,
  prefix: str,
  compare_values: bool,
) -> Iterator[Check]:
  """Selected pairs as a set, their lengths and scores; order up to ties."""
  keys = [f"{prefix}pair_{key}" for key in ("i", "j", "d0", "score")]
  if keys[0] not in arrays:
    return
  first, second, length, score = (arrays.take(key) for key in keys)
  if not compare_values:
    return
  name = f"{arrays.name}/{prefix}pair"
  golden = {
    (int(i), int(j)): (d, s)
    for i, j, d, s in zip(first, second, length, score, strict=True)
  }
  ours = {
    (int(i), int(j)): (d, s)
    for i, j, d, s in zip(
      *(inside[f"pair_{key}"] for key in ("i", "j", "d0", "score")),
      strict=True,
    )
  }
  differing = len(golden.keys() ^ ours.keys())
  yield compare(
    f"{name}_i, {prefix}pair_j",
    differing,
    0.0,
    variant=comparer.variant,
    precision=comparer.precision,
    tolerance=_FLIPS[comparer.precision],
  )
  common = sorted(golden.keys() & ours.keys())
  for part, key in enumerate(("d0", "score")):
    yield comparer.number(
      f"{name}_{key}",
      [ours[pair][part] for pair in common],
      [golden[pair][part] for pair in common],
      "position",
      relative=True,
    )
  yield comparer.number(
    f"{name} order",
    inside["pair_score"],
    score,
    "position",
    relative=True,
  )


def _paper(
  fields: Entries,
  ours: measure.PdiMeasurement,
  comparer: Comparer,
  ties: Mapping[str, Any] | None,
) -> Iterator[Check]:
  """Scalars of the paper variant."""
  tied = False
  for key in ("scale", "traj", "rigid", "pdi", "rigid_2d"):
    name, expected = f"{fields.name}/{key}", fields.take(key)
    found = getattr(ours, key)
    check = comparer.number(name, found, expected, "paper")
    if key == "rigid" and ties is not None and not check.passed:
      # The order of equal scores is not defined in this variant either.
      check = _within_ties(name, found, ties, comparer)
      tied = check.passed
    if key == "pdi" and tied:
      continue
    yield check
  for key in ("lost_mask_fraction", "truncated_fraction"):
    name = f"{fields.name}/{key}"
    yield comparer.number(name, getattr(ours, key), fields.take(key), "paper")
  name = f"{fields.name}/valid"
  yield comparer.same(name, ours.valid, fields.take("valid"))


def _paper_series(
  arrays: Entries,
  ours: measure.PdiMeasurement,
  comparer: Comparer,
  suffix: str,
) -> Iterator[Check]:
  for key, kind in (("traj", "traj_series"), ("rigid", "rigid_series")):
    stored = f"paper_{key}_series{suffix}"
    stored = stored if stored in arrays else f"paper_{key}_series"
    if stored not in arrays:
      continue
    name, expected = f"{arrays.name}/{stored}", arrays.take(stored)
    if ours.rigid is None and key == "rigid" and len(expected):
      # The vectors repeat the sentinel; ours is missing and has no series.
      sentinel = np.full(len(expected), PAPER.rigidity_sentinel)
      yield comparer.same(name, sentinel, expected)
      yield comparer.same(f"{name} missing", len(ours.series[key]), 0)
      continue
    yield comparer.number(name, ours.series[key], expected, kind, relative=True)
