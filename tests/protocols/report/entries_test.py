# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Index of records: last of equal keys, cut lines, reading one again."""

import dataclasses
import pathlib

from absl.testing import absltest

from perception.errors import InputError
from protocols.report import entries, sources
from tests.protocols.report import examples


class EntriesTest(absltest.TestCase):
  def setUp(self) -> None:
    super().setUp()
    self.folder = pathlib.Path(self.create_tempdir().full_path)

  def _write(self, *records, tail: str = "", name: str = "records.jsonl"):
    text = "".join(record.to_json() + "\n" for record in records) + tail
    (self.folder / name).write_text(text, encoding="utf-8")

  def test_last_of_equal_keys_wins_and_is_read_again_from_its_place(self):
    self._write(
      examples.pdi_record("b", "1", pdi=0.25),
      examples.pdi_record("ä", "1", pdi=0.5),
      examples.pdi_record("b", "1", pdi=0.75),
    )
    found = entries.read_index(self.folder)
    self.assertEqual([e.key for e in found], [("b", "1"), ("ä", "1")])
    self.assertEqual(found[0].values["pdi"], 0.75)
    self.assertEqual(entries.read_record(found[0]).values["pdi"], 0.75)
    self.assertEqual(entries.read_record(found[1]).system, "ä")

  def test_a_cut_last_line_is_left_out(self):
    whole = examples.pdi_record("b", "1", pdi=0.25)
    self._write(whole, tail=whole.to_json()[:50])
    self.assertLen(entries.read_index(self.folder), 1)

  def test_a_damaged_line_names_file_and_line(self):
    self._write(examples.pdi_record("b", "1", pdi=0.25), tail="{}\n")
    with self.assertRaisesRegex(InputError, r"records\.jsonl: line 2"):
      entries.read_index(self.folder)

  def test_shards_are_read_together(self):
    for shard in range(2):
      record = examples.pdi_record("b", str(shard), pdi=0.25)
      self._write(record, name=f"records-0000{shard}-of-00002.jsonl")
    self.assertLen(entries.read_index(self.folder), 2)

  def test_scored_cases_replace_measured_evidence(self):
    self._write(examples.pdi_record("evidence", "1", pdi=0.25))
    self._write(
      examples.pdi_record("scored", "1", pdi=0.25), name="cases.jsonl"
    )
    found = entries.read_index(self.folder)
    self.assertEqual(entries.systems_of(found), ["scored"])

  def test_parts_without_a_value_have_their_reason(self):
    notes = ("degenerate: T4: nothing moves", "the file says 24 frames")
    record = dataclasses.replace(
      examples.pdi_record("b", "1", pdi=0.25), notes=notes
    )
    self._write(record)
    self.assertEqual(
      entries.read_index(self.folder)[0].reason, "degenerate: T4: nothing moves"
    )

  def test_long_reasons_are_cut_in_the_index_alone(self):
    record = examples.pdi_record(
      "b", "1", pdi=None, status="failed", reason="x" * 1000
    )
    self._write(record)
    (entry,) = entries.read_index(self.folder)
    self.assertLen(entry.reason, 400)
    self.assertEqual(entries.read_record(entry).reason, "x" * 1000)


class SourcesTest(absltest.TestCase):
  def setUp(self) -> None:
    super().setUp()
    self.folder = pathlib.Path(self.create_tempdir().full_path)

  def test_a_folder_of_nothing_is_refused(self):
    with self.assertRaisesRegex(InputError, "an output folder of bin.evaluate"):
      sources.load([self.folder])

  def test_records_without_totals_are_a_run(self):
    line = examples.pdi_record("b", "1", pdi=0.25).to_json() + "\n"
    (self.folder / "records.jsonl").write_text(line)
    runs, _ = sources.load([self.folder])
    self.assertEqual(runs[0].protocol, "pdi")
    self.assertEqual(runs[0].systems, ["b"])

  def test_a_study_joins_the_run_that_has_all_its_systems(self):
    run, mine, other = (self.folder / n for n in ("run", "mine", "other"))
    records = [examples.pdi_record(s, "1", pdi=0.2) for s in ("a", "b")]
    examples.write_pdi_run(run, records)
    examples.write_study(mine, "ranking", [{"system": "a"}, {"system": "b"}])
    examples.write_study(other, "ranking", [{"system": "z"}])
    runs, studies = sources.load([run, mine, other])
    self.assertLen(studies, 2)
    self.assertEqual([s.folder for s in runs[0].studies], [mine])

  def test_non_finite_numbers_of_a_study_are_decoded(self):
    folder = self.folder / "study"
    examples.write_study(folder, "power", [{"a": float("inf"), "b": "text"}])
    _, studies = sources.load([folder])
    self.assertEqual(studies[0].rows, [{"a": float("inf"), "b": "text"}])


if __name__ == "__main__":
  absltest.main()
