"""``python tests/support/lossless.py --documents 1000000``: random documents through all pairs of file formats.

Each document is written in one format and read, then written in another and read. Exit status 1 if a part of a document
has changed, although the writer has neither refused the document nor warned about the part, or if it warns about a part
that the document lacks.
"""

from __future__ import annotations

import argparse
import io
import json
import logging
import random
import re
import sys
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from herdner.corpora.formats import FORMATS, READABLE, WRITABLE, Part, read_documents, write_documents
from herdner.text.document import Document
from herdner.text.entity import Entity
from herdner.text.io.source import FileId, FormatError
from herdner.text.partial import PartialAnnotation, UnannotatedRange
from herdner.text.tags import Span
from herdner.text.tokenize import Tokenizer, with_tokens

NAMES = tuple(name for name in WRITABLE if name in READABLE and FORMATS[name].carries)
PAIRS = tuple(product(NAMES, NAMES))
TOKENIZER = Tokenizer()
FORMATS_LOG, ENTITIES_LOG = map(logging.getLogger, ("herdner.corpora.formats", "herdner.text.io.parse_warnings"))
# Words of the warning about each part.
WARNED: dict[str, Part] = {
    "the ids of": "id", "the fields of": "fields", "the tokens and": "tokens", "the confidences": "confidence",
    "the groups of": "names",
}  # fmt: skip

SPACES = [" ", " ", " ", "\n", "\t", "\r\n", "\r", "  ", "\u00a0", "\u2028", "\u0085", "\x0b", "\x1c", "\n\n"]
PIECES = [
    "Ada", "Rio",
    "x", "é", "e\u0301", "😀", "\ufeff", "-DOCSTART-", "#", '"', ",", "'", "\\", "\\n", "|", "?", "=", "O",
    "B-PER",
    "\u200b", "\x00", "\x07", "{", "<b>", "&amp;", "\u0645", "T1", "\u00ad", "\ufffd", "1e400",
]  # fmt: skip
SURROGATES = ["\ud800", "a\udc80", "\udbff\udfff"]
SURROGATE = re.compile("[\ud800-\udfff]")
LABELS = ["PER", "LOC", "New York", "creative-work", "O", "B-PER", "a_b", "é", "=", "#x", "null", "1"]
BAD_LABELS = ["a\tb", "a\nb", "", " ", "a|b", "a  b", "x\u2028y", "\udc80"]
VALUES: dict[str, list[object]] = {
    "tokens": [17, 4], "open": [True, False], "url": ["", "http://x", "a\r\nb", "\ufeff"], "rank": [1, -(2**40)],
    "score": [0.5, 1e-300], "label": ["x", ","], "meta": ["m"], "source": ["a", '"'], "spans": ["none"],
    "entities": ["none"], "offset": [3], "answer": ["yes"], "data": ["d"], "_x": ["u"], "no-entry": ["\x00", "\t"],
    "list": [["a"], []], "object": [{"k": "v"}],
}  # fmt: skip


def random_word(rng: random.Random) -> str:
    """A token without white space."""
    word = "".join(rng.choice(PIECES) for _ in range(rng.choice([1, 1, 1, 2, 3])))
    return word + rng.choice(SURROGATES) if rng.random() < 0.005 else word


def random_document(rng: random.Random) -> Document:
    """A document with tokens or without, with text that is hard to write."""
    id = rng.choice(
        [None, "", "a", "A", "a/b.txt", "a b", "ä", "a\u0308", ".", "7", "x\ty", "\ufeffid", random_word(rng)]
    )
    names = rng.sample(list(VALUES), rng.choice([0, 0, 1, 3]))
    fields = {name: rng.choice(VALUES[name]) for name in names}
    if rng.random() < 0.1:
        id, fields["id"] = "7", 7
    if rng.random() < 0.02:
        surrogates = rng.choice(SURROGATES)
        fields |= rng.choice(
            [{"x": surrogates}, {surrogates: "x"}, {"list": [surrogates]}, {"object": {surrogates: 1}}]
        )
    text, starts, ends, borders = rng.choice(["", "", "", " ", "\n", "\ufeff "]), [], [], [0]
    for _ in range(rng.choice([0, 1, 2, 4, 8])):
        starts.append(len(text))
        text += random_word(rng)
        ends.append(len(text))
        text += rng.choice([*SPACES, "", ""])
        if rng.random() < 0.3:
            borders.append(len(starts))
    offsets = np.unique([*borders, len(starts)]).astype(np.int64)
    tokens = [text[start:end] for start, end in zip(starts, ends, strict=True)]
    document = Document(
        text, tokens, np.array(starts, np.int64), np.array(ends, np.int64), offsets, id=id, fields=fields
    )
    if rng.random() < 0.4:
        document = with_random_entities(rng, Document.from_text(text, id=id, fields=fields))
    else:
        document = with_random_spans(rng, document)
    if rng.random() < 0.5:
        entities = tuple(replace(entity, name_id=rng.choice([0, 0, 1, 7])) for entity in document.entities)
        document = replace(document, entities=entities)
    return document


