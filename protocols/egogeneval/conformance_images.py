# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Golden checks of visibility, evaluation frames, signals, object depth."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from protocols.common import conformance as common
from protocols.egogeneval import (
  conformance_folder,
  constants,
  frames,
  observable,
  signals,
)
from protocols.egogeneval import object_depth as object_depths
from protocols.egogeneval.conformance_folder import BOTH, VARIANTS, Folder

_MAX_DIFFERING = 0.005  # Share of target pixels, the vectors' own tolerance.
_MAX_COUNT_ERROR = 5
_UNSURE_SHARE = 0.01
_SIGNAL_TOLERANCE = {
  "identity_sim": 1e-6,
  "struct_ssim": 2e-5,
  "edge_iou": 1e-9,
  "sharpness_ratio": 1e-4,
  "color_sim": 1e-5,
  "shape_sim": 1e-6,
}


def visibility(folder: Folder, precision: str) -> Iterator[common.Check]:
  """Section 4.6: the map V, the search, the boxes that it keeps."""
  known = (
    "tag", "target_hw", "n_context", "context_has", "projections", "V_pixels",
    "V_pixels_float64", "V_float64_differs", "boxes", "visible_share", "kept",
  )  # fmt: skip
  cases = folder.json("visibility.json")
  for number, case in enumerate(cases):
    where = f"visibility/{number}/{case['tag']}"
    yield from conformance_folder.unknown_fields(where, case, known, precision)
    target, context = _views(folder, number, case)
    bits = np.unpackbits(folder.array("visibility.npz", f"c{number}_V"))
    golden = bits[: math.prod(case["target_hw"])].reshape(target.size) > 0
    for variant in VARIANTS:
      limits = constants.for_variant(variant)
      found = observable.visibility_map(
        target, context, limits, dtype=conformance_folder.dtype_of(precision)
      )
      pairs = list(
        _projection_pairs(found, case, variant, precision, target, context)
      )
      # The paper variant projects physically; its map can be compared where
      # the released search happened to choose that reading everywhere.
      physical = all(p["chosen"] == "K/c2w" for p in case["projections"])
      limited = variant == "paper" and _on_depth_limit(context)
      if (variant == "released" or physical) and not limited:
        share = float(np.mean(found.mask != golden))
        pairs.append(("V", share <= _MAX_DIFFERING, True, 0.0))
        pairs += list(_kept_pairs(found, case, limits))
      yield conformance_folder.worst(
        where, pairs, variant=variant, precision=precision
      )


def _views(
  folder: Folder, number: int, case: dict[str, Any]
) -> tuple[frames.EvaluationFrame, list[frames.EvaluationFrame]]:
  read = functools.partial(folder.array, "visibility.npz")
  blank = np.zeros((*case["target_hw"], 3), np.uint8)
  target = frames.EvaluationFrame(
    blank,
    np.zeros(case["target_hw"], np.float32),
    read(f"c{number}_Kt"),
    read(f"c{number}_Tt"),
  )
  context = []
  for view in range(case["n_context"]):
    parts: list[NDArray[Any] | None] = []
    for name, present in zip(
      ("depth", "K", "T"), case["context_has"][view], strict=True
    ):
      key = f"c{number}_{name}{view}"
      stored = folder.has_array("visibility.npz", key)
      value = read(key) if stored else None
      parts.append(value if present else None)
    depth = parts[0]
    if depth is not None:
      depth = depth.astype(np.float32) / np.float32(1000)
    context.append(frames.EvaluationFrame(blank, depth, parts[1], parts[2]))
  return target, context


