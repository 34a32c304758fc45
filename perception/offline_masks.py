# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Masks without a neural network: GrabCut on a box, carried by dense flow.

On the prompted frame GrabCut separates the object from what surrounds it. From
frame to frame the mask is carried by backward flow; pixels whose flow does not
survive the round trip, and a thin band along the outline, are decided again by
GrabCut with the colour models of the prompted frame, the rest is kept. Work is
done at a reduced size; masks come back at the size of the frames.

An object that is hidden, that changes size or colour abruptly, or whose flow is
mostly unreliable is lost: its mask is empty from that frame on, until a later
prompt names it again. It is never found again by guessing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import cv2
import numpy as np

from perception import errors, observation, optical_flow, registry, roles

VERSION = "1"
_ITERATIONS = 5
_MARGIN = 0.25
_BAND = 5
_MIN_SIDE = 16
_MIN_PIXELS = 20
_MIN_BOX_SHARE = 0.02
_CORE_SHARE = 0.25
_CORE_AXIS = 0.3
_MIN_PART = 0.1
_MAX_SHARED_COLOURS = 0.9
_COLOUR_BINS = (6, 24, 24)


@dataclasses.dataclass(eq=False)
class _Target:
  """One object being carried.

  Attributes:
    mask: bool [h, w] in the last frame; empty once lost.
    background: GrabCut's colour model, fixed.
    foreground: GrabCut's colour model, fixed.
    colours: normalised colour histogram of the prompted mask.
  """

  mask: np.ndarray
  background: np.ndarray
  foreground: np.ndarray
  colours: np.ndarray


class GrabCutFlowMasks:
  """The `masks` role on a CPU; see the module docstring."""

  def __init__(
    self,
    *,
    work_side: int = 480,
    min_consistent: float = 0.4,
    max_area_ratio: float = 2.0,
    min_colour_overlap: float = 0.6,
  ) -> None:
    """Fixes the options.

    Args:
      work_side: longest side of the frames that are worked on, pixels.
      min_consistent: an object is lost when a smaller share of its carried
        mask has consistent flow.
      max_area_ratio: an object is lost when its area grows or shrinks by more
        than this factor between two frames.
      min_colour_overlap: an object is lost when the Bhattacharyya overlap of
        its colours with those of the prompted frame is smaller.
    """
    self._work_side = work_side
    self._min_consistent = min_consistent
    self._max_area_ratio = max_area_ratio
    self._min_colour_overlap = min_colour_overlap
    settings = {
      "work_side": work_side,
      "min_consistent": min_consistent,
      "max_area_ratio": max_area_ratio,
      "min_colour_overlap": min_colour_overlap,
      "opencv": cv2.__version__,
    }
    entry = registry.spec("masks", "grabcut_flow")
    self._info = registry.info(entry, VERSION, settings=settings)

  @property
  def info(self) -> roles.BackendInfo:
    """Identity and settings."""
    return self._info

  def segment(
    self, frames: roles.FrameSource, prompts: Sequence[roles.ObjectPrompt]
  ) -> observation.Masks:
    """See `roles.MasksBackend.segment`.

    A later prompt of the same object replaces its mask from there on.

    Raises:
      InputError: no prompt, a prompt outside the clip or picture, two prompts
        of one object in one frame, or no object found inside a box.
    """
    size, count = frames.size, len(frames)
    ids = _check_prompts(prompts, size=size, frames=count)
    work = _work_size(size, self._work_side)
    if min(work) < _MIN_SIDE:
      raise errors.InputError(
        frames.name,
        "size",
        found=f"{size}, worked on at {work}",
        expected=f"sides of at least {_MIN_SIDE} pixels",
      )
    masks = np.zeros((len(ids), count, *size), bool)
    targets: dict[int, _Target] = {}
    flow = optical_flow.DenseFlow()
    previous: np.ndarray = np.zeros((0, 0), np.uint8)
    for row, frame in enumerate(frames):
      image = cv2.resize(frame, work[::-1], interpolation=cv2.INTER_AREA)
      gray = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)
      if any(target.mask.any() for target in targets.values()):
        backward = flow.backward(previous, gray)
        for target in targets.values():
          if target.mask.any():
            target.mask = self._carry(target, image, backward)
      for prompt in prompts:
        if prompt.frame_row == row:
          targets[prompt.object_id] = _start(prompt, image, size)
      for position, object_id in enumerate(ids):
        if object_id in targets and targets[object_id].mask.any():
          masks[position, row] = _to_size(targets[object_id].mask, size)
      previous = gray
    return observation.Masks(
      masks=masks,
      object_ids=np.array(ids, np.int32),
      frame_indices=np.asarray(frames.frame_indices),
      provenance=self._info.provenance(frames.sha256),
    )

  def _carry(
    self,
    target: _Target,
    image: np.ndarray,
    flow: optical_flow.BackwardFlow,
  ) -> np.ndarray:
    """The mask in the next frame, empty when the object is lost."""
    lost = np.zeros_like(target.mask)
    share = optical_flow.warp(target.mask.astype(np.float32), flow.source)
    carried = share > 0.5
    if np.count_nonzero(carried) < _MIN_PIXELS:
      return lost
    if np.mean(flow.consistent[carried]) < self._min_consistent:
      return lost
    kernel = cv2.getStructuringElement(
      cv2.MORPH_ELLIPSE, (2 * _BAND + 1, 2 * _BAND + 1)
    )
    solid = cv2.erode(carried.astype(np.uint8), kernel) > 0
    reach = cv2.dilate(carried.astype(np.uint8), kernel) > 0
    labels = np.where(carried, cv2.GC_PR_FGD, cv2.GC_PR_BGD).astype(np.uint8)
    labels[solid & flow.consistent] = cv2.GC_FGD
    newly_seen = ~flow.inside & _near(carried, flow)
    labels[~reach & ~newly_seen] = cv2.GC_BGD
    mask = _cut(image, labels, target)
    mask = _connected_to(mask, carried)
    area = int(np.count_nonzero(mask))
    before = int(np.count_nonzero(target.mask))
    ratio = max(area, before) / max(min(area, before), 1)
    if area < _MIN_PIXELS or ratio > self._max_area_ratio:
      return lost
    overlap = np.sum(np.sqrt(_histogram(image, mask) * target.colours))
    return mask if overlap >= self._min_colour_overlap else lost


