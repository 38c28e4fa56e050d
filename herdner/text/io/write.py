"""Writers: CoNLL columns, JSON lines, terminal text and spaCy's DocBin."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import IO, Any

import numpy as np

from herdner.base.extras import check_extra
from herdner.text.document import Document
from herdner.text.entity import Entity
from herdner.text.io.columns import DOCSTART
from herdner.text.io.docbin import readable_docbin
from herdner.text.io.jsonl import ANNOTATION_KEYS
from herdner.text.io.parse_warnings import ParseWarnings
from herdner.text.partial import is_ambiguous
from herdner.text.tags import Scheme, Span, convert_tags, tags_from_spans

STYLES = {"PER": "bold cyan", "LOC": "bold green", "ORG": "bold magenta", "MISC": "bold yellow"}

_SURROGATE_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_DOCUMENT_LINE = f"{DOCSTART}\tO\n\n"
_LINE_SEPARATORS = str.maketrans({c: f"\\u{ord(c):04x}" for c in "\x7f\x85\u2028\u2029"})
# Characters that control a terminal, and surrogates, which UTF-8 cannot represent.
CONTROLS = re.compile(r"\r(?!\n)|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")


def write_conll(documents: Iterable[Document], stream: IO[Any], *, scheme: Scheme = "iob2") -> None:
    """Write documents in CoNLL columns: a token, a TAB and a tag on each line.

    A blank line follows each sentence, and ``-DOCSTART-`` separates documents; two successive ``-DOCSTART-`` lines
    enclose a document without tokens. All tokens of a document without annotation get the tag O. A warning reports
    entities that tags cannot represent exactly: entities that begin or end within a token, or that cross a sentence
    border.

    Args:
        documents: The documents; proposals are written like annotations.
        stream: A text or binary stream.
        scheme: Scheme of the tags.

    Raises:
        ValueError: A document has a text but no tokens, some of its labels are not annotated, a token contains white
            space or begins with ``-DOCSTART-``, or a part of the text belongs to no token.
    """
    put = utf8(stream)
    n_unannotated, first_unannotated, is_annotated = 0, 0, False
    with ParseWarnings("conll", strict=False) as warnings:
        for number, document in enumerate(documents, 1):
            if document.spans is None:
                n_unannotated, first_unannotated = n_unannotated + 1, first_unannotated or number
            else:
                is_annotated = True
            if document.partial is not None and document.partial.annotated_labels is not None:
                problem = "the column format cannot store the list of annotated labels"
                raise ValueError(f"document {document.id!r}: {problem}; write JSON lines instead")
            _check_tokens(document)
            _warn_of_borders(document, number, warnings, within_sentences=True)
            if invalid := next((token for token in document.tokens if token.startswith(DOCSTART)), None):
                problem = f"the token {invalid!r:.60} separates documents"
                raise ValueError(f"document {document.id!r}: {problem}; write JSON lines instead")
            # The reader removes a byte order mark at the start of a file.
            if number > 1 or not document.n_tokens or document.tokens[0].startswith("\ufeff"):
                put(_DOCUMENT_LINE)
            tags = _tags(document, scheme)
            for token, possible in document.unannotated_tokens().items():
                tags[token] = possible if is_ambiguous(possible) else f"{possible}|{possible}"
            for start, end in _pairs(document):
                rows = zip(document.tokens[start:end], tags[start:end], strict=True)
                put("".join(f"{token}\t{tag}\n" for token, tag in rows) + "\n")
        if n_unannotated and is_annotated:
            warnings.add(
                "a document without annotation is written like an annotated document without entities",
                document=first_unannotated, times=n_unannotated,
            )  # fmt: skip


def write_jsonl(documents: Iterable[Document], stream: IO[Any]) -> None:
    """Write documents as JSON lines: ``{"id", "text", "entities": [{"start", "end", "label", "text", "confidence"}]}``.

    A document without annotation has no key "entities". The fields of a document become further keys (`with_fields`);
    if `read_text` has split a long text into documents, ``"offset"`` is the position of a document in that text.
    Confidences are rounded to six decimals, and null if unknown. All characters that a reader might treat as a line
    break are escaped.

    Args:
        documents: The documents.
        stream: A text or binary stream.
    """
    put = utf8(stream)
    for document in documents:
        record: dict[str, Any] = {"id": original_id(document), "text": document.text}
        if document.spans is not None:
            record["entities"] = entity_records(document)
        if document.partial is not None:
            if document.partial.annotated_labels is not None:
                record["annotated_labels"] = list(document.partial.annotated_labels)
            if document.partial.unannotated:
                record["unannotated"] = [each._asdict() for each in document.partial.unannotated]
        lists = [key for key in ANNOTATION_KEYS if isinstance(document.fields.get(key), list)]
        put(json_line(with_fields(record, document, lists)))


def with_fields(record: dict[str, Any], document: Document, reserved: Collection[str] = ()) -> dict[str, Any]:
    """Return a copy of a record, with the fields of a document as additional keys.

    A field whose name has another meaning in the format is written as ``source_NAME``, so that it is not lost. The
    field "id" is left out, because it is the original form of the document's id.

    Args:
        record: Values by key, including the id.
        document: The document.
        reserved: Further names that have a meaning in the format.

    Returns:
        The record with the fields.

    Raises:
        ValueError: Two fields would have the same name.
    """
    fields: dict[str, Any] = {}
    for name, value in document.fields.items():
        if name == "id":
            continue
        key = f"source_{name}" if name in record or name in reserved else name
        if key != name and key in document.fields:
            problem = f"the fields {name!r} and {key!r} would both be written as {key!r}"
            raise ValueError(f"document {document.id!r}: {problem}; rename one field")
        fields[key] = value
    return record | fields


ENTITIES = "entities"
"""Column of the entities in tables."""


def table_cells(document: Document, column: str = "text") -> dict[str, object]:
    """Return the cells of a document's row in a table, as a dict from column to value.

    If the document was read from a table, its columns come first, in their order; the column ``entities`` keeps its
    place if it contains entities. Otherwise the first columns are id and text.

    Args:
        document: The document.
        column: Name of the column of texts, for a document that was not read from a table.

    Returns:
        Values by column. The value of ``entities`` is a list of dicts, or None if there is no annotation.

    Raises:
        ValueError: The document is partially annotated, or two columns would have the same name.
    """
    if document.partial is not None:
        problem = "a table cannot represent a partial annotation"
        raise ValueError(f"document {document.id!r}: {problem}; write JSON lines instead")
    entities = None if document.spans is None else entity_records(document)
    row = document.row
    if row is None:
        cells = with_fields({"id": original_id(document), column: document.text}, document, [ENTITIES])
        return {**cells, ENTITIES: entities}
    cells = dict[str, object]()
    others = dict(document.fields)
    for name, field, value in zip(row.columns.names, row.columns.fields, row.values, strict=True):
        if name == row.columns.text:
            cells[name] = document.text or (value and "")  # null stays null
        elif name == row.columns.id:
            cells[name] = value if document.id == row.document_id else document.id
        elif field == ENTITIES:
            is_other = ENTITIES in others  # the column has other content than entities
            cells[f"source_{ENTITIES}" if is_other else ENTITIES] = others.pop(field, None) if is_other else entities
        else:
            cells[name] = others.pop(field, None)
    if row.columns.id is None:
        cells["id" if "id" not in cells else "document_id"] = document.id
        others.pop("id", None)
    if len(cells) < len(row.columns.names):
        raise ValueError(f"document {document.id!r}: the column name 'source_{ENTITIES}' is reserved; rename it")
    cells = with_fields(cells, replace(document, fields=others), [ENTITIES]) if others else cells
    cells.setdefault(ENTITIES, entities)
    return cells


def original_id(document: Document) -> object:
    """Return the id of a document with the JSON type that it had in the input file, such as a number.

    Args:
        document: The document.
    """
    original = document.fields.get("id")
    return document.id if original is None or str(original) != document.id else original


def entity_record(entity: Entity) -> dict[str, Any]:
    """Return an entity as a dict for JSON and Arrow. The confidence is rounded to six decimals.

    The key "name_id" is left out if the `name_id` is None.

    Args:
        entity: The entity.
    """
    confidence = None if entity.confidence is None else round(float(entity.confidence), 6)
    record = {
        "start": entity.start, "end": entity.end, "label": entity.label, "text": entity.text, "confidence": confidence,
    }  # fmt: skip
    return record if entity.name_id is None else record | {"name_id": entity.name_id}


def entity_records(document: Document) -> list[dict[str, Any]]:
    """Return the entities of a document as a list of dicts for JSON and Arrow.

    Args:
        document: The document.

    Returns:
        A dictionary for each entity. If the document has a source map, it includes ``source_start`` and ``source_end``.
    """
    records = [entity_record(entity) for entity in document.entities]
    if document.source_map is not None:
        for record in records:
            record["source_start"], record["source_end"] = document.source_map.span(record["start"], record["end"])
    return records


def write_text(
    documents: Iterable[Document], stream: IO[Any], *, color: bool | None = None, has_headings: bool = False
) -> None:
    """Write the texts of documents; entities are in colour on a terminal, and otherwise as ``[Ada Lovelace PER]``.

    Documents are separated by a line break; the parts of a long text that `read_text` has split are joined. On a
    terminal, control characters are replaced.

    Args:
        documents: The documents.
        stream: A text stream.
        color: Write in colour; None: only if the stream is a terminal.
        has_headings: Write the id of each document above it.
    """
    use_color = stream.isatty() if color is None else color
    show = _terminal(stream) if use_color else _plain(stream)
    separator: str | None = None  # line break that the previous document needs
    for document in documents:
        is_continued = bool(document.fields.get("offset"))
        if separator is not None and not is_continued:
            show([(separator + "\n", None)])
        if has_headings and not is_continued:
            id = CONTROLS.sub("\ufffd", " ".join((document.id or "document").splitlines()))
            show([(f"== {id} ==\n", None)])
        show(_segments(document))
        separator = "" if document.text.endswith("\n") else "\n"
    show([(separator or "", None)])


def write_spacy(documents: Iterable[Document], stream: IO[Any]) -> None:
    """Write documents to a spaCy file (DocBin) with entities and sentence borders.

    ``doc.text`` equals the document's text.

    White space between tokens other than one space becomes a white space token, as in spaCy's tokenizer. The `name_id`
    of an entity becomes ``ent.ent_id_``.

    Args:
        documents: The documents; all are held in memory.
        stream: A binary stream, or a text stream with a binary buffer.

    Raises:
        ValueError: A document has no tokens or is partially annotated, a token contains white space, a part of the
            text belongs to no token, or the documents are too many for one file.
        MissingExtra: spaCy is not installed.
    """
    check_extra("spacy", ".spacy files need spaCy")
    from spacy.tokens import DocBin
    from spacy.vocab import Vocab

    vocab, store = Vocab(), DocBin(attrs=["ENT_IOB", "ENT_TYPE", "ENT_ID", "SENT_START"])
    with ParseWarnings("spacy", strict=False) as warnings:
        for number, document in enumerate(documents, 1):
            if document.partial is not None:
                problem = "a DocBin cannot represent a partial annotation"
                raise ValueError(f"document {document.id!r}: {problem}; write JSON lines instead")
            _check_tokens(document)
            _warn_of_borders(document, number, warnings, within_sentences=False)
            store.add(_spacy_doc(vocab, document))
    binary = getattr(stream, "buffer", stream)
    binary.write(readable_docbin(store.to_bytes()))


def _spacy_doc(vocab: Any, document: Document) -> Any:
    from spacy.tokens import Doc

    words: list[str] = []
    spaces: list[bool] = []
    index: list[int] = []  # index of each token among the words
    for gap, token in zip(document.gaps(), [*document.tokens, None], strict=True):
        if words and gap.startswith(" "):
            spaces[-1], gap = True, gap[1:]
        if gap:
            words.append(gap)
            spaces.append(False)
        if token is not None:
            index.append(len(words))
            words.append(token)
            spaces.append(False)
    firsts = {index[start] for start, _ in _pairs(document)} - set(index[:1]) | {0}
    spans = [Span(index[s.start], index[s.end - 1] + 1, s.label) for s in document.spans or []]
    tags = None if document.spans is None else tags_from_spans(spans, len(words), "iob2")
    doc = Doc(vocab, words=words, spaces=spaces, ents=tags, sent_starts=[i in firsts for i in range(len(words))])
    firsts_of_entities = document.token_ends.searchsorted([entity.start for entity in document.entities], "right")
    name_ids = dict(zip(firsts_of_entities.tolist(), (entity.name_id for entity in document.entities), strict=True))
    for span, own in zip(spans, document.spans or (), strict=True):
        if (name_id := name_ids.get(own.start)) is not None:
            for token in doc[span.start : span.end]:
                token.ent_id_ = str(name_id)
    return doc


def _segments(document: Document) -> Iterator[tuple[str, str | None]]:
    """Yield the consecutive pieces of a document's text, each with the label of its entity (None outside entities)."""
    last = 0
    for entity in sorted(document.entities, key=lambda e: (e.start, e.end)):
        yield document.text[last : entity.start], None
        yield document.text[entity.start : entity.end], entity.label
        last = entity.end
    yield document.text[last:], None


