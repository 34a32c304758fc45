# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Runs: resume, workers, shards and failures change no result."""

import dataclasses
import functools
import importlib.util
import pathlib

from absl.testing import absltest, parameterized

from perception.errors import InputError
from protocols.common import manifest, outputs, runner, store
from protocols.common.records import OK, Record


@dataclasses.dataclass(frozen=True)
class _Case:
  system: str
  case_id: str
  path: pathlib.Path

  @property
  def groups(self) -> dict[str, str]:
    return {"category": "x"}

  @property
  def inputs(self) -> tuple[pathlib.Path, ...]:
    return (self.path,)


def _work(case: _Case, *, calls: pathlib.Path) -> Record:
  """Scores a case from its file; leaves a mark for each call."""
  with open(calls, "a", encoding="utf-8") as file:
    file.write(case.case_id + "\n")
  text = case.path.read_text()
  if text == "crash":
    raise ZeroDivisionError("a bug\nin two lines")
  if text == "bad":
    raise InputError(case.path, "content", found=text, expected="a number")
  return Record(
    "pdi", "paper", case.system, case.case_id, OK, values={"pdi": float(text)}
  )


class RunnerTest(parameterized.TestCase):
  def setUp(self):
    super().setUp()
    self.folder = pathlib.Path(self.create_tempdir().full_path)
    self.calls = self.folder / "calls.txt"

  def _cases(self, texts: dict[str, str]) -> list[_Case]:
    cases = []
    for name, text in texts.items():
      path = self.folder / f"{name}.txt"
      path.write_text(text)
      cases.append(_Case("m", name, path))
    return manifest.unique(cases, source="test")

  def _run(self, cases, *, settings=None, **options):
    return runner.run_cases(
      cases,
      functools.partial(_work, calls=self.calls),
      protocol="pdi",
      variant="paper",
      settings=settings or {"a": 1},
      options=runner.RunOptions(output=self.folder / "out", **options),
    )

  def _called(self) -> list[str]:
    text = self.calls.read_text() if self.calls.exists() else ""
    self.calls.unlink(missing_ok=True)
    return sorted(text.split())

  def test_resume_scores_only_what_is_new_or_changed(self):
    cases = self._cases({"a": "1", "b": "2"})
    first = self._run(cases)
    self.assertEqual(self._called(), ["a", "b"])
    self.assertEqual(self._run(cases), first)
    self.assertEqual(self._called(), [])
    cases = self._cases({"a": "1.25", "b": "2", "c": "3"})
    again = self._run(cases)
    self.assertContainsSubset({"a", "c"}, set(self._called()))
    self.assertEqual(again["m", "a"].values["pdi"], 1.25)
    self.assertLen(again, 3)

  def test_failures_are_records_with_reasons_and_groups(self):
    found = self._run(self._cases({"a": "1", "b": "crash", "c": "bad"}))
    self.assertEqual(found["m", "a"].status, "ok")
    crash = found["m", "b"]
    self.assertEqual(crash.status, "failed")
    self.assertEqual(crash.reason, "ZeroDivisionError: a bug in two lines")
    self.assertIn("Traceback", crash.details["traceback"])
    self.assertEqual(crash.groups, {"category": "x"})
    self.assertIn("found bad", found["m", "c"].reason)
    self.assertNotIn("traceback", found["m", "c"].details)

  def test_retry_scores_failed_cases_again(self):
    cases = self._cases({"a": "1", "b": "crash"})
    self._run(cases)
    self._called()
    self._run(cases, retry=("failed",))
    self.assertEqual(self._called(), ["b"])

  def test_other_settings_are_refused_and_named(self):
    cases = self._cases({"a": "1"})
    self._run(cases, settings={"masks": "sam2", "n": {"k": 1}})
    with self.assertRaisesRegex(InputError, r"settings\.n\.k=2 \(was 1\)"):
      self._run(cases, settings={"masks": "sam2", "n": {"k": 2}})

  def test_flags_are_kept_and_may_change(self):
    cases = self._cases({"a": "1"})
    for flags in ({"cache": "/a", "tiers": ["T1"]}, {"cache": "/b"}):
      self._run(cases, flags=flags)
      stored = outputs.read_json(self.folder / "out" / "run.json")
      self.assertEqual(stored["flags"], flags)

  def test_worker_processes_give_the_same_records(self):
    cases = self._cases({str(i): str(i) for i in range(5)} | {"x": "crash"})
    alone = self._run(cases)
    output = self.folder / "out" / "records.jsonl"
    output.unlink()
    together = self._run(cases, workers=2)
    strip = [r.to_json() for r in alone.values() if r.status == OK]
    self.assertEqual(
      strip, [r.to_json() for r in together.values() if r.status == OK]
    )
    self.assertEqual(together["m", "x"].reason, alone["m", "x"].reason)

  def test_a_ray_cluster_gives_the_same_records(self):
    if importlib.util.find_spec("ray") is None:
      with self.assertRaisesRegex(InputError, "ray is not installed"):
        self._run(self._cases({"a": "1"}), executor="ray", workers=2)
      self.skipTest("ray is not installed (extra `cluster`)")
    cases = self._cases({str(i): str(i) for i in range(5)})
    alone = self._run(cases)
    (self.folder / "out" / "records.jsonl").unlink()
    self.assertEqual(self._run(cases, executor="ray", workers=2), alone)

  def test_shards_together_are_the_whole(self):
    cases = self._cases({str(i): str(i) for i in range(5)})
    for index in range(2):
      self._run(cases, shard_index=index, num_shards=2)
    self.assertLen(store.read_records(self.folder / "out"), 5)
    self.assertLen(self._called(), 5)

  def test_duplicate_cases_are_refused(self):
    case = self._cases({"a": "1"})[0]
    with self.assertRaisesRegex(InputError, "two cases 'a' of system 'm'"):
      manifest.unique([case, case], source="list.jsonl")
    with self.assertRaisesRegex(InputError, "no case"):
      manifest.unique([], source="list.jsonl")

  def test_the_signature_follows_the_content_of_folders(self):
    folder = self.folder / "rgbd"
    folder.mkdir()
    (folder / "x").write_text("1")
    case = _Case("m", "f", folder)
    before = manifest.signature(case)
    self.assertEqual(before, manifest.signature(case))
    (folder / "y").write_text("2")
    self.assertNotEqual(before, manifest.signature(case))


if __name__ == "__main__":
  absltest.main()