def random_label(rng: random.Random) -> str:
    return rng.choice(BAD_LABELS) if rng.random() < 0.02 else rng.choice(LABELS)


def with_random_entities(rng: random.Random, document: Document) -> Document:
    """The document with entities at any characters, or without annotation."""
    if rng.random() < 0.2:
        return document
    n = min(2 * rng.choice([0, 1, 2]), len(document.text) + 1)
    cuts = sorted(rng.sample(range(len(document.text) + 1), n - n % 2))
    entities = [
        Entity(start, end, random_label(rng), document.text[start:end], rng.choice([None, 0.25, 1.0, 0.123457]))
        for start, end in zip(cuts[::2], cuts[1::2], strict=True)
    ]
    return document.with_entities(entities)


def with_random_spans(rng: random.Random, document: Document) -> Document:
    """The document with entities of whole tokens, or partially annotated."""
    spans: list[Span] = []
    t = 0
    while t < document.n_tokens:
        end = min(t + rng.choice([1, 1, 2]), document.n_tokens)
        sentence = int(np.searchsorted(document.sentence_offsets, t, side="right"))
        end = min(end, int(document.sentence_offsets[sentence]))
        if rng.random() < 0.4:
            spans.append(Span(t, end, random_label(rng)))
        t = end
    document = document.with_spans(spans, confidences=None if rng.random() < 0.5 else np.full(len(spans), 0.75))
    taken = {t for span in spans for t in range(span.start, span.end)}
    free = [t for t in range(document.n_tokens) if t not in taken]
    if free and rng.random() < 0.1:
        t = rng.choice(free)
        unsure = UnannotatedRange(
            int(document.token_starts[t]), int(document.token_ends[t]), rng.choice(["?", "PER|LOC"])
        )
        return document.with_partial(PartialAnnotation((unsure,)))
    return document


def write(documents: Sequence[Document], format: str) -> bytes:
    """Bytes of a file; `ValueError` if the writer refuses."""
    stream = io.BytesIO()
    write_documents(documents, stream, format)
    return stream.getvalue()


def read(data: bytes, format: str) -> list[Document]:
    return list(read_documents(io.BytesIO(data), format))


def change(before: Document, after: Document, format: str, warned: Collection[Part]) -> str | None:
    """The first part that has changed without a warning, or has a warning without reason; None if there is none."""
    entry = FORMATS[format]
    for part in sorted(entry.carries.union(WARNED.values()) - {"surrogates"}):
        if part == "fields" and "strings" in entry.carries:
            continue
        ours, theirs = (carried(each, part, format) for each in (before, after))
        if "surrogates" in entry.carries and part != "partial":  # the reader replaces surrogates, with a warning
            ours, theirs = map(replace_surrogates, (ours, theirs))
        if part in ("fields", "strings"):
            theirs = {k: theirs.get(k) if theirs.get(k) == v else theirs.get(f"source_{k}") for k, v in ours.items()}
        if part == "id" and (not ours or isinstance(before.id, FileId)):
            continue
        if part in entry.carries and ours != theirs:
            return f"{format}: {part}: {ours!r} became {theirs!r}"
        if part not in entry.carries and (part in warned) != has(before, part, format):
            return f"{format}: {part}: {ours!r} became {theirs!r}, {'with a' if part in warned else 'without'} warning"
    return None


def without_nulls(value: Any) -> Any:
    return {key: each for key, each in value.items() if each is not None} if isinstance(value, dict) else value


def replace_surrogates(value: Any) -> Any:
    return json.loads(SURROGATE.sub("\ufffd", json.dumps(value, ensure_ascii=False)))


def has(document: Document, part: Part, format: str) -> bool:
    """Return True if a document has a part that no program has computed, and that the format would lose."""
    if part in document.computed_parts:
        return False
    names = set(carried(document, "fields", format))
    if part == "fields":
        return bool(
            names - {"tokens" if document.n_tokens else "", "offset" if isinstance(document.id, FileId) else ""}
        )
    if part == "tokens":
        return document.n_tokens > 0 and not ("tokens" in names and FORMATS[format].carries & {"fields", "strings"})
    return bool(part != "id" or document.id) and any(carried(document, part, format) or ())