def _plain(stream: IO[Any]) -> Callable[[Iterable[tuple[str, str | None]]], object]:
    put = utf8(stream)
    return lambda segments: put("".join(text if label is None else f"[{text} {label}]" for text, label in segments))


def _terminal(stream: IO[Any]) -> Callable[[Iterable[tuple[str, str | None]]], object]:
    from rich.console import Console
    from rich.text import Text

    console = Console(file=stream, force_terminal=True, highlight=False, markup=False, emoji=False)

    def show(segments: Iterable[tuple[str, str | None]]) -> None:
        line = Text()
        for text, label in segments:
            style = STYLES.get(label, "bold blue") if label else None
            line.append(CONTROLS.sub("\ufffd", text), style)
            if label:
                line.append(f" {label}", "dim")
        console.print(line, soft_wrap=True, end="")

    return show


def _pairs(document: Document) -> Iterator[tuple[int, int]]:
    return pairwise(document.sentence_offsets.tolist())


def _tags(document: Document, scheme: Scheme) -> list[str]:
    if document.source_tags is not None:
        return convert_tags(document.source_tags, None, scheme, document.sentence_offsets)
    return tags_from_spans(document.spans or [], document.n_tokens, scheme, document.sentence_offsets)


def _check_tokens(document: Document) -> None:
    """Raise `ValueError` if a document has no tokens, a token with white space, or text that belongs to no token."""
    if not document.n_tokens and document.text.strip():
        raise ValueError(f"document {document.id!r} has no tokens; tokenize it first")
    if invalid := next((token for token in document.tokens if token.split() != [token]), None):
        problem = f"the token {invalid!r:.60} contains white space"
        raise ValueError(f"document {document.id!r}: {problem}; write JSON lines instead")
    if lost := next((gap for gap in document.gaps() if gap.strip()), None):
        raise ValueError(f"document {document.id!r}: {lost!r:.60} belongs to no token; tokenize the document again")


