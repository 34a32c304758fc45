# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Looks at the machine and at inputs before a long run: `bin.doctor`."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import pathlib
from collections.abc import Iterator, Sequence

import kernels
from perception import (
  observation,
  pycolmap_adjustment,
  recorded,
  registry,
  roles,
  video,
)
from perception.errors import InputError
from perception.neural import checkpoints, xfeat_keypoints
from protocols.common import manifest, outputs

GOOD = "ok"
NOTE = "note"
PROBLEM = "problem"

# transformers takes a distribution with a top-level `kernels` for the PyPI
# package of that name when its version lies in this range.
_HAZARD_FROM, _HAZARD_BELOW = (0, 18, 2), (0, 19, 0)


@dataclasses.dataclass(frozen=True)
class Finding:
  """One line of the doctor's report.

  Attributes:
    level: `ok`, `note` or `problem`.
    topic: what was looked at.
    text: what was found and, for a problem, what to do.
  """

  level: str
  topic: str
  text: str


def environment() -> Iterator[Finding]:
  """Python, packages and devices."""
  info = outputs.environment()
  yield Finding(GOOD, "python", str(info["python"]))
  for package, version in info["packages"].items():
    yield Finding(
      GOOD if version else NOTE, package, version or "not installed"
    )
  for device in info["devices"]:
    yield Finding(GOOD, "device", device)
  if all(device.startswith("cpu") for device in info["devices"]):
    yield Finding(NOTE, "device", "no accelerator: JAX runs on the CPU")


def name_hazards() -> Iterator[Finding]:
  """Top-level names that other distributions can take over."""
  root = pathlib.Path(__file__).resolve().parents[1]
  ours = pathlib.Path(str(kernels.__file__)).resolve()
  if ours.is_relative_to(root):
    yield Finding(GOOD, "kernels", "the imported package is ours")
  else:
    yield Finding(
      PROBLEM, "kernels", f"{ours} is imported; uninstall that distribution"
    )
  providers = importlib.metadata.packages_distributions()
  for name in ("kernels", "perception", "protocols", "bin", "tests"):
    others = sorted(set(providers.get(name, [])) - {"worldgauge"})
    if others:
      yield Finding(
        PROBLEM,
        name,
        f"also provided by {', '.join(others)}; uninstall or use another"
        " environment",
      )
  parts = importlib.metadata.version("worldgauge").split(".")[:3]
  version = tuple(int(part) for part in parts)
  if _HAZARD_FROM <= version < _HAZARD_BELOW:
    yield Finding(
      PROBLEM,
      "worldgauge",
      f"version {version} makes transformers import our kernels folder",
    )
  wheels = [
    name
    for name in ("opencv-python", "opencv-contrib-python")
    if _installed(name)
  ]
  if wheels and _installed("opencv-python-headless"):
    yield Finding(
      PROBLEM,
      "opencv",
      f"{wheels[0]} and opencv-python-headless share the cv2 folder; remove"
      " both, then install the headless one",
    )


def _installed(distribution: str) -> bool:
  try:
    importlib.metadata.version(distribution)
  except importlib.metadata.PackageNotFoundError:
    return False
  return True


def perception_backends() -> Iterator[Finding]:
  """Every backend of every role: can it run here, and under which licence."""
  for role in roles.ROLES:
    for name in registry.names(role):
      spec = registry.spec(role, name)
      state = registry.availability(role, name)
      kind = (
        "comparable with published scores"
        if spec.comparable_to_published
        else "not comparable with published scores"
      )
      text = f"{spec.summary} Licence: {spec.licence}; {kind}."
      if not state.available:
        text += f" Cannot run: {state.reason}"
      yield Finding(GOOD if state.available else NOTE, f"{role} {name}", text)


def offline_extras() -> Iterator[Finding]:
  """What the offline geometry uses where it is installed."""
  solver = pycolmap_adjustment.version()
  yield Finding(
    GOOD if solver else NOTE,
    "pycolmap",
    f"{solver} solves the bundle adjustment of geometry opencv"
    if solver
    else "absent (pip install pycolmap): NumPy solves the bundle adjustment",
  )
  reason = xfeat_keypoints.why_absent()
  yield Finding(
    NOTE if reason else GOOD,
    "xfeat",
    reason or 'geometry opencv takes {"keypoints": "xfeat"}',
  )


def model_weights() -> Iterator[Finding]:
  """Which weights are on this machine; how to get the others."""
  for topic, present, text in checkpoints.status():
    text = f"{'present' if present else 'absent'}: {text}"
    yield Finding(GOOD if present else NOTE, f"weights {topic}", text)


def inputs(paths: Sequence[pathlib.Path]) -> Iterator[Finding]:
  """Reads inputs as a run would: clips, RGB-D folders, `.npz`, folders."""
  for path in paths:
    try:
      yield Finding(GOOD, str(path), _describe(path))
    except InputError as error:
      yield Finding(PROBLEM, str(path), str(error))


def _describe(path: pathlib.Path) -> str:
  if path.suffix.lower() in manifest.VIDEO_SUFFIXES:
    clip = video.open_video(path)
    height, width = clip.size
    rate = float(clip.fps)
    return f"{len(clip)} frames of {width}x{height} at {rate:.3f} fps"
  if path.suffix == ".npz":
    return _describe_npz(path)
  if not path.exists():
    raise InputError(
      path, "path", found="nothing", expected="a file or a folder"
    )
  if recorded.is_rgbd_folder(path):
    source = recorded.open_rgbd(path)
    return f"RGB-D sequence of {len(source)} frames"
  clips = manifest.videos_below(path)
  for name in clips:
    video.open_video(name)
  return f"{len(clips)} clips, all readable"


def _describe_npz(path: pathlib.Path) -> str:
  kinds = (
    observation.Geometry,
    observation.Masks,
    observation.Tracks,
    observation.Features,
    observation.Detections,
  )
  reasons = []
  for kind in kinds:
    try:
      kind.load(path)
      return f"valid {kind.__name__}"
    except InputError as error:
      reasons.append(f"as {kind.__name__}: {error.field} {error.found}")
  raise InputError(
    path,
    "content",
    found="; ".join(reasons),
    expected="one of the observation records",
  )


def run(paths: Sequence[pathlib.Path]) -> list[Finding]:
  """All findings.

  Args:
    paths: inputs to look at, possibly none.

  Returns:
    Findings in order of topic.
  """
  return [
    *environment(),
    *name_hazards(),
    *perception_backends(),
    *offline_extras(),
    *model_weights(),
    *inputs(paths),
  ]
