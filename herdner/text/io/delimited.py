"""Comma-separated (CSV) and tab-separated (TSV) values, one document per row."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import replace
from inspect import GEN_CLOSED, getgeneratorstate
from itertools import chain
from typing import IO, Any

from herdner.base.messages import format_count
from herdner.text.document import Document, Failure
from herdner.text.io.jsonl import record_document
from herdner.text.io.parse_warnings import ParseWarnings
from herdner.text.io.source import MAX_LINE_CHARS, FormatError, Input, Source, locate_errors, read_raw_lines, sources
from herdner.text.io.write import ENTITIES, table_cells, utf8
from herdner.text.plain_data import finite_number
from herdner.text.table_row import TableColumns, TableRow

DELIMITERS = (",", ";", "\t", "|")
"""Separators of columns that are detected."""
# Number of characters of the first line in which the separator is detected. The time of detection grows with its
# square.
MAX_HEADER_CHARS = 10_000


def read_table(
    where: Input, *, delimiter: str | None = None, column: str = "text", id_column: str | None = None,
    encoding: str = "utf-8", strict: bool = False,
) -> Iterator[Document | Failure]:  # fmt: skip
    """Read documents from CSV or TSV tables. The first row of each table contains the column names.

    The column ``entities`` contains entities as JSON: ``[{"start", "end", "label"}, ...]``; a row in which this column
    is empty is not annotated. If the value of the first document is not a list, such values are read as a field, with a
    warning; else a row with such a value is a `Failure`. All other columns become `Document.fields`, as strings.
    Quotes follow RFC 4180: a quoted field may contain delimiters, line breaks and doubled quotes.

    Args:
        where: A file, folder, glob pattern, ``"-"`` or stream (`sources`).
        delimiter: Separator of columns; None: detected in the first row (`DELIMITERS`).
        column: Name of the column of texts.
        id_column: Name of the column of ids; None: ``id``, if there is such a column.
        encoding: Encoding of the files.
        strict: Raise an error instead of logging a warning.

    Yields:
        Documents, and a `Failure` for each invalid row.

    Raises:
        FormatError: A file or its first row is invalid.
    """
    # The limit of the csv module applies to the whole process and is shorter than many texts.
    csv.field_size_limit(max(csv.field_size_limit(), MAX_LINE_CHARS))
    for source in sources(where, ("*.tsv" if delimiter == "\t" else "*.csv",)):
        lines = read_raw_lines(source, encoding)
        head: list[str] = []
        for line in lines:  # up to the first line that is not empty
            head.append(line)
            if line.strip("\r\n"):
                break
        separator = detect_delimiter("".join(head).lstrip("\r\n"), column) if delimiter is None else delimiter
        rows = csv.reader(chain(head, lines), delimiter=separator, strict=True)
        with ParseWarnings(source.name, strict) as warnings:
            yield from _rows(rows, lines, (column, id_column, separator), source, warnings)


def detect_delimiter(header: str, column: str) -> str:
    """Detect the separator of columns in the first line of a table.

    Args:
        header: The first line, with the names of the columns.
        column: Name of a column that the table should have.

    Returns:
        The separator that `csv.Sniffer` finds, unless only another one of `DELIMITERS` yields a column of this name.
    """
    header = header[:MAX_HEADER_CHARS]
    try:
        sniffed = csv.Sniffer().sniff(header, "".join(DELIMITERS)).delimiter
    except csv.Error:  # one column, or an irregular line
        sniffed = DELIMITERS[0]
    for delimiter in (sniffed, *DELIMITERS):
        try:
            names = next(csv.reader([header], delimiter=delimiter), list[str]())
        except csv.Error:  # for example, a carriage return within the line; the reader of the table reports it
            return sniffed
        if len(names) > 1 and column in map(str.strip, names):
            return delimiter
    return sniffed


def _rows(
    rows: Any, lines: Generator[str], names: tuple[str, str | None, str], source: Source, warnings: ParseWarnings
) -> Iterator[Document | Failure]:
    """Yield a table's documents; ``names`` holds the text column's name, the id column's name and the separator."""
    columns: TableColumns | None = None
    text, id, separator = names
    number = 0
    has_entities: bool | None = None  # whether the first document has no other content in the column of entities
    while (row := _next(rows, lines, source)) is not None:
        if columns is None:
            with locate_errors(source.name):
                columns = TableColumns.of(row, text, id, strip=True, delimiter=None if separator == "\t" else separator)
            continue
        number += 1
        if len(row) != len(columns.names):
            what = f"{format_count(len(row), 'column')}; expected {len(columns.names)}, as in the first row"
            yield Failure(FormatError(f"{source.name}:{rows.line_num}: {what}"))
            continue
        document = _document(row, columns, rows.line_num, source.document_id(number), warnings, bool(has_entities))
        if has_entities is None and isinstance(document, Document):
            has_entities = ENTITIES in columns.fields and ENTITIES not in document.fields
        yield document
    if columns is None:
        raise FormatError(f"{source.name}: the file is empty; expected a first row that names the columns")


