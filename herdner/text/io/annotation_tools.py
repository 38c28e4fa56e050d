"""Functions that the readers of annotation tools' files share."""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, NamedTuple, cast

from herdner.text.document import Document, Failure
from herdner.text.entity import Entity, with_numbered_names
from herdner.text.io.jsonl import LARGEST_CONFIDENCE, Warn, as_failure, parse_record
from herdner.text.io.parse_warnings import ParseWarnings
from herdner.text.io.source import FormatError, Input, read_lines, sources
from herdner.text.labels import check_label

_TWO_UNITS = re.compile("[\U00010000-\U0010ffff]")


class MarkedSpan(NamedTuple):
    """Span in a file of an annotation tool, before its offsets and label are checked.

    Attributes:
        start: Offset of the first character.
        end: Offset behind the last character.
        label: The label.
        text: Text of the span according to the file, if it contains one.
        confidence: Confidence, if the file contains one.
        name: Key that all mentions of a name have in common; None if the file contains none.
    """

    start: Any
    end: Any
    label: Any
    text: Any = None
    confidence: Any = None
    name: Any = None


class ToolRecord(NamedTuple):
    """JSON object in one line of an annotation tool's file, with a default document id.

    Attributes:
        id: Identifier of the document if the object has no id.
        values: The JSON object.
        warn: Function that records a warning about the line.
    """

    id: str
    values: dict[str, Any]
    warn: Warn

    def document(self, own_id: object, fields: Mapping[str, object]) -> Document:
        """Build a document without annotation from the text of the record.

        Args:
            own_id: Identifier in the record; None: `id`.
            fields: Fields of the document.

        Returns:
            The document.

        Raises:
            ValueError: The record has no string under the key "text".
        """
        text = self.values.get("text")
        if not isinstance(text, str):
            problem = "no text" if text is None else f"text is {json.dumps(text)[:40]}"
            raise ValueError(f"{problem}; expected an object with a string under the key 'text'")
        return Document.from_text(text, id=self.id if own_id is None else str(own_id), fields=fields)


def read_records(
    where: Input, patterns: Sequence[str], encoding: str, strict: bool, to_document: Callable[[ToolRecord], Document]
) -> Iterator[Document | Failure]:
    """Read documents from files in which each line is a JSON object.

    Args:
        where: A file, folder, glob pattern, ``"-"`` or stream (`sources`).
        patterns: File names to read in a folder.
        encoding: Encoding of the files.
        strict: Raise an error instead of logging a warning.
        to_document: Function that converts a record; it raises `ValueError` for an invalid record.

    Yields:
        Documents, and a `Failure` for each invalid line.

    Raises:
        FormatError: A file cannot be read or is empty.
    """
    for source in sources(where, patterns):
        is_empty = True
        with ParseWarnings(source.name, strict) as warnings:
            for number, line in read_lines(source, encoding):
                if not line or line.isspace():
                    continue
                is_empty, warn = False, partial(warnings.add, line=number)
                try:
                    yield to_document(ToolRecord(source.document_id(number), parse_record(line, warn), warn))
                except (ValueError, RecursionError) as error:
                    yield as_failure(error, f"{source.name}:{number}")
        if is_empty:
            raise FormatError(f"{source.name}: the file is empty; expected one JSON object on each line")


def check_list(value: object, name: str) -> list[Any]:
    """Return ``value`` unchanged, after a check that it is a list.

    Args:
        value: A JSON value.
        name: Plural noun for the items in the error message.

    Raises:
        ValueError: ``value`` is not a list.
    """
    if not isinstance(value, list):
        raise ValueError(f"{name} are {json.dumps(value, default=str)[:40]}; expected a list")
    return cast("list[Any]", value)


