# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Vision-language answers from any OpenAI-compatible endpoint.

`POST {base_url}/chat/completions`, pictures as PNG data URLs. Answers are
appended to a transcript that `recorded` replays and that this client consults
first, so a killed run pays for no question twice.

The key is read from an environment variable at the moment of each request and
held nowhere. It goes into one header and into nothing else: not into settings,
records, transcript, cache keys or messages; a server that echoes it is
redacted. Redirects are refused, since they would carry the header elsewhere,
and so is a key over plain HTTP to another machine.
"""

from __future__ import annotations

import base64
import http.client
import json
import os
import pathlib
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from typing import Any

import cv2
import numpy as np

from perception import errors, observation, registry, roles

_RETRIED = frozenset({408, 409, 425, 429, 500, 502, 503, 504})
_LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})
_MAX_REPLY = 16 << 20
_MAX_WAIT_S = 60.0
_REDACTED = "[redacted]"


class OpenAiEndpoint:
  """Chat completions with pictures."""

  def __init__(
    self,
    *,
    base_url: str,
    model: str,
    api_key_env: str = "OPENAI_API_KEY",
    timeout_s: float = 120.0,
    retries: int = 4,
    backoff_s: float = 1.0,
    transcript: str = "",
  ) -> None:
    """Sends nothing yet.

    Args:
      base_url: up to and with the version, for example
        `http://localhost:8000/v1`.
      model: name that the server knows.
      api_key_env: variable that holds the key; an empty name or an unset
        variable sends none.
      timeout_s: of one request.
      retries: further tries after a failure that may pass.
      backoff_s: wait before the first retry, doubled each time; a server's
        Retry-After wins. At most 60 s.
      transcript: JSONL file to consult and append to; empty: none.

    Raises:
      InputError: a bad setting, or a transcript that is not one.
    """
    self._url = _checked_url(base_url) + "/chat/completions"
    self._key_name = api_key_env
    if timeout_s <= 0 or retries < 0 or backoff_s < 0 or not model:
      raise errors.InputError(
        "settings",
        "model, timeout_s, retries, backoff_s",
        found=f"{model!r}, {timeout_s}, {retries}, {backoff_s}",
        expected="a name, > 0, >= 0, >= 0",
      )
    self._timeout, self._retries = timeout_s, retries
    self._backoff = backoff_s
    self._model = model
    self._transcript = pathlib.Path(transcript) if transcript else None
    self._lock = threading.Lock()
    self._known: dict[str, dict[str, Any]] = {}
    parts = urllib.parse.urlsplit(base_url)
    self._info = registry.info(
      registry.spec("vision_language", "openai_endpoint"),
      f"chat completions, {model}",
      settings={"model": model, "host": parts.netloc},
    )
    if self._transcript is not None and self._transcript.exists():
      self._known = _read_transcript(self._transcript, model)
    opener = urllib.request.build_opener(_NoRedirect)
    self._open = opener.open

  @property
  def info(self) -> roles.BackendInfo:
    """Identity, licence and settings; never the key."""
    return self._info

  def __reduce__(self) -> Any:
    """Refused: a connection is made in the process that uses it."""
    raise TypeError("make the endpoint in the process that uses it")

  def answer(self, request: roles.ChatRequest) -> roles.ChatAnswer:
    """The model's reply.

    Raises:
      InputError: the server refuses, cannot be reached after all retries, or
        answers with something else than a completion.
    """
    digest = request.sha256()
    line = self._known.get(digest)
    if line is None:
      reply = self._send(payload(self._model, request))
      line = self._line(digest, reply)
      self._remember(digest, line)
    return roles.ChatAnswer(
      text=line["text"],
      finish_reason=line["finish_reason"],
      provenance=observation.Provenance(
        source_sha256=digest,
        backend=line["backend"],
        backend_version=line["backend_version"],
        settings=line.get("settings", {}),
      ),
    )

  def _line(self, digest: str, reply: Any) -> dict[str, Any]:
    """The transcript's line for a reply."""
    try:
      choice = reply["choices"][0]
      text = choice["message"].get("content")
      reason = str(choice.get("finish_reason") or "unknown")
      served = str(reply.get("model") or "")
    except (KeyError, IndexError, TypeError, AttributeError) as error:
      raise self._failure(
        f"a reply without choices ({json.dumps(reply)[:200]})"
      ) from error
    if text is not None and not isinstance(text, str):
      raise self._failure(f"content of type {type(text).__name__}")
    return {
      "request_sha256": digest,
      "text": self._redact(text or ""),
      "finish_reason": reason if text is not None else "no content",
      "backend": self._info.name,
      "backend_version": self._info.version,
      "settings": {**self._info.settings, "served_model": served},
    }

  def _remember(self, digest: str, line: dict[str, Any]) -> None:
    """Appends a line to the transcript, whole or not at all."""
    with self._lock:
      self._known[digest] = line
      if self._transcript is None:
        return
      text = json.dumps(line, sort_keys=True, ensure_ascii=False) + "\n"
      try:
        self._transcript.parent.mkdir(parents=True, exist_ok=True)
        with open(self._transcript, "ab") as stream:
          stream.write(text.encode())
          stream.flush()
          os.fsync(stream.fileno())
      except OSError as error:
        raise errors.InputError(
          self._transcript,
          "file",
          found=error.strerror,
          expected="a file that can be appended to",
        ) from error

  def _send(self, body: Mapping[str, Any]) -> Any:
    """The decoded reply, after retries."""
    problem = ""
    for attempt in range(self._retries + 1):
      try:
        return self._once(body)
      except urllib.error.HTTPError as error:
        with error:
          text = error.read(4096).decode(errors="replace")
        problem = f"status {error.code}: {text}"
        if error.code not in _RETRIED:
          raise self._failure(problem) from None
        wait = _retry_after(error.headers)
      except errors.InputError:
        raise
      except (OSError, http.client.HTTPException, ValueError) as error:
        # OSError holds URLError, timeouts and broken connections; ValueError
        # a reply that is not JSON.
        problem = f"{type(error).__name__}: {error}"
        wait = None
      if attempt < self._retries:
        backoff = self._backoff * 2.0**attempt
        time.sleep(min(backoff if wait is None else wait, _MAX_WAIT_S))
    raise self._failure(f"{problem} (after {self._retries + 1} tries)")

  def _once(self, body: Mapping[str, Any]) -> Any:
    key = self._key()
    request = urllib.request.Request(
      self._url,
      data=json.dumps(body).encode(),
      headers={"Content-Type": "application/json"},
      method="POST",
    )
    if key:
      host = urllib.parse.urlsplit(self._url)
      if host.scheme == "http" and host.hostname not in _LOCAL:
        raise self._failure(
          "a key that would travel in the clear",
          hint='Use https, or send no key: api_key_env="".',
        )
      # Unredirected: urllib would copy ordinary headers to another host.
      request.add_unredirected_header("Authorization", f"Bearer {key}")
    with self._open(request, timeout=self._timeout) as response:
      content = response.read(_MAX_REPLY + 1)
    if len(content) > _MAX_REPLY:
      raise self._failure(f"a reply beyond {_MAX_REPLY} bytes")
    return json.loads(content)

  def _key(self) -> str:
    """The secret, for immediate use."""
    key = os.environ.get(self._key_name, "") if self._key_name else ""
    return key.strip()

  def _redact(self, text: str) -> str:
    key = self._key()
    return text.replace(key, _REDACTED) if key else text

  def _failure(self, problem: str, hint: str = "") -> errors.InputError:
    return errors.InputError(
      self._redact(self._url),
      "chat completion",
      found=self._redact(problem),
      expected="an answer",
      hint=hint,
    )


