# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""The endpoint client against a local server; needs no torch."""

import base64
import http.server
import json
import logging
import os
import pathlib
import pickle
import threading
from unittest import mock

import cv2
import numpy as np
from absl.testing import absltest, parameterized

from bin import cli
from perception import cached, errors, registry, roles, video
from perception.neural import openai_endpoint
from tests.bin import running
from tests.perception import media

_SECRET = "sk-very-secret-0123456789"
_KEY = "WORLDGAUGE_TEST_KEY"


class _Server(http.server.ThreadingHTTPServer):
  """Answers from a script and keeps what it was asked."""

  daemon_threads = True

  def __init__(self):
    super().__init__(("127.0.0.1", 0), _Handler)
    self.script, self.seen = [], []


class _Handler(http.server.BaseHTTPRequestHandler):
  def do_POST(self):
    length = int(self.headers["Content-Length"])
    body = json.loads(self.rfile.read(length))
    self.server.seen.append((self.path, dict(self.headers), body))
    script = self.server.script
    status, content, headers = script.pop(0) if script else _ok("yes")
    data = content if isinstance(content, bytes) else json.dumps(content)
    data = data if isinstance(data, bytes) else data.encode()
    self.send_response(status)
    for name, value in headers.items():
      self.send_header(name, value)
    self.send_header("Content-Length", str(len(data)))
    self.end_headers()
    self.wfile.write(data)

  def log_message(self, *_):
    pass


def _ok(text, **message):
  choice = {"message": {"content": text, **message}, "finish_reason": "stop"}
  return 200, {"model": "served-1", "choices": [choice]}, {}


def _request(text="What is this?", **options):
  image = np.zeros((3, 5, 3), np.uint8)
  image[1, 4] = (250, 10, 20)
  return roles.ChatRequest(
    (
      roles.ChatMessage("system", ("Be brief.",)),
      roles.ChatMessage("user", (text, image)),
    ),
    **options,
  )


class _EndpointCase(parameterized.TestCase):
  def setUp(self):
    super().setUp()
    self.server = _Server()
    thread = threading.Thread(
      target=self.server.serve_forever, kwargs={"poll_interval": 0.01}
    )
    thread.start()
    self.addCleanup(thread.join)
    self.addCleanup(self.server.server_close)
    self.addCleanup(self.server.shutdown)
    environment = {_KEY: _SECRET, "no_proxy": "127.0.0.1"}
    self.enter_context(mock.patch.dict(os.environ, environment))
    self.folder = pathlib.Path(self.create_tempdir().full_path)

  def _client(self, **settings):
    return registry.get(
      "vision_language",
      "openai_endpoint",
      **{
        "base_url": f"http://127.0.0.1:{self.server.server_port}/v1/",
        "model": "m",
        "api_key_env": _KEY,
        "backoff_s": 0.0,
      }
      | settings,
    )


