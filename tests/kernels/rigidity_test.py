# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Pair selection and ratio series: worked cases and invariances."""

import jax
import jax.numpy as jnp
import numpy as np
from absl.testing import absltest, parameterized
from scipy.spatial import transform

from kernels import rigidity

_OPTIONS = {
  "num_pairs": 30,
  "gradient_quantile": 0.75,
  "min_anchors": 5,
  "min_length": 1e-3,
}


@jax.jit
def _run(points, gradient, edge, visible, frames):
  pairs = rigidity.select_pairs(
    points[0], gradient, edge, visible[0], **_OPTIONS
  )
  series = rigidity.pair_ratio_series(
    points, visible, pairs, frames, min_pairs=3, epsilon=1e-6
  )
  return pairs, series


def _cloud(seed, *, frames=5, anchors=12):
  rng = np.random.default_rng(seed)
  rest = rng.normal(size=(anchors, 3))
  return (
    np.repeat(rest[None], frames, axis=0),
    rng.random(anchors),
    rng.uniform(1, 9, anchors),
    np.ones((frames, anchors), bool),
  )


def _measure(points, gradient, edge, visible, frames=None):
  frames = len(points) if frames is None else frames
  with jax.enable_x64(True):
    return _run(points, gradient, edge, visible, np.int32(frames))


class RigidityTest(parameterized.TestCase):
  def test_rigid_motion_and_uniform_scale_give_zero(self):
    points, *rest = _cloud(0)
    for t in range(1, 5):
      turn = transform.Rotation.random(random_state=t).as_matrix()
      points[t] = (1 + 0.3 * t) * points[t] @ turn.T + t
    _, series = _measure(points, *rest)
    np.testing.assert_allclose(series.error, 0, atol=1e-9)

  def test_two_equal_ratios_of_three_hide_the_third(self):
    # MAD breaks down: a deformation that touches few pairs is invisible.
    pairs = rigidity.PairSelection(
      jnp.array([0, 2, 4]),
      jnp.array([1, 3, 5]),
      jnp.ones(3),
      jnp.ones(3),
      jnp.ones(3, bool),
      jnp.ones(6, bool),
      jnp.float32(0),
      jnp.int32(6),
      jnp.int32(3),
    )
    points = np.zeros((2, 6, 3), np.float32)
    points[:, 1::2, 0] = [[1, 1, 1], [1.2, 1.2, 5.0]]
    found = rigidity.pair_ratio_series(
      jnp.asarray(points),
      jnp.ones((2, 6), bool),
      pairs,
      jnp.int32(2),
      min_pairs=3,
      epsilon=1e-6,
    )
    self.assertAlmostEqual(float(found.mean), 0.0, delta=1e-6)

  def test_selection_equals_numpy(self):
    points, gradient, edge, visible = _cloud(3)
    pairs, _ = _measure(points, gradient, edge, visible)
    threshold = np.percentile(gradient, 75)
    inside = np.flatnonzero(gradient < threshold)
    np.testing.assert_array_equal(np.flatnonzero(pairs.candidate), inside)
    scored = sorted(
      (
        (
          np.linalg.norm(points[0, i] - points[0, j]) * min(edge[i], edge[j]),
          i,
          j,
        )
        for i in inside
        for j in inside
        if i < j
      ),
      reverse=True,
    )[:30]
    found = list(zip(pairs.first.tolist(), pairs.second.tolist(), strict=True))
    self.assertEqual(found, [(i, j) for _, i, j in scored])
    self.assertEqual(int(pairs.num_pairs), 30)

  def test_equal_scores_take_the_later_pair_first(self):
    corners = np.array([[[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]]], float)
    corners = np.concatenate([corners, corners[:, :1] + 0.5], axis=1)
    pairs, _ = _measure(
      corners, np.arange(5.0) * 0, np.ones(5), np.ones((1, 5), bool)
    )
    # Both diagonals are longest.
    self.assertEqual(
      [(int(pairs.first[k]), int(pairs.second[k])) for k in (0, 1)],
      [(1, 3), (0, 2)],
    )

  def test_equal_gradients_fall_back_to_all_visible(self):
    points, _, edge, visible = _cloud(4)
    pairs, _ = _measure(points, np.full(12, 0.1), edge, visible)
    self.assertEqual(int(pairs.num_candidates), 12)

  def test_four_anchors_have_no_threshold(self):
    points, gradient, edge, visible = _cloud(5)
    visible[0, 4:] = False
    pairs, _ = _measure(points, gradient, edge, visible)
    self.assertTrue(np.isinf(pairs.gradient_threshold))
    self.assertEqual(int(pairs.num_candidates), 4)

  def test_a_nan_anchor_fills_the_slots_and_is_dropped(self):
    points, gradient, edge, visible = _cloud(6, anchors=60)
    gradient[0] = 0.0
    points[0, 0] = np.nan
    pairs, _ = _measure(points, gradient, edge, visible)
    self.assertEqual(int(pairs.num_pairs), 0)

  def test_hidden_frames_repeat_their_predecessor(self):
    points, gradient, edge, visible = _cloud(7)
    points[1:, :6] *= 1.3
    visible[2, 2:] = False
    _, series = _measure(points, gradient, edge, visible)
    self.assertGreater(float(series.error[1]), 0.0)
    self.assertEqual(float(series.error[2]), float(series.error[1]))
    self.assertEqual((int(series.num_frames), int(series.num_measured)), (4, 3))

  def test_padding_changes_nothing(self):
    points, gradient, edge, visible = _cloud(8)
    points[2, :5] += 0.2
    _, plain = _measure(points, gradient, edge, visible)
    wide = (
      np.pad(points, ((0, 3), (0, 4), (0, 0)), constant_values=5.0),
      np.pad(gradient, (0, 4)),
      np.pad(edge, (0, 4), constant_values=99.0),
      np.pad(visible, ((0, 3), (0, 4))),
    )
    _, padded = _measure(*wide, frames=5)
    np.testing.assert_array_equal(padded.error[:5], plain.error)
    np.testing.assert_array_equal(padded.error[5:], 0)
    self.assertEqual(float(padded.mean), float(plain.mean))

  def test_specification_15_4(self):
    tracks = np.array(
      [
        [[0, 0], [10, 0], [0, 10]],
        [[0, 0], [11, 0], [0, 10]],
        [[0, 0], [10, 0], [0, 20]],
      ],
      np.float32,
    )
    found = rigidity.image_ratio_series(
      jnp.asarray(tracks),
      jnp.array([0, 0, 1]),
      jnp.array([1, 2, 2]),
      jnp.ones(3, bool),
      jnp.int32(3),
      epsilon=1e-6,
    )
    np.testing.assert_allclose(found.error, [0, 0.038870, 0.268516], atol=2e-6)
    self.assertAlmostEqual(float(found.mean), 0.153693, delta=1e-6)

  def test_specification_15_5(self):
    found = rigidity.extent_between(
      jnp.arange(101.0), jnp.ones(101, bool), low=0.05, high=0.95
    )
    self.assertAlmostEqual(float(found.value), 90.0, delta=1e-4)

  def test_gradient_is_finite_for_coinciding_anchors(self):
    points, gradient, edge, visible = _cloud(9)

    def loss(cloud):
      return _run(cloud, gradient, edge, visible, np.int32(5))[1].mean

    with jax.enable_x64(True):
      for cloud in (np.zeros_like(points), points):
        grad = jax.grad(loss)(jnp.asarray(cloud))
        self.assertTrue(np.all(np.isfinite(grad)))


if __name__ == "__main__":
  absltest.main()
