# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Runs `bin.bootstrap` several times in one process of its own.

The flags of our binaries share names, so a test process cannot hold two of
them. Argument: a JSON list of argument lists; prints `RESULT` and a JSON list
of exit codes, or of the texts of bad input.
"""

from __future__ import annotations

import json
import sys

from absl import flags
from absl.testing import flagsaver

from bin import bootstrap
from perception.errors import InputError


def _once(arguments: list[str]) -> int | str:
  with flagsaver.flagsaver():
    flags.FLAGS.unparse_flags()
    flags.FLAGS(["bootstrap", *arguments])
    try:
      return bootstrap.main([])
    except InputError as error:
      return str(error)


def main(text: str) -> None:
  results = [_once(arguments) for arguments in json.loads(text)]
  print("RESULT", json.dumps(results))


if __name__ == "__main__":
  main(sys.argv[1])
