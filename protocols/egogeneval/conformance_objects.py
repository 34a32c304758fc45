# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Golden checks of labels, detections, the matchability filter, matching."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from protocols.common import conformance as common
from protocols.egogeneval import (
  conformance_folder,
  constants,
  matching,
  signals,
  vocabulary,
)
from protocols.egogeneval import detections as detection_rules
from protocols.egogeneval import matchability as matchability_rules
from protocols.egogeneval import proposals as proposal_rules
from protocols.egogeneval.conformance_folder import BOTH, VARIANTS, Folder

_QUALITY_TOLERANCE = 2e-5
_OBJECT_FIELDS = (
  "status", "gt_idx", "pred_idx", "gt_box", "pred_box", "object_quality",
  "center_norm", "recovered", "signals",
)  # fmt: skip


def labels(folder: Folder, precision: str) -> Iterator[common.Check]:
  """Sections 4.3 and 4.5: label text."""
  content = folder.json("labels.json")
  yield from conformance_folder.unknown_fields(
    "labels",
    content,
    ("normalise", "compatible", "canonical", "prompt_union"),
    precision,
  )
  check = functools.partial(common.equal, variant=BOTH, precision=precision)
  for case in content.get("normalise", ()):
    found = vocabulary.normalise(case["in"])
    yield check(f"labels/normalise/{case['in']!r}", found, case["out"])
  for first, second, flag in content.get("compatible", ()):
    name = f"labels/compatible/{first}/{second}"
    yield check(name, vocabulary.compatible(first, second), flag)
  for label, golden in content.get("canonical", ()):
    yield check(
      f"labels/canonical/{label}", vocabulary.canonical(label), golden
    )
  for number, case in enumerate(content.get("prompt_union", ())):
    where = f"labels/prompt_union/{number}"
    yield from conformance_folder.unknown_fields(
      where, case, ("annotation", "labels", "prompts", "query"), precision
    )
    for variant in VARIANTS:
      limits = constants.for_variant(variant)
      found_labels = vocabulary.step_labels(case["annotation"], limits)
      found_prompts = vocabulary.prompts(found_labels, limits)
      query = vocabulary.detector_query(found_prompts)
      prompts, text = case["prompts"], case["query"]
      if variant == "paper":
        # Spec 13 item 14: the fixed list first, then the step's own labels.
        own = [p for p in prompts if p not in vocabulary.FIXED_VOCABULARY]
        prompts = [*vocabulary.FIXED_VOCABULARY, *own]
        text = " . ".join(prompts) + " ."
      yield conformance_folder.worst(
        where,
        [
          ("labels", found_labels, case["labels"], 0.0),
          ("prompts", found_prompts, prompts, 0.0),
          ("query", query, text, 0.0),
        ],
        variant=variant,
        precision=precision,
      )


def detections(folder: Folder, precision: str) -> Iterator[common.Check]:
  """Section 4.4: raw detections to boxes."""
  known = (
    "tag", "hw", "boxes_f32", "scores_f32", "phrases", "boxes", "labels",
    "source",
  )  # fmt: skip
  for number, case in enumerate(folder.json("detection_postprocess.json")):
    where = f"detection_postprocess/{number}/{case['tag']}"
    yield from conformance_folder.unknown_fields(where, case, known, precision)
    found = detection_rules.postprocess(
      case["boxes_f32"],
      case["scores_f32"],
      case["phrases"],
      tuple(case["hw"]),
      constants.RELEASED,
    )
    yield conformance_folder.worst(
      where,
      [
        ("boxes", [list(box) for box in found.boxes], case["boxes"], 0.0),
        ("labels", list(found.labels), case["labels"], 0.0),
        ("source", list(found.sources), case["source"], 0.0),
      ],
      variant=BOTH,
      precision=precision,
    )


