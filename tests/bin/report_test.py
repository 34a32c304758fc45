# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""bin.report as a command: writes, refuses in one line, stays light."""

import pathlib

from absl.testing import absltest

from tests.bin import running
from tests.protocols.report import examples


class ReportTest(absltest.TestCase):
  def setUp(self) -> None:
    super().setUp()
    self.root = pathlib.Path(self.create_tempdir().full_path)

  def test_writes_a_report_and_says_where(self):
    records = [
      examples.pdi_record(s, str(i), pdi=0.1 + 0.1 * i)
      for s in ("a", "b")
      for i in range(2)
    ]
    examples.write_pdi_run(self.root / "run", records)
    output = self.root / "report"
    done = running.python(
      "-m", "bin.report", f"--input={self.root / 'run'}", f"--output={output}"
    )
    self.assertEqual(done.returncode, 0, done.stderr)
    self.assertIn(f"1 run, 4 cases in {output}/index.html", done.stdout)
    self.assertIn("4 of 4", done.stderr)  # progress
    self.assertTrue((output / "index.html").exists())

  def test_a_folder_that_is_no_run_is_bad_input(self):
    done = running.python(
      "-m",
      "bin.report",
      f"--input={self.root}",
      f"--output={self.root / 'report'}",
    )
    self.assertEqual(done.returncode, 2)
    lines = [line for line in done.stderr.splitlines() if "error:" in line]
    self.assertLen(lines, 1)
    self.assertIn("an output folder of bin.evaluate", lines[0])

  def test_importing_it_loads_neither_torch_nor_a_viewer(self):
    code = (
      "import sys, bin.report;"
      "print([m for m in ('torch', 'transformers', 'rerun', 'matplotlib')"
      " if m in sys.modules])"
    )
    done = running.python("-c", code)
    self.assertEqual(done.stdout.strip(), "[]", done.stderr)


if __name__ == "__main__":
  absltest.main()
