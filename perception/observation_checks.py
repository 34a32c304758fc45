# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Conversions and checks of single fields, used when a record is made.

Each `as_*` function returns the field in its contract dtype or raises an
`InputError` whose source is `observation`; `load` puts the file's name there.
A dimension given as None may have any size.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

import numpy as np

from perception import errors

ROTATION_TOLERANCE = 1e-3
_UNIT_NORM_TOLERANCE = 1e-3


def violation(
  field: str, found: object, expected: object, hint: str = ""
) -> errors.InputError:
  """The error of one field, not yet attributed to a file."""
  return errors.InputError(
    "observation", field, found=found, expected=expected, hint=hint
  )


def attribute(
  error: errors.InputError, source: str | os.PathLike[str]
) -> errors.InputError:
  """The same error, said of a file."""
  return errors.InputError(
    source,
    error.field,
    found=error.found,
    expected=error.expected,
    hint=error.hint,
  )


def require(
  condition: bool, field: str, found: object, expected: object, hint: str = ""
) -> None:
  """Raises the field's error unless the condition holds."""
  if not condition:
    raise violation(field, found, expected, hint)


def require_keys(
  given: Mapping[str, object], names: Sequence[str], *, optional: Sequence[str]
) -> None:
  """Raises when a key is absent or, for arrays, not known."""
  for name in names:
    require(
      name in given or name in optional,
      name,
      f"only the keys {sorted(given)}",
      "the key present",
    )
  unknown = sorted(set(given) - set(names))
  require(not unknown, "keys", f"unknown {unknown}", f"only {list(names)}")


def require_finite(array: np.ndarray, field: str) -> None:
  """Raises when a value is NaN or infinite."""
  bad = int(np.count_nonzero(~np.isfinite(array)))
  require(not bad, field, f"{bad} non-finite values", "finite values")


def require_unit(array: np.ndarray, field: str) -> None:
  """Raises unless vectors along the last axis have norm 1."""
  norm = np.linalg.norm(array, axis=-1)
  error = float(np.max(np.abs(norm - 1.0), initial=0.0))
  require(
    error <= _UNIT_NORM_TOLERANCE,
    field,
    f"a norm that differs from 1 by {error:.3g}",
    f"unit vectors within {_UNIT_NORM_TOLERANCE:g}",
  )


def _check_shape(
  array: np.ndarray, field: str, shape: tuple[int | None, ...]
) -> None:
  matches = array.ndim == len(shape) and all(
    want is None or want == have
    for want, have in zip(shape, array.shape, strict=True)
  )
  wanted = ", ".join("any" if n is None else str(n) for n in shape)
  require(matches, field, f"shape {array.shape}", f"shape ({wanted})")


def as_floats(
  value: object,
  field: str,
  shape: tuple[int | None, ...],
  dtype: type[np.floating] = np.float32,
) -> np.ndarray:
  """A floating array of a given shape, converted to `dtype`."""
  array = np.asarray(value)
  require(
    np.issubdtype(array.dtype, np.floating),
    field,
    f"dtype {array.dtype}",
    f"a floating dtype (stored as {np.dtype(dtype).name})",
  )
  _check_shape(array, field, shape)
  with np.errstate(over="ignore"):
    return array.astype(dtype, copy=False)


def as_integers(
  value: object, field: str, shape: tuple[int | None, ...]
) -> np.ndarray:
  """An integer array of a given shape, converted to int32."""
  array = np.asarray(value)
  require(
    np.issubdtype(array.dtype, np.integer) or array.size == 0,
    field,
    f"dtype {array.dtype}",
    "an integer dtype (stored as int32)",
  )
  _check_shape(array, field, shape)
  limits = np.iinfo(np.int32)
  require(
    array.size == 0
    or (int(array.min()) >= limits.min and int(array.max()) <= limits.max),
    field,
    "values beyond 32 bits",
    "int32 values",
  )
  return array.astype(np.int32, copy=False)


def as_bools(
  value: object, field: str, shape: tuple[int | None, ...]
) -> np.ndarray:
  """A bool array of a given shape without empty image axes."""
  array = np.asarray(value)
  require(array.dtype == np.bool_, field, f"dtype {array.dtype}", "dtype bool")
  _check_shape(array, field, shape)
  if len(shape) == 4:
    require(
      min(array.shape) > 0, field, f"shape {array.shape}", "no empty axis"
    )
  return array


