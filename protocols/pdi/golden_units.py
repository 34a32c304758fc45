# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Checks of the unit vectors that are lists of cases (JSON)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from kernels import homogeneity
from protocols.common.conformance import Check, compare
from protocols.pdi import anchors, diagnostics, guard, index, measure
from protocols.pdi import clip as clips
from protocols.pdi.constants import RELEASED, PdiConstants
from protocols.pdi.golden import FLOAT32, Comparer, Entries, numbers, plain
from protocols.pdi.golden_stage import PAPER_ALL_ANCHORS
from protocols.pdi.lifting import FramePoints

_CaseCheck = Callable[[Entries, Mapping[str, float], str], Iterator[Check]]

# Some cases cannot be held in float32: a path or depth series whose motion is
# below the rounding of its own coordinates, or one so still that the speed
# floor of 1e-6 turns rounding into full penalties. Their float32 tolerance is
# what rounding the golden input to float32 does to the float64 result, times
# this factor; the share of such cases is bounded and checked.
_ROUNDING_FACTOR = 3.0
_MAX_ILL_CONDITIONED = 0.15
_WIDE = 2 * max(FLOAT32.values())


def checks(
  vector: Entries, content: Entries, *, precision: str
) -> Iterator[Check] | None:
  """Checks of a JSON vector, chosen by its fields; None: unknown form."""
  tolerances = vector.take("tolerance")
  if "pairs" in content:
    content.take("rule")
    return _pairs(vector, content, precision)
  if "track_lines" in content:
    return _diagnostics(content, tolerances, precision)
  if "cases" not in content:
    return None
  content.take("rule")
  cases = content.take("cases")
  first = cases[0] if cases else {}
  for field, check in _CASES.items():
    if field in first:
      return _each(vector, content.name, cases, check, tolerances, precision)
  return None


def _each(
  vector: Entries,
  name: str,
  cases: list[dict[str, Any]],
  check: _CaseCheck,
  tolerances: Mapping[str, float],
  precision: str,
) -> Iterator[Check]:
  counter = Comparer("-", precision, {})
  yield counter.same(f"{name}/n", len(cases), vector.take("n", len(cases)))
  widened = set()
  for number, fields in enumerate(cases):
    case = Entries(fields, f"{name}/{fields.get('name', number)}")
    case.take("name")
    for result in check(case, tolerances, precision):
      if result.tolerance > _WIDE:
        widened.add(number)
      yield result
    yield from case.leftovers(precision=precision)
  yield compare(
    f"{name}/cases that float32 cannot hold",
    len(widened),
    0,
    variant="-",
    precision=precision,
    tolerance=_MAX_ILL_CONDITIONED * len(cases),
  )


def _rounding(found: Any, expected: Any, comparer: Comparer) -> float:
  """Tolerance from a float64 result on inputs rounded to float32."""
  if comparer.precision == "float64" or expected is None or found is None:
    return 0.0
  ours, golden = np.asarray(found, np.float64), numbers(expected)
  if ours.shape != golden.shape:
    return 0.0
  both = np.isfinite(ours) & np.isfinite(golden)
  error = np.abs(ours[both] - golden[both])
  return _ROUNDING_FACTOR * float(np.max(error, initial=0.0))


def _variants(
  tolerances: Mapping[str, float], precision: str, kind: str
) -> Iterator[tuple[str, Comparer, PdiConstants]]:
  """(index field, comparer, constants); `kind` names the residual."""
  for variant, field, constants in (
    ("released", "official", RELEASED),
    ("paper", "paper", PAPER_ALL_ANCHORS),
  ):
    own = {kind: tolerances[field], f"{kind}_series": tolerances[field]}
    yield field, Comparer(variant, precision, own), constants


def _or_nan(component: measure.Component) -> float | None:
  """The value; NaN where it is missing because the input was not finite."""
  if component.value is None and not np.all(np.isfinite(component.series)):
    return float("nan")
  return component.value


def _scale_case(
  case: Entries, tolerances: Mapping[str, float], precision: str
) -> Iterator[Check]:
  height, depth = numbers(case.take("h")), numbers(case.take("Z"))
  count = np.asarray(case.take("mask_pixel_count"))
  for field, comparer, constants in _variants(tolerances, precision, "scale"):
    fields = Entries(case.take(field), f"{case.name}/{field}")
    with comparer.x64():
      ours = measure.measure_scale(
        height, depth, count, constants, dtype=comparer.dtype
      )
    yield comparer.number(
      f"{fields.name}/E", _or_nan(ours), fields.take("E"), "scale"
    )
    if "series" in fields:
      yield comparer.number(
        f"{fields.name}/series",
        ours.series,
        fields.take("series"),
        "scale_series",
      )
    if "lost_mask_fraction" in fields:
      lost: float | None = None
      if len(height) == len(depth):
        lost = measure.lost_fraction(count, constants)
      yield comparer.number(
        f"{fields.name}/lost_mask_fraction",
        lost,
        fields.take("lost_mask_fraction"),
        "scale",
      )
    yield from fields.leftovers(precision=precision)


