# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Records: what is written is what is read, and statuses stay honest."""

import json
import math

import numpy as np
from absl.testing import absltest, parameterized
from hypothesis import given, settings
from hypothesis import strategies as st

from perception.errors import InputError
from protocols.common import records

_NUMBERS = st.none() | st.floats(allow_nan=True, width=64)
_TEXT = st.text(max_size=30)


def _record(**changes) -> records.Record:
  fields = {
    "protocol": "pdi",
    "variant": "paper",
    "system": "m",
    "case_id": "c",
    "status": records.OK,
  }
  return records.Record(**{**fields, **changes})


class RecordTest(parameterized.TestCase):
  @settings(max_examples=60, deadline=None, derandomize=True)
  @given(
    values=st.dictionaries(_TEXT, _NUMBERS, max_size=4),
    system=_TEXT,
    notes=st.lists(_TEXT, max_size=3),
  )
  def test_round_trip_keeps_every_value(self, values, system, notes):
    record = _record(values=values, system=system, notes=tuple(notes))
    line = record.to_json()
    self.assertNotIn("\n", line)
    back = records.Record.from_json(line, source="f", field="line 1")
    self.assertEqual(back.to_json(), line)
    self.assertEqual(back.system, system)
    for name, value in values.items():
      if value is not None and math.isnan(value):
        self.assertTrue(math.isnan(back.values[name]))
      else:
        self.assertEqual(back.values[name], value)

  @parameterized.parameters(math.inf, -math.inf, math.nan)
  def test_non_finite_numbers_are_texts_in_valid_json(self, value):
    line = _record(values={"pdi": value}).to_json()
    self.assertIsInstance(json.loads(line)["values"]["pdi"], str)

  def test_numpy_content_becomes_plain_json(self):
    details = {"a": np.float32(0.5), "b": np.arange(3), "c": (1, 2)}
    content = json.loads(_record(details=details).to_json())["details"]
    self.assertEqual(content, {"a": 0.5, "b": [0, 1, 2], "c": [1, 2]})

  @parameterized.parameters(
    ("ok", "a reason"), ("failed", ""), ("perfect", "x")
  )
  def test_status_and_reason_must_agree(self, status, reason):
    with self.assertRaises(ValueError):
      _record(status=status, reason=reason)

  @parameterized.parameters(
    "",
    "{",
    "[]",
    "null",
    '{"schema_version": 1}',
    '{"schema_version": 2, "protocol": "pdi"}',
  )
  def test_a_bad_line_is_one_clear_line(self, line):
    with self.assertRaisesRegex(InputError, "runs.jsonl: line 7: found") as e:
      records.Record.from_json(line, source="runs.jsonl", field="line 7")
    self.assertNotIn("\n", str(e.exception))


if __name__ == "__main__":
  absltest.main()
