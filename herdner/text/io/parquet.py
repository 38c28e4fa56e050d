"""Parquet in and out: texts of a column, and tagged documents as rows."""

# pyarrow has no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeStubs=false, reportUnknownParameterType=false

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from herdner.text.document import Document, Failure
from herdner.text.io.jsonl import record_document
from herdner.text.io.parse_warnings import ParseWarnings
from herdner.text.io.source import FormatError, Source, listed_names, open_bytes
from herdner.text.io.write import entity_records, own_id

WHOLE, TEXT = pa.int64(), pa.string()
ENTITIES = pa.list_(
    pa.struct([("start", WHOLE), ("end", WHOLE), ("label", TEXT), ("text", TEXT), ("confidence", pa.float64())])
)
PLACED = pa.list_(pa.struct([*ENTITIES.value_type, pa.field("source_start", WHOLE), pa.field("source_end", WHOLE)]))
SCHEMA = pa.schema([("id", TEXT), ("text", TEXT), ("entities", ENTITIES), ("offset", WHOLE)])
ROWS_READ = 64
GROUP_CHARACTERS = 8_000_000  # of text in a row group


def count_rows(stream: IO[bytes], column: str) -> list[tuple[int, int]]:
    """Rows, and bytes of the column, of each row group. Raises ValueError for what holds no such texts."""
    file = _open(stream, column)
    columns = [file.metadata.schema.column(i).path for i in range(len(file.metadata.schema))]
    place = columns.index(column)
    groups = [file.metadata.row_group(i) for i in range(file.metadata.num_row_groups)]
    return [(group.num_rows, group.column(place).total_uncompressed_size) for group in groups]


def read_file(source: Source, column: str, strict: bool = False) -> Iterator[Document | Failure]:
    """The documents of a file, which is held in memory where one cannot jump in it. Raises FormatError."""
    with open_bytes(source) as stream:
        direct = isinstance(stream, io.BufferedReader) and stream.seekable()
        file: Any = stream if direct else io.BytesIO(stream.read())
        try:
            groups = range(len(count_rows(file, column)))
            yield from read_rows(file, source, column, groups, 1, strict)
        except FormatError:
            raise
        except ValueError as error:
            raise FormatError(f"{source.name}: {error}") from None


def read_rows(
    stream: IO[bytes],
    source: Source,
    column: str,
    groups: Iterable[int],
    first: int,
    strict: bool = False,
) -> Iterator[Document | Failure]:
    """The documents of row groups, the first of which is row number ``first`` of the file; a row without text is a
    failure. ``id`` comes from a column of that name, names from ``entities`` where it is a list; all other columns are
    kept in `Document.fields`. Raises ValueError for what is no such file.
    """
    file = _open(stream, column)
    batches = file.iter_batches(ROWS_READ, row_groups=list(groups), use_threads=False)
    with ParseWarnings(source.name, strict) as doubts:
        for number, row in enumerate(_rows(batches), first):
            text = row.pop(column)
            if text is None:
                yield Failure(FormatError(f"{source.name}:{number}: {column} is null; expected a text"))
                continue
            record = {"text": text, "id": row.get("id")}
            if isinstance(row.get("entities", ...), list | None):
                record["entities"] = row.pop("entities")
            if record["id"] is None or isinstance(record["id"], str):
                row.pop("id", None)  # of any other type it is kept as it is
            found = record_document(record, number, f"{source.id}#{number}", doubts)
            yield found if isinstance(found, Failure) else replace(found, fields=row)


def _rows(batches: Iterator[Any]) -> Iterator[dict[str, Any]]:
    while (batch := _next(batches)) is not None:
        try:
            rows = batch.to_pylist()
        except (pa.ArrowException, ValueError, OverflowError) as error:  # dates behind the year 9999
            raise ValueError(f"holds a value that Python has no type for ({' '.join(str(error).split())})") from None
        yield from rows


def _next(batches: Iterator[Any]) -> Any:
    """The next batch, or None; ValueError where it is damaged."""
    try:
        return next(batches, None)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise ValueError(f"damaged Parquet file ({' '.join(str(error).split())})") from None