class _NoRedirect(urllib.request.HTTPRedirectHandler):
  """Turns every redirect into the error that its status is."""

  def redirect_request(self, *_: Any) -> None:
    """Follows nothing."""
    return


def payload(model: str, request: roles.ChatRequest) -> dict[str, Any]:
  """The JSON body of a request."""
  messages = []
  for message in request.messages:
    parts: list[dict[str, Any]] = []
    for part in message.parts:
      if isinstance(part, str):
        parts.append({"type": "text", "text": part})
      else:
        parts.append({"type": "image_url", "image_url": {"url": _png(part)}})
    messages.append({"role": message.role, "content": parts})
  body: dict[str, Any] = {
    "model": model,
    "messages": messages,
    "max_tokens": request.max_tokens,
    "temperature": request.temperature,
  }
  if request.seed is not None:
    body["seed"] = request.seed
  if request.response_schema is not None:
    body["response_format"] = {
      "type": "json_schema",
      "json_schema": {
        "name": "answer",
        "strict": True,
        "schema": dict(request.response_schema),
      },
    }
  return body


def _png(image: np.ndarray) -> str:
  """A data URL; lossless, so the model sees what the digest names."""
  if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] != 3:
    raise errors.InputError(
      "request",
      "picture",
      found=f"{image.dtype} {image.shape}",
      expected="uint8 [H, W, 3]",
    )
  _, encoded = cv2.imencode(".png", cv2.cvtColor(image, cv2.COLOR_RGB2BGR))
  return "data:image/png;base64," + base64.b64encode(encoded.tobytes()).decode()


def _checked_url(base_url: str) -> str:
  """The URL without a trailing slash.

  Raises:
    InputError: not http(s), or with a user, password, query or fragment, where
      secrets hide that would end in records.
  """
  parts = urllib.parse.urlsplit(base_url)
  clean = not (parts.query or parts.fragment or "@" in parts.netloc)
  if parts.scheme not in ("http", "https") or not parts.hostname or not clean:
    raise errors.InputError(
      "settings",
      "base_url",
      found=f"{parts.scheme}://{parts.hostname}" if clean else _REDACTED,
      expected="http(s)://host[:port]/path without user, query or fragment",
      hint="Put the key into the environment and name it by api_key_env.",
    )
  return base_url.rstrip("/")


def _read_transcript(
  path: pathlib.Path, model: str
) -> dict[str, dict[str, Any]]:
  """Earlier answers of this model; a torn last line is passed over."""
  known = {}
  lines = path.read_text(encoding="utf-8", errors="replace").splitlines(True)
  for number, text in enumerate(lines, start=1):
    torn = number == len(lines) and not text.endswith("\n")
    try:
      line = json.loads(text)
      if line["settings"]["model"] == model:
        known[line["request_sha256"]] = line
    except (ValueError, KeyError, TypeError) as error:
      if torn:
        break
      raise errors.InputError(
        path, f"line {number}", found=text, expected="a recorded answer"
      ) from error
  if lines and not lines[-1].endswith("\n"):
    _drop_torn_line(path)
  return known


def _drop_torn_line(path: pathlib.Path) -> None:
  """Cuts what a killed run left, so that appending starts a new line."""
  with open(path, "rb+") as stream:
    content = stream.read()
    stream.truncate(content.rfind(b"\n") + 1)


def _retry_after(headers: Mapping[str, str] | Any) -> float | None:
  """Seconds that the server asks for, or None."""
  try:
    return max(0.0, float(headers.get("Retry-After", "")))
  except (TypeError, ValueError):
    return None
