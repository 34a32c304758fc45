# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Steps from poses: actions, calibration, variants, undefined steps."""

import numpy as np
from absl.testing import absltest, parameterized

from perception.errors import InputError
from protocols.egogeneval import actions, constants, grounding


def _pose(*center):
  pose = np.eye(4)
  pose[:3, 3] = center
  return pose


def _ground(expected, physical, evaluated, limits, component=actions.FORWARD):
  pair = grounding.PosePair(
    np.eye(4), _pose(*expected), _pose(*physical), _pose(*evaluated), component
  )
  return grounding.ground_steps([pair], limits)[0]


class ActionTest(parameterized.TestCase):
  @parameterized.parameters(
    ({"dominant_action": "FORWARD"}, actions.FORWARD),
    ({"dominant_action": "strafe_left"}, actions.RIGHT),
    ({"dominant_action": "", "subtype": "A4_pitch_rotation"}, actions.PITCH),
    ({"atomic_subtype": "A3_yaw_rotation"}, actions.YAW),
    ({"dominant_action": "roll", "subtype": "A3_yaw_rotation"}, None),
    ({}, None),
  )
  def test_component(self, meta, expected):
    self.assertEqual(actions.component_of(meta), expected)


class GroundingTest(parameterized.TestCase):
  def test_scale_comes_from_the_physical_pair(self):
    # The estimator is half as large: 0.5 m look like 0.25; 0.2 become 0.4.
    found = _ground((0, 0, 0.5), (0, 0, 0.25), (0, 0, 0.2), constants.RELEASED)
    self.assertAlmostEqual(found.scale, 2.0)
    self.assertAlmostEqual(found.fields["Pose_ActionPred"], 0.4)
    # q = 1 / (1 + 0.1 / 0.5) = 0.833333.
    self.assertAlmostEqual(found.score, (1 + 1 / 1.2) / 2)

  def test_without_a_scale_the_variants_differ(self):
    arguments = ((0, 0, 0.5), (0, 0, 0), (0, 0, 0.2))
    released = _ground(*arguments, constants.RELEASED)
    paper = _ground(*arguments, constants.PAPER)
    self.assertAlmostEqual(released.score, 0.8125)
    self.assertIsNone(released.fields["Pose_TxPredMetric"])
    self.assertIsNone(paper.score)
    self.assertIn("no metric scale", paper.reason)

  def test_dead_zone_belongs_to_the_released_variant(self):
    arguments = ((0, 0, 0.5), (0, 0, 0.5), (0, 0, 0.0008))
    self.assertEqual(_ground(*arguments, constants.RELEASED).score, 0.0)
    self.assertGreater(_ground(*arguments, constants.PAPER).score, 0.5)

  def test_an_expected_value_without_sign_leaves_the_step_undefined(self):
    found = _ground((0.3, 0, 0), (0.3, 0, 0), (0.3, 0, 0), constants.RELEASED)
    self.assertIsNone(found.score)
    self.assertIn("no sign", found.reason)

  def test_non_finite_poses_are_refused(self):
    with self.assertRaisesRegex(InputError, "NaN or infinite"):
      _ground((0, 0, 1), (0, 0, 1), (0, 0, np.nan), constants.PAPER)

  def test_relative_pose_of_backend_extrinsics(self):
    target = _pose(0.1, 0.2, 0.3)
    source = _pose(1.0, 0.0, 0.0)
    extrinsics = np.linalg.inv(np.stack([source, target]))
    for given in (extrinsics, extrinsics[:, :3]):
      found = grounding.relative_from_extrinsics(given)
      np.testing.assert_allclose(found[:3, 3], [-0.9, 0.2, 0.3], atol=1e-12)

  def test_no_step(self):
    self.assertEqual(grounding.ground_steps([], constants.PAPER), [])


if __name__ == "__main__":
  absltest.main()
