# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""The geometry of MegaSaM, read from the files that it leaves.

MegaSaM cannot be installed here; it is run elsewhere, and this backend reads
its result for a clip: `<stem>_sgd_cvd_hr.npz` (consistent video depth) or
else `<stem>_droid.npz`, with `depths [T, h, w]`, `intrinsic [3, 3]` for the
whole clip and `cam_c2w [T, 4, 4]`. Frames were resized to about 384 x 512
pixels of area, then cut at the bottom and right to multiples of 8
(specs/perception.md 12, specs/pdi_bench.md 1.4). At most 1000 frames exist.
"""

from __future__ import annotations

import hashlib
import math
import os
import pathlib

import numpy as np

from perception import errors, observation, registry, roles, storage

VERSION = "1"
_AREA = 384 * 512
_MULTIPLE = 8
_SUFFIXES = ("_sgd_cvd_hr.npz", "_droid.npz")


class MegaSamGeometry:
  """The `geometry` role from a folder of MegaSaM's results."""

  def __init__(
    self, *, folder: str | os.PathLike[str], half_pixel: bool = True
  ) -> None:
    """Opens the folder.

    Args:
      folder: holds the `.npz` files of the clips, named by their file stems.
      half_pixel: move the principal point from MegaSaM's corner origin to
        pixel centres. False keeps the stored numbers, as the released PDI
        code does.

    Raises:
      InputError: no such folder.
    """
    self._folder = pathlib.Path(folder)
    self._shift = 0.5 if half_pixel else 0.0
    if not self._folder.is_dir():
      raise errors.InputError(
        folder, "folder", found="no folder", expected="results of MegaSaM"
      )
    files = sorted(self._folder.glob("*.npz"))
    listing = [(f.name, f.stat().st_size, f.stat().st_mtime_ns) for f in files]
    digest = hashlib.sha256(repr(listing).encode()).hexdigest()
    self._info = registry.info(
      registry.spec("geometry", "megasam"),
      VERSION,
      settings={"files_sha256": digest, "half_pixel": half_pixel},
    )

  @property
  def info(self) -> roles.BackendInfo:
    """Identity; the settings hold a digest of the folder's listing."""
    return self._info

  def reconstruct(
    self, frames: roles.FrameSource, *, cameras: roles.Cameras | None = None
  ) -> observation.Geometry:
    """Reads the result of the clip whose file stem is that of `frames`.

    Args:
      frames: the clip, all of its frames.
      cameras: must be None; MegaSaM finds its own.

    Returns:
      One row for each frame that MegaSaM kept; unit `arbitrary`; depth that
      is not positive and finite is NaN.

    Raises:
      InputError: no file for the clip, or arrays that do not fit it.
    """
    if cameras is not None:
      raise errors.InputError(
        "megasam", "cameras", found="known cameras", expected="none"
      )
    path = self._find(frames.name)
    arrays = storage.read_npz(path)
    for key in ("depths", "intrinsic", "cam_c2w"):
      if key not in arrays:
        raise errors.InputError(
          path, key, found=sorted(arrays), expected="an array of this name"
        )
    depth = np.asarray(arrays["depths"], np.float32)
    full = resized_size(frames.size)
    cut = (full[0] // _MULTIPLE * _MULTIPLE, full[1] // _MULTIPLE * _MULTIPLE)
    fits = depth.ndim == 3 and depth.shape[1:] == cut
    if not fits or not 0 < len(depth) <= len(frames):
      raise errors.InputError(
        path,
        "depths",
        found=depth.shape,
        expected=f"(at most {len(frames)}, {cut[0]}, {cut[1]}) for this clip",
        hint="Check that the file belongs to this clip.",
      )
    matrix = np.array(arrays["intrinsic"], np.float32)
    if matrix.shape != (3, 3):
      raise errors.InputError(
        path, "intrinsic", found=matrix.shape, expected="(3, 3)"
      )
    matrix[:2, 2] -= self._shift
    known = np.isfinite(depth) & (depth > 0)
    return observation.Geometry(
      depth=np.where(known, depth, np.float32(np.nan)),
      intrinsics=np.repeat(matrix[None], len(depth), axis=0),
      c2w=np.asarray(arrays["cam_c2w"], np.float64),
      frame_indices=np.asarray(frames.frame_indices)[: len(depth)],
      video_size=frames.size,
      unit="arbitrary",
      provenance=self._info.provenance(frames.sha256),
      resized_size=full,
    )

  def _find(self, name: str) -> pathlib.Path:
    stem = pathlib.Path(name).stem
    for suffix in _SUFFIXES:
      path = self._folder / f"{stem}{suffix}"
      if path.is_file():
        return path
    raise errors.InputError(
      self._folder,
      stem,
      found="no result for this clip",
      expected=" or ".join(f"{stem}{suffix}" for suffix in _SUFFIXES),
      hint="Run MegaSaM on the clip and copy its .npz here.",
    )


def resized_size(size: tuple[int, int]) -> tuple[int, int]:
  """(h1, w1) of MegaSaM's resized frame, before the cut.

  Args:
    size: (H, W) of the video.

  Source: specs/pdi_bench.md 1.4.
  """
  height, width = size
  scale = math.sqrt(_AREA / (height * width))
  return int(height * scale), int(width * scale)
