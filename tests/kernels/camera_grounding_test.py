# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Camera grounding: the specification's table, calibration, pose errors."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from absl.testing import absltest, parameterized
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels import camera_grounding, relative_motion

_METRES = {"dead_zone": 1e-3, "floor": 0.1}
_DEGREES = {"dead_zone": 1e-2, "floor": 5.0}


@jax.jit
def _score(expected, estimate, dead_zone, floor):
  return camera_grounding.step_score(
    expected, estimate, dead_zone=dead_zone, floor=floor
  )


def _scored(expected, estimate, unit):
  return _score(
    jnp.float32(expected),
    jnp.float32(estimate),
    jnp.float32(unit["dead_zone"]),
    jnp.float32(unit["floor"]),
  )


class StepScoreTest(parameterized.TestCase):
  @parameterized.parameters(
    (-0.55, -0.30, _METRES, 1, 0.6875, 0.84375),
    (0.40, -0.13, _METRES, 0, 0.430108, 0.0),
    (0.40, 0.0009, _METRES, 0, 0.500563, 0.0),
    (0.40, 0.0011, _METRES, 1, 0.500688, 0.750344),
    (20.0, 40.0, _DEGREES, 1, 0.5, 0.75),
    (3.0, 4.0, _DEGREES, 1, 0.833333, 0.916667),
    (12.0, 0.01, _DEGREES, 0, 0.500208, 0.0),
  )
  def test_table_of_the_specification(
    self, expected, estimate, unit, direction, magnitude, score
  ):
    found = _scored(expected, estimate, unit)
    self.assertTrue(bool(found.valid))
    self.assertEqual(float(found.direction), direction)
    self.assertAlmostEqual(float(found.magnitude), magnitude, places=5)
    self.assertAlmostEqual(float(found.score), score, places=5)

  @parameterized.parameters(
    (0.0009, 0.2), (0.0, 0.0), (float("nan"), 0.2), (0.4, float("inf"))
  )
  def test_undefined_steps(self, expected, estimate):
    found = _scored(expected, estimate, _METRES)
    self.assertFalse(bool(found.valid))
    self.assertEqual(float(found.score), 0.0)

  @settings(max_examples=40, deadline=None, derandomize=True)
  @given(st.floats(-2, 2, width=32), st.floats(-2, 2, width=32))
  def test_score_is_zero_or_above_one_half(self, expected, estimate):
    found = _scored(expected, estimate, _METRES)
    score = float(found.score)
    self.assertTrue(score == 0.0 or 0.5 < score <= 1.0)
    mirrored = _scored(-expected, -estimate, _METRES)
    self.assertEqual(float(mirrored.score), score)

  def test_gradient_matches_finite_differences(self):
    with jax.enable_x64(True):
      value = functools.partial(camera_grounding.step_score, **_METRES)
      f = lambda a: value(jnp.float64(0.4), a).score  # noqa: E731
      numeric = (f(0.3 + 1e-6) - f(0.3 - 1e-6)) / 2e-6
      self.assertAlmostEqual(
        float(jax.grad(f)(jnp.float64(0.3))), float(numeric), places=6
      )
      self.assertTrue(bool(jnp.isfinite(jax.grad(f)(jnp.float64(0.4)))))
      self.assertEqual(f(jnp.float64(0.3)).dtype, jnp.float64)

  def test_recorded_score_equals_the_direct_one(self):
    direct = _scored(0.7, 0.2, _METRES)
    _, _, score = camera_grounding.recorded_step_score(
      jnp.float32(0.7), jnp.float32(0.5), jnp.float32(1.0), floor=0.1
    )
    self.assertAlmostEqual(float(score), float(direct.score), places=6)


class CalibrationTest(parameterized.TestCase):
  @parameterized.parameters(
    (0.5, 0.25, True, 2.0),
    (0.5, 0.0, False, 1.0),
    (1e-9, 0.5, False, 1.0),
    (0.5, float("nan"), False, 1.0),
  )
  def test_scale(self, expected, physical, valid, scale):
    found = camera_grounding.scale_calibration(
      jnp.float32(expected), jnp.float32(physical), min_norm=1e-8
    )
    self.assertEqual(bool(found.valid), valid)
    self.assertAlmostEqual(float(found.scale), scale, places=6)


class PoseErrorsTest(absltest.TestCase):
  def _errors(self, expected, estimate, scale=1.0):
    motion = functools.partial(
      relative_motion.relative_motion, jnp.eye(4), angle_from_trace=False
    )

    def pose(center):
      return jnp.eye(4).at[:3, 3].set(jnp.asarray(center))

    return camera_grounding.pose_errors(
      motion(pose(expected)),
      motion(pose(estimate)),
      scale=jnp.float32(scale),
      min_norm=1e-8,
      angle_from_trace=False,
    )

  def test_off_axis_leaves_the_scored_axis_out(self):
    # Error (0.3, 0.4, 1.2): whole 1.3; without z 0.5; without x 1.264911.
    found = self._errors([0.0, 0.0, 0.0], [0.3, 0.4, 1.2])
    self.assertAlmostEqual(float(found.translation_error), 1.3, places=5)
    np.testing.assert_allclose(
      found.off_axis_error, [1.264911, 1.236932, 0.5], rtol=1e-5
    )
    self.assertFalse(bool(found.direction_valid))
    self.assertEqual(float(found.direction_deg), 0.0)

  def test_direction_is_free_of_the_scale(self):
    found = self._errors([1.0, 0.0, 0.0], [0.1, 0.1, 0.0], scale=7.0)
    self.assertAlmostEqual(float(found.direction_deg), 45.0, places=3)
    self.assertAlmostEqual(float(found.direction_cosine), 0.707107, places=5)

  def test_gradients_are_finite_for_a_perfect_estimate(self):
    def total(center):
      pose = jnp.eye(4).at[:3, 3].set(center)
      motion = relative_motion.relative_motion(
        jnp.eye(4), pose, angle_from_trace=False
      )
      errors = camera_grounding.pose_errors(
        motion,
        motion,
        scale=jnp.float32(1),
        min_norm=1e-8,
        angle_from_trace=False,
      )
      return errors.translation_error + errors.direction_deg

    for center in ([0.0, 0.0, 0.0], [0.1, 0.2, 0.3]):
      gradient = jax.jit(jax.grad(total))(jnp.asarray(center))
      self.assertTrue(bool(jnp.all(jnp.isfinite(gradient))))


if __name__ == "__main__":
  absltest.main()
