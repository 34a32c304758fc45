# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Replies, proposals, audit and recovery with a scripted model."""

import dataclasses
import json

import numpy as np
from absl.testing import absltest, parameterized

from perception import observation, roles
from perception.errors import InputError
from protocols.egogeneval import (
  constants,
  detections,
  frames,
  matching,
  measure_ssp,
  proposals,
  replies,
  signals,
)

_SIZE = (240, 320)


class RepliesTest(parameterized.TestCase):
  @parameterized.parameters(
    ('{"a": 1}', {"a": 1}),
    ('```json\n{"a": 1}\n```', {"a": 1}),
    ('Sure: {"a": {"b": "}"}} and more', {"a": {"b": "}"}}),
    ('{"a": [1, 2,],}', {"a": [1, 2]}),
    ('[{"a": 1}]', {"a": 1}),
    ("[1]", None),
    ('[{"a": 1}, {"b": 2}]', {"a": 1}),
    ("no json at all", None),
    ("", None),
    ('{"a": ', None),
  )
  def test_parse(self, text, expected):
    self.assertEqual(replies.parse(text), expected)

  @parameterized.parameters(
    ("G3", 3), (3, 3), ("g 2", 2), ("P#1 (table)", 1), ("x", None),
    (None, None), (True, None), ("G9", None),
  )  # fmt: skip
  def test_index(self, value, expected):
    self.assertEqual(replies.index_of(value, 5), expected)

  def test_confidence_is_clipped(self):
    self.assertEqual(replies.confidence("1.4", default=0.5), 1.0)
    self.assertEqual(replies.confidence("nan", default=0.5), 0.5)
    self.assertEqual(replies.confidence(None, default=0.5), 0.5)


def _boxes(*boxes, label="chair"):
  return detections.BoxList(
    tuple(boxes), tuple(label for _ in boxes), tuple(range(len(boxes)))
  )


class AssignmentTest(absltest.TestCase):
  def test_total_score_beats_greed(self):
    targets = ((10, 10, 60, 70), (30, 10, 80, 70))
    reply = {
      "matches": [
        {"gt_id": "G0", "pred_id": "P0", "same_object_confidence": 0.9},
        {"gt_id": "G1", "pred_id": "P0", "same_object_confidence": 0.95},
        {"gt_id": "G1", "pred_id": "P1", "same_object_confidence": 0.85},
      ]
    }
    found = proposals.accept(
      reply, targets, ["a", "b"], targets, ["c", "d"], _SIZE,
      constants.RELEASED,
    )  # fmt: skip
    self.assertEqual(set(found.pairs), {(0, 0), (1, 1)})

  def test_similarity_ablation_keeps_the_best_total(self):
    boxes = ((10, 10, 60, 70), (20, 10, 70, 70))
    similarity = np.array([[0.80, 0.95], [0.70, 0.90]])
    found = proposals.assign_by_similarity(
      similarity, boxes, boxes, _SIZE, constants.RELEASED
    )
    # 0.95 - 0.78 alone beats 0.80 + 0.90 - 2 x 0.78 = 0.14.
    self.assertEqual(found, ((0, 1),))


class _Scripted:
  """A vision-language backend with fixed answers by stage."""

  info = roles.BackendInfo("vision_language", "scripted", "1", "none", False)

  def __init__(self, propose="{}", audit="{}", judge="{}"):
    self.texts = {"propose": propose, "audit": audit, "judge": judge}
    self.asked = []

  def answer(self, request):
    text = request.messages[0].parts[1]
    stage = "judge"
    if text.startswith("Target objects"):
      stage = "propose"
    elif text.startswith("Pairs in reading order"):
      stage = "audit"
    self.asked.append(stage)
    return roles.ChatAnswer(
      self.texts[stage], "stop", self.info.provenance("0")
    )


class _Detector:
  """Fixed boxes for the target and the generated image."""

  def __init__(self, target, generated):
    self.found = [target, generated]

  def detect(self, image, phrases):
    del image
    boxes = np.asarray(self.found.pop(0), np.float32).reshape(-1, 4)
    return observation.Detections(
      boxes=boxes,
      scores=(0.9 - 0.1 * np.arange(len(boxes))).astype(np.float32),
      labels=np.array([phrases[i] for i in range(len(boxes))], np.str_),
      provenance=observation.Provenance("", "fixed", "1", "", {}),
    )


_TARGETS = [[40, 40, 110, 120], [150, 60, 230, 150]]
_MATCHES = json.dumps(
  {
    "matches": [
      {"gt_id": f"G{i}", "pred_id": f"P{i}", "same_object_confidence": 0.9}
      for i in range(2)
    ]
  }
)
_CLEAN = json.dumps({"objects": [{"id": i, "defects": []} for i in range(4)]})


