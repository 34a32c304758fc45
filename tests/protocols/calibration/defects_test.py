# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Defect injectors: nothing at strength 0, their own component above it."""

import functools

import numpy as np
from absl.testing import absltest, parameterized

from protocols.calibration import clips, defects, scenes
from tests.protocols.calibration import pdi_oracle

_SIZE = (120, 160)
_CATEGORIES = ("longitudinal_convergence", "dynamic_tracking", "curved_motion")
# The largest pristine value of each component over the scenes below; a
# moderate dose must exceed it.
_MODERATE = {
  "volume_breathing": 0.5,
  "skating": 0.5,
  "teleport": 0.3,
  "direction_reversal": 1.0,
  "jello_shear": 0.5,
  "depth_flicker": 0.5,
  "drifting_scale": 0.5,
}


@functools.cache
def _scene(category: str) -> scenes.Scene:
  return scenes.make_scene(category, seed=0, frames=96, size=_SIZE, fps=24.0)


@functools.cache
def _measured(category: str, name: str, strength: float) -> dict[str, float]:
  scene = defects.inject(_scene(category), name, strength=strength)
  return pdi_oracle.components(clips.record(scene, color=False))


def _mean(name: str, strength: float, component: str) -> float:
  return float(
    np.mean([_measured(c, name, strength)[component] for c in _CATEGORIES])
  )


def _floor(component: str) -> float:
  return max(_measured(c, "skating", 0.0)[component] for c in _CATEGORIES)


class StrengthZeroTest(parameterized.TestCase):
  @parameterized.parameters(*defects.DEFECTS)
  def test_not_a_bit_changes(self, name):
    scene = _scene("curved_motion")
    same = defects.inject(scene, name, strength=0.0)
    np.testing.assert_array_equal(
      same.motion.body_to_world, scene.motion.body_to_world
    )
    np.testing.assert_array_equal(same.motion.present, scene.motion.present)
    np.testing.assert_array_equal(
      same.motion.texture_ids, scene.motion.texture_ids
    )
    np.testing.assert_array_equal(same.depth_gain, scene.depth_gain)
    np.testing.assert_array_equal(same.recorded_c2w, scene.recorded_c2w)
    np.testing.assert_array_equal(same.c2w, scene.c2w)

  def test_refuses_unknown_names_and_strengths(self):
    scene = _scene("curved_motion")
    with self.assertRaisesRegex(ValueError, "known: volume_breathing"):
      defects.inject(scene, "melting", strength=1.0)
    for bad in (-0.1, float("nan"), float("inf")):
      with self.assertRaisesRegex(ValueError, "strength"):
        defects.inject(scene, "skating", strength=bad)


class ComponentTest(parameterized.TestCase):
  @parameterized.parameters(*_MODERATE.items())
  def test_a_moderate_dose_rises_above_every_pristine_scene(self, name, dose):
    component = defects.DEFECTS[name].component
    self.assertGreater(_mean(name, dose, component), _floor(component))

  def test_forgetting_shows_as_lost_masks_of_the_stated_share(self):
    found = [_measured(c, "forgetting", 0.25)["lost"] for c in _CATEGORIES]
    np.testing.assert_allclose(found, 0.25)

  def test_rigidity_divides_a_uniform_scale_out(self):
    for name in ("volume_breathing", "depth_flicker", "drifting_scale"):
      with self.subTest(name):
        rise = _mean(name, 0.5, "rigid") - _mean(name, 0.0, "rigid")
        self.assertLess(rise, 0.01)

  def test_scale_reads_the_logarithm_of_the_breathing(self):
    time = np.linspace(0, 1, 96)
    swing = np.log(1 + 0.25 * np.sin(4 * np.pi * time))
    expected = np.sqrt(np.mean((swing[1:] - np.median(swing[:5])) ** 2))
    self.assertAlmostEqual(
      _mean("volume_breathing", 0.5, "scale"), expected, delta=0.03
    )

  def test_the_size_of_a_jump_hardly_matters(self):
    near, far = _mean("teleport", 0.3, "traj"), _mean("teleport", 1.0, "traj")
    self.assertLess(abs(near - far), 0.25 * near)


class GeometryTest(absltest.TestCase):
  def test_skating_keeps_the_apparent_size(self):
    scene = _scene("longitudinal_convergence")
    worse = defects.inject(scene, "skating", strength=1.0)
    depth = scene.subject_depth()
    size = np.cbrt(np.linalg.det(worse.subject_poses()[:, :3, :3]))
    np.testing.assert_allclose(size / depth, size[0] / depth[0])
    np.testing.assert_allclose(worse.subject_depth(), depth)

  def test_shear_keeps_volume_and_foot(self):
    scene = _scene("curved_motion")
    worse = defects.inject(scene, "jello_shear", strength=1.0)
    poses = worse.subject_poses()
    np.testing.assert_allclose(np.linalg.det(poses[:, :3, :3]), 1.0)
    np.testing.assert_array_equal(
      poses[:, :3, 3], scene.subject_poses()[:, :3, 3]
    )

  def test_reversal_turns_eight_times_and_runs_back_at_double_speed(self):
    scene = _scene("longitudinal_convergence")
    worse = defects.inject(scene, "direction_reversal", strength=1.0)
    depth = worse.subject_poses()[:, 2, 3]
    step = np.diff(depth)
    honest = np.diff(scene.subject_poses()[:, 2, 3]).mean()
    self.assertEqual((np.diff(np.sign(step)) != 0).sum(), 8)
    self.assertAlmostEqual(step.min() / honest, -2.0, places=2)

  def test_drift_moves_cameras_and_depth_alike(self):
    scene = _scene("dynamic_tracking")
    worse = defects.inject(scene, "drifting_scale", strength=1.0)
    self.assertAlmostEqual(worse.depth_gain[-1], np.exp(-0.5))
    true = np.diff(scene.c2w[:, :3, 3], axis=0)
    said = np.diff(worse.recorded_c2w[:, :3, 3], axis=0)
    np.testing.assert_allclose(
      said, true * worse.depth_gain[1:, None], atol=1e-12
    )
    np.testing.assert_array_equal(worse.c2w, scene.c2w)


if __name__ == "__main__":
  absltest.main()
