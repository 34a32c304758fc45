# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""The README says what is true: its code runs, what it names exists."""

import re
import subprocess
import sys

import jax.numpy as jnp
import numpy as np
from absl.testing import absltest

from tests.bin import running

_TEXT = (running.ROOT / "README.md").read_text(encoding="utf-8")


def _blocks(language: str) -> list[str]:
  return re.findall(rf"```{language}\n(.*?)```", _TEXT, re.DOTALL)


class ReadmeTest(absltest.TestCase):
  def test_the_training_example_gives_a_finite_gradient(self):
    (code,) = _blocks("python")
    names: dict = {}
    exec(compile(code, "README.md", "exec"), names)
    height = jnp.array([10.0, 9.0, 8.0, 7.0, 6.0, 5.5])
    depth = jnp.array([1.0, 1.1, 1.3, 1.3, 1.7, 1.7])
    gradient = names["gradient"](height, depth, jnp.ones(6, bool))
    self.assertEqual(gradient.shape, (6,))
    self.assertTrue(np.all(np.isfinite(gradient)))
    self.assertGreater(float(jnp.max(jnp.abs(gradient))), 0.0)

  def test_two_commands_set_everything_up(self):
    run, tests = _blocks("sh")[:2]
    self.assertIn("pip install -e . &&", run)
    self.assertIn("--flagfile=bin/flags/quickstart.flags", run)
    self.assertIn('pip install -e ".[test]" &&', tests)
    self.assertIn("-m pytest", tests)

  def test_files_and_binaries_exist(self):
    shown = _TEXT
    for name in set(re.findall(r"bin/flags/\w+\.flags", shown)):
      self.assertTrue((running.ROOT / name).exists(), name)
    for name in set(re.findall(r"-m bin\.(\w+)", shown)):
      self.assertTrue((running.ROOT / "bin" / f"{name}.py").exists(), name)
    for name in set(re.findall(r"\]\((docs/[\w./]+)\)", shown)):
      self.assertTrue((running.ROOT / name).exists(), name)

  def test_flags_of_the_commands_are_known(self):
    by_binary: dict[str, set[str]] = {}
    for line in "\n".join(_blocks("sh")).splitlines():
      found = re.search(r"-m bin\.(\w+) (.*)", line)
      if found:
        flags = re.findall(r"--(\w+)=", found.group(2))
        by_binary.setdefault(found.group(1), set()).update(flags)
    for name, flags in by_binary.items():
      done = subprocess.run(
        [sys.executable, "-m", f"bin.{name}", "--helpfull"],
        cwd=running.ROOT,
        capture_output=True,
        text=True,
        check=False,
      )
      for flag in flags - {"flagfile"}:
        self.assertRegex(done.stdout, rf"--(\[no\])?{flag}\b", f"{name} {flag}")


if __name__ == "__main__":
  absltest.main()
