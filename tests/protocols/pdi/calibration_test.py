# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""The ray-cast world: each defect moves its own component."""

import csv
import pathlib

from absl.testing import absltest, parameterized

from protocols.calibration import clips, defects, scenes
from protocols.pdi import calibration, constants

_CATEGORY = "longitudinal_convergence"


def _scene() -> scenes.Scene:
  return scenes.make_scene(
    _CATEGORY, seed=0, frames=96, size=(120, 160), fps=24.0
  )


def _score(scene: scenes.Scene) -> dict[str, float | None]:
  recording = clips.record(scene, color=False)
  return calibration.score_recording(recording, constants.PAPER)


class CalibrationTest(parameterized.TestCase):
  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    cls.pristine = _score(_scene())

  def test_a_pristine_clip_is_near_the_floor_of_the_formula(self):
    # Section 15.9: 0.12 on average for perfect geometry, 0.09 to 0.36.
    self.assertLess(self.pristine["scale"], 0.06)
    self.assertBetween(self.pristine["traj"], 0.05, 0.36)
    self.assertLess(self.pristine["rigid"], 0.10)
    self.assertEqual(self.pristine[calibration.LOST], 0.0)

  @parameterized.named_parameters(
    ("volume_breathing", "volume_breathing", "scale", 0.05),
    ("skating", "skating", "scale", 0.05),
    ("teleport", "teleport", "traj", 0.05),
    ("direction_reversal", "direction_reversal", "traj", 0.03),
    ("jello_shear", "jello_shear", "rigid", 0.02),
    ("depth_flicker", "depth_flicker", "scale", 0.05),
    ("drifting_scale", "drifting_scale", "scale", 0.05),
    ("forgetting", "forgetting", calibration.LOST, 0.2),
  )
  def test_defect_moves_its_component(self, name, component, margin):
    strongest = defects.DEFECTS[name].doses[-1]
    found = _score(defects.inject(_scene(), name, strength=strongest))
    self.assertGreater(found[component], self.pristine[component] + margin)

  def test_every_defect_says_what_the_formula_cannot_see(self):
    rows = [
      {
        "defect": name,
        "strength": 0.0,
        "expected": defect.component,
        "scale": 0.1,
        "traj": None,
        "rigid": 0.1,
        "pdi": 0.1,
        calibration.LOST: 0.0,
        "noise_floor": 0.1,
        "seen": False,
        "blind": defect.blind,
      }
      for name, defect in defects.DEFECTS.items()
    ]
    text = calibration.describe_doses(rows)
    for name, defect in defects.DEFECTS.items():
      self.assertIn(f"{name}: {defect.blind}", text)
    folder = pathlib.Path(self.create_tempdir().full_path)
    calibration.write_doses(folder, rows)
    with open(folder / "doses.csv", newline="", encoding="utf-8") as file:
      self.assertLen(list(csv.DictReader(file)), len(rows))
    self.assertGreater((folder / "doses.png").stat().st_size, 5000)

  def test_the_noise_floor_is_the_largest_pristine_value(self):
    rows = [{"scale": 0.1}, {"scale": 0.3}, {"scale": None}]
    self.assertEqual(calibration.noise_floor(rows, "scale"), 0.3)
    self.assertIsNone(calibration.noise_floor([{"scale": None}], "scale"))


if __name__ == "__main__":
  absltest.main()
