"""Reader of the SGML-like files of the NIST IE-ER evaluation (1999)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from herdner.text.document import Document
from herdner.text.entity import Entity
from herdner.text.io.parse_warnings import ParseWarnings
from herdner.text.io.source import FormatError, Input, Source, locate_errors, read_lines, sources
from herdner.text.labels import LabelNames, new_label

LABELS: LabelNames = {"PERSON": "PER", "LOCATION": "LOC", "ORGANIZATION": "ORG"}

_MARK = re.compile(
    r"<(b_|e_)(\w+)((?:\s+\w+=\"[^\"]*\")*)\s*>|</?ANNOTATION>|&(AMP|LT|GT|QUOT);|(<[be]_)", re.IGNORECASE
)
_ATTRIBUTE = re.compile(r"(\w+)=\"([^\"]*)\"")
_CHARACTERS = {"AMP": "&", "LT": "<", "GT": ">", "QUOT": '"'}


class _Markup(NamedTuple):
    """Text span between an opening and a closing IE-ER mark, with the attributes of the opening mark.

    Attributes:
        kind: "enamex", "numex" or "timex".
        start: Offset of the first character.
        end: Offset behind the last character.
        attributes: The attribute "type", and optionally "status" and "alt".
        line: Index of the span's first line within the document.
    """

    kind: str
    start: int
    end: int
    attributes: dict[str, str]
    line: int


def read_ieer(
    where: Input,
    *,
    encoding: str = "utf-8",
    labels: LabelNames | None = None,
    kinds: tuple[str, ...] = ("enamex",),
    optional: bool = True,
    strict: bool = False,
) -> Iterator[Document]:
    """Read documents from IE-ER files.

    The text of a document is its headline, a blank line and its body without mark-up.

    Of nested spans, only the outermost is read. Nested spans and other dubious mark-up are logged as warnings.

    Args:
        where: A file, folder, glob pattern, ``"-"`` or stream (`sources`).
        encoding: Encoding of the files.
        labels: New name of each type, or None to remove it; by default PER, LOC and ORG.
        kinds: Mark-up to read as entities: "enamex", "numex", "timex".
        optional: Include spans with ``status="opt"``.
        strict: Raise an error instead of logging a warning.

    Yields:
        Documents without tokens. ``fields["entity_attributes"]`` is a dict from the index of an entity to its
        attributes "status" and "alt", for entities that have one of them.

    Raises:
        FormatError: A file is invalid.
    """
    names = LABELS if labels is None else labels
    for source in sources(where, ("*_[0-9]*",)):
        with ParseWarnings(source.name, strict) as warnings:
            for first, last, body in _bodies(source, encoding):
                problems: list[tuple[str, int]] = []
                with locate_errors(f"{source.name}:{first}: in the document that ends on line {last}"):
                    document = _document(body, names, kinds, optional, source.id, problems)
                for message, line in problems:
                    warnings.add(message, first + 1 + line)
                yield document


def _bodies(source: Source, encoding: str) -> Iterator[tuple[int, int, str]]:
    """Yield the first line number, the last line number and the content of each <DOC> element in a file."""
    lines: list[str] | None = None
    first = 0
    for number, line in read_lines(source, encoding):
        if line.strip() == "<DOC>":
            if lines is not None:
                raise FormatError(f"{source.name}:{number}: <DOC> inside the <DOC> of line {first}; expected </DOC>")
            lines, first = [], number
        elif line.strip() == "</DOC>":
            if lines is None:
                raise FormatError(f"{source.name}:{number}: </DOC> without <DOC>; expected <DOC> before </DOC>")
            yield first, number, "\n".join(lines)
            lines = None
        elif lines is not None:
            lines.append(line)
    if lines is not None:
        raise FormatError(f"{source.name}:{first}: <DOC> never ends; expected </DOC>")
    if not first and source.path is not None and source.path.stat().st_size:
        raise FormatError(f"{source.name}:1: no <DOC> in this file; expected IE-ER mark-up")


def _element(name: str, body: str) -> tuple[str | None, int]:
    """Return the content of the element ``name``, and the line index of its opening tag within the document.

    The content is None if the element is missing.
    """
    before, opening, rest = body.partition(f"<{name}>")
    content, closing, _ = rest.partition(f"</{name}>")
    return (content, before.count("\n")) if opening and closing else (None, 0)


def _field(name: str, body: str) -> str:
    return (_element(name, body)[0] or "").strip()


def _document(
    body: str, labels: LabelNames, kinds: tuple[str, ...], optional: bool, file: str, warnings: list[tuple[str, int]]
) -> Document:
    """Parse ``body``, the content of a <DOC> element. Add each warning with the index of its line in ``body``."""
    content, line = _element("TEXT", body)
    if content is None:
        raise ValueError("there is no <TEXT> element; expected <TEXT> after <DOC>")
    title, title_line = _element("HEADLINE", body)
    title = title or ""
    for name in ("TEXT", "HEADLINE"):
        if len(parts := body.split(f"<{name}>", 2)) > 2:
            second = sum(part.count("\n") for part in parts[:2])
            warnings.append((f"a second <{name}> is not read", second))
    headline, above = _remove_markup(title.strip("\n"), title_line + len(title) - len(title.lstrip("\n")), warnings)
    text, below = _remove_markup(
        content.removeprefix("\n").removesuffix("\n"), line + content.startswith("\n"), warnings
    )
    shift = len(headline) + 2 if headline else 0
    text = f"{headline}\n\n{text}" if headline else text
    markup = [*above, *(m._replace(start=m.start + shift, end=m.end + shift) for m in below)]
    markup = [m for m in markup if m.kind in kinds and (optional or m.attributes.get("status") != "opt")]
    entities, attributes = _entities(text, _outermost_first(markup), labels, warnings)
    fields: dict[str, object] = {
        "doctype": _field("DOCTYPE", body),
        "date_time": _field("DATE_TIME", body),
        "file": file,
        "entity_attributes": attributes,
    }
    document = Document.from_text(text, id=_field("DOCNO", body) or None, fields=fields)
    return document.with_entities(entities)


def _outermost_first(markup: list[_Markup]) -> list[_Markup]:
    """Sort marked spans by start, outer spans before inner ones.

    Of spans with equal range, the one that was closed last comes first.
    """
    return [mark for _, mark in sorted(enumerate(markup), key=lambda pair: (pair[1].start, -pair[1].end, -pair[0]))]


def _entities(
    text: str, markup: list[_Markup], labels: LabelNames, warnings: list[tuple[str, int]]
) -> tuple[list[Entity], dict[int, dict[str, str]]]:
    """Return the outermost marked spans as entities, and a dict from entity index to attributes other than ``type``."""
    entities: list[Entity] = []
    attributes: dict[int, dict[str, str]] = {}
    for mark in markup:
        if "type" not in mark.attributes:
            warnings.append((f"a span without a type is read as {mark.kind.upper()}", mark.line))
        label = new_label(mark.attributes.get("type", mark.kind.upper()), labels)
        name = text[mark.start : mark.end]
        if label is None:
            continue
        if not name.strip():
            warnings.append(("a span without text is left out", mark.line))
            continue
        if entities and entities[-1].end > mark.start:
            warnings.append(("a span marked inside another is left out", mark.line))
            continue
        others = {key: value for key, value in mark.attributes.items() if key != "type"}
        if others:
            attributes[len(entities)] = others
        entities.append(Entity(mark.start, mark.end, label, name))
    return entities, attributes


def _remove_markup(content: str, line: int, warnings: list[tuple[str, int]]) -> tuple[str, list[_Markup]]:
    """Return a text without its mark-up, and the marked spans.

    ``line`` is the index of the text's first line in the document.
    """
    pieces: list[str] = []
    open_spans: list[_Markup] = []
    markup: list[_Markup] = []
    position = last = 0
    for mark in _MARK.finditer(content):
        pieces.append(content[last : mark.start()])
        position += mark.start() - last
        line += content.count("\n", last, mark.end())
        last = mark.end()
        side, kind, attributes, character, unknown = mark.groups()
        if unknown:
            warnings.append(("mark-up that IE-ER does not define stays in the text", line))
        if replacement := unknown or (character and _CHARACTERS[character.upper()]):
            pieces.append(replacement)
            position += len(replacement)
        elif side == "b_":
            open_spans.append(_Markup(kind, position, position, dict(_ATTRIBUTE.findall(attributes)), line))
        elif side == "e_":
            if not open_spans or open_spans[-1].kind != kind:
                last_open = f"<b_{open_spans[-1].kind}>" if open_spans else "nothing"
                raise ValueError(f"<e_{kind}> closes {last_open}; expected <b_{kind}> before it")
            markup.append(open_spans.pop()._replace(end=position))
    if open_spans:
        raise ValueError(f"<b_{open_spans[-1].kind}> is never closed; expected <e_{open_spans[-1].kind}>")
    pieces.append(content[last:])
    return "".join(pieces), markup
