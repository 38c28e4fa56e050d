"""Files of one token a line: CoNLL-2002 and -2003, WNUT-17, BTC, Worldwide Newswire, Universal NER and their like."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple, get_args

from herdner.text.document import Document, align_tokens
from herdner.text.io.parse_warnings import ParseWarnings
from herdner.text.io.sequences import Sequences
from herdner.text.io.source import FormatError, Source, read_lines, sources
from herdner.text.partial import alternatives, is_ambiguous, without_prefixes
from herdner.text.tags import split_tag

DOCSTART = "-DOCSTART-"
Documents = Literal["docstart", "sentence", "file"]


@dataclass(frozen=True, slots=True)
class Layout:
    """Which column is what, and what separates documents.

    Attributes:
        tag: None reads no tags.
        documents: "docstart" (``-DOCSTART-`` lines, or ``# newdoc`` comments; without any the file is one document),
            "sentence" (each blank-separated sentence is a document), "file".
    """

    token: int = 0
    tag: int | None = -1
    documents: Documents = "docstart"
    comments: bool = False  # "# key = value" lines
    nested: bool = False  # further columns hold the tags of inner entities, on some lines only
    url: bool = False  # the file begins with its address


class Sentence(NamedTuple):
    tokens: list[str]
    tags: list[str]
    text: str | None
    line: int  # the last one


class NewDocument(NamedTuple):
    id: str | None


def read_columns(
    where: str | Path | IO[Any],
    *,
    layout: Layout,
    patterns: tuple[str, ...],
    encoding: str = "utf-8",
    strict: bool = False,
) -> Iterator[Document]:
    """The documents of the files, streaming. Tags stay as the file has them, unless ``labels`` or ``scheme`` is given.

    ``labels`` renames classes or drops them (None); ``"*"`` speaks for the classes not named. The tags are then written
    in ``scheme`` (IOB2 if none is named). A token's tag may be open: "?" is any, "PER|ORG" any inside a name of one of
    these classes, "B-PER|O" one of these (`Document.partial`). A token with white space inside is read as several
    tokens of one entity. That, and tags that do not follow each other as in one scheme (read as conlleval does), is
    told in one warning for each file; with ``strict`` it is an error.
    Raises FormatError.
    """
    if layout.documents not in get_args(Documents):
        raise ValueError(f"documents={layout.documents!r}; expected one of {', '.join(get_args(Documents))}")
    for source in sources(where, patterns):
        with ParseWarnings(source.name, strict) as doubts:
            yield from _documents(source, layout, encoding, doubts)


def _documents(source: Source, layout: Layout, encoding: str, doubts: ParseWarnings) -> Iterator[Document]:
    many = layout.documents == "sentence"
    sentences: list[Sentence] = []
    name, count = None, 0
    fields: dict[str, object] = {}

    def finished() -> Document:
        id = name or (f"{source.id}#{count}" if many or count > 1 else source.id)
        return _build(sentences, id, fields, doubts)

    for event in _Rows(source, layout, doubts).events(encoding):
        if isinstance(event, NewDocument):
            if layout.documents != "docstart":
                continue
            if sentences:
                yield finished()
            sentences, name, many, count, fields = [], event.id, True, count + 1, {}
            continue
        count = max(count, 1)
        if layout.url and not fields and not sentences:
            fields, event = _take_url(event)
        if event.tokens:
            sentences.append(event)
        if layout.documents == "sentence" and sentences:
            yield finished()
            sentences, count = [], count + 1
    if sentences:
        yield finished()


def _take_url(sentence: Sentence) -> tuple[dict[str, object], Sentence]:
    """The address that opens an article of Worldwide Newswire, as a field, and what is left of its line.

    The tokenizer of that corpus cut some addresses at ``&``, ``%`` or ``=`` and left the pieces on the following lines.
    """
    tokens, tags, text, line = sentence
    if not tokens or not tokens[0].startswith(("http://", "https://", "www")):
        return {"url": None}, sentence
    pieces = len(tokens) > 1 and not tokens[1][0].isalnum()
    keep = len(tokens) if pieces else 1
    return {"url": "".join(tokens[:keep])}, Sentence(tokens[keep:], tags[keep:], text, line)


def _build(sentences: list[Sentence], id: str, fields: dict[str, object], doubts: ParseWarnings) -> Document:
    tokens = [sentence.tokens for sentence in sentences]
    tags = [sentence.tags for sentence in sentences] if sentences[0].tags else None
    if all(sentence.text is None for sentence in sentences):
        return Document.from_tokens(tokens, tags, id=id, fields=fields)
    text = "\n".join(_text(sentence, doubts) for sentence in sentences)
    document = Document.from_aligned(text, tokens, id=id, fields=fields)
    return document if tags is None else document.with_tags([tag for sentence in tags for tag in sentence])


def _text(sentence: Sentence, doubts: ParseWarnings) -> str:
    """The sentence's own text where its tokens fit."""
    fits = sentence.text is not None and align_tokens(sentence.tokens, sentence.text) is not None
    if sentence.text is not None and not fits:
        doubts.add("a sentence's text is not that of its tokens, which are read", sentence.line)
    return sentence.text if fits and sentence.text else " ".join(sentence.tokens)


@dataclass
class _Rows:
    """One file's lines, read into sentences."""

    source: Source
    layout: Layout
    doubts: ParseWarnings
    width: int = 0  # columns of the first row, which every other must have
    known: set[str] = field(default_factory=lambda: {"O"})
    lines: list[int] = field(default_factory=list[int])  # of the sentence's tags
    odd: Sequences = field(default_factory=Sequences)

    def events(self, encoding: str) -> Iterator[Sentence | NewDocument]:
        tokens: list[str] = []
        tags: list[str] = []
        text, number = None, 0
        for number, line in read_lines(self.source, encoding):
            line = line.rstrip()
            comment = self.layout.comments and line.startswith("#")
            if line and not comment and not line.startswith(DOCSTART):
                self.row(number, line, tokens, tags)
                continue
            if tokens:
                yield self.sentence(tokens, tags, text, number - 1)
                tokens, tags, text = [], [], None
            if line.startswith(DOCSTART):
                yield NewDocument(None)
            elif comment:
                key, _, value = line[1:].partition("=")
                if key.strip() == "text":
                    text = value.strip()
                elif key.split()[:1] == ["newdoc"]:
                    yield NewDocument(value.strip() or None)
        if tokens:
            yield self.sentence(tokens, tags, text, number)
        self.odd.tell(self.doubts)

    def sentence(self, tokens: list[str], tags: list[str], text: str | None, line: int) -> Sentence:
        self.odd.read(tags, self.lines)
        if self.doubts.strict:
            self.odd.tell(self.doubts)
        self.lines.clear()
        return Sentence(tokens, tags, text, line)

    def row(self, number: int, line: str, tokens: list[str], tags: list[str]) -> None:
        tabs = "\t" in line
        columns = line.split("\t") if tabs else line.split(" ")
        if not tabs and "" in columns:
            columns = [column for column in columns if column]
        width = len(columns)
        if width != self.width:
            self.check_width(number, width, tabs)
        token = columns[self.layout.token]
        tag = None if self.layout.tag is None or width == 1 else columns[self.layout.tag].strip()
        if tag is not None and tag not in self.known:
            self.check_tag(number, tag)
        pieces = token.split()
        self.lines.extend([] if tag is None else [number] * len(pieces))
        if len(pieces) == 1:
            tokens.append(pieces[0])
            if tag is not None:
                tags.append(tag)
        elif pieces:
            self.doubts.add("a token with white space inside is read as several", number)
            tokens.extend(pieces)
            tags.extend([] if tag is None else _tags_of_pieces(tag, len(pieces)))
        elif tag in (None, "O", "?"):
            self.doubts.add("a line without a token is skipped", number)
        else:
            raise FormatError(f"{self.source.name}:{number}: tag {tag} without a token; expected a token before it")

    def check_width(self, number: int, width: int, tabs: bool) -> None:
        layout = self.layout
        needed = 1 + max(layout.token, layout.tag if layout.tag is not None and layout.tag >= 0 else 0)
        if layout.nested and width >= needed:
            return
        if self.width == 0 and width >= needed:
            self.width = width
            return
        expected = f"{self.width} as on the lines before" if self.width else f"at least {needed}"
        separated = "TAB" if tabs else "space"
        columns = "column" if width == 1 else "columns"
        where = f"{self.source.name}:{number}"
        raise FormatError(f"{where}: {width} {columns} (separated by {separated}), expected {expected}")

    def check_tag(self, number: int, tag: str) -> None:
        try:
            if is_ambiguous(tag):
                alternatives(tag)
            else:
                split_tag(tag)
        except ValueError as error:
            column = "last column" if self.layout.tag == -1 else f"column {(self.layout.tag or 0) + 1}"
            raise FormatError(f"{self.source.name}:{number}: {error}, in the {column}") from None
        self.known.add(tag)


def _tags_of_pieces(tag: str, n: int) -> list[str]:
    """The tags of a token's n > 1 pieces."""
    if is_ambiguous(tag):
        return [without_prefixes(tag)] * n
    if tag == "O":
        return [tag] * n
    first, last = {"B": "BI", "I": "II", "S": "BE", "E": "IE", "U": "BL", "L": "IL"}[tag[0]]
    label = tag[1:]
    return [first + label, *(["I" + label] * (n - 2)), last + label]