def _path_case(
  case: Entries, tolerances: Mapping[str, float], precision: str
) -> Iterator[Check]:
  points = numbers(case.take("points")).reshape(-1, 3)
  count = np.asarray(case.take("mask_pixel_count"))
  fps = float(plain(case.take("fps")))
  for field, comparer, constants in _variants(tolerances, precision, "traj"):
    fields = Entries(case.take(field), f"{case.name}/{field}")
    ours = _path(points, count, fps, constants, comparer)
    exact = dataclasses.replace(comparer, precision="float64")
    with np.errstate(over="ignore"):
      stored = points.astype(np.float32).astype(np.float64)
    rounded = _path(stored, count, fps, constants, exact)
    keys = [
      ("E", _or_nan(ours), _or_nan(rounded), "traj"),
      ("v_ref", ours.reference, rounded.reference, "position"),
      (
        "series",
        _present(ours.series),
        _present(rounded.series),
        "traj_series",
      ),
    ]
    for key, inside, kind in (
      ("centroids", "centroids_raw", "position"),
      ("filtered", "centroids_filtered", "position"),
      ("magnitude", "traj_magnitude", "traj_series"),
      ("direction", "traj_direction", "traj_series"),
    ):
      values = ours.detail.get(inside), rounded.detail.get(inside)
      keys.append((key, *values, kind))
    for key, found, other, kind in keys:
      if key in fields:
        expected = fields.take(key)
        yield comparer.number(
          f"{fields.name}/{key}",
          found,
          expected,
          kind,
          relative=kind == "position",
          at_least=_rounding(other, expected, comparer),
        )
    yield from fields.leftovers(precision=precision)


def _path(
  points: np.ndarray,
  count: np.ndarray,
  fps: float,
  constants: PdiConstants,
  comparer: Comparer,
) -> measure.Component:
  """Trajectory of frames whose points are all equal."""
  nonzero = np.where(np.any(points != 0, axis=-1), count, 0)
  fraction = nonzero[0] / count[0] if len(count) and count[0] else -1.0
  found = measure.Reconstruction(
    FramePoints(points, np.zeros(len(points)), count, nonzero),
    supports_trajectory=fraction >= constants.min_valid_fraction,
    supports_pairs=False,
    is_zero=False,
    is_nonfinite=False,
  )
  rate = clips.frame_rate(fps, constants)
  with comparer.x64():
    return measure.measure_trajectory(
      found, rate, len(points), constants, dtype=comparer.dtype
    )


def _present(series: np.ndarray) -> np.ndarray | None:
  return series if series.size else None


def _jump_case(
  case: Entries, tolerances: Mapping[str, float], precision: str
) -> Iterator[Check]:
  comparer = Comparer("-", precision, {"scale_jump": tolerances["official"]})
  median = numbers(case.take("world_z"))
  median[np.asarray(case.take("empty_frames"), int)] = 0.0
  with comparer.x64():
    found = guard.scale_jump(median, RELEASED, dtype=comparer.dtype)
  with jax.enable_x64(True):
    stored = median.astype(np.float32)
    rounded = guard.scale_jump(stored, RELEASED, dtype=np.float64)
  expected = case.take("scale_jump")
  yield comparer.number(
    f"{case.name}/scale_jump",
    found,
    expected,
    "scale_jump",
    at_least=_rounding(rounded, expected, comparer),
  )
  yield comparer.same(
    f"{case.name}/scale_jump_pass",
    found < RELEASED.max_scale_jump,
    case.take("scale_jump_pass"),
  )


def _index_case(
  case: Entries, tolerances: Mapping[str, float], precision: str
) -> Iterator[Check]:
  comparer = Comparer("-", precision, {"exact": tolerances["official"]})
  components = [
    index.reduce_series(numbers(case.take("scale_series"))),
    index.reduce_series(numbers(case.take("traj_series"))),
    float(plain(case.take("rigidity"))),
    float(plain(case.take("eps_vp"))),
  ]
  pdi = index.combine(components, case.take("weights"))
  letter = index.grade(pdi, RELEASED.grade_bounds)
  for key, found in (
    ("components", components),
    ("pdi", pdi),
    ("pdi_rounded", round(pdi, 4)),
  ):
    yield comparer.number(f"{case.name}/{key}", found, case.take(key), "exact")
  yield comparer.same(f"{case.name}/grade", letter, case.take("grade"))


def _pairs(
  vector: Entries, content: Entries, precision: str
) -> Iterator[Check]:
  comparer = Comparer("-", precision, {})
  listed = content.take("pairs")
  yield comparer.same(f"{vector.name}/n", len(listed), vector.take("n"))
  for count, expected in listed.items():
    found = anchors.random_pairs(
      int(count), limit=RELEASED.num_pairs, seed=RELEASED.pair_seed
    )
    yield comparer.same(f"{vector.name}/{count}", found, expected)


