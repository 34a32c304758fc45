# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Walks over recordings, fused depth, the search for visits, real cases."""

import dataclasses
import functools
import pathlib

import numpy as np
from absl.testing import absltest, parameterized

from perception import recorded
from protocols.orbia import (
  dataset,
  dataset_writer,
  recorded_cases,
  revisit_search,
)
from protocols.orbia.fused_depth import FusedDepth
from protocols.orbia.persistence import pose_difference
from protocols.orbia.recorded_world import RecordedWorld
from protocols.orbia.revisit_search import View, Visit
from tests import shared_files

_K = np.array([[50.0, 0, 19.5], [0, 50.0, 14.5], [0, 0, 1]])


@dataclasses.dataclass(frozen=True)
class NoisyWall:
  """A wall at 3 m, seen by a camera that steps 1 cm aside each frame."""

  rows: int = 20
  noise: float = 0.01

  size = (30, 40)

  @property
  def intrinsics(self):
    return np.tile(_K, (self.rows, 1, 1))

  @property
  def c2w(self):
    poses = np.tile(np.eye(4), (self.rows, 1, 1))
    poses[:, 0, 3] = 0.01 * np.arange(self.rows)
    return poses

  def __len__(self):
    return self.rows

  def rgb(self, row):
    return np.full((*self.size, 3), row, np.uint8)

  def depth(self, row):
    rng = np.random.default_rng(row)
    depth = 3.0 * (1 + self.noise * rng.uniform(-1, 1, self.size))
    depth[:2] = np.nan
    return depth.astype(np.float32)


