# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Categories of PDI-Bench and the object phrases of its 28 prompts.

Specification section 10.1. A category has three names: its key here, the
folder of the published results and the folder of the published data set.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping


@dataclasses.dataclass(frozen=True)
class Category:
  """One of the five categories.

  Attributes:
    key: name in our records.
    name: name in the paper.
    result_folder: folder in the published results.
    objects: object phrase of each prompt, in prompt order (index 1, 2, ...).
  """

  key: str
  name: str
  result_folder: str
  objects: tuple[str, ...]


CATEGORIES: tuple[Category, ...] = (
  Category(
    "longitudinal_convergence",
    "Longitudinal Convergence",
    "axial_rigid",
    (
      "red vintage car",
      "high-speed train",
      "yellow school bus",
      "silver metallic sphere",
      "heavy cargo truck",
      "large shipping container",
    ),
  ),
  Category(
    "dynamic_tracking",
    "Dynamic Tracking",
    "tracking_nonhuman_bio",
    (
      "red sports car",
      "autonomous suitcase",
      "large chrome sphere",
      "large truck carrying a blue container",
      "metal logistics crate",
      "large metal ball",
    ),
  ),
  Category(
    "biological_motion",
    "Biological Motion",
    "nonrigid_nonhuman_bio",
    (
      "large eagle",
      "dolphin",
      "large octopus",
      "snake",
      "peacock",
    ),
  ),
  Category(
    "curved_motion",
    "Curved Motion",
    "orbital_rotation",
    (
      "silver compact SUV",
      "sports car",
      "city bus",
      "small delivery robot",
      "green tractor",
    ),
  ),
  Category(
    "partial_occlusion",
    "Partial Occlusion",
    "partial_occlusion",
    (
      "car",
      "train",
      "bus",
      "vintage car",
      "boat",
      "robot crate",
    ),
  ),
)

_BY_NAME: Mapping[str, Category] = {
  name.lower(): category
  for category in CATEGORIES
  for name in (
    category.key,
    category.result_folder,
    category.name,
    category.name.replace(" ", "_"),
  )
}


def category_key(name: str) -> str:
  """Key of a category by any of its names; another name is kept as it is.

  Args:
    name: folder or category name.

  Returns:
    The key, for example `curved_motion` for `orbital_rotation`.
  """
  category = _BY_NAME.get(name.lower())
  return category.key if category else name


def object_query(category: str, index: str) -> str:
  """Phrase that names the object of a prompt (specification section 2.1).

  Args:
    category: category key.
    index: prompt index `1`.. or, for real clips, the file stem.

  Returns:
    The phrase of the prompt; a stem with blanks for `_` otherwise; empty for
    an index that the category does not have.
  """
  found = _BY_NAME.get(category.lower())
  if not index.isdigit():
    return index.replace("_", " ")
  position = int(index) - 1
  if found is None or not 0 <= position < len(found.objects):
    return ""
  return found.objects[position]
