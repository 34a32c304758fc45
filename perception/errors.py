# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""The one error that a user sees for bad input: a single, complete line."""

from __future__ import annotations

import os


class InputError(ValueError):
  """Input that cannot be used, said in one line.

  The text names the file (or argument), the field, what was found, what was
  expected and what to do. Binaries print it without a traceback.
  """

  def __init__(
    self,
    source: str | os.PathLike[str],
    field: str,
    *,
    found: object,
    expected: object,
    hint: str = "",
  ) -> None:
    """Builds the line.

    Args:
      source: file, folder or argument that holds the input.
      field: the part of it that is wrong, for example `depth` or `line 12`.
      found: what is there.
      expected: what should be there.
      hint: the next step for the user, as an imperative sentence.
    """
    self.source = os.fspath(source)
    self.field = field
    self.found = _one_line(found)
    self.expected = _one_line(expected)
    self.hint = _one_line(hint)
    text = (
      f"{_one_line(self.source)}: {field}: found {self.found};"
      f" expected {self.expected}"
    )
    super().__init__(f"{text}. {self.hint}" if self.hint else text)

  def __reduce__(self) -> tuple[object, ...]:
    """Keeps the fields when the error crosses a process boundary."""
    state = (self.source, self.field, self.found, self.expected, self.hint)
    return (_rebuild, state)


def _rebuild(
  source: str, field: str, found: str, expected: str, hint: str
) -> InputError:
  return InputError(source, field, found=found, expected=expected, hint=hint)


def _one_line(value: object) -> str:
  """Text without line breaks, cut to a length that a terminal can show."""
  text = " ".join(str(value).split())
  return text if len(text) <= 300 else text[:297] + "..."