def _warn_of_borders(document: Document, number: int, warnings: ParseWarnings, *, within_sentences: bool) -> None:
    """Add a warning about the entities of the ``number``-th document that do not begin and end at token borders.

    If ``within_sentences`` is set, add also a warning about the entities that cross a sentence border.
    """
    starts, ends = document.token_starts, document.token_ends
    spans = document.spans or ()
    exact = {(int(starts[span.start]), int(ends[span.end - 1])) for span in spans}
    if n_changed := sum((entity.start, entity.end) not in exact for entity in document.entities):
        warnings.add(
            "an entity begins or ends within a token; it is widened to whole tokens, or left out if other entities"
            " cover all its tokens", document=number, times=n_changed,
        )  # fmt: skip
    offsets = document.sentence_offsets
    sentences = [np.searchsorted(offsets, [span.start, span.end - 1], side="right") for span in spans]
    if within_sentences and (n_split := sum(int(first) != int(last) for first, last in sentences)):
        warnings.add("an entity crosses a sentence border; it is split there", document=number, times=n_split)


def json_line(record: dict[str, Any]) -> str:
    """Return an object as one line of JSON. Characters that a reader might treat as line breaks are escaped.

    Args:
        record: The object.
    """
    line = json.dumps(record, ensure_ascii=False, default=str)
    try:
        line.encode("utf-8")
    except UnicodeEncodeError:  # a lone surrogate; JSON can represent it only escaped
        line = json.dumps(record, default=str)
    return line.translate(_LINE_SEPARATORS) + "\n"