def with_marked_spans(
    document: Document, spans: Iterable[MarkedSpan], warn: Warn, *, is_proposal: bool = False
) -> Document:
    """Return the document with marked spans as its entities. If two spans overlap, only one of them is kept.

    If at least one span has the key of a name, each span without such a key becomes the only mention of its name.

    Args:
        document: A document without tokens.
        spans: The spans. Of two that overlap, the longer one is kept, or the earlier of two equally long ones.
        warn: Function that records a warning about each omitted span.
        is_proposal: The spans are proposals of a model, not an annotation.

    Returns:
        The document with these entities.

    Raises:
        ValueError: A span is invalid.
    """
    text, units = document.text, _Utf16Units(document.text)
    spans = list(spans)
    entities = [_entity(i, span, text, units) for i, span in enumerate(spans)]
    entities = with_numbered_names(entities, [span.name for span in spans])
    disjoint = [replace(each, text=text[each.start : each.end]) for each in _without_overlaps(entities, text, warn)]
    return document.with_proposals(disjoint) if is_proposal else document.with_entities(disjoint)


def _entity(i: int, span: MarkedSpan, text: str, units: _Utf16Units) -> Entity:
    """Check a span, and convert it to an entity whose ``text`` is left empty, because it may be long."""
    start, end, label, file_text, confidence, _ = span
    if type(start) is not int or type(end) is not int or not 0 <= start < end <= len(text):
        raise ValueError(
            f"span {i} is {start!r:.40}..{end!r:.40}; expected 0 <= start < end <= {len(text)}, the text's length"
        )
    if file_text is not None and not _is_same(file_text, start, end, text):
        begin, stop = units.character(start), units.character(end)
        if begin is None or stop is None or not _is_same(file_text, begin, stop, text):
            actual = text[start : min(end, start + 60)]
            raise ValueError(f"span {i} has the text {file_text!r:.60}, but the text at {start}..{end} is {actual!r}")
        start, end = begin, stop
    is_number = type(confidence) in (int, float) and abs(confidence) <= LARGEST_CONFIDENCE
    return Entity(start, end, check_label(label, f"span {i}"), "", float(confidence) if is_number else None)


def _is_same(file_text: object, start: int, end: int, text: str) -> bool:
    """Return whether ``text[start:end]`` equals ``file_text``, ignoring differences in white space.

    A backslash and an n count as white space, because some files contain line breaks in this form. A range that is much
    longer than ``file_text`` is not compared, so that the time for many spans of a long text grows linearly with the
    size of the file.
    """
    if not isinstance(file_text, str) or end - start > 4 * len(file_text) + 1000:
        return False
    return file_text.replace("\\n", " ").split() == text[start:end].replace("\\n", " ").split()


class _Utf16Units:
    """Conversion of offsets in UTF-16 units, which browsers count, to character offsets in a text."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def pairs(self) -> list[int]:
        """Offsets, in UTF-16 units, of all characters that consist of two units."""
        return [match.start() + k for k, match in enumerate(_TWO_UNITS.finditer(self.text))]

    def character(self, unit: int) -> int | None:
        """Return the offset of the character that begins at ``unit``; return None if ``unit`` is inside a character."""
        n_pairs = bisect_left(self.pairs, unit)
        return None if n_pairs and self.pairs[n_pairs - 1] == unit - 1 else unit - n_pairs


def _without_overlaps(entities: Iterable[Entity], text: str, warn: Warn) -> list[Entity]:
    """Return the entities in the order of the text, without those that overlap a longer or earlier one."""
    kept: dict[tuple[int, int, str], Entity] = {}
    is_covered = bytearray(len(text))
    for entity in sorted(entities, key=lambda e: (e.start - e.end, e.start)):
        start, end = entity.start, entity.end
        if not is_covered[start] and not is_covered[end - 1]:  # kept entities are not shorter
            kept[start, end, entity.label] = entity
            is_covered[start:end] = b"\1" * (end - start)
        elif (start, end, entity.label) not in kept:
            warn("a span that overlaps a longer or earlier one is left out")
    return [kept[key] for key in sorted(kept)]
