# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Pair topology: the worked check, a NumPy oracle, ties, padding."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
from absl.testing import absltest, parameterized

from kernels import topology

_OPTIONS = {
  "tie_ratio": 0.03,
  "min_offset": 1e-8,
  "ratio_floor": 1e-8,
  "floor_is_added": False,
  "coincident_needs_match": True,
}
_TARGET = [[10, 10, 30, 30], [60, 20, 90, 60], [40, 70, 80, 95]]
_GENERATED = [[12, 12, 34, 30], [55, 25, 85, 62], [0, 0, 0, 0]]


def _arrays(target, generated, depth, depth_generated, matched, pad=0):
  count = len(target)
  fill = [(0, pad)]

  def padded(values, value=0.0, tail=0):
    array = np.asarray(values, np.float64).reshape(count, -1)
    array = array if tail else array[:, 0] if count else np.zeros(0)
    widths = fill + [(0, 0)] * (array.ndim - 1)
    return jnp.asarray(np.pad(array, widths, constant_values=value))

  present = np.pad(np.ones(count, bool), (0, pad))
  return (
    padded(target, tail=4) if count else jnp.zeros((pad, 4)),
    padded(generated, tail=4) if count else jnp.zeros((pad, 4)),
    padded(depth, np.nan) if count else jnp.full(pad, jnp.nan),
    padded(depth_generated, np.nan) if count else jnp.full(pad, jnp.nan),
    jnp.asarray(present),
    jnp.asarray(np.pad(np.asarray(matched, bool), (0, pad))),
  )


def _oracle(target, generated, depth, depth_generated, matched):
  """Sections 4.13 in a loop over pairs."""

  def center(box):
    return np.array([(box[0] + box[2]) / 2, (box[1] + box[3]) / 2])

  def ratio(x, y):
    return (x - y) / max(0.5 * (abs(x) + abs(y)), 1e-8)

  total, pairs = 0.0, 0
  for a, b in itertools.combinations(range(len(target)), 2):
    pairs += 1
    planar = order = 0.0
    u = center(target[a]) - center(target[b])
    if matched[a] and matched[b]:
      v = center(generated[a]) - center(generated[b])
      if np.linalg.norm(v) >= 1e-8 and np.linalg.norm(u) >= 1e-8:
        cosine = u @ v / (np.linalg.norm(u) * np.linalg.norm(v))
        planar = min(1.0, max(0.0, cosine))
    eligible = np.isfinite(depth[a]) and np.isfinite(depth[b])
    eligible = eligible and abs(ratio(depth[a], depth[b])) > 0.03
    if eligible and matched[a] and matched[b]:
      w = (depth_generated[a], depth_generated[b])
      if np.all(np.isfinite(w)) and abs(ratio(*w)) > 0.03:
        order = float(ratio(*w) * ratio(depth[a], depth[b]) > 0)
    total += (planar + order) / 2 if eligible else planar
  return total / pairs if pairs else 0.0


