# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""What an Orbia record gives to the long table beside its raw values.

The tiers of a model are trees over means of cases (specs/orbia.md section
9.4): every normalised leaf is averaged over the cases in which it exists, and
the tree is applied to the means. A replicate must repeat that order, so the
table needs the leaves, not the tiers of single cases:

  leaf_NAME       normalised leaf of T3, T4 or T5, 0-100
  t1_NAME         component of T1 that the control profile uses
  direct          direct half of T4 of the case (released rule)
  direct_sum, direct_number  sum and number of its branch values (paper rule)
  temporal_short, temporal_long  temporal score, by horizon

The bases `_orbia_tree` and `_orbia_tree_released` of the studies form the
tiers from these.
"""

from __future__ import annotations

from protocols.common.records import Record
from protocols.orbia import score, tiers


def metrics(record: Record) -> dict[str, float | None]:
  """Metrics of one record, by name; None where missing."""
  case = score.case_scores(record)
  names = tiers.control_names(record.groups.get("control_profile", ""))
  branches = [
    tiers.same_pose_score(case.leaves) if case.same_pairs else None,
    case.leaves["revisit_different_dino"] if case.different_pairs else None,
  ]
  known = [value for value in branches if value is not None]
  horizon = "long" if case.is_long else "short"
  return {
    **{f"leaf_{name}": value for name, value in case.leaves.items()},
    **{f"t1_{name}": case.control[name] for name in names},
    "direct": tiers.direct_of_case(case),
    "direct_sum": sum(known) if known else None,
    "direct_number": float(len(known)) if known else None,
    f"temporal_{horizon}": case.temporal,
  }
