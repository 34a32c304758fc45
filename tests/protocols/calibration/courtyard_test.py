# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""The courtyard and the six template paths."""

import functools

import numpy as np
from absl.testing import absltest, parameterized

from protocols.calibration import courtyard, render, scenes, templates

_SIZE = (48, 64)
_K = scenes.pinhole(_SIZE, focal=0.75)
_CASES = [(t, long) for t in templates.TEMPLATES for long in (False, True)]


@functools.cache
def _yard():
  return courtyard.courtyard(seed=0)


@functools.cache
def _frames(template: str, long: bool) -> render.Frames:
  path = templates.template_path(template, long=long)
  return render.render_sequence(_yard(), path.c2w, _K, _SIZE, color=False)


def _unseen(template: str, long: bool) -> list[tuple[int, int]]:
  """Bodies that leave the view between the visits of pair C, and when."""
  path = templates.template_path(template, long=long)
  first, revisit = path.revisit_pairs()["C"]
  part = _frames(template, long).part
  found = []
  for body in range(len(_yard().bodies)):
    frame = courtyard.unseen_from(
      part, _yard(), body, first=first, revisit=revisit, least_share=0.003
    )
    if frame is not None:
      found.append((body, frame))
  return found


class PathTest(parameterized.TestCase):
  @parameterized.parameters(*_CASES)
  def test_poses_events_and_revisits(self, template, long):
    path = templates.template_path(template, long=long)
    self.assertLen(path.c2w, 961 if long else 357)
    self.assertEqual(list(path.events.values())[-1], len(path.c2w) - 1)
    rotation = path.c2w[:, :3, :3]
    np.testing.assert_allclose(
      rotation.transpose(0, 2, 1) @ rotation,
      np.tile(np.eye(3), (len(rotation), 1, 1)),
      atol=1e-12,
    )
    np.testing.assert_array_equal(path.c2w[0], path.c2w[-1])
    pairs = path.revisit_pairs()
    self.assertEqual(list(pairs), ["C", "A", "B"] if long else ["C"])
    for first, revisit in pairs.values():
      same = np.array_equal(path.c2w[first], path.c2w[revisit])
      self.assertEqual(same, long or template != "arc_return")
      between = path.c2w[first : revisit + 1]
      moved = np.linalg.norm((between - between[0])[:, :3, 3], axis=1)
      turned = np.arccos(np.clip(between[:, :3, 2] @ between[0, :3, 2], -1, 1))
      self.assertGreater(moved.max() + turned.max(), 0.3)

  @parameterized.parameters(*_CASES)
  def test_relative_poses_start_and_end_at_the_exact_identity(
    self, template, long
  ):
    path = templates.template_path(template, long=long)
    relative = path.relative()
    np.testing.assert_array_equal(relative[0], np.eye(4))
    np.testing.assert_array_equal(relative[-1], np.eye(4))
    np.testing.assert_allclose(path.c2w[0] @ relative, path.c2w, atol=1e-12)

  @parameterized.parameters(*_CASES)
  def test_motion_is_smooth(self, template, long):
    path = templates.template_path(template, long=long)
    step = np.linalg.norm(np.diff(path.c2w[:, :3, 3], axis=0), axis=1)
    self.assertLess(step.max() * templates.FPS, 3.5)  # metres a second
    axis = path.c2w[:, :3, 2]
    turn = np.arccos(np.clip((axis[1:] * axis[:-1]).sum(1), -1, 1))
    self.assertLess(np.rad2deg(turn.max()) * templates.FPS, 60.0)

  def test_refuses_an_unknown_template(self):
    with self.assertRaisesRegex(ValueError, "template: found 'spin'"):
      templates.template_path("spin", long=False)


class YardTest(parameterized.TestCase):
  @parameterized.parameters(*_CASES)
  def test_the_camera_keeps_clear_and_sees_its_anchor(self, template, long):
    frames = _frames(template, long)
    self.assertGreater(np.nanmin(frames.depth), 0.5)
    path = templates.template_path(template, long=long)
    anchor = frames.mask(_yard(), _yard().body_index(path.anchor))
    for event in ("q0", "qe1"):
      self.assertGreater(anchor[path.events[event]].mean(), 0.02, event)

  @parameterized.parameters(*_CASES)
  def test_something_can_be_forgotten_out_of_view(self, template, long):
    found = _unseen(template, long)
    self.assertNotEmpty(found)
    path = templates.template_path(template, long=long)
    first, revisit = path.revisit_pairs()["C"]
    for body, frame in found:
      mask = _frames(template, long).mask(_yard(), body)
      self.assertFalse(mask[frame].any())
      self.assertTrue(mask[first].any() and mask[revisit].any())

  def test_forgetting_and_repainting_change_nothing_before_their_frame(self):
    body, frame = _unseen("yaw_return", False)[0]
    path = templates.template_path("yaw_return", long=False)
    first, revisit = path.revisit_pairs()["C"]
    rows = [first, revisit]
    plain = render.render_sequence(_yard(), path.c2w[rows], _K, _SIZE)
    for edit in (courtyard.vanished, courtyard.repainted):
      with self.subTest(edit.__name__):
        motion = edit(_yard(), 2, body, frame=1)
        found = render.render_sequence(
          _yard(), path.c2w[rows], _K, _SIZE, motion=motion
        )
        np.testing.assert_array_equal(found.rgb[0], plain.rgb[0])
        changed = (found.rgb[1] != plain.rgb[1]).any(-1)
        own = plain.mask(_yard(), body)[1]
        self.assertGreater(changed[own].mean(), 0.7)
        gone = edit is courtyard.vanished
        self.assertEqual(gone, not np.array_equal(found.part[1], plain.part[1]))
    self.assertBetween(frame, first + 1, revisit - 1)

  def test_anchors_exist_and_seeds_only_repaint(self):
    other = courtyard.courtyard(seed=1)
    self.assertEqual(other.bodies, _yard().bodies)
    self.assertNotEqual(other.textures, _yard().textures)
    for name in courtyard.ANCHORS:
      _yard().body_index(name)

  def test_never_seen_or_never_hidden_gives_no_frame(self):
    part = np.zeros((3, 4, 4), np.int16)
    yard = _yard()
    found = functools.partial(
      courtyard.unseen_from, part, yard, first=0, revisit=2, least_share=0.1
    )
    self.assertIsNone(found(0))  # part 0 fills every frame
    self.assertIsNone(found(1))  # never in view
    part[1] = -1
    self.assertEqual(found(0), 1)


if __name__ == "__main__":
  absltest.main()
