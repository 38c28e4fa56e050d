"""JSON lines: one document per line, with text or tokens and optional entities."""

from __future__ import annotations

import json
import logging
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import count
from typing import IO, Any, cast

from herdner.text.document import Document, Failure
from herdner.text.entity import Entity
from herdner.text.io.parse_warnings import ParseWarnings
from herdner.text.io.source import (
    MARK_BYTES,
    MAX_LINE_CHARS,
    FormatError,
    Input,
    Source,
    by_line,
    check_text,
    marked_encoding,
    open_bytes,
    read_lines,
    sources,
)
from herdner.text.labels import check_label, is_label
from herdner.text.partial import PartialAnnotation, UnannotatedRange
from herdner.text.plain_data import InvalidValue, describe_json_error, finite_number

logger = logging.getLogger(__name__)


ANNOTATION_KEYS = ("entities", "annotated_labels", "unannotated")
"""Keys of a JSON record that contain the annotation."""

LARGEST_CONFIDENCE = 1e6  # some files have percentages or scores
LARGEST_NAME_ID = 2**63 - 1  # largest integer of Arrow and data frames
Warn = Callable[[str], None]
"""A function that records a warning about the current record (`ParseWarnings.add`)."""

NESTED_TOO_DEEPLY = "the JSON is nested too deeply; expected one flat object"
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def read_jsonl(where: Input, *, encoding: str = "utf-8", strict: bool = False) -> Iterator[Document | Failure]:
    """Read documents from JSON lines: ``{"id", "text", "entities": [{"start", "end", "label"}], "tokens"}``.

    Either "text" or "tokens" is required; all other keys are optional. ``tokens`` is a list of strings, or a list of
    such lists, one per sentence; without ``text`` the tokens are joined by spaces. A line without ``entities`` is not
    annotated.

    A partial annotation (`Document.partial`) has two more keys: ``"annotated_labels": ["PER", "LOC"]`` lists the labels
    of which all entities are annotated, and ``"unannotated": [{"start", "end", "tags": "?"}]`` lists the undecided
    ranges. All other keys become `Document.fields`, as do the tokens and an id that is not a string.

    Three problems are logged as warnings: lone surrogates are replaced by U+FFFD; only the outermost of nested entities
    is read; and if the value of ``entities`` is not a list, it becomes a field.

    Args:
        where: A file, folder, glob pattern, ``"-"`` or stream (`sources`).
        encoding: Encoding of the files.
        strict: Raise an error instead of logging a warning.

    Yields:
        Documents, and a `Failure` for each invalid line.

    Raises:
        FormatError: A file cannot be read, a line is too long, or bytes cannot be decoded and the encoding does not
            allow separating lines before decoding (`by_line`).
    """
    for source in sources(where, ("*.jsonl", "*.ndjson")):
        with open_bytes(source) as stream:
            marked = marked_encoding(stream.peek(MARK_BYTES)[:MARK_BYTES], encoding)
            if by_line(marked):
                yield from records_of(stream, source, marked, strict=strict)
                continue
            with ParseWarnings(source.name, strict) as warnings:
                for number, line in read_lines(source._replace(path=None, stream=stream), marked):
                    if line and not line.isspace():
                        yield _record(line, number, source.document_id(number), warnings)


def records_of(
    stream: IO[bytes], source: Source, encoding: str = "utf-8", first: int = 1, strict: bool = False
) -> Iterator[Document | Failure]:
    """Parse an open stream of JSON lines, and yield its documents as `read_jsonl` does.

    Args:
        stream: Bytes that begin with a line.
        source: The file, for messages and ids.
        encoding: An encoding for which `by_line` is true.
        first: Number of the first line in the file.
        strict: Raise an error instead of logging a warning.

    Yields:
        Documents, and a `Failure` for each invalid line.

    Raises:
        FormatError: A line is too long or the stream is not text.
    """
    is_logged = False  # whether the replacement of invalid bytes has been logged
    with ParseWarnings(source.name, strict) as warnings:
        for number in count(first):
            line = stream.readline(MAX_LINE_CHARS)
            place = f"{source.name}:{number}"
            if len(line) == MAX_LINE_CHARS and not line.endswith(b"\n"):
                raise FormatError(f"{place}: a line has more than {MAX_LINE_CHARS} bytes; put one object on each line")
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
                    remedy = "name the encoding of the file, as in --encoding latin-1"
                    yield Failure(FormatError(f"{place}: {what}; {remedy}"))
                    continue
                if not is_logged:
                    logger.warning("%s: %s; all invalid bytes of the file are replaced by U+FFFD", place, what)
                text, is_logged = line.decode(encoding, "replace").rstrip("\r\n"), True
            text = text.removeprefix("\ufeff") if number == 1 else text
            yield _record(text, number, source.document_id(number), warnings)


def is_blank(line: bytes, encoding: str) -> bool:
    """Return whether a line, as bytes in an encoding, contains only white space.

    Args:
        line: The line.
        encoding: The encoding.
    """
    visible = line.strip()
    if not visible or visible.startswith(b"{"):
        return not visible
    text = visible.decode(encoding, "replace").removeprefix("\ufeff")
    return not text or text.isspace()


