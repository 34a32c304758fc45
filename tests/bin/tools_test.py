# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Conformance, doctor, benchmark and help as a user meets them."""

import json
import pathlib
import shutil
import subprocess
import sys

import numpy as np
from absl.testing import absltest, parameterized

import kernels
from protocols import conformance, doctor
from protocols.benchmark import Result
from protocols.common import timing
from protocols.orbia import dataset_writer
from tests.bin import running
from tests.protocols.orbia import tiny_world
from tests.protocols.pdi import small_world
from tests.shared_files import shared


class ConformanceToolTest(absltest.TestCase):
  def _small_golden(self) -> pathlib.Path:
    """Two golden vectors of PDI in a folder of their own."""
    golden = shared("golden/pdi")
    index = json.loads((golden / "index.json").read_text())
    names = ("short_t3", "unit_index")
    index["vectors"] = [v for v in index["vectors"] if v["name"] in names]
    index["meta"]["count"] = len(index["vectors"])
    folder = pathlib.Path(self.create_tempdir().full_path)
    for vector in index["vectors"]:
      shutil.copy(golden / vector["file"], folder)
    (folder / "index.json").write_text(json.dumps(index))
    return folder

  def test_counts_and_exit_code(self):
    folder = self._small_golden()
    good = running.run("conformance", f"--golden={folder}")
    self.assertEqual(good.returncode, 0, good.stdout + good.stderr)
    self.assertRegex(good.stdout.splitlines()[-1], r"^\d+ passed, 0 failed$")
    text = (folder / "index.json").read_text()
    index = json.loads(text)
    vector = next(v for v in index["vectors"] if v["name"] == "short_t3")
    vector["result"]["official"]["scale"] += 0.01
    (folder / "index.json").write_text(json.dumps(index))
    bad = running.run(
      "conformance",
      f"--golden={folder}",
      "--precision=float64",
      f"--failures_json={folder / 'failures.json'}",
    )
    self.assertEqual(bad.returncode, 1)
    self.assertRegex(bad.stdout, r"FAILED short_t3.*scale")
    self.assertRegex(bad.stdout.splitlines()[-1], r"^\d+ passed, [1-9]\d* f")
    self.assertNotEmpty(json.loads((folder / "failures.json").read_text()))

  def test_a_folder_without_index_or_of_another_form(self):
    folder = pathlib.Path(self.create_tempdir().full_path)
    for content in (None, "{}", '{"meta": {"title": "weather"}}'):
      if content is not None:
        (folder / "index.json").write_text(content)
      with self.assertRaisesRegex(ValueError, "index.json"):
        conformance.run(folder, precisions=("float64",))


class DoctorTest(parameterized.TestCase):
  def test_names_our_kernels_and_every_backend_with_its_licence(self):
    found = doctor.run([])
    topics = {finding.topic for finding in found}
    wanted = {"kernels", "masks grabcut_flow", "pycolmap", "xfeat"}
    self.assertContainsSubset(wanted, topics)
    for finding in found:
      if finding.topic.startswith(("masks ", "tracks ", "geometry ")):
        self.assertIn("Licence: ", finding.text)
    root = running.ROOT / "kernels"
    self.assertEqual(pathlib.Path(kernels.__file__).parent, root)

  def test_inputs_are_read_as_a_run_would(self):
    folder = pathlib.Path(self.create_tempdir().full_path)
    small_world.write_case(folder, seed=0)
    (folder / "clip.mp4").write_bytes(b"none")
    np.savez(folder / "odd.npz", a=np.zeros(2))
    paths = [
      folder / name
      for name in ("geometry.npz", "clip.mp4", "odd.npz", "absent")
    ]
    found = list(doctor.inputs(paths))
    self.assertEqual(
      [finding.level for finding in found],
      [doctor.GOOD, doctor.PROBLEM, doctor.PROBLEM, doctor.PROBLEM],
    )
    self.assertEqual(found[0].text, "valid Geometry")


class ConditionsTest(absltest.TestCase):
  def test_a_data_set_and_no_data_set(self):
    root = pathlib.Path(self.create_tempdir().full_path)
    content = tiny_world.case_content(tiny_world.Wall())
    dataset_writer.write_dataset(root / "data", [content])
    out = root / "out"
    good = running.run(
      "conditions", f"--dataset={root / 'data'}", f"--output={out}"
    )
    self.assertEqual(good.returncode, 0, good.stderr)
    self.assertIn("conditions of 1 cases", good.stdout)
    self.assertTrue((out / "tiny/prompt.txt").exists())
    bad = running.run("conditions", f"--dataset={root}", f"--output={out}")
    self.assertEqual(bad.returncode, 2)
    self.assertIn("manifest.json", bad.stderr)
    self.assertNotIn("Traceback", bad.stderr)


class BenchmarkTest(absltest.TestCase):
  def test_speedup_is_baseline_over_warm(self):
    row = timing.Row("work", 2.0, 0.5, baseline_s=5.0, baseline="NumPy")
    self.assertEqual(row.speedup, 10.0)
    self.assertIsNone(timing.Row("work", None, 0.5).speedup)
    text = Result({"s": [row]}, {"devices": ["cpu"]}).text()
    self.assertIn("10.0 times faster", text)

  def test_measure_separates_the_first_call(self):
    calls = []
    cold, warm = timing.measure(lambda: calls.append(1), repeats=3)
    self.assertLen(calls, 4)
    self.assertGreaterEqual(cold, 0.0)
    self.assertGreaterEqual(warm, 0.0)


class HelpTest(absltest.TestCase):
  def test_help_imports_no_torch_and_lists_the_flags(self):
    script = (
      "import sys, runpy\n"
      "sys.argv = ['bin.evaluate', '--help']\n"
      "try:\n"
      "  runpy.run_module('bin.evaluate', run_name='__main__')\n"
      "except SystemExit:\n"
      "  pass\n"
      "print('torch' in sys.modules, 'transformers' in sys.modules)\n"
    )
    done = subprocess.run(
      [sys.executable, "-c", script],
      cwd=running.ROOT,
      capture_output=True,
      text=True,
      check=False,
    )
    self.assertEqual(done.stdout.splitlines()[-1], "False False", done.stderr)
    self.assertIn("--protocol", done.stdout)

  def test_stray_arguments_and_missing_input_are_one_line(self):
    stray = running.run("evaluate", "--protocol=pdi", "--output=/tmp/x", "clip")
    self.assertEqual(stray.returncode, 2)
    self.assertStartsWith(stray.stderr.splitlines()[-1], "error: unexpected")
    none = running.run("evaluate", "--protocol=pdi", "--output=/tmp/x")
    self.assertEqual(none.returncode, 2)
    self.assertRegex(none.stderr.splitlines()[-1], "error: flags: input: found")


if __name__ == "__main__":
  absltest.main()
