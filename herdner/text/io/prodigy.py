"""Prodigy's JSON lines, as ``db-out`` writes and ``ner.manual``, ``ner.correct`` and ``db-in`` read them.

The format: https://prodi.gy/docs/api-interfaces#ner_manual and #ner.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any, cast

from herdner.text.document import Document, Failure
from herdner.text.io.marked import Doubt, Mark, Record, annotated, listed, records, text_of
from herdner.text.io.source import Source
from herdner.text.io.write import json_line, utf8
from herdner.text.partial import ANY_TAG, PartialAnnotation, UnannotatedRange

_ANSWERS = ("accept", "reject", "ignore")


def read_prodigy(
    where: str | Path | IO[Any] | Source,
    *,
    encoding: str = "utf-8",
    strict: bool = False,
) -> Iterator[Document | Failure]:
    """One task a line: ``{"text", "spans": [{"start", "end", "label"}], "answer"}``; tokens are made anew.

    A task that was accepted (or has "spans" and no "answer") is annotated, with no name where it has no span. One that
    was rejected or ignored, and one that nobody has seen, has no tags. A yes or no to single spans ("_view_id": "ner",
    as ``ner.teach`` asks) says nothing of the rest: accepted, all tokens outside the spans are left open
    (`Document.partial`). The id is ``meta["id"]``, else the line. Other keys become `Document.fields`, but for hashes
    and session names. A line that is wrong is a `Failure`, and the next follows. Raises FormatError.
    """
    return records(where, ("*.jsonl",), encoding, strict, _document)


def _document(record: Record) -> Document:
    values = record.values
    answer = values.get("answer")
    if answer is not None and answer not in _ANSWERS:
        raise ValueError(f"answer is {json.dumps(answer)[:40]}; expected one of {', '.join(_ANSWERS)}")
    meta: object = values.get("meta")
    name = cast("dict[str, Any]", meta).get("id") if isinstance(meta, dict) else None
    left = ("text", "spans", "tokens", "answer")
    fields = {k: v for k, v in values.items() if k not in left and not k.startswith("_")}
    document = Document.from_text(text_of(values), id=record.id if name is None else str(name), fields=fields)
    if answer in ("reject", "ignore") or (answer is None and "spans" not in values):
        return document
    marks = list(_marks(listed(values.get("spans") or [], "spans"), record.doubt))
    document = annotated(document, marks, record.doubt)
    return _binary(document) if values.get("_view_id") == "ner" and answer is not None else document


def _marks(spans: list[Any], doubt: Doubt) -> Iterator[Mark]:
    for i, given in enumerate(spans):
        if not isinstance(given, dict):
            raise ValueError(f"span {i} is {json.dumps(given)[:40]}; expected an object with start, end and label")
        values = cast("dict[str, Any]", given)
        if values.get("label") is None:
            doubt("a span without a label is left out")
            continue
        yield Mark(values.get("start"), values.get("end"), values["label"], values.get("text"))


def _binary(document: Document) -> Document:
    """Everything outside the entities left open, but for what touches them: their tokens may end there."""
    places, last, text = list[UnannotatedRange](), 0, document.text
    for start, end in [*((e.start, e.end) for e in document.entities), (len(text),) * 2]:
        while last and last < start and not text[last].isspace():
            last += 1
        stop = start
        while start < len(text) and stop > last and not text[stop - 1].isspace():
            stop -= 1
        if text[last:stop].strip():
            places.append(UnannotatedRange(last, stop, ANY_TAG))
        last = end
    return document.with_partial(PartialAnnotation(tuple(places)))


def write_prodigy(documents: Iterable[Document], stream: IO[Any], *, answer: str | None = None) -> None:
    """One task a line, with tokens and spans, to correct (``ner.manual``) or to import (``db-in``).

    Confidences become the "score" of spans; the id is ``meta["id"]``, which Prodigy shows below the text.

    Args:
        answer: "accept" for what people have annotated; documents without tags have none.
    """
    if answer is not None and answer not in _ANSWERS:
        raise ValueError(f"answer={answer!r}; expected one of {', '.join(_ANSWERS)}")
    put = utf8(stream)
    for document in documents:
        meta: object = document.fields.get("meta")
        meta = {**(cast("dict[str, Any]", meta) if isinstance(meta, dict) else {}), "id": document.id}
        record = {**document.fields, "text": document.text, "meta": meta}
        if document.n_tokens:
            record["tokens"] = _tokens(document)
        if document.tags is not None or document.entities:
            record["spans"] = _spans(document)
        put(json_line(record if answer is None or document.tags is None else {**record, "answer": answer}))


def _tokens(document: Document) -> list[dict[str, Any]]:
    starts, ends, text = document.token_starts.tolist(), document.token_ends.tolist(), document.text
    return [
        {"text": token, "start": start, "end": end, "id": i, "ws": text[end : end + 1].isspace()}
        for i, (token, start, end) in enumerate(zip(document.tokens, starts, ends, strict=True))
    ]


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