def _next(rows: Any, lines: Generator[str], source: Source) -> list[str] | None:
    """Return the next non-empty row of a table, which is read from ``lines``; return None at the end of the table.

    Raise `FormatError` for unbalanced quotes.
    """
    try:
        return next((row for row in rows if row), None)
    except csv.Error as error:
        what = "a quote is never closed" if getgeneratorstate(lines) == GEN_CLOSED else str(error)
        raise FormatError(f"{source.name}:{rows.line_num}: {what}; expected quotes around whole fields") from None


def _document(
    row: list[str], columns: TableColumns, line: int, id: str, warnings: ParseWarnings, has_entities: bool
) -> Document | Failure:
    """Convert a row to a document.

    If ``has_entities`` is set, other content of the column of entities is a failure, because the output has no column
    for it.
    """
    record, fields = columns.split(row)
    cell = fields.get(ENTITIES)
    if not cell:
        fields.pop(ENTITIES, None)
    elif cell.lstrip().startswith("["):
        try:
            record[ENTITIES] = json.loads(fields.pop(ENTITIES), parse_float=finite_number)
        except (ValueError, RecursionError):
            return _not_entities(cell, f"{warnings.name}:{line}")
    elif has_entities:
        return _not_entities(cell, f"{warnings.name}:{line}")
    else:
        record[ENTITIES] = cell
    document = record_document(record, line, id, warnings)
    if isinstance(document, Failure):
        return document
    return replace(document, fields=fields, row=TableRow(columns, row, document.id))


def _not_entities(cell: str, place: str) -> Failure:
    problem = f"the column {ENTITIES} contains {cell[:40]!r}; expected a JSON list of entities"
    return Failure(FormatError(f"{place}: {problem}; rename the column if it has other content"))


def write_table(
    documents: Iterable[Document], stream: IO[Any], *, delimiter: str | None = None, column: str = "text"
) -> None:
    """Write documents as a CSV or TSV table with columns for the id, the text, each document field, and the entities.

    Documents that were read from a table keep its columns in their order; new columns follow.

    Args:
        documents: The documents; the first one determines the columns.
        stream: A text or binary stream.
        delimiter: Separator of columns; None: that of the CSV file from which the first document was read, or a comma.
        column: Name of the column of texts, for documents that were not read from a table.

    Raises:
        ValueError: A document has fields that the first one does not have, or is partially annotated.
    """
    put = utf8(stream)
    line: Any = None
    header: list[str] = []
    for document in documents:
        cells = table_cells(document, column)
        if line is None:
            header, columns = list(cells), document.row.columns if document.row else None
            _check_names([name for name in header if columns is None or name not in columns.names])
            # Lines end with LF. The csv module gets CR LF, so that it quotes fields with either of them.
            separator = delimiter or (columns and columns.delimiter) or DELIMITERS[0]
            line = csv.writer(_Lines(put), delimiter=separator, lineterminator="\r\n")
            line.writerow(header)
        if unknown := [name for name in cells if name not in header]:
            problem = f"has the field {unknown[0]!r}, but the first document, which determines the columns, has not"
            raise ValueError(f"document {document.id!r} {problem}; write JSON lines instead")
        line.writerow([_field(cells.get(name)) for name in header])
    if line is None:
        put((delimiter or DELIMITERS[0]).join(["id", column, ENTITIES]) + "\n")


def _check_names(names: list[str]) -> None:
    """Raise `ValueError` if a column name is empty, or begins or ends with white space, which readers remove."""
    for name in names:
        if name != name.strip() or not name:
            raise ValueError(f"the column name {name!r:.60} is empty or has white space at its ends; rename the field")


class _Lines:
    """Text stream wrapper that makes `csv.writer` end lines with LF instead of CRLF."""

    def __init__(self, put: Callable[[str], object]) -> None:
        self.put = put

    def write(self, row: str) -> object:
        return self.put(row.removesuffix("\r\n") + "\n")


def _field(value: object) -> str:
    """Convert a value to text: numbers, lists and dicts to JSON, dates and other values by `str`."""
    if value is None or isinstance(value, str):
        return value or ""
    is_json = isinstance(value, bool | int | float | list | tuple | dict)
    return json.dumps(value, ensure_ascii=False, default=str) if is_json else str(value)
