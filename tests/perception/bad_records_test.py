# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Every way in which a record's file can be wrong ends in one clear line."""

import io
import pathlib
import zipfile

import numpy as np
from absl.testing import absltest, parameterized

from perception import errors
from tests.perception import media, records


def _set(key, value):
  def change(arrays):
    arrays[key] = np.asarray(value)

  return change


def _drop(key):
  return lambda arrays: arrays.pop(key)


def _put(key, position, value):
  def change(arrays):
    arrays[key] = arrays[key].copy()
    arrays[key][position] = value

  return change


def _apply(key, function):
  def change(arrays):
    arrays[key] = function(arrays[key])

  return change


_REFLECTION = np.diag([1.0, 1.0, -1.0, 1.0])

# name: (record, change of its arrays, field, words of the message)
_CASES = {
  "nan_poses": (
    records.geometry,
    _put("c2w", (1, 0, 3), np.nan),
    "c2w",
    "non-finite",
  ),
  "non_rigid_pose": (
    records.geometry,
    _put("c2w", (1, 0, 0), 2.0),
    "c2w",
    "orthonormal",
  ),
  "reflected_pose": (
    records.geometry,
    _apply("c2w", lambda c2w: c2w @ _REFLECTION),
    "c2w",
    "reflection",
  ),
  "pose_3x4": (
    records.geometry,
    _apply("c2w", lambda c2w: c2w[:, :3]),
    "c2w",
    r"shape \(3, 3, 4\)",
  ),
  "pose_last_row": (
    records.geometry,
    _put("c2w", (2, 3, 0), 0.5),
    "c2w",
    "last row",
  ),
  "inf_depth": (
    records.geometry,
    _put("depth", (0, 1, 1), np.inf),
    "depth",
    "1 infinite",
  ),
  "zero_depth": (
    records.geometry,
    _put("depth", (0, 1, slice(2, 4)), 0.0),
    "depth",
    "2 values <= 0",
  ),
  "negative_depth": (
    records.geometry,
    _put("depth", (0, 0, 1), -1.0),
    "depth",
    "1 values <= 0",
  ),
  "all_invalid_depth": (
    records.geometry,
    _apply("depth", lambda depth: np.full_like(depth, np.nan)),
    "depth",
    "no valid pixel",
  ),
  "integer_depth": (
    records.geometry,
    _apply("depth", lambda depth: np.ones(depth.shape, np.uint16)),
    "depth",
    "uint16",
  ),
  "depth_frame_count": (
    records.geometry,
    _apply("depth", lambda depth: depth[:2]),
    "depth",
    r"shape \(2, 4, 6\)",
  ),
  "one_depth_map": (
    records.geometry,
    _apply("depth", lambda depth: depth[0]),
    "depth",
    r"shape \(4, 6\)",
  ),
  "confidence_shape": (
    records.geometry,
    _apply("confidence", lambda c: c[:, :3]),
    "confidence",
    r"shape \(3, 3, 6\)",
  ),
  "negative_confidence": (
    records.geometry,
    _put("confidence", (0, 0, 0), -1.0),
    "confidence",
    "negative",
  ),
  "zero_focal": (
    records.geometry,
    _put("intrinsics", (1, 0, 0), 0.0),
    "intrinsics",
    "focal length 0",
  ),
  "nan_intrinsics": (
    records.geometry,
    _put("intrinsics", (1, 0, 2), np.nan),
    "intrinsics",
    "non-finite",
  ),
  "intrinsics_transposed": (
    records.geometry,
    _apply("intrinsics", lambda k: np.swapaxes(k, 1, 2).copy()),
    "intrinsics",
    "below the diagonal",
  ),
  "shuffled_frames": (
    records.geometry,
    _set("frame_indices", [0, 10, 5]),
    "frame_indices",
    "10 followed by 5",
  ),
  "repeated_frame": (
    records.geometry,
    _set("frame_indices", [0, 5, 5]),
    "frame_indices",
    "5 followed by 5",
  ),
  "negative_frame": (
    records.geometry,
    _set("frame_indices", [-1, 5, 6]),
    "frame_indices",
    "-1",
  ),
  "fractional_frames": (
    records.geometry,
    _set("frame_indices", [0.0, 1.5, 2.0]),
    "frame_indices",
    "float64",
  ),
  "no_frames": (
    records.geometry,
    _set("frame_indices", np.zeros(0, np.int32)),
    "frame_indices",
    "no frame",
  ),
  "unknown_unit": (records.geometry, _set("unit", "feet"), "unit", "feet"),
  "video_size": (
    records.geometry,
    _set("video_size", [0, 28]),
    "video_size",
    "height, width",
  ),
  "crop_larger_than_frame": (
    records.geometry,
    _set("resized_size", [3, 7]),
    "resized_size",
    "at least the depth size",
  ),
  "missing_key": (records.geometry, _drop("c2w"), "c2w", "only the keys"),
  "unknown_key": (records.geometry, _set("pose", 1), "keys", "pose"),
  "no_schema": (
    records.geometry,
    _drop("schema_version"),
    "schema_version",
    "None",
  ),
  "newer_schema": (
    records.geometry,
    _set("schema_version", 99),
    "schema_version",
    "99",
  ),
  "no_backend": (
    records.geometry,
    _drop("backend"),
    "backend",
    "only the keys",
  ),
  "settings_not_json": (
    records.geometry,
    _set("settings", "{"),
    "settings",
    "JSON",
  ),
  "masks_of_255": (
    records.masks,
    _apply("masks", lambda m: m.astype(np.uint8) * 255),
    "masks",
    "uint8",
  ),
  "masks_without_object_axis": (
    records.masks,
    _apply("masks", lambda m: m[0]),
    "masks",
    r"shape \(3, 4, 6\)",
  ),
  "duplicate_ids": (
    records.masks,
    _set("object_ids", [3, 3]),
    "object_ids",
    "distinct",
  ),
  "id_count": (records.masks, _set("object_ids", [3]), "masks", "shape"),
  "nan_track": (
    records.tracks,
    _put("xy", (1, 1, 0), np.nan),
    "xy",
    "1 non-finite",
  ),
  "visible_numbers": (
    records.tracks,
    _apply("visible", lambda v: v.astype(np.float32)),
    "visible",
    "float32",
  ),
  "confidence_above_one": (
    records.tracks,
    _put("confidence", (0, 0), 1.5),
    "confidence",
    "outside",
  ),
  "query_outside": (
    records.tracks,
    _put("query_frame", 0, 3),
    "query_frame",
    r"rows in 0\.\.2",
  ),
  "track_ids": (records.tracks, _set("object_ids", [1]), "object_ids", "shape"),
  "not_unit_norm": (
    records.features,
    _apply("patches", lambda p: 2 * p),
    "patches",
    "differs from 1",
  ),
  "patches_beyond_image": (
    records.features,
    _set("image_size", [20, 42]),
    "patch_size",
    "inside the image",
  ),
  "box_without_extent": (
    records.detections,
    _put("boxes", (0, 2), 0.0),
    "boxes",
    "extent",
  ),
  "label_count": (records.detections, _set("labels", ["a"]), "labels", "shape"),
}


