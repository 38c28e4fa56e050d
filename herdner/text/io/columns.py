"""Column formats: one token per line, as in CoNLL-2003."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, get_args

from herdner.base.messages import format_count
from herdner.text.document import Document, align_tokens
from herdner.text.io.parse_warnings import ParseWarnings
from herdner.text.io.sequences import SequenceChecker
from herdner.text.io.source import FormatError, Input, Source, read_lines, sources
from herdner.text.partial import alternatives, is_ambiguous, without_prefixes
from herdner.text.tags import split_tag

DOCSTART = "-DOCSTART-"
Documents = Literal["docstart", "sentence", "file"]


@dataclass(frozen=True, slots=True)
class Layout:
    """Meaning of the columns and special lines of a column file.

    Attributes:
        token: Index of the column of tokens.
        tag: Index of the column of tags; None: no tags are read.
        documents: Separation of documents: "docstart" (a ``-DOCSTART-`` line or ``# newdoc`` comment begins a document,
            which may have no tokens; without such lines a file is one document), "sentence" (each sentence is a
            document) or "file".
        comments: Lines that begin with ``#`` are comments ``# key = value``.
        nested: Some lines have additional columns with the tags of nested entities; these columns are ignored.
        url: The first token of a file is the URL of the article.
    """

    token: int = 0
    tag: int | None = -1
    documents: Documents = "docstart"
    comments: bool = False
    nested: bool = False
    url: bool = False


class ColumnSentence(NamedTuple):
    """Sentence of a column file, as tokens and tags.

    Attributes:
        tokens: The tokens.
        tags: Their tags; empty if the file has none.
        text: Text of the sentence from a comment.
        line: Number of the last line, from 1.
    """

    tokens: list[str]
    tags: list[str]
    text: str | None
    line: int


class DocumentBorder(NamedTuple):
    """Border between two documents of a column file, with the id of the second document if the file contains an id."""

    id: str | None


def read_columns(
    where: Input, *, layout: Layout, patterns: tuple[str, ...], encoding: str = "utf-8", strict: bool = False
) -> Iterator[Document]:
    """Read documents from one or more column files, in which each line contains a token and its tag.

    Tags are kept unchanged. Ambiguous tags such as "?" and "PER|ORG" become a partial annotation
    (`Document.with_tags`). A token with white space inside is read as several tokens of one entity; this, and tags that
    do not follow one scheme, are logged as warnings.

    Args:
        where: A file, folder, glob pattern, ``"-"`` or stream (`sources`).
        layout: Layout of the columns.
        patterns: File names to read in a folder.
        encoding: Encoding of the files.
        strict: Raise an error instead of logging a warning.

    Yields:
        Documents.

    Raises:
        ValueError: The layout is invalid.
        FormatError: The input is invalid.
    """
    if layout.documents not in get_args(Documents):
        raise ValueError(f"`documents` must be one of {', '.join(get_args(Documents))}, got {layout.documents!r}")
    for source in sources(where, patterns):
        with ParseWarnings(source.name, strict) as warnings:
            yield from _documents(source, layout, encoding, warnings)


def _documents(source: Source, layout: Layout, encoding: str, warnings: ParseWarnings) -> Iterator[Document]:
    is_numbered = layout.documents == "sentence"
    sentences: list[ColumnSentence] = []
    name, count = None, 0
    is_open = False  # whether a border has opened the document, so that it exists even without tokens
    fields: dict[str, object] = {}
    rows = _Rows(source, layout, warnings)

    def document() -> Document:
        id = name or source.document_id(count if is_numbered or count > 1 else None)
        if not sentences:  # annotated, unless the file has no tags
            return Document.from_tokens([], None if rows.width == 1 else [], id=id, fields=fields)
        return _build(sentences, id, fields, warnings)

    for event in rows.events(encoding):
        if isinstance(event, DocumentBorder):
            if layout.documents != "docstart":
                continue
            if sentences or is_open:
                yield document()
            sentences, name, is_numbered, is_open, count, fields = [], event.id, True, True, count + 1, {}
            continue
        count = max(count, 1)
        if layout.url and not fields and not sentences:
            fields, event = _take_url(event)
        if event.tokens:
            sentences.append(event)
        if layout.documents == "sentence" and sentences:
            yield document()
            sentences, count = [], count + 1
    if sentences or is_open:
        yield document()


def _take_url(sentence: ColumnSentence) -> tuple[dict[str, object], ColumnSentence]:
    """Remove the URL at the start of a Worldwide Newswire article; return the URL as a field, and the other tokens.

    The tokenizer of that corpus split some addresses at ``&``, ``%`` or ``=``; the pieces are on the following lines.
    """
    tokens, tags, text, line = sentence
    if not tokens or not tokens[0].startswith(("http://", "https://", "www")):
        return {"url": None}, sentence
    is_split = len(tokens) > 1 and not tokens[1][0].isalnum()
    n = len(tokens) if is_split else 1
    return {"url": "".join(tokens[:n])}, ColumnSentence(tokens[n:], tags[n:], text, line)


def _build(sentences: list[ColumnSentence], id: str, fields: dict[str, object], warnings: ParseWarnings) -> Document:
    tokens = [sentence.tokens for sentence in sentences]
    tags = [sentence.tags for sentence in sentences] if sentences[0].tags else None
    if all(sentence.text is None for sentence in sentences):
        return Document.from_tokens(tokens, tags, id=id, fields=fields)
    text = "\n".join(_text(sentence, warnings) for sentence in sentences)
    document = Document.from_aligned(text, tokens, id=id, fields=fields)
    return document if tags is None else document.with_tags([tag for sentence in tags for tag in sentence])


def _text(sentence: ColumnSentence, warnings: ParseWarnings) -> str:
    """Return the text of a sentence: the text in the comment line if it fits the tokens, else the joined tokens."""
    fits = sentence.text is not None and align_tokens(sentence.tokens, sentence.text) is not None
    if sentence.text is not None and not fits:
        warnings.add("the text of a sentence differs from its tokens; the tokens are read", sentence.line)
    return sentence.text if fits and sentence.text else " ".join(sentence.tokens)


@dataclass
class _Rows:
    """Parser that converts the lines of one column file to sentences."""

    source: Source
    layout: Layout
    warnings: ParseWarnings
    width: int = 0  # number of columns of the first row, which all rows must have
    valid_tags: set[str] = field(default_factory=lambda: {"O"})
    lines: list[int] = field(default_factory=list[int])  # line number of each tag of the sentence
    sequences: SequenceChecker = field(default_factory=SequenceChecker)

    def events(self, encoding: str) -> Iterator[ColumnSentence | DocumentBorder]:
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
                yield DocumentBorder(None)
            elif comment:
                key, _, value = line[1:].partition("=")
                if key.strip() == "text":
                    text = value.strip()
                elif key.split()[:1] == ["newdoc"]:
                    yield DocumentBorder(value.strip() or None)
        if tokens:
            yield self.sentence(tokens, tags, text, number)
        self.sequences.report(self.warnings)

    def sentence(self, tokens: list[str], tags: list[str], text: str | None, line: int) -> ColumnSentence:
        self.sequences.read(tags, self.lines)
        if self.warnings.strict:
            self.sequences.report(self.warnings)
        self.lines.clear()
        return ColumnSentence(tokens, tags, text, line)

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
        if tag is not None and tag not in self.valid_tags:
            self.check_tag(number, tag)
        pieces = token.split()
        self.lines.extend([] if tag is None else [number] * len(pieces))
        if len(pieces) == 1:
            tokens.append(pieces[0])
            if tag is not None:
                tags.append(tag)
        elif pieces:
            self.warnings.add("a token with white space inside is read as several tokens", number)
            tokens.extend(pieces)
            tags.extend([] if tag is None else _tags_of_pieces(tag, len(pieces)))
        elif tag in (None, "O", "?"):
            self.warnings.add("a line without a token is skipped", number)
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
        expected = f"{self.width} as in the first row" if self.width else f"at least {needed}"
        found = f"{format_count(width, 'column')} (separated by {'TAB' if tabs else 'space'})"
        raise FormatError(f"{self.source.name}:{number}: {found}, expected {expected}")

    def check_tag(self, number: int, tag: str) -> None:
        try:
            if is_ambiguous(tag):
                alternatives(tag)
            else:
                split_tag(tag)
        except ValueError as error:
            column = "last column" if self.layout.tag == -1 else f"column {(self.layout.tag or 0) + 1}"
            raise FormatError(f"{self.source.name}:{number}: {error}, in the {column}") from None
        self.valid_tags.add(tag)


def _tags_of_pieces(tag: str, n: int) -> list[str]:
    """Return one tag for each of the n > 1 pieces into which a token with the tag ``tag`` is split."""
    if is_ambiguous(tag):
        return [without_prefixes(tag)] * n
    if tag == "O":
        return [tag] * n
    first, last = {"B": "BI", "I": "II", "S": "BE", "E": "IE", "U": "BL", "L": "IL"}[tag[0]]
    label = tag[1:]
    return [first + label, *(["I" + label] * (n - 2)), last + label]
