# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""A recording with the cameras that its own pictures and depth imply.

Hand-held depth cameras come with depth that is not registered to colour and
with one focal length for both. A perfect generator of such a recording would
be marked down for that; `protocols.egogeneval.recording_calibration` measures
it from the recording, and this is the recording afterwards.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from absl import logging
from numpy.typing import NDArray

from perception.recorded import RgbdFolder
from protocols.egogeneval import recording_calibration, scenes


class CalibratedRecording:
  """A `fused_depth.PosedDepthSource` seen by the colour camera alone."""

  def __init__(self, source: RgbdFolder) -> None:
    """Estimates the cameras; takes a minute or two for 60 frames.

    Args:
      source: the recording; its intrinsics and poses are taken to be those of
        the depth camera.

    Raises:
      InputError: too few features with depth match between its frames.
    """
    frames = tuple(
      scenes.SceneFrame(
        frame_id=name,
        path=path,
        reference=path.name,
        pose_c2w=np.asarray(source.c2w[row], np.float64),
        intrinsics=np.asarray(source.intrinsics[row], np.float64),
        read_depth=functools.partial(source.depth, row),
      )
      for row, (name, path) in enumerate(
        zip(source.names, source.colour_files, strict=True)
      )
    )
    scene = scenes.Scene("synthetic", source.name, frames, "as recorded")
    found, self.report = recording_calibration.calibrated(scene)
    logging.info("%s", recording_calibration.summary(self.report).strip())
    self._frames = found.frames
    self.size = source.size
    self.intrinsics: NDArray[np.floating[Any]] = np.stack(
      [frame.intrinsics for frame in self._frames]
    )
    self.c2w: NDArray[np.floating[Any]] = np.stack(
      [frame.pose_c2w for frame in self._frames]
    )

  def __len__(self) -> int:
    return len(self._frames)

  def rgb(self, row: int) -> NDArray[np.uint8]:
    """[H, W, 3] as a pinhole camera would show it."""
    return self._frames[row].image()

  @functools.lru_cache(maxsize=256)  # noqa: B019 - lives as long as the source
  def depth(self, row: int) -> NDArray[np.floating[Any]]:
    """[H, W] in the colour camera, NaN = unknown."""
    return self._frames[row].read_depth()
