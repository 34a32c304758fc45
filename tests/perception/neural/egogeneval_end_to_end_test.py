# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Real frames through all of EgoGenEval's neural stack, by the binaries.

Depth Anything 3 (pair and single), Grounding DINO and DINOv3 with random
weights; the vision-language model is a local chat server. The figures mean
nothing and the records say so.
"""

import http.server
import json
import re
import threading

import pytest
from absl.testing import absltest

from tests.perception.neural import end_to_end_test
from tests.perception.neural.end_to_end_test import (
  ROOT,
  SMALL,
  read_records,
  run,
)

_SCENE = ROOT.parent / "shared/data/sevenscenes"
_BOX = re.compile(r"^(G|P)(\d+): ", re.MULTILINE)
_AUDIT = re.compile(r"^id (\d+): ", re.MULTILINE)


class _Server(http.server.ThreadingHTTPServer):
  """A chat server that pairs equal numbers and finds nothing wrong."""

  daemon_threads = True

  def __init__(self):
    super().__init__(("127.0.0.1", 0), _Handler)
    self.asked = []
    self.mute = False

  def reply(self, text):
    """Reply to a prompt, or prose that is no JSON."""
    self.asked.append(text)
    if self.mute:
      return "I see a room, but I will not answer in JSON."
    if '"same_object":' in text:
      return json.dumps({"same_object": True, "same_object_confidence": 0.95})
    if '"matches"' not in text:
      return json.dumps({"objects": [
        {"id": number, "defects": []} for number in _AUDIT.findall(text)
      ]})  # fmt: skip
    found = {"G": set(), "P": set()}
    for side, number in _BOX.findall(text):
      found[side].add(int(number))
    pairs = sorted(found["G"] & found["P"])
    return json.dumps({"matches": [
      {"gt_id": f"G{i}", "pred_id": f"P{i}", "same_object_confidence": 0.95}
      for i in pairs
    ]})  # fmt: skip


class _Handler(http.server.BaseHTTPRequestHandler):
  def do_POST(self):
    length = int(self.headers["Content-Length"])
    body = json.loads(self.rfile.read(length))
    text = "\n".join(
      part["text"]
      for message in body["messages"]
      for part in message["content"]
      if part["type"] == "text"
    )
    message = {"content": self.server.reply(text)}
    choice = {"message": message, "finish_reason": "stop"}
    data = json.dumps({"model": "scripted", "choices": [choice]}).encode()
    self.send_response(200)
    self.send_header("Content-Length", str(len(data)))
    self.end_headers()
    self.wfile.write(data)

  def log_message(self, *_):
    pass


@pytest.mark.perception
class EgoGenEvalTest(end_to_end_test.NeuralCase):
  def setUp(self):
    super().setUp()
    self.server = _Server()
    threading.Thread(target=self.server.serve_forever, daemon=True).start()
    self.addCleanup(self.server.server_close)
    self.addCleanup(self.server.shutdown)
    self.mined = self.folder / "mined"
    self.files = [
      f"--manifest={self.mined}/manifest.jsonl",
      f"--eval_frames={self.mined}/eval_frames.jsonl",
    ]
    run(
      "mine",
      f"--flagfile={ROOT}/bin/flags/mine_benchmark.flags",
      f"--scenes={_SCENE}",
      f"--output={self.mined}",
      "--max_cases_per_scene=1",
    )
    # Outputs of the physical size, and of half of it.
    for name in ("oracle", "depth_warp"):
      run(
        "rollout",
        f"--reference={name}",
        *self.files,
        f"--output={self.folder / name}",
      )
    cases = (self.mined / "manifest.jsonl").read_text().splitlines()
    self.cases = [json.loads(case) for case in cases]
    words = {"detector_prompt_labels": ["monitor", "chair"]}
    with open(self.folder / "labels.jsonl", "w") as stream:
      for case in self.cases:
        row = {
          "sample_id": case["sample_id"],
          "target_labels": [words] * len(case["target_images"]),
        }
        stream.write(json.dumps(row) + "\n")

  def _evaluate(self, name, *flags):
    host, port = self.server.server_address
    endpoint = {
      "base_url": f"http://{host}:{port}/v1",
      "model": "scripted",
      "retries": 0,
    }
    settings = {**SMALL, "openai_endpoint": endpoint}
    out = self.folder / name
    result = run(
      "evaluate",
      f"--flagfile={ROOT}/bin/flags/egogeneval_neural.flags",
      *self.files,
      f"--labels={self.folder / 'labels.jsonl'}",
      f"--predictions={self.folder / 'oracle'},{self.folder / 'depth_warp'}",
      f"--output={out}",
      "--allow_partial",
      "--ego_vision=openai_endpoint",
      f"--ego_backend_settings={json.dumps(settings)}",
      *flags,
    )
    return out, result, read_records(out, result)

  def test_all_roles_complete_with_random_weights(self):
    out, result, records = self._evaluate("out", "--variant=released")
    self.assertEqual(result.returncode, 0, result.stderr[-2000:])
    self.assertLen(records, 2 * len(self.cases))
    for record in records:
      self.assertEqual(record["status"], "ok", record["reason"])
      self.assertFalse(record["comparable_to_published"])
      self.assertGreater(record["coverage"]["cmg_steps"], 0)
      self.assertGreater(record["coverage"]["ssp_steps"], 0)
      backends = record["provenance"]["backends"]
      for role in ("pose", "detections", "features", "depth"):
        self.assertEqual(backends[role]["weights_sha256"], "random", role)
        self.assertNotEmpty(backends[role]["backend_version"])
      self.assertEqual(
        backends["vision_language"]["backend"], "openai_endpoint"
      )
      for row in record["details"]["ssp"]:
        self.assertNotIn("proposal_failed", row)
    # Random boxes were found, and the server was asked about them.
    matched = [
      row["num_matched"] for r in records for row in r["details"]["ssp"]
    ]
    self.assertGreater(max(matched), 0)
    self.assertTrue(any("matches" in text for text in self.server.asked))
    for row in self._scored(out):
      self.assertFalse(row["comparable_to_published"])

  def test_prose_instead_of_json_is_reported_and_not_scored(self):
    self.server.mute = True
    # The detector alone is needed to get as far as the question.
    out, result, records = self._evaluate(
      "mute",
      "--variant=paper",
      "--ego_features=gradient_orientation",
      "--ego_depth=none",
    )
    failed = [
      record
      for record in records
      for status in record["details"]["statuses"]
      if "not a JSON object: 'I see a room" in status["reason"]
    ]
    self.assertNotEmpty(failed)
    # Steps whose call failed are in no mean: nothing counts as M = 0.
    self.assertNotIn("num_matched", json.dumps([r["details"] for r in failed]))
    self.assertIn("it must not count as no match", result.stdout)
    scores = json.loads((out / "scores.json").read_text())
    for record in failed:
      self.assertIsNone(scores["systems"][record["system"]]["ssp"])

  def _scored(self, out):
    lines = (out / "cases.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


if __name__ == "__main__":
  absltest.main()
