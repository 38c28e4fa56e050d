"""Parquet files, one document per row."""

# pyarrow has no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeStubs=false, reportUnknownParameterType=false

from __future__ import annotations

import io
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from herdner.base.messages import one_line
from herdner.text.document import Document, Failure
from herdner.text.io.jsonl import record_document
from herdner.text.io.parse_warnings import ParseWarnings
from herdner.text.io.source import Source, locate_errors, open_bytes
from herdner.text.io.write import ENTITIES as ENTITIES_COLUMN
from herdner.text.io.write import check_encodable, entity_records, table_cells
from herdner.text.table_row import TableColumns, TableRow

INTEGER, TEXT = pa.int64(), pa.string()
_ENTITY = {
    "start": INTEGER, "end": INTEGER, "label": TEXT, "text": TEXT, "confidence": pa.float64(), "name_id": INTEGER,
}  # fmt: skip
ENTITIES = pa.list_(pa.struct(list(_ENTITY.items())))
ENTITIES_WITH_SOURCE = pa.list_(
    pa.struct([*ENTITIES.value_type, pa.field("source_start", INTEGER), pa.field("source_end", INTEGER)])
)
SCHEMA = pa.schema([("id", TEXT), ("text", TEXT), ("entities", ENTITIES), ("offset", INTEGER)])
"""Columns of the files that `write_parquet` writes."""
ROWS_READ = 64
# A row group may unpack to at most _MIN_LIMIT bytes plus _MAX_RATIO times the size of the file.
_MAX_RATIO, _MIN_LIMIT = 100, 1 << 24
# A list column of a row group may have at most _MIN_VALUES values plus _MAX_RATIO for each byte of the file.
_MIN_VALUES = 1 << 20
_BATCH_BYTES = 1 << 28  # largest size of the texts of a batch, which may all be one long text of the dictionary
_REMEDY = "; write JSON lines instead"
GROUP_CHARACTERS = 8_000_000  # characters of a row group


def count_rows(stream: IO[bytes], column: str) -> list[tuple[int, int]]:
    """Return, for each row group of a Parquet file, its number of rows, and the size of ``column`` in bytes.

    Args:
        stream: A Parquet file.
        column: Name of the column of texts.

    Returns:
        Number of rows and uncompressed bytes of the column, by row group.

    Raises:
        ValueError: The file is damaged or has no such column of texts.
    """
    file, _ = _open(stream, column)
    columns = [file.metadata.schema.column(i).path for i in range(len(file.metadata.schema))]
    index = columns.index(column)
    groups = [file.metadata.row_group(i) for i in range(file.metadata.num_row_groups)]
    return [(group.num_rows, group.column(index).total_uncompressed_size) for group in groups]


def read_file(
    source: Source, column: str, id_column: str | None = None, strict: bool = False
) -> Iterator[Document | Failure]:
    """Read the documents of one Parquet file.

    A stream without random access is held in memory.

    Args:
        source: The file.
        column: Name of the column of texts.
        id_column: Name of the column of ids; None: ``id``, if there is such a column.
        strict: Raise an error instead of logging a warning.

    Yields:
        Documents, and a `Failure` for each invalid row.

    Raises:
        FormatError: The file is damaged or has no such columns.
    """
    with open_bytes(source) as stream:
        is_seekable = isinstance(stream, io.BufferedReader) and stream.seekable()
        file: Any = stream if is_seekable else io.BytesIO(stream.read())
        with locate_errors(source.name):
            groups = range(len(count_rows(file, column)))
            yield from read_rows(file, source, column, groups, 1, strict, id_column)