def _diagnostics(
  content: Entries, tolerances: Mapping[str, float], precision: str
) -> Iterator[Check]:
  own = {"diag": tolerances["official"], "vp": tolerances["vp"]}
  # Lines are normalised by lengths down to 3 px, and the offset of a line is a
  # product of two coordinates: 1e-3 px in float32. Their intersections magnify
  # it, and ratios of small offsets are steep.
  if precision == "float32":
    own = {"diag": 2e-4, "vp": 0.1}
  comparer = Comparer("-", precision, own)
  for key in [k for k in content.unread() if k in _DIAGNOSTICS]:
    for number, fields in enumerate(content.take(key)):
      case = Entries(fields, f"{content.name}/{key}/{number}")
      with comparer.x64():
        yield from _DIAGNOSTICS[key](case, comparer)
      yield from case.leftovers(precision=precision)


def _series_of(
  case: Entries, comparer: Comparer, found: jax.Array, *, start: int
) -> Iterator[Check]:
  yield comparer.number(
    f"{case.name}/series",
    np.asarray(found)[start:],
    case.take("series"),
    "diag",
  )


def _array(case: Entries, key: str, comparer: Comparer) -> jax.Array:
  return jnp.asarray(numbers(case.take(key)), comparer.dtype)


def _log_form(case: Entries, comparer: Comparer) -> Iterator[Check]:
  height = _array(case, "h", comparer)
  found = homogeneity.vanishing_log_residual(
    height,
    _array(case, "xy", comparer),
    _array(case, "vp", comparer),
    jnp.int32(len(height)),
    num_reference=RELEASED.scale_reference_frames,
    floor=RELEASED.diagnostic_floor,
    transverse_threshold=RELEASED.transverse_threshold,
  )
  yield from _series_of(case, comparer, found, start=1)


def _ratio_form(case: Entries, comparer: Comparer) -> Iterator[Check]:
  height = _array(case, "h", comparer)
  found = homogeneity.vanishing_ratio_residual(
    height,
    _array(case, "xy", comparer),
    _array(case, "vp", comparer),
    jnp.int32(len(height)),
    num_reference=RELEASED.scale_reference_frames,
    floor=RELEASED.ratio_floor,
  )
  yield from _series_of(case, comparer, found, start=1)


def _offset_form(case: Entries, comparer: Comparer) -> Iterator[Check]:
  height = _array(case, "h", comparer)
  found = homogeneity.offset_ratio_residual(
    height,
    _array(case, "x", comparer) - _array(case, "cx", comparer),
    jnp.int32(len(height)),
    floor=RELEASED.ratio_floor,
  )
  yield from _series_of(case, comparer, found, start=1)


def _inverse_depth(case: Entries, comparer: Comparer) -> Iterator[Check]:
  height = _array(case, "h", comparer)
  found = homogeneity.inverse_depth_residual(
    height, _array(case, "Z", comparer), jnp.int32(len(height))
  )
  yield from _series_of(case, comparer, found, start=0)


def _coupling(case: Entries, comparer: Comparer) -> Iterator[Check]:
  centre = np.array([case.take("W") / 2, case.take("H") / 2])
  found = diagnostics.coupling(
    numbers(case.take("fg")),
    numbers(case.take("bg")),
    centre,
    RELEASED,
    dtype=comparer.dtype,
  )
  yield comparer.number(f"{case.name}/e_vp", found, case.take("e_vp"), "diag")


def _track_lines(case: Entries, comparer: Comparer) -> Iterator[Check]:
  tracks = numbers(case.take("fg_tracks")).transpose(1, 0, 2)
  own = diagnostics.track_lines(
    tracks, RELEASED, lowest_only=True, dtype=comparer.dtype
  )
  # The background of these cases: the last twelve tracks, played backwards.
  scene = diagnostics.track_lines(
    tracks[::-1, -12:], RELEASED, lowest_only=False, dtype=comparer.dtype
  )
  yield comparer.same(f"{case.name}/n_lines", len(own), case.take("n_lines"))
  # Entries are direction cosines and an offset of hundreds of pixels.
  yield comparer.number(
    f"{case.name}/lines", own, case.take("lines"), "diag", relative=True
  )
  for key, lines in (
    ("fg_vp", own),
    ("bg_vp_from_last_12_reversed", scene),
    ("global_vp", np.concatenate([own, scene])),
  ):
    found = diagnostics.intersect(lines, RELEASED)
    yield comparer.number(f"{case.name}/{key}", found, case.take(key), "vp")
  # The scene's own vanishing point: noisy tracks miss it by a few pixels.
  case.take("true_vp")


_CASES: dict[str, _CaseCheck] = {
  "Z": _scale_case,
  "points": _path_case,
  "world_z": _jump_case,
  "weights": _index_case,
}

_DIAGNOSTICS: dict[str, Callable[[Entries, Comparer], Iterator[Check]]] = {
  "h_vp": _log_form,
  "hx": _offset_form,
  "ratio": _ratio_form,
  "evolution": _inverse_depth,
  "e_vp": _coupling,
  "track_lines": _track_lines,
}
