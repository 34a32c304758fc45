# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""The same bits on several devices, over several processes, after a kill."""

from __future__ import annotations

import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

import numpy as np
from absl.testing import absltest

from protocols.statistics import checkpoint, engine
from tests.protocols.statistics import devices_worker

_ROOT = pathlib.Path(__file__).resolve().parents[3]


def _start(*arguments: object, devices: int) -> subprocess.Popen[str]:
  flag = f"--xla_force_host_platform_device_count={devices}"
  return subprocess.Popen(
    [sys.executable, "-m", devices_worker.__name__, *map(str, arguments)],
    cwd=_ROOT,
    env={**os.environ, "XLA_FLAGS": flag, "JAX_PLATFORMS": "cpu"},
    stdout=subprocess.PIPE,
    stderr=subprocess.STDOUT,
    text=True,
  )


def _steps(folder: pathlib.Path) -> list[pathlib.Path]:
  """Whole checkpoints; orbax renames a folder to its number at the end."""
  return [path for path in folder.glob("*") if path.name.isdigit()]


def _run() -> np.ndarray:
  return engine.run(
    devices_worker.small_plan(),
    seed=devices_worker.SEED,
    replicates=devices_worker.REPLICATES,
    dtype="float32",
    batch=4096,
    store=None,
    advance=None,
  )


class DevicesTest(absltest.TestCase):
  @classmethod
  def setUpClass(cls) -> None:
    super().setUpClass()
    cls.base = _run()

  def setUp(self) -> None:
    super().setUp()
    self.folder = pathlib.Path(self.create_tempdir().full_path)

  def _same(self, path: str) -> None:
    found = np.load(self.folder / path)
    self.assertEqual(found.tobytes(), self.base.tobytes())

  def test_four_devices(self) -> None:
    worker = _start(self.folder / "a", "-", 1, 0, "-", 0, devices=4)
    text, _ = worker.communicate(timeout=240)
    self.assertIn("devices 4", text)
    self._same("a-0.npy")

  def _pair(
    self, name: str, folder: object, pause: float
  ) -> list[subprocess.Popen[str]]:
    """Two processes that draw one study together."""
    with socket.socket() as probe:
      probe.bind(("localhost", 0))
      address = f"localhost:{probe.getsockname()[1]}"
    return [
      _start(self.folder / name, address, 2, i, folder, pause, devices=1)
      for i in range(2)
    ]

  def test_killed_processes_resume_together_with_the_same_bits(self) -> None:
    folder = self.folder / "shared"
    workers = self._pair("b", folder, 0.3)
    deadline = time.monotonic() + 200
    while time.monotonic() < deadline and not _steps(folder):
      time.sleep(0.02)
    for worker in workers:
      worker.send_signal(signal.SIGKILL)
      worker.communicate()
    self.assertNotEmpty(_steps(folder))
    self.assertFalse((self.folder / "b-0.npy").exists())
    for worker in self._pair("b", folder, 0):
      text, _ = worker.communicate(timeout=240)
      self.assertIn("devices 2", text)
      drawn = int(text.split("drew ")[1].split()[0])
      self.assertLess(drawn, devices_worker.REPLICATES)
    self._same("b-0.npy")
    self._same("b-1.npy")

  def test_killed_study_resumes_with_the_same_bits(self) -> None:
    planned = devices_worker.small_plan()
    folder = self.folder / "checkpoint"
    worker = _start(self.folder / "c", "-", 1, 0, folder, 0.3, devices=1)
    deadline = time.monotonic() + 200
    while time.monotonic() < deadline and len(_steps(folder)) < 2:
      time.sleep(0.02)
    worker.send_signal(signal.SIGKILL)
    worker.communicate()
    self.assertFalse((self.folder / "c-0.npy").exists())
    store = checkpoint.ReplicateStore(
      folder,
      identity=checkpoint.fingerprint(
        planned, seed=devices_worker.SEED, dtype="float32"
      ),
      every=512,
    )
    drawn: list[int] = []
    found = engine.run(
      planned,
      seed=devices_worker.SEED,
      replicates=devices_worker.REPLICATES,
      dtype="float32",
      batch=512,
      store=store,
      advance=drawn.append,
    )
    self.assertGreaterEqual(drawn[0], 1024)  # what the killed run left
    self.assertEqual(sum(drawn), devices_worker.REPLICATES)
    self.assertEqual(found.tobytes(), self.base.tobytes())


if __name__ == "__main__":
  absltest.main()