def encode(text: str) -> bytes:
    """Encode a text in UTF-8. All writers use this function.

    Args:
        text: The text.

    Returns:
        The encoded text.

    Raises:
        ValueError: The text contains a surrogate (U+D800 to U+DFFF), which UTF-8 cannot represent.
    """
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        shown = text[max(0, error.start - 20) : error.start + 20]
        problem = f"{shown!r} contains the surrogate U+{ord(text[error.start]):04X}, which UTF-8 cannot represent"
        raise ValueError(f"{problem}; replace this character, or write JSON lines") from None


def check_encodable(document: Document, parts: Collection[str]) -> None:
    """Raise `ValueError` if a file cannot represent the surrogates (U+D800 to U+DFFF) in a document.

    JSON represents a single surrogate by an escape sequence, but two successive escape sequences are one character.

    Args:
        document: The document.
        parts: Parts of the document that the file contains: "id", "text", "tokens", "fields", "strings"; "surrogates",
            if the file is JSON.

    Raises:
        ValueError: The file cannot represent the surrogates.
    """
    named: dict[str, object] = {"id": document.id} if "id" in parts else {}
    named |= {"text": document.text} if "text" in parts or "tokens" in parts else {}
    if "fields" in parts or "strings" in parts:
        for name, value in document.fields.items():
            named |= {f"name of the field {name!r:.60}": name, f"field {name!r:.60}": value}
    for name, value in named.items():
        if isinstance(value, list | tuple | dict):
            value = json.dumps(value, ensure_ascii=False, default=str, skipkeys=True)
        if not isinstance(value, str):
            continue
        try:
            value.encode("utf-8")
        except UnicodeEncodeError as error:
            if "surrogates" not in parts:
                raise ValueError(
                    f"document {document.id!r}: the {name} contains the surrogate U+{ord(value[error.start]):04X} at"
                    f" character {error.start}, which UTF-8 cannot represent; replace this character, or write JSON"
                    " lines"
                ) from None
            if pair := _SURROGATE_PAIR.search(value):
                joined = pair[0].encode("utf-16", "surrogatepass").decode("utf-16")
                raise ValueError(
                    f"document {document.id!r}: the {name} contains two surrogates at character {pair.start()}, which"
                    f" JSON cannot distinguish from the character U+{ord(joined):04X}; replace them"
                ) from None


def utf8(stream: IO[Any]) -> Callable[[str], object]:
    """Return a function that writes strings to a stream in UTF-8, independently of the locale, by `encode`.

    Args:
        stream: Text or binary stream.
    """
    binary = getattr(stream, "buffer", None)
    if binary is None and isinstance(stream, io.TextIOBase):
        return stream.write
    if binary is not None:
        stream.flush()
    target: Any = stream if binary is None else binary
    return lambda text: target.write(encode(text))
