# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""The real DINOv2 and DINOv3 classes with tiny random weights, CPU."""

import numpy as np
import pytest
from absl.testing import absltest, parameterized

from perception import errors, registry, roles
from tests.perception.neural import neural_test_utils as utils

torch = pytest.importorskip("torch", reason="needs the perception extra")
transformers = pytest.importorskip(
  "transformers", reason="needs the perception extra"
)
pytestmark = pytest.mark.perception


def _backend(name, **settings):
  return registry.get(
    "features", name, weights="random", device="cpu", **settings
  )


class DinoTest(parameterized.TestCase):
  @parameterized.parameters(("dinov2", 14, (16, 16)), ("dinov3", 16, (14, 14)))
  def test_shapes_of_a_wide_clip(self, name, patch, grid):
    backend = _backend(name, batch_size=2)
    self.assertIsInstance(backend, roles.FeaturesBackend)
    features = backend.extract(utils.clip(utils.moving_square(3)))
    self.assertEqual(features.patches.shape, (3, *grid, 64))
    self.assertEqual(features.pooled.shape, (3, 64))
    self.assertEqual(features.patch_size, (patch, patch))
    self.assertEqual(features.image_size, (224, 224))
    self.assertFalse(backend.info.comparable_to_published)

  @parameterized.parameters("dinov2", "dinov3")
  def test_tokens_lie_where_the_picture_changes(self, name):
    # A wide picture, changed in its upper right: the tokens there move most.
    backend = _backend(name, image_size=(112, 224), resize="area")
    plain = np.full((1, 56, 112, 3), 90, np.uint8)
    changed = plain.copy()
    changed[0, 8:14, 84:98] = 250
    a, _ = backend.tokens(utils.clip(plain))
    b, _ = backend.tokens(utils.clip(changed))
    moved = np.linalg.norm(a - b, axis=-1)[0]
    row, column = np.unravel_index(np.argmax(moved), moved.shape)
    rows, columns = moved.shape
    self.assertBetween((row + 0.5) / rows * 56, 5, 16)
    self.assertBetween((column + 0.5) / columns * 112, 80, 101)

  @parameterized.parameters("dinov2", "dinov3")
  def test_batches_do_not_change_the_answer(self, name):
    clip = utils.clip(utils.moving_square(3))
    one = _backend(name, batch_size=1).extract(clip)
    all_ = _backend(name, batch_size=8).extract(clip)
    np.testing.assert_allclose(one.patches, all_.patches, atol=1e-5)
    np.testing.assert_allclose(one.pooled, all_.pooled, atol=1e-5)

  def test_pooled_is_the_class_token_and_patches_skip_the_registers(self):
    backend = _backend("dinov3", resize="area")
    clip = utils.clip(utils.moving_square(1))
    batch = next(backend._batches(clip))
    with torch.no_grad():
      out = backend._net(pixel_values=batch).last_hidden_state[0]
    patches, pooled = backend.tokens(clip)
    np.testing.assert_allclose(pooled[0], out[0], atol=1e-5)
    np.testing.assert_allclose(patches[0].reshape(-1, 64), out[5:], atol=1e-5)
    # A record holds unit patches, and how long they were.
    found = backend.extract(clip)
    assert found.patch_norms is not None
    whole = found.patches * found.patch_norms[..., None]
    np.testing.assert_allclose(whole, patches, atol=1e-5)

  def test_processor_equals_the_models_own(self):
    frame = utils.moving_square(1)[0]
    ours = _backend("dinov3")._prepare(frame)
    theirs = transformers.DINOv3ViTImageProcessor()(
      images=[frame], return_tensors="pt"
    )["pixel_values"][0]
    self.assertTrue(torch.equal(ours, theirs))

  def test_saved_weights(self):
    folder = self.create_tempdir().full_path
    backend = _backend("dinov2")
    backend._net.save_pretrained(folder)
    loaded = registry.get("features", "dinov2", weights=folder, device="cpu")
    clip = utils.clip(utils.moving_square(1))
    np.testing.assert_array_equal(
      loaded.extract(clip).patches, backend.extract(clip).patches
    )
    self.assertTrue(loaded.info.comparable_to_published)

  @parameterized.named_parameters(
    ("size", {"image_size": (120, 160)}),
    ("family", {"model": "dinov3-vitl16"}),
    ("resize", {"resize": "crop"}),
    ("batch", {"batch_size": 0}),
  )
  def test_refused(self, settings):
    with self.assertRaises(errors.InputError):
      _backend("dinov2", **settings)

  def test_missing(self):
    with self.assertRaisesRegex(errors.InputError, "DINOv3 License.*gated"):
      registry.get("features", "dinov3", device="cpu")


if __name__ == "__main__":
  absltest.main()