def matchability(folder: Folder, precision: str) -> Iterator[common.Check]:
  """Section 4.5: filters, duplicates, budgets, and their reasons."""
  known = ("tag", "hw", "boxes", "labels", "out")
  for number, case in enumerate(folder.json("matchability_filter.json")):
    where = f"matchability_filter/{number}/{case['tag']}"
    golden = case["out"]
    yield from conformance_folder.unknown_fields(where, case, known, precision)
    yield from conformance_folder.unknown_fields(
      where, golden, ("keep", "labels", "removed"), precision
    )
    found = matchability_rules.matchable(
      case["boxes"], case["labels"], tuple(case["hw"])
    )
    removed = [
      {
        "idx": entry.index,
        "reasons": list(entry.reasons),
        **(
          {}
          if entry.duplicate_of is None
          else {"duplicate_of": entry.duplicate_of}
        ),
      }
      for entry in found.removed
    ]
    expected = sorted(golden["removed"], key=lambda entry: entry["idx"])
    yield conformance_folder.worst(
      where,
      [
        ("keep", list(found.keep), golden["keep"], 0.0),
        ("labels", list(found.labels), golden["labels"], 0.0),
        ("removed", removed, expected, 0.0),
      ],
      variant=BOTH,
      precision=precision,
    )


def proposals(folder: Folder, precision: str) -> Iterator[common.Check]:
  """Section 4.8, stage 1: accepted pairs, scores, counts."""
  known = (
    "tag", "hw", "gt_boxes", "gt_labels", "cand_boxes", "cand_labels", "reply",
    "pairs", "details", "stats",
  )  # fmt: skip
  for number, case in enumerate(folder.json("matching_proposals.json")):
    where = f"matching_proposals/{number}/{case['tag']}"
    yield from conformance_folder.unknown_fields(where, case, known, precision)
    stats = case["stats"]
    yield from conformance_folder.unknown_fields(
      where, stats, ("n_far", "n_lowconf", "n_notsame", "edges"), precision
    )
    found = proposal_rules.accept(
      case["reply"],
      case["gt_boxes"],
      case["gt_labels"],
      case["cand_boxes"],
      case["cand_labels"],
      tuple(case["hw"]),
      constants.RELEASED,
    )
    edges = {f"{g},{p}": score for (g, p), score in found.edges.items()}
    pairs: list[tuple[str, Any, Any, float]] = [
      (
        "pairs",
        sorted(found.pairs),
        sorted(tuple(pair) for pair in case["pairs"]),
        0.0,
      ),
      ("n_far", found.far, stats["n_far"], 0.0),
      ("n_lowconf", found.unsure, stats["n_lowconf"], 0.0),
      ("n_notsame", found.different, stats["n_notsame"], 0.0),
      ("edge set", sorted(edges), sorted(stats["edges"]), 0.0),
    ]
    pairs += [
      (f"edge {key}", edges.get(key), score, 1e-12)
      for key, score in stats["edges"].items()
    ]
    for detail in case["details"]:
      pair = (detail["gt_idx"], detail["pred_idx"])
      pairs.append(
        (f"conf {pair}", found.confidences.get(pair), detail["conf"], 1e-12)
      )
      pairs.append(
        (f"score {pair}", found.edges.get(pair), detail["score"], 1e-12)
      )
    yield conformance_folder.worst(
      where, pairs, variant=BOTH, precision=precision
    )


def audit_and_recovery(
  folder: Folder, precision: str
) -> Iterator[common.Check]:
  """Section 4.8, stages 2 and 3, with scripted answers."""
  images = "match_audit_recover_images.npz"
  known = (
    "hw", "gt_boxes", "gt_labels", "full_gt_boxes", "full_gt_labels",
    "cand_boxes", "cand_labels", "proposed_pairs", "identity", "judge",
    "audit_reply", "out",
  )  # fmt: skip
  for number, case in enumerate(folder.json("match_audit_recover.json")):
    where = f"match_audit_recover/{number}"
    yield from conformance_folder.unknown_fields(where, case, known, precision)
    target = folder.array(images, f"s{number}_target")
    generated = folder.array(images, f"s{number}_generated")

    def pair_signals(
      gt: int,
      pred: int,
      case: Mapping[str, Any] = case,
      target: signals.Image = target,
      generated: signals.Image = generated,
    ) -> signals.Signals | None:
      return signals.pair_signals(
        target,
        generated,
        case["gt_boxes"][gt],
        case["cand_boxes"][pred],
        lambda _a, _b: case["identity"][gt][pred],
      )

    def audit(
      shown: Sequence[matching.ObjectRecord], case: Mapping[str, Any] = case
    ) -> dict[int, list[str]] | None:
      reply = case["audit_reply"]
      if reply is None:
        return None
      return {int(k): v for k, v in reply.items() if int(k) < len(shown)}

    def judge(
      gt: int, pred: int, case: Mapping[str, Any] = case
    ) -> matching.Verdict:
      answer = case["judge"][gt][pred]
      if answer == "error":
        return matching.Verdict(False, 0.0)
      return matching.Verdict(
        answer["same_object"], answer["same_object_confidence"]
      )

    found = matching.Matcher(
      _box_list(case["gt_boxes"], case["gt_labels"]),
      _box_list(case["full_gt_boxes"], case["full_gt_labels"]),
      _box_list(case["cand_boxes"], case["cand_labels"]),
      tuple(case["hw"]),
      constants.RELEASED,
      pair_signals=pair_signals,
      audit=audit,
      judge=judge,
    ).run([tuple(pair) for pair in case["proposed_pairs"]])
    yield from _matched_checks(where, found, case["out"], precision)


