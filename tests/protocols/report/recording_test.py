# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Recordings: nothing is imported unasked, one line says what is absent."""

import importlib.util
import pathlib
import sys
import unittest.mock

from absl.testing import absltest

from perception.errors import InputError
from protocols.report import recording, sources, write
from tests.protocols.report import examples


class AbsentTest(absltest.TestCase):
  def test_without_the_extra_one_line_says_what_to_do(self):
    root = pathlib.Path(self.create_tempdir().full_path)
    examples.write_pdi_run(
      root / "run", [examples.pdi_record("a", "1", pdi=0.2)]
    )
    config = write.ReportConfig(
      (root / "run",), root / "report", recordings=True
    )
    with (
      unittest.mock.patch.dict(sys.modules, {"rerun": None}),
      self.assertRaisesRegex(InputError, r"the extra viewer") as caught,
    ):
      write.write(config)
    self.assertNotIn("\n", str(caught.exception))
    # Refused before anything is written.
    self.assertFalse((root / "report").exists())


@absltest.skipUnless(
  importlib.util.find_spec("rerun"), "no rerun-sdk (extra viewer)"
)
class PresentTest(absltest.TestCase):
  def test_a_recording_has_every_stream(self):
    root = pathlib.Path(self.create_tempdir().full_path)
    examples.write_clip(root / "clip")
    record = examples.pdi_record(
      "a", "1", pdi=0.3, source=str(root / "clip" / "clip.mp4")
    )
    examples.write_pdi_run(root, [record])
    run = sources.load([root])[0][0]
    (path,) = recording.write(run, run.entries, root / "rerun")
    content = path.read_bytes()
    self.assertEqual(content[:3], b"RRF")
    for name in (b"depth", b"image/mask", b"residuals/scale"):
      self.assertIn(name, content)


if __name__ == "__main__":
  absltest.main()
