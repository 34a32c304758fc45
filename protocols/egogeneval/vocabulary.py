# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Object labels: normalisation, synonym groups, detector prompts.

Source: EgoGenEval specification 4.3 and 4.5.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from protocols.egogeneval import constants

FIXED_VOCABULARY = (
  "chair", "table", "sofa", "bed", "cabinet", "desk", "door", "window",
  "bookshelf", "counter", "toilet", "sink", "bathtub", "picture", "monitor",
  "trash can", "book", "bag", "backpack", "guitar", "lamp", "pillow",
  "blanket", "clothes", "cup", "bottle", "plant", "tv", "keyboard", "laptop",
  "stool", "bench", "shelf", "curtain", "rug", "box",
)  # fmt: skip

_SYNONYMS = (
  frozenset({"monitor", "monitor tv", "tv", "television"}),
  frozenset({"sofa", "couch", "sofa bed", "bed"}),
  frozenset({"bookshelf", "shelf", "bookcase"}),
  frozenset({"desk", "table", "counter", "table counter", "countertop"}),
  frozenset({"trash", "trash can"}),
  frozenset({"bag", "backpack"}),
  frozenset({"chair", "stool"}),
)

_STRUCTURE = frozenset(
  {
    "none", "unknown", "unclear", "uncertain", "other", "object", "objects",
    "thing", "things", "item", "items", "wall", "walls", "floor", "floors",
    "ceiling", "ceilings", "sky", "room", "scene", "background",
    "foreground", "layout",
  }
)  # fmt: skip

_NEVER_PROMPTED = frozenset({"wall", "floor", "ceiling", "sky"})
_LABEL_KEYS = ("category", "label", "name", "object")


def normalise(label: object) -> str:
  """Normal form of a label; empty for structure and filler words.

  Args:
    label: text, a mapping with one of the keys category, label, name, object,
      or anything that can be written as text.

  Returns:
    Lower-case label of letters, digits and spaces, or the empty string.
  """
  if isinstance(label, Mapping):
    named = [label[key] for key in _LABEL_KEYS if label.get(key)]
    label = named[0] if named else label
  text = "" if label is None else str(label)
  text = text.lower().strip().strip("\"'`")
  text = re.sub(r"^(a|an|the)\s+", "", text.strip())
  text = re.sub(r"\s+", " ", text.replace("_", " ").replace("-", " "))
  text = re.sub(r"[^a-z0-9 /]", "", text).strip(" /")
  text = text.split("/")[0].strip(" /")
  return "" if text in _STRUCTURE else text


def canonical(label: str) -> str:
  """First member, in the alphabet, of a label's synonym group."""
  text = normalise(label)
  for group in _SYNONYMS:
    if text in group:
      return min(group)
  return text


def compatible(first: str, second: str) -> bool:
  """Whether two labels can name one object: equal, empty or synonyms."""
  a, b = normalise(first), normalise(second)
  return not a or not b or canonical(a) == canonical(b)


def step_labels(
  annotation: Mapping[str, object], limits: constants.Constants
) -> list[str]:
  """Normalised labels of a step's frozen annotation, without repetition."""
  raw = annotation.get("detector_prompt_labels") or annotation.get(
    "object_labels"
  )
  if isinstance(raw, str):
    raw = [raw]
  values = raw if isinstance(raw, Iterable) else []
  return _unique(normalise(value) for value in values)[: limits.max_labels]


def prompts(labels: list[str], limits: constants.Constants) -> list[str]:
  """Detector prompts: step labels and the fixed vocabulary.

  Spec 13 item 14: the released code puts the labels first, the paper adds them
  to the fixed list; the order changes the detector's text input.
  """
  if limits.labels_first:
    union = _unique([*labels, *FIXED_VOCABULARY])
  else:
    union = _unique([*FIXED_VOCABULARY, *labels])
  return union[: limits.max_prompts]


def detector_query(prompt_list: list[str]) -> str:
  """The text that the detector receives for a list of prompts."""
  words = [word.lower() for word in prompt_list]
  return " . ".join(w for w in words if w not in _NEVER_PROMPTED) + " ."


def _unique(values: Iterable[str]) -> list[str]:
  return list(dict.fromkeys(value for value in values if value))