def read_rows(
    stream: IO[bytes], source: Source, column: str, groups: Iterable[int], first: int, strict: bool = False,
    id_column: str | None = None,
) -> Iterator[Document | Failure]:  # fmt: skip
    """Read the documents in some row groups of a Parquet file.

    The column ``entities`` contains the entities, if its values are lists; values of other types are read as a field,
    with a warning. Other columns become `Document.fields`. A null text becomes an empty text.

    Args:
        stream: A Parquet file.
        source: The file, for messages and ids.
        column: Name of the column of texts.
        groups: Indices of the row groups.
        first: Number of the first row of these row groups in the file, from 1.
        strict: Raise an error instead of logging a warning.
        id_column: Name of the column of ids; None: ``id``, if there is such a column.

    Yields:
        Documents, and a `Failure` for each invalid row.

    Raises:
        ValueError: The file is damaged or has no such column of texts.
    """
    file, columns = _open(stream, column, id_column)
    groups = list(groups)
    n_rows = _check_groups(file.metadata, groups, stream.seek(0, io.SEEK_END))
    batches = file.iter_batches(n_rows, row_groups=groups, use_threads=False)
    with ParseWarnings(source.name, strict) as warnings:
        for number, (values, arrow) in enumerate(_rows(batches), first):
            yield _document(tuple(values.values()), columns, arrow, number, source, warnings)


def _document(
    values: Sequence[Any], columns: TableColumns, arrow: tuple[Any, int], number: int, source: Source,
    warnings: ParseWarnings,
) -> Document | Failure:  # fmt: skip
    """Convert a row to a document; ``arrow`` is a pair: the row's record batch, and the row's index in that batch."""
    record, fields = columns.split(values)
    id = record["id"]
    if ENTITIES_COLUMN in fields:
        record[ENTITIES_COLUMN] = fields[ENTITIES_COLUMN]
        if _is_list(arrow[0].schema.field(columns.names[columns.fields.index(ENTITIES_COLUMN)]).type):
            del fields[ENTITIES_COLUMN]
    document = record_document(record, number, source.document_id(number), warnings)
    if isinstance(document, Failure):
        return document
    if id is not None and not isinstance(id, str):
        fields["id"] = id  # the original form of the id, such as a number
    row = TableRow(columns, values, document.id, arrow)
    return replace(document, fields=fields, row=row)


def _is_list(type: pa.DataType) -> bool:
    """Return True for list types and the null type. A column of any other type is not a column of entities."""
    types = pa.types
    return types.is_null(type) or types.is_list(type) or types.is_large_list(type) or types.is_fixed_size_list(type)


@contextmanager
def _value_errors(problem: str, *types: type[Exception], remedy: str = "") -> Generator[None]:
    """Convert errors of Arrow, and of the given types, to a `ValueError` with a message of one line."""
    try:
        yield
    except (pa.ArrowException, *types) as error:
        raise ValueError(f"{problem} ({one_line(error)}){remedy}") from None


def _rows(batches: Iterator[Any]) -> Iterator[tuple[dict[str, Any], tuple[Any, int]]]:
    """Yield each row as a dict, together with the record batch of the row and the row's index in the batch."""
    while True:
        with _value_errors("damaged Parquet file", OSError, ValueError):
            batch = next(batches, None)
        if batch is None:
            return
        # such as a date after the year 9999
        with _value_errors("the file contains a value that Python cannot represent", ValueError, OverflowError):
            rows = batch.to_pylist()
        yield from ((row, (batch, i)) for i, row in enumerate(rows))


