# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Material beside the checkout that is not part of the project."""

from __future__ import annotations

import pathlib
import unittest

SHARED = pathlib.Path(__file__).resolve().parents[2] / "shared"


def shared(relative: str) -> pathlib.Path:
  """Path of a file or folder below `../shared`; skips the test without it."""
  path = SHARED / relative
  if not path.exists():
    raise unittest.SkipTest(f"../shared/{relative} is absent")
  return path