def _record(line: str, number: int, id: str, warnings: ParseWarnings) -> Document | Failure:
    """Parse one JSON line into a document. ``id`` is the document's id if the JSON object contains none."""
    try:
        messages: list[str] = []
        record = parse_record(line, messages.append)
        return record_document(record, number, id, warnings, messages)
    except (ValueError, RecursionError) as error:
        return as_failure(error, f"{warnings.name}:{number}")


def as_failure(error: ValueError | RecursionError, position: str) -> Failure:
    """Convert an error to a `Failure` whose message begins with a position.

    Args:
        error: The error. The message of a `FormatError` (of a warning in strict mode) contains a position already.
        position: File and line.

    Returns:
        The failure of one document.
    """
    if isinstance(error, FormatError):
        return Failure(error)
    is_deep = isinstance(error, RecursionError)  # of the parser, or of a message that quotes a value
    return Failure(FormatError(f"{position}: {NESTED_TOO_DEEPLY if is_deep else error}"))


def record_document(
    record: dict[str, Any], number: int, id: str, warnings: ParseWarnings, messages: Iterable[str] = ()
) -> Document | Failure:
    """Convert a JSON record or a row of a table to a document.

    Args:
        record: Values by key, as in `read_jsonl`.
        number: Number of the line or row, from 1.
        id: Identifier of the document if the record contains no id.
        warnings: Collector of warnings.
        messages: Warnings of `parse_record` about the record.

    Returns:
        The document, or a failure if the record is invalid.
    """
    try:
        messages = list(messages)
        document = _document(record, id, messages.append)
        for message in messages:
            warnings.add(message, number)
        return document
    except (ValueError, RecursionError) as error:
        return as_failure(error, f"{warnings.name}:{number}")


def parse_record(line: str, warn: Warn) -> dict[str, Any]:
    """Parse a line that contains a JSON object.

    Args:
        line: The line.
        warn: Function that records a warning about the line.

    Returns:
        The object, with lone surrogates replaced by U+FFFD.

    Raises:
        ValueError: The line is not a JSON object, or the object has a key twice.
        RecursionError: The JSON is nested too deeply.
    """
    try:
        record: object = json.loads(line, object_pairs_hook=_unique_keys, parse_float=finite_number)
    except json.JSONDecodeError as error:
        raise ValueError(f"{describe_json_error(error)}; expected one object on each line") from None
    except ValueError as error:
        raise ValueError(describe_json_error(error)) from None
    if not isinstance(record, dict):
        raise ValueError(f"got a JSON {type(record).__name__}; expected an object with the key `text` or `tokens`")
    if "\\u" in line and _LONE_SURROGATE.search(text := json.dumps(record, ensure_ascii=False)):
        warn("lone surrogates are replaced by U+FFFD")
        return json.loads(_LONE_SURROGATE.sub("\ufffd", text))
    return cast(dict[str, Any], record)


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build a dict from key-value pairs of a JSON object, or raise `InvalidValue` if a key occurs twice."""
    values = dict(pairs)
    if len(values) < len(pairs):
        counts = Counter(key for key, _ in pairs)
        duplicate = next(key for key, count in counts.items() if count > 1)
        raise InvalidValue(f"the key {json.dumps(duplicate)[:60]} occurs twice; give it once")
    return values


def _document(record: dict[str, Any], id: str, warn: Warn) -> Document:
    """Convert a JSON record to a document. ``id`` is the document's id if the record contains none."""
    has_text_key = "text" in record
    text = record.pop("text", None)
    tokens = record.get("tokens")
    if has_text_key and text is None and tokens is None:
        text = ""  # a null in a table, which keeps its row
    if text is not None and not isinstance(tokens, list):
        tokens = None  # an ordinary field, such as a number of tokens
    items: list[Any] | None = None
    if isinstance(record.get("entities"), list | None):
        items = record.pop("entities", None)
    else:
        warn("the value of 'entities' is not a list; it is read as a field")
    labels, ranges = record.pop("annotated_labels", None), record.pop("unannotated", None)
    name = record.get("id")
    if name is None or isinstance(name, str):
        record.pop("id", None)  # an id of another type remains in the fields
    id = id if name is None else str(name)
    if text is None and tokens is None:
        raise ValueError("the object has neither `text` nor `tokens`; expected one of these keys")
    if text is not None and not isinstance(text, str):
        raise ValueError(f"`text` is {json.dumps(text)[:40]}; expected a string")
    if tokens is None:
        document = Document.from_text(text or "", id=id, fields=record)
    elif text is None:
        document = Document.from_tokens(_sentences(tokens), id=id, fields=record)
    else:
        document = Document.from_aligned(text, _sentences(tokens), id=id, fields=record)
    partial = _partial(labels, ranges, len(document.text))
    if items is None and partial is None:
        return document
    entities = _entities(items or [], document.text, warn)
    if partial is not None and (conflict := partial.conflict((e.start, e.end, e.label) for e in entities)):
        raise ValueError(conflict)
    document = document.with_entities(entities)
    return document if partial is None else replace(document, partial=partial)


