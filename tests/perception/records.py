# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""One small valid record of each kind."""

import numpy as np

from perception import observation
from tests.perception import media

PROVENANCE = observation.Provenance(
  source_sha256="ab" * 32,
  backend="drawn",
  backend_version="1.2",
  weights_sha256="cd" * 32,
  settings={"size": [1, 2], "name": "x", "rate": 0.5},
)


def geometry() -> observation.Geometry:
  """Three frames of 4x6, two pixels without depth."""
  generator = np.random.default_rng(0)
  depth = generator.uniform(1, 3, (3, 4, 6)).astype(np.float32)
  depth[1, 2, 3] = depth[2, 0, 0] = np.nan
  return observation.Geometry(
    depth=depth,
    intrinsics=np.tile(media.INTRINSICS.astype(np.float32), (3, 1, 1)),
    c2w=media.poses(3),
    frame_indices=np.array([0, 5, 10], np.int32),
    video_size=(20, 28),
    unit="arbitrary",
    provenance=PROVENANCE,
    confidence=generator.uniform(0, 5, (3, 4, 6)).astype(np.float32),
    resized_size=(5, 7),
  )


def masks() -> observation.Masks:
  """Two objects in three frames of 4x6; the second is lost in the last."""
  array = np.random.default_rng(1).random((2, 3, 4, 6)) > 0.5
  array[1, 2] = False
  return observation.Masks(
    masks=array,
    object_ids=np.array([3, 9], np.int32),
    frame_indices=np.arange(3, dtype=np.int32),
    provenance=PROVENANCE,
  )


def tracks() -> observation.Tracks:
  """Three points in three frames."""
  generator = np.random.default_rng(2)
  return observation.Tracks(
    xy=generator.uniform(0, 20, (3, 3, 2)).astype(np.float32),
    visible=np.array([[1, 0, 0], [1, 1, 0], [0, 1, 1]], bool),
    confidence=generator.uniform(0, 1, (3, 3)).astype(np.float32),
    query_frame=np.array([0, 1, 2], np.int32),
    provenance=PROVENANCE,
    object_ids=np.array([1, -1, 1], np.int32),
    video_size=(20, 28),
  )


def features() -> observation.Features:
  """Two frames of 2x3 patches."""
  patches = np.random.default_rng(3).normal(size=(2, 2, 3, 5))
  patches /= np.linalg.norm(patches, axis=-1, keepdims=True)
  return observation.Features(
    patches=patches.astype(np.float32),
    pooled=patches.mean(axis=(1, 2)).astype(np.float32),
    patch_size=(14, 14),
    image_size=(28, 42),
    provenance=PROVENANCE,
  )


def detections() -> observation.Detections:
  """Two boxes."""
  return observation.Detections(
    boxes=np.array([[0, 0, 5, 5], [1.5, 2, 3, 9]], np.float32),
    scores=np.array([0.9, 0.2], np.float32),
    labels=np.array(["a red cup", "Täßchen"]),
    provenance=PROVENANCE,
    video_size=(20, 28),
    frame_index=4,
  )


ALL = (geometry, masks, tracks, features, detections)
