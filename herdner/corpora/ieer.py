"""The NIST IE-ER (1999) evaluation's SGML-like files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

from herdner.text.document import Document
from herdner.text.entity import Entity
from herdner.text.io.parse_warnings import ParseWarnings
from herdner.text.io.source import FormatError, Source, read_lines, sources
from herdner.text.labels import LabelNames, new_label

LABELS: LabelNames = {"PERSON": "PER", "LOCATION": "LOC", "ORGANIZATION": "ORG"}

_MARK = re.compile(
    r"<(b_|e_)(\w+)((?:\s+\w+=\"[^\"]*\")*)\s*>|</?ANNOTATION>|&(AMP|LT|GT|QUOT);|(<[be]_)", re.IGNORECASE
)
_ATTRIBUTE = re.compile(r"(\w+)=\"([^\"]*)\"")
_CHARACTERS = {"AMP": "&", "LT": "<", "GT": ">", "QUOT": '"'}


Doubt = tuple[int, str]  # on which line, from 0, and what it is


class Marked(NamedTuple):
    """A marked-up span of the text."""

    kind: str  # enamex, numex or timex
    start: int
    end: int
    attributes: dict[str, str]  # type, and where given status and alt
    line: int  # on which it begins, from 0


def read_ieer(
    where: str | Path | IO[Any],
    *,
    encoding: str = "utf-8",
    labels: LabelNames | None = None,
    kinds: tuple[str, ...] = ("enamex",),
    optional: bool = True,
    strict: bool = False,
) -> Iterator[Document]:
    """The documents of IE-ER files: headline, blank line, text, with the mark-up removed and nothing else touched.

    ``kinds`` says which mark-up becomes entities ("enamex", "numex", "timex"); ``optional=False`` leaves out those
    marked ``status="opt"``. ``fields["entity_attributes"]`` gives status and alternative of the entities that have
    any, by their index. ``labels`` renames or drops classes; by default PER, LOC and ORG. No tokens: see `tokenized`.
    Of spans that are marked inside each other the outermost is read. That, and what else is in doubt, is told in one
    warning for each file; with ``strict`` it is an error. Raises FormatError.
    """
    for source in sources(where, ("*_[0-9]*",)):
        with ParseWarnings(source.name, strict) as doubts:
            for first, last, body in _bodies(source, encoding):
                try:
                    document, found = _document(body, LABELS if labels is None else labels, kinds, optional, source.id)
                except ValueError as error:
                    place = f"{source.name}:{first}: in the document that ends on line {last}"
                    raise FormatError(f"{place}: {error}") from None
                for line, what in found:
                    doubts.add(what, first + 1 + line)
                yield document


def _bodies(source: Source, encoding: str) -> Iterator[tuple[int, int, str]]:
    """First line, last line and content of each <DOC> element."""
    lines: list[str] | None = None
    first = 0
    for number, line in read_lines(source, encoding):
        if line.strip() == "<DOC>":
            if lines is not None:
                raise FormatError(f"{source.name}:{number}: <DOC> inside the <DOC> of line {first}; expected </DOC>")
            lines, first = [], number
        elif line.strip() == "</DOC>":
            if lines is None:
                raise FormatError(f"{source.name}:{number}: </DOC> without <DOC>")
            yield first, number, "\n".join(lines)
            lines = None
        elif lines is not None:
            lines.append(line)
    if lines is not None:
        raise FormatError(f"{source.name}:{first}: <DOC> never ends; expected </DOC>")
    if not first and source.path is not None and source.path.stat().st_size:
        raise FormatError(f"{source.name}:1: no <DOC> in this file; expected the mark-up of IE-ER")


def _element(name: str, body: str) -> str | None:
    return _placed(name, body)[0]


def _placed(name: str, body: str) -> tuple[str | None, int]:
    """The content of an element, without the line breaks around it, and the line on which that begins, from 0."""
    before, opened, rest = body.partition(f"<{name}>")
    content, closed, _ = rest.partition(f"</{name}>")
    if not (opened and closed):
        return None, 0
    return content, before.count("\n")


def _document(
    body: str, labels: LabelNames, kinds: tuple[str, ...], optional: bool, file: str
) -> tuple[Document, list[Doubt]]:
    """The document, and what is in doubt about it."""
    doubts: list[Doubt] = []
    content, line = _placed("TEXT", body)
    if content is None:
        raise ValueError("no <TEXT> element; expected one")
    title, title_line = _placed("HEADLINE", body)
    title = title or ""
    for name in ("TEXT", "HEADLINE"):
        if len(begun := body.split(f"<{name}>", 2)) > 2:
            doubts.append((sum(part.count("\n") for part in begun[:2]), f"a second <{name}> is not read"))
    headline, above = _unmark(title.strip("\n"), title_line + len(title) - len(title.lstrip("\n")), doubts)
    text, below = _unmark(content.removeprefix("\n").removesuffix("\n"), line + content.startswith("\n"), doubts)
    shift = len(headline) + 2 if headline else 0
    text = f"{headline}\n\n{text}" if headline else text
    marked = [*above, *(m._replace(start=m.start + shift, end=m.end + shift) for m in below)]
    kept = [m for m in marked if m.kind in kinds and (optional or m.attributes.get("status") != "opt")]
    entities, attributes = _entities(text, _outermost_first(kept), labels, doubts)
    number = (_element("DOCNO", body) or "").strip()
    names = {"doctype": "DOCTYPE", "date_time": "DATE_TIME"}
    fields: dict[str, object] = {key: (_element(name, body) or "").strip() for key, name in names.items()}
    fields |= {"file": file, "entity_attributes": attributes}
    return Document.from_text(text, id=number or None, fields=fields).with_entities(entities), doubts


def _outermost_first(marked: list[Marked]) -> list[Marked]:
    """In the order of the text; of spans at one place those that were closed last come first."""
    return [mark for _, mark in sorted(enumerate(marked), key=lambda at: (at[1].start, -at[1].end, -at[0]))]


def _entities(
    text: str, marked: list[Marked], labels: LabelNames, doubts: list[Doubt]
) -> tuple[list[Entity], dict[int, dict[str, str]]]:
    """The outermost spans as entities, and what else is said of them."""
    entities: list[Entity] = []
    attributes: dict[int, dict[str, str]] = {}
    for mark in marked:
        if "type" not in mark.attributes:
            doubts.append((mark.line, f"a span without a type, read as {mark.kind.upper()}"))
        kind = mark.attributes.get("type", mark.kind.upper())
        label, name = new_label(kind, labels), text[mark.start : mark.end]
        if label is None:
            continue
        if not name.strip():
            doubts.append((mark.line, "a span without text is left out"))
            continue
        if entities and entities[-1].end > mark.start:
            doubts.append((mark.line, "a span marked inside another is left out"))
            continue
        further = {key: value for key, value in mark.attributes.items() if key != "type"}
        if further:
            attributes[len(entities)] = further
        entities.append(Entity(mark.start, mark.end, label, name))
    return entities, attributes


def _unmark(content: str, line: int, doubts: list[Doubt]) -> tuple[str, list[Marked]]:
    """The text without mark-up, and the spans that were marked; ``line``: on which it begins."""
    pieces: list[str] = []
    opened: list[tuple[str, int, dict[str, str], int]] = []
    marked: list[Marked] = []
    position = last = 0
    for mark in _MARK.finditer(content):
        pieces.append(content[last : mark.start()])
        position += mark.start() - last
        line += content.count("\n", last, mark.end())
        last = mark.end()
        side, kind, attributes, character, odd = mark.groups()
        if odd:
            doubts.append((line, "mark-up that is none of IE-ER's stays in the text"))
            pieces.append(odd)
            position += len(odd)
        elif character:
            pieces.append(_CHARACTERS[character.upper()])
            position += 1
        elif side == "b_":
            opened.append((kind, position, dict(_ATTRIBUTE.findall(attributes)), line))
        elif side == "e_":
            if not opened or opened[-1][0] != kind:
                raise ValueError(f"<e_{kind}> closes {f'<b_{opened[-1][0]}>' if opened else 'nothing'}")
            _, begin, found, began = opened.pop()
            marked.append(Marked(kind, begin, position, found, began))
    if opened:
        raise ValueError(f"<b_{opened[-1][0]}> is never closed; expected <e_{opened[-1][0]}>")
    pieces.append(content[last:])
    return "".join(pieces), marked