class StepTest(parameterized.TestCase):
  def _measure(self, vision, variant="released", generated=None):
    rng = np.random.default_rng(0)
    image = rng.integers(0, 255, (*_SIZE, 3), np.uint8)
    depth = np.full(_SIZE, 2.0, np.float32)
    depth[:, 140:] = 3.0
    target = frames.EvaluationFrame(image, depth, np.eye(3), np.eye(4))
    labels = {"object_labels": ["chair", "table"]}

    class Depth:
      def depth(self, image):
        del image
        return depth

    return measure_ssp.measure_step(
      measure_ssp.StepInputs(
        "a__b__atomic__c__step1", target, [], image, labels
      ),
      measure_ssp.SspBackends(
        _Detector(_TARGETS, _TARGETS if generated is None else generated),
        None,
        vision,
        Depth(),
      ),
      dataclasses.replace(
        constants.for_variant(variant),
        # Without a features backend the identity signal is missing, which
        # the released variant refuses; everything else stays released.
        variant="paper",
      ),
    )

  def test_the_same_image_is_a_perfect_step(self):
    row = self._measure(_Scripted(_MATCHES, _CLEAN))
    self.assertEqual((row["num_gt_objects"], row["num_matched"]), (2, 2))
    self.assertEqual(row["center_error_norm"], 0.0)
    self.assertAlmostEqual(row["object_integrity"], 1.0, places=6)
    self.assertEqual(row["object_depths"][0]["gt_median_depth"], 2.0)
    self.assertEqual(row["object_depths"][1]["pred_median_depth"], 3.0)
    self.assertEqual(row["vlm_calls"], {"audit_ok": 1, "propose_ok": 1})

  def test_wrong_identity_is_demoted(self):
    audit = {
      "objects": [
        {"id": 0, "defects": ["wrong_identity"]},
        {"id": 1, "defects": ["blurry"]},
      ]
    }
    no = json.dumps({"same_object": False, "same_object_confidence": 0.9})
    row = self._measure(_Scripted(_MATCHES, json.dumps(audit), no))
    self.assertEqual((row["num_matched"], row["num_demoted"]), (1, 1))
    yes = json.dumps({"same_object": True, "same_object_confidence": 0.95})
    kept = self._measure(_Scripted(_MATCHES, json.dumps(audit), yes))
    self.assertEqual((kept["num_matched"], kept["num_demoted"]), (2, 0))

  def test_missing_object_is_recovered_from_a_near_extra(self):
    # The second candidate lies off its target, so that it is an extra.
    moved = [_TARGETS[0], [180, 160, 260, 230]]
    only_first = json.dumps({"matches": json.loads(_MATCHES)["matches"][:1]})
    yes = json.dumps({"same_object": True, "same_object_confidence": 0.8})
    row = self._measure(_Scripted(only_first, _CLEAN, yes), generated=moved)
    self.assertEqual((row["num_matched"], row["num_recovered"]), (2, 1))
    unsure = json.dumps({"same_object": True, "same_object_confidence": 0.79})
    row = self._measure(_Scripted(only_first, _CLEAN, unsure), generated=moved)
    self.assertEqual((row["num_matched"], row["num_recovered"]), (1, 0))

  def test_a_reply_that_is_not_json_is_counted_in_the_released_variant(self):
    vision = _Scripted("I see two chairs.", _CLEAN)
    row = self._measure(vision)
    self.assertTrue(row["proposal_failed"])
    self.assertEqual(row["vlm_calls"]["propose_unparsed"], 1)
    self.assertIn("not a JSON object", row["vlm_reasons"]["propose"])
    self.assertEqual(vision.asked.count("propose"), 2)

  def test_a_reply_that_is_not_json_fails_the_step_in_the_paper_variant(self):
    with self.assertRaisesRegex(InputError, "correspondence reply"):
      self._measure(_Scripted("I see two chairs."), variant="paper")

  def test_records_missing_from_the_audit_are_asked_again_and_counted(self):
    only = json.dumps({"objects": [{"id": 0, "defects": []}]})
    vision = _Scripted(_MATCHES, only)
    row = self._measure(vision)
    self.assertEqual(row["vlm_calls"]["audit_record_unparsed"], 1)
    self.assertEqual(row["num_matched"], 2)

  def test_no_target_object_asks_nothing(self):
    vision = _Scripted()
    image = np.zeros((*_SIZE, 3), np.uint8)
    target = frames.EvaluationFrame(
      image, np.ones(_SIZE, np.float32), np.eye(3), np.eye(4)
    )
    row = measure_ssp.measure_step(
      measure_ssp.StepInputs(
        "a__b__atomic__c__step1", target, [], image, {"object_labels": ["tv"]}
      ),
      measure_ssp.SspBackends(_Detector([], _TARGETS), None, vision, None),
      constants.PAPER,
    )
    self.assertEqual((row["num_gt_objects"], row["num_pred_all"]), (0, 2))
    self.assertEqual(vision.asked, [])

  def test_released_needs_all_six_signals(self):
    limits = constants.RELEASED
    with self.assertRaisesRegex(InputError, "identity_sim"):
      image = np.random.default_rng(0).integers(0, 255, (*_SIZE, 3), np.uint8)
      target = frames.EvaluationFrame(
        image, np.ones(_SIZE, np.float32), np.eye(3), np.eye(4)
      )
      measure_ssp.measure_step(
        measure_ssp.StepInputs(
          "a__b__atomic__c__step1", target, [], image,
          {"object_labels": ["chair", "table"]},
        ),
        measure_ssp.SspBackends(
          _Detector(_TARGETS, _TARGETS), None, _Scripted(_MATCHES, _CLEAN), None
        ),
        limits,
      )  # fmt: skip


class SignalTest(absltest.TestCase):
  def test_identical_crops_give_one(self):
    image = np.random.default_rng(1).integers(0, 255, (90, 120, 3), np.uint8)
    found = signals.pair_signals(
      image, image, (20, 20, 70, 60), (20, 20, 70, 60), lambda _a, _b: 1.0
    )
    for name, value in found.values.items():
      self.assertAlmostEqual(value, 1.0, places=6, msg=name)

  def test_empty_crop_gives_no_signals(self):
    image = np.zeros((20, 20, 3), np.uint8)
    found = signals.pair_signals(
      image, image, (5, 5, 5, 5), (1, 1, 9, 9), lambda _a, _b: None
    )
    self.assertIsNone(found)

  def test_summary_of_no_match_is_none_not_zero(self):
    record = matching.ObjectRecord("missing", 0, None, (0, 0, 1, 1), None, 0.0)
    found = matching.summary([record])
    self.assertIsNone(found.object_quality)
    self.assertEqual((found.targets, found.matches), (1, 0))


if __name__ == "__main__":
  absltest.main()
