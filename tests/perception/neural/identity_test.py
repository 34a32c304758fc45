# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Tests of when a neural backend is what the published tables used."""

import pathlib

from absl.testing import absltest, parameterized

from perception import registry
from perception.neural import checkpoints, depth_anything3, identity, weights

_REAL = weights.Found(pathlib.Path("/w"), pathlib.Path("/w/f"), "ab" * 32)
_RANDOM = weights.find(checkpoints.COTRACKER3, "random")


class IdentityTest(parameterized.TestCase):
  def _comparable(
    self, found, settings, sha256="", role="tracks", name="cotracker3"
  ):
    info = identity.describe(
      role,
      name,
      "1",
      found,
      settings=settings,
      published={"size": [2, 3]},
      published_sha256=sha256,
    )
    self.assertEqual(info.weights_sha256, found.sha256)
    return info.comparable_to_published

  def test_published_model_with_real_weights(self):
    self.assertTrue(self._comparable(_REAL, {"size": [2, 3], "other": 1}))

  def test_random_weights(self):
    self.assertFalse(self._comparable(_RANDOM, {"size": [2, 3]}))

  def test_other_settings(self):
    self.assertFalse(self._comparable(_REAL, {"size": [3, 2]}))

  @parameterized.parameters(("ab" * 32, True), ("cd" * 32, False))
  def test_digest(self, sha256, expected):
    self.assertEqual(
      self._comparable(_REAL, {"size": [2, 3]}, sha256), expected
    )

  def test_the_registry_can_forbid_it(self):
    self.assertFalse(
      self._comparable(
        _REAL, {"size": [2, 3]}, role="geometry", name="depth_anything3"
      )
    )

  def test_licence_of_another_model(self):
    info = identity.describe(
      "tracks",
      "cotracker3",
      "1",
      _REAL,
      settings={},
      published={},
      licence="X / Y",
    )
    self.assertEqual(info.licence, "X / Y")
    plain = identity.describe(
      "tracks", "cotracker3", "1", _REAL, settings={}, published={}
    )
    self.assertEqual(
      plain.licence, registry.spec("tracks", "cotracker3").licence
    )

  def test_egogenevals_pinned_weights(self):
    for backend in (
      depth_anything3.DepthAnything3Pair,
      depth_anything3.DepthAnything3Single,
    ):
      self.assertStartsWith(backend._published_sha256, "8899faf998dedbc2")
      self.assertEqual(backend._published["model"], "da3nested-giant-large")


if __name__ == "__main__":
  absltest.main()
