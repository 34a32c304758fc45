# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Flags that every protocol of `bin.evaluate` shares."""

from __future__ import annotations

import json
import pathlib
import re
from collections.abc import Mapping
from typing import Any

from absl import flags

from perception.errors import InputError
from protocols.common.executor import EXECUTORS
from protocols.common.records import STATUSES
from protocols.common.runner import RunOptions

PROTOCOLS = ("pdi", "orbia", "egogeneval")
VARIANTS = ("paper", "released")
_SECRET = re.compile(
  r"(api_?|access_?)?key|(auth_?|access_?)?token|secret|password",
  re.IGNORECASE,
)

_PROTOCOL = flags.DEFINE_enum(
  "protocol", None, PROTOCOLS, "Which benchmark.", required=True
)

_OUTPUT = flags.DEFINE_string(
  "output", None, "Folder for records, scores and reports.", required=True
)
_VARIANT = flags.DEFINE_enum(
  "variant",
  "paper",
  VARIANTS,
  "paper: the text, defects removed. released: the published code, defects"
  " included; only this one can be compared with published tables.",
)
_WORKERS = flags.DEFINE_integer(
  "workers", 1, "Worker processes.", lower_bound=1
)
_EXECUTOR = flags.DEFINE_enum(
  "executor",
  "local",
  EXECUTORS,
  "Where cases run; ray needs the extra cluster.",
)
_SHARD_INDEX = flags.DEFINE_integer(
  "shard_index", 0, "This process's shard.", lower_bound=0
)
_NUM_SHARDS = flags.DEFINE_integer(
  "num_shards",
  1,
  "Static shards over the same --output; the last one to finish writes totals.",
  lower_bound=1,
)
_RETRY = flags.DEFINE_multi_enum(
  "retry", [], STATUSES, "Score cases with this status again."
)
_RESUME = flags.DEFINE_bool(
  "resume", True, "Keep finished cases; --noresume scores all cases again."
)
_ALLOW_PARTIAL = flags.DEFINE_bool(
  "allow_partial", False, "Show totals although some cases have no score."
)
_GEOMETRY_PASS = flags.DEFINE_enum(
  "geometry_pass",
  "own",
  ["own", "video"],
  "What a geometry backend sees of a video: the frames that the protocol"
  " samples, or all of them, once for PDI and Orbia with one --cache.",
)
_CACHE = flags.DEFINE_string(
  "cache",
  None,
  "Folder where perception results are kept by content, for all runs and"
  " protocols.",
)

flags.register_multi_flags_validator(
  ["shard_index", "num_shards"],
  lambda values: values["shard_index"] < values["num_shards"],
  "--shard_index must be below --num_shards",
)


def protocol() -> str:
  """The chosen protocol."""
  return str(_PROTOCOL.value)


def variant() -> str:
  """The chosen variant."""
  return str(_VARIANT.value)


def run_options() -> RunOptions:
  """How the run is carried out, from the flags."""
  retry = tuple(_RETRY.value) if _RESUME.value else STATUSES
  return RunOptions(
    output=pathlib.Path(_OUTPUT.value),
    workers=_WORKERS.value,
    executor=_EXECUTOR.value,
    shard_index=_SHARD_INDEX.value,
    num_shards=_NUM_SHARDS.value,
    retry=retry,
    allow_partial=_ALLOW_PARTIAL.value,
    flags=resolved_flags(),
  )


def resolved_flags() -> dict[str, Any]:
  """Values of this project's own flags by name, whoever set them."""
  found = {
    flag.name: flag.value
    for module, own in flags.FLAGS.flags_by_module_dict().items()
    if module.startswith("bin.")
    for flag in own
  }
  return dict(sorted(found.items()))


def cache() -> pathlib.Path | None:
  """The folder of kept perception results."""
  return optional_path(_CACHE.value)


def geometry_pass() -> str:
  """What a geometry backend sees of a video."""
  return str(_GEOMETRY_PASS.value)


def optional_path(value: str | None) -> pathlib.Path | None:
  """The path of a flag; None where it was not given or is empty."""
  return pathlib.Path(value) if value else None


def require_one(chosen: Mapping[str, object]) -> None:
  """Raises InputError unless exactly one of these flags was given.

  Args:
    chosen: value by flag, for example `{"--clips": None, "--list": "a"}`.
  """
  given = [name for name, value in chosen.items() if value]
  if len(given) != 1:
    raise InputError(
      "flags",
      "input",
      found=", ".join(given) or "none",
      expected=f"exactly one of {', '.join(chosen)}",
      hint="See README.md.",
    )


def backend_settings(text: str, *, flag: str) -> dict[str, dict[str, Any]]:
  """Settings by backend name.

  Args:
    text: a JSON object of objects.
    flag: name of the flag, for the message.

  Raises:
    InputError: for anything else.
  """
  try:
    content = json.loads(text)
  except ValueError as error:
    content = error
  if not isinstance(content, dict) or not all(
    isinstance(entry, dict) for entry in content.values()
  ):
    raise InputError(
      "flags",
      flag,
      found=text,
      expected="a JSON object of objects, by backend name",
    )
  for name, entry in content.items():
    for key in entry:
      if _SECRET.fullmatch(key):  # its value would stand in run.json
        raise InputError(
          "flags",
          f"{flag}.{name}.{key}",
          found="a secret on the command line",
          expected="no secret: flags are kept in run.json",
          hint="Put it into the environment (api_key_env names the variable).",
        )
  return content