def _projection_pairs(
  found: observable.Visibility,
  case: dict[str, Any],
  variant: str,
  precision: str,
  target: frames.EvaluationFrame,
  context: list[frames.EvaluationFrame],
) -> Iterator[tuple[str, Any, Any, float]]:
  golden = case["projections"]
  limited = variant == "paper" and _on_depth_limit(context)
  # Seen from the same pose, points lie on pixel borders: there the recorded
  # counts are those of float32 rounding.
  on_border = any(
    view.pose_c2w is not None
    and target.pose_c2w is not None
    and np.allclose(view.pose_c2w, target.pose_c2w, atol=1e-6)
    for view in context
  )
  yield ("projections", len(found.projections), len(golden), 0.0)
  for ours, entry in zip(found.projections, golden, strict=False):
    if limited:
      # The paper's range includes its limits, where this case's depths lie.
      yield ("points", ours.points >= entry["points"], True, 0.0)
      continue
    yield ("points", ours.points, entry["points"], 0.0)
    if precision == "float64" and on_border:
      continue
    for name, count in ours.in_bounds.items():
      close = abs(count - entry["in_bounds"][name]) <= _MAX_COUNT_ERROR
      yield (f"in_bounds {name}", close, True, 0.0)
    if variant == "released":
      best = sorted(entry["in_bounds"].values())[-2:]
      if best[1] - best[0] > 2 * _MAX_COUNT_ERROR:
        yield ("chosen", ours.chosen, entry["chosen"], 0.0)


def _on_depth_limit(context: list[frames.EvaluationFrame]) -> bool:
  """Whether a stored depth equals a limit, which the paper includes."""
  edges = np.array([0.05, 20.0], np.float32)
  return any(
    view.depth is not None and bool(np.isin(view.depth, edges).any())
    for view in context
  )


def _kept_pairs(
  found: observable.Visibility,
  case: dict[str, Any],
  limits: constants.Constants,
) -> Iterator[tuple[str, Any, Any, float]]:
  boxes = [tuple(box) for box in case["boxes"]]
  keep, shares = observable.supported(found, boxes, limits)
  for index, share in enumerate(case["visible_share"]):
    if abs(share - limits.visibility_share) > _UNSURE_SHARE:
      yield (f"kept {index}", index in keep, index in case["kept"], 0.0)
    close = abs(float(shares[index]) - share) <= _UNSURE_SHARE
    yield (f"visible_share {index}", close, True, 0.0)


def evaluation_frames(folder: Folder, precision: str) -> Iterator[common.Check]:
  """Section 4.2: reduced images and depth."""
  name = "evaluation_frames.npz"
  known = ("index", "dataset", "raw_hw", "rgb_hw", "image_hw", "depth_hw")
  for case in folder.json("evaluation_frames.json"):
    prefix = f"f{case['index']}_{case['dataset']}"
    yield from conformance_folder.unknown_fields(prefix, case, known, precision)
    rgb = folder.array(name, f"{prefix}_rgb")
    image = frames.reduce_image(rgb, case["dataset"])
    depth = frames.reduce_depth(
      folder.array(name, f"{prefix}_raw"), rgb.shape[:2], case["dataset"]
    )
    for part, found, tolerance in (
      ("image", image, 1.0),
      ("depth", depth, 1e-6),
    ):
      yield common.compare(
        f"evaluation_frames/{prefix}_{part}",
        found,
        folder.array(name, f"{prefix}_{part}"),
        variant=BOTH,
        precision=precision,
        tolerance=tolerance,
      )


def integrity(folder: Folder, precision: str) -> Iterator[common.Check]:
  """Section 4.11: the six signals and the object quality."""
  known = (
    "image", "kind", "gt_box", "pred_box", "gt_crop_hw", "pred_crop_hw",
    "feature_gt", "feature_pred", "signals", "object_quality", "hu_log_gt",
    "hu_log_pred",
  )  # fmt: skip
  name = "integrity_images.npz"
  for number, case in enumerate(folder.json("integrity_signals.json")):
    where = f"integrity/{number}/{case['kind']}"
    yield from conformance_folder.unknown_fields(where, case, known, precision)
    target = folder.array(name, f"i{case['image']}_target")
    generated = folder.array(name, f"i{case['image']}_generated")
    features = [
      None if case[key] is None else np.asarray(case[key], np.float64)
      for key in ("feature_gt", "feature_pred")
    ]

    def identity(
      _a: signals.Image,
      _b: signals.Image,
      features: list[NDArray[np.float64] | None] = features,
    ) -> float | None:
      first, second = features
      if first is None or second is None:
        return None
      return signals.cosine_identity(first, second)

    found = signals.pair_signals(
      target, generated, case["gt_box"], case["pred_box"], identity
    )
    values = found.values if found else {}
    pairs: list[tuple[str, Any, Any, float]] = [
      (key, values.get(key), value, _SIGNAL_TOLERANCE[key])
      for key, value in case["signals"].items()
    ]
    quality = found.quality if found else None
    pairs.append(("quality", quality, case["object_quality"], 1e-5))
    for image, key in ((target, "gt"), (generated, "pred")):
      crop = signals.crop(image, case[f"{key}_box"])
      pairs.append(
        (f"{key}_crop", list(crop.shape[:2]), case[f"{key}_crop_hw"], 0.0)
      )
      mask = signals.rectangle(image.shape, case[f"{key}_box"])
      close = np.allclose(
        signals.log_hu(mask), case[f"hu_log_{key}"], rtol=0, atol=1e-9
      )
      pairs.append((f"hu_log_{key}", bool(close), True, 0.0))
    yield conformance_folder.worst(
      where, pairs, variant=BOTH, precision=precision
    )


