# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Object masks through a clip by SAM 2 video, from frames in memory.

Runs transformers' `Sam2VideoModel`, which needs no JPEG folder, no Hydra and
no compiled extension. Forward in time only: frames before an object's first
prompt are empty. Mask = logit > 0 at video size, without hole filling or
component filters. A mask prompt is taken as the mask of its frame and its
object score is +10, so it serves Orbia's anchor tracking: give the reference
picture as the first frame and each anchor's mask as its own object.

Prompts are pixel centres here and corner-origin there: +0.5. Frames are
decoded once per group of objects and only the current one is kept; of the
memory bank only what later frames can attend to.

Source: specs/perception.md section 4b, specs/pdi_bench.md section 2.1,
specs/orbia.md section 5.7.
"""

from __future__ import annotations

import collections
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from perception import errors, observation, roles
from perception.neural import (
  checkpoints,
  conventions,
  identity,
  runtime,
  weights,
)

if TYPE_CHECKING:
  import torch

_LOGIT_THRESHOLD = 0.0


class Sam2Masks:
  """Masks of prompted objects."""

  def __init__(
    self,
    *,
    model: str = "sam2-hiera-large",
    weights: str = "",
    device: str = "auto",
    precision: str = "float32",
    image_size: int = 0,
  ) -> None:
    """Loads the model.

    Args:
      model: see `checkpoints.SAM2`.
      weights: see `perception.neural.weights`.
      device: torch device or `auto`.
      precision: `float32`, or an autocast type.
      image_size: side of the square that frames are stretched to; 0 is the
        checkpoint's own, another value goes with random weights only.

    Raises:
      InputError: a bad setting, or the weights are not here.
    """
    if model not in checkpoints.SAM2:
      raise errors.InputError(
        "settings",
        "model",
        found=model,
        expected=f"one of {sorted(checkpoints.SAM2)}",
      )
    self._device = runtime.resolve_device(device)
    self._precision = runtime.resolve_precision(precision, self._device)
    self._model, self._processor, found = _load(
      checkpoints.SAM2[model], weights, image_size
    )
    self._model.to(self._device)
    self._info = identity.describe(
      "masks",
      "sam2",
      runtime.package_version("transformers", "torch"),
      found,
      settings={
        "model": model,
        "precision": self._precision,
        "image_size": self._processor.target_size,
      },
      published={"model": "sam2-hiera-large"},
    )

  @property
  def info(self) -> roles.BackendInfo:
    """Identity, licence and settings."""
    return self._info

  def segment(
    self, frames: roles.FrameSource, prompts: Sequence[roles.ObjectPrompt]
  ) -> observation.Masks:
    """Masks at video size; see `roles.MasksBackend`.

    Raises:
      InputError: no prompt, a prompt that does not fit the frames, or prompts
        of one object in one frame that cannot be combined.
    """
    for prompt in prompts:
      prompt.validate(size=frames.size, frames=len(frames))
    merged = _merge(prompts)
    ids = list(dict.fromkeys(prompt.object_id for prompt in prompts))
    masks = np.zeros((len(ids), len(frames), *frames.size), np.bool_)
    # Objects that start in the same frames can share one session; one that
    # starts later would have no memory yet where the others already track.
    groups: dict[tuple[int, ...], list[int]] = collections.defaultdict(list)
    for object_id in ids:
      rows = sorted(row for key, row in merged if key == object_id)
      groups[tuple(rows)].append(object_id)
    for prompted, members in groups.items():
      index = [ids.index(member) for member in members]
      for row, found in self._track(frames, prompted, members, merged):
        masks[index, row] = found
    return observation.Masks(
      masks=masks,
      object_ids=np.array(ids, np.int32),
      frame_indices=frames.frame_indices,
      provenance=self._info.provenance(frames.sha256),
    )

  def _track(
    self,
    frames: roles.FrameSource,
    rows: Sequence[int],
    members: Sequence[int],
    hints: dict[tuple[int, int], roles.ObjectPrompt],
  ) -> Iterator[tuple[int, np.ndarray]]:
    """Yields (row, bool [O, H, W]) from the first prompted frame on."""
    import torch

    session = self._processor.init_video_session(
      inference_device=self._device, dtype=torch.float32
    )
    session.video_height, session.video_width = frames.size
    session.processed_frames = _FrameWindow(frames, self._prepare, pinned=rows)
    config = self._model.config
    window = 1 + max(config.num_maskmem, config.max_object_pointers_in_encoder)
    with runtime.inference(self._device, self._precision):
      for row in rows:
        for member in members:
          self._add(session, hints[member, row], frames.size)
        # Each call above leaves only its own object marked as prompted.
        session.obj_with_new_inputs = list(members)
        self._model(inference_session=session, frame_idx=row)
      for out in self._model.propagate_in_video_iterator(session):
        order = [out.object_ids.index(member) for member in members]
        yield out.frame_idx, self._enlarge(out.pred_masks[order], frames.size)
        _forget(session, out.frame_idx - window)

  def _prepare(self, frame: np.ndarray) -> torch.Tensor:
    """uint8 [H, W, 3] -> float32 [3, S, S], normalised."""
    video = self._processor.video_processor(
      videos=[np.asarray(frame)[None]],
      device=self._device,
      return_tensors="pt",
    )
    return video.pixel_values_videos[0][0]

  def _add(
    self, session: Any, hint: roles.ObjectPrompt, size: tuple[int, int]
  ) -> None:
    """Enters one object's prompt of one frame."""
    inputs: dict[str, Any] = {}
    if hint.mask is not None:
      inputs["input_masks"] = [np.ascontiguousarray(hint.mask)]
    if hint.points is not None:
      labels = np.asarray(hint.labels, np.int64)
      shifted = conventions.points_to_corner(hint.points)
      inputs["input_points"] = [[shifted.tolist()]]
      inputs["input_labels"] = [[labels.tolist()]]
    if hint.box is not None:
      box = conventions.points_to_corner(np.array(hint.box))
      inputs["input_boxes"] = [[box.tolist()]]
    self._processor.add_inputs_to_inference_session(
      session,
      frame_idx=hint.frame_row,
      obj_ids=[hint.object_id],
      original_size=size,
      **inputs,
    )

  def _enlarge(self, logits: torch.Tensor, size: tuple[int, int]) -> np.ndarray:
    """[O, 1, s, s] logits -> bool [O, H, W]."""
    import torch

    full = torch.nn.functional.interpolate(
      logits.float(), size, mode="bilinear", align_corners=False
    )
    return (full[:, 0] > _LOGIT_THRESHOLD).cpu().numpy()


