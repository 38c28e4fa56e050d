"""Running text: plain files and JSON lines."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import IO, Any, Literal

from herdner.text.document import Document, Entity
from herdner.text.io.labels import Labels, renamed
from herdner.text.io.source import FormatError, Source, read_chunks, read_lines, sources

logger = logging.getLogger(__name__)

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def read_text(
    where: str | Path | IO[Any] | Source,
    *,
    encoding: str = "utf-8",
    documents: Literal["file", "line"] = "file",
    max_chars: int | None = None,
) -> Iterator[Document]:
    """Each file one document, its text untouched (a byte order mark apart); or each line that is not blank.

    A file of more than ``max_chars`` characters comes as several documents, cut at a blank line where possible, else at
    a line break, else at a space, so that files of any size stream; ``fields["offset"]`` is the character where the
    piece begins in the file. Raises FormatError.
    """
    if documents not in ("file", "line"):
        raise ValueError(f"documents={documents!r}; expected file or line")
    if max_chars is not None and max_chars < 1:
        raise ValueError(f"max_chars={max_chars}; expected a positive number")
    for source in sources(where, ("*.txt",)):
        if documents == "line":
            for number, line in read_lines(source, encoding):
                if line and not line.isspace():
                    yield Document.from_text(line, id=f"{source.id}#{number}")
            continue
        offset = 0
        for count, (piece, is_whole) in enumerate(pieces(read_chunks(source, encoding), max_chars), 1):
            if piece and not piece.isspace():
                fields = {} if is_whole else {"offset": offset}
                yield Document.from_text(piece, id=source.id if is_whole else f"{source.id}#{count}", fields=fields)
            offset += len(piece)


def pieces(chunks: Iterator[str], max_chars: int | None) -> Iterator[tuple[str, bool]]:
    """The text in pieces of at most ``max_chars``, cut as `read_text` does, and whether the piece is all there is."""
    if max_chars is None:
        yield "".join(chunks), True
        return
    rest, is_whole = "", True
    for chunk in chunks:
        rest += chunk
        begin = 0
        while len(rest) - begin > max_chars:
            cut = _cut(rest, begin, begin + max_chars)
            yield rest[begin:cut], False
            begin, is_whole = cut, False
        rest = rest[begin:]
    yield rest, is_whole


def _cut(text: str, begin: int, limit: int) -> int:
    for border in ("\n\n", "\n", " "):
        found = text.rfind(border, begin, limit)
        if found > begin:
            return found + len(border)
    return limit


def read_jsonl(
    where: str | Path | IO[Any] | Source, *, encoding: str = "utf-8", labels: Labels | None = None
) -> Iterator[Document]:
    """One JSON object a line: ``{"id", "text", "entities": [{"start", "end", "label"}], "tokens"}``, most optional.

    ``tokens`` is a list of strings, or of such lists, one a sentence; without ``text`` they are joined by spaces.
    A record without ``entities`` is not annotated (its tags are None). Other keys are kept in `Document.fields`. A lone
    surrogate, which no file can hold, becomes U+FFFD, with a warning; the offsets stay right. Raises FormatError.
    """
    for source in sources(where, ("*.jsonl", "*.ndjson")):
        for number, line in read_lines(source, encoding):
            if line and not line.isspace():
                yield document_of_line(line, f"{source.name}:{number}", f"{source.id}#{number}", labels)


def document_of_line(line: str, place: str, id: str, labels: Labels | None = None) -> Document:
    """The document of one line of `read_jsonl`, ``id`` for a record without one. FormatError begins with ``place``."""
    try:
        return _document(_parse(line, place), id, labels)
    except ValueError as error:
        raise FormatError(f"{place}: {error}") from None


def _parse(line: str, place: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except RecursionError:
        raise ValueError("nested too deeply; expected one flat object") from None
    except ValueError as error:
        raise ValueError(f"not JSON ({error}); expected one object a line") from None
    if not isinstance(record, dict):
        raise ValueError(f"a JSON {type(record).__name__}; expected an object with a text")
    if "\\u" in line and _has_lone_surrogate(record):
        logger.warning("%s: lone surrogates replaced by U+FFFD", place)
        record = _mended(record)
    return record


def _has_lone_surrogate(value: object) -> bool:
    return _LONE_SURROGATE.search(json.dumps(value, ensure_ascii=False)) is not None


def _mended(value: Any) -> Any:
    return json.loads(_LONE_SURROGATE.sub("\ufffd", json.dumps(value, ensure_ascii=False)))


def _document(record: dict[str, Any], id: str, labels: Labels | None) -> Document:
    text, tokens, given = record.pop("text", None), record.pop("tokens", None), record.pop("entities", None)
    name = record.pop("id", None)
    id = id if name is None else str(name)
    if text is None and tokens is None:
        raise ValueError("no text; expected an object with a text, or with tokens")
    if text is not None and not isinstance(text, str):
        raise ValueError(f"text is {json.dumps(text)[:40]}; expected a string")
    if tokens is None:
        document = Document.from_text(text or "", id=id, fields=record)
    elif text is None:
        document = Document.from_tokens(_sentences(tokens), id=id, fields=record)
    else:
        document = Document.from_aligned(text, _sentences(tokens), id=id, fields=record)
    if given is None:
        return document
    return document.with_entities(renamed(_entities(given, document.text), labels))


def _sentences(tokens: Any) -> list[list[str]]:
    nested = isinstance(tokens, list) and all(isinstance(sentence, list) for sentence in tokens)
    sentences = tokens if nested else [tokens]
    words = [word for sentence in sentences for word in (sentence if isinstance(sentence, list) else [None])]
    if not all(isinstance(word, str) and word.split() == [word] for word in words):
        raise ValueError("tokens are not strings without white space; expected a list of them, or one list a sentence")
    return [sentence for sentence in sentences if sentence]


def _entities(given: Any, text: str) -> list[Entity]:
    if not isinstance(given, list):
        raise ValueError("entities is no list; expected [{start, end, label}, ...]")
    entities = sorted((_entity(i, e, text) for i, e in enumerate(given)), key=lambda entity: entity.start)
    for left, right in pairwise(entities):
        if right.start < left.end:
            raise ValueError(f"{right.text!r} overlaps {left.text!r}; expected entities side by side")
    return entities


def _entity(i: int, given: Any, text: str) -> Entity:
    if not isinstance(given, dict):
        raise ValueError(f"entity {i} is {json.dumps(given)[:40]}; expected an object with start, end and label")
    start, end, label = (given.get(key) for key in ("start", "end", "label"))
    confidence = given.get("confidence")
    if type(start) is not int or type(end) is not int or not 0 <= start < end <= len(text):
        raise ValueError(f"entity {i} is {start}..{end}; expected 0 <= start < end <= {len(text)}, the text's length")
    if not isinstance(label, str) or not label or label.split() != [label]:
        raise ValueError(f"the label of entity {i} is {label!r}; expected a word")
    if confidence is not None and type(confidence) not in (int, float):
        raise ValueError(f"the confidence of entity {i} is {confidence!r}; expected a number")
    if "text" in given and given["text"] != text[start:end]:
        raise ValueError(f"entity {i} says {given['text']!r}; expected {text[start:end]!r}, which is at {start}..{end}")
    return Entity(start, end, label, text[start:end], None if confidence is None else float(confidence))
