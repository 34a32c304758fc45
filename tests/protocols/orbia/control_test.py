# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Control: statuses, exclusions, clocks."""

import numpy as np
from absl.testing import absltest, parameterized

from protocols.orbia import control
from protocols.orbia.constants import PAPER, RELEASED
from protocols.orbia.raycast_paths import path_of

_FRAMES = np.arange(0, 89, 2)


def _path(template="lateral_out_and_back", count=89):
  return path_of(template, frame_count=count, turnaround=count // 2)


def _measure(
  recovered, *, frames=_FRAMES, template="lateral_out_and_back", **kw
):
  options = {"group": "world", "fps": 16.0, "c": RELEASED, **kw}
  return control.measure_control(
    _path(template),
    frames,
    recovered,
    template=template,
    frame_count=89,
    **options,
  )


class ControlTest(parameterized.TestCase):
  def test_the_requested_path_in_another_frame_is_perfect(self):
    moved = _path("yaw_return")[40] @ _path()[_FRAMES]
    moved[:, :3, 3] *= 3.0
    found = _measure(moved)
    self.assertEqual(found.status, control.OK)
    self.assertAlmostEqual(found.scale, 1 / 3, places=5)
    for name, score in found.components.items():
      self.assertAlmostEqual(score, 100.0, delta=0.01, msg=name)

  @parameterized.named_parameters(
    ("nan", np.nan, "finite"), ("stretched", 1.1, "orthonormal")
  )
  def test_bad_poses_are_not_available(self, value, word):
    poses = _path()[_FRAMES].copy()
    poses[7, 0, 0] = value
    found = _measure(poses)
    self.assertEqual(found.status, control.NOT_AVAILABLE)
    self.assertIn(word, found.reason)
    self.assertTrue(all(v is None for v in found.components.values()))

  def test_absent_frames(self):
    late = _measure(_path()[_FRAMES[1:]], frames=_FRAMES[1:])
    self.assertEqual(late.status, control.NOT_AVAILABLE)
    holed = np.delete(_FRAMES, 5)
    found = _measure(_path()[holed], frames=holed)
    self.assertEqual(found.status, control.FAILED)
    self.assertIn("frame 10", found.reason)

  def test_pure_yaw_has_no_translation_and_no_move(self):
    path = _path("yaw_return")
    found = _measure(path[_FRAMES], template="yaw_return")
    self.assertIsNone(found.components["translation"])
    self.assertIsNone(found.components["move"])
    self.assertEqual(found.components["look"], 100.0)

  @parameterized.parameters((RELEASED, None), (PAPER, 100.0))
  def test_text_models_have_no_actions_on_arcs_in_the_released_code(
    self, c, expected
  ):
    path = _path("arc_return")
    found = _measure(path[_FRAMES], template="arc_return", group="ti2v", c=c)
    self.assertEqual(found.components["move"], expected)
    self.assertIsNotNone(found.components["rotation"])

  def test_opposite_actions_score_zero(self):
    path = _path()
    mirrored = path.copy()
    mirrored[:, 0, 3] = 2 * path[0, 0, 3] - path[:, 0, 3]
    found = _measure(mirrored[_FRAMES])
    self.assertEqual(found.components["move"], 0.0)
    self.assertEqual(found.scale, 0.0)

  def test_interpolated_requests(self):
    path = _path()
    times = np.array([1.0, 1.0 + 0.5 / 16])
    found = control.poses_at(path, times, fps=16.0)
    np.testing.assert_array_equal(found[0], path[16])
    np.testing.assert_allclose(
      found[1, :3, 3], (path[16, :3, 3] + path[17, :3, 3]) / 2
    )


class StaticTest(parameterized.TestCase):
  @parameterized.parameters(
    (0.019, 0.9, True), (0.021, 0.0, False), (0.0, 1.1, False)
  )
  def test_limits(self, distance, turn_deg, expected):
    # Depth 2, so a hundredth of it is 0.02.
    poses = np.tile(np.eye(4), (5, 1, 1))
    angle = np.radians(turn_deg)
    poses[3, [0, 0, 2, 2], [0, 2, 0, 2]] = [
      *(np.cos(angle), np.sin(angle)),
      *(-np.sin(angle), np.cos(angle)),
    ]
    poses[2, 0, 3] = distance
    moved = np.linalg.inv(_path()[40]) @ poses  # any world frame
    depth = np.full((4, 5), 2.0)
    depth[0] = np.nan
    self.assertEqual(control.is_static(moved, depth, c=PAPER), expected)

  def test_without_depth_it_cannot_be_told(self):
    poses = np.tile(np.eye(4), (5, 1, 1))
    depth = np.full((4, 5), np.nan)
    self.assertFalse(control.is_static(poses, depth, c=PAPER))


if __name__ == "__main__":
  absltest.main()