class _FrameWindow:
  """Frames by number for a session that asks for them in order.

  Behaves like the session's own dictionary of all frames, but keeps only the
  prompted ones and the last. Going back starts the source again.
  """

  def __init__(
    self, frames: roles.FrameSource, prepare: Any, pinned: Sequence[int]
  ) -> None:
    """Nothing is read yet."""
    self._frames = frames
    self._prepare = prepare
    self._pinned = set(pinned)
    self._kept: dict[int, torch.Tensor] = {}
    self._iterator = iter(frames)
    self._next = 0

  def __len__(self) -> int:
    """All frames of the clip."""
    return len(self._frames)

  def __getitem__(self, row: int) -> torch.Tensor:
    """One prepared frame."""
    if row in self._kept:
      return self._kept[row]
    if row < self._next:
      self._iterator, self._next = iter(self._frames), 0
    while self._next <= row:
      frame = next(self._iterator)
      self._next += 1
      if self._next - 1 == row or self._next - 1 in self._pinned:
        self._kept[self._next - 1] = self._prepare(frame)
    keep = self._pinned | {row}
    self._kept = {key: self._kept[key] for key in self._kept if key in keep}
    return self._kept[row]


def _forget(session: Any, row: int) -> None:
  """Drops what no later frame attends to; conditioning frames stay."""
  for outputs in session.output_dict_per_obj.values():
    outputs["non_cond_frame_outputs"].pop(row, None)


def _merge(
  prompts: Sequence[roles.ObjectPrompt],
) -> dict[tuple[int, int], roles.ObjectPrompt]:
  """One prompt per (object, frame): points add up, one box, or one mask."""
  if not prompts:
    raise errors.InputError(
      "masks", "prompts", found="none", expected="at least one object"
    )
  merged: dict[tuple[int, int], roles.ObjectPrompt] = {}
  for prompt in prompts:
    key = prompt.object_id, prompt.frame_row
    old = merged.get(key, prompt)
    new = old is not prompt
    boxes = [p.box for p in (old, prompt) if p.box is not None]
    masks = [p.mask for p in (old, prompt) if p.mask is not None]
    points = prompt.points is not None or old.points is not None
    if (new and (len(boxes) > 1 or len(masks) > 1)) or (
      masks and (boxes or points)
    ):
      raise errors.InputError(
        f"prompts of object {prompt.object_id}",
        f"frame row {prompt.frame_row}",
        found=f"{len(boxes)} boxes, {len(masks)} masks, points: {points}",
        expected="a mask alone, or points with at most one box",
      )
    if not new:
      merged[key] = prompt
      continue
    clicks = [p for p in (old, prompt) if p.points is not None]
    merged[key] = roles.ObjectPrompt(
      object_id=prompt.object_id,
      frame_row=prompt.frame_row,
      box=boxes[0] if boxes else None,
      points=np.concatenate([np.asarray(p.points) for p in clicks]),
      labels=np.concatenate([np.asarray(p.labels) for p in clicks]),
    )
  return merged


def _load(
  checkpoint: weights.Checkpoint, source: str, image_size: int
) -> tuple[Any, Any, weights.Found]:
  """The model, a processor that fits it, and where the weights came from."""
  import transformers

  found = weights.find(checkpoint, source)
  if found.random:
    config = _random_config(image_size or 1024)
    model = runtime.random_model(lambda: transformers.Sam2VideoModel(config))
  else:
    model = transformers.Sam2VideoModel.from_pretrained(
      found.require_folder(), local_files_only=True
    ).eval()
    own = int(model.config.image_size)
    if image_size not in (0, own):
      raise errors.InputError(
        "settings",
        "image_size",
        found=image_size,
        expected=f"0 or {own}, the checkpoint's own",
      )
  side = int(model.config.image_size)
  size = {"height": side, "width": side}
  processor = transformers.Sam2VideoProcessor(
    image_processor=transformers.Sam2ImageProcessor(size=size),
    video_processor=transformers.Sam2VideoVideoProcessor(size=size),
    target_size=side,
  )
  return model.requires_grad_(False), processor, found


def _random_config(side: int) -> Any:
  """SAM 2.1 tiny at another input size."""
  import transformers

  grids = [[side // 4] * 2, [side // 8] * 2, [side // 16] * 2]
  return transformers.Sam2VideoConfig(
    image_size=side,
    vision_config={
      "model_type": "sam2_vision_model",
      "backbone_feature_sizes": grids,
      "backbone_config": {
        "model_type": "sam2_hiera_det_model",
        "image_size": [side, side],
      },
    },
    prompt_encoder_config={"image_size": side},
    memory_attention_rope_feat_sizes=grids[2],
  )
