"""HTML pages as text that knows where in the page it stands."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

from herdner.base.extras import import_extra
from herdner.text.document import Document
from herdner.text.io.source import FormatError, Source, read_chunks, sources
from herdner.text.source_map import SourceMap, SourceRun

MAX_CHARACTERS = 1 << 28  # a page is held in memory
# Elements whose content is no text of the page.
_HIDDEN = {"script", "style", "template", "noscript", "svg", "iframe", "textarea", "select", "title"}
# Elements that stand in a line of text; all others, but br, begin a paragraph of their own and end one.
_INLINE = {
    "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em", "font", "i", "img",
    "ins", "kbd", "label", "mark", "meter", "nobr", "output", "q", "ruby", "rp", "rt", "s", "samp", "small", "span",
    "strike", "strong", "sub", "sup", "time", "tt", "u", "var", "wbr",
}  # fmt: skip
_GAPS = ("", " ", "\n", "\n\n")
_SPACES = " \t\n\r\f"  # of HTML: others, such as &nbsp;, are characters like any
_LINE_END = re.compile(r"\r\n|\r|\n")
_UNIT = re.compile(
    r"&(?:#[0-9]+|#[xX][0-9a-fA-F]+|[a-zA-Z][a-zA-Z0-9]*);?|[^ \t\n\r\f&]+(?: [^ \t\n\r\f&]+)*|[ \t\n\r\f]+|&"
)


def read_html(where: str | Path | IO[Any] | Source, *, encoding: str = "utf-8") -> Iterator[Document]:
    """The text of each page; `Document.source_map` says where in the page (as characters) it stands.

    Paragraphs, headings, cells and list items are set apart by a blank line, ``<br>`` by a line break, and other white
    space is one space; scripts, styles, titles and forms are left out. Tags and references such as ``&eacute;`` are
    read as browsers do, by turbohtml. Raises FormatError, and ValueError where turbohtml is missing.
    """
    tokenize = _tokenizer()
    for source in sources(where, ("*.html", "*.htm")):
        chunks: list[str] = []
        size = 0
        for chunk in read_chunks(source, encoding):
            chunks.append(chunk)
            size += len(chunk)
            if size > MAX_CHARACTERS:
                raise FormatError(f"{source.name}: a page of more than {MAX_CHARACTERS:,} characters; split it")
        page = "".join(chunks)
        text, runs = _extracted(page, tokenize(page))
        if text:
            yield replace(Document.from_text(text, id=source.id), source_map=SourceMap.of(runs, len(text)))


def _tokenizer() -> Any:
    return import_extra("turbohtml", "reading HTML needs turbohtml (Python 3.11 or later)").tokenize


def _extracted(page: str, tokens: Any) -> tuple[str, list[SourceRun]]:
    """The text of the page, and where its pieces stand there."""
    line_starts: list[int] = [0, *(match.end() for match in _LINE_END.finditer(page))]
    written = _Written()
    hidden, depth, pre = "", 0, 0  # the element that hides what is in it, how often it is open in itself
    text: tuple[int, str] | None = None  # where the last token's text begins; it ends before this token
    for token in tokens:
        place = line_starts[int(token.line) - 1] + int(token.col)
        if text is not None:
            _put(written, page, text[0], place, text[1], pre > 0)
            text = None
        kind, tag = token.type.name, token.tag
        step = {"START_TAG": 1, "END_TAG": -1}.get(kind, 0)
        if hidden:
            depth += step if tag == hidden else 0
            hidden = hidden if depth else ""
        elif kind == "TEXT":
            text = place, str(token.data)
        elif step == 1 and tag in _HIDDEN and not token.self_closing:
            hidden, depth = tag, 1
        elif step and tag == "br":
            written.gap("\n")
        elif step and tag not in _INLINE:
            pre = max(0, pre + step) if tag == "pre" else pre
            written.gap("\n\n")
    if text is not None:
        _put(written, page, text[0], len(page), text[1], pre > 0)
    return "".join(written.pieces), written.runs


class _Written:
    """The text so far, and where its pieces stand in the page. A gap is written only between two pieces of text."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.runs: list[SourceRun] = []
        self.length = 0
        self.waiting = ""

    def gap(self, space: str) -> None:
        """At least this gap: a paragraph is more than a line break, and that is more than a space."""
        if self.pieces and _GAPS.index(space) > _GAPS.index(self.waiting):
            self.waiting = space

    def put(self, text: str, start: int, end: int) -> None:
        if self.waiting:
            self._add(self.waiting, start, start)
            self.waiting = ""
        self._add(text, start, end)

    def _add(self, text: str, start: int, end: int) -> None:
        self.runs.append(SourceRun(self.length, start, end))
        self.pieces.append(text)
        self.length += len(text)


def _put(written: _Written, page: str, start: int, end: int, data: str, keep: bool) -> None:
    """A token's text ``data``, which stands in ``page[start:end]``. ``keep``: line breaks are the text's own."""
    whole = html.unescape(page[start:end]) if "&" in page[start:end] else page[start:end]
    units = _units(page, start, end)
    if _LINE_END.sub("\n", whole) != data:
        units = _those_of(data, units)
    for meant, first, stop in units:
        if meant.strip(_SPACES):
            written.put(meant, first, stop)
        else:
            written.gap("\n" if keep and "\n" in meant else " ")


def _units(page: str, start: int, end: int) -> Iterator[tuple[str, int, int]]:
    """The pieces of a text, what each means and where it stands: white space, words, references as ``&eacute;``."""
    for match in _UNIT.finditer(page, start, end):
        first, stop, given = match.start(), match.end(), match[0]
        meant = html.unescape(given) if given[0] == "&" else given
        if meant == given:
            yield given, first, stop
            continue
        # A name that needs no semicolon may be followed by letters: &notit; is a negation sign and "it;".
        tail = 0
        while len(meant) > 2 and meant[-1 - tail] == given[-1 - tail]:
            tail += 1
        yield meant[: len(meant) - tail], first, stop - tail
        if tail:
            yield given[len(given) - tail :], stop - tail, stop


def _those_of(data: str, units: Iterable[tuple[str, int, int]]) -> Iterator[tuple[str, int, int]]:
    """Of the pieces those that the data has: tags that are none, as in ``Ada</>Bo`` and ``Ada<b``, are no tokens."""
    done = 0
    for meant, first, stop in units:
        single = len(meant) != stop - first  # a reference
        for i, piece in enumerate([meant] if single else meant):
            if data.startswith(piece.replace("\r", "\n"), done):
                done += len(piece)
                yield piece, first + i, stop if single else first + i + 1
