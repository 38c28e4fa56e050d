"""Reports in Markdown, without figures."""

from __future__ import annotations

import re
from collections.abc import Iterator

from herdner.base.messages import format_count
from herdner.evaluation.errors import FrequentError
from herdner.evaluation.report.sections import (
    Block,
    ConfusionCell,
    ErrorList,
    Paragraph,
    ReportFigure,
    ReportTable,
    describe_error,
    headline,
    sections,
    split_example,
)
from herdner.evaluation.report.values import Report
from herdner.evaluation.tabular import markdown_table

_SPECIAL = re.compile(r"([\\`*_\[\]<>#&~|])")


def to_markdown(report: Report) -> str:
    """Return a report as Markdown.

    All text from files is escaped.

    Args:
        report: The report.

    Returns:
        One page.
    """
    lines = ["# Evaluation of names", "", _escape(headline(report))]
    for section in sections(report, {}):
        lines += ["", f"{'#' * section.level} {_escape(section.title)}"]
        for block in section.blocks:
            lines += ["", _markdown(block)]
    return "\n".join(lines) + "\n"


def _escape(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


def _markdown(block: Block) -> str:
    match block:
        case Paragraph(text):
            return _escape(text)
        case ReportTable(header, rows):
            # `markdown_table` escapes the separator of cells.
            cells = [[_escape(cell).replace("\\|", "|") for cell in row] for row in (header, *rows)]
            return markdown_table(cells[0], cells[1:])
        case ErrorList(errors):
            return "\n".join(line for error in errors for line in _error_lines(error)) or "None."
        case ReportFigure():
            return ""
        case grid:
            return _markdown(ReportTable(grid.header, [[name, *map(_cell, cells)] for name, cells in grid.rows]))


def _cell(cell: ConfusionCell | None) -> str:
    if cell is None:
        return ""
    return f"{cell.same:,}" + (f" +{cell.other:,}" if cell.other else "")


def _error_lines(error: FrequentError) -> Iterator[str]:
    documents = format_count(error.n_documents, "document")
    yield f"- {error.count:,} x {_escape(describe_error(error))} ({documents})"
    for example in error.examples:
        pieces = [
            f"**{_escape(piece)}**" if sides and piece.strip() else _escape(piece)
            for piece, sides in split_example(example)
        ]
        yield f"    - {_escape(example.document or '')}: ... {' '.join(filter(None, pieces))} ..."