class BadRecordsTest(parameterized.TestCase):
  """One wrong thing at a time, in a file."""

  def setUp(self):
    super().setUp()
    self.path = pathlib.Path(self.create_tempdir().full_path) / "bad.npz"

  @parameterized.named_parameters(
    (name, *case) for name, case in _CASES.items()
  )
  def test_refused(self, make, change, field, words):
    record = make()
    arrays = record.to_arrays()
    change(arrays)
    np.savez(self.path, **arrays)
    with self.assertRaisesRegex(errors.InputError, words) as caught:
      type(record).load(self.path)
    self.assertEqual(caught.exception.field, field)
    self.assertEqual(caught.exception.source, str(self.path))
    self.assertNotIn("\n", str(caught.exception))

  def _assert_refused(self, words):
    with self.assertRaisesRegex(errors.InputError, words) as caught:
      type(records.geometry()).load(self.path)
    self.assertIn("bad.npz", str(caught.exception))

  def test_no_file(self):
    self._assert_refused("no file")

  def test_not_an_archive(self):
    self.path.write_text("depth")
    self._assert_refused("not an .npz")

  def test_bare_npy(self):
    with self.path.open("wb") as stream:
      np.save(stream, np.zeros(3))
    self._assert_refused("not an .npz")

  def test_objects_are_never_unpickled(self):
    class Trap:
      """Would raise when unpickled."""

      def __reduce__(self):
        return (_explode, ())

    arrays = records.geometry().to_arrays()
    arrays["unit"] = np.array([Trap()], dtype=object)
    np.savez(self.path, **arrays)
    self._assert_refused("Python objects")

  def test_pickle_named_like_an_array(self):
    records.geometry().save(self.path)
    with zipfile.ZipFile(self.path, "a") as archive:
      archive.writestr("extra.npy", b"\x80\x04K\x01.")
    self._assert_refused("extra")

  def test_cut_file(self):
    records.geometry().save(self.path)
    data = self.path.read_bytes()
    self.path.write_bytes(data[: len(data) // 2])
    self._assert_refused("an .npz")

  @parameterized.parameters(False, True)
  def test_flipped_bit(self, compressed):
    arrays = records.geometry().to_arrays()
    save = np.savez_compressed if compressed else np.savez
    save(self.path, **arrays)
    with zipfile.ZipFile(self.path) as archive:
      entry = archive.getinfo("depth.npy")
    data = bytearray(self.path.read_bytes())
    header = 30 + len(entry.filename) + 20
    data[entry.header_offset + header + entry.compress_size // 2] ^= 0x10
    self.path.write_bytes(data)
    self._assert_refused("damaged")

  def test_huge_header_does_not_allocate(self):
    stream = io.BytesIO()
    header = {"descr": "<f4", "fortran_order": False, "shape": (1 << 45,)}
    np.lib.format.write_array_header_1_0(stream, header)
    with zipfile.ZipFile(self.path, "w") as archive:
      archive.writestr("depth.npy", stream.getvalue())
    self._assert_refused("depth")


def _explode():
  raise AssertionError("unpickled")


class HealthyOddRecordsTest(absltest.TestCase):
  """What looks odd and is right."""

  def test_frame_without_depth_and_object_never_seen(self):
    arrays = records.geometry().to_arrays()
    arrays["depth"] = arrays["depth"].copy()
    arrays["depth"][1] = np.nan
    record = type(records.geometry()).from_arrays(arrays, source="x")
    self.assertTrue(np.isnan(record.depth[1]).all())
    arrays = records.masks().to_arrays()
    arrays["masks"] = np.zeros_like(arrays["masks"])
    self.assertFalse(
      type(records.masks()).from_arrays(arrays, source="x").masks.any()
    )

  def test_seven_scenes_rotations_are_rounded(self):
    arrays = records.geometry().to_arrays()
    arrays["c2w"] = np.round(media.poses(3), 4)
    type(records.geometry()).from_arrays(arrays, source="x")


if __name__ == "__main__":
  absltest.main()
