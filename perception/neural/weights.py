# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Finds weights on this machine and says what they are.

Nothing is ever downloaded here, whatever `HF_HUB_OFFLINE` says: licences
differ and files are large, so fetching is the user's step, and an error names
the file, its licence and the command. Places, in order:

1. the `weights` setting: a folder or file, a hub id `org/name[@revision]`, or
   `random` (for tests; results are marked and never comparable);
2. `$WORLDGAUGE_WEIGHTS/org/name/`;
3. the hub cache (`HF_HUB_CACHE`, `HF_HOME`) or, for files that torch.hub
   keeps, `$TORCH_HOME/hub/checkpoints/`.

The SHA-256 of one weight file is the file's own, so it can be compared with a
published digest; of several (shards) it is the digest of their sorted list.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import os
import pathlib
import re

from perception import errors, storage

RANDOM = "random"
_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+(@[\w./-]+)?")


@dataclasses.dataclass(frozen=True)
class Checkpoint:
  """Weights that an adapter can use.

  Attributes:
    hub_id: `org/name` on the hub, or a label where they live elsewhere.
    file: the weight file; for sharded models its index is accepted as well.
    licence: of the weights.
    companions: other files that must lie beside it.
    command: what to type to get them; empty: the hub's own command.
    gated: the hub asks for an accepted licence and a token.
    torch_hub: torch.hub's folder is searched too.
  """

  hub_id: str
  file: str
  licence: str
  companions: tuple[str, ...] = ()
  command: str = ""
  gated: bool = False
  torch_hub: bool = False

  @property
  def how_to_get(self) -> str:
    """The command, with a word on gated models."""
    if self.command:
      return self.command
    only = f" {self.file}" if not self.companions else ""
    note = " (gated: accept its licence and `hf auth login`)"
    return f"hf download {self.hub_id}{only}{note if self.gated else ''}"


@dataclasses.dataclass(frozen=True)
class Found:
  """Weights on disk.

  Attributes:
    folder: holds the weight files; None for random weights.
    file: the weight file or the index of shards; None for random weights.
    sha256: their digest, or `random`.
  """

  folder: pathlib.Path | None
  file: pathlib.Path | None
  sha256: str

  @property
  def random(self) -> bool:
    """True when there are no weights on purpose."""
    return self.file is None

  def require_folder(self) -> pathlib.Path:
    """The folder; only for callers that have excluded random weights."""
    assert self.folder is not None
    return self.folder

  def require_file(self) -> pathlib.Path:
    """The file; only for callers that have excluded random weights."""
    assert self.file is not None
    return self.file


def find(checkpoint: Checkpoint, weights: str = "") -> Found:
  """Finds a checkpoint's files.

  Args:
    checkpoint: what is wanted.
    weights: folder, file, hub id, `random`, or empty for the default places.

  Raises:
    InputError: not there; one line with file, licence and command.
  """
  if weights == RANDOM:
    return Found(None, None, RANDOM)
  explicit = os.path.exists(weights) if weights else False
  if explicit:
    folders = [pathlib.Path(weights)]
  elif weights and not _HUB_ID.fullmatch(weights):
    raise _missing(checkpoint, f"no file or folder {weights!r}")
  else:
    folders = _default_places(checkpoint, weights or checkpoint.hub_id)
  for place in folders:
    file = _weight_file(place, checkpoint)
    if file is not None:
      absent = [
        name
        for name in checkpoint.companions
        if not (file.parent / name).is_file()
      ]
      if absent:
        raise _missing(checkpoint, f"{file.parent} without {absent}")
      return Found(file.parent, file, digest(file))
  places = ", ".join(str(place) for place in folders)
  raise _missing(checkpoint, f"nothing in {places}")


def is_present(checkpoint: Checkpoint, weights: str = "") -> bool:
  """Whether `find` would succeed, without reading the weights."""
  if weights == RANDOM:
    return True
  places = (
    [pathlib.Path(weights)]
    if weights and os.path.exists(weights)
    else _default_places(checkpoint, weights or checkpoint.hub_id)
  )
  files = [_weight_file(place, checkpoint) for place in places]
  return any(
    file is not None
    and all((file.parent / name).is_file() for name in checkpoint.companions)
    for file in files
  )


def digest(file: pathlib.Path) -> str:
  """SHA-256 of a weight file, or of the list of shards that an index names.

  Raises:
    InputError: unreadable file or index.
  """
  stat = file.stat() if file.is_file() else None
  stamp = (stat.st_size, stat.st_mtime_ns) if stat else (0, 0)
  return _digest(file.resolve(), file.name, file.parent, stamp)


@functools.lru_cache(maxsize=64)
def _digest(
  real: pathlib.Path, name: str, folder: pathlib.Path, stamp: tuple[int, int]
) -> str:
  del stamp  # Only there to notice that a file has changed.
  if not name.endswith(".index.json"):
    return storage.sha256_file(real)
  try:
    shards = sorted(set(json.loads(real.read_text())["weight_map"].values()))
  except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
    raise errors.InputError(
      real, "weight_map", found=error, expected="an index of shards"
    ) from error
  lines = [f"{shard} {storage.sha256_file(folder / shard)}" for shard in shards]
  return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _weight_file(
  place: pathlib.Path, checkpoint: Checkpoint
) -> pathlib.Path | None:
  """The weight file in a folder, or the place itself if it is a file."""
  if place.is_file():
    return place
  for name in (checkpoint.file, f"{checkpoint.file}.index.json"):
    if (place / name).is_file():
      return place / name
  return None


def _default_places(checkpoint: Checkpoint, hub_id: str) -> list[pathlib.Path]:
  """Folders to search for `org/name[@revision]`, in order."""
  name, _, revision = hub_id.partition("@")
  places = []
  root = os.environ.get("WORLDGAUGE_WEIGHTS")
  if root:
    places.append(pathlib.Path(root, *name.split("/")))
  home = pathlib.Path(
    os.environ.get("HF_HOME")
    or pathlib.Path(
      os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache",
      "huggingface",
    )
  )
  cache = pathlib.Path(os.environ.get("HF_HUB_CACHE") or home / "hub")
  repository = cache / f"models--{name.replace('/', '--')}"
  reference = repository / "refs" / (revision or "main")
  if reference.is_file():
    revision = reference.read_text().strip()
  places.append(repository / "snapshots" / (revision or "main"))
  if checkpoint.torch_hub:
    torch_home = os.environ.get("TORCH_HOME") or (
      pathlib.Path.home() / ".cache" / "torch"
    )
    places.append(pathlib.Path(torch_home, "hub", "checkpoints"))
  return places


def _missing(checkpoint: Checkpoint, found: str) -> errors.InputError:
  return errors.InputError(
    f"weights {checkpoint.hub_id}",
    "file",
    found=found,
    expected=f"{checkpoint.file} (licence of the weights:"
    f" {checkpoint.licence})",
    hint=f"Get it with: {checkpoint.how_to_get}",
  )
