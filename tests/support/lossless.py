"""``python tests/support/lossless.py --documents 1000000``: random documents through all pairs of file formats.

Each document is written in one format and read, then written in another and read. Exit status 1 if a part that the
format carries has changed and the writer has not refused the document.
"""

from __future__ import annotations

import argparse
import io
import json
import logging
import random
import sys
from collections import Counter
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from herdner.corpora.formats import FORMATS, READABLE, WRITABLE, read_documents, write_documents
from herdner.text.document import Document
from herdner.text.entity import Entity
from herdner.text.io.source import FormatError
from herdner.text.partial import PartialAnnotation, UnannotatedRange
from herdner.text.tags import Span
from herdner.text.tokenize import Tokenizer

NAMES = tuple(name for name in WRITABLE if name in READABLE and FORMATS[name].carries)
PAIRS = tuple(product(NAMES, NAMES))
TOKENIZER = Tokenizer()
LOG = logging.getLogger("herdner.text.io.write")

SPACES = [" ", " ", " ", "\n", "\t", "\r\n", "\r", "  ", "\u00a0", "\u2028", "\u0085", "\x0b", "\x1c", "\n\n"]
PIECES = [
    "Ada", "Rio",
    "x", "é", "e\u0301", "😀", "\ufeff", "-DOCSTART-", "#", '"', ",", "'", "\\", "\\n", "|", "?", "=", "O",
    "B-PER",
    "\u200b", "\x00", "\x07", "{", "<b>", "&amp;", "\u0645", "T1", "\u00ad", "\ufffd", "1e400",
]  # fmt: skip
LABELS = ["PER", "LOC", "New York", "creative-work", "O", "B-PER", "a_b", "é", "=", "#x", "null", "1"]
BAD_LABELS = ["a\tb", "a\nb", "", " ", "a|b", "a  b", "x\u2028y"]
VALUES: dict[str, list[object]] = {
    "tokens": [17, 4], "open": [True, False], "url": ["", "http://x", "a\r\nb", "\ufeff"], "rank": [1, -(2**40)],
    "score": [0.5, 1e-300], "label": ["x", ","], "meta": ["m"], "source": ["a", '"'], "spans": ["none"],
    "entities": ["none"], "offset": [3], "answer": ["yes"], "data": ["d"], "_x": ["u"], "no-entry": ["\x00", "\t"],
}  # fmt: skip


def random_word(rng: random.Random) -> str:
    """A token without white space."""
    return "".join(rng.choice(PIECES) for _ in range(rng.choice([1, 1, 1, 2, 3])))


def random_document(rng: random.Random) -> Document:
    """A document with tokens or without, with text that is hard to write."""
    id = rng.choice(
        [None, "", "a", "A", "a/b.txt", "a b", "ä", "a\u0308", ".", "7", "x\ty", "\ufeffid", random_word(rng)]
    )
    names = rng.sample(list(VALUES), rng.choice([0, 0, 1, 3]))
    fields = {name: rng.choice(VALUES[name]) for name in names}
    if rng.random() < 0.1:
        id, fields["id"] = "7", 7
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
        return with_random_entities(rng, Document.from_text(text, id=id, fields=fields))
    return with_random_spans(rng, document)


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


def change(before: Document, after: Document, format: str) -> str | None:
    """The first part that the format carries and that has changed; None if all are equal."""
    parts, format_of = FORMATS[format].carries, FORMATS[format]
    for part in sorted(parts):
        ours, theirs = carried(before, part, format), carried(after, part, format)
        if part in ("fields", "strings"):
            theirs = {k: theirs.get(k) if theirs.get(k) == v else theirs.get(f"source_{k}") for k, v in ours.items()}
        if part == "id" and not ours:
            continue
        if ours != theirs:
            return f"{format_of.name}: {part}: {ours!r} became {theirs!r}"
    return None


def carried(document: Document, part: str, format: str) -> Any:
    """A part of a document, as the documentation of the format describes it."""
    if part == "tokens":
        return list(map(list, document.sentences()))
    if part == "spans":
        return [tuple(span) for span in document.spans or ()]
    if part == "entities":
        label = (lambda label: "_".join(label.split())) if format == "brat" else str
        entities = [(each.start, each.end, label(each.label)) for each in document.entities]
        has_annotation = format in ("brat", "label-studio") or document.spans is not None
        return entities if has_annotation else None
    if part == "confidence":
        return [each.confidence and round(each.confidence, 6) for each in document.entities]
    if part == "partial":
        if format == "conll":
            return document.unannotated_tokens()
        return document.partial
    if part in ("fields", "strings"):
        values = {name: value for name, value in document.fields.items() if name != "id" and value not in (None, "")}
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


def refused(document: Document, format: str) -> bool:
    """Return True if the writer refuses the document in one line, or logs that its entities change."""
    said: list[logging.LogRecord] = []
    LOG.addFilter(keep := lambda record: said.append(record))
    try:
        write([document], format)
    except ValueError as error:
        message = str(error)
        assert message
        assert "\n" not in message
        return True
    finally:
        LOG.removeFilter(keep)
    return bool(said)


def check(documents: Sequence[Document], format: str) -> tuple[list[Document], int]:
    """Write and read documents in a format. Return the documents that were read, and the number of refused ones.

    Raises `AssertionError` if a document has changed or is missing.
    """
    if format in ("conll", "spacy"):
        documents = [each if each.n_tokens else tokenized(each) for each in documents]
    writable = [document for document in documents if not refused(document, format)]
    if format == "conll":
        writable = [document for document in writable if document.n_tokens]  # others are left out, as documented
    try:
        groups = [(writable, write(writable, format))]
    except ValueError:  # documents that do not go into one table
        groups = [([document], write([document], format)) for document in writable]
    found: list[Document] = []
    for group, data in groups:
        back = read(data, format) if group else []
        assert len(back) == len(group), f"{format}: {len(group)} documents became {len(back)}: {data[:2000]!r}"
        for before, after in zip(group, back, strict=True):
            problem = change(before, after, format)
            assert problem is None, problem
        found += back
    return found, len(documents) - len(writable)


def tokenized(document: Document) -> Document:
    tokens = TOKENIZER(document.text)
    tokens = Document(
        tokens.text, tokens.tokens, tokens.token_starts, tokens.token_ends, tokens.sentence_offsets,
        id=document.id, fields=document.fields, partial=document.partial,
    )  # fmt: skip
    return tokens if document.spans is None else tokens.with_entities(document.entities)


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
    logging.getLogger("herdner.text.io.parse_warnings").setLevel(logging.ERROR)
    LOG.propagate = False
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
