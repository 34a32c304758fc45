# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""The real SAM 2 video model with random weights, small input, CPU."""

import numpy as np
import pytest
from absl.testing import absltest, parameterized

from perception import errors, registry, roles
from tests.perception.neural import neural_test_utils as utils

torch = pytest.importorskip("torch", reason="needs the perception extra")
pytest.importorskip("transformers", reason="needs the perception extra")
pytestmark = pytest.mark.perception

_BACKENDS = {}


def _backend(side=128):
  if side not in _BACKENDS:
    _BACKENDS[side] = registry.get(
      "masks", "sam2", weights="random", device="cpu", image_size=side
    )
  return _BACKENDS[side]


def _point(object_id, x, y, row=0):
  return roles.ObjectPrompt(
    object_id,
    row,
    points=np.array([[x, y]], np.float32),
    labels=np.array([True]),
  )


def _box(object_id, row=0):
  return roles.ObjectPrompt(object_id, row, box=(40.0, 10.0, 55.0, 23.0))


class Sam2Test(parameterized.TestCase):
  def test_twelve_frames(self):
    clip = utils.clip(utils.moving_square(12))
    backend = _backend()
    self.assertIsInstance(backend, roles.MasksBackend)
    masks = backend.segment(clip, [_box(7)])
    self.assertEqual(masks.masks.shape, (1, 12, 48, 80))
    np.testing.assert_array_equal(masks.object_ids, [7])
    self.assertEqual(masks.provenance.weights_sha256, "random")
    self.assertFalse(backend.info.comparable_to_published)

  def test_equals_the_processors_own_session(self):
    frames = utils.moving_square(4)
    backend = _backend()
    ours = backend.segment(utils.clip(frames), [_point(7, 44, 16), _box(3)])
    processor, model = backend._processor, backend._model
    session = processor.init_video_session(
      video=list(frames), inference_device="cpu", dtype=torch.float32
    )
    processor.add_inputs_to_inference_session(
      session,
      0,
      obj_ids=[7],
      input_points=[[[[44.5, 16.5]]]],
      input_labels=[[[1]]],
    )
    processor.add_inputs_to_inference_session(
      session,
      0,
      obj_ids=[3],
      input_boxes=[[[40.5, 10.5, 55.5, 23.5]]],
    )
    session.obj_with_new_inputs = [7, 3]
    model(inference_session=session, frame_idx=0)
    for out in model.propagate_in_video_iterator(session):
      theirs = processor.post_process_masks(
        [out.pred_masks], original_sizes=[[48, 80]]
      )[0][:, 0]
      np.testing.assert_array_equal(
        ours.masks[:, out.frame_idx], theirs.numpy()
      )
    np.testing.assert_array_equal(ours.object_ids, [7, 3])

  def test_forgetting_changes_nothing(self):
    clip = utils.clip(utils.moving_square(7))
    backend = _backend()
    mask = np.zeros((48, 80), bool)
    mask[10:24, 40:56] = True
    prompts = [roles.ObjectPrompt(1, 0, mask=mask)]
    with pytest.MonkeyPatch.context() as patch:
      # A memory of three frames, so that a short clip outlives it.
      patch.setattr(backend._model, "num_maskmem", 3)
      patch.setattr(backend._model.config, "num_maskmem", 3)
      patch.setattr(backend._model.config, "max_object_pointers_in_encoder", 3)
      short = backend.segment(clip, prompts).masks
      patch.setattr("perception.neural.sam2_masks._forget", lambda *_: None)
      whole = backend.segment(clip, prompts).masks
    np.testing.assert_array_equal(short, whole)

  def test_a_mask_prompt_is_the_mask_of_its_frame(self):
    # A non-square frame and an off-centre object: any swap of axes or sides
    # would put it elsewhere. The model's grid has 128/80 and 128/48 cells a
    # pixel, its masks a quarter of that, so edges move by up to two pixels.
    clip = utils.clip(utils.moving_square(2))
    mask = np.zeros((48, 80), bool)
    mask[6:18, 52:72] = True
    found = _backend().segment(clip, [roles.ObjectPrompt(1, 0, mask=mask)])
    result = found.masks[0, 0]
    intersection = np.count_nonzero(result & mask)
    union = np.count_nonzero(result | mask)
    self.assertGreater(intersection / union, 0.8)
    self.assertFalse(result[:, :48].any())
    self.assertFalse(result[24:].any())

  def test_objects_that_start_later_are_empty_before(self):
    clip = utils.clip(utils.moving_square(4))
    mask = np.zeros((48, 80), bool)
    mask[6:18, 52:72] = True
    found = _backend().segment(
      clip,
      [
        roles.ObjectPrompt(5, 2, mask=mask),
        roles.ObjectPrompt(4, 0, mask=mask),
      ],
    )
    np.testing.assert_array_equal(found.object_ids, [5, 4])
    self.assertFalse(found.of(5)[:2].any())
    self.assertTrue(found.of(5)[2].any())
    self.assertTrue(found.of(4)[0].any())

  def test_objects_do_not_depend_on_each_other(self):
    clip = utils.clip(utils.moving_square(3))
    together = _backend().segment(clip, [_box(1), _point(2, 60, 30)])
    alone = _backend().segment(clip, [_point(2, 60, 30)])
    np.testing.assert_array_equal(together.of(2), alone.of(2))

  def test_one_frame(self):
    clip = utils.clip(utils.moving_square(1))
    self.assertEqual(
      _backend().segment(clip, [_box(1)]).masks.shape, (1, 1, 48, 80)
    )

  def test_prompts_of_one_object_are_combined(self):
    clip = utils.clip(utils.moving_square(1))
    both = _backend().segment(clip, [_box(1), _point(1, 44, 16)]).masks
    one = (
      _backend()
      .segment(
        clip,
        [
          roles.ObjectPrompt(
            1,
            0,
            box=(40.0, 10.0, 55.0, 23.0),
            points=np.array([[44, 16]], np.float32),
            labels=np.array([True]),
          )
        ],
      )
      .masks
    )
    np.testing.assert_array_equal(both, one)

  @parameterized.named_parameters(
    ("none", []),
    ("outside", [_point(1, 80, 16)]),
    ("row", [_point(1, 4, 4, row=3)]),
    ("negative row", [_point(1, 4, 4, row=-1)]),
    ("two boxes", [_box(1), _box(1)]),
    ("empty", [roles.ObjectPrompt(1)]),
    (
      "mask and box",
      [_box(1), roles.ObjectPrompt(1, 0, mask=np.ones((48, 80), bool))],
    ),
  )
  def test_refused(self, prompts):
    clip = utils.clip(utils.moving_square(2))
    with self.assertRaises(errors.InputError):
      _backend().segment(clip, prompts)

  def test_missing_weights_and_unknown_model(self):
    with self.assertRaisesRegex(errors.InputError, "hf download facebook/sam2"):
      registry.get("masks", "sam2", device="cpu", weights="facebook/absent")
    with self.assertRaisesRegex(errors.InputError, "model"):
      registry.get("masks", "sam2", model="sam9", weights="random")

  def test_saved_weights(self):
    folder = self.create_tempdir().full_path
    backend = _backend()
    backend._model.save_pretrained(folder)
    loaded = registry.get("masks", "sam2", weights=folder, device="cpu")
    self.assertRegex(loaded.info.weights_sha256, "^[0-9a-f]{64}$")
    clip = utils.clip(utils.moving_square(1))
    np.testing.assert_array_equal(
      loaded.segment(clip, [_box(1)]).masks,
      backend.segment(clip, [_box(1)]).masks,
    )
    with self.assertRaisesRegex(errors.InputError, "image_size"):
      registry.get(
        "masks", "sam2", weights=folder, device="cpu", image_size=256
      )


if __name__ == "__main__":
  absltest.main()