def object_depth(folder: Folder, precision: str) -> Iterator[common.Check]:
  """Section 4.12: medians, and the records of a step."""
  maps = "object_depth_maps.npz"
  if folder.exists("object_depth.json"):
    for number, case in enumerate(folder.json("object_depth.json")):
      where = f"object_depth/{number}"
      yield from conformance_folder.unknown_fields(
        where, case, ("map", "image_hw", "box", "median", "valid"), precision
      )
      depth = np.asarray(folder.array(maps, f"m{case['map']}"), np.float32)
      size = tuple(case["image_hw"])
      for variant in VARIANTS:
        golden = case["median"]
        if variant == "paper":
          golden = _paper_median(depth, case["box"], size)
        found = object_depths.median_depth(
          depth, case["box"], size, constants.for_variant(variant)
        )
        yield common.equal(
          where, found, golden, variant=variant, precision=precision
        )
      if "valid" in case:
        values = object_depths.valid_depths(
          depth, case["box"], size, constants.RELEASED
        )
        yield common.equal(
          where + "/valid",
          values.size,
          case["valid"],
          variant="released",
          precision=precision,
        )
  if folder.exists("object_depth_records.json"):
    yield from _depth_records(folder, maps, precision)


def _depth_records(
  folder: Folder, maps: str, precision: str
) -> Iterator[common.Check]:
  known = ("seed_map", "gt_boxes", "pred_boxes", "match", "records")
  for number, case in enumerate(folder.json("object_depth_records.json")):
    where = f"object_depth_records/{number}"
    yield from conformance_folder.unknown_fields(where, case, known, precision)
    stored = folder.array(maps, f"r{case['seed_map']}")
    target = np.asarray(stored, np.float32)
    found = object_depths.object_depths(
      target,
      target * np.float32(0.7),
      case["gt_boxes"],
      case["pred_boxes"],
      dict(case["match"]),
      (target.shape[0], target.shape[1]),
      constants.RELEASED,
    )
    yield common.equal(
      where,
      [dataclasses.asdict(record) for record in found],
      case["records"],
      variant="released",
      precision=precision,
    )


def _paper_median(
  depth: NDArray[np.float32], box: list[float], size: tuple[int, ...]
) -> float | None:
  """The paper's rule, pixel by pixel: 10 % cut off, limits included."""
  x1, x2 = sorted((box[0], box[2]))
  y1, y2 = sorted((box[1], box[3]))
  if not all(math.isfinite(v) for v in box) or x2 - x1 < 1 or y2 - y1 < 1:
    return None
  height, width = depth.shape
  left = max(0, math.floor((x1 + 0.1 * (x2 - x1)) * (width / size[1])))
  right = min(width, math.ceil((x2 - 0.1 * (x2 - x1)) * (width / size[1])))
  top = max(0, math.floor((y1 + 0.1 * (y2 - y1)) * (height / size[0])))
  bottom = min(height, math.ceil((y2 - 0.1 * (y2 - y1)) * (height / size[0])))
  low, high = np.float32(0.05), np.float32(20.0)
  values = [
    depth[row, column]
    for row in range(top, bottom)
    for column in range(left, right)
    if np.isfinite(depth[row, column]) and low <= depth[row, column] <= high
  ]
  return float(np.median(np.array(values))) if len(values) >= 16 else None
