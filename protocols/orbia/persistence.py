# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""T4, generated-content persistence: the same place at two visits.

The branch of a registered pair is decided by the requested poses alone, in
float64: its limits are below what float32 can resolve. Section numbers are
those of the project's Orbia specification.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from kernels import depth_agreement, masked_image, patches
from protocols.orbia.constants import Constants
from protocols.orbia.geometry import RevisitMeasures, case_value

_PEAK = 255.0
# Metric of the direct comparison: leaf of T4. The global similarity of
# same-pose pairs is measured too but enters no score.
_SAME = {
  "psnr": "revisit_same_psnr",
  "lpips": "revisit_same_lpips",
  "dino_patch_similarity": "revisit_same_dino_patch_similarity",
  "depth_abs_rel": "revisit_same_depth_abs_rel",
}
_DIFFERENT = {"dino_global_similarity": "revisit_different_dino"}


@dataclasses.dataclass(frozen=True, eq=False)
class Visit:
  """What was generated at one visit; None where it could not be obtained.

  Attributes:
    image: [H, W, 3] uint8.
    depth: [h, w] on the estimator's own grid, invalid = NaN or not positive.
    patches: [P, C] patch descriptors of the whole frame.
    pooled: [C'] descriptor of the whole frame.
  """

  image: NDArray[np.uint8] | None
  depth: NDArray[np.floating[Any]] | None
  patches: NDArray[np.floating[Any]] | None
  pooled: NDArray[np.floating[Any]] | None


@dataclasses.dataclass(frozen=True)
class Direct:
  """Direct comparison of one registered pair.

  Attributes:
    same_pose: branch.
    values: raw value by metric; absent or None = no value.
  """

  same_pose: bool
  values: Mapping[str, float | None]

  def value(self, metric: str) -> float:
    """A raw value, NaN where there is none."""
    found = self.values.get(metric)
    return math.nan if found is None else found


def pose_difference(
  first_c2w: NDArray[np.float64], revisit_c2w: NDArray[np.float64]
) -> tuple[float, float]:
  """Distance and rotation (degrees) between two requested poses, float64.

  The angle is atan2(|vee(R - R^T)|, trace R - 1): accurate near zero, where
  the arccosine of the trace is off by 1e-6 degrees.

  Args:
    first_c2w: [4, 4].
    revisit_c2w: [4, 4].

  Returns:
    (distance in pose units, degrees).
  """
  first = np.asarray(first_c2w, np.float64)
  revisit = np.asarray(revisit_c2w, np.float64)
  offset = revisit[:3, 3] - first[:3, 3]
  turn = first[:3, :3].T @ revisit[:3, :3]
  skew = turn - turn.T
  sine = math.hypot(skew[2, 1], skew[0, 2], skew[1, 0])
  angle = math.atan2(sine, float(np.trace(turn)) - 1.0)
  return float(np.linalg.norm(offset)), math.degrees(angle)


def is_same_pose(
  translation: float, rotation_deg: float, *, c: Constants
) -> bool:
  """Whether a pair belongs to the same-pose branch; limits inclusive (6.1)."""
  return (
    translation <= c.same_translation and rotation_deg <= c.same_rotation_deg
  )


def unavailable(same_pose: bool) -> Direct:
  """A pair whose frames could not be obtained."""
  return Direct(same_pose, {})


def compare_direct(
  first: Visit,
  revisit: Visit,
  *,
  same_pose: bool,
  lpips: float | None,
  c: Constants,
) -> Direct:
  """Direct comparison of two visits (6.2).

  Args:
    first: first visit, the reference.
    revisit: revisit.
    same_pose: branch of the pair.
    lpips: perceptual distance of the two images, None if not available.
    c: constants.

  Returns:
    `Direct`. Different-pose pairs have the global similarity only.
  """
  values: dict[str, float | None] = {
    "dino_global_similarity": _similarity(
      _row(first.pooled), _row(revisit.pooled), c
    )
  }
  if same_pose:
    values["psnr"] = _psnr(first.image, revisit.image, c)
    values["lpips"] = lpips
    values["dino_patch_similarity"] = _similarity(
      first.patches, revisit.patches, c
    )
    values["depth_abs_rel"] = _depth_error(first.depth, revisit.depth)
  return Direct(same_pose, values)


def leaves(
  direct: Sequence[Direct], geometric: RevisitMeasures | None, *, c: Constants
) -> dict[str, float | None]:
  """Raw T4 leaves of one case.

  Args:
    direct: one entry for each registered pair.
    geometric: geometric comparison of the same pairs, None if not measured.
    c: constants.

  Returns:
    Raw value or None for every T4 leaf. A measurement is defined only if
    every pair of its branch has it (released; 15.11).
  """
  raw: dict[str, float | None] = {}
  for same, names in ((True, _SAME), (False, _DIFFERENT)):
    mine = [pair for pair in direct if pair.same_pose == same]
    for metric, leaf in names.items():
      values = np.array([pair.value(metric) for pair in mine], np.float64)
      raw[leaf] = case_value(values, c=c)
  for field, leaf in (
    ("feature", "revisit_geom_dino_similarity"),
    ("abs_rel", "revisit_geom_depth_abs_rel"),
    ("fscore", "revisit_geom_local_pointcloud_fscore"),
  ):
    values = np.array([]) if geometric is None else getattr(geometric, field)
    raw[leaf] = case_value(values, c=c)
  return raw


def _row(
  vector: NDArray[np.floating[Any]] | None,
) -> NDArray[np.floating[Any]] | None:
  return None if vector is None else np.asarray(vector)[None]


def _similarity(
  first: NDArray[np.floating[Any]] | None,
  second: NDArray[np.floating[Any]] | None,
  c: Constants,
) -> float | None:
  if first is None or second is None:
    return None
  return float(
    patches.colocated_similarity(
      jnp.asarray(first), jnp.asarray(second), norm_floor=c.cosine_floor
    )
  )


def _psnr(
  first: NDArray[np.uint8] | None,
  second: NDArray[np.uint8] | None,
  c: Constants,
) -> float | None:
  if first is None or second is None:
    return None
  dtype = jnp.result_type(float)
  found = masked_image.masked_psnr(
    jnp.asarray(first, dtype),
    jnp.asarray(second, dtype),
    jnp.ones(first.shape[:2], bool),
    peak=_PEAK,
    mse_floor=c.psnr_mse_floor,
    cap_db=c.psnr_cap_db,
  )
  return float(found.value)


def _depth_error(
  first: NDArray[np.floating[Any]] | None,
  second: NDArray[np.floating[Any]] | None,
) -> float | None:
  if first is None or second is None or first.shape != second.shape:
    return None
  found = depth_agreement.colocated_error(
    jnp.asarray(first), jnp.asarray(second)
  )
  return float(found.value) if int(found.count) else None
