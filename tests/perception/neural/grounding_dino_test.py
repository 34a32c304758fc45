# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""The real Grounding DINO classes with tiny random weights, CPU."""

import numpy as np
import pytest
from absl.testing import absltest, parameterized

from perception import errors, registry, roles
from perception.neural import grounding_dino
from tests.perception.neural import neural_test_utils as utils

torch = pytest.importorskip("torch", reason="needs the perception extra")
pytest.importorskip("transformers", reason="needs the perception extra")
pytestmark = pytest.mark.perception

_BACKENDS = {}


def _backend(**settings):
  key = tuple(sorted(settings.items()))
  if key not in _BACKENDS:
    _BACKENDS[key] = registry.get(
      "detections",
      "grounding_dino",
      weights="random",
      device="cpu",
      **settings,
    )
  return _BACKENDS[key]


class QueryTest(parameterized.TestCase):
  def test_text(self):
    self.assertEqual(
      grounding_dino.query_text(["A Cat", " dog. "]), "a cat . dog ."
    )

  @parameterized.parameters([[]], [[""]], [["a", " . "]], [["a. b"]])
  def test_refused(self, phrases):
    with self.assertRaisesRegex(errors.InputError, "phrases"):
      grounding_dino.query_text(phrases)


class DetectTest(parameterized.TestCase):
  def test_boxes_lie_in_a_wide_image(self):
    backend = _backend(box_threshold=0.0, text_threshold=0.0)
    self.assertIsInstance(backend, roles.DetectionsBackend)
    image = utils.moving_square(1)[0]
    found = backend.detect(image, ["a yellow square", "wall"])
    self.assertEqual(found.video_size, (48, 80))
    self.assertGreater(len(found.boxes), 0)
    self.assertTrue((found.boxes[:, :2] >= -0.5).all())
    self.assertTrue((found.boxes[:, 2] <= 79.5).all())
    self.assertTrue((found.boxes[:, 3] <= 47.5).all())
    self.assertLen(found.labels, len(found.boxes))

  def test_boxes_are_the_processors_minus_half_a_pixel(self):
    backend = _backend(box_threshold=0.0, text_threshold=0.0)
    # One query forced onto a known box: centre (0.75, 0.25), 0.2 x 0.3.
    image = utils.moving_square(1)[0]

    def fixed(*_, **inputs):
      out = net(**inputs)
      out.pred_boxes[0, 0] = torch.tensor([0.75, 0.25, 0.2, 0.3])
      return out

    net = backend._net
    backend._net = fixed
    try:
      found = backend.detect(image, ["a"])
    finally:
      backend._net = net
    # x: 80 (0.75 -+ 0.1) - 0.5, y: 48 (0.25 -+ 0.15) - 0.5.
    np.testing.assert_allclose(
      found.boxes[0], [51.5, 4.3, 67.5, 18.7], atol=1e-4
    )

  def test_nothing_above_the_threshold(self):
    found = _backend(box_threshold=1.0).detect(utils.moving_square(1)[0], ["a"])
    self.assertEqual(found.boxes.shape, (0, 4))
    self.assertEqual(found.labels.shape, (0,))

  def test_deterministic(self):
    image = utils.moving_square(1)[0]
    backend = _backend(box_threshold=0.0, text_threshold=0.0)
    np.testing.assert_array_equal(
      backend.detect(image, ["a"]).boxes, backend.detect(image, ["a"]).boxes
    )

  @parameterized.parameters(
    (np.zeros((4, 4), np.uint8),), (np.zeros((4, 4, 3), np.float32),)
  )
  def test_other_pictures_are_refused(self, image):
    with self.assertRaisesRegex(errors.InputError, "uint8"):
      _backend().detect(image, ["a"])

  def test_missing(self):
    with self.assertRaisesRegex(
      errors.InputError, "hf download IDEA-Research/grounding-dino-base"
    ):
      registry.get("detections", "grounding_dino", device="cpu")


if __name__ == "__main__":
  absltest.main()
