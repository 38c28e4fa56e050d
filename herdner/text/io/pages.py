"""Text of HTML pages, with a source map to the page."""

from __future__ import annotations

import codecs
import html
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from html.parser import HTMLParser
from importlib import import_module
from typing import Any

from herdner.base.extras import import_extra
from herdner.text.document import Document
from herdner.text.io.source import Input, read_whole, sources
from herdner.text.source_map import SourceMap, SourceRun

_HEAD_BYTES = 1 << 16  # first bytes of a page, in which its encoding may be declared
# Names in the Encoding Standard (https://encoding.spec.whatwg.org) of encodings that Python calls otherwise, or whose
# namesake in Python lacks characters.
_PYTHON_ENCODINGS = {
    "big5": "big5hkscs", "euc-kr": "cp949", "gbk": "gb18030", "iso-8859-8-i": "iso-8859-8", "shift_jis": "cp932",
    "windows-874": "cp874", "x-mac-cyrillic": "mac-cyrillic",
}  # fmt: skip
# Elements whose content is not text of the page.
_HIDDEN = {"script", "style", "template", "noscript", "svg", "iframe", "textarea", "select", "title"}
# Elements within a line of text; all others except br begin and end a paragraph.
_INLINE = {
    "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em", "font", "i", "img",
    "ins", "kbd", "label", "mark", "meter", "nobr", "output", "q", "ruby", "rp", "rt", "s", "samp", "small", "span",
    "strike", "strong", "sub", "sup", "time", "tt", "u", "var", "wbr",
}  # fmt: skip
_GAPS = ("", " ", "\n", "\n\n")
_SPACES = " \t\n\r\f"  # white space of HTML; others, such as &nbsp;, are ordinary characters
# A number in <sup> is a reference to a note or an affiliation, which is not a part of the name before it, or a power.
_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_NUMBERS = re.compile(r"[0-9,; *†‡§]+")
_LINE_END = re.compile(r"\r\n|\r|\n")
_PIECE = re.compile(r"[^ \t\n\r\f]+(?: [^ \t\n\r\f]+)*|[ \t\n\r\f]+")
_UNIT = re.compile(
    r"&(?:#[0-9]+|#[xX][0-9a-fA-F]+|[a-zA-Z][a-zA-Z0-9]*);?|[^ \t\n\r\f&]+(?: [^ \t\n\r\f&]+)*|[ \t\n\r\f]+|&"
)


def read_html(where: Input, *, encoding: str = "utf-8") -> Iterator[Document]:
    """Read documents from HTML pages: the visible text of each page.

    A blank line separates paragraphs, headings, cells and list items; ``<br>`` is a line break, and other white space
    is one space. Scripts, styles, titles and forms are left out. Numbers in ``<sup>`` become superscript digits,
    which are not a part of the word before. turbohtml parses tags and references such as ``&eacute;`` as browsers do.

    Args:
        where: A file, folder, glob pattern, ``"-"`` or stream (`sources`).
        encoding: Encoding of the files. A page that is not UTF-8 is read in the encoding that its ``<meta charset>``
            declares, unless ``encoding`` states another encoding than UTF-8.

    Yields:
        A document for each page with text; `Document.source_map` maps the characters of the text to the characters of
        the page.

    Raises:
        FormatError: A page cannot be read or is too long.
        MissingExtra: turbohtml is not installed.
    """
    tokenize = import_extra("turbohtml", "reading HTML needs turbohtml (Python 3.11 or later)").tokenize
    for source in sources(where, ("*.html", "*.htm")):
        page = read_whole(source, encoding, _declared_encoding)
        text, runs = _extract_text(page, tokenize(page))
        if text:
            yield replace(Document.from_text(text, id=source.document_id()), source_map=SourceMap.of(runs, len(text)))


def _declared_encoding(data: bytes) -> str | None:
    """Return the encoding that a ``<meta>`` element at the beginning of a page declares, if Python knows it."""
    page: Any = import_module("turbohtml").parse(data[:_HEAD_BYTES], positions=False)
    name = str(page.encoding).lower()
    try:
        codec = codecs.lookup(_PYTHON_ENCODINGS.get(name, name)).name
    except LookupError:
        return None
    return codec if page.encoding_confidence == "certain" else None


def _extract_text(page: str, tokens: Any) -> tuple[str, list[SourceRun]]:
    """Extract the visible text of an HTML page.

    Return the text, and the runs of its source map.
    """
    line_starts: list[int] = [0, *(match.end() for match in _LINE_END.finditer(page))]
    output = _Output()
    text: tuple[int, str] | None = None  # start and data of the last text token, which ends at this token
    for token in tokens:
        position = line_starts[int(token.line) - 1] + int(token.col)
        if text is not None:
            _put(output, page, text[0], position, text[1])
            text = None
        kind = token.type.name
        if kind == "TEXT" and not output.hidden:
            text = position, str(token.data)
        elif kind in ("START_TAG", "END_TAG"):
            output.add_tag(token.tag, 1 if kind == "START_TAG" else -1, token.self_closing)
    if text is not None:
        _put(output, page, text[0], len(page), text[1])
    return "".join(output.pieces), output.runs


