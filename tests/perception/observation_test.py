# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Records: round trips, conversions, selection, and the intrinsics rescale."""

import dataclasses
import pathlib

import hypothesis
import numpy as np
from absl.testing import absltest, parameterized
from hypothesis import strategies

from perception import errors, observation
from tests.perception import records

_SIZES = strategies.integers(1, 4000)


class RoundTripTest(parameterized.TestCase):
  """What is saved comes back."""

  def setUp(self):
    super().setUp()
    self.path = pathlib.Path(self.create_tempdir().full_path) / "a.npz"

  @parameterized.parameters(*records.ALL)
  def test_npz(self, make):
    record = make()
    record.save(self.path)
    loaded = type(record).load(self.path)
    self.assertEqual(loaded.provenance, record.provenance)
    for field in dataclasses.fields(record):
      if field.name != "provenance":
        before = getattr(record, field.name)
        after = getattr(loaded, field.name)
        np.testing.assert_array_equal(before, after, err_msg=field.name)
        self.assertIs(type(after), type(before))
        if isinstance(before, np.ndarray) and before.dtype.kind != "U":
          self.assertEqual(after.dtype, before.dtype)

  @parameterized.parameters(*records.ALL)
  def test_same_record_gives_same_bytes(self, make):
    make().save(self.path)
    first = self.path.read_bytes()
    make().save(self.path)
    self.assertEqual(self.path.read_bytes(), first)
    self.assertEqual([p.name for p in self.path.parent.iterdir()], ["a.npz"])

  def test_written_by_hand(self):
    """Keys of the contract only; other precisions are converted."""
    np.savez(
      self.path,
      depth=np.ones((1, 2, 3), np.float64),
      intrinsics=np.eye(3)[None],
      c2w=np.eye(4, dtype=np.float32)[None],
      frame_indices=np.array([4], np.uint8),
      video_size=np.array([20, 30]),
      unit="metre",
      schema_version=1,
      source_sha256="",
      backend="mine",
      backend_version="0",
    )
    record = observation.Geometry.load(self.path)
    self.assertEqual(record.depth.dtype, np.float32)
    self.assertEqual(record.c2w.dtype, np.float64)
    self.assertEqual(record.frame_indices.dtype, np.int32)
    self.assertEqual(record.video_size, (20, 30))
    self.assertIsNone(record.confidence)
    self.assertEqual(record.provenance.settings, {})

  def test_writing_where_no_file_can_be(self):
    self.path.touch()
    with self.assertRaisesRegex(errors.InputError, "can be written"):
      records.masks().save(self.path / "b.npz")


class RecordTest(parameterized.TestCase):
  """Selection and sizes."""

  def test_geometry_select(self):
    record = records.geometry()
    part = record.select([0, 2])
    np.testing.assert_array_equal(part.frame_indices, [0, 10])
    np.testing.assert_array_equal(part.depth, record.depth[[0, 2]])
    np.testing.assert_array_equal(part.confidence, record.confidence[[0, 2]])
    with self.assertRaises(errors.InputError):
      record.select([2, 0])

  def test_geometry_sizes(self):
    record = records.geometry()
    self.assertEqual(record.depth_size, (4, 6))
    self.assertEqual(record.full_size, (5, 7))
    plain = dataclasses.replace(record, resized_size=None)
    self.assertEqual(plain.full_size, (4, 6))

  def test_masks_of_an_object(self):
    record = records.masks()
    np.testing.assert_array_equal(record.of(9), record.masks[1])
    with self.assertRaisesRegex(errors.InputError, "no object 1"):
      record.of(1)
    np.testing.assert_array_equal(
      record.select([1]).masks, record.masks[:, [1]]
    )

  def test_tracks_of_an_object(self):
    record = records.tracks()
    part = record.of(-1)
    np.testing.assert_array_equal(part.xy, record.xy[:, [1]])
    self.assertEqual(part.query_frame.tolist(), [1])
    anonymous = dataclasses.replace(record, object_ids=None)
    with self.assertRaisesRegex(errors.InputError, "object_ids"):
      anonymous.of(1)

  def test_tracks_select_moves_queries_to_kept_frames(self):
    record = records.tracks()
    part = record.select([0, 2])
    self.assertEqual(part.query_frame.tolist(), [0, 1, 1])
    np.testing.assert_array_equal(part.frame_indices, [0, 2])

  def test_no_points_and_no_boxes(self):
    empty = records.tracks()
    none = np.zeros(3, bool)
    empty = dataclasses.replace(
      empty,
      xy=empty.xy[:, none],
      visible=empty.visible[:, none],
      confidence=empty.confidence[:, none],
      query_frame=empty.query_frame[none],
      object_ids=None,
    )
    self.assertEqual(empty.xy.shape, (3, 0, 2))
    boxes = observation.Detections(
      boxes=np.zeros((0, 4)),
      scores=np.zeros(0),
      labels=np.array([]),
      provenance=records.PROVENANCE,
    )
    self.assertEqual(boxes.labels.dtype.kind, "U")


