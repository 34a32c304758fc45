# Copyright 2026 The worldgauge Authors
# SPDX-License-Identifier: Apache-2.0
"""Leaderboards as LaTeX (booktabs) and Markdown, for papers."""

from __future__ import annotations

from collections.abc import Sequence

from protocols.report.boards import Board, Column, Row

_LATEX = {
  "\\": r"\textbackslash{}",
  "&": r"\&",
  "%": r"\%",
  "$": r"\$",
  "#": r"\#",
  "_": r"\_",
  "{": r"\{",
  "}": r"\}",
  "~": r"\textasciitilde{}",
  "^": r"\textasciicircum{}",
  "<": r"\textless{}",
  ">": r"\textgreater{}",
  "|": r"\textbar{}",
}


def latex(board: Board, *, variant: str) -> str:
  """A table environment; the best value of each column is bold.

  Args:
    board: the leaderboard.
    variant: variant of the run, for the caption.

  Returns:
    LaTeX that needs the package booktabs.
  """
  best = _best(board)
  lines = [
    "% Needs \\usepackage{booktabs}.",
    "\\begin{table}",
    "  \\centering",
    f"  \\caption{{{_tex(board.title)}, variant {_tex(variant)}."
    f" {_tex(_remarks(board))}}}",
    f"  \\begin{{tabular}}{{l{'r' * (len(board.columns) + 1)}}}",
    "    \\toprule",
    "    System & "
    + " & ".join(f"{_tex(c.label)} ${_arrow_tex(c)}$" for c in board.columns)
    + " & Scored \\\\",
    "    \\midrule",
  ]
  for row in board.rows:
    cells = [_tex(_name(row))]
    for column in board.columns:
      text = _cell(row, column, plus="$_{[", end="]}$")
      if row.system in best.get(column.key, ()) and not row.reference:
        text = f"\\textbf{{{text}}}"
      cells.append(text)
    lines.append(f"    {' & '.join([*cells, _share(row)])} \\\\")
  lines += [
    "    \\bottomrule",
    "  \\end{tabular}",
    "\\end{table}",
  ]
  return "\n".join(lines) + "\n"


def markdown(board: Board, *, variant: str) -> str:
  """A Markdown table; the best value of each column is bold.

  Args:
    board: the leaderboard.
    variant: variant of the run, for the line below.

  Returns:
    Text.
  """
  best = _best(board)
  heads = [
    f"{c.label} {'↓' if c.lower_is_better else '↑'}" for c in board.columns
  ]
  lines = [
    "| System | " + " | ".join(heads) + " | Scored |",
    "|---" + "|---:" * (len(heads) + 1) + "|",
  ]
  for row in board.rows:
    cells = [_md(_name(row))]
    for column in board.columns:
      text = _cell(row, column, plus=" [", end="]")
      if row.system in best.get(column.key, ()) and not row.reference:
        text = f"**{text}**"
      cells.append(text)
    lines.append("| " + " | ".join([*cells, _share(row)]) + " |")
  lines += ["", f"{board.title}, variant {variant}. {_remarks(board)}"]
  return "\n".join(lines) + "\n"


def _best(board: Board) -> dict[str, tuple[str, ...]]:
  """Systems with the best value of each column."""
  found = {}
  for column in board.columns:
    known = [
      (v, row.system)
      for row in board.rows
      if (v := row.values.get(column.key)) is not None and not row.reference
    ]
    if known:
      pick = min if column.lower_is_better else max
      top = pick(value for value, _ in known)
      found[column.key] = tuple(name for value, name in known if value == top)
  return found


def _cell(row: Row, column: Column, *, plus: str, end: str) -> str:
  value = row.values.get(column.key)
  if value is None:
    return "--"
  text = f"{value:.{column.digits}f}"
  interval = row.intervals.get(column.key)
  if interval:
    low, high = (f"{v:.{column.digits}f}" for v in interval)
    text += f"{plus}{low}, {high}{end}"
  return text


def _share(row: Row) -> str:
  if row.reference:
    return "published"
  if row.scored is None or row.expected is None:
    return "unfinished" if row.expected is None else "--"
  return f"{row.scored}/{row.expected}"


def _name(row: Row) -> str:
  return f"{row.system} (partial)" if row.partial else row.system


def _remarks(board: Board) -> str:
  rows: Sequence[Row] = [row for row in board.rows if not row.reference]
  parts = []
  if board.interval_note:
    parts.append(f"Brackets: {board.interval_note}.")
  if not all(row.comparable for row in rows):
    parts.append("Not comparable with published tables.")
  if any(row.partial for row in rows):
    parts.append("Partial totals leave out cases without a score.")
  return " ".join(parts)


def _arrow_tex(column: Column) -> str:
  return "\\downarrow" if column.lower_is_better else "\\uparrow"


def _tex(text: str) -> str:
  return "".join(_LATEX.get(c, c if c.isprintable() else "?") for c in text)


def _md(text: str) -> str:
  shown = "".join(c if c.isprintable() else "?" for c in text)
  for mark in "\\`*_{}[]<>|#$":
    shown = shown.replace(mark, f"\\{mark}")
  return shown
