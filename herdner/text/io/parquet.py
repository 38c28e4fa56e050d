"""Parquet files, one document per row."""

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
from herdner.text.io.write import entity_records, original_id, with_fields

INTEGER, TEXT = pa.int64(), pa.string()
_ENTITY = {
    "start": INTEGER, "end": INTEGER, "label": TEXT, "text": TEXT, "confidence": pa.float64(), "name_id": INTEGER,
}  # fmt: skip
ENTITIES = pa.list_(pa.struct(list(_ENTITY.items())))
ENTITIES_WITH_SOURCE = pa.list_(
    pa.struct([*ENTITIES.value_type, pa.field("source_start", INTEGER), pa.field("source_end", INTEGER)])
)
SCHEMA = pa.schema([("id", TEXT), ("text", TEXT), ("entities", ENTITIES), ("offset", INTEGER)])
ROWS_READ = 64
GROUP_CHARACTERS = 8_000_000  # characters of a row group


def count_rows(stream: IO[bytes], column: str) -> list[tuple[int, int]]:
    """Return the number of rows and the size in bytes of a column, for each row group of a Parquet file.

    Args:
        stream: A Parquet file.
        column: Name of the column of texts.

    Returns:
        Number of rows and uncompressed bytes of the column, by row group.

    Raises:
        ValueError: The file is damaged or has no such column of texts.
    """
    file = _open(stream, column)
    columns = [file.metadata.schema.column(i).path for i in range(len(file.metadata.schema))]
    index = columns.index(column)
    groups = [file.metadata.row_group(i) for i in range(file.metadata.num_row_groups)]
    return [(group.num_rows, group.column(index).total_uncompressed_size) for group in groups]


def read_file(source: Source, column: str, strict: bool = False) -> Iterator[Document | Failure]:
    """Read the documents of one Parquet file.

    A stream without random access is held in memory.

    Args:
        source: The file.
        column: Name of the column of texts.
        strict: Raise an error instead of logging a warning.

    Yields:
        Documents, and a `Failure` for each invalid row.

    Raises:
        FormatError: The file is damaged or has no such column of texts.
    """
    with open_bytes(source) as stream:
        is_seekable = isinstance(stream, io.BufferedReader) and stream.seekable()
        file: Any = stream if is_seekable else io.BytesIO(stream.read())
        try:
            groups = range(len(count_rows(file, column)))
            yield from read_rows(file, source, column, groups, 1, strict)
        except FormatError:
            raise
        except ValueError as error:
            raise FormatError(f"{source.name}: {error}") from None


def read_rows(
    stream: IO[bytes], source: Source, column: str, groups: Iterable[int], first: int, strict: bool = False
) -> Iterator[Document | Failure]:
    """Read the documents in some row groups of a Parquet file.

    The column ``id`` contains ids, the column ``entities``, if it is a list, names; other columns become
    `Document.fields`.

    Args:
        stream: A Parquet file.
        source: The file, for messages and ids.
        column: Name of the column of texts.
        groups: Indices of the row groups.
        first: Number of their first row in the file.
        strict: Raise an error instead of logging a warning.

    Yields:
        Documents, and a `Failure` for each invalid row.

    Raises:
        ValueError: The file is damaged or has no such column of texts.
    """
    file = _open(stream, column)
    batches = file.iter_batches(ROWS_READ, row_groups=list(groups), use_threads=False)
    with ParseWarnings(source.name, strict) as warnings:
        for number, row in enumerate(_rows(batches), first):
            text = row.pop(column)
            if text is None:
                yield Failure(FormatError(f"{source.name}:{number}: {column} is null; expected a text"))
                continue
            record = {"text": text, "id": row.get("id")}
            if isinstance(row.get("entities", ...), list | None):
                record["entities"] = row.pop("entities")
            if record["id"] is None or isinstance(record["id"], str):
                row.pop("id", None)  # an id of another type stays among the fields
            document = record_document(record, number, f"{source.id}#{number}", warnings)
            yield document if isinstance(document, Failure) else replace(document, fields=row)


def _rows(batches: Iterator[Any]) -> Iterator[dict[str, Any]]:
    while (batch := _next(batches)) is not None:
        try:
            rows = batch.to_pylist()
        except (pa.ArrowException, ValueError, OverflowError) as error:  # dates after the year 9999
            raise ValueError(f"contains a value without a Python type ({' '.join(str(error).split())})") from None
        yield from rows