def html_text(page: str) -> str:
    """Return the visible text of HTML that another library generated. The text has no source map.

    Python's parser suffices for such pages. Paragraphs and white space are the same as in `read_html`.

    Args:
        page: Well-formed HTML.

    Returns:
        The text; a blank line separates paragraphs.
    """
    parser = _TextParser()
    parser.feed(page)
    parser.close()
    return "".join(parser.output.pieces)


class _TextParser(HTMLParser):
    """Parser that collects the visible text of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.output = _Output()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.output.add_tag(tag, 1)

    def handle_endtag(self, tag: str) -> None:
        self.output.add_tag(tag, -1)

    def handle_data(self, data: str) -> None:
        for piece in [] if self.output.hidden else _PIECE.findall(data):
            self.output.add_text(piece, 0, 0)


class _Output:
    """Buffer for the extracted text of an HTML page and for its source map.

    A gap is written only between two pieces of text.
    """

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.runs: list[SourceRun] = []
        self.length = 0
        self.pending_gap = ""
        self.hidden = ""  # the hidden element that contains the current position
        self.hidden_depth = self.sup_depth = self.pre_depth = 0  # nesting depths

    def add_tag(self, tag: str, step: int, is_self_closing: bool = False) -> None:
        """Begin (``step`` 1) or end (-1) an element. In ``<sup>``, numbers are written as superscript digits."""
        if self.hidden:
            self.hidden_depth += step if tag == self.hidden else 0
            self.hidden = self.hidden if self.hidden_depth else ""
        elif step == 1 and tag in _HIDDEN and not is_self_closing:
            self.hidden, self.hidden_depth = tag, 1
        elif tag == "br":
            self._gap("\n")
        elif tag == "sup":
            self.sup_depth = max(0, self.sup_depth + step)
        elif tag not in _INLINE:
            self.pre_depth = max(0, self.pre_depth + step) if tag == "pre" else self.pre_depth
            self.sup_depth = 0  # the end tag of <sup> may be missing
            self._gap("\n\n")

    def add_text(self, text: str, start: int, end: int) -> None:
        """Write words, or request a gap for white space; the text is at ``start:end`` in the page."""
        if not text.strip(_SPACES):
            self._gap("\n" if self.pre_depth and "\n" in text else " ")
            return
        if self.pending_gap:
            self._write(self.pending_gap, start, start)
            self.pending_gap = ""
        self._write(text.translate(_RAISED) if self.sup_depth and _NUMBERS.fullmatch(text) else text, start, end)

    def _gap(self, space: str) -> None:
        """Request a space, line break or empty line before the next text; the largest requested one is written."""
        if self.pieces and _GAPS.index(space) > _GAPS.index(self.pending_gap):
            self.pending_gap = space

    def _write(self, text: str, start: int, end: int) -> None:
        self.runs.append(SourceRun(self.length, start, end))
        self.pieces.append(text)
        self.length += len(text)


def _put(output: _Output, page: str, start: int, end: int, data: str) -> None:
    """Write ``data``, the content of an HTML text token at ``page[start:end]``, to the output."""
    whole = html.unescape(page[start:end]) if "&" in page[start:end] else page[start:end]
    units = _units(page, start, end)
    if _LINE_END.sub("\n", whole) != data:
        units = _matching_units(data, units)
    for unit in units:
        output.add_text(*unit)


def _units(page: str, start: int, end: int) -> Iterator[tuple[str, int, int]]:
    """Yield the content, start and end of each word, white space or character reference in ``page[start:end]``."""
    for match in _UNIT.finditer(page, start, end):
        first, stop, source = match.start(), match.end(), match[0]
        content = html.unescape(source) if source[0] == "&" else source
        if content == source:
            yield source, first, stop
            continue
        # Letters may follow a reference without semicolon: &notit; is a negation sign and "it;".
        tail = 0
        while len(content) > 2 and content[-1 - tail] == source[-1 - tail]:
            tail += 1
        yield content[: len(content) - tail], first, stop - tail
        if tail:
            yield source[len(source) - tail :], stop - tail, stop


def _matching_units(data: str, units: Iterable[tuple[str, int, int]]) -> Iterator[tuple[str, int, int]]:
    """Align the units of a page's source with the decoded text ``data``; yield the units that occur in the text.

    A unit is a run of characters or a character reference. The parser drops invalid tags, as in ``Ada</>Bo`` and
    ``Ada<b``, so that ``data`` lacks characters of the page.
    """
    done = 0
    for content, first, stop in units:
        is_reference = len(content) != stop - first
        for i, piece in enumerate([content] if is_reference else content):
            if data.startswith(piece.replace("\r", "\n"), done):
                done += len(piece)
                yield piece, first + i, stop if is_reference else first + i + 1
