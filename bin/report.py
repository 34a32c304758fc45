# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Makes a report that opens in any browser, without network or server.

    python -m bin.report --input=RUN [--input=RUN ...] --output=OUT

Inputs are output folders of bin.evaluate, of any protocols, and of
bin.bootstrap: a ranking study adds local ties, an intervals study intervals.
OUT gets `index.html`, a page for each case in `cases/`, `figures/` as SVG and
PNG, `tables/` as LaTeX and Markdown, and with --rerun `rerun/`. Frames, masks,
depth and trajectories are drawn from the files that a run's records and flags
name; --data adds places to look into.
"""

from __future__ import annotations

import pathlib
from collections.abc import Sequence

from absl import flags

from bin import cli
from protocols.report import write
from protocols.report.case_pages import PageOptions

_INPUT = flags.DEFINE_multi_string(
  "input", None, "Output folder of a run or a study.", required=True
)
_OUTPUT = flags.DEFINE_string("output", None, "Folder.", required=True)
_DATA = flags.DEFINE_multi_string(
  "data",
  [],
  "What a run was made from, where its run.json does not say it: an Orbia data"
  " set, a --cache folder, an eval_frames.jsonl.",
)
_PICTURES = flags.DEFINE_integer(
  "pictures",
  60,
  "Worst cases of each run whose pages show frames, beside those that drive the"
  " comparison of its two best systems; -1: all.",
  lower_bound=-1,
)
_EMBED = flags.DEFINE_bool(
  "embed", False, "Put pictures into the case pages, not in files beside them."
)
_PUBLISHED = flags.DEFINE_bool(
  "published",
  False,
  "Show published systems as reference rows of runs of the released variant.",
)
_RERUN = flags.DEFINE_bool(
  "rerun",
  False,
  "Also write a recording for the rerun viewer of each case that shows frames;"
  " needs the extra viewer.",
)


def main(argv: Sequence[str]) -> int:
  """Writes the report and prints where it is."""
  del argv
  print(write.write(_config()))
  return cli.OK


def _config() -> write.ReportConfig:
  return write.ReportConfig(
    inputs=tuple(map(pathlib.Path, _INPUT.value)),
    output=pathlib.Path(_OUTPUT.value),
    pages=PageOptions(pictures=_PICTURES.value, embed=_EMBED.value),
    published=_PUBLISHED.value,
    recordings=_RERUN.value,
    data=tuple(map(pathlib.Path, _DATA.value)),
  )


if __name__ == "__main__":
  cli.run(main)