def as_text(
  value: object, field: str, *, choices: Sequence[str] | None = None
) -> str:
  """One text value, also from a 0-d array, within `choices` if given."""
  array = np.asarray(value)
  require(
    array.dtype.kind == "U" and array.shape == (),
    field,
    f"{array.dtype} {array.shape}",
    "one text value",
  )
  text = str(array)
  require(
    choices is None or text in choices,
    field,
    repr(text),
    f"one of {list(choices or ())}",
  )
  return text


def as_size(value: object, field: str) -> tuple[int, int]:
  """(height, width) as positive ints."""
  size = as_integers(value, field, (2,))
  require(bool(np.all(size > 0)), field, size.tolist(), "(height, width) > 0")
  return int(size[0]), int(size[1])


def as_frame_indices(value: object) -> np.ndarray:
  """[T] int32, at least one, >= 0, strictly increasing."""
  indices = as_integers(value, "frame_indices", (None,))
  require(len(indices) > 0, "frame_indices", "no frame", "at least one frame")
  require(int(indices[0]) >= 0, "frame_indices", indices[0], "indices >= 0")
  steps = np.diff(indices.astype(np.int64))
  if not np.all(steps > 0):
    row = int(np.flatnonzero(steps <= 0)[0])
    found = f"{indices[row]} followed by {indices[row + 1]}"
    raise violation("frame_indices", found, "strictly increasing indices")
  return indices


def as_object_ids(value: object) -> np.ndarray:
  """[O] int32, at least one, distinct."""
  ids = as_integers(value, "object_ids", (None,))
  require(len(ids) > 0, "object_ids", "no object", "at least one object")
  require(
    len(np.unique(ids)) == len(ids), "object_ids", ids.tolist(), "distinct ids"
  )
  return ids


def as_depth(value: object, frames: int) -> np.ndarray:
  """[T, h, w] float32: positive or NaN, with some valid pixel."""
  depth = as_floats(value, "depth", (frames, None, None))
  require(
    min(depth.shape) > 0, "depth", f"shape {depth.shape}", "no empty axis"
  )
  hint = "Mark pixels without depth with NaN."
  infinite = int(np.count_nonzero(np.isinf(depth)))
  require(
    not infinite, "depth", f"{infinite} infinite values", "finite or NaN", hint
  )
  low = int(np.count_nonzero(depth <= 0))
  require(not low, "depth", f"{low} values <= 0", "values > 0 or NaN", hint)
  require(
    not bool(np.all(np.isnan(depth))),
    "depth",
    "no valid pixel in any frame",
    "some valid depth",
  )
  return depth


def as_intrinsics(value: object, frames: int) -> np.ndarray:
  """[T, 3, 3] float32 with positive focal lengths and last row 0 0 1."""
  intrinsics = as_floats(value, "intrinsics", (frames, 3, 3))
  require_finite(intrinsics, "intrinsics")
  focal = intrinsics[:, [0, 1], [0, 1]]
  smallest = float(focal.min())
  require(smallest > 0, "intrinsics", f"focal length {smallest:g}", "> 0")
  zeros = np.concatenate([intrinsics[:, 2], intrinsics[:, 1, :1]], axis=1)
  require(
    bool(np.all(zeros == np.array([0, 0, 1, 0], np.float32))),
    "intrinsics",
    "other values below the diagonal",
    "[[fx, s, cx], [0, fy, cy], [0, 0, 1]]",
  )
  return intrinsics


def as_poses(value: object, frames: int) -> np.ndarray:
  """[T, 4, 4] float64 rigid transforms."""
  poses = as_floats(value, "c2w", (frames, 4, 4), np.float64)
  require_finite(poses, "c2w")
  last_row = poses[:, 3]
  error = np.abs(last_row - np.array([0.0, 0.0, 0.0, 1.0])).max(axis=1)
  row = int(np.argmax(error))
  require(
    float(error[row]) <= 1e-6,
    "c2w",
    f"last row {last_row[row].tolist()} in row {row}",
    "last row 0 0 0 1",
  )
  rotation = poses[:, :3, :3]
  gram = np.swapaxes(rotation, 1, 2) @ rotation
  error = np.abs(gram - np.eye(3)).max(axis=(1, 2))
  row = int(np.argmax(error))
  require(
    float(error[row]) <= ROTATION_TOLERANCE,
    "c2w",
    f"a rotation that is {error[row]:.3g} from orthonormal in row {row}",
    f"orthonormal within {ROTATION_TOLERANCE:g}",
  )
  determinant = np.linalg.det(rotation)
  row = int(np.argmin(determinant))
  require(
    float(determinant[row]) > 0,
    "c2w",
    f"a reflection (determinant {determinant[row]:.3g}) in row {row}",
    "a rotation (determinant 1)",
  )
  return poses