class TopologyTest(parameterized.TestCase):
  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    cls.enterClassContext(jax.enable_x64(True))
    cls.run_topology = staticmethod(
      jax.jit(lambda *a: topology.pair_topology(*a, **_OPTIONS))
    )

  def test_worked_check_of_the_specification(self):
    found = self.run_topology(
      *_arrays(
        _TARGET,
        _GENERATED,
        [1.5, 2.0, 2.05],
        [0.8, 1.1, np.nan],
        [True, True, False],
        pad=9,
      )
    )
    self.assertAlmostEqual(float(found.score), 0.3325383, places=6)
    self.assertAlmostEqual(float(found.planar), 0.9952304 / 3, places=6)
    self.assertEqual(int(found.pairs), 3)
    self.assertEqual(int(found.matched_pairs), 1)
    self.assertEqual(int(found.eligible_pairs), 2)
    self.assertEqual(int(found.correct_pairs), 1)

  def test_random_steps_match_the_loop(self):
    rng = np.random.default_rng(3)
    for count in (0, 1, 2, 5, 12):
      target = rng.uniform(0, 100, (count, 4))
      generated = rng.uniform(0, 100, (count, 4))
      depth = np.where(
        rng.random(count) < 0.2, np.nan, rng.uniform(1, 3, count)
      )
      other = np.where(
        rng.random(count) < 0.2, np.nan, rng.uniform(1, 3, count)
      )
      matched = rng.random(count) < 0.7
      found = self.run_topology(
        *_arrays(target, generated, depth, other, matched, pad=12 - count)
      )
      self.assertAlmostEqual(
        float(found.score),
        _oracle(target, generated, depth, other, matched),
        places=12,
      )

  def test_perfect_step_scores_one_and_mirror_scores_less(self):
    depth = [1.0, 2.0, 3.0]
    found = self.run_topology(
      *_arrays(_TARGET, _TARGET, depth, depth, [True] * 3, pad=9)
    )
    self.assertAlmostEqual(float(found.score), 1.0, places=12)
    mirrored = [[100 - x2, y1, 100 - x1, y2] for x1, y1, x2, y2 in _TARGET]
    worse = self.run_topology(
      *_arrays(_TARGET, mirrored, depth, depth[::-1], [True] * 3, pad=9)
    )
    self.assertLess(float(worse.score), 0.5)

  def test_order_of_objects_does_not_matter(self):
    values = (_TARGET, _GENERATED, [1.5, 2.0, 2.6], [0.8, 1.1, 1.4])
    order = [2, 0, 1]
    first = self.run_topology(*_arrays(*values, [True] * 3, pad=9))
    second = self.run_topology(
      *_arrays(*[[v[i] for i in order] for v in values], [True] * 3, pad=9)
    )
    self.assertAlmostEqual(float(first.score), float(second.score), places=12)

  @parameterized.parameters((2.03, 1.97, 0), (2.0300001, 1.97, 1))
  def test_tie_limit_follows_float64(self, first, second, eligible):
    found = self.run_topology(
      *_arrays(
        _TARGET[:2],
        _TARGET[:2],
        [first, second],
        [1.0, 2.0],
        [True] * 2,
        pad=10,
      )
    )
    self.assertEqual(int(found.eligible_pairs), eligible)

  def test_coincident_targets_are_reported(self):
    same = [_TARGET[0], [5, 5, 35, 35]]
    for matched, released, paper in (
      ([True, True], 1, 1),
      ([True, False], 0, 1),
    ):
      arrays = _arrays(same, _TARGET[:2], [1, 2], [1, 2], matched, pad=10)
      found = self.run_topology(*arrays)
      self.assertEqual(int(found.coincident_pairs), released)
      strict = jax.jit(
        lambda *a: topology.pair_topology(
          *a, **{**_OPTIONS, "coincident_needs_match": False}
        )
      )(*arrays)
      self.assertEqual(int(strict.coincident_pairs), paper)

  def test_gradients_are_finite_at_coincident_centres(self):
    def score(generated):
      arrays = _arrays(
        _TARGET[:2], _TARGET[:2], [1.0, 2.0], [1.0, 2.0], [True, True], pad=10
      )
      return topology.pair_topology(
        arrays[0], generated, *arrays[2:], **_OPTIONS
      ).score

    flat = jnp.zeros((12, 4))
    self.assertTrue(bool(jnp.all(jnp.isfinite(jax.jit(jax.grad(score))(flat)))))

  def test_wrong_shapes_are_refused(self):
    arrays = list(_arrays(_TARGET, _TARGET, [1, 2, 3], [1, 2, 3], [True] * 3))
    arrays[2] = arrays[2][:2]
    with self.assertRaises(AssertionError):
      topology.pair_topology(*arrays, **_OPTIONS)


if __name__ == "__main__":
  absltest.main()
