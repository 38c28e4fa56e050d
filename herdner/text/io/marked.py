"""What the readers of annotation tools share: marked spans as entities, and one line about what could not be kept."""

from __future__ import annotations

import json
import logging
from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

from herdner.text.document import Document, Entity
from herdner.text.io.jsonl import parse_record
from herdner.text.io.labels import Labels, checked_label, renamed
from herdner.text.io.source import FormatError, Source, read_lines, sources

logger = logging.getLogger(__name__)


class Mark(NamedTuple):
    """A marked span as a file has it, unchecked; ``text``: what the tool says stands there, if it does."""

    start: Any
    end: Any
    label: Any
    text: Any = None
    confidence: Any = None


@dataclass
class Notes:
    """What of a file is left out, or chosen among several: a line for each kind of it, when the file ends."""

    name: str
    found: dict[str, list[str]] = field(default_factory=dict[str, list[str]])

    def add(self, what: str, example: str) -> None:
        self.found.setdefault(what, []).append(example)

    def tell(self) -> None:
        for what, examples in self.found.items():
            logger.warning("%s: %d %s (first: %s)", self.name, len(examples), what, examples[0])


class Record(NamedTuple):
    """One line of a file of JSON lines: where it stands, for messages, and an id for what has none."""

    source: Source
    place: str
    id: str
    values: dict[str, Any]
    notes: Notes


def records(where: str | Path | IO[Any] | Source, patterns: Sequence[str], encoding: str) -> Iterator[Record]:
    """The objects of files with one on each line; the notes of a file are told when it ends. Raises FormatError."""
    for source in sources(where, patterns):
        notes, empty = Notes(source.name), True
        for number, line in read_lines(source, encoding):
            if not line or line.isspace():
                continue
            empty, place = False, f"{source.name}:{number}"
            try:
                values, doubts = parse_record(line)
            except ValueError as error:
                raise FormatError(f"{place}: {error}") from None
            for what in doubts:
                notes.add(f"times {what}", f"line {number}")
            yield Record(source, place, f"{source.id}#{number}", values, notes)
        if empty:
            raise FormatError(f"{source.name}: is empty; expected one JSON object a line")
        notes.tell()


def text_of(values: dict[str, Any], key: str = "text") -> str:
    """The text of a record. ValueError where there is none."""
    text = values.get(key)
    if not isinstance(text, str):
        said = "no text" if text is None else f"text is {json.dumps(text)[:40]}"
        raise ValueError(f"{said}; expected an object with a {key!r} that is a string")
    return text


def listed(given: object, what: str) -> list[Any]:
    """A list of a file. ValueError for anything else."""
    if not isinstance(given, list):
        raise ValueError(f"{what} are {json.dumps(given, default=str)[:40]}; expected a list")
    return cast("list[Any]", given)


def annotated(
    document: Document, marks: Iterable[Mark], notes: Notes, labels: Labels | None = None, *, annotated: bool = True
) -> Document:
    """The document with its marks as entities, side by side, its classes renamed. Of spans that overlap, the longer
    stays (the earlier of two as long), and the other is noted. Not ``annotated``: the entities are guesses, and the
    document has no tags. ValueError for marks that are none.
    """
    found = [_entity(i, mark, document.text) for i, mark in enumerate(marks)]
    entities = renamed(_side_by_side(found, document.id, notes), labels)
    if annotated:
        return document.with_entities(entities)
    return Document.from_text(document.text, id=document.id, fields=document.fields).guessed(entities)


def _entity(i: int, mark: Mark, text: str) -> Entity:
    start, end, label, said, confidence = mark
    if type(start) is not int or type(end) is not int or not 0 <= start < end <= len(text):
        raise ValueError(f"span {i} is {start!r}..{end!r}; expected 0 <= start < end <= {len(text)}, the text's length")
    if said is not None and not _same(said, text[start:end]):
        moved = _from_utf16(start, end, text)
        if moved is None or not _same(said, text[slice(*moved)]):
            raise ValueError(f"span {i} says {said!r}; expected {text[start:end]!r}, which is at {start}..{end}")
        start, end = moved
    sure = float(confidence) if type(confidence) in (int, float) else None
    return Entity(start, end, checked_label(label, f"span {i}"), text[start:end], sure)


def _same(said: object, found: str) -> bool:
    """Whether a tool speaks of these characters: some write line breaks as a backslash and an n, or as a space."""
    return isinstance(said, str) and said.replace("\\n", " ").split() == found.replace("\\n", " ").split()


def _from_utf16(start: int, end: int, text: str) -> tuple[int, int] | None:
    """Offsets of a browser, which count a character beyond U+FFFF twice, as offsets in characters; None: no such."""
    data = text.encode("utf-16-le", "surrogatepass")
    try:
        before = data[: 2 * start].decode("utf-16-le")
        return len(before), len(before) + len(data[2 * start : 2 * end].decode("utf-16-le"))
    except UnicodeDecodeError:
        return None


def _side_by_side(entities: Iterable[Entity], id: str | None, notes: Notes) -> list[Entity]:
    kept: list[tuple[int, int, Entity]] = []
    for entity in sorted(entities, key=lambda e: (e.start - e.end, e.start)):
        at = bisect_left(kept, (entity.end, 0), key=lambda k: k[:2])
        before = kept[at - 1][2] if at else None
        if before is None or before.end <= entity.start:
            insort(kept, (entity.start, entity.end, entity), key=lambda k: k[:2])
            continue
        if (before.start, before.end, before.label) != (entity.start, entity.end, entity.label):
            story = f"{_shown(entity)} beside {_shown(before)}, document {id}"
            notes.add("spans left out that overlap a longer or earlier one", story)
    return [entity for _, _, entity in kept]


def _shown(entity: Entity) -> str:
    text = entity.text if len(entity.text) <= 30 else entity.text[:29] + "…"
    return f"{text!r} {entity.label}"
