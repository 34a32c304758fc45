# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Runs every golden PDI vector against our code, both variants."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator, Mapping
from typing import Any

from protocols.common.conformance import Check, unknown
from protocols.pdi import golden_arrays, golden_stage, golden_units
from protocols.pdi.constants import RELEASED
from protocols.pdi.golden import DESCRIPTION, Comparer, Entries, read

_FOLDER_FILES = ("index.json", "README.md")
_META = ("title", "generated_with", "conventions", "non_finite")


def recognises(index: Mapping[str, Any]) -> bool:
  """Whether an `index.json` describes PDI vectors."""
  title = index.get("meta", {}).get("title", "")
  groups = {str(vector.get("group", "")) for vector in index.get("vectors", [])}
  return "PDI" in title or any(g.startswith("stage") for g in groups)


def checks(
  folder: pathlib.Path, index: Mapping[str, Any], *, precision: str
) -> Iterator[Check]:
  """Every comparison of a golden folder.

  Args:
    folder: holds `index.json` and the files it names.
    index: the parsed index.
    precision: `float64` or `float32`.

  Yields:
    One `Check` per value; a failed one for every file, array, field or case
    that none of our checks reads.
  """
  yield from _meta(index, precision)
  named = set(_FOLDER_FILES)
  for fields in index["vectors"]:
    vector = Entries(fields, str(fields.get("name")))
    for key in DESCRIPTION:
      vector.take(key)
    named.add(str(fields["file"]))
    yield from _vector(folder / fields["file"], vector, fields, precision)
  for path in sorted(folder.iterdir()):
    if path.name not in named:
      yield unknown(path.name, precision=precision)


def _meta(index: Mapping[str, Any], precision: str) -> Iterator[Check]:
  meta = Entries(index.get("meta", {}), "meta")
  comparer = Comparer("-", precision, {})
  for key in _META:
    meta.take(key)
  if "count" in meta:
    count = len(index["vectors"])
    yield comparer.same("meta/count", count, meta.take("count"))
  if "weights" in meta:
    ours = [*RELEASED.weights, RELEASED.vp_weight]
    yield comparer.same("meta/weights", ours, meta.take("weights"))
  yield from meta.leftovers(precision=precision)


def _vector(
  path: pathlib.Path,
  vector: Entries,
  fields: Mapping[str, Any],
  precision: str,
) -> Iterator[Check]:
  """All checks of one vector; an exception fails it and spares the rest."""
  try:
    content = read(path)
    group = str(fields.get("group", ""))
    found: Iterator[Check] | None
    if group.startswith("stage"):
      found = golden_stage.checks(vector, content, precision=precision)
    elif path.suffix == ".json":
      found = golden_units.checks(vector, content, precision=precision)
    else:
      found = golden_arrays.checks(vector, content, precision=precision)
    if found is None:
      yield unknown(vector.name, precision=precision)
      return
    yield from found
    yield from content.leftovers(precision=precision)
    yield from vector.leftovers(precision=precision)
  except Exception as error:  # any failure of ours is a failed check
    text = f"{type(error).__name__}: {error}"
    yield Check(vector.name, "-", precision, False, float("nan"), 0.0, text)
