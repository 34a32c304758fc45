# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Geometry by Depth Anything 3: joint, pair, single image, streaming, splats.

| class | frames | model, settings |
|---|---|---|
| `DepthAnything3` | any | giant; one joint pass up to 240 frames, beyond them chunks of 120 that share 30 (specs/orbia.md section 10) |
| `DepthAnything3Pair` | 2 | nested; camera decoder, 504, upper-bound resize, `saddle_balanced`, no ray pose (specs/egogeneval.md section 3.1) |
| `DepthAnything3Single` | 1 | nested; package defaults (specs/egogeneval.md section 4.12) |

Conversions at this edge: camera-to-world re-based on the first frame, rigid by
SVD; principal point -0.5; confidence stored as the network's minus 1 (>= 0);
depth is camera-axis Z, in metres for the nested model and for the metric model
with a known focal length. With known cameras the result is in their frame and
unit. Loops between chunks are closed with any features backend, not with the
published SALAD descriptors; for that reason the joint and streaming class is
not comparable with published tables.
"""  # noqa: E501

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from perception import errors, observation, registry, roles
from perception.degenerate import DegenerateError
from perception.neural import (
  chunk_alignment,
  conventions,
  da3_input,
  da3_network,
  handoff,
  identity,
  loop_closure,
  runtime,
)

_METRIC_FOCAL = 300.0  # specs/perception.md section 5, metric models.
_RANSAC_VIEWS = 10
_RANSAC_SEED = 42
_NESTED_SHA256 = (
  "8899faf998dedbc230261ab736fa57015280727399429122d44d4f9e7aac2ddd"
)
_EGOGENEVAL = {
  "model": "da3nested-giant-large",
  "process_res": 504,
  "process_res_method": "upper_bound_resize",
  "ref_view_strategy": "saddle_balanced",
  "use_ray_pose": False,
}


class DepthAnything3:
  """Joint reconstruction; in overlapping chunks where a clip is long."""

  _name = "depth_anything3"
  _frames: int | None = None
  _published: ClassVar[Mapping[str, Any]] = {}
  _published_sha256 = ""

  def __init__(
    self,
    *,
    model: str = "da3-giant",
    weights: str = "",
    device: str = "auto",
    precision: str = "auto",
    process_res: int = 504,
    process_res_method: str = "upper_bound_resize",
    ref_view_strategy: str = "saddle_balanced",
    use_ray_pose: bool = False,
    joint_limit: int = 240,
    chunk: int = 120,
    overlap: int = 30,
    seed: int = 0,
    camera_unit: str = "arbitrary",
    loop_features: str = "",
    loop_settings: Mapping[str, Any] | None = None,
  ) -> None:
    """Loads the network.

    Args:
      model: see `checkpoints.DA3`, or a .yaml configuration.
      weights: see `perception.neural.weights`.
      device: torch device or `auto`.
      precision: `auto`: float32 on a CPU, half on a GPU as the package does.
      process_res: see `da3_input`.
      process_res_method: see `da3_input`.
      ref_view_strategy: `first`, `middle`, `saddle_balanced`,
        `saddle_sim_range`; without effect below three frames.
      use_ray_pose: cameras from the ray head instead of the decoder.
      joint_limit: more frames than this are taken in chunks.
      chunk: frames a chunk.
      overlap: frames that consecutive chunks share.
      seed: of the draws inside the network.
      camera_unit: unit of known cameras, `metre` or `arbitrary`.
      loop_features: features backend whose pooled descriptors find frames to
        close loops between chunks; empty: no loop closure.
      loop_settings: of that backend.

    Raises:
      InputError: a bad setting, or the weights are not here.
    """
    if ref_view_strategy not in da3_network.REF_VIEW_STRATEGIES:
      raise errors.InputError(
        "settings",
        "ref_view_strategy",
        found=ref_view_strategy,
        expected=da3_network.REF_VIEW_STRATEGIES,
      )
    chunk_alignment.plan(chunk, chunk=chunk, overlap=overlap)
    self._size_rule = {
      "process_res": process_res,
      "method": process_res_method,
    }
    da3_input.processed_size((process_res, process_res), **self._size_rule)  # type: ignore[arg-type]
    device = runtime.resolve_device(device)
    self._network = da3_network.Network(model, weights, device)
    self._options: dict[str, Any] = {
      "ref_view_strategy": ref_view_strategy,
      "use_ray_pose": use_ray_pose,
      "precision": runtime.resolve_precision(precision, device),
      "seed": seed,
    }
    self._chunking = {"chunk": chunk, "overlap": overlap}
    self._joint_limit = joint_limit
    self._camera_unit = camera_unit
    self._loop_features: roles.FeaturesBackend | None = None
    if loop_features:
      self._loop_features = registry.get(
        "features", loop_features, **(loop_settings or {})
      )
    settings = {
      "model": model,
      "process_res": process_res,
      "process_res_method": process_res_method,
      "joint_limit": joint_limit,
      "loop_closure": loop_features,
      "camera_unit": camera_unit,
      **self._options,
      **self._chunking,
    }
    found = self._network.found
    self._info = identity.describe(
      "geometry",
      self._name,
      runtime.package_version("depth-anything-3", "torch"),
      found,
      settings=settings,
      published=self._published,
      licence=f"Apache-2.0 / {self._network.weight_licence}",
      published_sha256=self._published_sha256,
    )

  @property
  def info(self) -> roles.BackendInfo:
    """Identity, licence and settings."""
    return self._info

  def reconstruct(
    self, frames: roles.FrameSource, *, cameras: roles.Cameras | None = None
  ) -> observation.Geometry:
    """Depth and cameras of every frame; see the module docstring.

    Raises:
      InputError: a frame count or cameras that this class does not take.
      DegenerateError: known cameras that do not move, or chunks that cannot
        be aligned.
    """
    self._check(frames, cameras)
    images = self._images(frames)
    if not self._network.has_poses:
      return self._without_poses(frames, images, cameras)
    if cameras is not None:
      return self._with_cameras(frames, images, cameras)[0]
    if len(images) <= self._joint_limit:
      part, metric = self._part(images)
    else:
      part, metric = self._streamed(frames, images)
    part = dataclasses.replace(part, c2w=conventions.rebase(part.c2w))
    return self._geometry(frames, part, "metre" if metric else "arbitrary")

  def reconstruct_gaussians(
    self, frames: roles.FrameSource, *, cameras: roles.Cameras | None = None
  ) -> tuple[observation.Geometry, roles.Gaussians]:
    """Like `reconstruct` in one joint pass, with splats.

    Without cameras both are in the network's own frame. With cameras both are
    in the frame of `conventions.normalise_cameras`, because harmonics cannot
    be rotated for free: move other cameras there by `to_normalised`.

    Raises:
      InputError: the model has no Gaussian branch.
      DegenerateError: see `reconstruct`.
    """
    self._check(frames, cameras)
    images = self._images(frames)
    if cameras is None:
      raw = self._run(images, gaussians=True)
      part = _part_of(raw)
      unit = "metre" if raw.metric else "arbitrary"
      return self._geometry(frames, part, unit), _gaussians(raw)
    geometry, raw = self._with_cameras(frames, images, cameras, gaussians=True)
    _, first, scale = conventions.normalise_cameras(cameras.c2w)
    geometry = dataclasses.replace(
      geometry,
      c2w=conventions.to_normalised(geometry.c2w, first, scale),
      depth=geometry.depth / np.float32(scale),
      unit="arbitrary",
    )
    return geometry, _gaussians(raw)

  def infer(self, frames: roles.FrameSource) -> da3_network.RawOutput:
    """The network's tensors of one joint pass, on its device.

    For code that goes on with `handoff.to_jax`; conventions are the network's.
    """
    self._check(frames, None)
    return self._run(self._images(frames))

  def _check(
    self, frames: roles.FrameSource, cameras: roles.Cameras | None
  ) -> None:
    if self._frames is not None and len(frames) != self._frames:
      raise errors.InputError(
        frames.name, "frames", found=len(frames), expected=self._frames
      )
    if cameras is None:
      return
    shapes = np.shape(cameras.intrinsics), np.shape(cameras.c2w)
    wanted = (len(frames), 3, 3), (len(frames), 4, 4)
    if shapes != wanted:
      raise errors.InputError("cameras", "shape", found=shapes, expected=wanted)

  def _images(self, frames: roles.FrameSource) -> np.ndarray:
    """uint8 [T, h, w, 3] at processed size; the frames are read once."""
    rule: Any = self._size_rule
    return np.stack([da3_input.resize(frame, **rule) for frame in frames])

  def _run(self, images: np.ndarray, **extra: Any) -> da3_network.RawOutput:
    return self._network(da3_input.normalise(images), **self._options, **extra)

  def _part(self, images: np.ndarray) -> tuple[chunk_alignment.Chunk, bool]:
    raw = self._run(images)
    return _part_of(raw), raw.metric

  def _streamed(
    self, frames: roles.FrameSource, images: np.ndarray
  ) -> tuple[chunk_alignment.Chunk, bool]:
    """Chunks, aligned along the chain and, if asked, across loops."""
    ranges = chunk_alignment.plan(len(images), **self._chunking)
    found = [self._part(images[start:stop]) for start, stop in ranges]
    chunks = [chunk for chunk, _ in found]
    totals = chunk_alignment.chain(chunks, ranges)
    if self._loop_features is not None:
      descriptors = self._loop_features.extract(frames).pooled
      pairs = loop_closure.alike(descriptors, ranges)
      loops = [self._loop(images, chunks, ranges, pair) for pair in pairs]
      totals = loop_closure.refine(totals, loops)
    return chunk_alignment.join(chunks, ranges, totals), found[0][1]

  def _loop(
    self,
    images: np.ndarray,
    chunks: Sequence[chunk_alignment.Chunk],
    ranges: Sequence[tuple[int, int]],
    pair: tuple[int, int],
  ) -> loop_closure.Loop:
    """Two chunks tied by a joint pass over frames around a pair."""
    owners = [loop_closure.chunk_of(frame, ranges) for frame in pair]
    spans = [
      loop_closure.window(frame, ranges[owner])
      for frame, owner in zip(pair, owners, strict=True)
    ]
    joint, _ = self._part(
      np.concatenate([images[start:stop] for start, stop in spans])
    )
    steps, row = [], 0
    for (start, stop), owner in zip(spans, owners, strict=True):
      first = ranges[owner][0]
      steps.append(
        chunk_alignment.align(
          chunks[owner].rows(start - first, stop - first),
          joint.rows(row, row + stop - start),
        )
      )
      row += stop - start
    step = steps[0].after(loop_closure.inverse(steps[1]))
    return loop_closure.Loop(owners[0], owners[1], step)

  def _with_cameras(
    self,
    frames: roles.FrameSource,
    images: np.ndarray,
    cameras: roles.Cameras,
    gaussians: bool = False,
  ) -> tuple[observation.Geometry, da3_network.RawOutput]:
    """Conditioned on known cameras, depth scaled to their unit."""
    from depth_anything_3.utils.pose_align import align_poses_umeyama
    from evo.core.geometry import (  # type: ignore[import-untyped]
      GeometryException,
    )

    size = (images.shape[1], images.shape[2])
    scaled = observation.rescale_intrinsics(
      np.asarray(cameras.intrinsics, np.float64),
      from_size=frames.size,
      to_size=size,
    )
    normalised, _, _ = conventions.normalise_cameras(cameras.c2w)
    raw = self._run(
      images,
      w2c=normalised,
      intrinsics=conventions.intrinsics_to_corner(scaled),
      gaussians=gaussians,
    )
    assert raw.w2c is not None
    known = conventions.w2c_from_c2w(cameras.c2w)
    try:
      _, _, scale = align_poses_umeyama(
        conventions.homogeneous(handoff.to_numpy(raw.w2c)),
        known,
        ransac=len(known) >= _RANSAC_VIEWS,
        random_state=_RANSAC_SEED,
      )
    except GeometryException as error:
      raise DegenerateError(
        frames.name,
        "known cameras",
        found=f"centres that fix no scale ({error})",
        expected="at least two different camera centres",
      ) from error
    part = dataclasses.replace(
      _part_of(raw),
      intrinsics=scaled,
      c2w=conventions.homogeneous(cameras.c2w),
    )
    part = dataclasses.replace(part, depth=part.depth / np.float32(scale))
    return self._geometry(frames, part, self._camera_unit), raw

  def _without_poses(
    self,
    frames: roles.FrameSource,
    images: np.ndarray,
    cameras: roles.Cameras | None,
  ) -> observation.Geometry:
    """One image through a mono or metric model; the caller knows the camera."""
    if cameras is None or len(images) != 1:
      raise errors.InputError(
        frames.name,
        f"input of {self._network.model}",
        found=f"{len(images)} frames, cameras {cameras is not None}",
        expected="one frame with its camera: this model gives depth only",
      )
    depth = handoff.to_numpy(self._run(images).depth)
    scaled = observation.rescale_intrinsics(
      np.asarray(cameras.intrinsics, np.float64),
      from_size=frames.size,
      to_size=(images.shape[1], images.shape[2]),
    )
    metric = self._network.model == da3_network.METRIC_MODEL
    if metric:
      focal = (scaled[0, 0, 0] + scaled[0, 1, 1]) / 2.0
      depth = depth * np.float32(focal / _METRIC_FOCAL)
    part = chunk_alignment.Chunk(
      _valid_depth(depth), scaled, conventions.homogeneous(cameras.c2w)
    )
    return self._geometry(frames, part, "metre" if metric else "arbitrary")

  def _geometry(
    self,
    frames: roles.FrameSource,
    part: chunk_alignment.Chunk,
    unit: str,
  ) -> observation.Geometry:
    return observation.Geometry(
      depth=part.depth,
      intrinsics=part.intrinsics.astype(np.float32),
      c2w=part.c2w,
      confidence=part.confidence,
      frame_indices=frames.frame_indices,
      video_size=frames.size,
      unit=unit,
      provenance=self._info.provenance(frames.sha256),
    )


class DepthAnything3Pair(DepthAnything3):
  """Relative camera of two frames with the settings of EgoGenEval's CMG."""

  _name = "depth_anything3_pair"
  _frames = 2
  _published = _EGOGENEVAL
  _published_sha256 = _NESTED_SHA256

  def __init__(
    self, *, model: str = "da3nested-giant-large", **settings: Any
  ) -> None:
    """See `DepthAnything3`."""
    super().__init__(model=model, **settings)

  def pair_poses(self, source: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Camera-to-world [2, 4, 4] of two pictures that may differ in size.

    Pictures that end at different processed sizes are cut about their centres
    to the smaller height and width, as the package does.

    Args:
      source: RGB uint8 [H, W, 3].
      target: RGB uint8 [H', W', 3].
    """
    rule: Any = self._size_rule
    images = [da3_input.resize(image, **rule) for image in (source, target)]
    height = min(image.shape[0] for image in images)
    width = min(image.shape[1] for image in images)
    cut = [da3_input.centre_crop(image, (height, width)) for image in images]
    part, _ = self._part(np.stack(cut))
    return conventions.rebase(part.c2w)


class DepthAnything3Single(DepthAnything3):
  """Depth of one picture with the settings of EgoGenEval's object depth."""

  _name = "depth_anything3_single"
  _frames = 1
  _published = _EGOGENEVAL
  _published_sha256 = _NESTED_SHA256

  def __init__(
    self, *, model: str = "da3nested-giant-large", **settings: Any
  ) -> None:
    """See `DepthAnything3`."""
    super().__init__(model=model, **settings)


def _valid_depth(depth: np.ndarray) -> np.ndarray:
  """NaN where the network's depth is not a positive number."""
  good = np.isfinite(depth) & (depth > 0)
  return np.where(good, depth, np.float32(np.nan)).astype(np.float32)


def _part_of(raw: da3_network.RawOutput) -> chunk_alignment.Chunk:
  """The network's output in our conventions."""
  assert raw.w2c is not None
  assert raw.intrinsics is not None
  confidence = None
  if raw.confidence is not None:
    largest = float(np.finfo(np.float32).max)
    stored = handoff.to_numpy(raw.confidence) - np.float32(1.0)
    confidence = np.clip(np.where(np.isnan(stored), 0, stored), 0, largest)
  return chunk_alignment.Chunk(
    _valid_depth(handoff.to_numpy(raw.depth)),
    conventions.intrinsics_from_corner(handoff.to_numpy(raw.intrinsics)),
    conventions.c2w_from_w2c(handoff.to_numpy(raw.w2c)),
    confidence,
  )


def _gaussians(raw: da3_network.RawOutput) -> roles.Gaussians:
  """Splats of one scene; rotations are (w, x, y, z) already."""

  def array(name: str) -> np.ndarray:
    value = handoff.to_numpy(getattr(raw.gaussians, name)[0])
    return value.astype(np.float32)

  opacities = array("opacities")
  return roles.Gaussians(
    means=array("means"),
    scales=array("scales"),
    rotations=array("rotations"),
    opacities=opacities.reshape(len(opacities)),
    harmonics=array("harmonics"),
  )
