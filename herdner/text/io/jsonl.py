"""JSON lines: running text, or tokens, with entities where they are known."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import IO, Any, cast

from herdner.text.document import Document, Failure
from herdner.text.entity import Entity
from herdner.text.io.parse_warnings import ParseWarnings
from herdner.text.io.source import (
    MAX_LINE_CHARS,
    FormatError,
    Source,
    by_line,
    check_text,
    open_bytes,
    read_lines,
    sources,
)
from herdner.text.labels import check_label, is_label
from herdner.text.partial import PartialAnnotation, UnannotatedRange
from herdner.text.plain_data import describe_json_error

logger = logging.getLogger(__name__)


class _Twice(ValueError):
    """A key that an object has twice."""


_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def read_jsonl(
    where: str | Path | IO[Any] | Source,
    *,
    encoding: str = "utf-8",
    strict: bool = False,
) -> Iterator[Document | Failure]:
    """One JSON object a line: ``{"id", "text", "entities": [{"start", "end", "label"}], "tokens"}``, most optional.

    A partial annotation (`Document.partial`) has two more keys: ``"annotated_labels": ["PER", "LOC"]`` lists the labels
    whose names are all marked, ``"unannotated": [{"start", "end", "tags": "?"}]`` the undecided ranges.

    ``tokens`` is a list of strings, or of such lists, one a sentence; without ``text`` they are joined by spaces.
    A record without ``entities`` is not annotated (its tags are None). `Document.fields` keeps all else: other keys,
    the tokens as they were given, an id that is no string (`Document.id` is what it looks like). A lone surrogate,
    which no file can hold, becomes U+FFFD, and the offsets stay right; of entities inside each other the outermost is
    read. Both are told in one warning for each file; with ``strict`` they are an error.

    A line that is wrong is a `Failure`, and the next line follows. Raises FormatError for a file that cannot be read,
    for a line that would not stream, and where lines cannot be told from the bytes (`by_line`) also for what does not
    decode.
    """
    for source in sources(where, ("*.jsonl", "*.ndjson")):
        if by_line(encoding):
            with open_bytes(source) as stream:
                yield from records_of(stream, source, encoding, strict=strict)
            continue
        with ParseWarnings(source.name, strict) as doubts:
            for number, line in read_lines(source, encoding):
                if line and not line.isspace():
                    yield _record(line, number, f"{source.id}#{number}", doubts)


def records_of(
    stream: IO[bytes],
    source: Source,
    encoding: str = "utf-8",
    first: int = 1,
    strict: bool = False,
) -> Iterator[Document | Failure]:
    """`read_jsonl` of bytes that begin with line number ``first`` of the source, in an encoding that is `by_line`."""
    with ParseWarnings(source.name, strict) as doubts:
        yield from _lines_of(stream, source, encoding, first, doubts)


def _lines_of(
    stream: IO[bytes], source: Source, encoding: str, first: int, doubts: ParseWarnings
) -> Iterator[Document | Failure]:
    told = False  # that bytes are replaced
    for number in count(first):
        line = stream.readline(MAX_LINE_CHARS)
        place = f"{source.name}:{number}"
        if len(line) == MAX_LINE_CHARS and not line.endswith(b"\n"):
            raise FormatError(f"{place}: line of more than {MAX_LINE_CHARS} bytes; put one object on a line")
        if not line:
            return
        if number == 1:
            check_text(source, line)
        if is_blank(line, encoding):
            continue
        try:
            text = line.decode(encoding).rstrip("\r\n")
        except UnicodeDecodeError as error:
            what = f"byte 0x{line[error.start]:02x} at byte {error.start + 1} of the line is not valid {encoding}"
            if not source.replace:
                mend = "name the encoding of the file, as in --encoding latin-1"
                yield Failure(FormatError(f"{place}: {what}; {mend}"))
                continue
            if not told:
                logger.warning("%s: %s; U+FFFD stands for it and for all that follow", place, what)
            text, told = line.decode(encoding, "replace").rstrip("\r\n"), True
        text = text.removeprefix("\ufeff") if number == 1 else text
        yield _record(text, number, f"{source.id}#{number}", doubts)


def is_blank(line: bytes, encoding: str) -> bool:
    """Whether a line holds nothing but white space."""
    visible = line.strip()
    if not visible or visible.startswith(b"{"):
        return not visible
    text = visible.decode(encoding, "replace").removeprefix("\ufeff")
    return not text or text.isspace()


def _record(line: str, number: int, id: str, doubts: ParseWarnings) -> Document | Failure:
    """The document of the line with this number, ``id`` for a record without one."""
    try:
        record, doubt = parse_record(line)
    except ValueError as error:
        return Failure(FormatError(f"{doubts.name}:{number}: {error}"))
    return record_document(record, number, id, doubts, doubt)


def record_document(
    record: dict[str, Any], number: int, id: str, doubts: ParseWarnings, known: Iterable[str] = ()
) -> Document | Failure:
    """The document of a record or a row of a table, and what is in doubt, with what is ``known`` to be so by now."""
    try:
        document, more = _document(record, id)
    except ValueError as error:
        return Failure(FormatError(f"{doubts.name}:{number}: {error}"))
    try:
        for what in [*known, *more]:
            doubts.add(what, number)
    except FormatError as error:
        return Failure(error)
    return document


def parse_record(line: str) -> tuple[dict[str, Any], list[str]]:
    """The object of a line, lone surrogates mended, and what is in doubt about it. ValueError where it is none."""
    try:
        record: object = json.loads(line, object_pairs_hook=_once)
    except RecursionError:
        raise ValueError("nested too deeply; expected one flat object") from None
    except _Twice:
        raise
    except ValueError as error:
        raise ValueError(f"{describe_json_error(error)}; expected one object a line") from None
    if not isinstance(record, dict):
        raise ValueError(f"a JSON {type(record).__name__}; expected an object with a text")
    if "\\u" in line and _LONE_SURROGATE.search(json.dumps(record, ensure_ascii=False)):
        return _mended(record), ["lone surrogates are replaced by U+FFFD"]
    return cast(dict[str, Any], record), []


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose keys are given once: of two values nobody knows which is meant."""
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise _Twice(f"the key {json.dumps(twice)[:60]} is given twice; give it once")
    return found