def _matched_checks(
  where: str, found: matching.Matched, golden: Any, precision: str
) -> Iterator[common.Check]:
  yield from conformance_folder.unknown_fields(
    where,
    golden,
    ("summary", "objects", "stage1", "stage2", "calls"),
    precision,
  )
  summary = golden["summary"]
  means = matching.summary(found.records)
  counts = {
    "num_gt_objects": means.targets,
    "num_matched": means.matches,
    "num_missing": means.missing,
    "num_hallucination": means.extras,
    "vlm_used": found.audit_used,
    "num_demoted": found.demoted,
    "num_recovered": found.recovered,
  }
  measured = {
    "ObjectIntegrity": means.object_quality,
    "Center_Error_Norm": means.position_error,
  }
  yield from conformance_folder.unknown_fields(
    f"{where}/summary",
    summary,
    (*counts, *measured, "mean_signals", "num_pred_all"),
    precision,
  )
  keys = [list(record.key) for record in found.records]
  pairs: list[tuple[str, Any, Any, float]] = [
    ("stage1", [list(r.key) for r in found.proposed], golden["stage1"], 0.0),
    ("stage2", [list(r.key) for r in found.audited], golden["stage2"], 0.0),
    ("calls", [list(call) for call in found.calls], golden["calls"], 0.0),
    (
      "objects",
      keys,
      [[o["status"], o["gt_idx"], o["pred_idx"]] for o in golden["objects"]],
      0.0,
    ),
  ]
  pairs += [(name, v, summary[name], 0.0) for name, v in counts.items()]
  pairs += [
    (name, v, summary[name], _QUALITY_TOLERANCE) for name, v in measured.items()
  ]
  for name, value in (summary["mean_signals"] or {}).items():
    pairs.append((name, means.signals.get(name), value, _QUALITY_TOLERANCE))
  for record, entry in zip(found.records, golden["objects"], strict=False):
    yield from conformance_folder.unknown_fields(
      f"{where}/objects",
      entry,
      _OBJECT_FIELDS,
      precision,
    )
    tag = f"object {record.key}"
    pairs += [
      (f"{tag} gt_box", _listed(record.gt_box), entry["gt_box"], 0.0),
      (f"{tag} pred_box", _listed(record.pred_box), entry["pred_box"], 0.0),
      (f"{tag} recovered", record.recovered, entry["recovered"], 0.0),
      (
        f"{tag} quality",
        record.object_quality,
        entry["object_quality"],
        _QUALITY_TOLERANCE,
      ),
      (f"{tag} centre", record.center_norm, entry["center_norm"], 1e-12),
    ]
    for name, value in (entry["signals"] or {}).items():
      ours = (record.signals or {}).get(name)
      pairs.append((f"{tag} {name}", ours, value, _QUALITY_TOLERANCE))
  yield conformance_folder.worst(
    where, pairs, variant=BOTH, precision=precision
  )


def _listed(box: tuple[float, ...] | None) -> list[float] | None:
  return None if box is None else list(box)


def _box_list(
  boxes: Sequence[Sequence[float]], labels: Sequence[str]
) -> detection_rules.BoxList:
  return detection_rules.BoxList(
    tuple((int(a), int(b), int(c), int(d)) for a, b, c, d in boxes),
    tuple(labels),
    tuple(range(len(boxes))),
  )
