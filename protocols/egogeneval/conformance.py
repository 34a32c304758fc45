# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Golden vectors of EgoGenEval against our code, both variants.

`released` must reproduce the recorded outputs. `paper` is compared with the
same outputs wherever the variants cannot differ and elsewhere with the
paper's rule written out in scalar arithmetic over the recorded inputs.
A file, array, case field or listed vector that no check reads fails.
"""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Iterator
from typing import Any

from protocols.common import conformance as common
from protocols.egogeneval import (
  conformance_folder,
  conformance_grounding,
  conformance_images,
  conformance_objects,
  conformance_records,
)

_Handler = Callable[[conformance_folder.Folder, str], Iterator[common.Check]]

# Files that are read together -> what checks them.
_HANDLERS: dict[tuple[str, ...], _Handler] = {
  ("relative_motion.npz",): conformance_grounding.relative_motion,
  ("action_component.json",): conformance_grounding.action_component,
  ("cmg_step.json",): conformance_grounding.cmg_step,
  ("cmg_score_table.json",): conformance_grounding.cmg_score_table,
  ("labels.json",): conformance_objects.labels,
  ("detection_postprocess.json",): conformance_objects.detections,
  ("matchability_filter.json",): conformance_objects.matchability,
  ("matching_proposals.json",): conformance_objects.proposals,
  (
    "match_audit_recover.json",
    "match_audit_recover_images.npz",
  ): conformance_objects.audit_and_recovery,
  ("visibility.npz", "visibility.json"): conformance_images.visibility,
  (
    "evaluation_frames.npz",
    "evaluation_frames.json",
  ): conformance_images.evaluation_frames,
  (
    "integrity_images.npz",
    "integrity_signals.json",
  ): conformance_images.integrity,
  (
    "object_depth.json",
    "object_depth_records.json",
    "object_depth_maps.npz",
  ): conformance_images.object_depth,
  ("topology_step.json",): conformance_records.topology_step,
  ("aggregation.json",): conformance_records.aggregation,
  ("aggregation_rejections.json",): conformance_records.rejections,
}
_NOT_VECTORS = ("index.json", "README.md")


def recognises(index: dict[str, Any]) -> bool:
  """Whether an index describes EgoGenEval vectors."""
  files = " ".join(
    str(entry.get("file", ""))
    for entry in index.get("vectors", [])
    if isinstance(entry, dict)
  )
  return any(name in files for name in ("cmg_step.json", "topology_step.json"))


def checks(
  folder: pathlib.Path, index: dict[str, Any], *, precision: str
) -> Iterator[common.Check]:
  """Runs every vector of a folder.

  Args:
    folder: the golden folder.
    index: its parsed `index.json`.
    precision: `float64` or `float32`.

  Yields:
    One check per case or array and variant.
  """
  del index  # The folder itself is walked, so that nothing can be left out.
  opened = conformance_folder.Folder(folder)
  for names, handler in _HANDLERS.items():
    present = [name for name in names if (folder / name).exists()]
    if not present:
      continue
    if len(present) < len(names) and len(names) == 2:
      lacking = sorted(set(names) - set(present))
      yield common.unknown(
        f"{present[0]} without {lacking[0]}", precision=precision
      )
      continue
    yield from handler(opened, precision)
  for path in sorted(folder.iterdir()):
    if path.name not in _NOT_VECTORS:
      yield from opened.unread(path.name, precision)
