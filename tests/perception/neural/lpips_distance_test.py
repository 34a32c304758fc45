# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""The real lpips package on a random backbone, CPU."""

import os
import warnings
from unittest import mock

import numpy as np
import pytest
from absl.testing import absltest, parameterized

from perception import errors, registry, roles
from tests.perception.neural import neural_test_utils as utils

torch = pytest.importorskip("torch", reason="needs the perception extra")
lpips = pytest.importorskip("lpips", reason="needs lpips")
torchvision = pytest.importorskip("torchvision", reason="needs torchvision")
pytestmark = pytest.mark.perception

_FILE = "alexnet-owt-7be5be79.pth"


def _backend(**settings):
  return registry.get(
    "perceptual_distance",
    "lpips",
    **{"weights": "random", "device": "cpu"} | settings,
  )


class LpipsTest(parameterized.TestCase):
  def test_distance(self):
    backend = _backend(batch_size=2)
    self.assertIsInstance(backend, roles.PerceptualDistanceBackend)
    images = utils.moving_square(3)
    same = backend.distance(images, images)
    self.assertEqual(same.shape, (3,))
    self.assertEqual(same.dtype, np.float32)
    np.testing.assert_array_equal(same, 0)
    other = backend.distance(images, images[::-1].copy())
    self.assertTrue((other[[0, 2]] > 0).all())
    self.assertEqual(other[1], 0)

  def test_empty(self):
    empty = np.zeros((0, 32, 48, 3), np.uint8)
    self.assertEqual(_backend().distance(empty, empty).shape, (0,))

  def test_equals_the_package_with_the_same_backbone(self):
    # The package reads torch.hub's folder; ours reads the same file.
    home = self.create_tempdir().full_path
    folder = os.path.join(home, "hub", "checkpoints")
    os.makedirs(folder)
    torch.manual_seed(3)
    torch.save(
      torchvision.models.alexnet().state_dict(), os.path.join(folder, _FILE)
    )
    images = utils.moving_square(2)
    with mock.patch.dict(os.environ, {"TORCH_HOME": home}):
      backend = _backend(weights="")
      with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = lpips.LPIPS(net="alex", verbose=False)
    self.assertRegex(backend.info.weights_sha256, "^[0-9a-f]{64}$")
    pixels = torch.from_numpy(images).permute(0, 3, 1, 2).float() / 255
    with torch.no_grad():
      expected = theirs(pixels[:1], pixels[1:], normalize=True)
    # Two ways to scale to [-1, 1]: rounding only.
    np.testing.assert_allclose(
      backend.distance(images[:1], images[1:]),
      expected.numpy().ravel(),
      rtol=1e-4,
    )

  @parameterized.named_parameters(
    ("small", np.zeros((1, 16, 40, 3), np.uint8)),
    ("float", np.zeros((1, 40, 40, 3), np.float32)),
    ("rank", np.zeros((40, 40, 3), np.uint8)),
  )
  def test_refused(self, images):
    with self.assertRaises(errors.InputError):
      _backend().distance(images, images)

  def test_shapes_must_agree(self):
    with self.assertRaises(errors.InputError):
      _backend().distance(
        np.zeros((1, 32, 32, 3), np.uint8), np.zeros((1, 32, 33, 3), np.uint8)
      )

  def test_missing_and_damaged(self):
    folder = self.create_tempdir().full_path
    with (
      mock.patch.dict(os.environ, {"TORCH_HOME": folder}),
      self.assertRaisesRegex(errors.InputError, "torchvision"),
    ):
      _backend(weights="")
    path = os.path.join(folder, _FILE)
    with open(path, "wb") as file:
      file.write(b"junk")
    with self.assertRaisesRegex(errors.InputError, "AlexNet"):
      _backend(weights=path)


if __name__ == "__main__":
  absltest.main()
