# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""HTML from templates: every text is escaped unless it was made here.

Names and captions come from outside. Jinja escapes them; JSON inside the page
cannot close its element; and a content security policy lets one script run,
ours, by its hash, and forbids every connection.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import json
import pathlib
from collections.abc import Mapping
from typing import Any

import jinja2
import markupsafe

from perception.errors import InputError
from protocols.report import case_view

_ASSETS = pathlib.Path(__file__).parent / "assets"


def page(name: str, **content: Any) -> str:
  """Renders a template.

  Args:
    name: file in the folder of assets.
    **content: its variables.

  Returns:
    HTML.
  """
  return _environment().get_template(name).render(**content)


def css() -> markupsafe.Markup:
  """The style sheet."""
  return markupsafe.Markup(_asset("report.css"))


def script() -> markupsafe.Markup:
  """The script of the page."""
  return markupsafe.Markup(_asset("report.js"))


def script_hash() -> str:
  """Hash of the script, as the content security policy wants it."""
  digest = hashlib.sha256(_asset("report.js").encode()).digest()
  return f"sha256-{base64.b64encode(digest).decode()}"


def json_data(content: Mapping[str, Any]) -> markupsafe.Markup:
  """JSON that can stand inside a script element, whatever texts it holds."""
  text = json.dumps(content, allow_nan=False, separators=(",", ":"))
  # ASCII only; `<` covers `</script` and `<!--`, which HTML would act on.
  return markupsafe.Markup(text.replace("<", "\\u003c"))


def write(path: pathlib.Path, text: str) -> None:
  """Writes a page; text that is no Unicode is replaced, not refused.

  Raises:
    InputError: if the disk refuses.
  """
  put(path, text.encode("utf-8", "replace"))


def put(path: pathlib.Path, data: bytes) -> None:
  """Writes a file that the same command makes again; does not wait for disk.

  Raises:
    InputError: if the disk refuses.
  """
  try:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
  except OSError as error:
    raise InputError(
      path,
      "file",
      found=error.strerror or error,
      expected="a folder that can be written, with room on the disk",
    ) from error


def shorten(text: str, limit: int) -> str:
  """A text of at most `limit` characters, cut with an ellipsis."""
  return text if len(text) <= limit else text[: limit - 1] + "…"


def letter(number: int) -> str:
  """1 -> A, 26 -> Z, 27 -> AA."""
  text = ""
  while number > 0:
    number, rest = divmod(number - 1, 26)
    text = chr(ord("A") + rest) + text
  return text


def _sentence(text: str) -> str:
  """A text as a sentence; empty stays empty."""
  return f"{text[:1].upper()}{text[1:]}." if text else ""


@functools.cache
def _asset(name: str) -> str:
  return (_ASSETS / name).read_text(encoding="utf-8")


@functools.cache
def _environment() -> jinja2.Environment:
  environment = jinja2.Environment(
    loader=jinja2.FileSystemLoader(_ASSETS),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
  )
  environment.filters |= {
    "shorten": shorten,
    "letter": letter,
    "number": case_view.number,
    "sentence": _sentence,
  }
  return environment
