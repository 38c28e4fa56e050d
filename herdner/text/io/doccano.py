"""doccano's JSON lines for sequence labelling.

The format: https://doccano.github.io/doccano/tutorial/ (import and export), with the relations of
https://github.com/doccano/doccano/blob/master/backend/data_export/pipeline/formatters.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any, cast

from herdner.text.document import Document, Failure
from herdner.text.io.marked import Mark, Record, annotated, listed, records, text_of
from herdner.text.io.source import Source
from herdner.text.io.write import json_line, utf8

_KEYS = ("label", "labels", "entities")


def read_doccano(
    where: str | Path | IO[Any] | Source,
    *,
    encoding: str = "utf-8",
    strict: bool = False,
) -> Iterator[Document | Failure]:
    """One document a line: ``{"id", "text", "label": [[start, end, label], ...]}``; "labels" in old exports, and
    "entities", objects with "start_offset", "end_offset" and "label", of projects with relations.

    A line without any of these is not annotated. An empty list says that there is no name: doccano exports documents
    that nobody has opened in the same way, so export only those that are approved. Other keys become `Document.fields`.
    A line that is wrong is a `Failure`, and the next follows. Raises FormatError.
    """
    return records(where, ("*.jsonl", "*.json"), encoding, strict, _document)


def _document(record: Record) -> Document:
    values = record.values
    key = next((key for key in _KEYS if values.get(key) is not None), None)
    fields = {k: v for k, v in values.items() if k not in ("id", "text", *_KEYS)}
    name = values.get("id", values.get("doc_id"))
    document = Document.from_text(text_of(values), id=record.id if name is None else str(name), fields=fields)
    if key is None:
        return document
    return annotated(document, map(_mark, listed(values[key], f"{key}s")), record.doubt)


def _mark(given: Any) -> Mark:
    if isinstance(given, dict):
        values = cast("dict[str, Any]", given)
        return Mark(values.get("start_offset"), values.get("end_offset"), values.get("label"))
    if not isinstance(given, list) or len(cast("list[Any]", given)) != 3:
        raise ValueError(f"a label is {json.dumps(given)[:40]}; expected [start, end, label], as of sequence labelling")
    return Mark(*cast("list[Any]", given))


def write_doccano(documents: Iterable[Document], stream: IO[Any]) -> None:
    """``{"id", "text", "label": [[start, end, label], ...]}`` a line, to import as JSONL; what else is known of a
    document (its fields) becomes doccano's metadata. One that nobody has annotated has no labels; confidences have no
    place there.
    """
    put = utf8(stream)
    for document in documents:
        marks = [[entity.start, entity.end, entity.label] for entity in document.entities]
        fields = {k: v for k, v in document.fields.items() if k not in ("id", "text", *_KEYS)}
        known = {} if document.tags is None and not marks else {"label": marks}
        put(json_line({"id": document.id, "text": document.text, **known, **fields}))
