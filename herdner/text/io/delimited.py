"""Comma-separated (CSV) and tab-separated (TSV) values, one document per row."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import IO, Any

from herdner.text.document import Document, Failure
from herdner.text.io.jsonl import record_document
from herdner.text.io.parse_warnings import ParseWarnings
from herdner.text.io.source import MAX_LINE_CHARS, FormatError, Input, Source, listed_names, read_raw_lines, sources
from herdner.text.io.write import entity_records, utf8, with_fields
from herdner.text.plain_data import finite_number

ENTITIES = "entities"


def read_table(
    where: Input, *, delimiter: str = ",", column: str = "text", encoding: str = "utf-8", strict: bool = False
) -> Iterator[Document | Failure]:
    """Read documents from CSV or TSV tables. The first row of each table contains the column names.

    The column ``id``, if there is one, contains ids. The column ``entities`` contains names as JSON:
    ``[{"start", "end", "label"}, ...]``; a row with an empty field is not annotated. All other columns become
    `Document.fields`, as strings. Quotes follow RFC 4180: a quoted field may contain delimiters, line breaks and
    doubled quotes.

    Args:
        where: A file, folder, glob pattern, ``"-"`` or stream (`sources`).
        delimiter: Separator of columns.
        column: Name of the column of texts.
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
        rows = csv.reader(read_raw_lines(source, encoding), delimiter=delimiter, strict=True)
        with ParseWarnings(source.name, strict) as warnings:
            yield from _rows(rows, column, source, warnings)


def _rows(rows: Any, column: str, source: Source, warnings: ParseWarnings) -> Iterator[Document | Failure]:
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
        yield _document(named, column, rows.line_num, f"{source.id}#{number}", warnings)
    if header is None:
        raise FormatError(f"{source.name}: is empty; expected a first row that names the columns")


def _next(rows: Any, source: Source) -> list[str] | None:
    """Return the next row of a table that is not empty, or None at the end.

    Raise `FormatError` for unbalanced quotes.
    """
    try:
        return next((row for row in rows if row), None)
    except csv.Error as error:
        what = "a quote is never closed" if "unexpected end" in str(error) else str(error)
        raise FormatError(f"{source.name}:{rows.line_num}: {what}; expected quotes around whole fields") from None


def _check_header(header: list[str], column: str, source: Source) -> None:
    if column not in header:
        raise FormatError(
            f"{source.name}: no column {column!r}; the file has {listed_names(header)}: name the column of texts"
            " by --column"
        )
    if duplicate := next((name for name, count in Counter(header).items() if count > 1), None):
        raise FormatError(f"{source.name}: two columns are named {duplicate!r}; rename one of them")


def _document(row: dict[str, str], column: str, line: int, id: str, warnings: ParseWarnings) -> Document | Failure:
    record: dict[str, Any] = {"text": row.pop(column), "id": row.pop("id", None) or None}
    if content := row.pop(ENTITIES, ""):
        try:
            record[ENTITIES] = json.loads(content, parse_float=finite_number)
            is_list = isinstance(record[ENTITIES], list)
        except (ValueError, RecursionError):
            is_list = False
        if not is_list:
            problem = f"the column {ENTITIES} contains {content[:40]!r}; expected names as JSON"
            return Failure(FormatError(f"{warnings.name}:{line}: {problem}; rename the column if it has other content"))
    document = record_document(record, line, id, warnings)
    return document if isinstance(document, Failure) else replace(document, fields=dict(row))


def write_table(documents: Iterable[Document], stream: IO[Any], *, delimiter: str = ",", column: str = "text") -> None:
    """Write documents as a CSV or TSV table with the columns id, text, fields of the documents, and entities (as JSON).

    Args:
        documents: The documents; the first one determines the columns.
        stream: A text or binary stream.
        delimiter: Separator of columns.
        column: Name of the column of texts.

    Raises:
        ValueError: A document has fields that the first one does not have, or is partially annotated.
    """
    put = utf8(stream)
    # Lines end with LF. The csv module gets CR LF, so that it quotes fields with either of them.
    line = csv.writer(_Lines(put), delimiter=delimiter, lineterminator="\r\n")
    header: list[str] | None = None
    for document in documents:
        fields = with_fields({}, document, ("id", column, ENTITIES))
        names = list(fields)
        if header is None:
            _check_names(["id", column, *names, ENTITIES])
            header = names
            line.writerow(["id", column, *header, ENTITIES])
        if unknown := set(names) - set(header):
            raise ValueError(
                f"{document.id}: has the key {min(unknown)!r}, which the first document lacks; write JSON lines"
            )
        if document.partial is not None:
            raise ValueError(
                f"document {document.id!r}: a table cannot represent a partial annotation; write JSON lines"
            )
        entities = "" if document.spans is None else json.dumps(entity_records(document), ensure_ascii=False)
        values = [_field(fields.get(name)) for name in header]
        line.writerow([document.id or "", document.text, *values, entities])
    if header is None:
        line.writerow(["id", column, ENTITIES])


def _check_names(names: list[str]) -> None:
    """Raise `ValueError` if the reader would change the name of a column."""
    for name in names:
        if name != name.strip() or not name:
            raise ValueError(
                f"the column name {name!r:.60} is empty or begins or ends with white space; rename the field"
            )


class _Lines:
    """Text stream wrapper that makes `csv.writer` end lines with LF instead of CRLF."""

    def __init__(self, put: Callable[[str], object]) -> None:
        self.put = put

    def write(self, row: str) -> object:
        return self.put(row.removesuffix("\r\n") + "\n")


def _field(value: object) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False, default=str)