class EndpointTest(_EndpointCase):
  def test_question_and_answer(self):
    client = self._client()
    self.assertIsInstance(client, roles.VisionLanguageBackend)
    schema = {"type": "object"}
    request = _request(seed=4, max_tokens=7, response_schema=schema)
    answer = client.answer(request)
    self.assertEqual(answer.text, "yes")
    self.assertEqual(answer.finish_reason, "stop")
    self.assertEqual(answer.provenance.source_sha256, request.sha256())
    self.assertEqual(answer.provenance.settings["served_model"], "served-1")
    ((path, headers, body),) = self.server.seen
    self.assertEqual(path, "/v1/chat/completions")
    self.assertEqual(headers["Authorization"], f"Bearer {_SECRET}")
    self.assertEqual(body["model"], "m")
    self.assertEqual((body["seed"], body["max_tokens"]), (4, 7))
    self.assertEqual(body["temperature"], 0.0)
    self.assertEqual(body["response_format"]["json_schema"]["schema"], schema)
    self.assertEqual(body["messages"][0]["role"], "system")
    text, picture = body["messages"][1]["content"]
    self.assertEqual(text, {"type": "text", "text": "What is this?"})
    data = picture["image_url"]["url"].removeprefix("data:image/png;base64,")
    decoded = cv2.imdecode(
      np.frombuffer(base64.b64decode(data), np.uint8), cv2.IMREAD_COLOR
    )
    np.testing.assert_array_equal(decoded[1, 4, ::-1], (250, 10, 20))

  @parameterized.parameters(429, 500, 503)
  def test_failures_that_may_pass_are_retried(self, status):
    self.server.script = [(status, {}, {"Retry-After": "0"})] * 2
    self.assertEqual(self._client().answer(_request()).text, "yes")
    self.assertLen(self.server.seen, 3)

  def test_retry_after_wins_and_is_capped(self):
    self.server.script = [
      (429, {}, {"Retry-After": "7"}),
      (429, {}, {"Retry-After": "9999"}),
      (429, {}, {}),
    ]
    with mock.patch.object(openai_endpoint.time, "sleep") as sleep:
      self._client(backoff_s=2.0).answer(_request())
    self.assertEqual([c.args[0] for c in sleep.call_args_list], [7, 60, 8])

  def test_gives_up(self):
    self.server.script = [(503, {"error": "busy"}, {})] * 9
    with self.assertRaisesRegex(errors.InputError, "busy.*after 3 tries"):
      self._client(retries=2).answer(_request())
    self.assertLen(self.server.seen, 3)

  def test_refusals_are_not_retried(self):
    self.server.script = [(400, {"error": "no such model"}, {})]
    with self.assertRaisesRegex(errors.InputError, "status 400.*no such"):
      self._client().answer(_request())
    self.assertLen(self.server.seen, 1)

  def test_a_dead_server(self):
    client = self._client(base_url="http://127.0.0.1:9/v1", retries=1)
    with self.assertRaisesRegex(errors.InputError, "after 2 tries"):
      client.answer(_request())

  def test_timeout(self):
    release = threading.Event()
    self.addCleanup(release.set)

    def slow(handler):
      release.wait(5)

    with (
      mock.patch.object(_Handler, "do_POST", slow),
      self.assertRaisesRegex(errors.InputError, "timed out|Timeout"),
    ):
      self._client(timeout_s=0.05, retries=0).answer(_request())

  @parameterized.named_parameters(
    ("not json", b"<html>"),
    ("no choices", {"choices": []}),
    ("a list", []),
    ("content", {"choices": [{"message": {"content": 3}}]}),
  )
  def test_other_replies(self, content):
    self.server.script = [(200, content, {})] * 2
    with self.assertRaises(errors.InputError):
      self._client(retries=1).answer(_request())

  def test_no_content_is_said(self):
    self.server.script = [_ok(None, refusal="no")]
    answer = self._client().answer(_request())
    self.assertEqual((answer.text, answer.finish_reason), ("", "no content"))

  def test_without_a_key(self):
    self._client(api_key_env="").answer(_request())
    self.assertNotIn("Authorization", self.server.seen[0][1])

  def test_transcript_is_replayed_and_resumed(self):
    path = self.folder / "deep" / "answers.jsonl"
    client = self._client(transcript=str(path))
    first = client.answer(_request("one"))
    client.answer(_request("one"))
    client.answer(_request("two"))
    self.assertLen(self.server.seen, 2)
    replayed = registry.get("vision_language", "recorded", path=str(path))
    self.assertEqual(replayed.answer(_request("one")), first)
    with open(path, "ab") as stream:
      stream.write(b'{"request_sha256": "to')
    resumed = self._client(transcript=str(path))
    resumed.answer(_request("two"))
    resumed.answer(_request("three"))
    self.assertLen(self.server.seen, 3)
    self.assertLen(path.read_text().splitlines(), 3)
    other = self._client(transcript=str(path), model="n")
    other.answer(_request("one"))
    self.assertLen(self.server.seen, 4)

  def test_damaged_transcript(self):
    path = self.folder / "answers.jsonl"
    path.write_text('{"a": 1}\n{"b": 2}\n')
    with self.assertRaisesRegex(errors.InputError, "line 1"):
      self._client(transcript=str(path))

  @parameterized.named_parameters(
    ("scheme", "ftp://host/v1"),
    ("user", "https://me:pass@host/v1"),
    ("query", "https://host/v1?key=pass"),
    ("nothing", ""),
  )
  def test_bad_urls_are_refused_without_repeating_them(self, url):
    with self.assertRaises(errors.InputError) as caught:
      self._client(base_url=url)
    self.assertNotIn("pass", str(caught.exception))

  @parameterized.parameters(
    {"timeout_s": 0}, {"retries": -1}, {"backoff_s": -1}, {"model": ""}
  )
  def test_bad_settings(self, **settings):
    with self.assertRaisesRegex(errors.InputError, "timeout_s"):
      self._client(**settings)


