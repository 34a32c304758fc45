# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""CoTracker3 from a user's checkout, random weights, small input, CPU."""

import os
from unittest import mock

import numpy as np
import pytest
from absl.testing import absltest, parameterized

from perception import errors, registry, roles
from perception.neural import cotracker3
from tests.perception.neural import neural_test_utils as utils

torch = pytest.importorskip("torch", reason="needs the perception extra")
pytestmark = pytest.mark.perception

_BACKENDS = {}


def _backend():
  if cotracker3.why_absent():
    pytest.skip("CoTracker is the user's to install: set WORLDGAUGE_COTRACKER")
  if not _BACKENDS:
    _BACKENDS[0] = registry.get(
      "tracks",
      "cotracker3",
      weights="random",
      device="cpu",
      resolution=(96, 128),
    )
  return _BACKENDS[0]


def _queries(xy, row, dtype=np.float32):
  return roles.Queries(
    np.array(xy, dtype).reshape(-1, 2),
    np.array(row, np.int64),
    np.zeros(len(row), np.int32),
  )


class AbsentTest(absltest.TestCase):
  def test_the_message_says_what_to_do(self):
    with mock.patch.dict(os.environ, {"WORLDGAUGE_COTRACKER": "/nowhere"}):
      self.assertRegex(cotracker3.why_absent(), "git clone.*CC-BY-NC")
      state = registry.availability("tracks", "cotracker3")
      self.assertFalse(state.available)
      with self.assertRaisesRegex(errors.InputError, "git clone"):
        registry.get("tracks", "cotracker3", weights="random")


class CoTrackerTest(parameterized.TestCase):
  def _predictor(self):
    from cotracker.predictor import CoTrackerPredictor

    ours = _backend()
    predictor = CoTrackerPredictor(checkpoint=None)
    predictor.model = ours._model
    predictor.interp_shape = (96, 128)
    return predictor

  @parameterized.parameters(False, True)
  def test_equals_the_packages_predictor(self, later):
    backend = _backend()
    frames = utils.moving_square(6)
    xy = [[44.0, 16.0], [70.5, 3.25], [2.0, 40.0]]
    rows = [0, 3, 5] if later else [0, 0, 0]
    ours = backend.track(utils.clip(frames), _queries(xy, rows))
    self.assertIsInstance(backend, roles.TracksBackend)
    video = torch.from_numpy(frames).permute(0, 3, 1, 2)[None].float()
    given = torch.tensor([[[r, *p] for r, p in zip(rows, xy, strict=True)]])
    tracks, visible = self._predictor()(
      video, queries=given.float(), backward_tracking=later
    )
    np.testing.assert_allclose(ours.xy, tracks[0].numpy(), atol=2e-3)
    np.testing.assert_array_equal(ours.visible, visible[0].numpy())
    # The query itself: an off-centre point of a non-square frame, in place.
    np.testing.assert_array_equal(ours.xy[rows, [0, 1, 2]], xy)
    self.assertEqual(ours.video_size, (48, 80))
    self.assertTrue(((ours.confidence >= 0) & (ours.confidence <= 1)).all())

  def test_whole_number_queries_survive(self):
    clip = utils.clip(utils.moving_square(4))
    whole = _backend().track(clip, _queries([[44, 16]], [0], np.int64))
    same = _backend().track(clip, _queries([[44, 16]], [0]))
    np.testing.assert_array_equal(whole.xy, same.xy)
    np.testing.assert_array_equal(whole.xy[0, 0], [44, 16])

  def test_no_queries(self):
    tracks = _backend().track(
      utils.clip(utils.moving_square(4)), _queries([], [])
    )
    self.assertEqual(tracks.xy.shape, (4, 0, 2))

  def test_deterministic(self):
    clip = utils.clip(utils.moving_square(4))
    a = _backend().track(clip, _queries([[44, 16]], [0]))
    b = _backend().track(clip, _queries([[44, 16]], [0]))
    np.testing.assert_array_equal(a.xy, b.xy)

  @parameterized.parameters(
    ([[80.0, 3.0]], [0]),
    ([[1.0, 1.0]], [4]),
    ([[1.0, 1.0]], [-1]),
    ([[1.0, 1.0]], [0, 1]),
    ([[np.nan, 1.0]], [0]),
  )
  def test_refused(self, xy, row):
    with self.assertRaisesRegex(errors.InputError, "queries"):
      _backend().track(utils.clip(utils.moving_square(4)), _queries(xy, row))

  def test_weights(self):
    backend = _backend()
    path = os.path.join(self.create_tempdir().full_path, "scaled_offline.pth")
    torch.save(backend._model.state_dict(), path)
    loaded = registry.get(
      "tracks",
      "cotracker3",
      weights=path,
      device="cpu",
      resolution=(96, 128),
    )
    # Real weights, but not at the published resolution.
    self.assertFalse(loaded.info.comparable_to_published)
    with open(path, "wb") as file:
      file.write(b"junk")
    with self.assertRaisesRegex(errors.InputError, "weights of CoTracker3"):
      registry.get("tracks", "cotracker3", weights=path, device="cpu")


if __name__ == "__main__":
  absltest.main()