class WalkTest(parameterized.TestCase):
  @parameterized.parameters(
    (8, (0, 2, 4, 6, 7, 5, 3, 0)), (9, (0, 2, 4, 6, 8, 7, 5, 3, 0))
  )
  def test_no_row_is_shown_twice_but_the_first(self, steps, expected):
    world = RecordedWorld(NoisyWall(), 0, 1, steps, 3)
    self.assertEqual(world.places, expected)
    self.assertEqual(world.frame_count, steps * 3)
    self.assertEqual(
      world.place(world.turnaround),
      max(expected[: steps // 2] if steps % 2 == 0 else expected),
    )
    poses = world.poses()
    np.testing.assert_array_equal(poses[0], np.eye(4))
    np.testing.assert_array_equal(poses[-1], np.eye(4))
    np.testing.assert_allclose(poses[4, 0, 3], 0.02, atol=1e-12)

  def test_against_time(self):
    world = RecordedWorld(NoisyWall(), 19, -1, 9, 3, (18, 32))
    np.testing.assert_allclose(world.poses()[4, 0, 3], -0.02, atol=1e-12)
    np.testing.assert_array_equal(world.shot(4).image[9, 16], 17)

  def test_a_camera_that_goes_too_far_stops_at_the_end(self):
    world = RecordedWorld(NoisyWall(), 9, 1, 9, 3, (18, 32))
    far = world.drifted(world.turnaround, share=1.2, turn_deg=0.0)
    self.assertAlmostEqual(far.pose[0, 3], 0.10, places=9)
    end = world.drifted(world.turnaround, share=9.0, turn_deg=0.0)
    self.assertAlmostEqual(end.pose[0, 3], 0.10, places=9)

  def test_rows_outside_the_recording_are_refused(self):
    with self.assertRaisesRegex(ValueError, "rows 15 to 23 of a recording"):
      RecordedWorld(NoisyWall(), 15, 1, 9, 3)
    with self.assertRaisesRegex(ValueError, "7 steps"):
      RecordedWorld(NoisyWall(), 0, 1, 7, 3)


class FusedDepthTest(absltest.TestCase):
  def test_noise_falls_and_holes_stay(self):
    wall = NoisyWall()
    fused = FusedDepth(wall)
    error = {
      name: np.nanstd(source.depth(10)[2:, 5:-5] / 3.0 - 1)
      for name, source in (("one", wall), ("nine", fused))
    }
    # Nine independent uniform errors: a third of one, up to pixel rounding.
    self.assertLess(error["nine"], 0.45 * error["one"])
    np.testing.assert_array_equal(np.isnan(fused.depth(10)[:2]), True)
    self.assertFalse(np.isnan(fused.depth(10)[2:]).any())

  def test_what_disagrees_is_left_out(self):
    class Jump(NoisyWall):
      def depth(self, row):
        return super().depth(row) * (1.0 if row == 10 else 1.2)

    np.testing.assert_array_equal(
      FusedDepth(Jump()).depth(10), Jump().depth(10)
    )


class RevisitSearchTest(parameterized.TestCase):
  """Views of a wall that the input does not show, at chosen offsets."""

  @functools.cached_property
  def views(self):
    k = np.array([[800.0, 0, 320], [0, 800.0, 240], [0, 0, 1]])

    def view(x):
      pose = np.eye(4)
      pose[0, 3] = x
      return View(np.full((480, 640), 3.0), k, pose)

    return view

  def _search(self, firsts, revisits, order="novelty", start=200):
    return revisit_search.best_revisit(
      self.views(0.0),
      [Visit(frame, self.views(x)) for frame, x in enumerate(firsts)],
      [Visit(start + f, self.views(x)) for f, x in enumerate(revisits)],
      order=order,
    )

  def test_the_newest_pair_wins(self):
    found = self._search([0.5, 4.0, 4.2], [4.0, 0.5])
    # Nothing of the first two views beyond 3 m is in the input's.
    self.assertEqual((found.first, found.revisit), (1, 0))
    self.assertAlmostEqual(found.novelty, 1.0)
    self.assertEqual(found.distance, 0.0)

  def test_the_other_viewpoint_wins_where_asked(self):
    found = self._search([4.0, 4.2, 4.6], [4.0], order="viewpoint")
    self.assertEqual(found.first, 2)
    self.assertAlmostEqual(found.distance, 0.6)
    self.assertLess(found.share, 1.0)

  @parameterized.parameters(
    {"firsts": [4.0], "revisits": [4.0], "start": 128},  # too soon
    {"firsts": [4.0], "revisits": [5.1], "start": 200},  # too far
    {"firsts": [0.1], "revisits": [0.1], "start": 200},  # input shows it
  )
  def test_pairs_outside_the_limits_are_refused(self, firsts, revisits, start):
    with self.assertRaisesRegex(ValueError, "no two frames 129 apart"):
      self._search(firsts, revisits, start=start)


class RecordedCaseTest(absltest.TestCase):
  def test_real_frames_make_a_readable_case(self):
    source = recorded.open_rgbd(shared_files.shared("data/sevenscenes"))
    worlds = recorded_cases.short_worlds(source)
    self.assertEqual(
      [(w.start, w.heading) for w in worlds],
      [(0, 1), (59, -1), (4, 1), (55, -1)],
    )
    world = dataclasses.replace(worlds[1], size=(90, 160))
    content = recorded_cases.build_case(world, case_id="real")
    root = pathlib.Path(self.create_tempdir().full_path)
    dataset_writer.write_dataset(root, [content])
    (case,) = dataset.read_dataset(root)
    found = dataset.read_reference(case)
    self.assertEqual(case.frame_count, 357)
    self.assertLen(found.anchors, 2)
    self.assertGreater(found.scene.mean(), 0.2)
    for anchor in found.anchors:
      self.assertTrue(np.all(found.scene[anchor.region]))
      self.assertTrue(np.any(anchor.region))
    # The recorded frames themselves show what is asked for.
    first, last = world.shot(0), world.shot(356)
    np.testing.assert_array_equal(first.image, last.image)
    np.testing.assert_allclose(world.shot(20).pose, case.poses()[20])
    # The registered place is seen from two sides.
    i, j = case.pairs["C"]
    distance, turn = pose_difference(case.poses()[i], case.poses()[j])
    self.assertGreaterEqual(j - i, 129)
    self.assertBetween(distance, 0.1, 1.0)
    self.assertBetween(turn, 5.0, 15.0)


if __name__ == "__main__":
  absltest.main()