def _mended(value: Any) -> Any:
    return json.loads(_LONE_SURROGATE.sub("\ufffd", json.dumps(value, ensure_ascii=False)))


def _document(record: dict[str, Any], id: str) -> tuple[Document, list[str]]:
    """The document of a record, and what is in doubt about it."""
    text, tokens, given = record.pop("text", None), record.get("tokens"), record.pop("entities", None)
    annotated, places = record.pop("annotated_labels", None), record.pop("unannotated", None)
    name = record.get("id")
    if name is None or isinstance(name, str):
        record.pop("id", None)  # of any other type it is kept as it is
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
    left = _open(annotated, places, len(document.text))
    if given is None and left is None:
        return document, []
    entities, doubts = _entities([] if given is None else given, document.text)
    if left is not None:
        if fault := left.conflict((e.start, e.end, e.label) for e in entities):
            raise ValueError(fault)
        document = replace(document, partial=left)
    return document.with_entities(entities), doubts


def _open(annotated: Any, places: Any, length: int) -> PartialAnnotation | None:
    """What a record leaves open; None for a record that leaves nothing open."""
    if annotated is None and places is None:
        return None
    if annotated is not None and not (
        isinstance(annotated, list)
        and all(isinstance(label, str) and is_label(label) for label in cast(list[object], annotated))
    ):
        raise ValueError('annotated_labels must be a list of labels, as in ["PER", "LOC"]')
    if places is not None and not isinstance(places, list):
        raise ValueError('unannotated must be a list, as in [{"start", "end", "tags"}, ...]')
    found = tuple(_place(i, place, length) for i, place in enumerate(cast(list[Any], places or [])))
    return PartialAnnotation(found, None if annotated is None else tuple(cast(list[str], annotated)))


def _place(i: int, given: Any, length: int) -> UnannotatedRange:
    values = cast(dict[str, Any], given) if isinstance(given, dict) else {}
    start, end, tags = map(values.get, ("start", "end", "tags"))
    if type(start) is not int or type(end) is not int or not 0 <= start < end <= length or not isinstance(tags, str):
        raise ValueError(
            f"unannotated range {i} is {json.dumps(given)[:60]}; expected start and end in a text of {length}"
            " characters, and tags as in PER|ORG"
        )
    return UnannotatedRange(start, end, tags)


def _sentences(tokens: Any) -> list[list[str]]:
    given = cast(list[Any], tokens) if isinstance(tokens, list) else [None]
    nested = all(isinstance(sentence, list) for sentence in given)
    sentences = cast(list[list[Any]], given if nested else [given])
    words = (word for sentence in sentences for word in sentence)
    if not all(isinstance(word, str) and word.split() == [word] for word in words):
        raise ValueError("tokens are not strings without white space; expected a list of them, or one list a sentence")
    return [sentence for sentence in sentences if sentence]


def _entities(given: Any, text: str) -> tuple[list[Entity], list[str]]:
    """The entities, of those inside each other the outermost, and what is in doubt about them. ValueError where they
    overlap in another way, or two labels are given to the same characters.
    """
    if not isinstance(given, list):
        raise ValueError("entities is no list; expected [{start, end, label}, ...]")
    listed = cast(list[Any], given)
    found = sorted((_entity(i, e, text) for i, e in enumerate(listed)), key=lambda entity: (entity.start, -entity.end))
    entities: list[Entity] = []
    doubts: list[str] = []
    for right in found:
        left = entities[-1] if entities else None
        if left is None or left.end <= right.start:
            entities.append(right)
        elif right.end > left.end:
            raise ValueError(f"{right.text!r} overlaps {left.text!r}; expected entities side by side")
        elif (left.start, left.end) != (right.start, right.end):
            doubts.append("an entity inside another is left out")
        elif left.label == right.label:
            doubts.append("an entity that is given twice is read once")
        else:
            raise ValueError(f"{right.text!r} is {left.label} and {right.label}; expected one label")
    return entities, doubts


def _entity(i: int, given: Any, text: str) -> Entity:
    if not isinstance(given, dict):
        raise ValueError(f"entity {i} is {json.dumps(given)[:40]}; expected an object with start, end and label")
    values = cast(dict[str, Any], given)
    start, end, label, confidence = map(values.get, ("start", "end", "label", "confidence"))
    if type(start) is not int or type(end) is not int or not 0 <= start < end <= len(text):
        raise ValueError(f"entity {i} is {start}..{end}; expected 0 <= start < end <= {len(text)}, the text's length")
    if confidence is not None and type(confidence) not in (int, float):
        raise ValueError(f"the confidence of entity {i} is {confidence!r}; expected a number")
    said, found = values.get("text", text[start:end]), text[start:end]
    if said != found:
        raise ValueError(f"entity {i} says {said!r}; expected {found!r}, which is at {start}..{end}")
    label = check_label(label, f"entity {i}")
    return Entity(start, end, label, found, None if confidence is None else float(confidence))
