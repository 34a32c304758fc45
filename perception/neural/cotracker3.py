# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Point tracks by CoTracker3 offline, which the user installs.

CoTracker is not on PyPI and its code and weights are CC-BY-NC-4.0, so this
project ships neither. It is found as an importable `cotracker`, in the folder
named by `WORLDGAUGE_COTRACKER` (a checkout), or in torch.hub's folder.

Coordinates are pixel centres on both sides (the resize aligns corners). The
network is called directly, as the package's predictor does it - 384x512,
6 x 6 support grid in frame 0, 6 iterations, visible above 0.9 and at the query
itself - because the predictor drops the confidence. Queries go in as float32:
integer ones would be destroyed without a word. When a query lies after the
first frame, a second pass runs backwards.

Source: specs/perception.md section 6, specs/pdi_bench.md section 2.5.
"""

from __future__ import annotations

import importlib.util
import os
import pathlib
from typing import TYPE_CHECKING, Any

import numpy as np

from perception import errors, observation, roles
from perception.neural import checkpoints, handoff, identity, runtime
from perception.neural import weights as weight_files

if TYPE_CHECKING:
  import torch

_CHECKOUT = "WORLDGAUGE_COTRACKER"
_HUB_FOLDER = "facebookresearch_co-tracker_main"
_SUPPORT_SIDE = 6
_ITERATIONS = 6
_VISIBLE = 0.9
_INSTALL = (
  "git clone https://github.com/facebookresearch/co-tracker and set"
  f" {_CHECKOUT} to that folder (licence CC-BY-NC-4.0: non-commercial)"
)


def why_absent() -> str:
  """The reason why CoTracker cannot run here, or an empty string."""
  return "" if _place() is not None else f"CoTracker not found: {_INSTALL}"


def _place() -> str | None:
  """Empty for an importable package, else the folder of a checkout."""
  named = os.environ.get(_CHECKOUT)
  if named:
    return named if pathlib.Path(named, "hubconf.py").is_file() else None
  if importlib.util.find_spec("cotracker") is not None:
    return ""
  home = os.environ.get("TORCH_HOME") or (
    pathlib.Path.home() / ".cache" / "torch"
  )
  folder = pathlib.Path(home, "hub", _HUB_FOLDER)
  return str(folder) if (folder / "hubconf.py").is_file() else None


class CoTracker3Tracks:
  """Tracks of given points through a whole clip."""

  def __init__(
    self,
    *,
    weights: str = "",
    device: str = "auto",
    resolution: tuple[int, int] = (384, 512),
  ) -> None:
    """Loads the tracker.

    Args:
      weights: see `perception.neural.weights`.
      device: torch device or `auto`.
      resolution: (h, w) at which the network sees frames; another value than
        the default is for tests.

    Raises:
      InputError: CoTracker or its weights are not here.
    """
    self._device = runtime.resolve_device(device)
    found = weight_files.find(checkpoints.COTRACKER3, weights)
    predictor = runtime.random_model(_predictor)
    if not found.random:
      _load(predictor.model, found)
    predictor.model.model_resolution = tuple(resolution)
    self._resolution = (int(resolution[0]), int(resolution[1]))
    self._model = predictor.model.to(self._device).requires_grad_(False)
    self._info = identity.describe(
      "tracks",
      "cotracker3",
      f"cotracker3 offline, {runtime.package_version('torch')}",
      found,
      settings={
        "resolution": list(self._resolution),
        "support_grid": _SUPPORT_SIDE,
        "iterations": _ITERATIONS,
        "visible_above": _VISIBLE,
      },
      published={"resolution": [384, 512]},
    )

  @property
  def info(self) -> roles.BackendInfo:
    """Identity, licence and settings."""
    return self._info

  def track(
    self, frames: roles.FrameSource, queries: roles.Queries
  ) -> observation.Tracks:
    """Positions and visibility in every frame; row order of the queries.

    Raises:
      InputError: queries that are not N points in frames of the clip.
    """
    xy, row = _checked(frames, queries)
    count, length = len(xy), len(frames)
    found = np.zeros((length, count, 2), np.float32)
    visible = np.zeros((length, count), np.bool_)
    confidence = np.zeros((length, count), np.float32)
    if count:
      found, visible, confidence = self._run(frames, xy, row)
    return observation.Tracks(
      xy=found,
      visible=visible,
      confidence=confidence,
      query_frame=row.astype(np.int32),
      provenance=self._info.provenance(frames.sha256),
      frame_indices=frames.frame_indices,
      object_ids=np.asarray(queries.object_ids, np.int32),
      video_size=frames.size,
    )

  def _run(
    self, frames: roles.FrameSource, xy: np.ndarray, row: np.ndarray
  ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    import torch

    scale = np.divide(
      np.array(self._resolution[::-1], np.float32) - 1,
      np.maximum(np.array(frames.size[::-1], np.float32) - 1, 1),
    ).astype(np.float32)
    points = np.concatenate(
      [row[:, None].astype(np.float32), xy * scale], axis=1
    )
    given = torch.from_numpy(points)[None].to(self._device)
    with runtime.inference(self._device, "float32"):
      video = self._video(frames)
      tensors = self._forward(video, given)
      if row.any():
        back = self._forward(
          video.flip(1), _mirrored(given, len(frames)), flip=True
        )
        before = (
          torch.arange(len(frames), device=self._device)[:, None]
          < given[0, None, :, 0]
        )
        tensors = tuple(
          torch.where(before[..., None] if one.ndim == 3 else before, two, one)
          for one, two in zip(tensors, back, strict=True)
        )
    track, seen, sure = (handoff.to_numpy(tensor) for tensor in tensors)
    visible = seen > _VISIBLE
    index = np.arange(len(xy))
    track = track / scale
    track[row, index] = xy
    visible[row, index] = True
    return track, visible, np.clip(sure, 0.0, 1.0)

  def _video(self, frames: roles.FrameSource) -> torch.Tensor:
    """float32 [1, T, 3, h, w] in 0..255, corners aligned."""
    import torch

    resized = []
    for frame in frames:
      pixels = torch.from_numpy(np.ascontiguousarray(frame)).to(self._device)
      resized.append(
        torch.nn.functional.interpolate(
          pixels.permute(2, 0, 1)[None].float(),
          self._resolution,
          mode="bilinear",
          align_corners=True,
        )
      )
    return torch.stack(resized, dim=1)

  def _forward(
    self, video: torch.Tensor, given: torch.Tensor, *, flip: bool = False
  ) -> tuple[torch.Tensor, ...]:
    """Tracks [T, N, 2], visibility and confidence [T, N]."""
    import torch

    grid = torch.zeros((1, _SUPPORT_SIDE**2, 3), device=self._device)
    grid[..., 1:] = _support_grid(self._resolution).to(self._device)
    if flip:
      grid = _mirrored(grid, video.shape[1])
    queries = torch.cat([given, grid], dim=1)
    out = self._model(video=video, queries=queries, iters=_ITERATIONS)
    count = given.shape[1]
    kept = (tensor[0, :, :count].clone() for tensor in out[:3])
    return tuple(tensor.flip(0) if flip else tensor for tensor in kept)


def _mirrored(queries: torch.Tensor, length: int) -> torch.Tensor:
  """The same queries in a clip played backwards."""
  mirrored = queries.clone()
  mirrored[..., 0] = length - 1 - mirrored[..., 0]
  return mirrored


def _support_grid(resolution: tuple[int, int]) -> torch.Tensor:
  """The package's own inset grid of 6 x 6 points (x, y)."""
  import torch

  height, width = resolution
  margin = width / 64.0
  x = torch.linspace(margin, width - margin, _SUPPORT_SIDE)
  y = torch.linspace(margin, height - margin, _SUPPORT_SIDE)
  mesh_y, mesh_x = torch.meshgrid(y, x, indexing="ij")
  return torch.stack([mesh_x, mesh_y], dim=-1).reshape(-1, 2)


