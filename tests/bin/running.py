# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Runs our binaries as a user does: in a process of their own."""

from __future__ import annotations

import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def command(module: str, *arguments: str) -> list[str]:
  """The command line of a binary."""
  return [sys.executable, "-m", f"bin.{module}", *arguments]


def flagfile(name: str) -> str:
  """The flag that reads `bin/flags/<name>.flags`."""
  return f"--flagfile={ROOT / 'bin' / 'flags' / name}.flags"


def run(
  module: str, *arguments: str, timeout_s: int = 300
) -> subprocess.CompletedProcess[str]:
  """Runs a binary from the checkout and returns its output and exit code."""
  return python("-m", f"bin.{module}", *arguments, timeout_s=timeout_s)


def python(
  *arguments: str, timeout_s: int = 300
) -> subprocess.CompletedProcess[str]:
  """Runs this Python in the checkout and returns output and exit code."""
  return subprocess.run(
    [sys.executable, *arguments],
    cwd=ROOT,
    capture_output=True,
    text=True,
    timeout=timeout_s,
    check=False,
  )
