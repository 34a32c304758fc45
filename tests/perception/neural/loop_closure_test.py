# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Tests of loop closure; NumPy only."""

import numpy as np
from absl.testing import absltest, parameterized
from scipy.spatial import transform

from perception.neural import chunk_alignment as ca
from perception.neural import loop_closure


def _similarity(rng, size=1.0):
  return ca.Similarity(
    float(np.exp(rng.normal(0, 0.2 * size))),
    transform.Rotation.from_rotvec(rng.normal(0, 0.5 * size, 3)).as_matrix(),
    rng.normal(0, size, 3),
  )


def _distance(a, b):
  points = np.concatenate([np.zeros((1, 3)), np.eye(3)])
  return np.abs(a.points(points) - b.points(points)).max()


class AlikeTest(parameterized.TestCase):
  def test_finds_the_return(self):
    ranges = ca.plan(120, chunk=30, overlap=10)
    descriptors = np.eye(120)
    descriptors[110] = descriptors[5]
    descriptors[111] = descriptors[6]
    # (6, 111) lies within 25 frames of (5, 110) at both ends.
    self.assertEqual(loop_closure.alike(descriptors, ranges), [(5, 110)])

  def test_neighbouring_chunks_are_no_loop(self):
    ranges = ca.plan(120, chunk=30, overlap=10)
    descriptors = np.eye(120)
    descriptors[35] = descriptors[5]
    self.assertEqual(loop_closure.alike(descriptors, ranges), [])

  def test_threshold(self):
    ranges = ca.plan(120, chunk=30, overlap=10)
    for cosine, count in ((0.86, 1), (0.84, 0)):
      descriptors = np.eye(120)
      descriptors[110] = 0.0
      descriptors[110, 5] = cosine
      descriptors[110, 110] = np.sqrt(1 - cosine**2)
      self.assertLen(loop_closure.alike(7 * descriptors, ranges), count)

  def test_windows_stay_in_their_chunk(self):
    self.assertEqual(loop_closure.window(50, (30, 90)), (40, 60))
    self.assertEqual(loop_closure.window(31, (30, 90)), (30, 50))
    self.assertEqual(loop_closure.window(89, (30, 90)), (70, 90))
    self.assertEqual(loop_closure.window(3, (0, 8)), (0, 8))


class RefineTest(absltest.TestCase):
  def test_inverse(self):
    rng = np.random.default_rng(0)
    one = _similarity(rng)
    both = loop_closure.inverse(one).after(one)
    self.assertLess(_distance(both, ca.Similarity.identity()), 1e-12)

  def test_no_loops_change_nothing(self):
    rng = np.random.default_rng(1)
    totals = [ca.Similarity.identity(), _similarity(rng)]
    self.assertEqual(loop_closure.refine(totals, []), totals)

  def test_a_consistent_loop_changes_nothing(self):
    rng = np.random.default_rng(2)
    totals = [ca.Similarity.identity()] + [_similarity(rng) for _ in range(4)]
    step = loop_closure.inverse(totals[0]).after(totals[4])
    found = loop_closure.refine(totals, [loop_closure.Loop(0, 4, step)])
    for one, other in zip(found, totals, strict=True):
      self.assertLess(_distance(one, other), 1e-6)

  def test_drift_is_spread_and_reduced(self):
    rng = np.random.default_rng(3)
    truth = [ca.Similarity.identity()] + [_similarity(rng) for _ in range(5)]
    totals = [truth[0]]
    for k in range(5):
      step = loop_closure.inverse(truth[k]).after(truth[k + 1])
      noisy = step.after(_similarity(rng, 0.02))
      totals.append(totals[-1].after(noisy))
    loop = loop_closure.inverse(truth[0]).after(truth[5])
    found = loop_closure.refine(totals, [loop_closure.Loop(0, 5, loop)])
    self.assertLess(
      _distance(found[5], truth[5]), 0.5 * _distance(totals[5], truth[5])
    )
    self.assertEqual(found[0], totals[0])


if __name__ == "__main__":
  absltest.main()
