"""Prodigy's JSON lines, as written by ``db-out`` and read by ``ner.manual``, ``ner.correct`` and ``db-in``.

Format: https://prodi.gy/docs/api-interfaces#ner_manual and #ner.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import IO, Any, cast

from herdner.text.document import Document, Failure
from herdner.text.entity import join_pairs
from herdner.text.io.annotation_tools import MarkedSpan, ToolRecord, check_list, read_records, with_marked_spans
from herdner.text.io.jsonl import Warn
from herdner.text.io.source import Input
from herdner.text.io.write import json_line, utf8, with_fields
from herdner.text.partial import ANY_TAG, PartialAnnotation, UnannotatedRange

COREFERENCE = "COREF"  # label of the relation between two mentions of a name, as in Prodigy's coref.manual
_ANSWERS = ("accept", "reject", "ignore")
_READ = ("text", "spans", "tokens", "answer", "relations")
_INTERNAL = (
    "_input_hash", "_task_hash", "_session_id", "_annotator_id", "_view_id", "_timestamp", "_is_binary",
)  # fmt: skip


def read_prodigy(where: Input, *, encoding: str = "utf-8", strict: bool = False) -> Iterator[Document | Failure]:
    """Read documents from Prodigy's JSON lines: ``{"text", "spans": [{"start", "end", "label"}], "answer"}``.

    A task that was accepted, or that has "spans" but no "answer", is annotated. A task that was rejected, ignored or
    not yet seen is not annotated. Accepted answers about single spans ("_view_id": "ner", written by ``ner.teach``)
    annotate only these spans; all other tokens are unannotated (`Document.partial`). Spans that a relation "COREF"
    joins are mentions of one name. The id is ``meta["id"]``, or the file and line number. Other relations, and other
    keys except hashes and names of sessions, become `Document.fields`. Tokens are not read.

    Args:
        where: A file, folder, glob pattern, ``"-"`` or stream (`sources`).
        encoding: Encoding of the files.
        strict: Raise an error instead of logging a warning.

    Returns:
        An iterator over documents, and a `Failure` for each invalid line.

    Raises:
        FormatError: A file cannot be read.
    """
    return read_records(where, ("*.jsonl",), encoding, strict, _document)


def _document(record: ToolRecord) -> Document:
    values = record.values
    answer = values.get("answer")
    if answer is not None and answer not in _ANSWERS:
        raise ValueError(f"`answer` is {json.dumps(answer)[:40]}; expected one of {', '.join(_ANSWERS)}")
    meta: object = values.get("meta")
    name = cast("dict[str, Any]", meta).get("id") if isinstance(meta, dict) else None
    fields = {k: v for k, v in values.items() if k not in _READ and k not in _INTERNAL}
    names, relations = _names_of(values.get("relations"))
    fields |= {"relations": relations} if relations else {}
    document = record.document(name, fields)
    if answer in ("reject", "ignore") or (answer is None and "spans" not in values):
        return document
    spans = _spans_of(check_list(values.get("spans") or [], "spans"), names, record.warn)
    document = with_marked_spans(document, spans, record.warn)
    return _with_unannotated_rest(document) if values.get("_view_id") == "ner" and answer is not None else document


def _names_of(relations: object) -> tuple[dict[str, str], object]:
    """Split relations into a dict from span to name (for "COREF" relations) and a list of all other relations."""
    if not isinstance(relations, list):
        return {}, relations
    pairs: list[tuple[str, str]] = []
    others: list[Any] = []
    for relation in cast("list[Any]", relations):
        values = cast("dict[str, Any]", relation) if isinstance(relation, dict) else {}
        spans = values.get("head_span"), values.get("child_span")
        if values.get("label") == COREFERENCE and all(isinstance(span, dict) for span in spans):
            head, child = (cast("dict[str, Any]", span) for span in spans)
            pairs.append((_key(head), _key(child)))
        else:
            others.append(relation)
    return join_pairs(pairs), others


def _key(span: dict[str, Any]) -> str:
    return json.dumps([span.get("start"), span.get("end")])


def _spans_of(items: list[Any], names: dict[str, str], warn: Warn) -> Iterator[MarkedSpan]:
    for i, item in enumerate(items):
        if not isinstance(item, dict):
            raise ValueError(f"span {i} is {json.dumps(item)[:40]}; expected an object with `start`, `end` and `label`")
        values = cast("dict[str, Any]", item)
        if values.get("label") is None:
            warn("a span without a label is left out")
            continue
        score = values.get("score")
        name = names.get(_key(values))
        yield MarkedSpan(values.get("start"), values.get("end"), values["label"], values.get("text"), score, name)


def _with_unannotated_rest(document: Document) -> Document:
    """Mark the text outside entities as unannotated, except characters that may share a token with an entity."""
    ranges, last, text = list[UnannotatedRange](), 0, document.text
    for start, end in [*((e.start, e.end) for e in document.entities), (len(text),) * 2]:
        while last and last < start and not text[last].isspace():
            last += 1
        stop = start
        while start < len(text) and stop > last and not text[stop - 1].isspace():
            stop -= 1
        if text[last:stop].strip():
            ranges.append(UnannotatedRange(last, stop, ANY_TAG))
        last = end
    return document.with_partial(PartialAnnotation(tuple(ranges)))


def write_prodigy(documents: Iterable[Document], stream: IO[Any], *, answer: str | None = None) -> None:
    """Write one Prodigy task per line, with tokens and spans.

    The tasks can be corrected (``ner.manual``) or imported (``db-in``).

    Confidences become the "score" of spans. Each mention of a name has a relation "COREF" to the next mention, as in
    Prodigy's ``coref.manual``. The id is written as ``meta["id"]``, which Prodigy shows below the text.

    Args:
        documents: The documents.
        stream: A text or binary stream.
        answer: Answer of annotated documents, such as "accept"; None: write no answer.

    Raises:
        ValueError: The answer is unknown.
    """
    if answer is not None and answer not in _ANSWERS:
        raise ValueError(f"`answer` must be one of {', '.join(_ANSWERS)}, got {answer!r}")
    put = utf8(stream)
    for document in documents:
        fields = dict(document.fields)
        record: dict[str, Any] = {"text": document.text, "meta": {"id": document.id}}
        if isinstance(meta := fields.get("meta"), dict):
            record["meta"] = {**cast("dict[str, Any]", meta), "id": document.id}
            del fields["meta"]
        if document.n_tokens:
            record["tokens"] = _tokens(document)
        if document.spans is not None:
            record["spans"] = _spans(document)
        if relations := _relations(document, record.get("spans", [])):
            record["relations"] = relations
            fields.pop("relations", None)
        if answer is not None and document.is_annotated:
            record["answer"] = answer
        put(json_line(with_fields(record, replace(document, fields=fields), (*_READ, *_INTERNAL))))


def _tokens(document: Document) -> list[dict[str, Any]]:
    starts, ends, text = document.token_starts.tolist(), document.token_ends.tolist(), document.text
    return [
        {"text": token, "start": start, "end": end, "id": i, "ws": text[end : end + 1].isspace()}
        for i, (token, start, end) in enumerate(zip(document.tokens, starts, ends, strict=True))
    ]


def _relations(document: Document, spans: list[dict[str, Any]]) -> list[Any]:
    """Return the relations stored with a document, and a relation between any two successive mentions of a name.

    Prodigy numbers the ends of a relation by the last token of a span; spans that end within a token have no number.
    """
    own = document.fields.get("relations")
    relations: list[Any] = cast("list[Any]", own) if isinstance(own, list) else []
    return relations + [
        {
            "head": spans[i].get("token_end"), "child": spans[j].get("token_end"), "label": COREFERENCE,
            "head_span": spans[i], "child_span": spans[j],
        }
        for name in document.names
        for i, j in pairwise(name.mentions)
    ]  # fmt: skip


def _spans(document: Document) -> list[dict[str, Any]]:
    spans = [{"start": e.start, "end": e.end, "label": e.label} for e in document.entities]
    begins = {start: i for i, start in enumerate(document.token_starts.tolist())}
    finishes = {end: i for i, end in enumerate(document.token_ends.tolist())}
    for span, entity in zip(spans, document.entities, strict=True):
        if entity.start in begins and entity.end in finishes:
            span |= {"token_start": begins[entity.start], "token_end": finishes[entity.end]}
        if entity.confidence is not None:
            span |= {"score": round(float(entity.confidence), 6)}
    return spans
