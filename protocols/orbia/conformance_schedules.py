# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Golden vectors of the schedules: integers, the same in both precisions."""

from __future__ import annotations

from collections.abc import Iterator

from protocols.common.conformance import Check
from protocols.orbia import schedules
from protocols.orbia.conformance_case import Case
from protocols.orbia.constants import PAPER, RELEASED


def schedule(case: Case) -> Iterator[Check]:
  """Sampling plan, items, feature selection, reconstruction frames."""
  plan = schedules.sampling_plan(
    case.params["frame_count"],
    case.read("event_frames"),
    case.read("revisit_frames"),
    c=RELEASED,
  )
  yield from case.check("sampling_plan", plan, host=True)
  for name, items in schedules.item_groups(plan, c=RELEASED).items():
    yield from case.check(f"{name}_items", items, host=True)
    for c, suffix in ((RELEASED, ""), (PAPER, "_paper")):
      chosen = schedules.feature_positions(len(items), c=c)
      yield from case.check(
        f"{name}_feature_selection{suffix}", chosen, host=True
      )
  frames = schedules.reconstruction_frames(plan, c=RELEASED)
  if frames is None:
    yield from case.check("gs_error", "too_few_frames")
  else:
    yield from case.check("gs_context", frames[0], host=True)
    yield from case.check("gs_heldout", frames[1], host=True)


def clock(case: Case) -> Iterator[Check]:
  """Requested times to video frames, both clocks (15.10)."""
  times = case.read("timestamps_s")
  for c, name in ((RELEASED, "video_index"), (PAPER, "video_index_fixed16")):
    frames = schedules.video_frames(
      times,
      fps=case.params["fps"],
      frame_count=case.params["frame_count"],
      c=c,
    )
    yield from case.check(name, frames, host=True)


def identity_schedule(case: Case) -> Iterator[Check]:
  """Scoring and tracking frames of intervals (5.7)."""
  rows = []
  width = case.arrays["scoring"].shape[1]
  for number, (start, end) in enumerate(case.read("intervals")):
    tracking, scoring = schedules.identity_frames(
      int(start), int(end), c=RELEASED
    )
    yield from case.check(f"tracking_{number}", tracking, host=True)
    rows.append(scoring + [-1] * (width - len(scoring)))
  yield from case.check("scoring", rows, host=True)
