# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Tests of joining chunks; NumPy only, with a recorded RGB-D sequence."""

import dataclasses
import itertools
import pathlib

import numpy as np
from absl.testing import absltest, parameterized
from scipy.spatial import transform

from perception import errors, observation, recorded
from perception.degenerate import DegenerateError
from perception.neural import chunk_alignment as ca

_SCENE = pathlib.Path(__file__).parents[4] / "shared/data/sevenscenes"


def _similarity(rng):
  return ca.Similarity(
    float(rng.uniform(0.3, 3.0)),
    transform.Rotation.random(rng=rng).as_matrix(),
    rng.normal(size=3),
  )


def _world(count=9, height=12, width=20, seed=0):
  """A camera that circles in front of a bumpy wall."""
  rng = np.random.default_rng(seed)
  c2w = np.tile(np.eye(4), (count, 1, 1))
  angles = np.linspace(0, 0.4, count)[:, None]
  c2w[:, :3, :3] = transform.Rotation.from_euler("y", angles).as_matrix()
  c2w[:, 0, 3] = np.linspace(0, 1, count)
  depth = rng.uniform(1.5, 4.0, (count, height, width)).astype(np.float32)
  depth[:, 3, 4] = np.nan
  intrinsics = np.tile(
    np.array([[18.0, 0, 9.2], [0, 17, 5.1], [0, 0, 1]]), (count, 1, 1)
  )
  confidence = rng.uniform(0.5, 2.0, depth.shape).astype(np.float32)
  return ca.Chunk(depth, intrinsics, c2w, confidence)


def _cut(world, ranges, rng):
  """Chunks of one world, each moved by a random similarity of its own."""
  moves = [ca.Similarity.identity()]
  moves += [_similarity(rng) for _ in ranges[1:]]
  return [
    world.rows(start, stop).moved(move)
    for (start, stop), move in zip(ranges, moves, strict=True)
  ]


def _joined(chunks, ranges):
  return ca.join(chunks, ranges, ca.chain(chunks, ranges))


class PlanTest(parameterized.TestCase):
  def test_published_example(self):
    self.assertEqual(
      ca.plan(481, chunk=120, overlap=30),
      [(0, 120), (90, 210), (180, 300), (270, 390), (360, 480), (450, 481)],
    )

  @parameterized.parameters(1, 30, 31, 120, 121, 210, 211, 961)
  def test_every_frame_and_every_overlap(self, count):
    ranges = ca.plan(count, chunk=120, overlap=30)
    covered = sorted({f for a, b in ranges for f in range(a, b)})
    self.assertEqual(covered, list(range(count)))
    for (_, stop), (start, _) in itertools.pairwise(ranges):
      self.assertEqual(stop - start, 30)

  @parameterized.parameters((10, 4, 4), (10, 4, 0), (0, 4, 2), (10, 4, -1))
  def test_refused(self, count, chunk, overlap):
    with self.assertRaises(errors.InputError):
      ca.plan(count, chunk=chunk, overlap=overlap)


class FitTest(parameterized.TestCase):
  def test_recovers_a_similarity(self):
    rng = np.random.default_rng(0)
    truth = _similarity(rng)
    points = rng.normal(size=(50, 3))
    found = ca.fit(points, truth.points(points), rng.uniform(0.1, 1, 50))
    self.assertAlmostEqual(found.scale, truth.scale, places=10)
    np.testing.assert_allclose(found.rotation, truth.rotation, atol=1e-10)
    np.testing.assert_allclose(found.translation, truth.translation, atol=1e-10)

  def test_planar_points_are_enough(self):
    rng = np.random.default_rng(1)
    truth = _similarity(rng)
    points = rng.normal(size=(20, 3)) * [1, 1, 0]
    found = ca.fit(points, truth.points(points), np.ones(20))
    np.testing.assert_allclose(found.rotation, truth.rotation, atol=1e-9)

  def test_mirrored_points_give_a_rotation(self):
    points = np.random.default_rng(2).normal(size=(30, 3))
    found = ca.fit(points, points * [1, 1, -1], np.ones(30))
    self.assertAlmostEqual(np.linalg.det(found.rotation), 1.0)

  def test_zero_weight_points_do_not_count(self):
    rng = np.random.default_rng(3)
    truth = _similarity(rng)
    points = rng.normal(size=(20, 3))
    target = truth.points(points)
    target[:5] += 100
    weight = np.r_[np.zeros(5), np.ones(15)]
    found = ca.fit(points, target, weight)
    self.assertAlmostEqual(found.scale, truth.scale, places=9)

  @parameterized.named_parameters(
    ("one place", np.ones((20, 3))),
    ("line", np.arange(20.0)[:, None] * [1.0, 2, 3]),
  )
  def test_degenerate(self, points):
    with self.assertRaises(DegenerateError):
      ca.fit(points, points, np.ones(20))

  def test_outliers_lose_their_weight(self):
    rng = np.random.default_rng(4)
    truth = _similarity(rng)
    points = rng.normal(size=(400, 3))
    target = truth.points(points)
    target[:40] += rng.normal(size=(40, 3)) * 2
    plain = ca.fit(points, target, np.ones(400))
    robust = ca.fit_robust(points, target, np.ones(400))

    def error(found):
      return np.abs(found.points(points) - truth.points(points)).max()

    self.assertLess(error(robust), error(plain) / 2)

  def test_composition(self):
    rng = np.random.default_rng(5)
    a, b = _similarity(rng), _similarity(rng)
    points = rng.normal(size=(7, 3))
    np.testing.assert_allclose(
      a.after(b).points(points), a.points(b.points(points)), atol=1e-12
    )


