# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Recordings: nothing is imported unasked, one line says what is absent."""

import importlib.util
import pathlib
import subprocess
import sys
import unittest.mock

from absl.testing import absltest

from perception.errors import InputError
from protocols.report import cases, recording, sources, steps, write
from tests.protocols.report import examples, worlds


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
  def setUp(self) -> None:
    super().setUp()
    self.root = pathlib.Path(self.create_tempdir().full_path)

  def _written(self, folder: pathlib.Path) -> bytes:
    """The recording of the only case of a run."""
    run = sources.load([folder])[0][0]
    table = cases.build(run)
    found = recording.write(
      run, table, [0], steps.read(run), self.root / "rerun"
    )
    self.assertEqual(found, [self.root / "rerun" / "0.rrd"])
    content = found[0].read_bytes()
    self.assertEqual(content[:3], b"RRF")
    command = [sys.executable, "-m", "rerun", "rrd", "verify", str(found[0])]
    done = subprocess.run(command, capture_output=True, timeout=60)
    self.assertEqual(done.returncode, 0, done.stderr)
    return content

  def test_pdi_has_every_stream(self):
    examples.write_clip(self.root / "clip")
    record = examples.pdi_record(
      "a", "1", pdi=0.3, source=str(self.root / "clip" / "clip.mp4")
    )
    examples.write_pdi_run(self.root / "run", [record])
    content = self._written(self.root / "run")
    for name in (
      *(b"world/camera/image/depth", b"image/frame", b"image/mask"),
      *(b"residuals/scale", b"residuals/traj", b"Pinhole", b"frame"),
    ):
      self.assertIn(name, content)

  def test_orbia_has_cameras_paths_events_and_windows(self):
    video = worlds.write_orbia_data(self.root / "data")
    folder = worlds.write_run(self.root / "run", worlds.orbia_record(video))
    content = self._written(folder)
    for name in (
      *(b"world/camera/image/depth", b"image/frame", b"windows/depth_short"),
      *(b"world/requested", b"world/recovered", b"events"),
    ):
      self.assertIn(name, content)

  def test_egogeneval_has_images_boxes_cameras_and_motions(self):
    folder, _ = worlds.write_egogeneval(self.root)
    content = self._written(folder)
    for name in (
      *(b"image/source", b"image/target/boxes", b"image/prediction/boxes"),
      *(b"world/source/image/depth", b"world/target", b"residuals/expected"),
      b"step",
    ):
      self.assertIn(name, content)

  def test_pages_link_to_the_recordings_that_there_are(self):
    examples.write_clip(self.root / "clip")
    source = str(self.root / "clip" / "clip.mp4")
    records = [
      examples.pdi_record("a", "1", pdi=0.3, source=source),
      examples.pdi_record("a", "2", pdi=0.2, source="/gone"),
    ]
    examples.write_pdi_run(self.root / "run", records)
    output = self.root / "report"
    write.write(
      write.ReportConfig((self.root / "run",), output, recordings=True)
    )
    texts = [(output / f"cases/r0/{k}.html").read_text() for k in range(2)]
    self.assertIn('href="../../rerun/r0/0.rrd"', texts[0])
    self.assertTrue((output / "rerun/r0/0.rrd").exists())
    self.assertNotIn(".rrd", texts[1])

  def test_a_case_of_which_nothing_is_reached_leaves_no_file(self):
    folder = worlds.write_run(self.root / "run", worlds.orbia_record("/gone"))
    run = sources.load([folder])[0][0]
    found = recording.write(
      run, cases.build(run), [0], steps.read(run), self.root / "rerun"
    )
    self.assertEmpty(found)
    self.assertEmpty(list((self.root / "rerun").iterdir()))


if __name__ == "__main__":
  absltest.main()
