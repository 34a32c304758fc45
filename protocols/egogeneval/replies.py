# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Replies of vision-language models: text to one JSON object, and its fields.

Models wrap JSON in code fences, add commas, and write ids, flags and numbers
in many ways; what cannot be read is None, never a guess.
Source: EgoGenEval specification 4.8.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

_FENCE = re.compile(r"^\s*```[a-zA-Z]*\s*|\s*```\s*$")
_TRAILING_COMMA = re.compile(r",\s*([}\]])")
_NO = frozenset({"false", "no", "n", "0"})
_YES = frozenset({"true", "yes", "y", "1"})


def parse(text: str) -> dict[str, Any] | None:
  """One JSON object from a reply.

  The whole text is tried, then the first balanced object in it, then both
  again without trailing commas. A list counts if it holds exactly one object.

  Args:
    text: reply of the model.

  Returns:
    The object, or None.
  """
  body = _FENCE.sub("", text.strip())
  for candidate in (body, _TRAILING_COMMA.sub(r"\1", body)):
    for part in (candidate, _first_object(candidate)):
      found = _loads(part)
      if found is not None:
        return found
  return None


def index_of(value: object, count: int) -> int | None:
  """Index in 0..count-1 from `3`, `G3`, `g 3`, `P#3`, `G3 (chair)`."""
  if isinstance(value, bool) or value is None:
    return None
  digits = re.search(r"\d+", str(value))
  if digits is None:
    return None
  index = int(digits.group())
  return index if index < count else None


def flag(value: object, *, default: bool) -> bool:
  """A yes or no in any spelling; `default` for anything else."""
  if isinstance(value, bool):
    return value
  word = str(value).strip().lower()
  if word in _NO:
    return False
  return True if word in _YES else default


def confidence(value: object, *, default: float) -> float:
  """A number clipped to [0, 1]; `default` where it is not a finite number."""
  try:
    number = float(value)  # type: ignore[arg-type]
  except (TypeError, ValueError):
    return default
  return min(1.0, max(0.0, number)) if math.isfinite(number) else default


def first_of(entry: Mapping[str, Any], keys: Iterable[str]) -> Any:
  """Value of the first key that is present and not None; else None."""
  return next((entry[k] for k in keys if entry.get(k) is not None), None)


def _loads(text: str | None) -> dict[str, Any] | None:
  if not text:
    return None
  try:
    content = json.loads(text)
  except (ValueError, RecursionError):
    return None
  if isinstance(content, list) and len(content) == 1:
    content = content[0]
  return content if isinstance(content, dict) else None


def _first_object(text: str) -> str | None:
  """The first balanced {...}, braces inside strings not counted."""
  start = text.find("{")
  depth, quoted, escaped = 0, False, False
  for position in range(start, len(text)) if start >= 0 else ():
    character = text[position]
    if quoted:
      quoted = escaped or character != '"'
      escaped = character == "\\" and not escaped
    elif character == '"':
      quoted = True
    elif character == "{":
      depth += 1
    elif character == "}":
      depth -= 1
      if depth == 0:
        return text[start : position + 1]
  return None
