"""doccano's JSON lines for sequence labelling.

Format: https://doccano.github.io/doccano/tutorial/ (import and export); projects with relations:
https://github.com/doccano/doccano/blob/master/backend/data_export/pipeline/formatters.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import IO, Any, cast

from herdner.text.document import Document, Failure
from herdner.text.io.annotation_tools import MarkedSpan, ToolRecord, check_list, read_records, with_marked_spans
from herdner.text.io.source import Input
from herdner.text.io.write import json_line, utf8, with_fields

_KEYS = ("label", "labels", "entities")


def read_doccano(where: Input, *, encoding: str = "utf-8", strict: bool = False) -> Iterator[Document | Failure]:
    """Read documents from doccano's JSON lines: ``{"id", "text", "label": [[start, end, label], ...]}``.

    Old exports have "labels" instead of "label". Projects with relations have "entities", a list of objects with
    "start_offset", "end_offset" and "label". A line without any of these keys is not annotated; an empty list means
    that there is no name. doccano also exports an empty list for documents that nobody has opened, so export approved
    documents only. Other keys become `Document.fields`.

    Args:
        where: A file, folder, glob pattern, ``"-"`` or stream (`sources`).
        encoding: Encoding of the files.
        strict: Raise an error instead of logging a warning.

    Returns:
        An iterator over documents, and a `Failure` for each invalid line.

    Raises:
        FormatError: A file cannot be read.
    """
    return read_records(where, ("*.jsonl", "*.json"), encoding, strict, _document)


def _document(record: ToolRecord) -> Document:
    values = record.values
    key = next((key for key in _KEYS if values.get(key) is not None), None)
    fields = {k: v for k, v in values.items() if k not in ("id", "text", *_KEYS)}
    document = record.document(values.get("id", values.get("doc_id")), fields)
    if key is None:
        return document
    return with_marked_spans(document, map(_span, check_list(values[key], f"{key}s")), record.warn)


def _span(item: Any) -> MarkedSpan:
    if isinstance(item, dict):
        values = cast("dict[str, Any]", item)
        return MarkedSpan(values.get("start_offset"), values.get("end_offset"), values.get("label"))
    if not isinstance(item, list) or len(cast("list[Any]", item)) != 3:
        raise ValueError(f"a label is {json.dumps(item)[:40]}; expected [start, end, label]")
    return MarkedSpan(*cast("list[Any]", item))


def write_doccano(documents: Iterable[Document], stream: IO[Any]) -> None:
    """Write JSON lines for import into doccano: ``{"id", "text", "label": [[start, end, label], ...]}``.

    A document that is not annotated has no "label". The fields of a document become metadata. Confidences are lost.

    Args:
        documents: The documents.
        stream: A text or binary stream.
    """
    put = utf8(stream)
    for document in documents:
        spans = [[entity.start, entity.end, entity.label] for entity in document.entities]
        label = {} if document.spans is None else {"label": spans}
        record = {"id": document.id, "text": document.text, **label}
        put(json_line(with_fields(record, document, _KEYS)))