def _check_groups(metadata: Any, groups: Sequence[int], size: int, advice: str | None = None) -> int:
    """Return the number of rows to read at a time, computed from the sizes of row groups in the file's metadata.

    Raise `ValueError` if a row group would unpack to far more than the file.

    Args:
        metadata: Metadata of the file.
        groups: Indices of the row groups.
        size: Size of the file in bytes.
        advice: End of the error message; None is advice for a file that another program has written.
    """
    largest, most, most_values = 1, _MIN_LIMIT + _MAX_RATIO * size, _MIN_VALUES + _MAX_RATIO * size
    is_list = [metadata.schema.column(i).max_repetition_level > 0 for i in range(metadata.num_columns)]
    for index in groups:
        group = metadata.row_group(index)
        columns = [group.column(i) for i in range(metadata.num_columns)]
        unpacked = sum(column.total_uncompressed_size for column in columns)
        if unpacked > most:
            sizes = f"{unpacked >> 20} MiB; expected at most {most >> 20} MiB for a file of this size"
            advice = advice or "write the file again without compression"
            raise ValueError(f"row group {index + 1} would unpack to {sizes}; {advice}")
        n_values = max((column.num_values for column, flag in zip(columns, is_list, strict=True) if flag), default=0)
        if n_values > most_values:
            sizes = f"{n_values:,} values; expected at most {most_values:,} for a file of this size"
            raise ValueError(f"row group {index + 1} has a list column of {sizes}; {advice or 'leave the column out'}")
        largest = max(largest, unpacked)
    return max(1, min(ROWS_READ, _BATCH_BYTES // largest))


def _open(stream: IO[bytes], column: str, id_column: str | None = None) -> tuple[pq.ParquetFile, TableColumns]:
    """Open a Parquet file; raise `ValueError` if it lacks ``id_column``, or ``column`` as a column of strings."""
    with _value_errors("not a Parquet file, or damaged", OSError):  # Arrow raises OSError for undecodable bytes
        file = pq.ParquetFile(stream)
    schema = file.schema_arrow
    columns = TableColumns.of(schema.names, column, id_column)
    type = schema.field(column).type
    if (type.value_type if pa.types.is_dictionary(type) else type) not in (TEXT, pa.large_string()):
        advice = "; write tokenized texts as JSON lines with the key tokens" if pa.types.is_list(type) else ""
        raise ValueError(f"column {column!r} has the type {type}; expected strings{advice}")
    return file, columns


def write_parquet(documents: Iterable[Document], stream: IO[bytes]) -> None:
    """Write documents to a Parquet file whose columns are fixed, so that many such files form one table.

    The columns are id, text, entities (a list of start, end, label, text, confidence and name_id) and offset
    (if `read_text` has split a long text, the position of the document in it). Other fields are not written.

    Args:
        documents: The documents.
        stream: A binary stream.

    Raises:
        ValueError: The id or text of a document contains a surrogate.
    """

    def table_of(group: Sequence[Document], schema: pa.Schema | None) -> pa.Table:
        for document in group:
            check_encodable(document, ("id", "text"))
        rows = [
            {
                "id": document.id, "text": document.text, ENTITIES_COLUMN: entity_records(document),
                "offset": document.fields.get("offset"),
            }
            for document in group
        ]  # fmt: skip
        return pa.Table.from_pylist(rows, SCHEMA)

    _write(documents, stream, table_of)


def write_table(documents: Iterable[Document], stream: IO[Any], *, column: str = "text") -> None:
    """Write documents to a Parquet file with columns for the id, the text, each document field, and the entities.

    Documents that were read from a table keep its columns in their order; new columns follow. Unchanged columns of a
    Parquet file keep their types and values. The first documents (8 million characters) determine the columns and the
    types of other fields.

    Args:
        documents: The documents.
        stream: A binary stream, or a text stream with a binary buffer.
        column: Name of the column of texts, for documents that were not read from a table.

    Raises:
        ValueError: A later document has other fields or types, or a document is partially annotated.
    """
    _write(documents, getattr(stream, "buffer", stream), partial(_table, column=column))


def _write(
    documents: Iterable[Document], stream: IO[bytes], table_of: Callable[[list[Document], pa.Schema | None], pa.Table]
) -> None:
    """Write documents to a Parquet file in row groups of about `GROUP_CHARACTERS`.

    Raises `ValueError` for files that `_check_groups` would refuse.

    The function ``table_of`` converts the documents of a row group to a table. Its second argument is the schema of the
    first row group, or None for the first row group itself.
    """
    writer: pq.ParquetWriter | None = None
    written: list[pq.FileMetaData] = []
    try:
        for group in _groups(documents):
            with _value_errors("a column has values of several types", TypeError, OverflowError, remedy=_REMEDY):
                table = table_of(group, None if writer is None else writer.schema)
            writer = writer or pq.ParquetWriter(stream, table.schema, compression="zstd", metadata_collector=written)
            writer.write_table(table)
    finally:
        if writer is not None:
            writer.close()
    for metadata in written:
        groups = [metadata.row_group(k) for k in range(metadata.num_row_groups)]
        size = sum(group.column(k).total_compressed_size for group in groups for k in range(group.num_columns))
        _check_groups(metadata, range(len(groups)), size + metadata.serialized_size, "write JSON lines instead")


def _groups(documents: Iterable[Document]) -> Iterator[list[Document]]:
    """Divide documents into row groups; yield an empty group if there is no document."""
    group: list[Document] = []
    n_groups = size = 0
    for document in documents:
        group.append(document)
        size += 1000 + len(document.text) + sum(len(v) for v in document.fields.values() if isinstance(v, str))
        if size > GROUP_CHARACTERS:
            yield group
            group, size, n_groups = [], 0, n_groups + 1
    if group or not n_groups:
        yield group


def _table(group: Sequence[Document], schema: pa.Schema | None, column: str) -> pa.Table:
    """Convert documents to a table with the schema ``schema``; if it is None, derive the schema from the documents."""
    rows = [table_cells(document, column) for document in group]
    names = list(dict.fromkeys(name for row in rows for name in row)) or ["id", column, ENTITIES_COLUMN]
    if schema is not None and (unknown := [name for name in names if name not in schema.names]):
        problem = f"the key {unknown[0]!r} is not among the columns of the first documents, which determine the columns"
        raise ValueError(f"{problem}{_REMEDY}")
    fields: list[pa.Field] = []
    arrays: list[Any] = []
    for name in names if schema is None else schema.names:
        values = [row.get(name) for row in rows]
        array = _original_column(name, values, group)
        if array is None:
            array = _new_column(name, values, group, None if schema is None else schema.field(name).type, column)
        if schema is not None and array.type != schema.field(name).type:
            array = array.cast(schema.field(name).type)
        fields.append(pa.field(name, array.type))
        arrays.append(array)
    if schema is None:
        first = group[0].row if group else None
        schema = pa.schema(fields, first.arrow[0].schema.metadata if first and first.arrow else None)
    return pa.Table.from_arrays(arrays, schema=schema)


def _original_column(name: str, values: Sequence[object], group: Sequence[Document]) -> Any:
    """Copy a column from the documents' input files; return None if it is absent, changed or of mixed types."""
    batches: list[tuple[Any, list[int]]] = []  # record batches and the indices of their rows
    for document, value in zip(group, values, strict=True):
        row = document.row
        if row is None or row.arrow is None or name == ENTITIES_COLUMN or name not in row.columns.names:
            return None
        original = row.values[row.columns.names.index(name)]
        if not (value is original or value == original):
            return None
        if not batches or batches[-1][0] is not row.arrow[0]:
            batches.append((row.arrow[0], []))
        batches[-1][1].append(row.arrow[1])
    chunks = [batch.column(name).take(pa.array(indices, INTEGER)) for batch, indices in batches]
    is_uniform = len({str(chunk.type) for chunk in chunks}) == 1
    return pa.chunked_array(chunks) if is_uniform else None


def _new_column(
    name: str, values: Sequence[object], group: Sequence[Document], type: pa.DataType | None, column: str
) -> pa.Array:
    """Convert ``values`` to an Arrow column of the type ``type``.

    If ``type`` is None, use the type of the original column or, if there is none, the type of the values. Raise
    `ValueError` if the values have several types.
    """
    if name == ENTITIES_COLUMN:
        has_source = any(document.source_map is not None for document in group)
        if has_source and type == ENTITIES:
            problem = "the column of entities lacks the fields source_start and source_end, which HTML pages need"
            raise ValueError(f"{problem}, because the first documents are not HTML pages{_REMEDY}")
        return pa.array(values, type or (ENTITIES_WITH_SOURCE if has_source else ENTITIES))
    if type is None and name == column:
        type = TEXT
    if type is not None:
        return pa.array(values, type)
    first = group[0].row if group else None
    if first is not None and first.arrow is not None and name in first.columns.names:
        with suppress(pa.ArrowException, TypeError, ValueError, OverflowError):  # the values have a new type
            return pa.array(values, first.arrow[0].schema.field(name).type)
    problem = f"the key {name!r} has values of several types"
    with _value_errors(problem, TypeError, ValueError, OverflowError, remedy=_REMEDY):
        array = pa.array(values)
    return array.cast(TEXT) if pa.types.is_null(array.type) else array
