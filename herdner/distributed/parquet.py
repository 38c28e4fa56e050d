"""Parquet in and out: texts of a column, and tagged documents as rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from herdner.text.document import Document, Entity
from herdner.text.failure import Failure
from herdner.text.io.source import FormatError, Source

ENTITIES = pa.list_(
    pa.struct(
        [
            pa.field("start", pa.int64()),
            pa.field("end", pa.int64()),
            pa.field("label", pa.string()),
            pa.field("text", pa.string()),
            pa.field("confidence", pa.float64()),
        ]
    )
)
SCHEMA = pa.schema(
    [
        pa.field("id", pa.string()),
        pa.field("text", pa.string()),
        pa.field("entities", ENTITIES),
        pa.field("offset", pa.int64()),
    ]
)
ROWS_READ = 64
GROUP_CHARACTERS = 8_000_000  # of text in a row group


def count_rows(stream: IO[bytes], column: str) -> list[tuple[int, int]]:
    """Rows, and bytes of the column, of each row group. Raises ValueError for what holds no such texts."""
    file = _open(stream, column)
    place = file.schema_arrow.get_field_index(column)
    sizes = [file.metadata.row_group(i) for i in range(file.metadata.num_row_groups)]
    names = [file.metadata.schema.column(i).path for i in range(len(file.metadata.schema))]
    place = names.index(column)
    return [(group.num_rows, group.column(place).total_uncompressed_size) for group in sizes]


def read_rows(
    stream: IO[bytes], source: Source, column: str, groups: Iterable[int], first: int
) -> Iterator[Document | Failure]:
    """The documents of row groups, the first of which is row number ``first`` of the file; a row without text is a
    failure. ``id`` comes from a column of that name. Raises ValueError for what is no such file.
    """
    file = _open(stream, column)
    columns = [column, "id"] if column != "id" and "id" in file.schema_arrow.names else [column]
    number = first
    for batch in file.iter_batches(ROWS_READ, row_groups=list(groups), columns=columns, use_threads=False):
        ids = batch.column("id").to_pylist() if len(columns) == 2 else [None] * batch.num_rows
        for id, text in zip(ids, batch.column(column).to_pylist(), strict=True):
            if text is None:
                yield Failure(FormatError(f"{source.name}:{number}: {column} is null; expected a text"))
            else:
                yield Document.from_text(text, id=f"{source.id}#{number}" if id is None else str(id))
            number += 1


def _open(stream: IO[bytes], column: str) -> pq.ParquetFile:
    try:
        file = pq.ParquetFile(stream)
    except pa.ArrowException as error:
        raise ValueError(f"not a Parquet file, or damaged ({error})") from None
    schema = file.schema_arrow
    if column not in schema.names:
        raise ValueError(f"no column {column!r}; it has {', '.join(schema.names)}: name the one of the texts")
    type = schema.field(column).type
    if not _is_text(type.value_type if pa.types.is_dictionary(type) else type):
        raise ValueError(f"column {column!r} holds {type}; expected texts")
    return file


def _is_text(type: pa.DataType) -> bool:
    return pa.types.is_string(type) or pa.types.is_large_string(type)


def write_parquet(documents: Iterable[Document], stream: IO[bytes]) -> None:
    """Rows of id, text, entities (a list of start, end, label, text, confidence) and, for pieces, offset."""
    with pq.ParquetWriter(stream, SCHEMA, compression="zstd") as writer:
        rows: list[dict[str, Any]] = []
        size = 0
        for document in documents:
            rows.append(_row(document))
            size += len(document.text)
            if size > GROUP_CHARACTERS:
                writer.write_table(pa.Table.from_pylist(rows, SCHEMA))
                rows, size = [], 0
        writer.write_table(pa.Table.from_pylist(rows, SCHEMA))


def _row(document: Document) -> dict[str, Any]:
    return {
        "id": document.id,
        "text": document.text.encode("utf-8", "replace").decode(),
        "entities": [entity_dict(entity) for entity in document.entities],
        "offset": document.fields.get("offset"),
    }


def entity_dict(entity: Entity) -> dict[str, Any]:
    """Plain data for JSON and Arrow."""
    return {
        "start": entity.start,
        "end": entity.end,
        "label": entity.label,
        "text": entity.text,
        "confidence": None if entity.confidence is None else round(float(entity.confidence), 6),
    }
