# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""The record log survives kills, refuses a second writer, reports the disk."""

import os
import pathlib
from unittest import mock

from absl.testing import absltest, parameterized

from perception.errors import InputError
from protocols.common import records, store


def _record(case_id: str, pdi: float = 0.5) -> records.Record:
  return records.Record(
    "pdi", "paper", "m", case_id, records.OK, values={"pdi": pdi}
  )


class StoreTest(parameterized.TestCase):
  def setUp(self):
    super().setUp()
    self.folder = pathlib.Path(self.create_tempdir().full_path)
    self.path = self.folder / "records.jsonl"

  def _write(self, *cases: str) -> None:
    with store.RecordLog(self.path) as log:
      for case in cases:
        log.append(_record(case))

  def test_records_come_back_sorted_and_the_last_one_wins(self):
    self._write("b", "a")
    with store.RecordLog(self.path) as log:
      log.append(_record("b", pdi=0.25))
    found = store.read_records(self.folder)
    self.assertEqual(list(found), [("m", "a"), ("m", "b")])
    self.assertEqual(found["m", "b"].values["pdi"], 0.25)

  def test_every_cut_of_the_last_line_is_repaired(self):
    self._write("a", "b")
    whole = self.path.read_bytes()
    first = whole.index(b"\n") + 1
    for length in range(first, len(whole)):
      self.path.write_bytes(whole[:length])
      self.assertLen(store.read_records(self.folder), 1)
      with store.RecordLog(self.path) as log:
        log.append(_record("b"))
      self.assertEqual(self.path.read_bytes(), whole)

  def test_a_damaged_line_in_the_middle_is_an_error(self):
    self._write("a", "b")
    content = self.path.read_bytes()
    self.path.write_bytes(content.replace(b"{", b"#", 1))
    with self.assertRaisesRegex(InputError, "line 1"):
      store.read_records(self.folder)

  def test_two_writers_are_refused(self):
    with (
      store.RecordLog(self.path),
      self.assertRaisesRegex(InputError, "another process"),
      store.RecordLog(self.path),
    ):
      pass

  def test_scored_cases_take_the_place_of_evidence(self):
    self._write("evidence")
    self.assertEqual(list(store.read_scored(self.folder)), [("m", "evidence")])
    (self.folder / store.SCORED_CASES).write_text(
      _record("scored").to_json() + "\n"
    )
    self.assertEqual(list(store.read_scored(self.folder)), [("m", "scored")])
    self.assertEqual(list(store.read_records(self.folder)), [("m", "evidence")])

  def test_shards_are_read_together(self):
    for index, case in enumerate("ab"):
      path = self.folder / store.log_name(index, 2)
      with store.RecordLog(path) as log:
        log.append(_record(case))
    self.assertLen(store.read_records(self.folder), 2)

  def test_a_full_disk_is_one_clear_line(self):
    error = OSError(28, os.strerror(28))
    with (
      store.RecordLog(self.path) as log,
      mock.patch.object(os, "fsync", side_effect=error),
      self.assertRaisesRegex(InputError, "No space left on device"),
    ):
      log.append(_record("a"))

  def test_a_real_full_device_is_one_clear_line(self):
    if not os.path.exists("/dev/full"):
      self.skipTest("this system has no /dev/full")
    log = store.RecordLog(self.path)
    with log, open("/dev/full", "wb") as full:
      log._file, keep = full, log._file
      with self.assertRaisesRegex(InputError, "No space left"):
        log.append(_record("a"))
      log._file = keep
      # The buffered bytes cannot be written; do not fail again on close.
      os.dup2(os.open(os.devnull, os.O_WRONLY), full.fileno())

  def test_appending_outside_the_block_is_a_bug(self):
    with self.assertRaises(RuntimeError):
      store.RecordLog(self.path).append(_record("a"))


if __name__ == "__main__":
  absltest.main()