def _checked(
  frames: roles.FrameSource, queries: roles.Queries
) -> tuple[np.ndarray, np.ndarray]:
  """float32 [N, 2] and int64 [N], or an error: bad rows crash the network."""
  xy = np.asarray(queries.xy, np.float32)
  row = np.asarray(queries.frame_row)
  ids = np.asarray(queries.object_ids)
  height, width = frames.size
  fits = (
    xy.ndim == 2
    and xy.shape[1] == 2
    and row.shape == ids.shape == (len(xy),)
    and (row.dtype.kind in "iu" or not len(row))
  )
  if fits and len(xy):
    inside = (xy >= -0.5) & (xy <= np.array([width - 0.5, height - 0.5]))
    fits = bool(inside.all() and (row >= 0).all() and (row < len(frames)).all())
  if not fits:
    raise errors.InputError(
      frames.name,
      "queries",
      found=f"xy {xy.shape}, rows {row.dtype} {row.shape}, ids {ids.shape}",
      expected=(
        f"N points inside {width}x{height} with integer rows in"
        f" 0..{len(frames) - 1}"
      ),
    )
  return xy, row.astype(np.int64)


def _predictor() -> Any:
  """The package's offline predictor without weights."""
  import torch

  place = _place()
  if place is None:
    raise errors.InputError(
      "tracks cotracker3",
      "package",
      found="no CoTracker",
      expected="CoTracker3",
      hint=_INSTALL,
    )
  if place:
    return torch.hub.load(
      place, "cotracker3_offline", source="local", pretrained=False
    )
  from cotracker.predictor import CoTrackerPredictor

  return CoTrackerPredictor(checkpoint=None, offline=True, window_len=60)


def _load(model: Any, found: weight_files.Found) -> None:
  import torch

  try:
    state = torch.load(
      found.require_file(), map_location="cpu", weights_only=True
    )
    model.load_state_dict(state.get("model", state))
  except Exception as error:  # Any failure of unpickling means one thing.
    raise errors.InputError(
      found.require_file(),
      "weights",
      found=error,
      expected="the weights of CoTracker3 offline",
    ) from error
