# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Killed at ten random moments and started again, a run ends with the same
bytes; so does a run with worker processes."""

import pathlib
import random
import signal
import subprocess
import time

from absl.testing import absltest

from tests.bin import running
from tests.protocols.pdi import small_world

_SCORES = ("scores.json", "scores.csv", "leaderboard.png")


class EvaluateKillTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    self.root = pathlib.Path(self.create_tempdir().full_path)
    self.inputs = self.root / "in"
    small_world.write_run(self.inputs, systems=("a", "b"), cases=6)

  def _arguments(self, name: str) -> list[str]:
    return [
      "--protocol=pdi",
      f"--observations={self.inputs}",
      f"--output={self.root / name}",
    ]

  def _bytes(self, name: str) -> dict[str, bytes]:
    # The folder's name stands in no score file.
    return {f: (self.root / name / f).read_bytes() for f in _SCORES}

  def test_ten_kills_end_with_the_same_bytes(self):
    start = time.monotonic()
    whole = running.run("evaluate", *self._arguments("whole"))
    self.assertEqual(whole.returncode, 0, whole.stderr)
    duration = time.monotonic() - start
    rng = random.Random(0)
    arguments = running.command("evaluate", *self._arguments("killed"))
    kills = 0
    while kills < 10:
      process = subprocess.Popen(
        arguments,
        cwd=running.ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
      )
      # Most moments lie after the imports, where records are written.
      time.sleep(duration * rng.uniform(0.2, 1.0))
      process.send_signal(signal.SIGKILL)
      process.wait()
      kills += 1
    last = running.run("evaluate", *self._arguments("killed"))
    self.assertEqual(last.returncode, 0, last.stderr)
    self.assertEqual(self._bytes("killed"), self._bytes("whole"))
    self.assertEqual(
      last.stdout.splitlines()[:-1], whole.stdout.splitlines()[:-1]
    )

  def test_workers_end_with_the_same_bytes(self):
    for name, workers in (("one", 1), ("two", 2)):
      done = running.run(
        "evaluate", *self._arguments(name), f"--workers={workers}"
      )
      self.assertEqual(done.returncode, 0, done.stderr)
    self.assertEqual(self._bytes("two"), self._bytes("one"))


if __name__ == "__main__":
  absltest.main()
