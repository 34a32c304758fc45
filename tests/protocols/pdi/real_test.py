# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Real input: a recorded RGB-D sequence and phone clips, offline backends."""

import pathlib
import shutil

import cv2
import numpy as np
from absl.testing import absltest

from protocols.common import records
from protocols.pdi import cases, constants, observe, report, score
from tests.shared_files import shared

# Papers on the table; the table fills the lower part of these frames, which
# the ground check needs.
_BOX = (190.0, 345.0, 350.0, 434.0)
_ROWS = (52, 60)
_RATE = 6.0


def _rgbd_config() -> observe.PerceptionConfig:
  return observe.PerceptionConfig(window=_ROWS, fps=_RATE)


class SevenScenesTest(absltest.TestCase):
  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    cls.folder = shared("data/sevenscenes")
    (case,) = cases.from_rgbd([cls.folder], object_box=_BOX)
    cls.case = case
    cls.record = score.score_case(
      case, config=_rgbd_config(), constants=constants.PAPER
    )

  def test_a_static_object_is_scored_within_the_stated_noise(self):
    record = self.record
    self.assertEqual(record.status, records.OK, record.reason)
    # Measured: scale 0.052 (the mask's silhouette), traj 0.131 (the floor of
    # the formula, section 4.6), rigid 0.013 (index rounding and sensor).
    self.assertLess(record.values["scale"], 0.10)
    self.assertBetween(record.values["traj"], 0.05, 0.25)
    self.assertLess(record.values["rigid"], 0.05)
    self.assertLess(record.values["pdi"], 0.15)
    self.assertEqual(record.coverage["lost_mask_fraction"], 0.0)
    self.assertBetween(record.values["vp"], 0.0, 1.0)
    self.assertFalse(record.comparable_to_published)
    backends = record.provenance["backends"]
    self.assertEqual(backends["geometry"]["backend"], "recorded")
    self.assertEqual(backends["masks"]["backend"], "grabcut_flow")

  def test_breathing_depth_of_the_object_raises_scale_and_says_so(self):
    found = observe.observe(self.case, _rgbd_config(), constants.PAPER)
    target = pathlib.Path(self.create_tempdir().full_path) / "breathing"
    self._breathe(target, found.masks.masks[0])
    (case,) = cases.from_rgbd([target], object_box=_BOX)
    record = score.score_case(
      case, config=_rgbd_config(), constants=constants.PAPER
    )
    self.assertEqual(record.status, records.OK, record.reason)
    self.assertGreater(
      record.values["scale"], 1.4 * self.record.values["scale"]
    )
    text = report.text(record)
    self.assertIn(f"{record.values['scale']:.4f}", text)
    self.assertRegex(text, r"scale: 0\.\d+ of the PDI, largest residual at")

  def _breathe(self, target: pathlib.Path, masks: np.ndarray) -> None:
    """Copies the frames with the object's depth times 1 + 0.1 sin(t)."""
    target.mkdir()
    for path in sorted(self.folder.iterdir()):
      if not path.name.endswith(".depth.png"):
        shutil.copy(path, target)
    files = sorted(self.folder.glob("*.depth.png"))
    for row, path in enumerate(files):
      depth = cv2.imread(str(path), cv2.IMREAD_UNCHANGED)
      t = row - _ROWS[0]
      if 0 <= t < len(masks):
        inside = masks[t] & (depth != 0) & (depth != 65535)
        scaled = depth[inside] * (1.0 + 0.1 * np.sin(t))
        depth[inside] = np.round(scaled).astype(np.uint16)
      cv2.imwrite(str(target / path.name), depth)


class PhoneClipTest(absltest.TestCase):
  def _score(self, name: str, box: cases.Box) -> records.Record:
    root = pathlib.Path(self.create_tempdir().full_path)
    (root / "real").mkdir()
    shutil.copy(shared(f"data/videos/{name}.mp4"), root / "real")
    (case,) = cases.from_clips(root, object_box=box)
    config = observe.PerceptionConfig(sampling="native", window=(0, 30))
    return score.score_case(case, config=config, constants=constants.PAPER)

  def _assert_missing_geometry(self, record: records.Record) -> None:
    self.assertEqual(record.status, records.MISSING)
    self.assertStartsWith(record.reason, "geometry: ")
    for name in ("pdi", "scale", "traj", "rigid"):
      self.assertIsNone(record.values[name])
    self.assertGreater(record.values["rigid_2d"], 0.0)
    self.assertIn("2D Rigidity (not in the PDI):   0.", report.text(record))

  def test_backpack(self):
    self._assert_missing_geometry(
      self._score("backpack", (208.0, 116.0, 284.0, 278.0))
    )

  def test_cups(self):
    self._assert_missing_geometry(
      self._score("cups", (565.0, 288.0, 739.0, 549.0))
    )


if __name__ == "__main__":
  absltest.main()