def _check_prompts(
  prompts: Sequence[roles.ObjectPrompt], *, size: tuple[int, int], frames: int
) -> list[int]:
  """Object ids in order of their first prompt."""
  seen: set[tuple[int, int]] = set()
  ids: list[int] = []
  for prompt in prompts:
    prompt.validate(size=size, frames=frames)
    key = (prompt.object_id, prompt.frame_row)
    if key in seen:
      raise errors.InputError(
        "prompts",
        f"object {prompt.object_id}",
        found=f"two prompts in frame {prompt.frame_row}",
        expected="one prompt per object and frame",
      )
    seen.add(key)
    if prompt.object_id not in ids:
      ids.append(prompt.object_id)
  if not ids:
    raise errors.InputError(
      "prompts",
      "objects",
      found="none",
      expected="at least one box, points or mask",
      hint="Give the object's box on the first frame.",
    )
  return ids


def _work_size(size: tuple[int, int], longest: int) -> tuple[int, int]:
  scale = min(1.0, longest / max(size))
  return max(1, round(size[0] * scale)), max(1, round(size[1] * scale))


def _to_size(mask: np.ndarray, size: tuple[int, int]) -> np.ndarray:
  """Resizes a mask with a smooth outline."""
  if mask.shape == size:
    return mask
  soft = cv2.resize(
    mask.astype(np.float32), size[::-1], interpolation=cv2.INTER_LINEAR
  )
  return soft > 0.5


