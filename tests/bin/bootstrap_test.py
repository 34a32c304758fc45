# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""bin.bootstrap: every flagfile on tiny data, bad input, resume."""

from __future__ import annotations

import dataclasses
import json
import pathlib

from absl import flags
from absl.testing import absltest, flagsaver, parameterized

from bin import bootstrap
from perception.errors import InputError
from protocols.statistics import table
from tests.bin import running
from tests.protocols.statistics import small_study

_FLAGFILES = sorted((running.ROOT / "bin/flags").glob("bootstrap_*.flags"))
assert bootstrap.main  # defines the flags


class BootstrapTest(parameterized.TestCase):
  def setUp(self) -> None:
    super().setUp()
    self.folder = pathlib.Path(self.create_tempdir().full_path)
    self.table = self.folder / "scores.jsonl"
    rows = small_study.rows()
    rows += [  # the metrics that our studies name
      dataclasses.replace(row, metric=metric)
      for row in rows
      for metric in {"f1": ["integrity"], "cmg": ["pdi", "dir"]}.get(
        row.metric, []
      )
    ]
    self.table.write_text(
      "".join(json.dumps(dataclasses.asdict(row)) + "\n" for row in rows)
    )

  def _main(self, *arguments: str) -> dict[str, object]:
    """Runs `main` in this process with these flags only."""
    output = self.folder / "out"
    with flagsaver.flagsaver():
      # Without a flag of its own, the parser keeps values of earlier runs.
      flags.FLAGS.unparse_flags()
      flags.FLAGS(["bootstrap", f"--output={output}", *arguments])
      self.assertEqual(bootstrap.main([]), 0)
    return json.loads((output / "study.json").read_text())

  @parameterized.parameters(*[path.name for path in _FLAGFILES])
  def test_flagfile(self, name: str) -> None:
    found = self._main(
      f"--flagfile={running.ROOT / 'bin/flags' / name}",
      f"--table={self.table}",
      "--replicates=600",
    )
    self.assertEqual(found["study"]["replicates"], 600)
    self.assertLen({row["system"] for row in found["rows"]}, 3)
    self.assertTrue((self.folder / "out/study.csv").exists())
    run = json.loads((self.folder / "out/run.json").read_text())
    self.assertIn("jax", run["environment"]["packages"])

  def test_resume_gives_the_same_file(self) -> None:
    arguments = (
      "--study=egogeneval_scene_ranking",
      f"--table={self.table}",
      "--replicates=1100",
      "--batch=512",
      "--checkpoint",
      "--checkpoint_every=512",
    )
    self._main(*arguments)
    before = (self.folder / "out/study.json").read_bytes()
    self._main(*arguments)
    self.assertEqual(before, (self.folder / "out/study.json").read_bytes())

  def test_one_kind_of_input(self) -> None:
    with self.assertRaisesRegex(InputError, "found none of them"):
      self._main("--study=pdi_intervals")
    with self.assertRaisesRegex(InputError, "--table and --records"):
      self._main(
        "--study=pdi_intervals", f"--table={self.table}", "--records=x"
      )

  def test_bad_input_is_one_line(self) -> None:
    rows = table.read([self.table])
    self.assertLen(rows.systems, 3)
    with open(self.table, "a") as file:
      file.write(
        '{"system": "a", "case": "x", "metric": "cmg", "value": NaN}\n'
      )
    found = running.run(
      "bootstrap",
      "--study=egogeneval_ranking",
      f"--table={self.table}",
      f"--output={self.folder / 'out'}",
    )
    self.assertEqual(found.returncode, 2, found.stderr)
    errors = [s for s in found.stderr.splitlines() if s.startswith("error:")]
    self.assertLen(errors, 1)
    self.assertIn("value: found nan", errors[0])
    self.assertNotIn("Traceback", found.stderr)


if __name__ == "__main__":
  absltest.main()