class ChunkTest(parameterized.TestCase):
  def test_unprojection_hand_worked(self):
    # Depth 2 at column 3, row 1: x = 2 (3 - 1)/4 = 1, y = 2 (1 - .5)/2 = .5.
    depth = np.full((1, 2, 4), np.nan, np.float32)
    depth[0, 1, 3] = 2.0
    intrinsics = np.array([[[4.0, 0, 1], [0, 2, 0.5], [0, 0, 1]]])
    c2w = np.eye(4)[None].copy()
    c2w[0, :3, 3] = [10, 20, 30]
    points = ca.unproject(ca.Chunk(depth, intrinsics, c2w))
    np.testing.assert_allclose(points[0, 1, 3], [11, 20.5, 32])
    self.assertTrue(np.isnan(points[0, 0]).all())

  def test_a_moved_chunk_has_moved_points(self):
    world = _world()
    move = _similarity(np.random.default_rng(6))
    np.testing.assert_allclose(
      ca.unproject(world.moved(move)),
      move.points(ca.unproject(world)),
      atol=1e-5,
    )

  @parameterized.parameters((9, 4, 2), (9, 5, 1), (9, 9, 3), (9, 3, 2))
  def test_joined_equals_whole(self, count, chunk, overlap):
    world = _world(count)
    ranges = ca.plan(count, chunk=chunk, overlap=overlap)
    joined = _joined(_cut(world, ranges, np.random.default_rng(7)), ranges)
    np.testing.assert_allclose(joined.c2w, world.c2w, atol=1e-5)
    np.testing.assert_allclose(joined.depth, world.depth, rtol=1e-5)
    np.testing.assert_array_equal(joined.confidence, world.confidence)
    np.testing.assert_array_equal(joined.intrinsics, world.intrinsics)

  def test_without_confidence(self):
    world = dataclasses.replace(_world(), confidence=None)
    ranges = ca.plan(9, chunk=5, overlap=2)
    joined = _joined(_cut(world, ranges, np.random.default_rng(8)), ranges)
    self.assertIsNone(joined.confidence)
    np.testing.assert_allclose(joined.c2w, world.c2w, atol=1e-5)

  def test_doubtful_pixels_are_left_out(self):
    world = _world()
    ranges = ca.plan(9, chunk=6, overlap=3)
    chunks = _cut(world, ranges, np.random.default_rng(9))
    chunks[1].depth[:, :6] *= 1.5
    chunks[1].confidence[:, :6] = 1e-3
    joined = _joined(chunks, ranges)
    np.testing.assert_allclose(joined.c2w, world.c2w, atol=1e-5)

  def test_nothing_shared(self):
    world = _world()
    ranges = ca.plan(9, chunk=6, overlap=3)
    chunks = _cut(world, ranges, np.random.default_rng(10))
    chunks[1].depth[:] = np.nan
    with self.assertRaises(DegenerateError):
      _joined(chunks, ranges)

  def test_lengths_must_fit(self):
    world = _world()
    with self.assertRaisesRegex(errors.InputError, "lengths"):
      ca.chain([world.rows(0, 5), world.rows(3, 8)], [(0, 5), (3, 9)])


class RecordedReplayTest(absltest.TestCase):
  """Chunked equals joint on real RGB-D, through the adapter's own code."""

  def setUp(self):
    super().setUp()
    if not _SCENE.is_dir():
      self.skipTest("../shared/data/sevenscenes is absent")
    source = recorded.open_seven_scenes(_SCENE)
    geometry = source.geometry(np.arange(0, 60, 3))
    intrinsics = observation.rescale_intrinsics(
      geometry.intrinsics, from_size=geometry.depth_size, to_size=(60, 80)
    )
    # The middle of every 8x8 block, half a pixel off: one camera for all.
    self.world = ca.Chunk(
      geometry.depth[:, 4::8, 4::8], intrinsics, geometry.c2w
    )

  def test_chunked_equals_joint(self):
    # 20 frames in chunks of 8 that share 3; each in a frame and scale of its
    # own. Tolerance: float32 depth (6e-8) through three chained alignments.
    ranges = ca.plan(20, chunk=8, overlap=3)
    self.assertLen(ranges, 4)
    chunks = _cut(self.world, ranges, np.random.default_rng(0))
    joined = _joined(chunks, ranges)
    np.testing.assert_allclose(joined.c2w, self.world.c2w, atol=1e-5)
    np.testing.assert_allclose(joined.depth, self.world.depth, rtol=1e-5)

  def test_with_noise_of_a_real_estimator(self):
    # 2 % depth noise and 5 % gross outliers (factors 1/2 to 2), drawn anew for
    # every chunk. Noise on both sides shrinks each step by 0.1 to 0.4 %; over
    # a path of 1.84 m the largest error measured was 4.4 cm.
    rng = np.random.default_rng(1)
    ranges = ca.plan(20, chunk=8, overlap=3)
    chunks = _cut(self.world, ranges, rng)
    for chunk in chunks:
      noise = 1 + 0.02 * rng.normal(size=chunk.depth.shape)
      bad = rng.uniform(size=chunk.depth.shape) < 0.05
      noise[bad] = np.exp(rng.uniform(-0.7, 0.7, np.count_nonzero(bad)))
      chunk.depth[:] *= noise
    joined = _joined(chunks, ranges)
    error = np.linalg.norm(
      joined.c2w[:, :3, 3] - self.world.c2w[:, :3, 3], axis=1
    )
    self.assertLess(error.max(), 0.06)


if __name__ == "__main__":
  absltest.main()