def _next(batches: Iterator[Any]) -> Any:
    """Return the next batch of rows of a Parquet file, or None at the end.

    Raise `ValueError` if the file is damaged.
    """
    try:
        return next(batches, None)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise ValueError(f"damaged Parquet file ({' '.join(str(error).split())})") from None


def _open(stream: IO[bytes], column: str) -> pq.ParquetFile:
    try:
        file = pq.ParquetFile(stream)
    except (pa.ArrowException, OSError) as error:  # Arrow raises OSError for undecodable bytes
        raise ValueError(f"not a Parquet file, or damaged ({' '.join(str(error).split())})") from None
    schema = file.schema_arrow
    if column not in schema.names:
        raise ValueError(
            f"no column {column!r}; the file has {listed_names(schema.names)}: name the column of texts by --column"
        )
    type = schema.field(column).type
    if (type.value_type if pa.types.is_dictionary(type) else type) not in (TEXT, pa.large_string()):
        raise ValueError(f"column {column!r} has the type {type}; expected texts")
    return file


def write_parquet(documents: Iterable[Document], stream: IO[bytes]) -> None:
    """Write documents to a Parquet file whose columns are fixed, so that many such files form one table.

    The columns are id, text, entities (a list of start, end, label, text, confidence and name_id) and the offset of a
    piece of a long text. Other fields are not written.

    Args:
        documents: The documents.
        stream: A binary stream.
    """
    rows = ({**_row(document, "text"), "offset": document.fields.get("offset")} for document in documents)
    _write(rows, stream, SCHEMA)


def write_table(documents: Iterable[Document], stream: IO[Any], *, column: str = "text") -> None:
    """Write documents to a Parquet file with the columns id, text and entities, and one column for each document field.

    The first documents (8 million characters) determine the types of the fields.

    Args:
        documents: The documents.
        stream: A binary stream, or a text stream with a binary buffer.
        column: Name of the column of texts.

    Raises:
        ValueError: A later document has other fields or types, or a document is partially annotated.
    """
    schema = pa.schema([(column, TEXT), ("entities", ENTITIES_WITH_SOURCE)])
    rows = (_row_with_fields(document, column) for document in documents)
    _write(rows, getattr(stream, "buffer", stream), schema, is_extensible=True)


def _row_with_fields(document: Document, column: str) -> dict[str, Any]:
    if document.partial is not None:
        raise ValueError(f"document {document.id!r}: a table cannot represent a partial annotation; write JSON lines")
    row = {**_row(document, column), "id": original_id(document)}
    if document.spans is None:
        row["entities"] = None
    return with_fields(row, document)


def _row(document: Document, column: str) -> dict[str, Any]:
    text = document.text.encode("utf-8", "replace").decode()
    return {"id": document.id, column: text, "entities": entity_records(document)}


def _write(rows: Iterable[dict[str, Any]], stream: IO[bytes], schema: pa.Schema, is_extensible: bool = False) -> None:
    """Write rows to a Parquet file in row groups of about `GROUP_CHARACTERS`.

    An extensible schema is extended by further columns of the first group.
    """
    writer: pq.ParquetWriter | None = None
    group: list[dict[str, Any]] = []

    def flush() -> None:
        nonlocal writer, group, schema
        if writer is None:
            schema = _extended(schema, group) if is_extensible else schema
            writer = pq.ParquetWriter(stream, schema, compression="zstd")
        known = set(schema.names)
        if is_extensible and (unknown := next((name for row in group for name in row if name not in known), None)):
            raise ValueError(f"the key {unknown!r} is not among the columns of the first documents; write JSON lines")
        try:
            writer.write_table(pa.Table.from_pylist(group, schema))
        except (pa.ArrowException, TypeError, ValueError) as error:
            problem = " ".join(str(error).split())
            raise ValueError(f"values of several types in one column ({problem}); write JSON lines") from None
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


def _extended(schema: pa.Schema, rows: list[dict[str, Any]]) -> pa.Schema:
    """Return the schema extended by the rows' columns that it lacks, in order of occurrence, with ``id`` first."""
    names = dict.fromkeys(["id", *schema.names, *(name for row in rows for name in row)])
    fields: list[pa.Field] = []
    for name in names:
        if name in schema.names:
            fields.append(schema.field(name))
            continue
        try:
            type = pa.array([row.get(name) for row in rows]).type
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            problem = " ".join(str(error).split())
            raise ValueError(f"{name!r} has values of several types ({problem}); write JSON lines") from None
        fields.append(pa.field(name, TEXT if pa.types.is_null(type) else type))
    return pa.schema(fields)
