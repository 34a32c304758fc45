# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Quality predictors: real CLIP and AMT code, stand-ins for pyiqa and hpsv3.

pyiqa and hpsv3 are the user's to install (licence, pinned dependencies), so
what is tested of them is what the adapters hand over and take back.
"""

import os
import sys
import types
from unittest import mock

import numpy as np
import pytest
from absl.testing import absltest, parameterized

from perception import errors, registry, roles
from perception.neural import amt_smoothness
from tests.perception.neural import neural_test_utils as utils

torch = pytest.importorskip("torch", reason="needs the perception extra")
transformers = pytest.importorskip(
  "transformers", reason="needs the perception extra"
)
pytestmark = pytest.mark.perception


class AestheticTest(absltest.TestCase):
  def test_scores(self):
    backend = registry.get(
      "quality",
      "laion_aesthetic",
      weights="random",
      device="cpu",
      batch_size=2,
    )
    self.assertIsInstance(backend, roles.QualityBackend)
    images = utils.moving_square(3)
    scores = backend.score(images)
    self.assertEqual((scores.shape, scores.dtype), ((3,), np.float32))
    # The same by hand: unit feature, linear head.
    pixels = transformers.CLIPImageProcessor()(
      images=[images[1]], return_tensors="pt"
    )
    with torch.no_grad():
      feature = backend._net.get_image_features(**pixels).pooler_output[0]
    feature = feature / feature.norm()
    expected = backend._head.weight[0] @ feature + backend._head.bias[0]
    self.assertAlmostEqual(float(scores[1]), float(expected), places=5)

  def test_files(self):
    folder = self.create_tempdir().full_path
    random = registry.get(
      "quality", "laion_aesthetic", weights="random", device="cpu"
    )
    random._net.save_pretrained(folder)
    head = os.path.join(folder, "head.pth")
    torch.save(random._head.state_dict(), head)
    loaded = registry.get(
      "quality",
      "laion_aesthetic",
      weights=folder,
      head_weights=head,
      device="cpu",
    )
    images = utils.moving_square(1)
    np.testing.assert_allclose(
      loaded.score(images), random.score(images), rtol=1e-5
    )
    self.assertRegex(loaded.info.settings["head_sha256"], "^[0-9a-f]{64}$")
    torch.save({"weight": torch.zeros(1, 3)}, head)
    with self.assertRaisesRegex(errors.InputError, "768"):
      registry.get(
        "quality",
        "laion_aesthetic",
        weights=folder,
        head_weights=head,
        device="cpu",
      )

  def test_refused(self):
    backend = registry.get(
      "quality", "laion_aesthetic", weights="random", device="cpu"
    )
    with self.assertRaises(errors.InputError):
      backend.score(np.zeros((4, 4, 3), np.uint8))
    with self.assertRaises(errors.InputError):
      registry.get("quality", "laion_aesthetic", batch_size=0)


class AmtTest(absltest.TestCase):
  def _backend(self):
    if amt_smoothness.why_absent():
      self.skipTest("AMT is the user's to install: set WORLDGAUGE_AMT")
    return registry.get("quality", "amt_s", weights="random", device="cpu")

  def test_absent(self):
    with mock.patch.dict(os.environ, {"WORLDGAUGE_AMT": "/nowhere"}):
      state = registry.availability("quality", "amt_s")
    self.assertRegex(state.reason, "git clone.*CC-BY-NC")

  def test_score_of_a_clip(self):
    before = set(sys.modules)
    backend = self._backend()
    self.assertFalse(
      {m.partition(".")[0] for m in set(sys.modules) - before}
      & {"networks", "utils"}
    )
    frames = utils.moving_square(11, height=130, width=170)
    score = backend.score(frames)
    # Triplets at 0 and 8, as the definition has it.
    residuals = [
      np.abs(
        backend._between(frames[t], frames[t + 2]).astype(float) - frames[t + 1]
      ).mean()
      for t in (0, 8)
    ]
    expected = 100 * (255 - np.mean(residuals)) / 255
    np.testing.assert_allclose(score, [expected], rtol=1e-5)
    self.assertTrue(backend.scores_clip)

  def test_too_short(self):
    with self.assertRaisesRegex(errors.InputError, "three"):
      self._backend().score(utils.moving_square(2))

  def test_too_small(self):
    with self.assertRaisesRegex(errors.InputError, "128"):
      self._backend().score(utils.moving_square(3))

  def test_prediction_keeps_the_place_of_things(self):
    # An untrained AMT blends its inputs by its masks: where both agree, the
    # prediction follows them, off-centre and not square.
    backend = self._backend()
    frame = np.full((130, 200, 3), 40, np.uint8)
    frame[10:60, 120:180] = 220
    found = backend._between(frame, frame).astype(float).mean(axis=2)
    self.assertGreater(found[20:50, 130:170].mean(), found[80:, :].mean() + 30)


class PyiqaTest(parameterized.TestCase):
  def setUp(self):
    super().setUp()
    self.seen = []

    def metric(pixels):
      self.seen.append(pixels)
      return pixels.mean(dim=(1, 2, 3))

    self.create = mock.Mock(return_value=metric)
    fake = types.ModuleType("pyiqa")
    fake.__spec__ = mock.Mock()
    fake.create_metric = self.create
    self.enter_context(mock.patch.dict(sys.modules, {"pyiqa": fake}))

  @parameterized.parameters(
    ("musiq_spaq", "musiq-spaq", True),
    ("clipiqa", "clipiqa", True),
    ("niqe", "niqe", False),
  )
  def test_hand_over(self, name, metric, higher):
    backend = registry.get("quality", name, device="cpu", batch_size=2)
    self.assertIsInstance(backend, roles.QualityBackend)
    self.assertEqual(self.create.call_args.args, (metric,))
    images = utils.moving_square(3)
    np.testing.assert_allclose(
      backend.score(images), images.mean(axis=(1, 2, 3)) / 255, rtol=1e-5
    )
    self.assertEqual([len(batch) for batch in self.seen], [2, 1])
    self.assertEqual(self.seen[0].shape[1:], (3, 48, 80))
    self.assertEqual(backend.higher_is_better, higher)

  def test_musiq_reduces_large_pictures(self):
    backend = registry.get("quality", "musiq_spaq", device="cpu")
    backend.score(np.zeros((1, 333, 1024, 3), np.uint8))
    self.assertEqual(self.seen[0].shape, (1, 3, 166, 512))
    backend.score(np.zeros((1, 512, 300, 3), np.uint8))
    self.assertEqual(self.seen[1].shape, (1, 3, 512, 300))

  def test_missing_weights(self):
    self.create.side_effect = OSError("no route")
    with self.assertRaisesRegex(errors.InputError, "Run once"):
      registry.get("quality", "niqe", device="cpu")


class Hpsv3Test(absltest.TestCase):
  def test_hand_over(self):
    path = os.path.join(self.create_tempdir().full_path, "HPSv3.safetensors")
    with open(path, "wb") as file:
      file.write(b"weights")
    asked = []

    def reward(*, prompts, image_paths):
      asked.append((prompts, [picture.size for picture in image_paths]))
      return torch.tensor([[3.5, 0.1]] * len(prompts), dtype=torch.bfloat16)

    fake = types.ModuleType("hpsv3")
    fake.__spec__ = mock.Mock()
    fake.HPSv3RewardInferencer = mock.Mock(
      return_value=types.SimpleNamespace(reward=reward)
    )
    with mock.patch.dict(sys.modules, {"hpsv3": fake}):
      backend = registry.get(
        "quality", "hpsv3", weights=path, device="cpu", batch_size=2
      )
      scores = backend.score(utils.moving_square(3))
      backend.score(utils.moving_square(1), text="a cat")
      with self.assertRaisesRegex(errors.InputError, "real weights"):
        registry.get("quality", "hpsv3", weights="random")
    np.testing.assert_array_equal(scores, [3.5, 3.5, 3.5])
    self.assertEqual(asked[0], (["", ""], [(80, 48), (80, 48)]))
    self.assertEqual(asked[2][0], ["a cat"])
    fake.HPSv3RewardInferencer.assert_called_with(
      checkpoint_path=path, device="cpu"
    )


if __name__ == "__main__":
  absltest.main()
