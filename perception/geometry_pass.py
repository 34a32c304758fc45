# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Which frames one geometry pass sees, so that protocols can share it.

Depth and cameras of a frame depend on all frames of the pass: a pass over
every second frame of a video and one over all of them are two estimates.
Results are kept by frame list (`perception.cached`), so what is shared is
stated, never a matter of what ran first:

* `own`: a protocol's own frames, as its publication has it. Protocols share a
  pass where their lists are the same.
* `video`: one pass over all frames of the video; every protocol takes its rows
  from it. PDI and Orbia of one video then run geometry once, whatever their
  sampling, and so do all variants.

What cannot be shared: EgoGenEval's camera motion is measured on pairs of
pictures (two frames a pass, specs/egogeneval.md section 3.1) and its depth on
single ones. These passes are kept by pixels: a physical pair runs once for
all systems. Recordings bring their geometry and need no pass.
"""

from __future__ import annotations

from perception import observation, roles, video

OWN = "own"
VIDEO = "video"
PASSES = (OWN, VIDEO)


def reconstruct(
  backend: roles.GeometryBackend,
  frames: roles.FrameSource,
  *,
  whole: video.Video | None,
) -> observation.Geometry:
  """Geometry of frames, from a pass over them or over their whole video.

  Args:
    backend: from `cached.get` where the pass is to be kept.
    frames: the wanted frames; with `whole` a `Video` made from it.
    whole: the opened video for one pass over all of it, or None.

  Returns:
    One row a frame. With `whole` the provenance names the whole video.

  Raises:
    InputError, DegenerateError: what the backend raises for its pass.
  """
  if whole is None or not isinstance(frames, video.Video):
    return backend.reconstruct(frames)
  found = backend.reconstruct(whole)
  # A resampled video may repeat rows of the pass, under numbers of its own.
  return found.select(frames.rows, frame_indices=frames.frame_indices)
