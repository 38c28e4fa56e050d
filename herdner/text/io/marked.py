"""What the readers of annotation tools share: lines of JSON, and marked spans as entities side by side."""

from __future__ import annotations

import json
from bisect import bisect_left, insort
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

from herdner.text.document import Document, Failure
from herdner.text.entity import Entity
from herdner.text.io.jsonl import parse_record
from herdner.text.io.parse_warnings import ParseWarnings
from herdner.text.io.source import FormatError, Source, read_lines, sources
from herdner.text.labels import check_label

Doubt = Callable[[str], None]
"""Where it goes, in words, what a file leaves in doubt (`Doubts`)."""


class Mark(NamedTuple):
    """A marked span as a file has it, unchecked; ``text``: what the tool says stands there, if it does."""

    start: Any
    end: Any
    label: Any
    text: Any = None
    confidence: Any = None


class Record(NamedTuple):
    """One line of a file of JSON lines: an id for what has none, its values, and where doubts about it go."""

    id: str
    values: dict[str, Any]
    doubt: Doubt


def records(
    where: str | Path | IO[Any] | Source,
    patterns: Sequence[str],
    encoding: str,
    strict: bool,
    document: Callable[[Record], Document],
) -> Iterator[Document | Failure]:
    """The documents of files with one object on each line; a line that is wrong is a `Failure`, and the next line
    follows. FormatError for a file that cannot be read.
    """
    for source in sources(where, patterns):
        empty = True
        with ParseWarnings(source.name, strict) as doubts:
            for number, line in read_lines(source, encoding):
                if not line or line.isspace():
                    continue
                empty, doubt = False, partial(doubts.add, line=number)
                with failing(f"{source.name}:{number}") as failed:
                    values, found = parse_record(line)
                    for what in found:
                        doubt(what)
                    yield document(Record(f"{source.id}#{number}", values, doubt))
                yield from failed
        if empty:
            raise FormatError(f"{source.name}: is empty; expected one JSON object a line")


@contextmanager
def failing(place: str) -> Generator[list[Failure]]:
    """A list that holds what went wrong in the block, its place named, if anything did."""
    failed: list[Failure] = []
    try:
        yield failed
    except FormatError as error:  # a doubt that is refused, which names the place
        failed.append(Failure(error))
    except ValueError as error:
        failed.append(Failure(FormatError(f"{place}: {error}")))


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


def annotated(document: Document, marks: Iterable[Mark], doubt: Doubt, *, annotated: bool = True) -> Document:
    """The document with its marks as entities, side by side, its classes renamed. Of spans that overlap, the longer
    stays (the earlier of two as long), and the other is a doubt. Not ``annotated``: the entities are guesses, and the
    document has no tags. ValueError for marks that are none.
    """
    found = [_entity(i, mark, document.text) for i, mark in enumerate(marks)]
    entities = _side_by_side(found, doubt)
    if annotated:
        return document.with_entities(entities)
    return Document.from_text(document.text, id=document.id, fields=document.fields).with_proposals(entities)


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
    return Entity(start, end, check_label(label, f"span {i}"), text[start:end], sure)


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


def _side_by_side(entities: Iterable[Entity], doubt: Doubt) -> list[Entity]:
    kept: list[tuple[int, int, Entity]] = []
    for entity in sorted(entities, key=lambda e: (e.start - e.end, e.start)):
        at = bisect_left(kept, (entity.end, 0), key=lambda k: k[:2])
        before = kept[at - 1][2] if at else None
        if before is None or before.end <= entity.start:
            insort(kept, (entity.start, entity.end, entity), key=lambda k: k[:2])
            continue
        if (before.start, before.end, before.label) != (entity.start, entity.end, entity.label):
            doubt("a span that overlaps a longer or earlier one is left out")
    return [entity for _, _, entity in kept]
