# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Runs a protocol's cases: resume, hand out, append, survive failures.

The flow of every protocol: its cases and a picklable `work(case) -> Record`
come in; one record for each case is on disk afterwards. Cases that an
earlier run finished with the same settings and unchanged inputs are kept.
"""

from __future__ import annotations

import dataclasses
import functools
import pathlib
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from absl import logging

from perception.degenerate import DegenerateError
from perception.errors import InputError
from protocols.common import executor as executors
from protocols.common import manifest, outputs, store
from protocols.common.progress import Progress
from protocols.common.records import DEGENERATE, FAILED, Record, plain

RUN_FILE = "run.json"


@dataclasses.dataclass(frozen=True)
class RunOptions:
  """How a run is carried out; nothing here changes a result.

  Attributes:
    output: folder for records and scores.
    workers: processes.
    executor: `local` or `ray`.
    shard_index, num_shards: this process takes every num_shards-th case.
    retry: statuses to score again although a record exists.
    allow_partial: show totals over less than the whole manifest.
    flags: resolved flags of the command line, kept in `run.json`.
  """

  output: pathlib.Path
  workers: int = 1
  executor: str = "local"
  shard_index: int = 0
  num_shards: int = 1
  retry: tuple[str, ...] = ()
  allow_partial: bool = False
  flags: Mapping[str, Any] = dataclasses.field(default_factory=dict)


def run_cases(
  cases: Sequence[manifest.CaseT],
  work: Callable[[manifest.CaseT], Record],
  *,
  protocol: str,
  variant: str,
  settings: Mapping[str, Any],
  options: RunOptions,
  on_record: Callable[[Record], object] | None = None,
) -> dict[tuple[str, str], Record]:
  """Scores what is not scored yet.

  Args:
    cases: whole manifest, sorted (`manifest.unique`).
    work: scores one case; picklable. Its exceptions become `failed` records.
    protocol: protocol name.
    variant: variant name.
    settings: everything that changes a result; a run folder holds one set.
    options: how to run.
    on_record: called in this process with each new record, once it is on
      disk; for reports.

  Returns:
    All records in the folder that belong to `cases`, sorted by key.

  Raises:
    InputError: if the folder belongs to other settings, the disk refuses, or
      a worker dies.
  """
  claim_folder(options, protocol, variant, settings)
  mine = list(cases)[options.shard_index :: options.num_shards]
  signatures = {_key(case): manifest.signature(case) for case in mine}
  path = options.output / store.log_name(
    options.shard_index, options.num_shards
  )
  with store.RecordLog(path) as log:
    known = store.read_records(options.output)
    todo = [
      case
      for case in mine
      if not _is_done(
        known.get(_key(case)), signatures[_key(case)], options.retry
      )
    ]
    if len(todo) < len(mine):
      logging.info("%d of %d cases kept", len(mine) - len(todo), len(mine))
    guarded = functools.partial(
      _guarded, work=work, protocol=protocol, variant=variant
    )
    with Progress(
      len(mine), label=f"{protocol} cases", done=len(mine) - len(todo)
    ) as bar:
      for record in executors.run(
        guarded, todo, executor=options.executor, workers=options.workers
      ):
        signed = _signed(record, signatures[record.key])
        log.append(signed)
        if on_record is not None:
          on_record(signed)
        bar.advance()
  wanted = {_key(case) for case in cases}
  records = store.read_records(options.output)
  return {key: record for key, record in records.items() if key in wanted}


def claim_folder(
  options: RunOptions,
  protocol: str,
  variant: str,
  settings: Mapping[str, Any],
) -> None:
  """Writes `run.json`, or checks that the folder has the same settings.

  Args:
    options: the folder, and the flags that say where its inputs lie.
    protocol: protocol name.
    variant: variant name.
    settings: everything that changes a result.

  Raises:
    InputError: naming the settings that differ.
  """
  path = options.output / RUN_FILE
  identity = plain(
    {"protocol": protocol, "variant": variant, "settings": dict(settings)}
  )
  if path.exists():
    before = outputs.read_json(path)
    different = _differences(
      {key: before.get(key) for key in identity}, identity
    )
    if different:
      raise InputError(
        path,
        "settings",
        found="; ".join(different),
        expected="the settings that this folder was begun with",
        hint="Choose another --output for the new settings.",
      )
  outputs.write_json(
    path,
    {
      **identity,
      "flags": plain(dict(options.flags)),
      "environment": outputs.environment(),
    },
  )


def _differences(before: Any, now: Any, prefix: str = "") -> list[str]:
  if isinstance(before, dict) and isinstance(now, dict):
    found = []
    for key in sorted(before.keys() | now.keys()):
      name = f"{prefix}{key}"
      found += _differences(before.get(key), now.get(key), name + ".")
    return found
  if before == now:
    return []
  return [f"{prefix.rstrip('.')}={now!r} (was {before!r})"]


def _guarded(
  case: manifest.Case,
  *,
  work: Callable[[Any], Record],
  protocol: str,
  variant: str,
) -> Record:
  """Runs one case; what goes wrong becomes a record with its reason."""
  status, details = FAILED, {}
  try:
    return work(case)
  except DegenerateError as error:
    status, reason = DEGENERATE, str(error)
  except InputError as error:
    reason = str(error)
  except Exception as error:  # One bad case must not end a run of 10,000.
    reason = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
    details = {"traceback": traceback.format_exc()}
    logging.error("%s/%s: %s", case.system, case.case_id, reason)
  return Record(
    protocol=protocol,
    variant=variant,
    system=case.system,
    case_id=case.case_id,
    status=status,
    reason=reason,
    groups=dict(case.groups),
    details=details,
  )


def _key(case: manifest.Case) -> tuple[str, str]:
  return (case.system, case.case_id)


def _is_done(
  record: Record | None, signature: str, retry: Sequence[str]
) -> bool:
  return (
    record is not None
    and record.provenance.get("signature") == signature
    and record.status not in retry
  )


def _signed(record: Record, signature: str) -> Record:
  provenance = {**record.provenance, "signature": signature}
  return dataclasses.replace(record, provenance=provenance)


@dataclasses.dataclass(frozen=True)
class Outcome:
  """What a protocol's `evaluate` returns to its binary.

  Attributes:
    text: summary for the terminal.
    complete: False when the totals of a system were refused.
  """

  text: str
  complete: bool