def carried(document: Document, part: str, format: str) -> Any:
    """A part of a document, as the documentation of the format describes it."""
    if part == "tokens":
        return list(map(list, document.sentences()))
    if part == "spans":
        if format == "conll" or not document.n_tokens:  # tokens without annotation get the tag O, with a warning
            return [tuple(span) for span in document.spans or ()]
        return None if document.spans is None else [tuple(span) for span in document.spans]
    if part == "entities":
        label = (lambda label: "_".join(label.split())) if format == "brat" else str
        entities = [(each.start, each.end, label(each.label)) for each in document.entities]
        has_annotation = format in ("brat", "label-studio") or document.spans is not None
        return entities if has_annotation else None
    if part == "names":
        names = [name.mentions for name in document.names if len(name.mentions) > 1]
        return sorted([(document.entities[i].start, document.entities[i].end) for i in own] for own in names)
    if part == "confidence":
        return [each.confidence and round(each.confidence, 6) for each in document.entities]
    if part == "partial":
        if format == "conll":
            return document.unannotated_tokens()
        return document.partial
    if part in ("fields", "strings"):
        values = {name: value for name, value in document.fields.items() if name != "id" and value not in (None, "")}
        if format == "parquet":  # objects in a column get the keys of each other, with nulls
            values = {name: without_nulls(value) for name, value in values.items()}
        if format == "prodigy" and isinstance(meta := values.get("meta"), dict):
            values["meta"] = {name: value for name, value in meta.items() if name != "id"}  # the id of the document
        if part == "strings":
            values = {
                name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
                for name, value in values.items()
            }
        return values
    if part == "id" and document.row is not None and document.row.document_id == document.id:
        cells = dict(zip(document.row.columns.names, document.row.values, strict=True))
        if cells.get(document.row.columns.id or "", True) in (None, ""):
            return None  # the cell stays empty; the reader names such rows by their number in the table
    return getattr(document, part)


def lost_parts(document: Document, format: str) -> set[Part] | None:
    """Parts of a document whose loss is logged; None if the writer refuses the document or logs that entities change.

    A refusal is one line.
    """
    said: list[logging.LogRecord] = []
    keep = lambda record: said.append(record)  # noqa: E731
    for log in (FORMATS_LOG, ENTITIES_LOG):
        log.addFilter(keep)
    try:
        write([document], format)
    except ValueError as error:
        message = str(error)
        assert message
        assert "\n" not in message
        return None
    finally:
        for log in (FORMATS_LOG, ENTITIES_LOG):
            log.removeFilter(keep)
    if any(record.name == ENTITIES_LOG.name for record in said):
        return None
    return {part for record in said for words, part in WARNED.items() if words in record.getMessage()}


def check(documents: Sequence[Document], format: str) -> tuple[list[Document], int]:
    """Write and read documents in a format. Return the documents that were read, and the number of refused ones.

    Raises `AssertionError` if a document has changed or is missing.
    """
    if format in ("conll", "spacy"):
        documents = [with_tokens(document, TOKENIZER) for document in documents]
    warned = {i: parts for i, each in enumerate(documents) if (parts := lost_parts(each, format)) is not None}
    writable = {i: documents[i] for i in warned}
    try:
        groups = [(writable, write(list(writable.values()), format))]
    except ValueError:  # documents that do not go into one table
        groups = [({i: document}, write([document], format)) for i, document in writable.items()]
    found: list[Document] = []
    for group, data in groups:
        back = read(data, format) if group else []
        assert len(back) == len(group), f"{format}: {len(group)} documents became {len(back)}: {data[:2000]!r}"
        for (i, before), after in zip(group.items(), back, strict=True):
            problem = change(before, after, format, warned[i])
            assert problem is None, problem
        found += back
    return found, len(documents) - len(warned)


def check_pair(documents: Sequence[Document], first: str, second: str) -> tuple[int, int]:
    """Write documents in two formats, one after the other; return the numbers of refused documents."""
    back, n_first = check(documents, first)
    _, n_second = check(back, second)
    return n_first, n_second


def main() -> int:
    parser = argparse.ArgumentParser(description="Random documents through all pairs of formats.")
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--batch", type=int, default=20, help="documents of one file")
    options = parser.parse_args()
    logging.getLogger("herdner").addHandler(logging.NullHandler())
    rng = random.Random(options.seed)
    counts: Counter[str] = Counter()
    problems: Counter[str] = Counter()
    while counts["documents"] < options.documents:
        first, second = rng.choice(PAIRS)
        documents = [random_document(rng) for _ in range(options.batch)]
        try:
            n_first, n_second = check_pair(documents, first, second)
            counts["refused by the first format"] += n_first
            counts["refused by the second format"] += n_second
        except (AssertionError, FormatError) as error:
            problems[f"{first} {second}"] += 1
            if sum(problems.values()) <= 20:
                print(f"{first} -> {second}: {str(error)[:600]}", flush=True)
        counts["documents"] += len(documents)
    print(f"{dict(counts)}, {len(PAIRS)} pairs, {sum(problems.values())} losses {dict(problems)}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