def _open(stream: IO[bytes], column: str) -> pq.ParquetFile:
    try:
        file = pq.ParquetFile(stream)
    except (pa.ArrowException, OSError) as error:  # what Arrow cannot unpack is an OSError
        raise ValueError(f"not a Parquet file, or damaged ({' '.join(str(error).split())})") from None
    schema = file.schema_arrow
    if column not in schema.names:
        raise ValueError(
            f"no column {column!r}; it has {listed_names(schema.names)}: name the one of the texts by --column"
        )
    type = schema.field(column).type
    if (type.value_type if pa.types.is_dictionary(type) else type) not in (TEXT, pa.large_string()):
        raise ValueError(f"column {column!r} holds {type}; expected texts")
    return file


def write_parquet(documents: Iterable[Document], stream: IO[bytes]) -> None:
    """Rows of id, text, entities (a list of start, end, label, text, confidence) and, for pieces, offset: the same
    columns whatever the documents came with, so that many files are one table.
    """
    rows = ({**_row(document, "text"), "offset": document.fields.get("offset")} for document in documents)
    _write(rows, stream, SCHEMA)


def write_table(documents: Iterable[Document], stream: IO[Any], *, column: str = "text") -> None:
    """Columns ``id``, ``column`` with the text, ``entities``, and those that the documents came with. What type these
    have is seen from the first documents (8 million characters). Raises ValueError for later ones that do not fit, and
    for one that is annotated in part.
    """
    schema = pa.schema([(column, TEXT), ("entities", PLACED)])
    _write(map(_whole_row(column), documents), getattr(stream, "buffer", stream), schema, open_=True)


def _whole_row(column: str) -> Any:
    def row(document: Document) -> dict[str, Any]:
        if document.partial is not None:
            raise ValueError(f"document {document.id!r}: a table cannot say what is left open; write JSON lines")
        made = {**_row(document, column), "id": own_id(document)}
        if document.tags is None and not document.entities:
            made["entities"] = None
        return made | {name: value for name, value in document.fields.items() if name not in made}

    return row


def _row(document: Document, column: str) -> dict[str, Any]:
    text = document.text.encode("utf-8", "replace").decode()
    return {"id": document.id, column: text, "entities": entity_records(document)}


def _write(rows: Iterable[dict[str, Any]], stream: IO[bytes], schema: pa.Schema, open_: bool = False) -> None:
    """Rows in groups of `GROUP_CHARACTERS`; an open schema gets the further columns of the first group."""
    writer: pq.ParquetWriter | None = None
    group: list[dict[str, Any]] = []

    def flush() -> None:
        nonlocal writer, group, schema
        if writer is None:
            schema = _widened(schema, group) if open_ else schema
            writer = pq.ParquetWriter(stream, schema, compression="zstd")
        known = set(schema.names)
        if open_ and (more := next((name for row in group for name in row if name not in known), None)):
            raise ValueError(f"{more!r} is not among the columns of the first documents; write JSON lines")
        try:
            writer.write_table(pa.Table.from_pylist(group, schema))
        except (pa.ArrowException, TypeError, ValueError) as error:
            said = " ".join(str(error).split())
            raise ValueError(f"values of several types in one column ({said}); write JSON lines") from None
        group = []

    size = 0
    try:
        for row in rows:
            group.append(row)
            size += 1000 + sum(len(value) for value in row.values() if isinstance(value, str))
            if size > GROUP_CHARACTERS:
                flush()
                size = 0
        if group or writer is None:
            flush()
    finally:
        if writer is not None:
            writer.close()


def _widened(schema: pa.Schema, rows: list[dict[str, Any]]) -> pa.Schema:
    """The schema with the further columns of the rows, in the order they come, ``id`` first."""
    names = dict.fromkeys(["id", *schema.names, *(name for row in rows for name in row)])
    fields: list[pa.Field] = []
    for name in names:
        if name in schema.names:
            fields.append(schema.field(name))
            continue
        try:
            type = pa.array([row.get(name) for row in rows]).type
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            said = " ".join(str(error).split())
            raise ValueError(f"{name!r} has values of several types ({said}); write JSON lines") from None
        fields.append(pa.field(name, TEXT if pa.types.is_null(type) else type))
    return pa.schema(fields)
