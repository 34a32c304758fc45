# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Evaluation frame rows: where a physical view's image, depth, pose lie.

Source: EgoGenEval specification 12.5. The image file is the untouched
original and is reduced at load; the depth file is already reduced.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import math
import pathlib
from collections.abc import Mapping
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from perception import images
from perception.errors import InputError
from protocols.egogeneval import formats, frames, manifest

FORMAT_VERSION = "egogeneval-eval-assets-v0.2"
PREPROCESSING = "official-direct-target-rgbd-v0.2"


@dataclasses.dataclass(frozen=True, eq=False)
class StoredFrame:
  """A physical view on disk.

  Attributes:
    row: its evaluation frame row.
    folder: folder that relative paths refer to.
  """

  row: Mapping[str, Any]
  folder: pathlib.Path

  @property
  def image_path(self) -> pathlib.Path:
    """The original image."""
    return self.folder / str(self.row["image_path"])

  @property
  def pose_c2w(self) -> NDArray[np.float64]:
    """[4, 4] camera-to-world pose."""
    return np.asarray(self.row["extrinsics_c2w"], np.float64)

  @functools.cached_property
  def native(self) -> NDArray[np.uint8]:
    """The original image, RGB uint8."""
    return np.asarray(images.read_rgb(self.image_path), np.uint8)

  @property
  def native_intrinsics(self) -> NDArray[np.float64]:
    """[3, 3] at the original size: the plain factor of 4.2 undone."""
    native = np.array(self.row["intrinsics"], np.float64)
    native[:2] /= math.prod(self.row["resize_stages"])
    return native

  @functools.cached_property
  def frame(self) -> frames.EvaluationFrame:
    """The reduced evaluation frame.

    Raises:
      InputError: if a file is absent, damaged, or of another size or hash.
    """
    image = self.native
    for factor in self.row["resize_stages"]:
      image = np.asarray(
        cv2.resize(
          image, None, fx=factor, fy=factor, interpolation=cv2.INTER_LINEAR
        ),
        np.uint8,
      )
    self._check("image", image.shape[:2])
    path = self.folder / str(self.row["depth_path"])
    try:
      depth = np.asarray(np.load(path, allow_pickle=False), np.float32)
    except (OSError, ValueError) as error:
      raise InputError(
        path, "depth", found=error, expected="a float32 .npy file"
      ) from error
    self._check("depth", depth.shape)
    return frames.EvaluationFrame(
      image,
      depth,
      np.asarray(self.row["intrinsics"], np.float64),
      self.pose_c2w,
    )

  def _check(self, part: str, shape: tuple[int, ...]) -> None:
    expected = (self.row[f"{part}_height"], self.row[f"{part}_width"])
    if tuple(shape) != expected:
      raise InputError(
        self.image_path if part == "image" else self.row["depth_path"],
        f"{part} size",
        found=shape,
        expected=expected,
      )

  def verify(self) -> None:
    """Compares the files with the row's hashes.

    Raises:
      InputError: if one differs.
    """
    for name, path in (
      ("rgb_sha256", self.image_path),
      ("depth_sha256", self.folder / str(self.row["depth_path"])),
    ):
      found = formats.sha256_of_file(path)
      if found != self.row[name]:
        raise InputError(path, name, found=found, expected=self.row[name])


def asset_id(image_ref: str) -> str:
  """First 24 hex digits of the hash of an image reference."""
  return hashlib.sha256(image_ref.encode("utf-8")).hexdigest()[:24]


def read(path: pathlib.Path) -> dict[str, StoredFrame]:
  """Frames of a file, by image reference.

  Raises:
    InputError: for a malformed or repeated row.
  """
  found: dict[str, StoredFrame] = {}
  for field, row in formats.read_rows(path, formats.EVALUATION_FRAME):
    if row["image_ref"] in found:
      raise InputError(
        path,
        f"{field}, image_ref",
        found=f"{row['image_ref']} again",
        expected="each frame once",
      )
    found[row["image_ref"]] = StoredFrame(row, path.parent)
  return found


def of_case(
  stored: Mapping[str, StoredFrame], reference: manifest.ImageRef
) -> StoredFrame:
  """The stored frame of an image of a case; InputError if it is absent."""
  if reference.path not in stored:
    raise InputError(
      "evaluation frames",
      "image_ref",
      found=f"no row for {reference.path}",
      expected="a row for every image of the selected cases",
    )
  return stored[reference.path]
