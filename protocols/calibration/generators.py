# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Five built-in "generators": one honest, four that each break one law.

All five are given the same scenes (category and seed), so their scores are
paired. They write `<root>/<generator>/<category>/<index>/` with `clip.mp4`
and ready observations (see `clips`); categories are PDI-Bench's five and
index counts from 1.
"""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Iterator

from protocols.calibration import clips, scenes
from protocols.calibration.defects import inject

FRAMES = 96
FPS = 24.0
SIZE = (240, 320)
DEPTH_SHRINK = 2


@dataclasses.dataclass(frozen=True)
class Generator:
  """A name, and the defect that all its clips share.

  Attributes:
    name: folder name.
    defect: key of `defects.DEFECTS`; empty for the honest one.
    strength: of the defect.
  """

  name: str
  defect: str = ""
  strength: float = 0.0

  def scene(self, category: str, *, seed: int) -> scenes.Scene:
    """The scene that this generator makes of a category and seed."""
    scene = scenes.make_scene(
      category, seed=seed, frames=FRAMES, size=SIZE, fps=FPS
    )
    if not self.defect:
      return scene
    return inject(scene, self.defect, strength=self.strength)


GENERATORS: tuple[Generator, ...] = (
  Generator("pristine"),
  Generator("direction_reversal", "direction_reversal", 1.0),
  Generator("teleport", "teleport", 0.5),
  Generator("skating", "skating", 0.8),
  Generator("volume_breathing", "volume_breathing", 0.8),
)


def write_generators(
  root: pathlib.Path, *, clips_per_category: int
) -> Iterator[pathlib.Path]:
  """Renders and writes every clip of every generator.

  A folder that already holds a clip with all its observations is kept, so a
  stopped run continues.

  Args:
    root: folder of the generators.
    clips_per_category: at least 1; clip k of a category uses seed k - 1.

  Yields:
    The folder of each clip, once it is complete.

  Raises:
    ValueError: clips_per_category below 1.
    InputError: the disk refuses.
  """
  if clips_per_category < 1:
    raise ValueError(f"clips_per_category: found {clips_per_category}")
  for generator in GENERATORS:
    for category in scenes.CATEGORIES:
      for index in range(1, clips_per_category + 1):
        folder = root / generator.name / category / str(index)
        if not (folder / clips.LAST_FILE).exists():
          scene = generator.scene(category, seed=index - 1)
          recording = clips.record(scene, color=True, depth_shrink=DEPTH_SHRINK)
          clips.write(folder, recording)
        yield folder