def _partial(labels: Any, ranges: Any, length: int) -> PartialAnnotation | None:
    """Return the partial annotation that a JSON record describes; return None if it describes none.

    ``labels`` and ``ranges`` are the values of its keys ``annotated_labels`` and ``unannotated``.
    """
    if labels is None and ranges is None:
        return None
    if labels is not None and not (
        isinstance(labels, list)
        and all(isinstance(label, str) and is_label(label) for label in cast(list[object], labels))
    ):
        expected = 'a list of labels, as in ["PER", "LOC"]'
        raise ValueError(f"`annotated_labels` must be {expected}, got {json.dumps(labels)[:40]}")
    if ranges is not None and not isinstance(ranges, list):
        expected = "a list of objects with the keys `start`, `end` and `tags`"
        raise ValueError(f"`unannotated` must be {expected}, got {json.dumps(ranges)[:40]}")
    unannotated = tuple(_range(i, each, length) for i, each in enumerate(cast(list[Any], ranges or [])))
    return PartialAnnotation(unannotated, None if labels is None else tuple(cast(list[str], labels)))


def _range(i: int, item: Any, length: int) -> UnannotatedRange:
    values = cast(dict[str, Any], item) if isinstance(item, dict) else {}
    start, end, tags = map(values.get, ("start", "end", "tags"))
    if type(start) is not int or type(end) is not int or not 0 <= start < end <= length or not isinstance(tags, str):
        expected = f"0 <= start < end <= {length}, the length of the text, and tags such as PER|ORG"
        raise ValueError(f"item {i} of `unannotated` is {json.dumps(item)[:60]}; expected {expected}")
    return UnannotatedRange(start, end, tags)


def _sentences(tokens: Any) -> list[list[str]]:
    items = cast(list[Any], tokens) if isinstance(tokens, list) else [None]
    nested = all(isinstance(item, list) for item in items)
    sentences = cast(list[list[Any]], items if nested else [items])
    words = (word for sentence in sentences for word in sentence)
    if not all(isinstance(word, str) and word.split() == [word] for word in words):
        expected = "a list of strings without white space, or one such list for each sentence"
        raise ValueError(f"`tokens` must be {expected}, got {json.dumps(tokens)[:40]}")
    return [sentence for sentence in sentences if sentence]


def _entities(items: list[Any], text: str, warn: Warn) -> list[Entity]:
    """Check the entities of a JSON record, and return those that do not lie inside another entity."""
    unsorted = [_entity(i, item, text) for i, item in enumerate(items)]
    entities: list[Entity] = []
    for right in sorted(unsorted, key=lambda entity: (entity.start, -entity.end)):
        left = entities[-1] if entities else None
        if left is None or left.end <= right.start:
            entities.append(right)
        elif right.end > left.end:
            raise ValueError(f"{_quote(right, text)} overlaps {_quote(left, text)}; expected disjoint or nested spans")
        elif (left.start, left.end) != (right.start, right.end):
            warn("an entity inside another is left out")
        elif left.label == right.label:
            warn("a duplicate entity is read once")
        else:
            raise ValueError(f"{_quote(right, text)} has the labels {left.label} and {right.label}; expected one label")
    return [replace(entity, text=text[entity.start : entity.end]) for entity in entities]


def _quote(entity: Entity, text: str) -> str:
    return repr(text[entity.start : min(entity.end, entity.start + 60)])


def _entity(i: int, item: Any, text: str) -> Entity:
    """Check an entity of a JSON record, and return it with its ``text`` left empty, because the text may be long."""
    if not isinstance(item, dict):
        raise ValueError(f"entity {i} is {json.dumps(item)[:40]}; expected an object with `start`, `end` and `label`")
    values = cast(dict[str, Any], item)
    start, end, label, confidence, name_id = map(values.get, ("start", "end", "label", "confidence", "name_id"))
    if type(start) is not int or type(end) is not int or not 0 <= start < end <= len(text):
        raise ValueError(f"entity {i} is {start}..{end}; expected 0 <= start < end <= {len(text)}, the text's length")
    if confidence is not None and (type(confidence) not in (int, float) or not abs(confidence) <= LARGEST_CONFIDENCE):
        expected = f"a number from {-LARGEST_CONFIDENCE:g} to {LARGEST_CONFIDENCE:g}"
        raise ValueError(f"the confidence of entity {i} is {confidence!r:.40}; expected {expected}")
    if name_id is not None and (type(name_id) is not int or not 0 <= name_id <= LARGEST_NAME_ID):
        raise ValueError(f"the name_id of entity {i} is {name_id!r:.40}; expected an integer of at least 0")
    confidence = None if confidence is None else float(confidence)
    entity = Entity(start, end, check_label(label, f"entity {i}"), "", confidence, name_id)
    own = values.get("text")
    if "text" in values and not (isinstance(own, str) and len(own) == end - start and text.startswith(own, start)):
        actual = _quote(entity, text)
        raise ValueError(f"entity {i} has the text {own!r:.60}, but the text at {start}..{end} is {actual}")
    return entity
