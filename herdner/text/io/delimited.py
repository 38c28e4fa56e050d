"""Tables as text: comma-separated (CSV) and tab-separated (TSV) values, a row a document."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

from herdner.text.document import Document, Failure
from herdner.text.io.jsonl import record_document
from herdner.text.io.parse_warnings import ParseWarnings
from herdner.text.io.source import MAX_LINE_CHARS, FormatError, Source, listed_names, read_raw_lines, sources
from herdner.text.io.write import entity_records, utf8

ENTITIES = "entities"


def read_table(
    where: str | Path | IO[Any] | Source,
    *,
    delimiter: str = ",",
    column: str = "text",
    encoding: str = "utf-8",
    strict: bool = False,
) -> Iterator[Document | Failure]:
    """The rows of files whose first row names the columns; ``column`` holds the texts, ``id`` ids where there is one.

    Quotes are those of RFC 4180: a field in them may hold delimiters, line breaks and doubled quotes. A column
    ``entities`` holds names as JSON: ``[{"start", "end", "label"}, ...]``; an empty field of it is a row that nobody
    has annotated. All other columns are kept in `Document.fields`, as strings. A row that is wrong
    is a `Failure`, and the next row follows. Raises FormatError.
    """
    # The module's own limit is one for all of the process, and shorter than many texts.
    csv.field_size_limit(max(csv.field_size_limit(), MAX_LINE_CHARS))
    for source in sources(where, ("*.tsv" if delimiter == "\t" else "*.csv",)):
        rows = csv.reader(read_raw_lines(source, encoding), delimiter=delimiter, strict=True)
        with ParseWarnings(source.name, strict) as doubts:
            yield from _rows(rows, column, source, doubts)


def _rows(rows: Any, column: str, source: Source, doubts: ParseWarnings) -> Iterator[Document | Failure]:
    header: list[str] | None = None
    number = 0
    while (row := _next(rows, source)) is not None:
        if header is None:
            header = [name.strip() for name in row]
            _check_header(header, column, source)
            continue
        number += 1
        if len(row) != len(header):
            what = f"{len(row)} columns; expected {len(header)}, as in the first row"
            yield Failure(FormatError(f"{source.name}:{rows.line_num}: {what}"))
            continue
        named = dict(zip(header, row, strict=True))
        yield _document(named, column, rows.line_num, f"{source.id}#{number}", doubts)
    if header is None:
        raise FormatError(f"{source.name}: is empty; expected a first row that names the columns")


def _next(rows: Any, source: Source) -> list[str] | None:
    """The next row that holds something; None at the end. FormatError where quotes do not fit."""
    try:
        return next((row for row in rows if row), None)
    except csv.Error as error:
        what = "a quote is never closed" if "unexpected end" in str(error) else str(error)
        raise FormatError(f"{source.name}:{rows.line_num}: {what}; expected quotes around whole fields") from None


def _check_header(header: list[str], column: str, source: Source) -> None:
    if column not in header:
        raise FormatError(
            f"{source.name}: no column {column!r}; it has {listed_names(header)}: name the one of the texts by --column"
        )
    if twice := next((name for name in header if header.count(name) > 1), None):
        raise FormatError(f"{source.name}: two columns are called {twice!r}; rename one")


def _document(row: dict[str, str], column: str, line: int, id: str, doubts: ParseWarnings) -> Document | Failure:
    record: dict[str, Any] = {"text": row.pop(column), "id": row.pop("id", None) or None}
    if given := row.pop(ENTITIES, ""):
        try:
            record[ENTITIES] = json.loads(given)
        except (ValueError, RecursionError):
            what = f"the column {ENTITIES} holds {given[:40]!r}; expected names as JSON, or another name of the column"
            return Failure(FormatError(f"{doubts.name}:{line}: {what}"))
    found = record_document(record, line, id, doubts)
    return found if isinstance(found, Failure) else replace(found, fields=dict(row))


def write_table(documents: Iterable[Document], stream: IO[Any], *, delimiter: str = ",", column: str = "text") -> None:
    """Columns ``id``, ``column`` with the text, those that the first document came with, and ``entities`` (JSON).

    Raises ValueError for a document with columns that the first has not, and for one that is annotated in part.
    """
    put = utf8(stream)
    # Lines are ended by LF; the module is told CR LF so that it puts either of them in quotes.
    line = csv.writer(_Lines(put), delimiter=delimiter, lineterminator="\r\n")
    header: list[str] | None = None
    for document in documents:
        names = [name for name in document.fields if name not in ("id", column, ENTITIES)]
        if header is None:
            header = names
            line.writerow(["id", column, *header, ENTITIES])
        if more := set(names) - set(header):
            raise ValueError(f"{document.id}: has {min(more)!r}, which the first document has not; write JSON lines")
        if document.partial is not None:
            raise ValueError(f"document {document.id!r}: a table cannot say what is left open; write JSON lines")
        annotated = document.tags is not None or document.entities
        entities = json.dumps(entity_records(document), ensure_ascii=False) if annotated else ""
        values = [_field(document.fields.get(name)) for name in header]
        line.writerow([document.id or "", document.text, *values, entities])
    if header is None:
        line.writerow(["id", column, ENTITIES])


class _Lines:
    """What `csv.writer` writes to, a row at a time."""

    def __init__(self, put: Callable[[str], object]) -> None:
        self.put = put

    def write(self, row: str) -> object:
        return self.put(row.removesuffix("\r\n") + "\n")


def _field(value: object) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False, default=str)
