"""Parquet in and out: texts of a column, and tagged documents as rows."""

# pyarrow has no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeStubs=false

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from herdner.text.document import Document
from herdner.text.failure import Failure
from herdner.text.io.source import FormatError, Source
from herdner.text.io.write import entity_record

WHOLE, TEXT = pa.int64(), pa.string()
ENTITIES = pa.list_(
    pa.struct([("start", WHOLE), ("end", WHOLE), ("label", TEXT), ("text", TEXT), ("confidence", pa.float64())])
)
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


def read_rows(
    stream: IO[bytes], source: Source, column: str, groups: Iterable[int], first: int
) -> Iterator[Document | Failure]:
    """The documents of row groups, the first of which is row number ``first`` of the file; a row without text is a
    failure. ``id`` comes from a column of that name. Raises ValueError for what is no such file.
    """
    file = _open(stream, column)
    columns = [column, "id"] if column != "id" and "id" in file.schema_arrow.names else [column]
    number = first
    batches = file.iter_batches(ROWS_READ, row_groups=list(groups), columns=columns, use_threads=False)
    while (batch := _next(batches)) is not None:
        ids = batch.column("id").to_pylist() if len(columns) == 2 else [None] * batch.num_rows
        for id, text in zip(ids, batch.column(column).to_pylist(), strict=True):
            if text is None:
                yield Failure(FormatError(f"{source.name}:{number}: {column} is null; expected a text"))
            else:
                yield Document.from_text(text, id=f"{source.id}#{number}" if id is None else str(id))
            number += 1


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
        raise ValueError(f"no column {column!r}; it has {', '.join(schema.names)}: name the one of the texts")
    type = schema.field(column).type
    if (type.value_type if pa.types.is_dictionary(type) else type) not in (TEXT, pa.large_string()):
        raise ValueError(f"column {column!r} holds {type}; expected texts")
    return file


def write_parquet(documents: Iterable[Document], stream: IO[bytes]) -> None:
    """Rows of id, text, entities (a list of start, end, label, text, confidence) and, for pieces, offset."""
    with pq.ParquetWriter(stream, SCHEMA, compression="zstd") as writer:
        rows: list[dict[str, Any]] = []
        size = 0
        for document in documents:
            rows.append(
                {
                    "id": document.id,
                    "text": document.text.encode("utf-8", "replace").decode(),
                    "entities": [entity_record(entity) for entity in document.entities],
                    "offset": document.fields.get("offset"),
                }
            )
            size += len(document.text)
            if size > GROUP_CHARACTERS:
                writer.write_table(pa.Table.from_pylist(rows, SCHEMA))
                rows, size = [], 0
        writer.write_table(pa.Table.from_pylist(rows, SCHEMA))