class RescaleIntrinsicsTest(parameterized.TestCase):
  """The one function that rescales K."""

  def test_by_hand(self):
    """Half the size: 100 -> 50, (320 + 0.5) / 2 - 0.5 = 159.75."""
    matrix = np.array([[100.0, 2.0, 320.0], [0, 80.0, 240.0], [0, 0, 1]])
    found = observation.rescale_intrinsics(
      matrix, from_size=(480, 640), to_size=(240, 320)
    )
    expected = [[50, 1, 159.75], [0, 40, 119.75], [0, 0, 1]]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)

  @hypothesis.settings(max_examples=100, deadline=None)
  @hypothesis.given(
    sizes=strategies.tuples(_SIZES, _SIZES, _SIZES, _SIZES),
    focal=strategies.tuples(
      strategies.floats(10, 5000), strategies.floats(10, 5000)
    ),
    centre=strategies.tuples(
      strategies.floats(-100, 4000), strategies.floats(-100, 4000)
    ),
    ray=strategies.tuples(strategies.floats(-2, 2), strategies.floats(-2, 2)),
  )
  def test_projection_moves_with_the_picture(self, sizes, focal, centre, ray):
    """A ray's pixel, as a share of the picture's width, does not move."""
    before, after = sizes[:2], sizes[2:]
    matrix = np.array(
      [[focal[0], 0.5, centre[0]], [0, focal[1], centre[1]], [0, 0, 1]]
    )
    scaled = observation.rescale_intrinsics(
      matrix, from_size=before, to_size=after
    )
    direction = np.array([*ray, 1.0])
    share_before = ((matrix @ direction)[:2] + 0.5) / before[::-1]
    share_after = ((scaled @ direction)[:2] + 0.5) / after[::-1]
    np.testing.assert_allclose(share_after, share_before, rtol=1e-9, atol=1e-9)
    back = observation.rescale_intrinsics(
      scaled, from_size=after, to_size=before
    )
    np.testing.assert_allclose(back, matrix, rtol=1e-9, atol=1e-6)

  def test_same_size_batch_and_dtype(self):
    matrix = np.tile(np.eye(3, dtype=np.float32) * 7, (2, 5, 1, 1))
    found = observation.rescale_intrinsics(
      matrix, from_size=(3, 4), to_size=(3, 4)
    )
    np.testing.assert_array_equal(found, matrix)
    self.assertEqual(found.dtype, np.float32)
    self.assertIsNot(found, matrix)

  @parameterized.parameters(((0, 4), (3, 4)), ((3, 4), (3, -4)))
  def test_bad_sizes(self, before, after):
    with self.assertRaises(errors.InputError):
      observation.rescale_intrinsics(np.eye(3), from_size=before, to_size=after)

  def test_integer_matrix(self):
    with self.assertRaisesRegex(errors.InputError, "floating"):
      observation.rescale_intrinsics(
        np.eye(3, dtype=int), from_size=(3, 4), to_size=(6, 8)
      )


class PatchNormsTest(absltest.TestCase):
  def test_norms_are_optional_kept_and_checked(self):
    plain = records.features()
    self.assertIsNone(plain.patch_norms)
    norms = np.arange(1, 1 + plain.patches[..., 0].size, dtype=np.float32)
    norms = norms.reshape(plain.patches.shape[:3])
    found = dataclasses.replace(plain, patch_norms=norms)
    path = pathlib.Path(self.create_tempdir().full_path) / "features.npz"
    found.save(path)
    loaded = observation.Features.load(path)
    np.testing.assert_array_equal(loaded.patch_norms, norms)
    np.testing.assert_array_equal(loaded.select([1]).patch_norms, norms[1:])
    with self.assertRaisesRegex(errors.InputError, "patch_norms"):
      dataclasses.replace(plain, patch_norms=norms[:1])


if __name__ == "__main__":
  absltest.main()