def _start(
  prompt: roles.ObjectPrompt, image: np.ndarray, size: tuple[int, int]
) -> _Target:
  """Separates the prompted object from its surroundings."""
  labels = _prompt_labels(prompt, image.shape[:2], size)
  on_object = (labels == cv2.GC_FGD) | (labels == cv2.GC_PR_FGD)
  least = min(np.count_nonzero(on_object), np.count_nonzero(~on_object))
  if least < _MIN_PIXELS or (labels == cv2.GC_BGD).sum() < _MIN_PIXELS:
    raise _refused(
      prompt,
      f"{np.count_nonzero(on_object)} of {labels.size} pixels on the object",
      "some of the picture on the object and some surely beside it",
    )
  background = np.zeros((1, 65), np.float64)
  foreground = np.zeros((1, 65), np.float64)
  target = _Target(labels > 0, background, foreground, np.zeros(0))
  cv2.setRNGSeed(0)  # GrabCut starts its colour models by random clustering
  mask = _cut(image, labels, target, learn=True)
  room = np.count_nonzero(labels != cv2.GC_BGD)
  if prompt.box is not None and np.count_nonzero(mask) < _CORE_SHARE * room:
    mask = _cut_around_middle(image, labels, target)
  mask = _main_parts(mask)
  if np.count_nonzero(mask) < max(_MIN_PIXELS, _MIN_BOX_SHARE * room):
    raise _refused(
      prompt,
      "no object there",
      "an object that differs in colour from what surrounds it",
    )
  target.mask = mask
  target.colours = _histogram(image, mask)
  return target


def _cut_around_middle(
  image: np.ndarray, labels: np.ndarray, target: _Target
) -> np.ndarray:
  """The object when its colours also occur around the box.

  The box's middle is held on to; the result counts only where its outline
  still separates colours, otherwise it is empty.
  """
  rows, columns = np.nonzero(labels != cv2.GC_BGD)
  centre = (int(np.median(columns)), int(np.median(rows)))
  axes = (int(np.ptp(columns) * _CORE_AXIS), int(np.ptp(rows) * _CORE_AXIS))
  core = np.zeros(labels.shape, np.uint8)
  cv2.ellipse(core, centre, axes, 0, 0, 360, 1, -1)
  labels[(core > 0) & (labels == cv2.GC_PR_FGD)] = cv2.GC_FGD
  mask = _cut(image, labels, target, learn=True)
  around = cv2.dilate(mask.astype(np.uint8), np.ones((9, 9))) > mask
  shared = np.sqrt(_histogram(image, mask) * _histogram(image, around))
  return mask & (shared.sum() <= _MAX_SHARED_COLOURS)


def _refused(
  prompt: roles.ObjectPrompt, found: str, expected: str
) -> errors.InputError:
  kind = "mask" if prompt.mask is not None else "points"
  field = f"box {prompt.box}" if prompt.box is not None else kind
  return errors.InputError(
    f"prompt of object {prompt.object_id}",
    field,
    found=found,
    expected=expected,
    hint="Give a box that fits the object, or a mask.",
  )


def _prompt_labels(
  prompt: roles.ObjectPrompt, work: tuple[int, ...], size: tuple[int, int]
) -> np.ndarray:
  """GrabCut labels [h, w] of a prompt at the work size."""
  scale_y, scale_x = work[0] / size[0], work[1] / size[1]
  labels = np.full(work, cv2.GC_BGD, np.uint8)
  if prompt.mask is not None:
    mask = cv2.resize(
      prompt.mask.astype(np.float32), work[::-1], interpolation=cv2.INTER_AREA
    )
    labels[mask > 0.5] = cv2.GC_FGD
    return labels
  if prompt.box is not None:
    x_min, y_min, x_max, y_max = prompt.box
    left, right = round(x_min * scale_x), round(x_max * scale_x)
    top, bottom = round(y_min * scale_y), round(y_max * scale_y)
    labels[max(top, 0) : bottom, max(left, 0) : right] = cv2.GC_PR_FGD
  else:
    labels[:] = cv2.GC_PR_BGD
  if prompt.points is not None:
    for (x, y), positive in zip(
      prompt.points, np.asarray(prompt.labels), strict=True
    ):
      centre = (round(float(x) * scale_x), round(float(y) * scale_y))
      label = cv2.GC_FGD if positive else cv2.GC_BGD
      cv2.circle(labels, centre, 2 * _BAND, int(label), -1)
  return labels


