# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""bin.bootstrap: every flagfile on tiny data, bad input, resume."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import subprocess
import sys

from absl.testing import absltest

from protocols.statistics import table
from protocols.statistics.config import Resampling
from tests.bin import running
from tests.protocols.statistics import small_study

# By name: the module defines flags, which a test process can hold once.
_WORKER = "tests.bin.bootstrap_worker"
_FLAGFILES = sorted((running.ROOT / "bin/flags").glob("bootstrap_*.flags"))


class BootstrapTest(absltest.TestCase):
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

  def _run(self, *runs: list[str]) -> list[int | str]:
    worker = subprocess.run(
      [sys.executable, "-m", _WORKER, json.dumps(runs)],
      cwd=running.ROOT,
      capture_output=True,
      text=True,
      timeout=300,
      check=False,
    )
    lines = [s for s in worker.stdout.splitlines() if s.startswith("RESULT")]
    self.assertLen(lines, 1, worker.stderr)
    return json.loads(lines[0].removeprefix("RESULT"))

  def test_flagfiles_resume_and_input(self) -> None:
    given = f"--table={self.table}"
    scene = [
      "--study=egogeneval_scene_ranking",
      given,
      "--replicates=1100",
      "--batch=512",
      "--checkpoint",
      "--checkpoint_every=512",
    ]
    plain = [*scene[:4], f"--output={self.folder / 'plain'}"]
    results = self._run(
      *(
        [
          f"--flagfile={path}",
          given,
          "--replicates=600",
          f"--output={self.folder / path.stem}",
        ]
        for path in _FLAGFILES
      ),
      plain,
      [*scene, "--replicates=600", f"--output={self.folder / 'kept'}"],
      [*scene, f"--output={self.folder / 'kept'}"],
      ["--study=pdi_intervals", "--output=x"],
      ["--study=pdi_intervals", "--output=x", given, "--records=y"],
    )
    codes = [0] * (len(_FLAGFILES) + 3)
    self.assertEqual(results[:-2], codes)
    self.assertIn("found none of them", str(results[-2]))
    self.assertIn("--table and --records", str(results[-1]))
    self.assertGreaterEqual(len(_FLAGFILES), 3)
    for path in _FLAGFILES:
      folder = self.folder / path.stem
      found = json.loads((folder / "study.json").read_text())
      self.assertEqual(found["study"]["replicates"], 600)
      self.assertLen({row["system"] for row in found["rows"]}, 3)
      self.assertTrue((folder / "study.csv").exists())
      run = json.loads((folder / "run.json").read_text())
      self.assertIn("jax", run["environment"]["packages"])
    # 600 kept replicates, resumed to 1,100, against 1,100 at once.
    self.assertEqual(
      (self.folder / "plain/study.json").read_bytes(),
      (self.folder / "kept/study.json").read_bytes(),
    )

  def _table_of(self, name: str, rows: list[table.Row]) -> str:
    path = self.folder / f"{name}.jsonl"
    path.write_text(
      "".join(json.dumps(dataclasses.asdict(row)) + "\n" for row in rows)
    )
    return f"--table={path}"

  def test_bad_input_says_what_is_wrong(self) -> None:
    rows = small_study.rows()
    lacking = [r for r in rows if (r.system, r.case) != ("b", "case04")]
    one_by_one = [dataclasses.replace(r, subtype=r.case) for r in rows]
    tables = {
      "twice": [*rows, rows[0]],
      "lacking": lacking,
      "alone": [r for r in rows if r.system == "a"],
      "lonely": one_by_one,
      # Chain stands in one scene of four: many replicates lack it.
      "rare": [
        dataclasses.replace(r, source="s")
        for r in rows
        if r.protocol != "chain" or r.case == "case01"
      ],
    }
    study = self._study("ranking", {"unit": "case", "strata": "subtype"})
    scenes = {"unit": "scene", "strata": "source"}
    refusing = self._study("refuse", {**scenes, "missing_protocol": "refuse"})
    dropping = self._study("drop", scenes)
    given = {k: self._table_of(k, v) for k, v in tables.items()}
    output = f"--output={self.folder / 'out'}"
    runs = [
      [study, given["twice"], output],
      [study, given["lacking"], output],
      [study, given["alone"], output],
      [study, given["lonely"], output],
      [refusing, given["rare"], output],
      [study, given["lacking"], "--intersect", f"{output}/intersected"],
      [dropping, given["rare"], f"{output}/dropped"],
    ]
    found = self._run(*runs)
    first = rows[0]
    for text, wanted in zip(
      found[:5],
      (
        f"system {first.system}, case {first.case}: found metric"
        f" {first.metric} of step {first.step} twice",
        "case case04 step 1: a has it, b does not",
        "systems: found only 'a'; expected at least two systems",
        "strata (subtype): found one case in each",
        "without a case of some protocol; expected every protocol",
      ),
      strict=True,
    ):
      self.assertIn(wanted, str(text))
    self.assertEqual(found[5:], [0, 0])
    stated = json.loads(
      (self.folder / "out/intersected/study.json").read_text()
    )
    self.assertIn("1 of 24 cases left out", stated["notes"][0])
    dropped = json.loads((self.folder / "out/dropped/study.json").read_text())
    lost = dropped["replicates_without_a_protocol"]
    self.assertGreater(lost, 0)
    self.assertEqual(dropped["replicates"], 600 - lost)

  def _study(self, name: str, resampling: dict[str, str]) -> str:
    content = dataclasses.asdict(
      small_study.study(resampling=Resampling(**resampling))
    )
    path = self.folder / f"{name}.json"
    path.write_text(json.dumps({**content, "study": "ranking"}))
    return f"--study={path}"

  def test_bad_input_is_one_line(self) -> None:
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
