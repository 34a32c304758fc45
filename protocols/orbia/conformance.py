# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Runs our Orbia code against a folder of golden vectors.

A case is recognised by the arrays that it holds, not by its name, so vectors
of the same form under other names run too. An array or case that no check
reads is a failed check. Kernels run in the asked precision; schedules, pose
branches, construction measures and scores are float64 code in both runs.
"""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np

from protocols.common import conformance as common
from protocols.common.conformance import Check
from protocols.orbia import conformance_construction as construction
from protocols.orbia import conformance_geometry as geometry
from protocols.orbia import conformance_images as images
from protocols.orbia import conformance_schedules as schedules
from protocols.orbia import conformance_scores as scores
from protocols.orbia.conformance_case import Case

Handler = Callable[[Case], Iterator[Check]]

# Arrays that identify a case -> check; a star stands for any ending. The first
# entry whose arrays are all there is used.
_HANDLERS: tuple[tuple[tuple[str, ...], Handler], ...] = (
  (("plan", "short_items", "patch_frames"), geometry.whole),
  (("pairs", "pair_group"), geometry.correspondences),
  (("0to8_kept",), geometry.limits),
  (("pairs", "tau"), geometry.clouds),
  (("source_rows", "source_patches"), geometry.features),
  (("first", "revisit"), geometry.direct_depth),
  (("first_pose", "revisit_pose"), geometry.branches),
  (("requested_poses", "frame_available"), geometry.direct),
  (("sampling_plan",), schedules.schedule),
  (("timestamps_s", "video_index"), schedules.clock),
  (("intervals", "scoring"), schedules.identity_schedule),
  (("requested_c2w", "imaging"), scores.temporal),
  (("requested_c2w", "outcome"), scores.control),
  (("windows", "window_count"), scores.retention),
  (("bounds_*",), scores.windows),
  (("translation", "rotation", "reward"), scores.control_maps),
  (("case_model", "tiers"), scores.board),
  (("leaf_names", "score"), scores.maps),
  (("reference_patches", "frame_masks"), images.identity),
  (("reference", "scene_region"), images.checkpoint),
  (("K_depth", "native_to_input"), images.sensor_points),
  (("K_depth", "K_rgb", "depth_mask"), images.depth_to_rgb),
  (("rgb", "transform"), images.warp),
  (("crop_xyxy",), images.canonical_camera),
  (("sizes_*",), images.nearest_maps),
  (("reference", "generated", "psnr"), images.appearance),
  (("reference_patches", "local_similarity"), images.patch_similarity),
  (("poses_c2w", "block_actions"), construction.actions),
  (("translation", "length", "keys"), construction.votes),
  (("q0_c2w", "qe_c2w"), construction.gates),
  (("depth", "grade_10"), construction.evidence),
  (("candidates", "seen"), construction.exclusion),
  (("area_percent", "integrity"), construction.anchor_points),
  (("grade", "values", "points"), construction.revisit_points),
  (("motion_value", "upright_points"), construction.trajectory_points),
  (("images", "edge_energy"), construction.visual_points),
)


def recognises(index: dict[str, Any]) -> bool:
  """Whether a folder's index describes Orbia vectors."""
  return "Orbia" in str(index.get("title", ""))


def checks(
  folder: pathlib.Path, index: dict[str, Any], *, precision: str
) -> Iterator[Check]:
  """Compares every recorded value of a folder with ours.

  Args:
    folder: folder with `index.json` and the npz files that it lists.
    index: content of `index.json`.
    precision: `float64` or `float32`.

  Yields:
    One check for each comparison; a failed one for every unknown entry.
  """
  with jax.enable_x64(precision == "float64"):
    for name, entry in index["files"].items():
      with np.load(folder / name, allow_pickle=False) as stored:
        arrays = {key: stored[key] for key in stored.files}
      consumed: set[str] = set()
      for listed in entry["cases"]:
        case = _case(listed, entry, index["tolerances"], precision, arrays)
        consumed |= {f"{case.case_id}/{array}" for array in case.arrays}
        yield from _run(case)
      for stranger in sorted(arrays.keys() - consumed):
        yield common.unknown(f"{name}/{stranger}", precision=precision)


def _case(
  listed: dict[str, Any],
  entry: dict[str, Any],
  tolerances: dict[str, Any],
  precision: str,
  arrays: dict[str, Any],
) -> Case:
  prefix = f"{listed['id']}/"
  mine = {
    key.removeprefix(prefix): value
    for key, value in arrays.items()
    if key.startswith(prefix)
  }
  return Case(
    case_id=listed["id"],
    params=listed["params"],
    docs={**entry["array_docs"], **listed.get("array_docs", {})},
    tolerances=tolerances,
    precision=precision,
    arrays=mine,
  )


def _run(case: Case) -> Iterator[Check]:
  fitting = [handler for needed, handler in _HANDLERS if case.has(*needed)]
  if not fitting:
    yield common.unknown(f"{case.case_id} (whole)", precision=case.precision)
    return
  try:
    yield from fitting[0](case)
  except Exception as error:  # A vector that breaks our code is a failure.
    detail = f"{type(error).__name__}: {str(error)[:200]}"
    yield Check(
      case.case_id, "-", case.precision, False, float("nan"), 0.0, detail
    )
  yield from case.leftovers()