def _cut(
  image: np.ndarray, labels: np.ndarray, target: _Target, *, learn: bool = False
) -> np.ndarray:
  """Solves for the undecided labels in the neighbourhood of the object."""
  undecided = (labels == cv2.GC_PR_FGD) | (labels == cv2.GC_PR_BGD)
  sure = labels == cv2.GC_FGD
  if not undecided.any() and not learn:
    return sure
  rows, columns = np.nonzero(undecided | sure)
  margin = max(8, round(_MARGIN * (np.ptp(rows) + np.ptp(columns))))
  window = (
    slice(max(0, rows.min() - margin), rows.max() + margin + 1),
    slice(max(0, columns.min() - margin), columns.max() + margin + 1),
  )
  part = labels[window].copy()
  mode = cv2.GC_INIT_WITH_MASK if learn else cv2.GC_EVAL_FREEZE_MODEL
  background, foreground = target.background, target.foreground
  if not learn:
    background, foreground = background.copy(), foreground.copy()
  cv2.grabCut(
    np.ascontiguousarray(image[window]),
    part,
    (0, 0, 1, 1),  # not used with labels
    background,
    foreground,
    _ITERATIONS if learn else 1,
    mode,
  )
  mask = np.zeros(labels.shape, bool)
  mask[window] = (part == cv2.GC_FGD) | (part == cv2.GC_PR_FGD)
  return mask


def _near(carried: np.ndarray, flow: optical_flow.BackwardFlow) -> np.ndarray:
  """Pixels within the object's own motion of its carried mask."""
  height, width = carried.shape
  y, x = np.nonzero(carried)
  motion = flow.source[y, x] - np.stack([x, y], axis=1)
  radius = int(np.ceil(np.median(np.linalg.norm(motion, axis=1)))) + _BAND
  radius = min(radius, max(height, width) // 4)
  kernel = np.ones((2 * radius + 1, 2 * radius + 1), np.uint8)
  return cv2.dilate(carried.astype(np.uint8), kernel) > 0


def _connected_to(mask: np.ndarray, seed: np.ndarray) -> np.ndarray:
  """Components of a mask that touch the carried mask."""
  _, component = cv2.connectedComponents(mask.astype(np.uint8))
  touching = np.unique(component[mask & seed])
  return mask & np.isin(component, touching)


def _main_parts(mask: np.ndarray) -> np.ndarray:
  """Components that are not small beside the largest one."""
  _, component, stats, _ = cv2.connectedComponentsWithStats(
    mask.astype(np.uint8)
  )
  area = stats[:, cv2.CC_STAT_AREA]
  large = area >= _MIN_PART * area[1:].max(initial=0)
  large[0] = False
  return large[component]


def _histogram(image: np.ndarray, mask: np.ndarray) -> np.ndarray:
  """Normalised histogram of the masked colours, blurred over the bins.

  Lightness has fewer bins than hue and saturation and neighbouring bins share
  their counts, so that a change of exposure is no change of object.
  """
  lab = cv2.cvtColor(image, cv2.COLOR_RGB2LAB)
  ranges = [0.0, 256.0] * 3
  counts = cv2.calcHist(
    [lab], [0, 1, 2], mask.astype(np.uint8), list(_COLOUR_BINS), ranges
  )
  spread = counts.astype(np.float64)
  for axis in range(3):
    edge = [(1, 1) if number == axis else (0, 0) for number in range(3)]
    padded = np.pad(spread, edge, mode="edge")
    bins = spread.shape[axis]
    low, middle, high = (
      padded.take(range(start, start + bins), axis) for start in range(3)
    )
    spread = 0.25 * low + 0.5 * middle + 0.25 * high
  return spread / max(float(spread.sum()), 1.0)
