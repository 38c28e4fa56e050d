"""A report in Markdown, without figures."""

from __future__ import annotations

import re
from collections.abc import Iterator

from herdner.evaluation.mistakes import FrequentMistake
from herdner.evaluation.report.values import Report
from herdner.evaluation.report.words import (
    Block,
    Cell,
    Errors,
    Figure,
    Rows,
    Text,
    cut,
    described,
    headline,
    how_many_documents,
    sections,
)
from herdner.evaluation.tabular import markdown_table

_MARKS = re.compile(r"([\\`*_\[\]<>#&~|])")


def to_markdown(report: Report) -> str:
    """One page; everything from files is escaped."""
    lines = ["# Evaluation of names", "", _escaped(headline(report))]
    for section in sections(report, {}):
        lines += ["", f"{'#' * section.level} {_escaped(section.title)}"]
        for block in section.blocks:
            lines += ["", _markdown(block)]
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return _MARKS.sub(r"\\\1", " ".join(text.split()))


def _markdown(block: Block) -> str:
    match block:
        case Text(text):
            return _escaped(text)
        case Rows(header, rows):
            # The table escapes what parts its cells.
            cells = [[_escaped(cell).replace("\\|", "|") for cell in row] for row in (header, *rows)]
            return markdown_table(cells[0], cells[1:])
        case Errors(errors):
            return "\n".join(line for error in errors for line in _error(error)) or "None."
        case Figure():
            return ""
        case grid:
            return _markdown(Rows(grid.header, [[name, *map(_cell, cells)] for name, cells in grid.rows]))


def _cell(cell: Cell | None) -> str:
    if cell is None:
        return ""
    return f"{cell.same:,}" + (f" +{cell.other:,}" if cell.other else "")


def _error(error: FrequentMistake) -> Iterator[str]:
    yield f"- {error.count:,} x {_escaped(described(error))} ({how_many_documents(error)})"
    for example in error.examples:
        pieces = [
            f"**{_escaped(piece)}**" if marks and piece.strip() else _escaped(piece) for piece, marks in cut(example)
        ]
        yield f"    - {_escaped(example.document or '')}: ... {' '.join(filter(None, pieces))} ..."
