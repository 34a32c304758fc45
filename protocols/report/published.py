# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Published leaderboards as reference rows.

The figures are facts from the main tables of the papers; `published.json`
names the table of each. They were measured with the released code, so they
stand beside runs of the variant `released` only.
"""

from __future__ import annotations

import json
import pathlib
from typing import Any

from protocols.report.boards import Row

_FILE = pathlib.Path(__file__).parent / "assets" / "published.json"


def source(protocol: str) -> str:
  """Where the rows of a protocol come from."""
  return f"published rows: {_table(protocol)['source']}"


def rows(protocol: str, variant: str) -> tuple[Row, ...]:
  """Reference rows of a protocol.

  Args:
    protocol: `pdi`, `egogeneval` or `orbia`.
    variant: variant of the run; only `released` has references.

  Returns:
    Rows, best first; empty for another variant.
  """
  if variant != "released":
    return ()
  return tuple(
    Row(
      system=row["system"],
      values=row["values"],
      intervals={k: (v[0], v[1]) for k, v in row["intervals"].items()},
      rank=None,
      coverage="published",
      group=row.get("group", ""),
      comparable=True,
      reference=True,
    )
    for row in _table(protocol)["rows"]
  )


def _table(protocol: str) -> Any:
  return json.loads(_FILE.read_text(encoding="utf-8"))[protocol]