class SecretTest(_EndpointCase):
  """The key is in one header and nowhere else."""

  def _everything(self):
    return "".join(
      path.read_text() for path in self.folder.rglob("*") if path.is_file()
    )

  def test_never_in_records_cache_keys_or_transcript(self):
    self.server.script = [_ok(f"you sent {_SECRET}")]
    client = self._client(transcript=str(self.folder / "t.jsonl"))
    with self.assertLogs(level=logging.DEBUG) as logs:
      logging.getLogger().debug("at least one line")
      answer = client.answer(_request())
    self.assertIn(f"Bearer {_SECRET}", self.server.seen[0][1].values())
    texts = [
      str(answer),
      repr(client),
      str(client.info),
      str(vars(client)),
      str(client.info.provenance("x")),
      self._everything(),
      *logs.output,
    ]
    for text in texts:
      self.assertNotIn(_SECRET, text)
    self.assertIn("[redacted]", answer.text)

  def test_never_in_the_cache(self):
    self.server.script = [_ok(f"you sent {_SECRET}")]
    kept = cached.wrap(self._client(), self.folder / "cache")
    answer = kept.answer(_request())
    again = cached.wrap(self._client(), self.folder / "cache")
    self.assertEqual(again.answer(_request()), answer)
    self.assertLen(self.server.seen, 1)
    self.assertIn("[redacted]", self._everything())
    self.assertNotIn(_SECRET, self._everything())

  def test_never_in_what_a_run_leaves(self):
    """Log, records, cache and run.json of the command, by a server's echo."""
    frames, _ = media.moving_square(4)
    clips = self.folder / "clips"
    video.write_video(clips / "m" / "a.mp4", frames, 24)
    self.server.script = [_ok(f"no, {_SECRET}")] * 4
    settings = {
      "openai_endpoint": {
        "base_url": f"http://127.0.0.1:{self.server.server_port}/v1",
        "model": "m",
        "api_key_env": _KEY,
      }
    }
    done = running.run(
      "evaluate",
      "--protocol=pdi",
      f"--clips={clips}",
      "--object_box=28,38,72,82",
      "--sampling=native",
      "--audit=openai_endpoint",
      f"--backend_settings={json.dumps(settings)}",
      f"--cache={self.folder / 'cache'}",
      f"--output={self.folder / 'out'}",
      "--verbosity=1",
    )
    self.assertEqual(done.returncode, cli.TOTALS_REFUSED, done.stderr)
    self.assertLen(self.server.seen, 2)  # masks and tracks
    for _, headers, _ in self.server.seen:
      self.assertEqual(headers["Authorization"], f"Bearer {_SECRET}")
    (self.folder / "terminal").write_text(done.stdout + done.stderr)
    found = {
      path.relative_to(self.folder).parts[0]
      for path in self.folder.rglob("*")
      if path.is_file()
    }
    self.assertContainsSubset({"cache", "out", "terminal"}, found)
    self.assertTrue((self.folder / "out" / "run.json").is_file())
    for path in self.folder.rglob("*"):
      if path.is_file():
        self.assertNotIn(_SECRET.encode(), path.read_bytes(), path)

  def test_never_in_messages(self):
    body = {"error": f"Incorrect API key provided: {_SECRET}"}
    for status in (401, 503):
      self.server.script = [(status, body, {})] * 2
      with self.assertRaises(errors.InputError) as caught:
        self._client(retries=0).answer(_request())
      self.assertNotIn(_SECRET, str(caught.exception))
      self.assertIsNone(caught.exception.__cause__)

  def test_never_carried_by_a_redirect(self):
    other = f"http://localhost:{self.server.server_port}/steal"
    for status in (301, 302, 303, 307, 308):
      self.server.seen.clear()
      self.server.script = [(status, {}, {"Location": other})]
      with self.assertRaisesRegex(errors.InputError, f"status {status}"):
        self._client(retries=0).answer(_request())
      self.assertLen(self.server.seen, 1)

  def test_never_in_the_clear_to_another_machine(self):
    client = self._client(base_url="http://192.0.2.1/v1")
    with self.assertRaisesRegex(errors.InputError, "in the clear") as caught:
      client.answer(_request())
    self.assertNotIn("tries", str(caught.exception))
    self.assertNotIn(_SECRET, str(caught.exception))

  def test_never_pickled(self):
    with self.assertRaises(TypeError):
      pickle.dumps(self._client())


if __name__ == "__main__":
  absltest.main()
