# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Generated videos: where they lie, what was recovered, and their checks.

A case to score is one video of one model for one case of the data set. Beside
a video `<name>.mp4` (or a folder of pictures) may lie `<name>.geometry.npz`, a
recorded `perception.observation.Geometry`, or a folder `<name>.geometry/` in
the published form (specification, 13.6).
"""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from perception import observation, storage
from perception.errors import InputError
from protocols.common import manifest
from protocols.orbia import geometry_programs as programs
from protocols.orbia import schedules
from protocols.orbia.constants import CONTROL_PROFILES, GROUPS, Constants
from protocols.orbia.dataset import INPUT_EVENT, QUERY_EVENT, PublicCase
from protocols.orbia.geometry import feature_frames
from protocols.orbia.views import CENTRE, Views, canvas, scale_intrinsics


@dataclasses.dataclass(frozen=True)
class OrbiaCase:
  """One video to score; see `protocols.common.manifest.Case`.

  Attributes:
    system: model name.
    public: the case of the data set.
    video: video file or folder of pictures.
    group: `world` or `ti2v`.
    profile: `pose_and_action` or `action_only`.
    tiers: tiers that the record must hold in the end.
  """

  system: str
  public: PublicCase
  video: pathlib.Path
  group: str = "world"
  profile: str = "pose_and_action"
  tiers: tuple[str, ...] = ()

  @property
  def case_id(self) -> str:
    """Case of the data set."""
    return self.public.case_id

  @property
  def groups(self) -> dict[str, str]:
    """What grouped totals are taken over."""
    return {
      "template": self.public.template,
      "source": self.public.source,
      "horizon": self.public.horizon,
      "group": self.group,
      "control_profile": self.profile,
    }

  @property
  def geometry_file(self) -> pathlib.Path:
    """Recorded geometry: an `.npz`, or a folder without that ending."""
    return self.video.with_suffix(".geometry.npz")

  @property
  def geometry_folder(self) -> pathlib.Path:
    """Recorded geometry in the published form."""
    return self.video.with_suffix(".geometry")

  @property
  def files(self) -> tuple[pathlib.Path, ...]:
    """Files that decide what is measured."""
    return (
      self.video,
      self.geometry_file,
      self.geometry_folder,
      self.public.folder,
      self.public.reference_folder,
    )

  @property
  def inputs(self) -> tuple[pathlib.Path, ...]:
    """Files of the case, and its tiers as the name of no file.

    The runner keeps a record while its inputs are unchanged; a case that is
    to hold more tiers than its record does is therefore done again.
    """
    return (*self.files, pathlib.Path("tiers-" + "-".join(self.tiers)))


@dataclasses.dataclass(frozen=True, eq=False)
class Generated:
  """One generated video in memory.

  Attributes:
    frame_count: decoded frames.
    fps: rate of the container.
    size: (H, W).
    frames: uint8 [H, W, 3] by frame number, those that are measured.
    geometry: recovered geometry of the sampled frames, or None.
    sha256: digest of the video.
    name: for messages.
    reason: why there is no geometry.
    flicker: T2 flicker score, taken while decoding; None = fewer than two.
  """

  frame_count: int
  fps: float
  size: tuple[int, int]
  frames: Mapping[int, NDArray[np.uint8]]
  geometry: observation.Geometry | None
  sha256: str
  name: str
  reason: str = ""
  flicker: float | None = None


def cases_from_list(
  path: pathlib.Path, cases: Sequence[PublicCase]
) -> list[OrbiaCase]:
  """Videos named by a `videos.jsonl` (13.5).

  Raises:
    InputError: for a malformed row or an unknown case.
  """
  by_id = {case.case_id: case for case in cases}
  found = []
  for field, row in manifest.read_jsonl(path):
    case_id = str(row.get("case_id"))
    if case_id not in by_id:
      raise InputError(
        path,
        f"{field}.case_id",
        found=case_id,
        expected="a case of the data set",
      )
    for name in ("model", "video"):
      if not isinstance(row.get(name), str) or not row[name]:
        raise InputError(
          path, f"{field}.{name}", found=row.get(name), expected="a text"
        )
    found.append(
      OrbiaCase(
        system=row["model"],
        public=by_id[case_id],
        video=path.parent / row["video"],
        group=_choice(path, field, row, "group", GROUPS),
        profile=_choice(path, field, row, "control_profile", CONTROL_PROFILES),
      )
    )
  _consistent(path, found)
  return manifest.unique(found, source=str(path))


def cases_from_folder(
  folder: pathlib.Path,
  cases: Sequence[PublicCase],
  *,
  group: str,
  profile: str,
) -> list[OrbiaCase]:
  """Videos `<model>/<case_id>.mp4`, or `<case_id>.mp4` of one model.

  Raises:
    InputError: for a video that belongs to no case.
  """
  by_id = {case.case_id: case for case in cases}
  found = []
  for path in manifest.videos_below(folder):
    if path.stem not in by_id:
      raise InputError(
        path,
        "name",
        found=path.stem,
        expected="the id of a case of the data set",
      )
    parent = path.parent.relative_to(folder).as_posix()
    system = folder.resolve().name if parent == "." else parent
    found.append(OrbiaCase(system, by_id[path.stem], path, group, profile))
  return manifest.unique(found, source=str(folder))


def wanted_frames(
  case: PublicCase, *, quality: bool, geometry: bool, c: Constants
) -> NDArray[np.int64]:
  """Frames whose pixels are looked at after decoding.

  Args:
    case: public case; the video has as many frames as it asks for.
    quality: some quality component has a backend.
    geometry: geometry is recovered here, from the whole sampling plan.
    c: constants.

  Returns:
    Increasing frame numbers. A minute of 1280 x 720 video kept whole would
    take 2.7 GB; what is listed here takes a fifth of it.
  """
  plan = case_plan(case, c=c)
  pairs = np.array(list(case.pairs.values()))
  parts = [
    np.array(list(case.events.values())),
    feature_frames(schedules.item_groups(plan, c=c), pairs, c=c),
    schedules.identity_frames(
      case.events[INPUT_EVENT], case.events[QUERY_EVENT], c=c
    )[0],
  ]
  reconstruction = schedules.reconstruction_frames(plan, c=c)
  if reconstruction is not None:
    parts += list(reconstruction)
  if quality:
    parts += [
      np.arange(0, case.frame_count, c.quality_stride),
      schedules.hps_frames(case.frame_count, c=c),
      schedules.smoothness_frames(case.frame_count, c=c),
    ]
  if geometry:
    parts.append(plan)
  return np.unique(np.concatenate(parts))


def case_plan(case: PublicCase, *, c: Constants) -> NDArray[np.int64]:
  """Sampling plan of a case (2.5)."""
  revisits = [frame for pair in case.pairs.values() for frame in pair]
  return schedules.sampling_plan(
    case.frame_count, case.events.values(), revisits, c=c
  )


def check_frame_count(name: str, frame_count: int, case: PublicCase) -> None:
  """Refuses a video of another length (2.4).

  Raises:
    InputError: naming both counts.
  """
  if frame_count != case.frame_count:
    raise InputError(
      name,
      "frames",
      found=f"{frame_count} decoded frames",
      expected=f"{case.frame_count}, one for each requested pose of"
      f" {case.case_id}",
    )


def views_of(
  geometry: observation.Geometry, frames: NDArray[np.int64], *, c: Constants
) -> Views:
  """Recovered geometry of some frames as `Views`, absent frames NaN.

  Args:
    geometry: recovered geometry.
    frames: increasing frame numbers.
    c: constants; `raw_centres` moves the principal points back to where the
      estimator has them.
  """
  stored = geometry.frame_indices.astype(np.int64)
  rows = np.searchsorted(stored, frames)
  rows = np.minimum(rows, len(stored) - 1)
  has = stored[rows] == frames
  size = geometry.depth_size
  count = len(frames)
  depth = canvas((programs.bucket(count), *size), np.float32)
  for place, row in enumerate(rows):
    depth[place] = geometry.depth[row] if has[place] else np.nan
  poses = np.full((count, 4, 4), np.nan)
  poses[has] = geometry.c2w[rows[has]]
  intrinsics = np.tile(np.eye(3, dtype=np.float32), (count, 1, 1))
  intrinsics[has] = geometry.intrinsics[rows[has]]
  if c.raw_centres:
    intrinsics[has, :2, 2] += CENTRE
  # Poses relative to the first sampled frame: float32 keeps its digits near
  # the origin.
  origin = np.linalg.inv(geometry.c2w[0])
  return Views(
    frames,
    depth,
    np.tile(size, (count, 1)),
    intrinsics,
    (origin @ poses).astype(np.float32),
    has,
    has.copy(),
  )


def read_geometry_folder(
  folder: pathlib.Path, *, video_size: tuple[int, int]
) -> observation.Geometry:
  """Recovered geometry in the published form (13.6).

  Raises:
    InputError: for a missing or inconsistent array.
  """
  arrays = {}
  for name in ("poses_c2w", "frame_indices", "intrinsics"):
    path = folder / f"{name}.npy"
    try:
      arrays[name] = np.load(path, allow_pickle=False)
    except (OSError, ValueError) as error:
      raise InputError(
        path, "file", found=error, expected="a NumPy array"
      ) from error
  depth: list[NDArray[np.float32]] = []
  for frame in arrays["frame_indices"].tolist():
    path = folder / "depth" / f"frame_{frame:06d}.npz"
    values = storage.read_npz(path)["depth"].astype(np.float32)
    if depth and values.shape != depth[0].shape:
      raise InputError(
        path, "depth", found=values.shape, expected=depth[0].shape
      )
    depth.append(np.where(values > 0, values, np.nan))
  stack = np.stack(depth)
  intrinsics = scale_intrinsics(
    arrays["intrinsics"].astype(np.float32),
    from_size=video_size,
    to_size=stack.shape[1:],
  )
  intrinsics[:, :2, 2] -= CENTRE
  return observation.Geometry(
    depth=stack,
    intrinsics=intrinsics,
    c2w=arrays["poses_c2w"],
    frame_indices=arrays["frame_indices"],
    video_size=video_size,
    unit="arbitrary",
    provenance=observation.Provenance("", "recorded", "1"),
  )


def _choice(
  path: pathlib.Path,
  field: str,
  row: Mapping[str, object],
  name: str,
  known: tuple[str, ...],
) -> str:
  value = row.get(name, known[0])
  if value not in known:
    raise InputError(
      path, f"{field}.{name}", found=value, expected=f"one of {known}"
    )
  return str(value)


def _consistent(path: pathlib.Path, cases: Sequence[OrbiaCase]) -> None:
  """All cases of a model agree in group and profile (9.5)."""
  first: dict[str, OrbiaCase] = {}
  for case in cases:
    before = first.setdefault(case.system, case)
    kinds = (case.group, case.profile)
    if kinds != (before.group, before.profile):
      raise InputError(
        path,
        f"model {case.system}",
        found=f"{kinds} and {(before.group, before.profile)}",
        expected="one group and one control_profile",
      )
